"""Numbers as texts: the one grammar of files, options and the texts of measures.

Python's ``float`` and ``int``, and numpy's readers, also take digits of all scripts, underscores,
and (numpy) a NUL at the end. A file with those is damaged, or no file of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Each text is matched in one way only, so that a long one that does not match takes no long time.
NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)
DIGITS = re.compile(rb"[0-9]+")
WHOLE = re.compile(rb"[+-]?[0-9]+")
# What a text of nothing but numbers consists of; Python's `float` then takes what `NUMBER` does.
BYTES_OF_NUMBERS = b"0123456789+-.eE"
MOST_DIGITS = 4000  # Python refuses to convert more, with an error of its own


def parse_number(text: str | bytes, *, nan: bool = False) -> float:
    """Return the number that a text is, infinite if it is too large; a ValueError if it is none.

    Parameters
    ----------
    text
        The text, without blanks around it.
    nan
        Whether ``nan`` is a number.

    Examples
    --------
    >>> parse_number("-1.5e3"), parse_number(b".5"), parse_number("NaN", nan=True)
    (-1500.0, 0.5, nan)
    """
    written = _as_bytes(text)
    if NUMBER.fullmatch(written) or (nan and NAN.fullmatch(written)):
        return float(written)
    raise ValueError(f"{text[:30]!r} is not a number")


def parse_whole(text: str | bytes, *, signed: bool = True) -> int:
    """Return the whole number that a text is; a ValueError if it is none.

    Parameters
    ----------
    text
        The text, without blanks around it.
    signed
        Whether it may have a sign.

    Examples
    --------
    >>> parse_whole("12"), parse_whole(b"-0003")
    (12, -3)
    """
    written = _as_bytes(text)
    grammar = WHOLE if signed else DIGITS
    if grammar.fullmatch(written) and len(written) <= MOST_DIGITS:
        return int(written)
    raise ValueError(f"{text[:30]!r} is not a whole number")


def number_or_text(text: str) -> int | float | str:
    """Return a whole number, a decimal one, or the text itself.

    Examples
    --------
    >>> [number_or_text(text) for text in ("3", "0.5", "1_000", "gain")]
    [3, 0.5, '1_000', 'gain']
    """
    parsers: tuple[Callable[[str], Any], ...] = (parse_whole, parse_number)
    for parse in parsers:
        try:
            return parse(text)  # type: ignore[no-any-return]
        except ValueError:
            continue
    return text


def _as_bytes(text: str | bytes) -> bytes:
    # Whatever is not ASCII becomes what no number contains.
    return text if isinstance(text, bytes) else text.encode("ascii", "replace")
