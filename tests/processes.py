"""Other processes in tests: what is waited for is an event; the limit only ends a hang."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankinite.core.threads import set_threads

# Of any wait, on a machine that does much else.
LIMIT = 600
# The processes that a test interrupts stop by themselves at a known place: they say so in a line,
# and then wait for their input to end. So a signal always finds work that is under way.
PAUSE = """
import sys

def pause(word):
    print(word, flush=True)
    sys.stdin.read()
"""


def start(script: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """Start a script that may call ``pause(word)``."""
    return subprocess.Popen(
        [sys.executable, "-c", PAUSE + script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def wait_for(word: str, process: subprocess.Popen[str]) -> None:
    """Wait until a process pauses with a word."""
    limit = threading.Timer(LIMIT, process.kill)  # its output then ends
    limit.start()
    line = process.stdout.readline()
    limit.cancel()
    assert line == f"{word}\n", process.communicate(timeout=LIMIT)[1]


def signal_and_end(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    """Send a signal to a process that pauses; how it ended, and what it printed."""
    process.send_signal(number)
    printed, errors = process.communicate(timeout=LIMIT)
    return process.returncode, printed, errors


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait until something is true that no process tells us of."""
    deadline = time.monotonic() + LIMIT
    while not is_true():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process is there; one that has ended may wait for somebody who asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# What a process does to files, in the order of which a power failure could find them.
CHANGES = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")


def run_until_change(function: Callable[..., object], last: int, *arguments: object) -> int | None:
    """Run a function in a process that is killed before its change of files with that number.

    Returns
    -------
    :
        The number of changes if the function ended before that, or else None.
    """
    forks = multiprocessing.get_context("forkserver")
    # What children share is imported once.
    forks.set_forkserver_preload(["tests.sweeps.cases", "optuna", "rankinite.models"])
    n_changes = forks.Value("l", 0)
    child = forks.Process(target=_count_and_run, args=(n_changes, last, function, arguments))
    child.start()
    child.join(LIMIT)
    assert child.exitcode in (0, -signal.SIGKILL), f"left with {child.exitcode}"
    return n_changes.value if child.exitcode == 0 else None


def _count_and_run(
    n_changes: Any, last: int, function: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    set_threads(1)

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_change(*arguments: Any, **options: Any) -> Any:
            n_changes.value += 1
            if n_changes.value == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **options)

        return count_and_change

    os.fsync = lambda _handle: None  # counted, but no power failure will come
    for name in CHANGES:
        setattr(os, name, counted(getattr(os, name)))
    function(*arguments)
