"""Lines of the log."""

from __future__ import annotations

import io
import json
import logging

import pytest

from rankinite.serve.logs import LOGGER, event, log_to


@pytest.fixture
def lines(monkeypatch):
    """Log to a stream; return its lines."""
    for logger in (LOGGER, logging.getLogger("uvicorn"), logging.getLogger("asyncio")):
        monkeypatch.setattr(logger, "handlers", logger.handlers)
        monkeypatch.setattr(logger, "propagate", logger.propagate)
    monkeypatch.setattr(LOGGER, "level", logging.INFO)

    def start(as_json):
        stream = io.StringIO()
        log_to(stream, as_json=as_json)
        return lambda: stream.getvalue().splitlines()

    return start


def failed():
    try:
        return 1 / 0
    except ZeroDivisionError as problem:
        return problem


def test_events_are_json_lines(lines):
    written = lines(True)
    event(logging.INFO, "request", path="/a\nb", ms=1.5)
    event(logging.ERROR, "failed", error=failed())
    first, second = map(json.loads, written())
    assert first.pop("time").endswith("Z")
    assert first == {"level": "info", "event": "request", "path": "/a\nb", "ms": 1.5}
    assert "ZeroDivisionError" in second["traceback"]


def test_events_are_lines_of_text(lines):
    written = lines(False)
    event(logging.INFO, "request", path="/a\nb", ms=1.5)
    event(logging.ERROR, "failed", error=failed())
    first, second, *traceback = written()
    assert first.endswith('  request  path="/a\\nb"  ms=1.5')
    assert second.endswith("ERROR  failed")
    assert traceback[-1] == "ZeroDivisionError: division by zero"


def test_what_is_too_small_is_not_logged(lines):
    written = lines(True)
    event(logging.DEBUG, "detail")
    assert written() == []
