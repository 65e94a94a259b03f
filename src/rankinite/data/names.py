"""Names of features that only have numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

# More names than this are made when they are asked for: a short text file can have a feature of
# any number, and a text for each would take more memory than its matrix.
MOST_TEXTS = 1 << 16


class NumberedNames(Sequence[str]):
    """The names "1", "2", ..., or from another number on; like a tuple, but made when asked for.

    Parameters
    ----------
    n
        How many there are.
    first
        The first number.

    Examples
    --------
    >>> names = NumberedNames(10**9)
    >>> len(names), names[-1], "7" in names, "07" in names
    (1000000000, '1000000000', True, False)
    """

    def __init__(self, n: int, first: int = 1) -> None:
        self.numbers = range(first, first + n)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        chosen = self.numbers[index]
        return str(chosen) if isinstance(chosen, int) else tuple(map(str, chosen))

    def __contains__(self, name: object) -> bool:
        # Only as it is written here: "07" and "+7" are other names.
        is_number = isinstance(name, str) and name.isdecimal() and name.isascii()
        return is_number and str(int(str(name))) == name and int(str(name)) in self.numbers

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return self.numbers == other.numbers
        return isinstance(other, tuple) and len(other) == len(self) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"NumberedNames({len(self)}, first={self.numbers.start})"


def numbered_names(n: int, first: int = 1) -> Sequence[str]:
    """Return the names of numbered features: a tuple, unless there are very many."""
    names = NumberedNames(n, first)
    return names if n > MOST_TEXTS else names[:]
