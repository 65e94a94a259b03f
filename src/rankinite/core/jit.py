"""Compiled kernels: numba's decorators, and a cache on disk that follows the sources."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core.event as events
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numpy.typing import NDArray

from rankinite.core.sources import all_sources, hash_of, with_imports

log = logging.getLogger("rankinite")

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=NDArray[Any])

HOLDS_KERNELS = re.compile(r"^@\w*kernel$", re.MULTILINE)
DAYS_KEPT = 30

prange = numba.prange

# Array expressions are not made parallel: that takes long to compile, and only ``prange`` is meant.
AUTOMATIC = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")


def n_threads() -> int:
    """Return how many threads parallel kernels run on."""
    return int(numba.get_num_threads())


def frozen(array: Array) -> Array:
    """Return a view that cannot be written to, the one kind of input that kernels are made for."""
    view = array.view()
    view.flags.writeable = False
    return view


def kernel(function: F) -> F:
    """Compile a serial kernel; it releases the GIL."""
    return _compiled(function, parallel=False)


def inlined_kernel(function: F) -> F:
    """Compile a small kernel into every kernel that calls it."""
    return _compiled(function, parallel=False, forceinline=True)


def summing_kernel(function: F) -> F:
    """Compile a small kernel of sums over rows into every kernel that calls it.

    Sums may be taken in another order, and a product added to one may be rounded with it. Without
    this leave numbers must be added one by one, and the loop around cannot work on four or eight
    at once. The order depends on the processor and the length of the row, never on the number of
    threads.
    """
    return _compiled(function, parallel=False, forceinline=True, fastmath={"reassoc", "contract"})


def parallel_kernel(function: F) -> F:
    """Compile a kernel whose ``prange`` loops run on all threads."""
    return _compiled(function, parallel=True)


def _compiled(
    function: F,
    *,
    parallel: bool,
    forceinline: bool = False,
    fastmath: bool | set[str] = False,
) -> F:
    njit: Any = numba.njit  # its stub knows True and False only for parallel
    compiler: Any = njit(
        nogil=True,
        error_model="numpy",
        parallel={**dict.fromkeys(AUTOMATIC, False), "prange": True} if parallel else False,
        forceinline=forceinline,
        fastmath=fastmath,
    )
    dispatcher = compiler(function)
    if not config.DISABLE_JIT and cache_directory() is not None:
        dispatcher._cache = _PrivateCache(function)
    return cast(F, dispatcher)


@cache
def cache_directory() -> Path | None:
    """Where this version's compiled kernels are kept, or None if nothing can be written."""
    for place in (_user_cache, _temporary_cache):
        try:
            directory = place() / "kernels" / source_hash()
            directory.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=directory).close()
            os.utime(directory)
        except (OSError, RuntimeError) as problem:  # RuntimeError: a user without a home
            log.debug("kernels cannot be kept: %s", problem)
            continue
        _forget_old_versions(directory)
        return directory
    return None


@cache
def source_hash() -> str:
    """Return a hash of every source file that holds kernels, or that such a file imports."""
    return hash_of(
        with_imports(path for path, text in all_sources().items() if HOLDS_KERNELS.search(text))
    )


def _user_cache() -> Path:
    given = os.environ.get("RANKINITE_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "rankinite"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankinite"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankinite"


def _temporary_cache() -> Path:
    """Return a directory that nobody else can fill: what is kept there is run."""
    directory = Path(tempfile.gettempdir()) / f"rankinite-{_user_name()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    found = directory.lstat()
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
        raise PermissionError(f"{directory} belongs to, or can be written by, somebody else")
    return directory


def _user_name() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _forget_old_versions(current: Path) -> None:
    horizon = time.time() - DAYS_KEPT * 24 * 3600
    for directory in current.parent.iterdir():
        with contextlib.suppress(OSError):  # another process may have been faster
            if directory != current and directory.stat().st_mtime < horizon:
                shutil.rmtree(directory, ignore_errors=True)


class _PrivateLocator(_CacheLocator):  # type: ignore[misc]
    def __init__(self, module: str, line: int) -> None:
        self.module = module
        self.line = line

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> _PrivateLocator:
        return cls(function.__module__, function.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(cast(Path, cache_directory()) / self.module)

    def get_source_stamp(self) -> str:
        return source_hash()

    def get_disambiguator(self) -> str:
        return str(self.line)


class _PrivateCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_PrivateLocator]  # noqa: RUF012 the name and type are numba's


class _PrivateCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _PrivateCacheImpl


COMPILE = "numba:compile"


class Listener(events.Listener):  # type: ignore[misc]
    """Says so when numba begins to compile; kernels from the disk are no matter."""

    def on_start(self, _event: Any) -> None:
        """Say it; the terminal shows a sentence once."""
        log.info("compiling for the first use, which takes up to a minute")

    def on_end(self, _event: Any) -> None:
        """Say nothing."""


def tell_of_compiling() -> None:
    """Say from now on when kernels are compiled."""
    events.register(COMPILE, Listener())
