"""Structured logs: events with fields, as JSON lines or, on a terminal, as text."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, TextIO

LOGGER = logging.getLogger("rankinite.serve")


def event(level: int, name: str, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log an event.

    Parameters
    ----------
    level
        As in `logging`.
    name
        What happened, the same for all events of a kind.
    error
        An exception, whose traceback belongs to the event.
    fields
        What is to be known of it.
    """
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, name, exc_info=error, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """One JSON object per event."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        values = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            values["traceback"] = self.formatException(record.exc_info)
        return json.dumps(values)


class TextLines(logging.Formatter):
    """One line of text per event, for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        parts = [_time(record)[11:19], record.getMessage()]
        if record.levelno >= logging.WARNING:
            parts.insert(1, record.levelname)
        # Texts of clients are escaped: no line of a log is theirs.
        parts += [f"{name}={json.dumps(v)}" for name, v in getattr(record, "fields", {}).items()]
        line = "  ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def log_to(stream: TextIO, *, as_json: bool) -> None:
    """Write events to a stream, and nowhere else."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    for logger in (LOGGER, logging.getLogger("uvicorn"), logging.getLogger("asyncio")):
        logger.handlers = [handler]
        logger.propagate = False


def _time(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03}Z"
