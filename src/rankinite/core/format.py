"""Text of numbers, p-values, durations, values and lists of names, as people read them.

Names come from files that anybody may have written. `visible` is for every place that prints text,
or writes it where a program gives some characters a meaning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from rankinite.core.errors import UsageError

# Stands for a number that does not exist, such as a mean over no queries.
MISSING = "-"
# A hyphen is too short beside a plus sign in a column of differences.
MINUS = "\N{MINUS SIGN}"
# Below this, p-values come from rounding in the tails of the t distribution.
SMALLEST_P = 1e-99

# What a terminal obeys instead of showing it, what shows text in another order than it is, what is
# not seen at all, and what no encoding can hold. Joiners stay, as words and emoji are written so.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# How Python decodes the bytes of file names that are not UTF-8.
FIRST_BYTE, LAST_BYTE = 0xDC80, 0xDCFF


def visible(text: str, keep: str = "") -> str:
    r"""Return a text in which every character is seen: those that would not be are escaped.

    Parameters
    ----------
    text
        The text.
    keep
        Characters that stay as they are, such as the ends of lines of a text that has several.

    Examples
    --------
    >>> print(visible("bm25\x1b]0;owned\x07"), visible("a\nb"), visible("caf\udce9"), visible("ü"))
    bm25\x1b]0;owned\x07 a\nb caf\xe9 ü
    """
    if text.isascii() and text.isprintable():  # as nearly all are
        return text
    return HIDDEN.sub(lambda match: match[0] if match[0] in keep else _escaped(match[0]), text)


def _escaped(character: str) -> str:
    code = ord(character)
    if FIRST_BYTE <= code <= LAST_BYTE:
        code -= FIRST_BYTE - 0x80
    if character in _SHORT:
        return _SHORT[character]
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def visible_json(text: str) -> str:
    r"""Return JSON, or a string of TOML, that is equal to another and in which all is seen.

    Examples
    --------
    >>> print(visible_json('{"name": "a\u202eb"}'))
    {"name": "a\u202eb"}
    """

    def escaped(match: re.Match[str]) -> str:
        if match[0] == "\n":  # between values; in strings it is escaped already
            return match[0]
        units = match[0].encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))

    return HIDDEN.sub(escaped, text)


def plain_number(value: float) -> str:
    """Return a number in full, without a decimal point if it is whole.

    Examples
    --------
    >>> plain_number(4.0), plain_number(0.15), plain_number(1000001.0)
    ('4', '0.15', '1000001')
    """
    return str(int(value)) if float(value).is_integer() else str(value)


def number_text(value: float, digits: int = 4) -> str:
    """Return a number with a fixed number of decimals; a dash for NaN.

    Examples
    --------
    >>> number_text(0.51234), number_text(2, digits=1), number_text(float("nan"))
    ('0.5123', '2.0', '-')
    """
    return MISSING if math.isnan(value) else f"{value:.{digits}f}"


def signed_text(value: float, digits: int = 4) -> str:
    """Return a difference with its sign; no sign if it rounds to 0, a dash unless finite.

    Examples
    --------
    >>> signed_text(0.01234), signed_text(-0.00001), signed_text(float("nan"))
    ('+0.0123', '0.0000', '-')
    >>> signed_text(-0.5) == MINUS + "0.5000"
    True
    """
    if not math.isfinite(value):
        return MISSING
    size = f"{abs(value):.{digits}f}"
    if float(size) == 0:
        return size
    return ("+" if value > 0 else MINUS) + size


def p_text(p: float | None, digits: int = 3) -> str:
    """Return a p-value with a fixed number of decimals; an empty text for None, a dash for NaN.

    Examples
    --------
    >>> p_text(0.0123), p_text(1e-9), p_text(1e-9, digits=4), p_text(None)
    ('0.012', '<0.001', '<0.0001', '')
    """
    if p is None:
        return ""
    smallest = 10.0**-digits
    return f"<{smallest:.{digits}f}" if p < smallest else number_text(p, digits)


def p_phrase(p: float) -> str:
    """Return a p-value as part of a sentence.

    Examples
    --------
    >>> p_phrase(0.0123), p_phrase(1e-9)
    ('p = 0.012', 'p < 0.001')
    """
    text = p_text(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def p_exponent(p: float) -> str:
    """Return a p-value with two significant digits, however small it is.

    Examples
    --------
    >>> p_exponent(0.0123), p_exponent(1.23e-30), p_exponent(0.0)
    ('0.012', '1.2e-30', '< 1e-99')
    """
    return f"{p:.2g}" if p >= SMALLEST_P else f"< {SMALLEST_P:g}"


def duration(seconds: float) -> str:
    """Return a time in the units that suit its length.

    Examples
    --------
    >>> duration(0.034), duration(12.34), duration(185), duration(7805)
    ('0.03 s', '12.3 s', '3 min 5 s', '2 h 10 min')
    """
    if not math.isfinite(seconds):
        return MISSING
    # From 59.95 on, one decimal would round to 60.0 s.
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds >= 1 or seconds == 0 else f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def readable_size(n_bytes: float) -> str:
    """Return a number of bytes in the unit that suits it.

    Examples
    --------
    >>> readable_size(1536), readable_size(24e9)
    ('1.5 kB', '24.0 GB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            break
        n_bytes /= 1000
    return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:,.1f} {unit}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "query", "queries"), counted(1200, "tree")
    ('1 query', '1,200 trees')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def value_text(value: Any) -> str:
    """Return the value of a parameter as text.

    Examples
    --------
    >>> value_text(0.1), value_text([25.0, 10]), value_text(None), value_text(True)
    ('0.1', '25, 10', 'none', 'yes')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return plain_number(value) if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(value_text(item) for item in value)
    return str(value)


def quoted(text: str | bytes, most: int = 30) -> str:
    """Return a piece of a file in quotes for an error message, cut to what a terminal can show.

    Examples
    --------
    >>> quoted(b"1_0"), quoted("a long text", most=6)
    ("'1_0'", "'a long...'")
    """
    # Of the length that can be shown, as a text may fill the memory; a character has 4 bytes.
    if isinstance(text, bytes):
        # The file may hold any bytes; those that are not UTF-8 are shown as escapes.
        text = text[: 4 * most + 4].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= most else text[:most] + "...")


def some_of(names: Sequence[str], most: int = 12) -> str:
    """Return a list of names for an error message, shortened if there are many.

    Examples
    --------
    >>> some_of(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def refuse_text(owner: str, name: str, value: object) -> None:
    """Refuse a text where a list of names is expected: its characters would pass for names."""
    if isinstance(value, str):
        raise UsageError(f"{owner}: {name} is the text {value!r}; expected a list, [{value!r}]")
