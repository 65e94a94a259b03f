from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rankinite.core.container import Content, checked_array, read_container, write_container
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.stored_zip import directory, write_entry

MODEL = Path("model.rk")
MANIFEST = {"class": "Ranker", "parameters": {"rate": 0.1, "names": ["ä", None, True]}}
ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scalar": np.array(7),
    "empty": np.empty((0, 4), np.int8),
    "special": np.array([np.nan, -0.0, np.inf, 5e-324]),
    "flags": np.array([True, False]),
    "texts": np.array(["a", "ä\n"]),
    "deeper/name.npy": np.zeros((1, 1, 1), np.uint64),
}


def bytes_of(content: Content) -> bytes:
    write_container(MODEL, content)
    return MODEL.read_bytes()


def with_digest(body: bytes) -> bytes:
    return body + hashlib.sha256(body).hexdigest().encode()


def forged(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip with a right checksum: what only somebody who means harm would write."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = compression
            archive.writestr(entry, data)
        archive.comment = b"0" * 64
    return with_digest(buffer.getvalue()[:-64])


def manifest_text(**changes: object) -> bytes:
    return json.dumps({"format": "rankinite model", "version": 1} | changes).encode()


def npy(array: np.ndarray, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_header(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


def refused(data: bytes) -> str:
    MODEL.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        read_container(MODEL)
    assert str(caught.value).startswith("model.rk: ")
    return str(caught.value)


def test_what_is_written_is_read():
    write_container(str(MODEL), Content(MANIFEST, ARRAYS))
    back = read_container(str(MODEL))
    assert back.manifest == MANIFEST
    assert back.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        read = back.arrays[name]
        assert (read.dtype, read.shape) == (array.dtype, array.shape)
        assert read.tobytes() == array.tobytes()


def test_equal_content_gives_equal_bytes():
    first = bytes_of(Content(MANIFEST, ARRAYS))
    backwards = {name: np.asfortranarray(ARRAYS[name]) for name in reversed(ARRAYS)}
    backwards["scalar"] = ARRAYS["scalar"]  # asfortranarray gives it a dimension
    mixed = {name: MANIFEST[name] for name in reversed(MANIFEST)}
    assert bytes_of(Content(mixed, backwards)) == first
    assert bytes_of(Content(MANIFEST | {"class": "Other"}, ARRAYS)) != first


def test_other_tools_can_look_inside():
    bytes_of(Content(MANIFEST, ARRAYS))
    with zipfile.ZipFile(MODEL) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("manifest.json"))["class"] == "Ranker"
        assert (np.load(archive.open("matrix.npy")) == ARRAYS["matrix"]).all()
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.fixture
def small() -> bytes:
    return bytes_of(Content({"class": "R"}, {"a": np.arange(2.0)}))


def test_every_flipped_byte_is_refused(small):
    for place in range(len(small)):
        for flip in (0x01, 0x20, 0xFF):
            damaged = bytearray(small)
            damaged[place] ^= flip
            refused(bytes(damaged))


def test_every_truncation_and_addition_is_refused(small):
    for length in range(len(small)):
        refused(small[:length])
    for more in (b"\0", b"\n", small):
        refused(small + more)
        refused(more + small)


def test_flips_under_a_forged_checksum_never_surprise(small):
    """Whatever the bytes say, reading gives plain content or a `ModelFileError`."""
    outcomes = set()
    for place in range(len(small) - 64):
        for flip in (0x01, 0x08, 0x84, 0xFF):
            damaged = bytearray(small[:-64])
            damaged[place] ^= flip
            MODEL.write_bytes(with_digest(bytes(damaged)))
            try:
                arrays = read_container(MODEL).arrays.values()
                outcomes.add("read")
                assert all(type(array) is np.ndarray for array in arrays)
            except ModelFileError:
                outcomes.add("refused")
    assert outcomes == {"refused"}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "too short"),
        (b"PK\x03\x04", "too short"),
        (b"2 qid:1 1:0.5\n" * 20, "not a model file, or it is damaged"),
        (forged({"a.txt": b"text"})[:-64] + b"0" * 64, "not a model file, or it is damaged"),
        (forged({"a.txt": b"text"}), "is a zip file, but not a model file"),
        (forged({"manifest.json": b"[1, 2]"}), "the manifest is no object"),
        (forged({"manifest.json": b'{"format": "x"}'}), "not a model file"),
        (forged({"manifest.json": b"{"}), "cannot be read as a model file"),
        (forged({"manifest.json": b"[" * 100_000}), "cannot be read as a model file"),
        (forged({"manifest.json": manifest_text()}, zipfile.ZIP_DEFLATED), "not a zip of the form"),
        (
            forged({"manifest.json": manifest_text(version=2)}),
            "the rankinite that wrote it",
        ),
    ],
)
def test_foreign_and_newer_files(data, sentence):
    assert sentence in refused(data)


@pytest.mark.parametrize(
    "array",
    [
        npy(np.array([{"code": 1}], object), allow_pickle=True),
        npy(np.arange(9))[:-1],
        npy_header((10**12,)),
        npy_header((-1, 3)),
        b"\x93NUMPY",
        b"",
        forged({"inner.npy": npy(np.arange(3))}),
        b"\x80\x04N.",  # a pickle
    ],
)
def test_forged_arrays(array):
    refused(forged({"manifest.json": manifest_text(), "a.npy": array}))


def test_a_file_has_one_form(small):
    body = small[:-64]
    refused(with_digest(b"before" + body))
    refused(with_digest(body * 2))
    with zipfile.ZipFile(MODEL) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    a, b = io.BytesIO(), io.BytesIO()
    for file, name in ((a, "a.npy"), (b, "b.npy")):
        listed = [write_entry(file, "manifest.json", entries["manifest.json"])]
        listed += [write_entry(file, n, entries["a.npy"]) for n in (name, "a.npy")]
        file.write(directory(listed, file.tell(), 64))
    for file in (a, b):  # twice, and in another order
        assert "'a.npy', which does not belong there" in refused(with_digest(file.getvalue()))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (manifest_text(version=True), "has format version True"),
        (manifest_text(version=1.0), "has format version 1.0"),
        (manifest_text(x=float("nan")), "the manifest has the number NaN"),
        (manifest_text(x=float("-inf")), "the manifest has the number -Infinity"),
        (manifest_text(x=0).replace(b'"x": 0', b'"x": 1e999'), "the manifest has the number 1e999"),
        (manifest_text(x=10**400), "a number of 401 digits"),
        (manifest_text(x=0).replace(b'"x"', b'"version"'), "a name twice in one object"),
        (manifest_text(x=[{"a": "\ud800"}]), "surrogates not allowed"),
        (manifest_text().decode().encode("utf-16"), "cannot be read as a model file"),
        (manifest_text(x=0).replace(b"0}", b"[" * 400 + b"]" * 400 + b"}"), "more than 250 deep"),
    ],
)
def test_manifests_that_are_not_sound(text, sentence):
    assert sentence in refused(forged({"manifest.json": text}))


def test_whole_characters_and_brackets_in_texts_are_sound():
    content = Content({"x": ["\U0001f600", "[" * 400, '"{', "\\"] * 80, "y": [[]] * 300}, {})
    write_container(MODEL, content)
    assert read_container(MODEL).manifest == content.manifest


def test_what_could_not_be_read_is_not_written():
    for value in (10**400, "\ud800"):
        with pytest.raises(UsageError, match="its manifest could not be read again"):
            write_container(MODEL, Content({"x": value}, {}))
    assert list(Path().iterdir()) == []


def test_a_text_without_end_takes_no_time():
    refused(forged({"manifest.json": b"[" * 300 + b'\\"' * 1_000_000}))


def test_an_array_is_what_is_expected():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "n": np.array([1.0, np.nan]), "t": np.array(["x"])}
    assert checked_array(arrays, "a", np.float64, None, 3, low=0, high=5) is arrays["a"]
    checked_array(arrays, "n", np.float64, 2, low=None)
    for name, kind, shape, limits in (
        ("b", np.float64, (2,), {}),
        ("a", np.float32, (2, 3), {}),
        ("a", np.float64, (6,), {}),
        ("a", np.float64, (2, 2), {}),
        ("a", np.float64, (2, 3), {"low": 1}),
        ("a", np.float64, (2, 3), {"high": 4}),
        ("n", np.float64, (2,), {}),
        ("t", np.float64, (1,), {}),
    ):
        with pytest.raises(ModelFileError, match=r"in the file|the file lacks"):
            checked_array(arrays, name, kind, *shape, **limits)


def test_no_such_file_and_directories():
    with pytest.raises(ModelFileError, match=r"nowhere\.rk: there is no such file"):
        read_container(Path("nowhere.rk"))
    with pytest.raises(ModelFileError, match="cannot be read as a model file: Is a directory"):
        read_container(Path())


@pytest.mark.parametrize(
    ("content", "error", "sentence"),
    [
        (Content({}, {"a": np.arange(3), "b": np.array([None])}), UsageError, "'b' holds Python"),
        (Content({}, {"a": np.zeros(1, [("x", object)])}), UsageError, "'a' holds Python objects"),
        (Content({"x": float("nan")}, {}), ValueError, "JSON compliant"),
        (Content({"x": object()}, {}), TypeError, "not JSON serializable"),
    ],
)
def test_a_failed_write_leaves_the_old_file(small, content, error, sentence):
    with pytest.raises(error, match=sentence):
        write_container(MODEL, content)
    assert MODEL.read_bytes() == small
    assert list(Path().iterdir()) == [MODEL]
