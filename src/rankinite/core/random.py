"""One seed a run; every use of it takes a child by name.

The child depends on the seed and the name only, so a new use changes no other, and a resumed fit
draws what an undisturbed one would.
"""

from __future__ import annotations

import hashlib

import numpy as np

from rankinite.core.params import Whole, check


def child_seed(seed: int, *name: str | int) -> np.random.SeedSequence:
    """Return the seed sequence of one named use of a seed.

    Parameters
    ----------
    seed
        The seed of the run.
    name
        What the numbers are for, with an iteration or part number where there are several.

    Examples
    --------
    >>> child_seed(1, "split").generate_state(1) == child_seed(1, "split").generate_state(1)
    array([ True])
    >>> child_seed(1, "tree", 7).generate_state(1) == child_seed(1, "tree", 8).generate_state(1)
    array([False])
    """
    check("random numbers", "seed", seed, Whole(0))
    key = "\0".join(f"str:{p}" if isinstance(p, str) else f"int:{int(p)}" for p in name)
    words = np.frombuffer(hashlib.sha256(key.encode()).digest(), dtype="<u4")
    return np.random.SeedSequence(int(seed), spawn_key=tuple(int(word) for word in words))


def generator(seed: int, *name: str | int) -> np.random.Generator:
    """Return a random generator for one named use of a seed."""
    return np.random.Generator(np.random.PCG64(child_seed(seed, *name)))
