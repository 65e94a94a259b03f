"""Commands that are interrupted, ended or killed at any moment.

Whoever interrupts gets the exit code of the signal, at most a line and a note, and no traceback;
inputs stay as they are; and when the same command has run again to its end, nothing is left behind
and the outputs are those of a command that nobody disturbed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankinite as rk
from tests.attacks import Outcome

QUICK = ["--n-trees", "30", "--n-leaves", "8", "--min-docs-in-leaf", "2"]
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "train": (["train", "train.txt", *QUICK, "--out", "out/m.rk"], ["m.rk"]),
    "predict": (["predict", "n.rk", "train.txt", "--out", "out/scores"], ["scores"]),
    "convert": (["data", "convert", "train.txt", "out/data.parquet", "--force"], ["data.parquet"]),
    "compare": (
        ["compare", "n.rk", "--feature", "1", "--data", "train.txt", "--out", "out/t.md"],
        ["t.md"],
    ),
    "combine": (["combine", "n.rk", "o.rk", "--data", "train.txt", "--out", "out"], ["scores.txt"]),
}  # fmt: skip
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
# The command has begun with its first line; what comes before is Python's.
SCRIPT = "from rankinite.cli import main; print('begun', flush=True); main()"
LIMIT = 120


def interrupted(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Send signals to commands at random moments."""
    rk.save(rk.polynomials(60, n_docs=20, n_features=5), "train.txt")
    for name, seed in (("n.rk", 1), ("o.rk", 2)):
        rk.LambdaMART(n_trees=3, random_state=seed).fit(rk.load("train.txt")).save(name)
    inputs = digests(Path())
    known: dict[str, tuple[dict[str, str], float]] = {}
    for _ in range(n):
        name = str(rng.choice(list(COMMANDS)))
        if name not in known:
            run(name)  # kernels are compiled, or loaded
            shutil.rmtree("out")
            start = time.monotonic()
            run(name)
            known[name] = results(name), time.monotonic() - start
            shutil.rmtree("out")
        number = SIGNALS[int(rng.integers(len(SIGNALS)))]
        yield tried(
            name, number, float(rng.uniform(0, 1.1 * known[name][1])), known[name][0], inputs
        )
        shutil.rmtree("out")


def run(name: str, seconds: float | None = None, number: int = 0) -> tuple[int, str]:
    """Run a command, which may get a signal after some seconds; its exit code, and what it says."""
    Path("out").mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *COMMANDS[name][0]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RANKINITE_COMPILE_AHEAD": "0"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if seconds is not None:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT)
    return process.returncode, errors


def tried(
    name: str, number: int, seconds: float, expected: dict[str, str], inputs: dict[str, str]
) -> Outcome:
    """Interrupt a command, and run it again to its end."""
    code, said = run(name, seconds, number)
    tried_ = f"{name}, {signal.Signals(number).name} after {seconds:.2f} s"
    what = "ended before" if code == 0 else signal.Signals(number).name
    # At the very end, and by a kill, the signal itself ends the process.
    if code not in (0, 128 + number, -number):
        return Outcome(what, f"{tried_}: exit {code}: {said[-300:]}")
    if "Traceback" in said or "Exception ignored" in said:
        return Outcome(what, f"{tried_}: {said[-300:]}")
    lines = [s for s in said.splitlines() if s and not s.startswith(("note: ", "compiling"))]
    if len(lines) > (code == 128 + number):
        return Outcome(what, f"{tried_}: says {lines}")
    if digests(Path()) != inputs:
        return Outcome(what, f"{tried_}: inputs have changed")
    if any(key in expected and digest != expected[key] for key, digest in results(name).items()):
        return Outcome(what, f"{tried_}: a part of a file")
    again, said = run(name)
    # A table is the user's as soon as it is written, however the command ended then.
    if again == 2 and "add --force" in said:
        return Outcome("asks for --force")
    if again != 0:
        return Outcome(what, f"{tried_}, then: {said[-300:]}")
    if left := [path.name for path in Path("out").iterdir() if path.name.endswith(".part")]:
        return Outcome(what, f"{tried_}: left {left}")
    return Outcome(what, "" if results(name) == expected else f"{tried_}: other bytes in the end")


def results(name: str) -> dict[str, str]:
    """Return the digests of the outputs of a command that are there."""
    return {key: d for key, d in digests(Path("out")).items() if key in COMMANDS[name][1]}


def digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files in a folder."""
    files = (path for path in folder.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
