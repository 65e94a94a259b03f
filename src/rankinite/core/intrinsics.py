"""LLVM's code of the instructions that kernels call, and the type of lanes.

``core/jit.py`` and ``core/lanes.py`` have their names, and do the same in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_cast, register_model

from rankinite.core.jit import LANES
from rankinite.core.lanes import LANE_BYTES

WORD, BIT = ir.IntType(64), ir.IntType(1)


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


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    """Return a vector that has a value in all lanes."""
    nothing = ir.Constant(vector, ir.Undefined)
    one_lane = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one_lane, nothing, lanes)


def _load_vector(builder: Any, pointer: Any, vector: Any) -> Any:
    # Rows begin at any byte.
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)


def advance_leaves(
    _typing: Any,
    codes: Any,
    _width: Any,
    column: Any,
    shift: Any,
    bound: Any,
    first: Any,
    right: Any,
    _begin: Any,
    _end: Any,
    _at: Any,
    _from_root: Any,
    leaves: Any,
) -> Any:
    """Move rows from leaf to leaf by the splits of a tree."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, arguments[k]).data

        def of_split(k: int, split: Any) -> Any:
            return builder.load(builder.gep(data(k), [split]))

        width, begin, end, at, from_root = (arguments[k] for k in (1, 7, 8, 9, 10))
        code_lanes = ir.VectorType(ir.IntType(8), LANES)
        leaf_lanes = ir.VectorType(context.get_data_type(leaves.dtype), LANES)
        place = builder.gep(data(11), [at])
        # A variable of its own, which LLVM keeps in registers.
        state = cgutils.alloca_once(builder, leaf_lanes)
        before = _load_vector(builder, place, leaf_lanes)
        root = ir.Constant(leaf_lanes, None)
        builder.store(builder.select(from_root, root, before), state)
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(WORD, 1)) as (split, _):
            number = of_split(2, split)
            number = number if number.type == WORD else builder.sext(number, WORD)
            start = builder.add(builder.mul(number, width), at)
            split_codes = _load_vector(builder, builder.gep(data(0), [start]), code_lanes)
            shifted = builder.add(split_codes, _splat(builder, of_split(3, split), code_lanes))
            above = _splat(builder, of_split(4, split), code_lanes)
            goes_right = builder.icmp_unsigned(">", shifted, above)
            here = builder.load(state)
            is_here = _splat(builder, of_split(5, split), leaf_lanes)
            moves = builder.and_(goes_right, builder.icmp_unsigned("==", here, is_here))
            target = _splat(builder, of_split(6, split), leaf_lanes)
            builder.store(builder.select(moves, target, here), state)
        target_place = builder.bitcast(place, leaf_lanes.as_pointer())
        builder.store(builder.load(state), target_place, align=1)
        return context.get_dummy_value()

    integer = types.int64
    signature = types.void(
        codes, integer, column, shift, bound, first, right, integer, integer, integer,
        types.boolean, leaves,
    )  # fmt: skip
    return signature, generate


# Lanes


class LanesType(types.Type):
    """Type of several numbers, or of several conditions, that are computed at once.

    Parameters
    ----------
    dtype
        Type of a lane.
    n_lanes
        How many there are; by default as many as `LANE_BYTES` hold.
    """

    def __init__(self, dtype: Any, n_lanes: int = 0) -> None:
        self.dtype = dtype
        self.n_lanes = n_lanes or 8 * LANE_BYTES // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype}, {self.n_lanes})")

    @property
    def of_conditions(self) -> LanesType:
        """The type of comparisons."""
        return LanesType(types.boolean, self.n_lanes)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """Lanes are a vector of LLVM."""

    def __init__(self, manager: Any, lanes: LanesType) -> None:
        lane = BIT if lanes.dtype == types.boolean else manager[lanes.dtype].get_value_type()
        super().__init__(manager, lanes, ir.VectorType(lane, lanes.n_lanes))


@lower_cast(types.Float, LanesType)  # type: ignore[untyped-decorator]
def _broadcast(context: Any, builder: Any, number: Any, lanes: Any, value: Any) -> Any:
    value = context.cast(builder, value, number, lanes.dtype)
    return _splat(builder, value, context.get_value_type(lanes))


class _LaneByLane(AbstractTemplate):  # type: ignore[misc]
    """How an operation of lanes, or of lanes and a number, is typed."""

    is_comparison = False

    def generic(self, args: Any, _kws: Any) -> Any:
        """Return the signature: a number becomes lanes."""
        lanes = next((argument for argument in args if isinstance(argument, LanesType)), None)
        if lanes is None or not all(arg == lanes or isinstance(arg, types.Float) for arg in args):
            return None
        result = lanes.of_conditions if self.is_comparison else lanes
        return signature(result, *[lanes] * len(args))


def _define(operation: Any, n_arguments: int, generate: Callable[..., Any], **options: Any) -> None:
    """Let an operation of Python work lane by lane."""
    template = type("_Template", (_LaneByLane,), {"key": operation, **options})
    infer_global(operation)(template)

    @lower_builtin(operation, *[LanesType] * n_arguments)  # type: ignore[untyped-decorator]
    def _lower(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return generate(builder, *arguments)


def _absolute(builder: Any, lanes: Any) -> Any:
    name = f"llvm.fabs.v{lanes.type.count}{lanes.type.element.intrinsic_name}"
    kind = ir.FunctionType(lanes.type, [lanes.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [lanes])


_define(operator.add, 2, ir.IRBuilder.fadd)
_define(operator.sub, 2, ir.IRBuilder.fsub)
_define(operator.mul, 2, ir.IRBuilder.fmul)
_define(operator.truediv, 2, ir.IRBuilder.fdiv)
_define(operator.neg, 1, ir.IRBuilder.fneg)
_define(abs, 1, _absolute)


def _comparison(symbol: str) -> Callable[..., Any]:
    return lambda builder, left, right: builder.fcmp_ordered(symbol, left, right)


_define(operator.gt, 2, _comparison(">"), is_comparison=True)
_define(operator.lt, 2, _comparison("<"), is_comparison=True)


def load_lanes(_typing: Any, array: Any, index: Any) -> Any:
    """Return the numbers that begin at an index of an array."""
    lanes = LanesType(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature, arguments)
        return _load_vector(builder, place, context.get_value_type(lanes))

    return lanes(array, types.int64), generate


def store_lanes(_typing: Any, array: Any, index: Any, lanes: Any) -> Any:
    """Write lanes to an array from an index on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = arguments[2]
        place = _address(context, builder, signature, arguments[:2])
        builder.store(vector, builder.bitcast(place, vector.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, lanes), generate


def in_all_lanes(_typing: Any, number: Any) -> Any:
    """Return lanes that are all the same number."""
    lanes = LanesType(number)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _splat(builder, arguments[0], context.get_value_type(lanes))

    return lanes(number), generate


def select(_typing: Any, condition: Any, if_true: Any, if_false: Any) -> Any:
    """Return one number or the other, lane by lane."""
    sides = if_true, if_false
    result = next((side for side in sides if isinstance(side, LanesType)), if_true)
    if isinstance(condition, LanesType):
        result = LanesType(getattr(result, "dtype", result), condition.n_lanes)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return result(condition, result, result), generate


def sum_of_lanes(_typing: Any, lanes: Any) -> Any:
    """Return the sum of all lanes, halves added to halves."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        vector = arguments[0]
        number = ir.IntType(32)
        while vector.type.count > 1:
            half = vector.type.count // 2
            nothing = ir.Constant(vector.type, ir.Undefined)
            kind = ir.VectorType(number, half)
            low, high = (
                builder.shuffle_vector(
                    vector, nothing, ir.Constant(kind, list(range(first, first + half)))
                )
                for first in (0, half)
            )
            vector = builder.fadd(low, high)
        return builder.extract_element(vector, number(0))

    return lanes.dtype(lanes), generate


INTRINSICS: dict[str, Callable[..., Any]] = {
    function.__name__: intrinsic(function)
    for function in (
        load_word, load_byte, float_of_bits, trailing_zeros, prefetch, advance_leaves,
        load_lanes, store_lanes, in_all_lanes, select, sum_of_lanes,
    )
}  # fmt: skip


@cache
def type_of_intrinsic(name: str) -> Any:
    """Return the type by which numba knows an instruction."""
    context = cpu_target.typing_context
    context.refresh()  # so that it knows what was registered above
    return context.resolve_value_type(INTRINSICS[name])
