"""Worker processes whose run was killed: they end, so that the next run has the cores."""

from __future__ import annotations

import os

from rankinite.core.errors import RankiniteError

_parents: list[int] = []


class OrphanedError(RankiniteError):
    """The run that a unit belongs to is gone."""


def watch_parent() -> None:
    """Remember who started this worker process."""
    _parents[:] = [os.getppid()]


def stop_if_orphaned() -> None:
    """End a training whose run was killed; the next run goes on from its checkpoint."""
    if _parents and os.getppid() != _parents[0]:
        raise OrphanedError("the run that this training belongs to has ended")
