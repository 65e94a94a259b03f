"""Pipes where a command reads or writes a file: ``-``, named pipes, and ``<(...)`` of a shell.

A pipe can be read once, from its beginning; but a format is recognised by its first bytes, scores
with a mistake are read again for the number of the line, and Parquet and model files are read from
their end. So a pipe is copied to a temporary file when it is first read. Messages name the pipe.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rankinite.core.errors import FileFormatError, RankiniteError

STANDARD = Path("-")  # the standard input, or the standard output
STDIN = "stdin"

# The copies of pipes that this command has read, and the folder that they are in.
_copies: dict[Path, Path] = {}
_folders: list[tempfile.TemporaryDirectory[str]] = []


def is_pipe(path: Path) -> bool:
    """Tell whether a file can be read only once: the standard input, a pipe or a device."""
    return path == STANDARD or (path.exists() and not path.is_file() and not path.is_dir())


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """Return the file to read instead of ``path``: itself, or the copy of a pipe."""
    if not is_pipe(path):
        yield path
        return
    copy = _copies.get(path) or _copied(path)
    try:
        yield copy
    except FileFormatError as problem:
        if problem.path != copy:
            raise
        named = problem.problem, problem.line, problem.column
        raise FileFormatError(_shown(path), *named) from None
    except RankiniteError as problem:
        raise type(problem)(str(problem).replace(str(copy), _shown(path))) from None


def _copied(path: Path) -> Path:
    _folders.append(tempfile.TemporaryDirectory(prefix="rankinite-"))
    copy = Path(_folders[-1].name) / (STDIN if path == STANDARD else path.name)
    with copy.open("wb") as file:
        if path == STANDARD:
            shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            with path.open("rb") as pipe:
                shutil.copyfileobj(pipe, file)
    _copies[path] = copy
    return copy


def _shown(path: Path) -> str:
    return STDIN if path == STANDARD else str(path)


def remove_copies() -> None:
    """Remove the copies of pipes; called when a command ends."""
    _copies.clear()
    while _folders:
        _folders.pop().cleanup()


@contextlib.contextmanager
def writable(path: Path) -> Iterator[Path]:
    """Return the file to write instead of ``path``: itself, or one that is printed in the end."""
    if path != STANDARD:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="rankinite-") as folder:
        unprinted = Path(folder) / "stdout"
        yield unprinted
        sys.stdout.flush()
        with unprinted.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
