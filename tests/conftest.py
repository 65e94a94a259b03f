"""What all tests share; and a clock that says at the end what numba compiled."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

# Tests that train would each start a second process.
os.environ["RANKINITE_COMPILE_AHEAD"] = "0"

import hypothesis
import numba.core.event as numba_events
import pytest
import sklearn

from rankinite.cli import main
from rankinite.core.compilation import compilations
from rankinite.core.threads import set_threads


class CompileClock(numba_events.Listener):
    """Adds up compilations; one kernel compiled inside another counts, its time does not twice."""

    def __init__(self) -> None:
        self.n_kernels = 0
        self.seconds = 0.0
        self.started: list[float] = []

    def on_start(self, event: numba_events.Event) -> None:
        self.started.append(time.perf_counter())

    def on_end(self, event: numba_events.Event) -> None:
        self.n_kernels += 1
        start = self.started.pop()
        if not self.started:
            self.seconds += time.perf_counter() - start


CLOCK = CompileClock()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long")


# Their tests take longest, and wait for other processes.
FIRST = {"test_docs.py", "runs", "sweeps", "cli"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests, and begin with files that take long: no worker waits for one then."""
    if not config.getoption("--long"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    items.sort(key=lambda item: FIRST.isdisjoint(item.path.parts))


# The same examples every time: a test that fails once in a hundred runs belongs to --long.
hypothesis.settings.register_profile("repeated", derandomize=True, database=None)
hypothesis.settings.register_profile("long", max_examples=1000)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("long" if config.getoption("--long") else "repeated")
    numba_events.register("numba:compile", CLOCK)
    # Which test compiles first depends on the cache, and what is logged must not.
    compilations.is_told = True
    # A shell starts what it runs in the background with Ctrl-C ignored, and commands that tests
    # interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary, if this is one of several workers."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["kernels"] = [CLOCK.n_kernels, CLOCK.seconds]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    n_kernels, seconds = getattr(node, "workeroutput", {}).get("kernels", [0, 0.0])
    CLOCK.n_kernels += n_kernels
    CLOCK.seconds += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        f"kernels: {CLOCK.n_kernels} compiled in {CLOCK.seconds:.1f} s, the rest was in the cache"
    )


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch) -> None:
    """Run every test in a folder of its own, so that none can leave files in the project.

    Nothing there has to survive a power failure, and flushing to disk takes longer than most tests.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


@pytest.fixture(autouse=True)
def as_in_a_new_process() -> Iterator[None]:
    """Undo what commands and pages of this process have set, which would last for all tests."""
    log = logging.getLogger("rankinite")
    log.setLevel(logging.NOTSET)
    log.handlers.clear()
    with sklearn.config_context(enable_metadata_routing=False):
        yield


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Run kernels on one thread: on tiny data others only wait, and for long on a busy machine."""
    set_threads(1)
    yield
    set_threads(1)


@pytest.fixture
def on_threads():
    """Call a function on one, two, three and four threads; what it returns, by their number."""

    def results_of(function):
        results = {}
        for n_threads in (1, 2, 3, 4):
            set_threads(n_threads)
            results[n_threads] = function()
        return results

    return results_of


@pytest.fixture
def call(capsys):
    """Call a command as a person would; what it prints, or its errors if it fails."""

    def run(*arguments, code=0):
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert (leaving.value.code or 0) == code, printed.err
        return printed.err if code else printed.out

    return run
