"""Small valid files: the reader and its naive reference agree; damaged ones: tests/attacks."""

import random
from pathlib import Path

import pytest

from tests.attacks.texts import Mutant, random_file, sizes_of, verdict


@pytest.mark.parametrize("seed", range(6))
def test_valid_files_are_read(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        data = random_file(rng)
        assert verdict(tmp_path, Mutant(data, sizes_of(data), {}, 0, 0)) == "read", data
