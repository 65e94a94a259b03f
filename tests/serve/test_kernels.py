"""The reader of numbers, beside Python's."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.jit import frozen
from rankinite.serve.kernels import ODD, read_numbers
from rankinite.serve.queries import numbers
from tests.naive import numbers as naive

pytestmark = pytest.mark.kernel


@pytest.fixture(autouse=True, scope="module")
def quiet_overflow():
    """Let numbers overflow without a warning, as they do in compiled code."""
    with np.errstate(over="ignore"):
        yield


# Others are left to Python.
MODERATE = st.floats(-1e20, 1e20).filter(lambda value: value == 0 or abs(value) > 1e-20)
NUMBERS = st.one_of(st.none(), st.integers(-(10**20), 10**20), MODERATE)
ODD_VALUES = st.one_of(NUMBERS, st.booleans(), st.text(max_size=3), st.lists(NUMBERS, max_size=2))


@settings(deadline=None)
@given(
    st.one_of(
        st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=4),
        st.lists(NUMBERS, max_size=8),
        st.lists(ODD_VALUES, max_size=4),
    ),
    st.sampled_from([None, 1]),
)
def test_numbers_are_those_of_python(values, indent):
    text = json.dumps(values, indent=indent).encode()
    expected = naive.read_numbers(text, 2)
    X = numbers(memoryview(text), 2)
    if expected is None or len(expected) % 2:
        assert X is None
    else:
        np.testing.assert_array_equal(X.ravel(), np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", []),
        ("[[1, -2.5], [null, 1e3]]", [1, -2.5, np.nan, 1000]),
        ("[ [ 1\n,2 ] ,\t[3 , 4] ]", [1, 2, 3, 4]),
        ("[0.1, 123456789012345678]", [0.1, 123456789012345678]),
        ("[1.17549435e-38, -0.0]", [1.17549435e-38, 0]),
    ],
)
def test_examples(text, expected):
    X = numbers(memoryview(text.encode()), 2)
    np.testing.assert_array_equal(X.ravel(), np.array(expected, np.float32))


@pytest.mark.parametrize(
    "text",
    ["[[1], [2]]", "[[1, 2], 3]", "[1, [2]]", '["1", 2]', "[true, 1]", "[1e39, 1]", "[[]]",
     "[[1, 2, 3]]", "{}", "null", "1", "[1, 2, 3]"],
)  # fmt: skip
def test_odd_arrays_are_left_to_python(text):
    assert numbers(memoryview(text.encode()), 2) is None


def test_nothing_is_written_behind_the_array():
    text = frozen(np.frombuffer(b"[1,2,3]", np.uint8))
    assert read_numbers(text, 1, np.empty(2, np.float32)) == ODD


def test_every_array_of_the_decoder_ends():
    # The kernel relies on the syntax being checked: what is cut off never reaches it.
    for text in (b'{"features": [1', b'{"features": [[1, 2]', b'{"features": [1 2]}'):
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text, type=dict[str, msgspec.Raw])
