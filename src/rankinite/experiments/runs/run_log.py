"""The log of a run: all that is said while it lasts, with the time, in its folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rankinite.experiments.runs.folder import LOG, RunFolder

log = logging.getLogger("rankinite")


class _QuietHandler(logging.FileHandler):
    """A log that cannot be written is no reason to say more than the run itself does."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 logging's name
        """Say nothing."""

    def close(self) -> None:
        """Let go of the file, if its last lines can be written or not."""
        with suppress(OSError):
            super().close()


class _HandOn(logging.Handler):
    """Hands records on to the loggers above, which do not look at their level once more."""

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on."""
        if log.parent is not None:
            log.parent.handle(record)


@contextmanager
def logged_to(folder: RunFolder) -> Iterator[None]:
    """Write log records to the folder; what others are shown of them stays as it was."""
    handler = _QuietHandler(folder.path / LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    level, wanted, propagate = log.level, log.getEffectiveLevel(), log.propagate
    above = _HandOn(wanted)
    # Others go by the level of the logger: they get one of their own meanwhile.
    shown = [(other, other.level) for other in log.handlers]
    for other, _ in shown:
        other.setLevel(max(wanted, other.level))
    log.addHandler(handler)
    if propagate:
        log.addHandler(above)
    log.propagate = False
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.propagate = propagate
        log.removeHandler(above)
        log.removeHandler(handler)
        handler.close()
        for other, before in shown:
            other.setLevel(before)
