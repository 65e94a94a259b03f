from __future__ import annotations

import numba
import numpy as np
import pytest

from rankinite.core import jit
from rankinite.core.jit import load_word, trailing_zeros

pytestmark = pytest.mark.kernel


@numba.njit
def load_all(text, out):
    for i in range(out.shape[0]):
        out[i] = load_word(text, i)


@numba.njit
def count_all(numbers, out):
    for i in range(out.shape[0]):
        out[i] = trailing_zeros(numbers[i])


def in_python(intrinsic):
    return getattr(intrinsic, "py_func", intrinsic)


def test_a_word_is_eight_bytes_from_anywhere():
    text = np.random.default_rng(1).integers(0, 256, 40).astype(np.uint8)
    text[5:14] = 255
    text.flags.writeable = False
    out = np.empty(33, np.uint64)
    load_all(text, out)
    assert out.tolist() == [int.from_bytes(bytes(text[i : i + 8]), "little") for i in range(33)]
    assert [int(in_python(jit.load_word)(text, i)) for i in range(33)] == out.tolist()


def test_a_word_of_a_piece_of_text():
    text = np.frombuffer(b"0123456789abcdef", np.uint8)
    out = np.empty(1, np.uint64)
    load_all(text[3:], out)
    assert out.tobytes() == b"3456789a"


def test_trailing_zeros():
    powers = [1 << k for k in range(64)]
    random = np.random.default_rng(2).integers(0, 2**63, 50).tolist()
    numbers = np.array([0, 2**64 - 1, *powers, *(p | 1 << 63 for p in powers), *random], np.uint64)
    out = np.empty(len(numbers), np.int64)
    count_all(numbers, out)
    expected = [f"{number:064b}"[::-1].find("1") for number in numbers.tolist()]
    assert out.tolist() == [64, *expected[1:]]
    assert [in_python(jit.trailing_zeros)(number) for number in numbers] == out.tolist()
