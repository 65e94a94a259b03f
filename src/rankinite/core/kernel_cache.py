"""Compiled kernels on disk.

Machine code is kept in a directory named by a hash of the sources that it was made of, so that an
edit, which numba itself would notice only in the file of the kernel, is never answered with old
code. A file holds one kernel for one signature and processor, behind a checksum of its name and
content: a file that is damaged, or another kernel's, is deleted and its kernel compiled again. A
directory that cannot be written costs a warning and the time to compile, never the work.

Numba is imported where kernels are loaded and saved only: who asks for the directory needs none.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

from rankinite.core.files import atomic_write
from rankinite.core.sources import all_sources, hash_of, with_imports

log = logging.getLogger("rankinite")

# Decorators as they stand above kernels; a module with one of them is compiled code.
HOLDS_KERNELS = re.compile(r"^@\w*kernel$", re.MULTILINE)


@cache
def kernel_hash() -> str:
    """Return a hash of every source file that holds kernels, or that such a file imports."""
    return hash_of(
        with_imports(path for path, text in all_sources().items() if HOLDS_KERNELS.search(text))
    )


# Directories

# Machine code of other versions is deleted when it was not used for this many days.
DAYS_KEPT = 30
# In a directory of kernels: without it, a directory is somebody else's and is never deleted.
MARK = "rankinite-kernels"


@cache
def cache_directory() -> Path | None:
    """Return where compiled kernels are kept, or None if nothing can be written."""
    for parent in (_user_cache, _temporary_cache):
        try:
            directory = parent() / "kernels" / kernel_hash()
            directory.mkdir(parents=True, exist_ok=True)
            # A directory that can be listed may still be on a full or read-only disk.
            with tempfile.TemporaryFile(dir=directory) as file:
                file.write(b"\0")
            # Its time is that of the last use, by which old versions are recognised.
            os.utime(directory)
        except (OSError, RuntimeError) as problem:  # RuntimeError: a user without a home
            log.debug("kernels cannot be kept: %s", problem)
            continue
        _delete_old_versions(directory)
        return directory
    return None


@cache
def _marked_directory() -> Path | None:
    """Return the directory of kernels, marked as ours; warn if there is none."""
    directory = cache_directory()
    if directory is None:
        _warn_unwritable("any folder", "a disk may be full or read-only")
        return None
    with contextlib.suppress(OSError):  # without a mark, nobody deletes it
        (directory / MARK).touch()
    return directory


def _user_cache() -> Path:
    configured = os.environ.get("RANKINITE_CACHE_DIR")
    if configured:
        return Path(configured)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "rankinite"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankinite"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankinite"


def _temporary_cache() -> Path:
    """Return a directory that no other user can write to: the code in it is executed."""
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    directory = Path(tempfile.gettempdir()) / f"rankinite-{user}"
    directory.mkdir(mode=0o700, exist_ok=True)
    # Somebody else may have made the directory first; a link to another one is refused as well.
    status = directory.lstat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"{directory} belongs to, or can be written by, somebody else")
    return directory


def _delete_old_versions(current: Path) -> None:
    horizon = time.time() - DAYS_KEPT * 24 * 3600
    # The folder may be one that cannot be listed, and another process may have been faster.
    with contextlib.suppress(OSError):
        for directory in current.parent.iterdir():
            is_ours = directory != current and (directory / MARK).is_file()
            if is_ours and directory.stat().st_mtime < horizon:
                shutil.rmtree(directory, ignore_errors=True)


# Files

CHECKSUM_BYTES = hashlib.sha256().digest_size


def cache_of(function: Callable[..., Any]) -> KernelCache | None:
    """Return the cache of a kernel; None if there is no directory to keep it in."""
    directory = _marked_directory()
    return None if directory is None else KernelCache(directory, function)


class KernelCache:
    """A kernel on disk: of several processes that need a new one, one compiles and others wait.

    The methods are those that numba's dispatchers call.

    Parameters
    ----------
    directory
        Where the files are.
    function
        The kernel as it was before compilation.
    """

    def __init__(self, directory: Path, function: Callable[..., Any]) -> None:
        self.directory = directory
        # Functions of one module may have the same name, such as those that a test defines.
        line = function.__code__.co_firstlineno
        self.name = f"{function.__module__}.{function.__name__}-{line}"
        self._lock: IO[bytes] | None = None

    @property
    def cache_path(self) -> str:
        """Where the files are."""
        return str(self.directory)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Load a kernel; if there is none, return None and hold its lock until it is saved."""
        target_context.refresh()  # so that numba's own functions are known to it
        path = self._path(signature, target_context.codegen())
        kernel = _load(path, target_context)
        if kernel is None and self._lock is None:
            self._lock = _locked(path.with_suffix(".lock"))
            # Whoever had the lock before has compiled it.
            kernel = _load(path, target_context)
            if kernel is not None:
                self._release()
        return kernel

    def save_overload(self, signature: Any, kernel: Any) -> None:
        """Save a kernel that was compiled."""
        path = self._path(signature, kernel.codegen)
        try:
            _save(kernel, path)
        finally:
            self._release()

    def _path(self, signature: Any, codegen: Any) -> Path:
        import numba

        # Python's version, because what is pickled with the code is of that version.
        versions = numba.__version__, sys.version_info[:2], codegen.magic_tuple()
        key = hashlib.sha256(repr((str(signature), versions)).encode()).hexdigest()[:16]
        return self.directory / f"{self.name}-{key}.kernel"

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _load(path: Path, target_context: Any) -> Any:
    from numba.core.compiler import CompileResult

    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    try:
        # Machine code is executed: nothing of it is looked at before the checksum is right.
        if _checksum(path, payload) != checksum:
            raise ValueError("its checksum does not fit its name and bytes")
        return CompileResult._rebuild(target_context, *pickle.loads(payload))
    # Whatever is wrong with it, it can be compiled again.
    except Exception as problem:
        log.debug("%s is damaged: %s", path, problem)
        _warn_damaged(str(path.parent))
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def _save(kernel: Any, path: Path) -> None:
    from numba.core.serialize import dumps

    payload = dumps(kernel._reduce())
    try:
        with atomic_write(path) as file:
            file.write(_checksum(path, payload) + payload)
    except OSError as problem:
        _warn_unwritable(str(path.parent), problem.strerror or str(problem))


def _checksum(path: Path, payload: bytes) -> bytes:
    """Return the checksum of a kernel under its name: one kernel is never taken for another."""
    return hashlib.sha256(path.name.encode() + b"\0" + payload).digest()


# Once for each directory, in which everything may be wrong


@cache
def _warn_damaged(directory: str) -> None:
    log.warning(
        "compiled kernels in %s are damaged; they are deleted, and compiled again", directory
    )


@cache
def _warn_unwritable(directory: str, problem: str) -> None:
    log.warning(
        "compiled kernels cannot be kept in %s (%s): work goes on, but the next process compiles "
        "again; free space there, or name another folder in RANKINITE_CACHE_DIR",
        directory,
        problem,
    )


# Longer than any kernel takes to compile: a process that was interrupted may keep a lock.
SECONDS_TO_WAIT = 60.0


def _locked(path: Path) -> IO[bytes] | None:
    """Return an open file that no other process has locked; it is unlocked when it is closed.

    Where files cannot be locked, and after a minute, there is none: the kernel is compiled twice.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    deadline = time.monotonic() + SECONDS_TO_WAIT
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
    except OSError:
        return None
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            file.close()
            return None
        except OSError:  # a file system without locks
            file.close()
            return None
        return file
