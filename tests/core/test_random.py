from __future__ import annotations

import hashlib
import itertools
import struct

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.core.random import child_seed, generator

NAMES = [(), ("",), ("a",), ("b",), ("a", "b"), ("ab",), ("a", 1), ("a", "1"), ("a", 11), (1, "a")]


@pytest.mark.parametrize(
    ("seed", "name", "key"),
    [
        (0, (), b""),
        (1, ("split",), b"str:split"),
        (7, ("tree", 12), b"str:tree\0int:12"),
        (2**70, ("grün", -3, "x"), "str:grün\0int:-3\0str:x".encode()),
        (np.int64(7), (np.str_("tree"), np.int64(12)), b"str:tree\0int:12"),
    ],
)
def test_recipe(seed, name, key):
    words = struct.unpack("<8I", hashlib.sha256(key).digest())
    expected = np.random.SeedSequence(int(seed), spawn_key=words)
    drawn = np.random.Generator(np.random.PCG64(expected)).random(5)
    assert (child_seed(seed, *name).generate_state(4) == expected.generate_state(4)).all()
    assert (generator(seed, *name).random(5) == drawn).all()


def test_other_names_and_seeds_give_other_numbers():
    drawn = {
        (seed, name): tuple(generator(seed, *name).integers(2**62, size=2))
        for seed, name in itertools.product([0, 1, 2**40], NAMES)
    }
    assert len(set(drawn.values())) == 3 * len(NAMES)


def test_streams_are_independent():
    draws = np.stack([generator(3, "tree", k).standard_normal(10_000) for k in range(6)])
    off_diagonal = np.corrcoef(draws)[~np.eye(6, dtype=bool)]
    assert np.abs(off_diagonal).max() < 0.05  # five standard deviations of 1/sqrt(10,000)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True, np.nan, [1]])
def test_bad_seeds(seed):
    with pytest.raises(UsageError, match="seed must be a whole number of at least 0; got"):
        generator(seed, "a")
