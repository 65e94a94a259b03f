"""What needs a process of its own: peak memory, and the first use, with an empty cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from shapes import PARTS, Arrays
from training.settings import Settings
from turns import Results

PEAK = Path(__file__).with_name("peak.py")
MODES = ("col", "row")
FIRST_USE = """
import time
start = time.perf_counter()
import numpy as np
import rankinite as rk
rk.LambdaMART, rk.RankingData
imported = time.perf_counter()
rng = np.random.default_rng(0)
train, valid = (
    rk.RankingData(rng.random((1000, 20)), rng.integers(0, 5, 1000), group_sizes=[20] * 50)
    for _ in range(2)
)
model = rk.LambdaMART(n_trees=1).fit(train, valid=valid)
fitted = time.perf_counter()
model.predict(valid)
print(imported - start, fitted - imported, time.perf_counter() - fitted)
"""


def memory(settings: Settings, results: Results) -> None:
    """Compare the peak memory of 20 rounds with LightGBM's, on every shape."""
    for shape in settings.shapes:
        with tempfile.TemporaryDirectory() as folder:
            _write(settings.simulate(shape), Path(folder))
            for n_leaves in settings.leaves:
                what = f"peak memory, {settings.fitted(shape)}, {n_leaves} leaves"
                # Compiling takes memory, and is done once for all: the second run counts.
                _, ours = (_peak("ours", Path(folder), n_leaves, settings) for _ in range(2))
                theirs = [_peak(mode, Path(folder), n_leaves, settings) for mode in MODES]
                print(
                    f"  MB: ours {ours:.0f}, LightGBM column-wise {theirs[0]:.0f}, "
                    f"row-wise {theirs[1]:.0f}",
                    flush=True,
                )
                results.ratio(f"{what}, against LightGBM's least", [ours], [min(theirs)], 1.2, 0.8)


def _write(parts: tuple[Arrays, Arrays], folder: Path) -> None:
    for name, part in zip(PARTS, parts, strict=True):
        for field in ("X", "y", "sizes"):
            np.save(folder / f"{name}_{field}.npy", getattr(part, field))


def _peak(who: str, folder: Path, n_leaves: int, settings: Settings) -> float:
    """Return the megabytes of a process that loads the data and trains."""
    command = [sys.executable, str(PEAK), who, str(folder), str(n_leaves), str(settings.threads)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def first_use(_settings: Settings, results: Results) -> None:
    """Time the first use, when everything is compiled, and the uses after it."""
    with tempfile.TemporaryDirectory() as folder:
        cold, _ = _child(folder, "cold")
        results.seconds("first use: everything compiled, whole process", cold, 60)
        wholes, firsts = zip(*(_child(folder, "warm") for _ in range(3)), strict=True)
        results.seconds("warm: import and first tree", sorted(firsts)[1], 3)
        results.seconds("warm: import, first tree and predict, whole process", sorted(wholes)[1])


def _child(folder: str, what: str) -> tuple[float, float]:
    """Return the seconds of the whole process, and those of import and first tree."""
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env={**os.environ, "RANKINITE_CACHE_DIR": folder},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    whole = time.perf_counter() - start
    imported, fitted, scored = (float(word) for word in process.stdout.split())
    print(
        f"  {what}: import {imported:.2f} s, fit of one tree {fitted:.2f} s, "
        f"predict {scored:.2f} s, whole process {whole:.2f} s",
        flush=True,
    )
    return whole, imported + fitted
