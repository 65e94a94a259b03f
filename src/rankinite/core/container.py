"""The container of model files: a manifest and arrays under a checksum, and no code.

A zip of stored entries with fixed timestamps: ``manifest.json`` and one ``.npy`` per array. The
zip's comment is the SHA-256 of all bytes before it and is checked first, because the checksums of
the entries do not cover the directory of the zip. Equal content gives equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.files import atomic_write

FORMAT = "rankinite model"
VERSION = 1
ZIP_MAGIC = b"PK\x03\x04"  # the first bytes of every container
MANIFEST = "manifest.json"
DIGEST_LENGTH = 64
TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the oldest that zip knows; fixed for equal bytes
BLOCK = 1 << 20  # bytes that are hashed at a time
# Exceptions of zipfile, json and numpy for bytes that they cannot parse.
UNREADABLE = (zipfile.BadZipFile, KeyError, ValueError, EOFError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class Content:
    """Content of a container: a manifest of JSON values, and arrays by name."""

    manifest: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


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
    with atomic_write(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            text = json.dumps(manifest, sort_keys=True, indent=1, allow_nan=False)
            _add(archive, MANIFEST, text.encode())
            for name in sorted(content.arrays):
                _add(archive, f"{name}.npy", _npy(name, content.arrays[name]))
            # Room for the digest, which is known when the zip is complete.
            archive.comment = b"0" * DIGEST_LENGTH
        length = file.seek(0, io.SEEK_END) - DIGEST_LENGTH
        digest = _digest(file, length)
        file.seek(length)
        file.write(digest)


def read_container(path: str | Path) -> Content:
    """Read a container; raise a `ModelFileError` if any byte differs from what was written."""
    source = Path(path)
    try:
        with source.open("rb") as file:
            return _read(source, file)
    except FileNotFoundError:
        raise ModelFileError(f"{source}: there is no such file") from None
    except OSError as problem:
        what = problem.strerror or str(problem)
        raise ModelFileError(f"{source}: cannot be read as a model file: {what}") from problem
    except UNREADABLE as problem:
        raise ModelFileError(f"{source}: cannot be read as a model file: {problem}") from problem


def _read(path: Path, file: BinaryIO) -> Content:
    length = file.seek(0, io.SEEK_END) - DIGEST_LENGTH
    if length <= 0:
        raise ModelFileError(f"{path}: is too short for a model file; it may be cut off")
    digest = _digest(file, length)
    file.seek(length)
    if file.read(DIGEST_LENGTH) != digest:
        raise ModelFileError(
            f"{path}: is not a model file, or it is damaged: its checksum does not fit its bytes"
        )
    with zipfile.ZipFile(file) as archive:
        # Stored entries cannot be larger than the file, whatever its directory claims.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ModelFileError(f"{path}: is a zip file with compression, but not a model file")
        manifest = json.loads(archive.read(MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"{path}: is a zip file, but not a model file")
        if manifest.get("version") != VERSION:
            raise ModelFileError(
                f"{path}: has format version {manifest.get('version')}, and this version of "
                f"rankinite reads {VERSION}; install the rankinite that wrote it"
            )
        arrays = {
            name.removesuffix(".npy"): _array(archive.read(name))
            for name in archive.namelist()
            if name != MANIFEST
        }
    del manifest["format"], manifest["version"]
    return Content(manifest, arrays)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, TIMESTAMP), data)


def _npy(name: str, array: NDArray[Any]) -> bytes:
    if array.dtype.hasobject:
        raise UsageError(f"model file: array {name!r} holds Python objects; give it a plain dtype")
    buffer = io.BytesIO()
    # Order and version are fixed: equal arrays give equal bytes.
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), (1, 0), allow_pickle=False)
    return buffer.getvalue()


def _array(data: bytes) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _digest(file: BinaryIO, length: int) -> bytes:
    """Return the hex SHA-256 of the first ``length`` bytes of the file."""
    digest = hashlib.sha256()
    file.seek(0)
    while length > 0 and (block := file.read(min(BLOCK, length))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest().encode()
