"""Worker processes whose run was killed: they end, so that the next run has the cores."""

from __future__ import annotations

import os
import threading
import time

SECONDS = 0.5


def end_with(parent: int) -> None:
    """End this process as soon as the one that started it is gone, if it is not gone already.

    Nothing is lost: what a unit has not finished is not there, and the next run goes on from the
    checkpoint of its training.

    Parameters
    ----------
    parent
        The number of that process.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(1)
