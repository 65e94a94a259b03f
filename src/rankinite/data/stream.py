"""Text files, plain or gzip: reading in blocks of whole lines, and atomic writing."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import FileFormatError
from rankinite.core.files import atomic_write
from rankinite.core.format import readable_size
from rankinite.core.progress import Progress, Silent
from rankinite.data.budget import require_memory
from rankinite.data.formats import GZIP_MAGIC, PARQUET_MAGIC

BLOCK = 8 << 20
LONGEST_LINE = 1 << 28  # a binary file without newlines must not fill the memory
PADDING = 64  # kernels load eight bytes at a time, and may read past the last newline
NEWLINE = b"\n"
PIECE = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # written by Windows editors; counts as blanks


@dataclass(frozen=True)
class Block:
    """Whole lines of a file: ``text[:n_bytes]``, ending with a newline.

    ``text`` is longer than that, and is reused for the next block. ``consumed`` is the number of
    bytes of the file that have been read so far, ``size`` that of the whole file.
    """

    text: NDArray[np.uint8]
    n_bytes: int
    consumed: int
    size: int

    def halves(self, consumed: int) -> tuple[Block, Block]:
        """Return two blocks of whole lines; ``consumed`` is the number of bytes before this one."""
        middle = self.n_bytes // 2
        newlines = self.text[middle - 1 : self.n_bytes] == NEWLINE[0]
        cut = middle + int(newlines.argmax())
        before = consumed + (self.consumed - consumed) * cut // self.n_bytes
        return (
            Block(self.text, cut, before, self.size),
            Block(self.text[cut:], self.n_bytes - cut, self.consumed, self.size),
        )


def read_blocks_of_lines(path: Path, progress: Progress) -> Iterator[Block]:
    """Iterate over a file in blocks of whole lines; a newline is added at the end if needed."""
    with _open(path) as raw:
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        if size == 0:
            raise FileFormatError(path, "the file is empty")
        # By its content and not by its name: a file may have lost its suffix .gz.
        magic = raw.read(4)
        raw.seek(0)
        if magic == PARQUET_MAGIC:
            raise FileFormatError(path, "this is a Parquet file; give it a name with .parquet")
        compressed = magic.startswith(GZIP_MAGIC)
        stream: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
        with progress.start(f"Reading {path.name}", size, "bytes") as bar:
            done = 0
            for text, n_bytes in _blocks(path, stream):
                # Of the raw file, whose size is known; that of the uncompressed text is not.
                consumed = raw.tell()
                yield Block(text, n_bytes, consumed, size)
                bar.advance(consumed - done)
                done = consumed


def read_pieces(path: Path) -> Iterator[bytes]:
    """Iterate over a file in small pieces of whole lines, for what makes Python objects of them.

    An object for each number of a block would take ten times as much as the block.
    """
    for block in read_blocks_of_lines(path, Silent()):
        start = 0
        while start < block.n_bytes:
            # Up to the last newline of a piece, or else to the next one.
            rest = block.text[start : block.n_bytes]
            newlines = np.flatnonzero(rest[:PIECE] == NEWLINE[0])
            last = newlines[-1] if len(newlines) > 0 else (rest == NEWLINE[0]).argmax()
            yield rest[: last + 1].tobytes()
            start += int(last) + 1


def read_lines(path: Path) -> Iterator[bytes]:
    """Iterate over the lines of a file, without their newlines."""
    for piece in read_pieces(path):
        yield from piece.split(NEWLINE)[:-1]


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise FileFormatError(path, "this is a directory; expected a file")
    # Before it is opened, which waits until somebody writes to a pipe.
    if path.exists() and not path.is_file():
        raise FileFormatError(path, "this is a pipe or a device; expected a file")
    try:
        return path.open("rb", buffering=0)  # blocks are larger than any buffer
    except FileNotFoundError:
        raise FileFormatError(path, "there is no such file") from None
    except OSError as problem:
        raise FileFormatError(path, f"cannot be opened: {problem.strerror}") from None
    except ValueError as problem:  # a name with a NUL
        raise FileFormatError(path, f"cannot be opened: {problem}") from None


def _blocks(path: Path, stream: Any) -> Iterator[tuple[NDArray[np.uint8], int]]:
    buffer = bytearray(BLOCK + PADDING)
    filled = 0
    at_start = True
    while True:
        n_read = _read_into(path, stream, memoryview(buffer)[filled : len(buffer) - PADDING])
        filled += n_read
        if n_read == 0:
            break
        # Blanked, not removed, so that columns in messages stay those of the file.
        if at_start and buffer.startswith(BYTE_ORDER_MARK):
            buffer[: len(BYTE_ORDER_MARK)] = b" " * len(BYTE_ORDER_MARK)
        at_start = False
        # Up to the last newline; the rest is the beginning of the next block.
        whole = buffer.rfind(NEWLINE, 0, filled) + 1
        if whole > 0:
            yield np.frombuffer(buffer, np.uint8), whole
            filled -= whole
            rest = memoryview(buffer)[whole : whole + filled]
            # Without room for a long line once it is over: blocks would stay as large as that.
            if len(buffer) > BLOCK + PADDING and filled <= BLOCK // 2:
                buffer = bytearray(BLOCK + PADDING)
            buffer[:filled] = rest
        elif filled == len(buffer) - PADDING:
            buffer = _larger(path, buffer)
    if filled > 0:
        buffer[filled : filled + 1] = NEWLINE
        yield np.frombuffer(buffer, np.uint8), filled + 1


def _read_into(path: Path, stream: Any, room: memoryview) -> int:
    try:
        return int(stream.readinto(room))
    except EOFError:
        problem = "the compressed file is cut off before its end; copy or download it again"
        raise FileFormatError(path, problem) from None
    except (gzip.BadGzipFile, zlib.error) as damage:
        raise FileFormatError(path, f"the compressed file is damaged: {damage}") from None
    except OSError as problem:
        raise FileFormatError(path, f"cannot be read: {problem.strerror}") from None


def _larger(path: Path, buffer: bytearray) -> bytearray:
    if len(buffer) > LONGEST_LINE:
        raise FileFormatError(
            path,
            f"a line is longer than {readable_size(LONGEST_LINE)}; expected one document per line",
        )
    require_memory(path, f"a line of more than {readable_size(len(buffer))}", 2 * len(buffer))
    larger = bytearray(2 * len(buffer))
    larger[: len(buffer)] = buffer
    return larger


@contextlib.contextmanager
def create_text(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for atomic writing; ``.gz`` is compressed, without a timestamp."""
    with atomic_write(path) as file:
        if Path(path).suffix != ".gz":
            yield file
            return
        # Without name and time, equal content gives equal bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as compressed:
            yield cast(BinaryIO, compressed)
