"""Decorators of kernels, and what kernels need that numba lacks.

All kernels are compiled by the decorators of this module, lazily, for the types that they are
called with. ``core/compiler.py`` says how, ``core/kernel_cache.py`` where machine code is kept, and
``core/compilation.py`` tells when a kernel has to be compiled.

Kernels call some instructions that Python has no words for (`load_byte`, `load_word`,
`float_of_bits`, `trailing_zeros`, `prefetch`), and `exponentials`, which is faster than a loop over
``math.exp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankinite.core.compilation import count_compilations
from rankinite.core.compiler import EntryDispatcher
from rankinite.core.kernel_cache import cache_of

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=NDArray[Any])

count_compilations()


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
    return _compiled(function)


def inlined_kernel(function: F) -> F:
    """Compile a small kernel into every kernel that calls it."""
    return _compiled(function, forceinline=True)


def summing_kernel(function: F) -> F:
    """Compile a small kernel of sums over rows into every kernel that calls it.

    Sums may be reordered, and a product may be fused with the sum it is added to. Without this
    permission numbers must be added one by one, and the loop cannot be vectorised. The order
    depends on the processor and the length of the row, never on the number of threads.
    """
    return _compiled(function, forceinline=True, fastmath={"reassoc", "contract"})


def _compiled(
    function: F,
    *,
    forceinline: bool = False,
    fastmath: bool | set[str] = False,
) -> F:
    if config.DISABLE_JIT:
        return function
    options = {
        "nopython": True,
        "nogil": True,
        # Kernels never raise: a division by 0 gives an infinity or NaN, as in numpy.
        "error_model": "numpy",
        "forceinline": forceinline,
        "fastmath": fastmath,
    }
    dispatcher = EntryDispatcher(function, options)
    # Instead of numba's ``cache=True``, which knows only the file that the kernel is in.
    dispatcher._cache = cache_of(function)
    return cast(F, dispatcher)


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
