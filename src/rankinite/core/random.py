"""Random generators keyed by a seed and the purpose of the numbers.

A generator depends on its key alone. Therefore a new purpose changes no other numbers, and a
resumed fit draws the same numbers as an uninterrupted one.
"""

from __future__ import annotations

import hashlib

import numpy as np

from rankinite.core.params import SEED, check


def child_seed(seed: int, *name: str | int) -> np.random.SeedSequence:
    """Return the seed sequence for one purpose.

    Parameters
    ----------
    seed
        Seed of the run.
    name
        Purpose of the numbers, and the round or part where there are several.

    Examples
    --------
    >>> child_seed(1, "split").generate_state(1) == child_seed(1, "split").generate_state(1)
    array([ True])
    >>> child_seed(1, "tree", 7).generate_state(1) == child_seed(1, "tree", 8).generate_state(1)
    array([False])
    """
    check("random numbers", "seed", seed, SEED)
    # With types and separators, so that ("tree", 1) is another key than "tree1" or ("tree", "1").
    key = "\0".join(f"str:{p}" if isinstance(p, str) else f"int:{int(p)}" for p in name)
    words = np.frombuffer(hashlib.sha256(key.encode()).digest(), dtype="<u4")
    return np.random.SeedSequence(int(seed), spawn_key=tuple(int(word) for word in words))


def generator(seed: int, *name: str | int) -> np.random.Generator:
    """Return the random generator for one purpose; see `child_seed`."""
    return np.random.Generator(np.random.PCG64(child_seed(seed, *name)))
