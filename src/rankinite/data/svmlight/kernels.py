"""The compiled parser of SVMlight text, for plain lines; others are left to `parse_line`.

The kernel accepts only what is certainly valid, and explains nothing: any other line gets the
state `ODD`, and `parse_line` decides. A thread parses whole lines into rows of their own, so the
result does not depend on the number of threads.

A feature's value is the 32-bit float next to the 64-bit float that Python reads from the same
text. With up to 18 digits in an integer and a power of ten the product is within a few units of
the last place of a 64-bit float; where that decides the 32-bit float, it is the answer, and where
it does not (once in many millions of values), the line is odd.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import (
    inlined_kernel,
    kernel,
    load_byte,
    load_word,
    trailing_zeros,
)

# States of a line.
NO_DOCUMENT = 0
DOCUMENT = 1
LONG_LABEL = 2  # a document whose label has too many digits for the kernel
ODD = 3

NO_QID = np.iinfo(np.int64).min
UNSET = np.int32(0x7FC0DEAD)  # a NaN that parsing never gives: the line has no such feature
LARGEST_POWER = 60  # of ten; float32 values and 18 digits need fewer, other lines are odd
POWERS = np.array([float(f"1e{k}") for k in range(LARGEST_POWER + 1)])
# The integer, the power and the product are each rounded once, and digits past the 18th dropped.
ROUND_OFF = 2.0**-50
# Integers and powers of ten that a 64-bit float holds exactly: their quotient is rounded once, as
# in Python.
EXACT_INTEGER = 2**53
EXACT_POWER = 22
MOST_DIGITS = 18  # of a 64-bit integer

# Bytes; bit 5 makes a letter lower case.
TAB, NEWLINE, VERTICAL_TAB, RETURN, SPACE = 9, 10, 11, 13, 32
LOWER = 32
HASH, PLUS, MINUS, POINT, COLON = ord("#"), ord("+"), ord("-"), ord("."), ord(":")
ZERO, NINE = ord("0"), ord("9")
A, E, N = ord("a"), ord("e"), ord("n")

# Eight bytes of text as one word.
FOUR_BYTES = np.uint64(0xFFFFFFFF)
QID = np.uint64(int.from_bytes(b"qid:", "little"))
ZEROS = np.uint64(0x3030303030303030)
# Added to a byte, it carries into the high bit from 10 on.
UP_FROM_TEN = np.uint64(0x7676767676767676)
HIGH_BITS = np.uint64(0x8080808080808080)
LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
# Two of the four pairs of digits, and what they count: 1,000,000 and 100, or 10,000 and 1. The
# products meet in the upper half of the word.
PAIRS = np.uint64(0x000000FF000000FF)
PAIR_FACTORS = np.uint64(0x000F424000000064)
FOUR_FACTORS = np.uint64(0x0000271000000001)
TENS = np.array([10**k for k in range(9)], dtype=np.int64)


@inlined_kernel
def is_blank(byte: int) -> bool:
    """Return whether a byte separates tokens inside a line."""
    return byte == SPACE or byte == TAB or VERTICAL_TAB <= byte <= RETURN


@inlined_kernel
def ends_token(byte: int) -> bool:
    """Return whether a byte may follow a token: a blank, the newline or a comment's ``#``."""
    return byte == NEWLINE or byte == HASH or is_blank(byte)


@inlined_kernel
def read_digits(word: np.uint64) -> tuple[int, int]:
    """Return the number in the leading digits of eight bytes, and how many digits it has.

    A byte is a digit if xor with "0" leaves at most 9. The digits are shifted to the upper end
    of the word, and pairs, fours and eights add up in three steps.
    """
    word ^= ZEROS
    n_digits = trailing_zeros(((word + UP_FROM_TEN) | word) & HIGH_BITS) >> 3
    if n_digits == 0:
        return 0, 0
    word <<= np.uint64(64 - 8 * n_digits)
    word = word * np.uint64(10) + (word >> np.uint64(8))
    pairs = (word & PAIRS) * PAIR_FACTORS
    fours = ((word >> np.uint64(16)) & PAIRS) * FOUR_FACTORS
    return np.int64((pairs + fours) >> np.uint64(32)), n_digits


@kernel
def read_number(text: NDArray[np.uint8], p: int) -> tuple[int, int, int, bool, bool]:
    """Parse a decimal number at ``p``, with its first 18 significant digits.

    Returns the position behind it, its digits as an integer, its power of ten, whether it is
    negative, and whether it is valid; the caller checks the byte that follows.
    """
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += 1
    mantissa = np.int64(0)
    exponent = np.int64(0)
    n_kept = 0
    n_digits = 0
    in_fraction = False
    # Leading zeros are not significant: they do not count as kept.
    while text[p] == POINT or ZERO <= text[p] <= NINE:
        if text[p] == POINT:
            if in_fraction:
                break
            in_fraction = True
        else:
            n_digits += 1
            if n_kept < MOST_DIGITS:
                mantissa = mantissa * 10 + np.int64(text[p]) - ZERO
                n_kept += 1 if mantissa > 0 else 0
                exponent -= 1 if in_fraction else 0
            elif not in_fraction:
                exponent += 1
        p += 1
    fine = n_digits > 0
    if text[p] | LOWER == E:
        p, power, has_power = _read_power(text, p + 1)
        exponent += power
        fine = fine and has_power
    return p, mantissa, exponent, negative, fine


@kernel
def _read_power(text: NDArray[np.uint8], p: int) -> tuple[int, int, bool]:
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += 1
    first = p
    power = np.int64(0)
    # Four digits are more than any float needs, and cannot overflow.
    while ZERO <= text[p] <= NINE and p - first < 5:
        power = power * 10 + np.int64(text[p]) - ZERO
        p += 1
    return p, -power if negative else power, 0 < p - first < 5


@kernel
def _behind_nan(text: NDArray[np.uint8], p: int) -> int:
    """Return the position behind ``nan`` in any case, or -1."""
    if text[p] == MINUS or text[p] == PLUS:
        p += 1
    if text[p] | LOWER == N and text[p + 1] | LOWER == A and text[p + 2] | LOWER == N:
        return p + 3
    return -1


@kernel
def _read_qid(text: NDArray[np.uint8], p: int) -> tuple[int, int, bool]:
    negative = text[p] == MINUS
    if negative:
        p += 1
    first = p
    qid = np.int64(0)
    while ZERO <= text[p] <= NINE and p - first <= MOST_DIGITS:
        qid = qid * 10 + np.int64(text[p]) - ZERO
        p += 1
    return p, -qid if negative else qid, 0 < p - first <= MOST_DIGITS


@kernel
def read_value(text: NDArray[np.uint8], p: int) -> tuple[np.float32, bool, int]:
    """Parse any value; return it without its sign, the sign, and the position behind it or -1."""
    behind, mantissa, exponent, negative, fine = read_number(text, p)
    if not fine:
        return np.float32(np.nan), False, _behind_nan(text, p)
    if exponent < -LARGEST_POWER or exponent > LARGEST_POWER:
        return np.float32(0), negative, behind if mantissa == 0 else -1
    wide = np.float64(mantissa)
    if exponent < 0:
        wide /= POWERS[-exponent]
    else:
        wide *= POWERS[exponent]
    value = np.float32(wide)
    certain = np.float32(wide * (1 - ROUND_OFF)) == np.float32(wide * (1 + ROUND_OFF))
    if mantissa <= EXACT_INTEGER and -EXACT_POWER <= exponent <= EXACT_POWER:
        certain = True
    return value, negative, behind if certain and np.isfinite(value) else -1


@kernel
def read_line(
    text: NDArray[np.uint8],
    p: int,
    first_feature: int,
    row: NDArray[np.float32],
    bits: NDArray[np.int32],
    label: NDArray[np.float64],
    qid: NDArray[np.int64],
    comment: NDArray[np.int64],
    largest: NDArray[np.int64],
) -> tuple[int, int]:
    """Parse the line at ``p``; return its state and a position at or before its newline.

    One long function: calls of helpers with array arguments would cost atomic reference counts.

    ``row`` and ``bits`` are a row of the matrix as floats and as integers, and its first column
    is ``first_feature``; the other arrays have one item each. ``largest`` gets the largest
    feature number; if that has no column, the row must not be used.
    """
    comment[0] = -1
    largest[0] = -1
    qid[0] = NO_QID
    while is_blank(text[p]):
        p += 1
    if text[p] == HASH:
        comment[0] = p + 1
        return NO_DOCUMENT, p
    if text[p] == NEWLINE:
        return NO_DOCUMENT, p

    state = DOCUMENT
    start = p
    has_label = load_word(text, p) & FOUR_BYTES != QID
    if has_label:
        p, mantissa, exponent, negative, fine = read_number(text, p)
        has_label = text[p] != COLON
        if has_label and (not fine or negative or not ends_token(text[p])):
            return ODD, p
        if mantissa <= EXACT_INTEGER and -EXACT_POWER <= exponent <= 0:
            label[0] = np.float64(mantissa) / POWERS[-exponent]
        else:
            state = LONG_LABEL
    if not has_label:
        # A query or a feature where the label would be; the value may have looked like one.
        state = DOCUMENT
        label[0] = np.nan
        p = start

    while is_blank(text[p]):
        p += 1
    if load_word(text, p) & FOUR_BYTES == QID:
        p, number, fine = _read_qid(text, p + 4)
        if not fine or not ends_token(text[p]):
            return ODD, p
        qid[0] = number

    # Marks instead of zeros, so that a feature that occurs twice is noticed.
    width = row.shape[0]
    for column in range(width):
        bits[column] = UNSET
    n_seen = 0
    top = np.int64(-1)
    while True:
        byte = load_byte(text, p)
        while is_blank(byte):
            p += 1
            byte = load_byte(text, p)
        if byte == NEWLINE:
            break
        if byte == HASH:
            comment[0] = p + 1
            break
        feature = np.int64(0)
        start = p
        digit = byte - ZERO
        while 0 <= digit <= 9:
            feature = feature * 10 + digit
            p += 1
            digit = load_byte(text, p) - ZERO
        if digit != COLON - ZERO or not 0 < p - start <= MOST_DIGITS or feature < first_feature:
            return ODD, start
        p += 1
        start = p
        byte = load_byte(text, p)
        negative = byte == MINUS
        if negative:
            p += 1
            byte = load_byte(text, p)
        mantissa = np.int64(0)
        first_digit = p
        digit = byte - ZERO
        while 0 <= digit <= 9:
            mantissa = mantissa * 10 + digit
            p += 1
            digit = load_byte(text, p) - ZERO
        n_digits = p - first_digit
        plain = n_digits > 0
        n_fraction = 0
        # Fractions are most of a file: eight digits at a time. With more than 18 digits the integer
        # may overflow; then `read_value` starts again below.
        if digit == POINT - ZERO:
            p += 1
            fraction, n_fraction = read_digits(load_word(text, p))
            mantissa = mantissa * TENS[n_fraction] + fraction
            p += n_fraction
            if n_fraction == 8:
                fraction, n_more = read_digits(load_word(text, p))
                mantissa = mantissa * TENS[n_more] + fraction
                p += n_more
                n_fraction += n_more
                if n_more == 8:
                    fraction, n_more = read_digits(load_word(text, p))
                    mantissa = mantissa * TENS[n_more] + fraction
                    p += n_more
                    n_fraction += n_more
        wide = np.float64(mantissa) / POWERS[n_fraction]
        value = np.float32(wide)
        byte = load_byte(text, p)
        if mantissa > EXACT_INTEGER:
            plain = plain and np.float32(wide * (1 - ROUND_OFF)) == np.float32(
                wide * (1 + ROUND_OFF)
            )
        # Exponents, nan, a plus sign, a number that begins with its point, and uncertain rounding.
        if not plain or n_digits + n_fraction > MOST_DIGITS or byte | LOWER == E:
            value, negative, p = read_value(text, start)
            if p < 0:
                return ODD, start
            byte = load_byte(text, p)
        if negative:
            value = -value
        if not ends_token(byte):
            return ODD, p
        column = feature - first_feature
        if column < width:
            # Features mostly increase, which needs no look at the row.
            if feature <= top and bits[column] != UNSET:
                return ODD, p
            row[column] = value
            n_seen += 1
        top = max(top, feature)
    # Features that a line lacks are 0; dense files skip this pass.
    if n_seen < width:
        for column in range(width):
            if bits[column] == UNSET:
                bits[column] = 0
    largest[0] = top
    return state, p


@inlined_kernel
def start_of_line(text: NDArray[np.uint8], p: int) -> int:
    """Return where the line begins that the byte at ``p`` belongs to."""
    while p > 0 and text[p - 1] != NEWLINE:
        p -= 1
    return p


@inlined_kernel
def is_document(text: NDArray[np.uint8], p: int) -> bool:
    """Return whether the line that begins at ``p`` is neither blank nor a comment."""
    byte = load_byte(text, p)
    while is_blank(byte):
        p += 1
        byte = load_byte(text, p)
    return byte != NEWLINE and byte != HASH


@kernel
def count_lines(
    first_block: int,
    last_block: int,
    text: NDArray[np.uint8],
    begins: NDArray[np.int64],
    n_lines: NDArray[np.int64],
    n_docs: NDArray[np.int64],
) -> None:
    """Count the lines, and the documents among them, that end in each block of text.

    Block b ends where b + 1 begins. Eight bytes at a time: most have no newline among them.
    """
    for b in range(first_block, last_block):
        count = np.int64(0)
        n_blank = np.int64(0)
        start = start_of_line(text, begins[b])
        p = begins[b]
        end = begins[b + 1]
        while p < end:
            # Exact: each byte's seven low bits are added on their own, and carry no further.
            word = load_word(text, p) ^ NEWLINES
            word = ~(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS)
            while word != 0:
                newline = p + (trailing_zeros(word) >> 3)
                word &= word - np.uint64(1)
                if newline < end:
                    count += 1
                    # Most blank lines are empty.
                    if newline == start or not is_document(text, start):
                        n_blank += 1
                    start = newline + 1
            p += 8
        n_lines[b] = count
        n_docs[b] = count - n_blank


@kernel
def read_blocks(
    first_block: int,
    last_block: int,
    text: NDArray[np.uint8],
    begins: NDArray[np.int64],
    first_lines: NDArray[np.int64],
    first_docs: NDArray[np.int64],
    first_feature: int,
    matrix: NDArray[np.float32],
    bits: NDArray[np.int32],
    labels: NDArray[np.float64],
    qids: NDArray[np.int64],
    comments: NDArray[np.int64],
    largest: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    states: NDArray[np.uint8],
) -> None:
    """Parse each document into its row; block b has the lines that end in it.

    The first line of block b is ``first_lines[b]``, and its first document ``first_docs[b]``, where
    `count_lines` says which lines have documents.
    """
    for b in range(first_block, last_block):
        # Blocks are cut at any byte: go back to where the line that ends in this block begins.
        p = start_of_line(text, begins[b])
        i = first_docs[b]
        for line in range(first_lines[b], first_lines[b + 1]):
            has_document = is_document(text, p)
            if has_document:
                lines[i] = line
                starts[i] = p
                item = slice(i, i + 1)
                states[i], p = read_line(
                    text,
                    p,
                    first_feature,
                    matrix[i],
                    bits[i],
                    labels[item],
                    qids[item],
                    comments[item],
                    largest[item],
                )
            # The rest is a comment, or an odd line that `parse_line` reads.
            while text[p] != NEWLINE:
                p += 1
            if has_document:
                ends[i] = p
                i += 1
            p += 1


@inlined_kernel
def copy_text(
    text: NDArray[np.uint8], begin: int, end: int, out: NDArray[np.uint8], at: int
) -> int:
    """Copy a piece of text to ``out[at:]``; return the position behind it."""
    for p in range(begin, end):
        out[at] = text[p]
        at += 1
    return at


@kernel
def gather_text(
    text: NDArray[np.uint8],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Concatenate pieces of text."""
    at = 0
    for i in range(begins.shape[0]):
        at = copy_text(text, begins[i], ends[i], out, at)


@kernel
def write_lines(
    head_offsets: NDArray[np.int64],
    heads: NDArray[np.uint8],
    tail_offsets: NDArray[np.int64],
    tails: NDArray[np.uint8],
    prefix_offsets: NDArray[np.int64],
    prefixes: NDArray[np.uint8],
    value_offsets: NDArray[np.int64],
    values: NDArray[np.uint8],
    written: NDArray[np.bool_],
    out: NDArray[np.uint8],
) -> None:
    """Assemble lines: head, then prefix and value of each written feature, then tail."""
    # Values are those of written features only, so they have a counter of their own.
    at = 0
    v = 0
    for i in range(written.shape[0]):
        at = copy_text(heads, head_offsets[i], head_offsets[i + 1], out, at)
        for j in range(written.shape[1]):
            if written[i, j]:
                at = copy_text(prefixes, prefix_offsets[j], prefix_offsets[j + 1], out, at)
                at = copy_text(values, value_offsets[v], value_offsets[v + 1], out, at)
                v += 1
        at = copy_text(tails, tail_offsets[i], tail_offsets[i + 1], out, at)
