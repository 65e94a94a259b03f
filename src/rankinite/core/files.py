"""Atomic files and folders: written beside the target, flushed to disk, and renamed.

Whoever writes one holds the lock of the unfinished file or folder until it has its name, and the
operating system releases the lock of a process that was killed. So what can be locked was left
behind, by whatever process on whatever machine, and is removed when its target is written next.
"""

from __future__ import annotations

import contextlib
import errno
import glob
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

try:
    import fcntl
except ImportError:  # Windows, which removes no file that is open
    fcntl = None  # type: ignore[assignment]

# Names of unfinished files. Processes on several machines may have the same id, hence the token.
UNFINISHED = re.compile(r"\.(.+)\.\d+-[0-9a-f]{8}\.part", re.DOTALL)
# File systems allow 255 bytes, of which the rest of the name needs some.
LONGEST_NAME = 200


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
    remove_unfinished_of(target)
    beside = _beside(target)
    try:
        with _create(beside, target) as file:
            yield file
            # On disk before the new name is: a power failure leaves the old file or the new one.
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                beside.chmod(mode)
            if fcntl is not None:
                beside.replace(target)  # under its lock
        if fcntl is None:  # where open files cannot be renamed
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
    remove_unfinished_of(target)
    beside, lock = _make_folder(target)
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
        _unlock(lock)
    with contextlib.suppress(OSError):
        _flush(target.parent)


def remove_unfinished(folder: Path, names: Container[str] | None = None) -> None:
    """Remove unfinished files and folders that killed processes left in a folder.

    Where nothing can be locked, they are taken for left: the caller knows that nobody writes there.

    Parameters
    ----------
    folder
        The folder.
    names
        Names that they would have got; any if None.
    """
    for part in list(folder.iterdir()) if folder.is_dir() else []:
        match = UNFINISHED.fullmatch(part.name)
        if match is not None and (names is None or match[1] in names):
            _remove_if_left(part, is_sure=True)


def remove_unfinished_of(*targets: Path) -> None:
    """Remove unfinished files and folders that killed processes left of some targets."""
    for target in targets:
        # Those who have the folder may be allowed to write, but not to list it.
        with contextlib.suppress(OSError):
            for part in target.parent.glob(f"{glob.escape(_prefix(target))}.*-*.part"):
                name = UNFINISHED.fullmatch(part.name)
                if name and name[1] == _prefix(target)[1:]:
                    _remove_if_left(part, is_sure=False)


def _remove_if_left(part: Path, *, is_sure: bool) -> None:
    """Remove an unfinished file or folder, unless a process holds its lock.

    Parameters
    ----------
    part
        The file or folder.
    is_sure
        Whether it is removed where nothing can be locked.
    """
    # Pipes and links of this name are not ours, and would be opened or followed.
    if part.is_symlink() or not (part.is_file() or part.is_dir()):
        return
    try:
        lock = _locked(part)
    except BlockingIOError:
        return
    if lock is not None or is_sure or fcntl is None:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                part.unlink()
    _unlock(lock)


def _locked(part: Path) -> int | None:
    """Return a handle that holds the lock of a file or folder; None if nothing can be locked.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    """
    if fcntl is None:
        return None
    handle = None
    try:
        # Some network file systems lock what can be written only; a folder cannot.
        mode = os.O_RDONLY if part.is_dir() else os.O_RDWR
        handle = os.open(part, mode | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        _unlock(handle)
        if isinstance(problem, BlockingIOError):
            raise
        return None
    return handle


def _unlock(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def _prefix(target: Path) -> str:
    """Return how the names of unfinished files begin; long names are cut."""
    return f".{os.fsdecode(os.fsencode(target.name)[:LONGEST_NAME])}"


def _beside(target: Path) -> Path:
    """Return a unique name for the unfinished file or folder."""
    return target.with_name(f"{_prefix(target)}.{os.getpid()}-{secrets.token_hex(4)}.part")


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
    """Open and lock the file beside the target; errors name the target."""
    try:
        while True:
            file = beside.open("w+b")
            if _is_locked(file):
                return file
            file.close()
    except FileNotFoundError as problem:
        raise FileNotFoundError(
            problem.errno, "there is no such folder", str(target.parent)
        ) from None
    except OSError as problem:
        raise OSError(
            problem.errno, f"cannot be written: {problem.strerror}", str(target)
        ) from None


def _make_folder(target: Path) -> tuple[Path, int | None]:
    """Make and lock the folder beside the target; return it, and the handle of its lock."""
    while True:
        beside = _beside(target)
        beside.mkdir(parents=True)
        try:
            lock = _locked(beside)
        except BlockingIOError:
            continue  # another process takes it for left, and removes it
        if beside.is_dir():
            return beside, lock
        _unlock(lock)


def _is_locked(file: BinaryIO) -> bool:
    """Lock a new file; tell whether it is still there.

    Between its creation and its lock another process may have taken it for left.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # a file system without locks, where nobody removes it
        return True
    return os.fstat(file.fileno()).st_nlink > 0


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
