"""First use: how long it takes to compile everything, and how long when that is done."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from training.settings import Settings
from verdicts import Results

CHILD = """
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


def run(_settings: Settings, results: Results) -> None:
    """Run with an empty cache, then with what that run left."""
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
        [sys.executable, "-c", CHILD],
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
