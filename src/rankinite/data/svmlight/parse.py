"""The strict parser of one line of SVMlight text, which defines what is allowed.

The compiled kernel parses plain lines. A line with anything unusual in it comes here, and is
either parsed or refused with its column, the offending text and what was expected.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)
# Tokens are separated by the same bytes as in the kernel; a carriage return counts as a blank.
TOKEN = re.compile(rb"[^ \t\r\f\v]+")
LARGEST_FEATURE = 2**31 - 2
LARGEST_SHOWN = 30


@dataclass(frozen=True)
class Line:
    """A parsed line; ``qid`` is None if it has none."""

    label: float
    qid: int | None
    features: dict[int, float]


class LineError(ValueError):
    """A line that cannot be parsed: the problem, and its column from 1."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(problem)
        self.column = column
        self.problem = problem


def parse_line(text: bytes) -> Line:
    """Parse a line with a document.

    Parameters
    ----------
    text
        Bytes of the line without the newline; a comment, from the first ``#`` on, is ignored.

    Raises
    ------
    LineError
        If the line cannot be read.
    """
    first, *rest = TOKEN.finditer(text.partition(b"#")[0])
    label = _label(first)
    qid = None
    if rest and rest[0].group().startswith(b"qid:"):
        qid = _qid(rest[0])
        rest = rest[1:]
    features: dict[int, float] = {}
    for token in rest:
        number, value = _feature(token)
        if number in features:
            raise LineError(token.start() + 1, f"feature {number} occurs twice in this line")
        features[number] = value
    return Line(label, qid, features)


def parse_label(text: bytes) -> float:
    """Parse the label of a line with a document."""
    return _label(next(TOKEN.finditer(text.partition(b"#")[0])))


def _label(token: re.Match[bytes]) -> float:
    text = token.group()
    column = token.start() + 1
    if NUMBER.fullmatch(text) is None:
        raise LineError(
            column, f"{_shown(text)} is not a label; expected a number such as 2 or 0.5"
        )
    value = float(text)
    if not math.isfinite(value):
        raise LineError(column, f"label {_shown(text)} does not fit in a 64-bit float")
    if value < 0:
        raise LineError(column, f"label {_shown(text)} is negative; expected 0 or more")
    return value


def _qid(token: re.Match[bytes]) -> int:
    text = token.group()[4:]
    column = token.start() + 5
    if re.fullmatch(rb"-?\d+", text) is None:
        raise LineError(column, f"{_shown(text)} is not a query id; expected a whole number")
    value = int(text.lstrip(b"-0")[:20] or b"0") * (-1 if text.startswith(b"-") else 1)
    if not -(2**63) <= value < 2**63:
        raise LineError(column, f"query id {_shown(text)} does not fit in a 64-bit integer")
    return value


def _feature(token: re.Match[bytes]) -> tuple[int, float]:
    text = token.group()
    column = token.start() + 1
    number_text, colon, value_text = text.partition(b":")
    if number_text == b"qid":
        raise LineError(column, "unexpected qid; expected it once, directly behind the label")
    if not colon or re.fullmatch(rb"\d+", number_text) is None:
        raise LineError(column, f"{_shown(text)} is not a feature; expected number:value")
    number = int(number_text.lstrip(b"0")[:20] or b"0")
    if number > LARGEST_FEATURE:
        raise LineError(
            column,
            f"feature number {_shown(number_text)} is too large; "
            f"expected at most {LARGEST_FEATURE}",
        )
    return number, _value(value_text, column + len(number_text) + 1, number)


def _value(text: bytes, column: int, number: int) -> float:
    if NAN.fullmatch(text):
        return math.nan
    if NUMBER.fullmatch(text) is None:
        raise LineError(
            column, f"{_shown(text)} is not a value of feature {number}; expected a number or nan"
        )
    with np.errstate(over="ignore"):
        value = np.float32(float(text))
    if not np.isfinite(value):
        raise LineError(
            column, f"value {_shown(text)} of feature {number} does not fit in a 32-bit float"
        )
    return float(value)


def _shown(text: bytes) -> str:
    """Quote a piece of the file, cut to a length that a terminal can show."""
    readable = text.decode("utf-8", "backslashreplace")
    cut = readable if len(readable) <= LARGEST_SHOWN else readable[:LARGEST_SHOWN] + "..."
    return repr(cut)
