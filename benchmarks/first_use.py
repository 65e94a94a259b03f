"""The first use after installation, a fresh process, and a busy machine, beside LightGBM.

    python benchmarks/first_use.py [--only cold,warm,warm-up,busy] [--turns 3]

Each time is that of a whole process, from its start to its end: cold with an empty cache of
kernels, warm with the cache that the cold one left. ``busy`` trains on all cores beside four busy
loops and without them: by how much a fit slows down.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = """
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.random((4000, 20)).astype(np.float32), rng.integers(0, 5, 4000)
sizes = [20] * 200
"""
OUR_FIT = DATA + "import rankinite as rk; rk.{ranker}().fit(X, y, group=sizes).save('model.rk')"
OUR_SCORES = DATA + "import rankinite as rk; rk.load_model('model.rk').predict(X)"
THEIR_FIT = (
    DATA
    + """
import lightgbm as lgb
data = lgb.Dataset(X, y, group=sizes, params={"verbose": -1})
lgb.train({"objective": "lambdarank", "verbose": -1}, data).save_model("model.txt")
"""
)
THEIR_SCORES = DATA + "import lightgbm as lgb; lgb.Booster(model_file='model.txt').predict(X)"
BUSY_DATA = """
import time
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.random((60_000, 40)).astype(np.float32), rng.integers(0, 5, 60_000)
sizes = [30] * 2000
"""
OUR_BUSY_FIT = (
    BUSY_DATA
    + """
import rankinite as rk
model = rk.LambdaMART(n_trees=100)
model.fit(X[:60], y[:60], group=[30, 30])
start = time.perf_counter()
model.fit(X, y, group=sizes)
print(time.perf_counter() - start)
"""
)
THEIR_BUSY_FIT = (
    BUSY_DATA
    + """
import lightgbm as lgb
data = lgb.Dataset(X, y, group=sizes, params={"verbose": -1}).construct()
start = time.perf_counter()
lgb.train({"objective": "lambdarank", "verbose": -1}, data, 100)
print(time.perf_counter() - start)
"""
)
N_LOOPS = 4


class Processes:
    """Runs programs in an empty folder with a cache of kernels of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        # Bytecode is there in an installation, also where this environment forbids to write it.
        self.environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        } | {"RANKINITE_CACHE_DIR": str(self.cache)}

    def run(self, *command: str) -> tuple[float, str]:
        """Return the seconds that a command takes, and what it prints."""
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"{command}: {done.stderr}")
        return seconds, done.stdout

    def python(self, code: str) -> float:
        """Return the seconds that a Python program takes."""
        return self.run(sys.executable, "-c", code)[0]

    def cold(self, code: str) -> float:
        """Return the seconds of a program with an empty cache, which is kept aside."""
        kept = self.folder / "kept"
        if self.cache.exists():
            self.cache.rename(kept)
        seconds = self.python(code)
        if kept.exists():
            subprocess.run(["rm", "-rf", str(self.cache)], check=True)
            kept.rename(self.cache)
        return seconds

    def warm(self, code: str, turns: int) -> float:
        """Return the median of the seconds that a Python program takes."""
        return statistics.median(self.python(code) for _ in range(turns))


def report(what: str, ours: float, theirs: float | None, must: float, goal: float) -> None:
    beside = "" if theirs is None else f"; LightGBM {theirs:.2f} s"
    print(f"{what}: {ours:.2f} s (must {must:g}, goal {goal:g}){beside}", flush=True)


def cold(processes: Processes, turns: int) -> None:
    processes.python(THEIR_FIT)  # once, so that files are in memory and bytecode is written
    lightgbm = processes.warm(THEIR_FIT, turns)
    for ranker, what in (("LambdaRank", "net"), ("LambdaMART", "LambdaMART")):
        code = OUR_FIT.format(ranker=ranker)
        processes.cold(code)
        report(f"cold first {what}", processes.cold(code), lightgbm, 20, 10)
    processes.python(OUR_FIT.format(ranker="LambdaMART"))
    theirs = processes.warm(THEIR_SCORES, turns)
    report("cold load_model and predict", processes.cold(OUR_SCORES), theirs, 3, 1)


def warm(processes: Processes, turns: int) -> None:
    processes.python(OUR_FIT.format(ranker="LambdaMART"))
    processes.python(THEIR_FIT)
    for code in (OUR_SCORES, THEIR_SCORES):
        processes.python(code)
    ours, theirs = processes.warm(OUR_SCORES, turns), processes.warm(THEIR_SCORES, turns)
    report("warm process, load_model and predict", ours, theirs, 0.7, 0.3)


def warm_up(processes: Processes, _turns: int) -> None:
    command = str(Path(sys.executable).with_name("rankinite"))
    for options, what in (((), "LambdaMART"), (("--all",), "everything")):
        subprocess.run(["rm", "-rf", str(processes.cache)], check=True)
        seconds, printed = processes.run(command, "warm-up", *options)
        report(f"rankinite warm-up for {what}", seconds, None, 60, 60)
        print(f"  {printed.strip()}")


def busy(processes: Processes, turns: int) -> None:
    """Compare by how much fits slow down beside busy loops."""
    slower = []
    for who, code in (("ours", OUR_BUSY_FIT), ("LightGBM's", THEIR_BUSY_FIT)):
        processes.python(code)
        idle = statistics.median(_fit(processes, code) for _ in range(turns))
        loops = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(N_LOOPS)
        ]
        try:
            loaded = statistics.median(_fit(processes, code) for _ in range(turns))
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        slower.append(loaded)
        print(f"{who}: {idle:.2f} s, beside {N_LOOPS} busy loops {loaded:.2f} s", flush=True)
    ratio = slower[0] / slower[1]
    print(f"busy machine, seconds of a fit, ours over LightGBM's: {ratio:.2f} (must 0.5)")


def _fit(processes: Processes, code: str) -> float:
    return float(processes.run(sys.executable, "-c", code)[1])


SECTIONS = {"cold": cold, "warm": warm, "warm-up": warm_up, "busy": busy}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(SECTIONS), type=lambda text: text.split(","))
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    for name in chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            SECTIONS[name](Processes(Path(folder)), chosen.turns)
