"""Checksums of files that a later process computes with: folders of them, and single JSON files.

A folder that appears whole has a file ``SHA256SUMS``, which ``sha256sum -c`` reads as well. Its
first line is a comment with the name of the folder, so that two folders that were swapped are told
from each other, and the number of files. A JSON file that is replaced from time to time holds its
checksum itself. SHA-256 costs 0.7 s for a gigabyte, as processors have instructions for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.files import atomic_folder
from rankinite.core.format import visible_json

SUMS = "SHA256SUMS"
HEADER = re.compile(r"# (.+): ([0-9]{1,9}) files")
LINE = re.compile(r"([0-9a-f]{64})  ([^/\n]+)")
# The entry of a JSON file that holds the checksum of all others.
CHECKSUM = "sha256"
DIFFERS = "is damaged: its checksum is not the one that it was written with"


@contextlib.contextmanager
def summed_folder(path: str | Path) -> Iterator[Path]:
    """Make a folder as `atomic_folder` does, with checksums of all its files."""
    with atomic_folder(path) as unfinished:
        yield unfinished
        files = sorted(file for file in unfinished.iterdir() if file.is_file())
        lines = [f"# {Path(path).name}: {len(files)} files"]
        lines += [f"{_digest_of(file)}  {file.name}" for file in files]
        (unfinished / SUMS).write_text("\n".join(lines) + "\n", "utf-8")


@dataclass(frozen=True)
class Checksums:
    """The checksums of a folder.

    What is wrong with one of its files is a `ValueError` whose message begins with the file.

    Attributes
    ----------
    folder
        The folder.
    name
        Its name when it was made.
    digests
        The checksum of every file, by name.
    """

    folder: Path
    name: str
    digests: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path) -> Checksums:
        """Read the checksums of a folder."""
        path = folder / SUMS
        try:
            # An empty file has an empty first line.
            first, *lines = path.read_text("utf-8").splitlines() or [""]
        except (OSError, ValueError) as problem:
            raise ValueError(f"{path}: cannot be read: {_what(problem)}") from None
        header, matches = HEADER.fullmatch(first), [LINE.fullmatch(line) for line in lines]
        digests = {match[2]: match[1] for match in matches if match is not None}
        if header is None or not len(lines) == len(digests) == int(header[2]):
            raise ValueError(f"{path}: is damaged, or is not of rankinite")
        return cls(folder, header[1], digests)

    def require_name(self) -> None:
        """Refuse a folder that was made under another name."""
        if self.name != self.folder.name:
            raise ValueError(f"{self.folder}: holds the files of {self.name}")

    def check(self, *names: str) -> None:
        """Check some files, or all."""
        for name in names or self.digests:
            path = self.folder / name
            try:
                digest = _digest_of(path)
            except OSError as problem:
                raise ValueError(f"{path}: cannot be read: {_what(problem)}") from None
            self._compare(path, digest)

    def read(self, name: str) -> bytes:
        """Return the content of a file, checked."""
        path = self.folder / name
        try:
            content = path.read_bytes()
        except OSError as problem:
            raise ValueError(f"{path}: cannot be read: {_what(problem)}") from None
        self._compare(path, hashlib.sha256(content).hexdigest())
        return content

    def _compare(self, path: Path, digest: str) -> None:
        if self.digests.get(path.name) != digest:
            raise ValueError(f"{path}: {DIFFERS}")


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _what(problem: Exception) -> str:
    """Return what an error says, without the file's name, which stands in front of it."""
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)


def json_text(value: Any) -> str:
    """Return a value as JSON for people and programs."""
    return visible_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a JSON file with its checksum as the last entry."""
    return {**content, CHECKSUM: _json_digest(content)}


def read_with_checksum(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file of `with_checksum`; a `ValueError` if it was changed."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except RecursionError:  # of nothing but brackets
        raise ValueError(DIFFERS) from None
    if not isinstance(content, dict):
        raise ValueError("is damaged: it holds no JSON object")
    if content.pop(CHECKSUM, None) != _json_digest(content):
        raise ValueError(DIFFERS)
    return content


def _json_digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(dict(content)).encode()).hexdigest()
