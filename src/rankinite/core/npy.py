"""Arrays in ``.npy`` format from files that nobody vouches for.

numpy's own reader evaluates the header as Python. This one knows the one form of header that numpy
writes for plain arrays, compares the shape with the bytes that are there before it makes anything,
and refuses the rest with a sentence.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x93NUMPY\x01\x00"
# The header's length follows as two bytes.
PREAMBLE = len(MAGIC) + 2
# Booleans, integers, floats of 32 and 64 bits, and texts; no objects, times or structures.
HEADER = re.compile(
    rb"\{'descr': '(\|b1|\|[iu]1|<[iu][248]|<f[48]|<U[0-9]{1,6})', 'fortran_order': False, "
    rb"'shape': (\((?:[0-9]{1,18},)?\)|\([0-9]{1,18}(?:, [0-9]{1,18}){1,7}\)), \} *\n"
)
LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True)
class Header:
    """What the header of an array says, and how many bytes it takes.

    Attributes
    ----------
    dtype, shape
        Of the array.
    length
        Bytes before the array's own.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    length: int

    @property
    def n_bytes(self) -> int:
        """Bytes of the whole file."""
        return self.length + math.prod(self.shape) * self.dtype.itemsize


def read_header(start: bytes | bytearray) -> Header:
    """Read a header from the first bytes of a file; raise a `ValueError` if it is another one."""
    if start[: len(MAGIC)] != MAGIC or len(start) < PREAMBLE:
        raise ValueError("it does not begin as an array in .npy format does")
    length = PREAMBLE + int.from_bytes(start[len(MAGIC) : PREAMBLE], "little")
    match = HEADER.fullmatch(start[PREAMBLE:length])
    if match is None:
        raise ValueError("its header is not that of a plain array of numbers or texts")
    dtype = np.dtype(match[1].decode())
    shape = tuple(int(number) for number in re.findall(rb"[0-9]+", match[2]))
    if dtype.itemsize == 0 and math.prod(shape) > 0:
        raise ValueError("its texts have no characters, but there are some")
    return Header(dtype, shape, length)


def read_array(content: bytes | bytearray) -> NDArray[Any]:
    """Return the array of a whole file; only in a bytearray it may be written to."""
    header = read_header(content)
    if header.n_bytes != len(content):
        raise ValueError(
            f"its header stands for {header.n_bytes:,} bytes, and it has {len(content):,}"
        )
    array: NDArray[Any] = np.frombuffer(content, header.dtype, offset=header.length)
    # numpy fills headers up, so that numbers are aligned in memory, as kernels expect.
    return _sound((array if array.flags.aligned else array.copy()).reshape(header.shape))


def map_array(path: str | Path) -> NDArray[Any]:
    """Map the array of a file into memory, read-only; its values are not looked at."""
    source = Path(path)
    with source.open("rb") as file:
        # A header of this form is never longer than its length of two bytes says.
        header = read_header(file.read(PREAMBLE + 0xFFFF))
    n_bytes = source.stat().st_size
    if header.n_bytes != n_bytes:
        raise ValueError(f"its header stands for {header.n_bytes:,} bytes, and it has {n_bytes:,}")
    if math.prod(header.shape) == 0:  # no file maps nothing
        return np.zeros(header.shape, header.dtype)
    return np.asarray(np.memmap(source, header.dtype, "r", header.length, header.shape))


def _sound(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array if all its bytes stand for values of its type."""
    is_sound = True
    if array.dtype == np.bool_:
        is_sound = bool((array.view(np.uint8) <= 1).all())
    elif array.dtype.kind == "U":
        is_sound = bool((np.frombuffer(array.tobytes(), np.uint32) <= LAST_CHARACTER).all())
    if not is_sound:
        raise ValueError(f"some of its bytes are no value of the type {array.dtype.name}")
    return array
