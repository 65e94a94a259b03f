"""JSON, and UBJSON, which is the same in binary: into dictionaries, lists and numeric arrays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rankinite.core.errors import ModelFileError
from rankinite.core.memory import require_memory

# Bytes of Python's objects for a byte of the file, at most: of an empty list in a list.
OBJECTS = 40
MOST_NESTED = 200
NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
CONSTANTS = {"Z": None, "T": True, "F": False}
SIZES = "iUIlL"
NOTHING = "N"


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON file."""
    _require_memory(content)
    try:
        return json.loads(content)
    except RecursionError:
        raise ModelFileError("is nested deeper than any model") from None
    except ValueError as problem:  # also of bytes that are no text, and of endless numbers
        raise ModelFileError(f"is damaged JSON: {problem}") from None


def parse_ubjson(content: bytes) -> Any:
    r"""Return the value of a UBJSON file; arrays of numbers become arrays of numpy.

    Examples
    --------
    >>> parse_ubjson(b"{i\x01a[$l#i\x02\0\0\0\x01\0\0\0\x02}")
    {'a': array([1, 2], dtype='>i4')}
    """
    _require_memory(content)
    reader = _Reader(content)
    try:
        return reader.value(reader.marker(), 0)
    except UnicodeDecodeError:
        raise ModelFileError("is damaged UBJSON: a text is not in UTF-8") from None


def _require_memory(content: bytes) -> None:
    require_memory(
        "import_model",
        "a file of this size, read as objects,",
        OBJECTS * len(content),
        "import it on a larger machine",
    )


class _Reader:
    """Reads values one behind the other; every one takes at least a byte of the file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, n: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= n <= len(self.content) - self.at:
            raise ModelFileError("is damaged UBJSON: it ends within a value")
        self.at += n
        return self.content[self.at - n : self.at]

    def marker(self) -> str:
        """Return the next type."""
        marker = NOTHING
        while marker == NOTHING:
            marker = self.take(1).decode("latin-1")
        return marker

    def next_is(self, marker: str) -> bool:
        """Tell whether the next byte is this one, and skip it if it is."""
        is_next = self.content[self.at : self.at + 1] == marker.encode()
        self.at += is_next
        return is_next

    def size(self) -> int:
        """Return a number of things, none of which is smaller than a byte."""
        marker = self.marker()
        if marker not in SIZES:
            raise ModelFileError(f"is damaged UBJSON: a length has the type {marker!r}")
        n = int(self.number(marker))
        if not 0 <= n <= len(self.content) - self.at:
            raise ModelFileError("is damaged UBJSON: a length is larger than the file")
        return n

    def number(self, marker: str) -> int | float:
        """Return a number of this type."""
        kind = np.dtype(NUMBERS[marker])
        number: int | float = np.frombuffer(self.take(kind.itemsize), kind)[0].item()
        return number

    def text(self) -> str:
        """Return a text, which follows its length."""
        return self.take(self.size()).decode("utf-8")

    def value(self, marker: str, depth: int) -> Any:
        """Return the value of this type that comes next."""
        if depth > MOST_NESTED:
            raise ModelFileError("is nested deeper than any model")
        if marker in NUMBERS:
            return self.number(marker)
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker == "S":
            return self.text()
        if marker == "C":
            return self.take(1).decode("latin-1")
        if marker == "[":
            return self.array(depth)
        if marker == "{":
            return self.object(depth)
        raise ModelFileError(f"is damaged UBJSON: there is no type {marker!r}")

    def header(self) -> tuple[str | None, int | None]:
        """Return the type and the number of a container's values, if it says them."""
        kind = self.marker() if self.next_is("$") else None
        n = self.size() if self.next_is("#") else None
        # Values without bytes of their own could be any number.
        if kind is not None and (n is None or kind in CONSTANTS or kind == NOTHING):
            raise ModelFileError("is damaged UBJSON: a list of this type has no length")
        return kind, n

    def array(self, depth: int) -> Any:
        """Return a list, or an array of numbers."""
        kind, n = self.header()
        if kind is not None and kind in NUMBERS and n is not None:
            dtype = np.dtype(NUMBERS[kind])
            return np.frombuffer(self.take(n * dtype.itemsize), dtype)
        values: list[Any] = []
        while len(values) < n if n is not None else not self.next_is("]"):
            values.append(self.value(kind or self.marker(), depth + 1))
        return values

    def object(self, depth: int) -> dict[str, Any]:
        """Return an object."""
        kind, n = self.header()
        values: dict[str, Any] = {}
        read = 0
        while read < n if n is not None else not self.next_is("}"):
            name = self.text()
            values[name] = self.value(kind or self.marker(), depth + 1)
            read += 1
        return values
