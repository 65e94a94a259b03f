"""The compiled reader of numbers in JSON, which holds no lock while it reads.

As the parser of SVMlight text, it takes only what is certainly valid, and explains nothing: what it
does not take is left to Python, which says what is wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import frozen, inlined_kernel, kernel, load_byte
from rankinite.data.svmlight.kernels import is_blank, read_value

# What is no array of numbers, or has another number of columns.
ODD = -1
NEWLINE, COMMA, MINUS, POINT = 10, ord(","), ord("-"), ord(".")
ZERO, OPEN, CLOSE, SMALL_N = ord("0"), ord("["), ord("]"), ord("n")
NULL_LENGTH = 4
# So many digits that their integer and power of ten are exact: the quotient is rounded once.
PLAIN_DIGITS = 15
POWERS = np.array([float(f"1e{k}") for k in range(PLAIN_DIGITS + 1)])


@inlined_kernel
def is_space(byte: int) -> bool:
    """Return whether a byte separates tokens of JSON."""
    return byte == NEWLINE or is_blank(byte)


@kernel
def read_numbers(text: NDArray[np.uint8], n_columns: int, values: NDArray[np.float32]) -> int:
    """Read an array of numbers, or of rows of so many numbers each; return how many there are.

    One long function, as `read_line`. The text is an array of JSON, whose syntax was checked; null
    is NaN.
    """
    capacity = values.shape[0]
    p = 1  # behind the bracket
    byte = load_byte(text, p)
    while is_space(byte):
        p += 1
        byte = load_byte(text, p)
    if byte == CLOSE:
        return 0
    has_rows = byte == OPEN
    n = 0
    while True:
        row_end = capacity
        if has_rows:
            while is_space(byte):
                p += 1
                byte = load_byte(text, p)
            if byte != OPEN:
                return ODD
            p += 1
            row_end = n + n_columns
        if row_end > capacity:
            return ODD
        while True:
            byte = load_byte(text, p)
            while is_space(byte):
                p += 1
                byte = load_byte(text, p)
            if n == row_end:
                return ODD
            start = p
            if byte == SMALL_N:
                values[n] = np.nan
                p += NULL_LENGTH
            else:
                negative = byte == MINUS
                if negative:
                    p += 1
                    byte = load_byte(text, p)
                mantissa = np.int64(0)
                n_fraction = 0
                first = p
                digit = byte - ZERO
                # More digits overflow at worst, and are read again below.
                while 0 <= digit <= 9:
                    mantissa = mantissa * 10 + digit
                    p += 1
                    digit = load_byte(text, p) - ZERO
                n_digits = p - first
                if digit == POINT - ZERO:
                    p += 1
                    first = p
                    digit = load_byte(text, p) - ZERO
                    while 0 <= digit <= 9:
                        mantissa = mantissa * 10 + digit
                        p += 1
                        digit = load_byte(text, p) - ZERO
                    n_fraction = p - first
                    n_digits += n_fraction
                byte = load_byte(text, p)
                ends = byte == COMMA or byte == CLOSE or is_space(byte)
                if ends and 0 < n_digits <= PLAIN_DIGITS:
                    wide = np.float64(mantissa) / POWERS[n_fraction]
                    values[n] = np.float32(-wide if negative else wide)
                else:
                    value, negative, p = read_value(text, start)
                    if p < 0:
                        return ODD
                    values[n] = -value if negative else value
            n += 1
            byte = load_byte(text, p)
            while is_space(byte):
                p += 1
                byte = load_byte(text, p)
            p += 1
            if byte == CLOSE:
                break
            if byte != COMMA:
                return ODD
        if not has_rows:
            return n
        if n != row_end:
            return ODD
        byte = load_byte(text, p)
        while is_space(byte):
            p += 1
            byte = load_byte(text, p)
        if byte == CLOSE:
            return n
        if byte != COMMA:
            return ODD
        p += 1
        byte = load_byte(text, p)


def compile_reader() -> None:
    """Load, or compile, what reads numbers, so that no request has to wait for it."""
    read_numbers(frozen(np.frombuffer(b"[[1]]", np.uint8)), 1, np.empty(1, np.float32))
