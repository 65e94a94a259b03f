"""LLVM's code of the instructions that kernels call; ``core/jit.py`` has their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

WORD = ir.IntType(64)


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the address of an array's item; the array and the index are the arguments."""
    view = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(view.data, [arguments[1]])


def load_word(_typing: Any, array: Any, index: Any) -> Any:
    """Return the eight bytes that begin at an index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, signature, arguments)
        # Words begin at any byte: a load that assumes alignment could be a fault.
        return builder.load(builder.bitcast(pointer, WORD.as_pointer()), align=1)

    return types.uint64(array, types.int64), generate


def load_byte(_typing: Any, array: Any, index: Any) -> Any:
    """Return the byte at an index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Widened here, because numba adds and compares words.
        return builder.zext(builder.load(_address(context, builder, signature, arguments)), WORD)

    return types.int64(array, types.int64), generate


def float_of_bits(_typing: Any, bits: Any) -> Any:
    """Return the float that has the same bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


def trailing_zeros(_typing: Any, word: Any) -> Any:
    """Return how many of the lowest bits are 0; 64 if all are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The 0 asks for a defined result, 64, for a word without ones.
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Ask for an item of an array that will be needed soon."""

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


INTRINSICS: dict[str, Callable[..., Any]] = {
    function.__name__: intrinsic(function)
    for function in (load_word, load_byte, float_of_bits, trailing_zeros, prefetch)
}


@cache
def type_of_intrinsic(name: str) -> Any:
    """Return the type by which numba knows an instruction."""
    context = cpu_target.typing_context
    context.refresh()  # so that it knows what was registered above
    return context.resolve_value_type(INTRINSICS[name])
