"""Zips of stored entries, in the one form in which they are written here.

The bytes are those of `zipfile`, with a fixed time, so that every tool can look inside. What is
read must be these bytes: entries one behind the other from the first byte on, then the directory,
which follows from them. So a zip means one thing, and is read in a time that its size bounds.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

SIGNATURE = b"PK\3\4"  # of an entry
LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s4B4H3L5H2L")
END = struct.Struct("<4s4H2LH")
END_64, LOCATOR_64 = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
EXTRA_HEADER = struct.Struct("<2H")
MIDNIGHT, FIRST_OF_1980 = 0, 0x21
PLAIN, WITH_LARGE_NUMBERS = 20, 45
UTF8_NAME = 0x800
# From here on `zipfile` writes numbers in 64 bits. It leaves room for compression to fail.
LARGE, LARGE_WITH_ROOM, MANY = (1 << 31) - 1, 1.05, (1 << 16) - 1
LARGEST_32, LARGEST_16 = 0xFFFFFFFF, 0xFFFF
READABLE_BY_OWNER = 0o600 << 16
# The systems that `zipfile` says it runs on: Unix, and Windows, where earlier versions said so.
UNIX, WINDOWS = 3, 0


class Entry(NamedTuple):
    """An entry of the zip: its name, and where it is."""

    name: str
    crc: int
    size: int
    offset: int

    @property
    def encoded(self) -> tuple[bytes, int]:
        """The bytes of the name, and the flag that says how they are encoded."""
        return self.name.encode(), 0 if self.name.isascii() else UTF8_NAME

    def header(self) -> bytes:
        """Return the bytes before those of the entry itself."""
        name, flags = self.encoded
        is_large = self.size * LARGE_WITH_ROOM > LARGE
        extra = _numbers_of_64_bits([self.size, self.size]) if is_large else b""
        shown = LARGEST_32 if is_large else self.size
        version = WITH_LARGE_NUMBERS if is_large else PLAIN
        return (
            LOCAL.pack(
                *(SIGNATURE, version, flags, 0, MIDNIGHT, FIRST_OF_1980),
                *(self.crc, shown, shown, len(name), len(extra)),
            )
            + name
            + extra
        )

    def in_directory(self, system: int) -> bytes:
        """Return the bytes of the entry in the directory."""
        name, flags = self.encoded
        large = [self.size, self.size] if self.size > LARGE else []
        large += [self.offset] if self.offset > LARGE else []
        size = LARGEST_32 if self.size > LARGE else self.size
        offset = LARGEST_32 if self.offset > LARGE else self.offset
        extra = _numbers_of_64_bits(large) if large else b""
        version = WITH_LARGE_NUMBERS if large or self.size * LARGE_WITH_ROOM > LARGE else PLAIN
        return (
            CENTRAL.pack(
                *(b"PK\1\2", version, system, version, 0, flags, 0, MIDNIGHT, FIRST_OF_1980),
                *(self.crc, size, size, len(name), len(extra), 0, 0, 0, READABLE_BY_OWNER, offset),
            )
            + name
            + extra
        )


def _numbers_of_64_bits(values: Sequence[int]) -> bytes:
    return EXTRA_HEADER.pack(1, 8 * len(values)) + struct.pack(f"<{len(values)}Q", *values)


def directory(entries: Sequence[Entry], begin: int, n_comment: int, system: int = UNIX) -> bytes:
    """Return the directory of a zip, which begins there, up to the length of the comment."""
    listed = b"".join(entry.in_directory(system) for entry in entries)
    n, size, large = len(entries), len(listed), b""
    if n > MANY or begin > LARGE or size > LARGE:
        large = END_64.pack(b"PK\6\6", 44, 45, 45, 0, 0, n, n, size, begin)
        large += LOCATOR_64.pack(b"PK\6\7", 0, begin + size, 1)
        n, size, begin = min(n, LARGEST_16), min(size, LARGEST_32), min(begin, LARGEST_32)
    return listed + large + END.pack(b"PK\5\6", 0, 0, n, n, size, begin, n_comment)


def write_entry(file: BinaryIO, name: str, data: bytes) -> Entry:
    """Write an entry behind those before it.

    Parameters
    ----------
    file
        The file, which stands where the entry is to begin.
    name, data
        Name and content of the entry.
    """
    entry = Entry(name, zlib.crc32(data), len(data), file.tell())
    file.write(entry.header())
    file.write(data)
    return entry


def read_entry(file: BinaryIO, end: int) -> tuple[Entry, bytearray]:
    """Return the entry that begins where a file stands; a `ValueError` refuses any other form.

    Parameters
    ----------
    file
        The file.
    end
        Where it ends, or where at least all entries do.
    """
    offset = file.tell()
    start = file.read(LOCAL.size)
    if len(start) < LOCAL.size:
        raise ValueError("it ends in the midst of a zip")
    *_, crc, size, _, n_name, n_extra = LOCAL.unpack(start)
    name, extra = file.read(n_name), file.read(n_extra)
    if size == LARGEST_32 and n_extra == EXTRA_HEADER.size + 16:
        size = int.from_bytes(extra[-8:], "little")
    entry = Entry(name.decode(), crc, size, offset)
    # Before memory is taken for it.
    if entry.header() != start + name + extra or size > end - file.tell():
        raise ValueError("it is not a zip of the form that rankinite writes")
    data = bytearray(size)
    if file.readinto(data) != size or zlib.crc32(data) != crc:  # type: ignore[attr-defined]
        raise ValueError(f"its entry {entry.name[:60]!r} is damaged")
    return entry, data


def read_entries(file: BinaryIO, end: int, n_comment: int) -> Iterator[tuple[Entry, bytearray]]:
    """Iterate over the entries of a zip and their bytes, and check its directory behind them.

    Parameters
    ----------
    file
        The file, which stands at its begin.
    end
        Where the directory ends, and the comment begins.
    n_comment
        Length of the comment.
    """
    entries = []
    while (begin := file.tell()) < end and file.read(len(SIGNATURE)) == SIGNATURE:
        file.seek(begin)
        entry, data = read_entry(file, end)
        entries.append(entry)
        yield entry, data
    file.seek(begin)
    listed = file.read(end - begin)
    if all(listed != directory(entries, begin, n_comment, system) for system in (UNIX, WINDOWS)):
        raise ValueError("its directory is not that of its entries")
