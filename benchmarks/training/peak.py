"""Train in a process of its own, and print the megabytes that it had at most.

    python benchmarks/training/peak.py ours|col|row FOLDER LEAVES THREADS

The folder has the arrays of a training and a validation set. Whoever no longer needs the matrix
of features lets go of it. The peak is VmHWM: ru_maxrss also remembers the process that started
this one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

N_ROUNDS = 20
LEARNING_RATE = 0.1


def _load(folder: Path, part: str) -> list[Any]:
    return [np.load(folder / f"{part}_{field}.npy") for field in ("X", "y", "sizes")]


def train_ours(folder: Path, n_leaves: int) -> None:
    """Train LambdaMART with its defaults."""
    import rankinite as rk

    train, valid = (
        rk.RankingData(X, y, group_sizes=sizes, top_grade=4)
        for X, y, sizes in (_load(folder, "train"), _load(folder, "valid"))
    )
    rk.LambdaMART(
        preset="paper",
        n_trees=N_ROUNDS,
        n_leaves=n_leaves,
        learning_rate=LEARNING_RATE,
        truncation=30,
        valid_measure="NDCG@10",
    ).fit(train, valid=valid)


def train_lightgbm(folder: Path, n_leaves: int, threads: int, mode: str) -> None:
    """Train LightGBM's lambdarank, column-wise or row-wise."""
    import lightgbm as lgb

    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "num_leaves": n_leaves,
        "learning_rate": LEARNING_RATE,
        "max_bin": 255,
        "num_threads": threads,
        f"force_{mode}_wise": True,
        "verbosity": -1,
    }
    X, y, sizes = _load(folder, "train")
    train = lgb.Dataset(X, y, group=sizes, params=parameters).construct()
    X, y, sizes = _load(folder, "valid")
    valid = lgb.Dataset(X, y, group=sizes, reference=train, params=parameters).construct()
    del X
    lgb.train(parameters, train, N_ROUNDS, [valid])


def peak() -> float:
    """Return the most megabytes that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    who, data_file, leaves, n_threads = sys.argv[1:]
    if who == "ours":
        train_ours(Path(data_file), int(leaves))
    else:
        train_lightgbm(Path(data_file), int(leaves), int(n_threads), who)
    print(peak())
