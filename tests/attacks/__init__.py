"""Attacks on what rankinite reads and writes: forged files, damage, kills and full disks.

An attack is a function ``attack(rng, n)`` that tries ``n`` random things in the current folder,
which is empty, and yields an `Outcome` for each. ``make test`` tries a few of each
(``tests/test_attacks.py``); ``make test-long`` tries as many as `ATTACKS` says and prints the
table::

    python -m tests.attacks [NAME...] [--times FACTOR]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """What came of one try."""

    what: str
    """In a word or two, the same for all tries that end alike: "refused", "read", "same bytes"."""
    bad: str = ""
    """If it must not happen: what was tried, and what came of it."""


Attack = Callable[[np.random.Generator, int], Iterator[Outcome]]


@dataclass(frozen=True)
class Campaign:
    """An attack, by the module and the name of its function, and how often it is tried."""

    attack: str
    few: int
    """Tries in ``make test``: about a second."""
    many: int
    """Tries in ``make test-long``."""
    part: int
    """Tries that one process makes in the long campaign: it may die of one."""


CAMPAIGNS: dict[str, Campaign] = {
    "cache-damage": Campaign("cache:damage", few=30, many=10_000, part=500),
    "run-damage": Campaign("runs:damage", few=6, many=2_000, part=100),
    "kills": Campaign("kills:killed", few=3, many=2_000, part=100),
    "hostile-text": Campaign("data:text", few=100, many=80_000, part=2_000),
    "hostile-scores": Campaign("data:scores", few=150, many=20_000, part=2_000),
    "hostile-parquet": Campaign("data:parquet", few=60, many=20_000, part=1_000),
    "small-files": Campaign("data:small", few=1, many=120, part=20),
    "hostile-names": Campaign("names:shown", few=12, many=3_000, part=250),
    "hostile-parameters": Campaign("parameters:hostile", few=6, many=5_000, part=250),
    "outputs": Campaign("outputs:overwritten", few=12, many=4_000, part=200),
    "interrupted-commands": Campaign("interruptions:interrupted", few=1, many=120, part=20),
    "damaged-models": Campaign("models:damage", few=50, many=20_000, part=4_000),
    "forged-checkpoints": Campaign("models:checkpoints", few=10, many=5_000, part=500),
    "forged-cut-points": Campaign("models:cut_points", few=50, many=15_000, part=3_000),
    "forged-models": Campaign("models:models", few=60, many=80_000, part=4_000),
    "requests": Campaign("requests:bad", few=200, many=30_000, part=5_000),
    "foreign-models": Campaign("imports:forged", few=60, many=20_000, part=1000),
    "full-disks": Campaign("disks:full", few=4, many=1_000, part=50),
}
