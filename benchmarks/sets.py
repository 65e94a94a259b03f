"""The data sets of the test bed: real ones from a folder, simulated ones of several sizes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

import rankinite as rk

# Files that may be trained on, and the top grade. Test parts that belong to a set stay closed.
REAL = {
    "yandex": (["train.txt.gz"], 4),
    "lightgbm-rank": (["rank.train"], 4),
    "clueweb09": ([f"part{k}.txt.gz" for k in range(1, 6)], 4),
    "mq2007": ([f"S{k}.txt.gz" for k in range(1, 6)], 2),
    "msrd-movies": (["train.txt.gz", "valid.txt.gz"], 1),
}
SIMULATORS = {"challenge": rk.challenge, "polynomials": rk.polynomials}
# The last are as many as the training parts of the papers have.
SIZES = {"challenge": (200, 1_000, 5_000, 19_944), "polynomials": (200, 1_000, 5_000, 10_000)}
# Queries drawn from large real sets: what a small market or a new product has.
DRAWN = {"mq2007": (300,), "msrd-movies": (300, 1_500)}
SETS = [
    *REAL,
    *(f"{name}-{size}" for name, sizes in (DRAWN | SIZES).items() for size in sizes),
]


def folder_of(name: str) -> str:
    """Return the real set or the simulator that a set is drawn from."""
    return name if name in REAL else name.rpartition("-")[0]


@lru_cache(maxsize=1)  # the trainings of a set follow each other
def load_set(name: str, folder: Path) -> rk.RankingData:
    """Return all queries of a set that may be trained on.

    Parameters
    ----------
    name
        One of `SETS`.
    folder
        Where the folders of the real sets are.
    """
    if name in REAL:
        files, top_grade = REAL[name]
        paths = [folder / name / file for file in files]
        return rk.concat([rk.load(path, top_grade=top_grade, comments=False) for path in paths])
    whole, size = folder_of(name), name.rpartition("-")[2]
    if whole in SIMULATORS:
        return SIMULATORS[whole](int(size), part="train")
    data = load_set.__wrapped__(whole, folder)
    drawn = np.random.default_rng(int(size)).choice(data.n_queries, int(size), replace=False)
    return data[np.sort(drawn)]
