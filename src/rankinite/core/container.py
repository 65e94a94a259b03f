"""The container of model files: a manifest and arrays under a checksum, and no code.

A zip of stored entries with fixed timestamps: ``manifest.json`` and one ``.npy`` per array, in the
order of their names. The zip's comment is the SHA-256 of all bytes before it and is checked first,
because the checksums of the entries do not cover the directory of the zip. Equal content gives
equal bytes, and nothing but these bytes is read: there is no second way to write the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.files import atomic_write
from rankinite.core.npy import read_array
from rankinite.core.stored_zip import Entry, directory, read_entries, read_entry, write_entry

FORMAT = "rankinite model"
VERSION = 1
ZIP_MAGIC = b"PK\x03\x04"  # the first bytes of every container
MANIFEST = "manifest.json"
SUFFIX = ".npy"
DIGEST_LENGTH = 64
BLOCK = 1 << 20  # bytes that are hashed at a time
# Numbers that scores are made of: products of two are finite, and so are sums of many of these.
LARGEST = 1e150


# Content


@dataclass(frozen=True)
class Content:
    """Content of a container: a manifest of JSON values, and arrays by name."""

    manifest: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def checked_array(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    kind: DTypeLike,
    *shape: int | None,
    low: float | None = -LARGEST,
    high: float = LARGEST,
) -> NDArray[Any]:
    """Return an array of a file, or refuse one of another type or shape, or with other numbers.

    Parameters
    ----------
    arrays, name
        The arrays of the file, and the name of this one.
    kind, shape
        Its type, and its length along each dimension; any length where that is None.
    low, high
        The smallest and the largest number that it may have, where NaN is refused; without a
        smallest one, its numbers are for the caller to check.
    """
    array = arrays.get(name)
    if array is None:
        raise ModelFileError(f"the file lacks {name!r}")
    fits = array.ndim == len(shape) and all(
        expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype != kind or not fits:
        expected = " x ".join("n" if length is None else f"{length:,}" for length in shape)
        raise ModelFileError(
            f"{name!r} in the file is an array of {array.dtype} and of the shape {array.shape}; "
            f"expected {expected} of {np.dtype(kind).name}"
        )
    # Written so that NaN is refused, too: it is not smaller than anything.
    if low is None or array.size == 0:
        return array
    if not (array.min().item() >= low and array.max().item() <= high):
        raise ModelFileError(
            f"{name!r} in the file has numbers that are not from {low:g} to {high:g}, or NaN"
        )
    return array


# Writing


def write_container(path: str | Path, content: Content) -> None:
    """Write a container; the file appears whole or not at all.

    Parameters
    ----------
    path
        File to write.
    content
        Manifest of JSON values and numeric arrays. No time, host or path belongs into it, so that
        equal models have equal bytes.
    """
    manifest = {"format": FORMAT, "version": VERSION, **content.manifest}
    text = json.dumps(manifest, sort_keys=True, indent=1, allow_nan=False).encode()
    try:
        parse_manifest(text)
    except ValueError as problem:  # better now than when the file is read
        raise UsageError(f"model file: its manifest could not be read again: {problem}") from None
    with atomic_write(path) as file:
        entries = [write_entry(file, MANIFEST, text)]
        for name in sorted(content.arrays):
            entries.append(write_entry(file, name + SUFFIX, _npy(name, content.arrays[name])))
        file.write(directory(entries, file.tell(), DIGEST_LENGTH))
        length = file.tell()
        file.write(_digest(file, length))


def _npy(name: str, array: NDArray[Any]) -> bytes:
    if array.dtype.hasobject:
        raise UsageError(f"model file: array {name!r} holds Python objects; give it a plain dtype")
    buffer = io.BytesIO()
    # Order and version are fixed: equal arrays give equal bytes.
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), (1, 0), allow_pickle=False)
    return buffer.getvalue()


def _digest(file: BinaryIO, length: int) -> bytes:
    """Return the hex SHA-256 of the first ``length`` bytes of the file."""
    digest = hashlib.sha256()
    file.seek(0)
    while length > 0 and (block := file.read(min(BLOCK, length))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest().encode()


# Reading


def read_container(path: str | Path) -> Content:
    """Read a container; raise a `ModelFileError` if any byte differs from what was written."""
    source = Path(path)
    try:
        with source.open("rb") as file:
            return _read(file)
    except FileNotFoundError:
        raise ModelFileError(f"{source}: there is no such file") from None
    except OSError as problem:
        what = problem.strerror or str(problem)
        raise ModelFileError(f"{source}: cannot be read as a model file: {what}") from problem
    except ModelFileError as problem:
        raise ModelFileError(f"{source}: {problem}") from None
    # What a path cannot be, and what the manifest and the arrays cannot be.
    except ValueError as problem:
        raise ModelFileError(f"{source}: cannot be read as a model file: {problem}") from None


def read_manifest(path: str | Path) -> Mapping[str, Any]:
    """Return the manifest of a container, whose checksum is not looked at, nor the rest of it."""
    source = Path(path)
    try:
        with source.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            return _checked_manifest(*read_entry(file, size))
    except (OSError, ValueError) as problem:
        raise ModelFileError(f"{source}: is not a model file: {problem}") from None


def _read(file: BinaryIO) -> Content:
    length = file.seek(0, io.SEEK_END) - DIGEST_LENGTH
    if length <= 0:
        raise ModelFileError("is too short for a model file; it may be cut off")
    digest = _digest(file, length)
    file.seek(length)
    if file.read(DIGEST_LENGTH) != digest:
        raise ModelFileError(
            "is not a model file, or it is damaged: its checksum does not fit its bytes"
        )
    file.seek(0)
    entries = read_entries(file, length, DIGEST_LENGTH)
    manifest = _checked_manifest(*next(entries))
    if manifest["version"] != VERSION or type(manifest["version"]) is not int:
        raise ModelFileError(
            f"has format version {str(manifest['version'])[:60]}, and this version of rankinite "
            f"reads {VERSION}; install the rankinite that wrote it"
        )
    del manifest["format"], manifest["version"]
    arrays: dict[str, NDArray[Any]] = {}
    last = ""
    for entry, data in entries:
        name = entry.name.removesuffix(SUFFIX)
        # In the order of their names, so that each is there once.
        if name == entry.name or (arrays and name <= last):
            raise ModelFileError(f"has the entry {entry.name[:60]!r}, which does not belong there")
        arrays[name], last = _array(name, data), name
    return Content(manifest, arrays)


def _array(name: str, data: bytearray) -> NDArray[Any]:
    try:
        return read_array(data)
    except ValueError as problem:
        raise ModelFileError(f"its array {name[:60]!r} cannot be read: {problem}") from None


# The manifest

# As many as rankers within rankers need, which models.py limits, and their parameters.
DEEPEST_MANIFEST = 250
# Larger whole numbers could not be compared with floats.
MOST_DIGITS = 300
# A text without an end goes up to the end, so that this takes no longer than the manifest is.
TEXT_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_manifest(text: bytes | bytearray) -> dict[str, Any]:
    """Return a manifest, or raise a `ValueError` if it is no sound JSON.

    Numbers are finite and not larger than floats can be, keys differ, texts are Unicode, and lists
    are not nested so deep that later work on them could fail.
    """
    decoded = text.decode()  # a UnicodeDecodeError is a ValueError
    _refuse_deep(decoded)
    parsed = json.loads(
        decoded,
        parse_float=_float,
        parse_int=_whole,
        parse_constant=_float,
        object_pairs_hook=_object,
    )
    if SURROGATE.search(decoded):
        # Halves of characters are refused; pairs of them are characters.
        json.dumps(parsed, ensure_ascii=False).encode()
    if not isinstance(parsed, dict):
        raise ValueError("the manifest is no object of JSON")
    return parsed


def _refuse_deep(text: str) -> None:
    # Few manifests have so many brackets that they have to be counted one by one.
    if text.count("[") + text.count("{") <= DEEPEST_MANIFEST:
        return
    depth = 0
    for token in TEXT_OR_BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST_MANIFEST:
            raise ValueError(f"the manifest is nested more than {DEEPEST_MANIFEST} deep")


def _float(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise ValueError(f"the manifest has the number {text[:60]}")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the manifest has a number of {len(text):,} digits")
    return int(text)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("the manifest has a name twice in one object")
    return result


def _checked_manifest(entry: Entry, text: bytearray) -> dict[str, Any]:
    manifest = parse_manifest(text) if entry.name == MANIFEST else {}
    if manifest.get("format") != FORMAT or "version" not in manifest:
        raise ModelFileError("is a zip file, but not a model file")
    return manifest
