"""Numbers and names as people read and write them."""

from __future__ import annotations

from collections.abc import Sequence

from rankinite.core.errors import UsageError


def plain_number(value: float) -> str:
    """Write a number in full, without a point where it is whole.

    Examples
    --------
    >>> plain_number(4.0), plain_number(0.15), plain_number(1000001.0)
    ('4', '0.15', '1000001')
    """
    return str(int(value)) if float(value).is_integer() else str(value)


def readable_size(n_bytes: float) -> str:
    """Write a number of bytes for people.

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


def some_of(names: Sequence[str], most: int = 12) -> str:
    """List names for an error message, cut where there are many.

    Examples
    --------
    >>> some_of(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def refuse_text(owner: str, name: str, value: object) -> None:
    """Refuse one text where several names are expected: its letters would pass for names."""
    if isinstance(value, str):
        raise UsageError(f"{owner}: {name} is the text {value!r}; expected a list, [{value!r}]")
