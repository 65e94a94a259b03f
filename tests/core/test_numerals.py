import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.numerals import (
    BYTES_OF_NUMBERS,
    number_or_text,
    parse_number,
    parse_whole,
)

NO_NUMBERS = [
    *("", " ", "1 ", " 1", "1_000", "1\0", "\0001", "\u0661\u0662", "0x10", "1e", "e5", ".", "+"),
    *("--1", "+-1", "1.2.3", "1,5", "inf", "-Infinity", "1\n", "\N{SUPERSCRIPT TWO}", "1\ud800"),
]


@pytest.mark.parametrize("text", [*NO_NUMBERS, "nan"])
@pytest.mark.parametrize("kind", [str, lambda text: text.encode("utf-8", "surrogatepass")])
def test_what_is_no_number(text, kind):
    for parse in (parse_number, parse_whole):
        with pytest.raises(ValueError, match="is not a"):
            parse(kind(text))
    assert number_or_text(text) == text


@settings(deadline=None)
@given(st.text([chr(byte) for byte in BYTES_OF_NUMBERS], max_size=8))
def test_of_these_bytes_python_reads_the_same_texts(text):
    try:
        expected = float(text)
    except ValueError:
        with pytest.raises(ValueError, match="is not a number"):
            parse_number(text)
    else:
        assert parse_number(text) == expected
        assert parse_number(text.encode()) == expected


def test_nan_and_signs():
    assert math.isnan(parse_number("-NaN", nan=True))
    assert parse_number("1e999") == math.inf
    assert parse_whole("+12") == 12
    with pytest.raises(ValueError, match="'\\+12' is not a whole number"):
        parse_whole("+12", signed=False)


def test_long_texts_take_no_long_time():
    start = time.process_time()
    for parse in (parse_number, parse_whole):
        with pytest.raises(ValueError, match="is not a"):
            parse("1" * 1_000_000 + "x")
    with pytest.raises(ValueError, match="is not a whole number"):
        parse_whole("1" * 1_000_000)
    # A grammar that can match digits in two ways takes an hour.
    assert time.process_time() - start < 10
