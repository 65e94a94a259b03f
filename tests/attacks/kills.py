"""Processes that are killed or interrupted at any moment, and start again: the same bytes."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rankinite as rk
from rankinite.cli import main
from rankinite.core.threads import set_threads
from rankinite.rankers import checkpoint
from tests.attacks import Outcome
from tests.runs.cases import MICRO, bytes_of, micro_data
from tests.sweeps.cases import RECIPE, files_of

OUT = Path("out")
TRAIN = ["--train", "train.parquet"]
FIT = ["train", "train.parquet", "--valid", "test.parquet", "--patience", "none"]
RUN = ["recipe", "run", "micro.toml", *TRAIN, "--test", "test.parquet", "--out", "out/run"]
SWEEP = ["sweep", "swept.toml", "--model", "S", *TRAIN, "--out", "out/sweep", "--folds", "2"]
COMMANDS = {
    "trees": [*FIT, "--n-trees", "40", "--n-leaves", "4", "--out", "out/m.rk"],
    "net": [*FIT, "--ranker", "LambdaRank", "--n-epochs", "20", "--out", "out/m.rk"],
    "run": [*RUN, "--jobs", "1"],
    "run on two workers": [*RUN, "--jobs", "2"],
    "sweep": [*SWEEP, "--trials", "6", "--over", "n_leaves=2:8:2", "--jobs", "1"],
}
# Starting workers takes seconds.
SHARES = [0.3, 0.15, 0.3, 0.02, 0.23]
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
# Of one command, before it is left to finish.
MOST_KILLS = 4
LIMIT = 300.0


@dataclass
class Expected:
    """What a command comes to that nobody disturbs."""

    results: dict[str, bytes]
    names: set[str]
    seconds: float


def killed(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Kill commands at random moments, ``n`` times in all, and let them finish."""
    set_threads(1)
    rk.save(micro_data(60), "train.parquet")
    rk.save(micro_data(20, 2), "test.parquet")
    Path("micro.toml").write_text(MICRO)
    Path("swept.toml").write_text(RECIPE)
    expected: dict[str, Expected] = {}
    n_kills = 0
    while n_kills < n:
        name = str(rng.choice(list(COMMANDS), p=SHARES))
        if name not in expected:
            expected[name] = undisturbed(name)
        OUT.mkdir()
        kills = []
        while len(kills) < MOST_KILLS and n_kills + len(kills) < n:
            number = SIGNALS[int(rng.integers(len(SIGNALS)))]
            moment = float(rng.uniform(0, expected[name].seconds))
            code, said = ended(name, number, moment)
            if code == 0:
                break
            kills.append(f"{number.name} after {moment:.3f} s")
            if bad := after_signal(number, code, said):
                yield Outcome("signal", f"{name}, {', '.join(kills)}: {bad}")
        n_kills += len(kills)
        bad = finish(name, expected[name])
        for _ in kills:
            yield Outcome(f"{name}, resumed", bad and f"{name}, {', '.join(kills)}: {bad}")
            bad = ""  # once
        shutil.rmtree(OUT)


def undisturbed(name: str) -> Expected:
    """Run a command to its end, the first time to load all kernels into this process."""
    OUT.mkdir()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main([*COMMANDS[name], "--quiet"])
    shutil.rmtree(OUT)
    OUT.mkdir()
    start = time.monotonic()
    code, said = ended(name)
    seconds = time.monotonic() - start
    assert code == 0, said
    known = Expected(results(), names(), seconds)
    shutil.rmtree(OUT)
    return known


def ended(name: str, number: int = 0, moment: float = LIMIT) -> tuple[int, str]:
    """Run a command in a child, and send it a signal at a moment; its exit code, and its words."""
    with tempfile.TemporaryFile("w+") as said:
        # What is buffered here would be written by the child as well.
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            call(name, said.fileno())
        code = code_of(child, moment)
        if code is None:
            os.kill(child, number or signal.SIGKILL)
            code = code_of(child, LIMIT)
            if code is None:
                os.kill(child, signal.SIGKILL)
                code_of(child, LIMIT)
                return -999, "does not end"
        said.seek(0)
        return code, said.read()


def call(name: str, said: int) -> None:
    """Call a command in a child, which ends with it."""
    code = 1
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.fsync = lambda _handle: None  # no power failure will come
        checkpoint.SECONDS_BETWEEN = 0.0
        main([*COMMANDS[name], "--quiet"])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except KeyboardInterrupt:  # before or after the command
        code = 130
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def code_of(child: int, seconds: float) -> int | None:
    """Return the exit code of a child once it has ended; None if it has not after some time."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(0.002, left))


def after_signal(number: int, code: int, said: str) -> str:
    """Return what is wrong with the end of a command that got a signal; empty if nothing is."""
    # Before a command begins, SIGTERM ends the process as it ends all others.
    expected = {signal.SIGINT: (130,), signal.SIGTERM: (143, -number)}.get(number, (-number,))
    if code in expected and "Traceback" not in said:
        return ""
    return f"exit {code}: {said[-300:]}"


def finish(name: str, expected: Expected) -> str:
    """Let a command finish; what is wrong with what it comes to."""
    code, said = ended(name)
    if code != 0:
        return f"then exit {code}: {said[-300:]}"
    now = results()
    if differing := sorted(
        key for key in expected.results if now.get(key) != expected.results[key]
    ):
        return f"other bytes: {differing[0]}"
    if litter := sorted(names() ^ expected.names):
        return f"litter: {litter[0]}"
    return ""


def results() -> dict[str, bytes]:
    """Return the bytes that must be the same after any interruption."""
    if (OUT / "sweep").exists():
        return files_of(OUT / "sweep")
    return bytes_of(OUT)


def names() -> set[str]:
    """Return the names of all files and folders."""
    return {str(path.relative_to(OUT)) for path in OUT.rglob("*")}
