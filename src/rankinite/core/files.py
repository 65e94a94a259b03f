"""Files and folders that are whole or not there: written beside the target, flushed, renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

# The name of what is not finished yet; processes of several machines may have one number.
UNFINISHED = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.part")


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` only when the block ends well.

    A reader sees the old file or the new one, never half of it; after an exception the old file
    is untouched and nothing is left behind. A link stays a link, and its file is replaced.
    """
    target = Path(os.path.realpath(path))
    mode = _checked_mode(target, path)
    beside = _beside(target)
    try:
        with _create(beside, target) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(mode)
        beside.replace(target)
    except BaseException as problem:
        if isinstance(problem, OSError) and problem.filename is None:
            problem.filename = str(path)  # a disk that is full does not say which file it was
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    with contextlib.suppress(OSError):
        _flush(target.parent)


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give a folder to fill, which takes the name ``path`` only when the block ends well.

    If the folder has appeared meanwhile, that one stays: whoever was faster made the same.
    """
    target = Path(path)
    beside = _beside(target)
    beside.mkdir(parents=True)
    try:
        yield beside
        for file in (*beside.iterdir(), beside):
            _flush(file)
        try:
            beside.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    with contextlib.suppress(OSError):
        _flush(target.parent)


def remove_unfinished(folder: Path) -> None:
    """Remove what was not finished in a folder, of processes that were killed."""
    for part in list(folder.iterdir()) if folder.is_dir() else []:
        if UNFINISHED.fullmatch(part.name) is None:
            continue
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """Return where a file or folder is made; nobody else has that name."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")


def _checked_mode(target: Path, named: str | Path) -> int | None:
    """Return the mode of the file that is replaced; refuse what is no file."""
    if not target.exists():
        return None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a directory; expected a file", str(named))
    if not target.is_file():
        raise OSError(errno.EINVAL, "this is a pipe or a device; expected a file", str(named))
    return stat.S_IMODE(target.stat().st_mode)


def _create(beside: Path, target: Path) -> BinaryIO:
    """Open the file beside the target; what goes wrong is told of the target."""
    try:
        return beside.open("w+b")
    except FileNotFoundError as problem:
        raise FileNotFoundError(
            problem.errno, "there is no such folder", str(target.parent)
        ) from None
    except OSError as problem:
        raise OSError(
            problem.errno, f"cannot be written: {problem.strerror}", str(target)
        ) from None


def _flush(path: Path) -> None:
    """Make a file, or a rename in a folder, survive a power cut."""
    if path.is_dir() and os.name == "nt":
        return  # a folder cannot be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save_array(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array to a file, which appears whole or not at all."""
    with atomic_write(path) as file:
        np.save(file, array)
