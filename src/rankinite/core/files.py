"""Atomic files and folders: written beside the target, flushed to disk, and renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Names of unfinished files. Processes on several machines may have the same id, hence the token.
UNFINISHED = re.compile(r"\.(.+)\.\d+-[0-9a-f]{8}\.part")


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the block ends without an exception.

    A reader sees the old file or the new one, never a part of it; after an exception the old file
    is unchanged and nothing is left behind. A link stays a link, and its target is replaced. A pipe
    or a device gets the bytes when the block ends.
    """
    if _is_pipe(path):
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with Path(path).open("wb") as pipe:
                shutil.copyfileobj(file, pipe)
        return
    target = Path(os.path.realpath(path))
    mode = _checked_mode(target, path)
    beside = _beside(target)
    try:
        with _create(beside, target) as file:
            yield file
            # On disk before the new name is: a power failure leaves the old file or the new one.
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(mode)
        beside.replace(target)
    except BaseException as problem:  # Ctrl-C as well
        if isinstance(problem, OSError) and problem.filename is None:
            problem.filename = str(path)  # the error of a full disk names no file
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    # The file is complete; a file system that cannot flush folders is no reason to fail.
    with contextlib.suppress(OSError):
        _flush(target.parent)


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Make a folder that gets the name ``path`` when the block ends without an exception.

    If another process has made the folder meanwhile, that one is kept: its contents are the same.
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


def remove_unfinished(folder: Path, names: Container[str] | None = None) -> None:
    """Remove unfinished files and folders that killed processes left in a folder.

    Parameters
    ----------
    folder
        The folder.
    names
        Names that they would have got; any if None.
    """
    for part in list(folder.iterdir()) if folder.is_dir() else []:
        match = UNFINISHED.fullmatch(part.name)
        if match is None or (names is not None and match[1] not in names):
            continue
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """Return a unique name for the unfinished file or folder."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")


def _is_pipe(path: str | Path) -> bool:
    # Before links are followed: what /dev/stdout leads to may have no path.
    named = Path(path)
    return named.exists() and not named.is_file() and not named.is_dir()


def _checked_mode(target: Path, named: str | Path) -> int | None:
    """Return the permissions of the file to replace; refuse a folder."""
    if not target.exists():
        return None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a directory; expected a file", str(named))
    return stat.S_IMODE(target.stat().st_mode)


def _create(beside: Path, target: Path) -> BinaryIO:
    """Open the file beside the target; errors name the target."""
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
    """Flush a file, or the entries of a folder, to disk, so that it survives a power failure."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open a folder
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save_array(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array to a ``.npy`` file atomically."""
    import numpy as np  # here, because commands that write files start without it

    with atomic_write(path) as file:
        np.save(file, array)
