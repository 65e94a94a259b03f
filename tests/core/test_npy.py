from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from rankinite.core.npy import map_array, read_array, read_header

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(7),
    np.array([7], np.uint16),
    np.empty((0, 4), np.int8),
    np.array([np.nan, -0.0, np.inf, 5e-324]),
    np.array([True, False]),
    np.array(["a", "ä\n", "\U0010ffff"]),
    np.array([""]).astype("U1"),
    np.zeros((1, 1, 1), np.uint64),
    np.zeros(0, "U3"),
]


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def with_header(text: str, content: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + content


def described(descr: str = "'<f8'", order: str = "False", shape: str = "(1,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}-{array.shape}")
@pytest.mark.parametrize("as_map", [False, True])
def test_what_numpy_writes_is_read(array, as_map):
    np.save("array.npy", array)
    read = map_array("array.npy") if as_map else read_array(Path("array.npy").read_bytes())
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    assert read.tobytes() == array.tobytes()
    assert not read.flags.writeable or read.size == 0


def test_a_header_without_padding_is_read():
    assert read_array(with_header(described(), bytes(8))) == 0.0


@pytest.mark.parametrize(
    "header",
    [
        described(descr="'|O'"),
        described(descr="'<M8[s]'"),
        described(descr="'>f8'"),
        described(descr="'<f2'"),
        described(descr="[('a', '<f8')]"),
        described(descr="''"),
        described(order="True"),
        described(order="0"),
        described(shape="(-1,)"),
        described(shape="(1)"),
        described(shape="[1]"),
        described(shape="(1, )"),
        described(shape="(9999999999999999999,)"),
        described(shape="(1, 1, 1, 1, 1, 1, 1, 1, 1)"),
        described(shape="(((1,)))"),
        described()[:-1],
        described() + "x",
        "(" * 30_000,
        "",
    ],
    ids=lambda header: header[:50],
)
def test_other_headers_are_refused(header):
    with pytest.raises(ValueError, match="header"):
        read_array(with_header(header, bytes(8)))


@pytest.mark.parametrize("n_bytes", [0, 7, 9, 16])
def test_the_shape_must_fit_the_bytes(n_bytes):
    content = with_header(described(), bytes(n_bytes))
    Path("array.npy").write_bytes(content)
    for read in (lambda: read_array(content), lambda: map_array("array.npy")):
        with pytest.raises(ValueError, match=f"stands for .* and it has {len(content)}"):
            read()


def test_a_huge_shape_allocates_nothing():
    header = described(shape="(999999999999999999, 999999999999999999)")
    with pytest.raises(ValueError, match="stands for"):
        read_array(with_header(header))


@pytest.mark.parametrize("start", [b"", b"\x93NUMPY\x01", b"\x93NUMPY\x02\x00aaaa", b"PK\x03\x04"])
def test_other_files_are_refused(start):
    with pytest.raises(ValueError, match="does not begin as an array"):
        read_header(start)


def test_bytes_that_are_no_value_are_refused():
    with pytest.raises(ValueError, match="no value of the type bool"):
        read_array(with_header(described("'|b1'"), b"\x02"))
    with pytest.raises(ValueError, match="no value of the type str"):
        read_array(with_header(described("'<U1'"), b"\xff\xff\xff\xff"))
    with pytest.raises(ValueError, match="no characters"):
        read_array(with_header(described("'<U0'")))
