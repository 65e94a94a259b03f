"""Compilation of kernels with numba, and what kernels need that numba lacks.

All kernels are compiled by the decorators of this module, lazily, for the types that they are
called with. Machine code is kept in a directory named by a hash of the sources that it was made
of, so that an edit, which numba itself would notice only in the file of the kernel, is never
answered with old code. ``core/compilation.py`` tells when a kernel has to be compiled after all.

Kernels call some instructions that Python has no words for (`load_byte`, `load_word`,
`float_of_bits`, `trailing_zeros`, `prefetch`), and `exponentials`, which is faster than a loop over
``math.exp``.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankinite.core.compilation import count_compilations
from rankinite.core.sources import all_sources, hash_of, with_imports

log = logging.getLogger("rankinite")

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=NDArray[Any])

prange = numba.prange

count_compilations()

# Only ``prange`` loops are meant to be parallel: making array expressions parallel, too, takes long
# to compile.
AUTOMATIC = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")


def n_threads() -> int:
    """Return the number of threads that parallel kernels run on."""
    return int(numba.get_num_threads())


def frozen(array: Array) -> Array:
    """Return a read-only view.

    Numba compiles a kernel again for arrays that differ in being writeable: inputs of kernels are
    always frozen, so that there is one version of each.
    """
    view = array.view()
    view.flags.writeable = False
    return view


# Decorators


def kernel(function: F) -> F:
    """Compile a serial kernel; it releases the GIL."""
    return _compiled(function, parallel=False)


def inlined_kernel(function: F) -> F:
    """Compile a small kernel into every kernel that calls it."""
    return _compiled(function, parallel=False, forceinline=True)


def summing_kernel(function: F) -> F:
    """Compile a small kernel of sums over rows into every kernel that calls it.

    Sums may be reordered, and a product may be fused with the sum it is added to. Without this
    permission numbers must be added one by one, and the loop cannot be vectorised. The order
    depends on the processor and the length of the row, never on the number of threads.
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
    njit: Any = numba.njit  # its stub allows only True and False for parallel
    compiler: Any = njit(
        nogil=True,
        # Kernels never raise: a division by 0 gives an infinity or NaN, as in numpy.
        error_model="numpy",
        parallel={**dict.fromkeys(AUTOMATIC, False), "prange": True} if parallel else False,
        forceinline=forceinline,
        fastmath=fastmath,
    )
    dispatcher = compiler(function)
    # Instead of numba's ``cache=True``, which knows only the file that the kernel is in.
    if not config.DISABLE_JIT and _marked_directory() is not None:
        dispatcher._cache = _KernelCache(function)
    return cast(F, dispatcher)


# Cache on disk

# Decorators as they stand above kernels; a module with one of them is compiled code.
HOLDS_KERNELS = re.compile(r"^@\w*kernel$", re.MULTILINE)


@cache
def kernel_hash() -> str:
    """Return a hash of every source file that holds kernels, or that such a file imports."""
    return hash_of(
        with_imports(path for path, text in all_sources().items() if HOLDS_KERNELS.search(text))
    )


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
            tempfile.TemporaryFile(dir=directory).close()
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
    """Return the directory of kernels, marked as ours."""
    directory = cache_directory()
    if directory is not None:
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
    for directory in current.parent.iterdir():
        with contextlib.suppress(OSError):  # another process may have been faster
            is_ours = (directory / MARK).is_file()
            if is_ours and directory != current and directory.stat().st_mtime < horizon:
                shutil.rmtree(directory, ignore_errors=True)


class _KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Tells numba where a kernel is cached, and that the hash of sources is its version."""

    def __init__(self, module: str, line: int) -> None:
        self.module = module
        self.line = line

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> _KernelLocator:
        return cls(function.__module__, function.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(cast(Path, cache_directory()) / self.module)

    def get_source_stamp(self) -> str:
        return kernel_hash()

    def get_disambiguator(self) -> str:
        # Functions of one module may have the same name, such as those that a test defines.
        return str(self.line)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_KernelLocator]  # noqa: RUF012 the name and type are numba's


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Kernels on disk: of several processes that need a new one, one compiles and others wait."""

    _impl_class = _KernelCacheImpl
    _lock: IO[bytes] | None = None

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Load a kernel; if there is none, hold its lock until it is saved."""
        kernel = super().load_overload(signature, target_context)
        if kernel is None and self._lock is None:
            self._lock = _locked(Path(f"{self._cache_path}/{self._impl.filename_base}.lock"))
            # Whoever had the lock before has compiled it.
            kernel = super().load_overload(signature, target_context)
            if kernel is not None:
                self._release()
        return kernel

    def save_overload(self, signature: Any, data: Any) -> None:
        """Save a kernel that was compiled."""
        try:
            super().save_overload(signature, data)
        finally:
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


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


# Instructions of the processor
#
# Each is a function for numba, which writes LLVM's code for it, and one in Python, which serves
# where the JIT is disabled. ``text[i]`` would first ask whether i counts from the end, and
# numba has no names for the others.

WORD = ir.IntType(64)


def _load_word(array: NDArray[np.uint8], index: int) -> np.uint64:
    return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "little"))


def _load_byte(array: NDArray[np.uint8], index: int) -> int:
    return int(array[index])


def _float_of_bits(bits: int) -> float:
    return float(np.int64(bits).view(np.float64))


def _trailing_zeros(word: np.uint64) -> int:
    value = int(word)
    return (value & -value).bit_length() - 1 if value else 64


def _prefetch(array: NDArray[Any], index: int) -> None:
    pass


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the address of an array's item; the array and the index are the arguments."""
    view = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(view.data, [arguments[1]])


def _load_word_intrinsic(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, signature, arguments)
        # Words begin at any byte: a load that assumes alignment could be a fault.
        return builder.load(builder.bitcast(pointer, WORD.as_pointer()), align=1)

    return types.uint64(array, types.int64), generate


def _load_byte_intrinsic(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Widened here, because numba adds and compares words.
        return builder.zext(builder.load(_address(context, builder, signature, arguments)), WORD)

    return types.int64(array, types.int64), generate


def _float_of_bits_intrinsic(_typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


def _trailing_zeros_intrinsic(_typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The 0 asks for a defined result, 64, for a word without ones.
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _prefetch_intrinsic(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature, arguments)
        pointer = builder.bitcast(address, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [pointer.type],
            ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number]),
        )
        # For reading, into all levels of the cache, of data.
        builder.call(instruction, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


if config.DISABLE_JIT:
    load_byte: Any = _load_byte
    load_word: Any = _load_word
    float_of_bits: Any = _float_of_bits
    trailing_zeros: Any = _trailing_zeros
    prefetch: Any = _prefetch
else:
    load_byte = intrinsic(_load_byte_intrinsic)
    load_word = intrinsic(_load_word_intrinsic)
    float_of_bits = intrinsic(_float_of_bits_intrinsic)
    trailing_zeros = intrinsic(_trailing_zeros_intrinsic)
    prefetch = intrinsic(_prefetch_intrinsic)


# Exponentials from additions and multiplications only
#
# The C library's exp works on a single number; these loops are compiled to work on several at once.

# Adding this to a number of moderate size rounds it to an integer, which is then in the lowest
# bits of the sum.
ROUNDER = 1.5 * 2.0**52
LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts; the first has so few bits that its product with an integer is exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# The exponent is to the left of the 52 bits of the fraction; this is the exponent of 1.0.
FRACTION_BITS = 52
EXPONENT_OF_ONE = 1023 << FRACTION_BITS


@summing_kernel
def exponential_near_0(r: float) -> float:
    """Return exp(r) for numbers up to 0.35 by Taylor's series, to the last bits."""
    # To the 12th power; the next term, r^13 / 13!, is below 2e-16.
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    return series * r + 1.0


@kernel
def exponentials(
    numbers: NDArray[np.float64],
    shift: float,
    n: int,
    power: NDArray[np.float64],
    power_bits: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write exp(number - shift) for n numbers; the differences must lie between -700 and 700.

    With x = k ln 2 + r and k whole, exp(x) = 2^k exp(r), and r is at most 0.35. ``power`` is
    scratch and ``power_bits`` the same memory seen as integers.
    """
    # Three loops: the second reads as integers what the first wrote as floats.
    for i in range(n):
        rounded = (numbers[i] - shift) * LOG2_E + ROUNDER
        power[i] = rounded
        out[i] = rounded - ROUNDER
    for i in range(n):
        power_bits[i] = (power_bits[i] << FRACTION_BITS) + EXPONENT_OF_ONE
    for i in range(n):
        r = ((numbers[i] - shift) - out[i] * LN2_HIGH) - out[i] * LN2_LOW
        out[i] = exponential_near_0(r) * power[i]
