"""Pipes where a command reads or writes a file: ``-``, named pipes, and ``<(...)`` of a shell.

A pipe can be read once, from its beginning; but a format is recognised by its first bytes, scores
with a mistake are read again for the number of the line, and Parquet and model files are read from
their end. So a pipe is copied to a temporary file when it is first read. Messages name the pipe.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rankinite.core.errors import FileFormatError, RankiniteError

log = logging.getLogger("rankinite")

PATIENCE = 1.0  # seconds after which it is said that nobody writes to a pipe
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
    try:
        with copy.open("wb") as file:
            if path == STANDARD:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with _opened(path) as pipe:
                    shutil.copyfileobj(pipe, file)
    except OSError as problem:
        raise FileFormatError(_shown(path), f"cannot be read: {problem.strerror}") from None
    _copies[path] = copy
    return copy


def _opened(path: Path) -> BinaryIO:
    kind = path.stat().st_mode
    if stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not _ends(path)):
        raise FileFormatError(path, "this is a device without an end; expected a file or a pipe")
    if not stat.S_ISFIFO(kind) or os.name == "nt":
        return path.open("rb")
    # To open a pipe waits until somebody opens it to write, which may never happen: say so.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not _is_written(handle, PATIENCE):
            log.warning("%s: this is a pipe; waiting for a program that writes to it", path)
            _is_written(handle, None)
        os.set_blocking(handle, True)
    except BaseException:  # Ctrl-C as well
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _is_written(handle: int, seconds: float | None) -> bool:
    """Wait until a pipe has something to read, or until its writer is gone."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if seconds is None else 1000 * seconds))


def _ends(path: Path) -> bool:
    """Tell whether a device is a terminal, or has nothing in it; others, as /dev/zero, go on."""
    with path.open("rb", buffering=0) as device:
        return device.isatty() or path.samefile(os.devnull)


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
