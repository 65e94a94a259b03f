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
    "foreign-models": Campaign("imports:forged", few=60, many=20_000, part=1000),
    "full-disks": Campaign("disks:full", few=4, many=1_000, part=50),
}
