"""Decorators of kernels, and what kernels need that numba lacks.

All kernels are compiled by the decorators of this module, lazily, for the types that they are
called with. Numba is imported when the first kernel is called, and no earlier: a process that loads
a model to score a few documents never needs it. ``core/compiler.py`` says how kernels are compiled,
``core/kernel_cache.py`` where machine code is kept, and ``core/compilation.py`` tells when a kernel
has to be compiled.

Kernels call some instructions that Python has no words for: `load_byte`, `load_word`,
`float_of_bits`, `trailing_zeros`, `prefetch`, `advance_leaves`, and those of ``core/lanes.py``.

A kernel gives the same bits on every processor: sums are added up in the order that the source
says, no product is fused with a sum, and exponentials and logarithms are those of
``core/elementary.py``, because the C library's depend on the processor.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=NDArray[Any])

# Numba's own switch, by which kernels run as Python.
JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0")


def frozen(array: Array) -> Array:
    """Return a read-only view.

    Numba compiles a kernel again for arrays that differ in being writeable: inputs of kernels are
    always frozen, so that there is one version of each.
    """
    view = array.view()
    view.flags.writeable = False
    return view


# Decorators


class Kernel:
    """A function that numba compiles when it is called.

    Parameters
    ----------
    function
        The function to compile.
    options
        Options of numba's decorators.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options

    @cached_property
    def dispatcher(self) -> Any:
        """What compiles for the types of the arguments, and calls what it compiled."""
        from rankinite.core.compiler import dispatcher_of

        return dispatcher_of(self.py_func, self._options)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*arguments)

    @property
    def _numba_type_(self) -> Any:
        # Numba asks for it when one kernel calls another.
        return self.dispatcher._numba_type_


def kernel(function: F) -> F:
    """Compile a serial kernel; it releases the GIL."""
    return _compiled(function)


def inlined_kernel(function: F) -> F:
    """Compile a small kernel into every kernel that calls it."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool = False) -> F:
    if JIT_IS_OFF:
        return function
    options = {
        "nopython": True,
        "nogil": True,
        # Kernels never raise: a division by 0 gives an infinity or NaN, as in numpy.
        "error_model": "numpy",
        "forceinline": forceinline,
    }
    return cast(F, Kernel(function, options))


# Instructions of the processor
#
# Each is a function in Python, which serves where the JIT is off, and one for numba, which writes
# LLVM's code for it (``core/intrinsics.py``). ``text[i]`` would first ask whether i counts from the
# end, and numba has no names for the others.


class Intrinsic:
    """An instruction that only kernels call.

    Parameters
    ----------
    function
        The same in Python.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.py_func = function

    @property
    def _numba_type_(self) -> Any:
        from rankinite.core.intrinsics import type_of_intrinsic

        return type_of_intrinsic(self.__name__)


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make an instruction for kernels of a function that does the same in Python."""
    return function if JIT_IS_OFF else Intrinsic(function)


@intrinsic
def load_word(array: NDArray[np.uint8], index: int) -> np.uint64:
    """Return the eight bytes that begin at an index."""
    return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "little"))


@intrinsic
def load_byte(array: NDArray[np.uint8], index: int) -> int:
    """Return the byte at an index."""
    return int(array[index])


@intrinsic
def float_of_bits(bits: int) -> float:
    """Return the float that has the same bits."""
    return float(np.int64(bits).view(np.float64))


@intrinsic
def trailing_zeros(word: np.uint64) -> int:
    """Return how many of the lowest bits are 0; 64 if all are."""
    value = int(word)
    return (value & -value).bit_length() - 1 if value else 64


@intrinsic
def prefetch(array: NDArray[Any], index: int) -> None:
    """Ask for an item of an array that will be needed soon."""


# So many rows at a time: the leaves of two or four vectors of bytes, which stay in registers.
LANES = 128


@intrinsic
def advance_leaves(
    codes: NDArray[np.uint8],
    width: int,
    column: NDArray[Any],
    shift: NDArray[np.uint8],
    bound: NDArray[np.uint8],
    first: NDArray[Any],
    right: NDArray[Any],
    begin: int,
    end: int,
    at: int,
    from_root: bool,
    leaves: NDArray[Any],
) -> None:
    """Move `LANES` rows, those from ``at`` on, from leaf to leaf by the splits of a tree.

    A row at the leaf ``first`` of a split moves to ``right`` if its code in the split's column,
    plus ``shift`` as a byte, is above ``bound``. A loop over rows within a loop over splits would
    write all leaves to memory and read them again for each split.

    Parameters
    ----------
    codes, width
        Codes of one column behind the other; a column has ``width`` of them.
    column, shift, bound, first, right
        The splits.
    begin, end
        The splits that count, from begin to end - 1.
    at, leaves
        Where the rows begin, in a column and in ``leaves``.
    from_root
        Whether all rows begin at leaf 0, and not where they are.
    """
    here = leaves[at : at + LANES]
    if from_root:
        here[:] = 0
    for split in range(begin, end):
        start = column[split] * width + at
        shifted = codes[start : start + LANES] + shift[split]  # wraps around
        here[(shifted > bound[split]) & (here == first[split])] = right[split]
