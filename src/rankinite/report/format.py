"""Numbers as the report writes them."""

from __future__ import annotations

import math
from typing import Any

from rankinite.core.format import plain_number
from rankinite.runs.tables import NOTHING

MINUS = "\N{MINUS SIGN}"


def signed(value: float, digits: int = 4) -> str:
    """Return a difference with its sign; a dash if there is none, no sign if it rounds to 0.

    >>> signed(0.01234), signed(-0.00001), signed(float("nan"))
    ('+0.0123', '0.0000', '-')
    >>> signed(-0.5) == MINUS + "0.5000"
    True
    """
    if not math.isfinite(value):
        return NOTHING
    size = f"{abs(value):.{digits}f}"
    if float(size) == 0:
        return size
    return ("+" if value > 0 else MINUS) + size


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> duration(0.034), duration(12.34), duration(185), duration(7805)
    ('0.03 s', '12.3 s', '3 min 5 s', '2 h 10 min')
    """
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds >= 1 or seconds == 0 else f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def counted(n: int, word: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "query", "queries"), counted(1200, "tree")
    ('1 query', '1,200 trees')
    """
    return f"{n:,} {word if n == 1 else plural or word + 's'}"


def value_in_words(value: Any) -> str:
    """Return a parameter as a text.

    >>> value_in_words(0.1), value_in_words([25.0, 10]), value_in_words(None), value_in_words(True)
    ('0.1', '25, 10', 'none', 'yes')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return plain_number(value) if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(value_in_words(one) for one in value)
    return str(value)
