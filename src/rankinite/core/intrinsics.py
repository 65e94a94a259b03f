"""Machine instructions that numba does not offer: unaligned loads, trailing zeros, prefetching.

With the JIT switched off, functions in Python take their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic
from numpy.typing import NDArray

WORD = ir.IntType(64)


def _load_word(array: NDArray[np.uint8], index: int) -> np.uint64:
    return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "little"))


def _load_byte(array: NDArray[np.uint8], index: int) -> int:
    return int(array[index])


def _trailing_zeros(word: np.uint64) -> int:
    value = int(word)
    return (value & -value).bit_length() - 1 if value else 64


def _prefetch(array: NDArray[Any], index: int) -> None:
    pass


def _load_word_intrinsic(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(view.data, [arguments[1]])
        # Words begin at any byte: a load that assumes alignment could be a fault.
        return builder.load(builder.bitcast(pointer, WORD.as_pointer()), align=1)

    return types.uint64(array, types.int64), generate


def _load_byte_intrinsic(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(view.data, [arguments[1]])
        return builder.zext(builder.load(pointer), WORD)

    return types.int64(array, types.int64), generate


def _trailing_zeros_intrinsic(_typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _prefetch_intrinsic(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(view.data, [arguments[1]])
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
    trailing_zeros: Any = _trailing_zeros
    prefetch: Any = _prefetch
else:
    load_byte = intrinsic(_load_byte_intrinsic)
    load_word = intrinsic(_load_word_intrinsic)
    trailing_zeros = intrinsic(_trailing_zeros_intrinsic)
    prefetch = intrinsic(_prefetch_intrinsic)
