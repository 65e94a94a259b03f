"""The log of a run: all that is said while it lasts, with the time, in its folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rankinite.experiments.runs.folder import LOG, RunFolder

log = logging.getLogger("rankinite")


class _QuietHandler(logging.FileHandler):
    """A log that cannot be written is no reason to say more than the run itself does."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 logging's name
        """Say nothing."""


@contextmanager
def logged_to(folder: RunFolder) -> Iterator[None]:
    """Write log records to the folder; what is shown on the terminal stays as it was."""
    handler = _QuietHandler(folder.path / LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    level = log.level
    # Others go by the level of the logger: they get one of their own meanwhile.
    shown = [(other, other.level) for other in log.handlers]
    for other, _ in shown:
        other.setLevel(max(level, other.level))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
        handler.close()
        for other, before in shown:
            other.setLevel(before)
