"""Replaces matmuls of dequantized tensors by integer matmuls whose sums are scaled.

For integers x and w with zero points p and q and scales s and t,

    sum of (x - p) s * (w - q) t = s t * sum of (x - p) (w - q)

if s is one number, and t is the same for all terms of a sum, as the scale of a filter's output
channel is. The integer sums are exact, and only their product with the scale is rounded; a matmul
of floats rounds each term and each sum.

Scales and zero points must be known at build time, as those of a statically quantized network are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.generics import (
    RESHAPES,
    has_reduction,
    is_depthwise,
    maps_of,
    reduction_loops,
    reduction_size,
)
from aotc.kernels.matmul.recognition import multiplies
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.lower.tensors.integer_ranges import range_of, range_of_type
from aotc.lower.tensors.known_operations import NUMBERS, apply
from aotc.lower.tensors.known_tensors import SMALL, KnownTensors
from aotc.mlir import ir

_FLOATS = ("f32", "f64")
_VIEWS = (*RESHAPES, "tensor.extract_slice", "tensor.cast")
# Operations that widen integers or convert them to floats → whether they treat them as unsigned.
_WIDENING = {
    "arith.extui": True,
    "arith.extsi": False,
    "arith.uitofp": True,
    "arith.sitofp": False,
}
_LOOP = re.compile(r"d\d+")
_BYTE = 8
_SUM_BITS = 32
# The limit of operations to look through.
_MOST_STEPS = 12


class _Affine(Struct, frozen=True):
    """(integer - zero) * scale for each element of a tensor of 8-bit or 16-bit integers.

    The integers may be stored in a wider type. `zero` and `scale` have the tensor's rank, with each
    dimension of its size or 1. `unsigned` is None until the bytes are widened. `limits`: the
    minimum and maximum of signed 16-bit integers, such as differences of bytes; None for bytes.
    """

    source: Any
    unsigned: bool | None
    zero: np.ndarray
    scale: np.ndarray
    limits: tuple[int, int] | None = None

    @property
    def range(self) -> tuple[int, int]:
        """The minimum and maximum of (integer - zero)."""
        least, largest = self.limits or ((0, 255) if self.unsigned else (-128, 127))
        largest_zero, least_zero = self.zero.max(initial=0), self.zero.min(initial=0)
        return int(least - largest_zero), int(largest - least_zero)

    @property
    def bits(self) -> int:
        return _BYTE if self.limits is None else 2 * _BYTE


class _Dequantized(Struct, frozen=True):
    """A tensor of floats: the elements of `affine`, moved by the operations `moves` in order.

    `scale` is the scale of this tensor's elements, in the form that `_Affine` has.
    """

    affine: _Affine
    moves: tuple[Any, ...]
    scale: np.ndarray


def fuse_quantized_matmuls(module: Any) -> None:
    """Changes `module`, whose named operations are `linalg.generic` on tensors, in place."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            if not _is_product(generic):
                continue
            # KnownTensors identifies values by address, which may be reused once operations are
            # erased.
            known = KnownTensors()
            left, right = (dequantized(one, known, _MOST_STEPS) for one in generic.operands[:2])
            if left is not None and right is not None:
                with generic.location, ir.InsertionPoint(generic):
                    _multiply(generic, (left, right), known)


def _is_product(generic: Any) -> bool:
    if not has_reduction(generic) or len(generic.results) != 1 or not multiplies(generic):
        return False
    types = {str(value.type.element_type) for value in generic.operands}
    return len(types) == 1 and types <= set(_FLOATS)


# --- Matmuls -----------------------------------------------------------------------------------


def _multiply(generic: Any, factors: Sequence[_Dequantized], known: KnownTensors) -> None:
    """Replaces the matmul if its sums fit 32 bits and each has one scale."""
    result, start, maps = generic.results[0], generic.operands[2], maps_of(generic)
    found = [_along_result(one.scale, generic, number) for number, one in enumerate(factors)]
    scales = [one for one in found if one is not None]
    integers = [one for one in (_Integers.of(one, known) for one in factors) if one is not None]
    count = reduction_size(generic)
    if len(scales) < len(factors) or len(integers) < len(factors) or count is None:
        return
    largest = math.prod(one.largest for one in integers) * count
    scale = _product(scales, result.type.element_type)
    if largest >= 1 << _SUM_BITS - 1 or scale is None or _is_of_vectors(maps):
        return
    i32 = ir.IntegerType.get_signless(_SUM_BITS)
    type_ = ir.RankedTensorType.get(list(result.type.shape), i32)
    none = ir.AffineMap.get(type_.rank, 0, [])
    zeros = create_broadcast(ops.constant(i32, 0), type_, none, ops.dynamic_sizes(start))

    def multiply_add(x: Any, w: Any, total: Any) -> Any:
        x, w = (one if one.type == i32 else ops.unary("arith.extsi", one, i32) for one in (x, w))
        return ops.multiply_add_integers(x, w, total)

    operands = [*(one.make() for one in integers), zeros]
    product = ops.create_generic(operands, maps, multiply_add, reduction_loops(generic))
    ops.replace(generic, [_scaled(product.result, scale, start)])


def _along_result(scale: np.ndarray, generic: Any, number: int) -> np.ndarray | None:
    """The scale of a factor along the result's dimensions, in f64; None if the terms of one sum
    have different scales."""
    maps = maps_of(generic)
    places, shape = [str(place) for place in maps[2].results], [1] * len(maps[2].results)
    axes = [axis for axis, size in enumerate(scale.shape) if size > 1]
    names = [str(maps[number].results[axis]) for axis in axes]
    if not set(names) <= set(places) or len(set(names)) < len(names):
        return None
    order = sorted(range(len(axes)), key=lambda i: places.index(names[i]))
    for i in order:
        shape[places.index(names[i])] = scale.shape[axes[i]]
    return scale.squeeze().transpose(order).astype(np.float64).reshape(shape)


def _product(scales: Sequence[np.ndarray], element: Any) -> np.ndarray | None:
    """The scale of the sums in their element type. None if the product of the scales is too small
    or too large to be a normal number there."""
    type_, (left, right) = NUMBERS[str(element)], scales
    with np.errstate(over="ignore", under="ignore"):
        product = left * right
    limits, absolute = np.finfo(type_), np.abs(product)
    is_normal = (limits.tiny <= absolute) & (absolute <= limits.max)
    return product.astype(type_) if (is_normal | (left == 0) | (right == 0)).all() else None


def _is_of_vectors(maps: Sequence[Any]) -> bool:
    """Whether the loops of one factor are all loops of the other, and it is no depthwise
    convolution. These are products of vectors, which have kernels for floats."""
    one, other = (set(_LOOP.findall(str(map_).rpartition("->")[2])) for map_ in maps[:2])
    return (one <= other or other <= one) and not is_depthwise(maps)


def _scaled(sums: Any, scale: np.ndarray, start: Any) -> Any:
    """`start`, the matmul's init, plus the scaled sums."""
    type_, element = start.type, start.type.element_type
    axes = [i for i, size in enumerate(scale.shape) if size > 1]
    factor = _constant(scale.reshape([scale.shape[i] for i in axes]), element)
    identity = ir.AffineMap.get_identity(type_.rank)
    along = ir.AffineMap.get(type_.rank, 0, [ir.AffineDimExpr.get(i) for i in axes])

    def add_scaled(total: Any, by: Any, before: Any) -> Any:
        product = ops.unary("arith.sitofp", total, element)
        if (scale != 1).any():
            product = ops.binary("arith.mulf", product, by)
        return ops.binary("arith.addf", before, product)

    inputs, maps = [sums, factor, start], [identity, along, identity]
    return ops.create_elementwise(inputs, type_, ops.dynamic_sizes(start), add_scaled, maps)


def _constant(array: np.ndarray, element: Any) -> Any:
    """A tensor with these elements. A large one uses the array's own memory."""
    array = np.require(array, requirements="C")
    type_ = ir.RankedTensorType.get(array.shape, element)
    attribute = (
        ir.DenseElementsAttr.get(array, type=element, shape=array.shape)
        if array.nbytes <= SMALL
        else ir.DenseResourceElementsAttr.get_from_buffer(array, "aotc_quantized", type_)
    )
    return ops.constant_from(attribute)


class _Integers(Struct, frozen=True):
    """The integers of a factor minus their zero points.

    `values`: the differences if they are known and fit signed bytes; otherwise None. `largest`: an
    upper bound of their absolute values.
    """

    factor: _Dequantized
    values: np.ndarray | None
    largest: int

    @classmethod
    def of(cls, factor: _Dequantized, known: KnownTensors) -> _Integers | None:
        affine = factor.affine
        array = known.of(affine.source)
        if array is not None:
            is_bits = affine.unsigned and array.itemsize == 1
            integers = (array.view(np.uint8) if is_bits else array).astype(np.int64)
            values = integers - affine.zero.astype(np.int64)
            largest = int(np.abs(values).max(initial=0))
            if values.min(initial=0) >= -128 and values.max(initial=0) <= 127:
                return cls(factor, values.astype(np.int8), largest)
        # After a zero point is subtracted, 16 bits may not be enough.
        if zero_byte(affine) is None or (affine.limits is not None and affine.zero.any()):
            return None
        return cls(factor, None, max(map(abs, affine.range)))

    def make(self) -> Any:
        """The tensor of i32 or of signed bytes, created at the insertion point."""
        affine, i32 = self.factor.affine, ir.IntegerType.get_signless(_SUM_BITS)
        zero = zero_byte(affine) or 0
        tensor = affine.source
        byte = ir.IntegerType.get_signless(affine.bits)
        if self.values is not None:
            is_same = tensor.type.element_type == byte and not (
                affine.unsigned or affine.zero.any()
            )
            known = ir.IntegerType.get_signless(_BYTE)
            zero, tensor = 0, tensor if is_same else _constant(self.values, known)
        elif tensor.type.element_type != byte:
            type_ = ir.RankedTensorType.get(list(tensor.type.shape), byte)
            identity = ir.AffineMap.get_identity(type_.rank)
            tensor = create_broadcast(
                tensor, type_, identity, ops.dynamic_sizes(tensor), "arith.trunci"
            )
        for move in self.factor.moves:
            tensor = moved(tensor, move, zero)
        if self.values is not None or (zero == 0 and not affine.unsigned):
            return tensor
        type_ = ir.RankedTensorType.get(list(tensor.type.shape), i32)
        number = ops.constant(i32, zero)
        widen = "arith.extui" if affine.unsigned else "arith.extsi"

        def subtract_zero(byte: Any) -> Any:
            return ops.binary("arith.subi", ops.unary(widen, byte, i32), number)

        return ops.create_elementwise([tensor], type_, ops.dynamic_sizes(tensor), subtract_zero)


def zero_byte(affine: _Affine) -> int | None:
    """The zero point if it is the same for all elements and is a valid byte; otherwise None."""
    if affine.zero.size != 1:
        return None
    zero, least = int(affine.zero.reshape(())), 0 if affine.unsigned else -128
    return zero if least <= zero <= least + 255 else None


def moved(tensor: Any, move: Any, padding: int) -> Any:
    """Applies an operation that only moves elements to a tensor of bytes, with `padding` as padding
    value."""
    clone, byte = move.clone(), tensor.type.element_type
    type_ = ir.RankedTensorType.get(list(move.results[0].type.shape), byte)
    clone.results[0].set_type(type_)
    if move.name != "linalg.generic":
        clone.operands[0] = tensor
        return clone.results[0]
    inputs, (out,) = ops.operand_groups(move)
    with ir.InsertionPoint(clone):
        empty = ops.create("tensor.empty", ops.dynamic_sizes(out), [type_]).result
        number = ops.constant(byte, padding)
    clone.operands[len(inputs)] = empty
    for argument in clone.regions[0].blocks[0].arguments:
        argument.set_type(byte)
    if inputs:
        clone.operands[0] = tensor
        return clone.results[0]
    found = padding_of(clone)
    assert found is not None
    select, extract = found
    extract.operands[0] = tensor
    extract.results[0].set_type(byte)
    select.operands[2] = number
    select.results[0].set_type(byte)
    return clone.results[0]


# --- Recognition of dequantization ---------------------------------------------------------------


def dequantized(tensor: Any, known: KnownTensors, steps: int) -> _Dequantized | None:
    """How a tensor of floats is computed from bytes; None if it is not. Looks through `steps`
    operations."""
    producer = ops.defining(tensor)
    if producer is None or steps == 0:
        return None
    if producer.name in _VIEWS:
        return _with_move(dequantized(producer.operands[0], known, steps - 1), producer)
    if producer.name != "linalg.generic" or len(producer.results) != 1 or has_reduction(producer):
        return None
    arguments = list(producer.regions[0].blocks[0].arguments)
    if len(ops.content(producer)) == 1 and len(arguments) == 2:
        is_copy = ops.content(producer)[0].operands[0] == arguments[0]
        source = producer.operands[0]
        if not is_copy or not isinstance(source.type, ir.RankedTensorType):
            return None
        return _with_move(dequantized(source, known, steps - 1), producer)
    if maps_of(producer)[-1] != ir.AffineMap.get_identity(tensor.type.rank):
        return None
    if (padding := padding_of(producer)) is not None:
        select, extract = padding
        fill = known.of(select.operands[2])
        inner = dequantized(extract.operands[0], known, steps - 1)
        is_zero = fill is not None and not fill.any()
        return (
            _with_move(inner, producer) if is_zero and inner and _has_single_scale(inner) else None
        )
    affine = _Body(producer, known, steps).affine(ops.content(producer)[-1].operands[0])
    if affine is None or affine.unsigned is None:
        return None
    return _Dequantized(affine, (), affine.scale)


def padding_of(generic: Any) -> tuple[Any, Any] | None:
    """The `arith.select` and the `tensor.extract` of a `linalg.generic` that only pads a tensor;
    None for others."""
    select = ops.defining(ops.content(generic)[-1].operands[0])
    inputs, _ = ops.operand_groups(generic)
    if inputs or select is None or select.name != "arith.select":
        return None
    extract = ops.defining(select.operands[1])
    if extract is None or extract.name != "tensor.extract" or len(list(extract.result.uses)) != 1:
        return None
    return (select, extract) if extract.parent == select.parent == generic else None


def _has_single_scale(one: _Dequantized) -> bool:
    """Whether there is a single scale and a single zero point."""
    return bool(one.scale.size == one.affine.zero.size == 1)


def _with_move(one: _Dequantized | None, move: Any) -> _Dequantized | None:
    if one is None:
        return None
    type_ = move.results[0].type
    if one.scale.size == 1:
        scale = one.scale.reshape([1] * type_.rank)
    elif move.name in RESHAPES and type_.has_static_shape:
        whole = np.broadcast_to(one.scale, move.operands[0].type.shape).reshape(type_.shape)
        scale = _without_repeats(whole)
    elif move.name == "linalg.generic" and all(map_.is_permutation for map_ in maps_of(move)):
        source, result = ([str(place) for place in map_.results] for map_ in maps_of(move))
        scale = one.scale.transpose([source.index(place) for place in result])
    else:
        return None
    return replace(one, moves=(*one.moves, move), scale=scale)


def _without_repeats(array: np.ndarray) -> np.ndarray:
    """`array` reduced to one element along each axis along which it is constant."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if array.shape[axis] and (array == first).all():
            array = first
    return array


class _Body(Struct, frozen=True):
    """The body of an elementwise `linalg.generic`. `steps`: the limit of operations to look
    through."""

    generic: Any
    known: KnownTensors
    steps: int

    def affine(self, value: Any) -> _Affine | None:
        """The value as an affine function of a byte; None if it is not."""
        operation = ops.defining(value)
        if operation is None:
            return self._of_argument(value)
        if operation.parent != self.generic:
            return None
        name, operands = operation.name, list(operation.operands)
        if name in _WIDENING:
            inner = self.affine(operands[0])
            unsigned = _WIDENING[name]
            if inner is None or inner.unsigned is None:
                return inner and replace(inner, unsigned=unsigned)
            return None if unsigned and inner.range[0] < 0 else inner
        if name in ("arith.subi", "arith.subf"):
            return self._shifted(operands[0], operands[1], 1)
        if name in ("arith.addi", "arith.addf"):
            return self._shifted(operands[0], operands[1], -1) or self._shifted(
                operands[1], operands[0], -1
            )
        if name == "arith.mulf":
            return self._scaled(*operands) or self._scaled(*operands[::-1])
        return None

    def _of_argument(self, argument: Any) -> _Affine | None:
        number = self._number_of(argument)
        if number is None:
            return None
        operand, map_ = self.generic.operands[number], maps_of(self.generic)[number]
        if not isinstance(operand.type, ir.RankedTensorType):
            return None
        if map_ != ir.AffineMap.get_identity(map_.n_dims):
            return None
        ones = [1] * operand.type.rank
        byte = _Affine(operand, None, np.zeros(ones), np.ones(ones))
        is_integer = isinstance(argument.type, ir.IntegerType)
        if is_integer and argument.type.width <= _BYTE:
            return byte if argument.type.width == _BYTE else None
        inner = dequantized(operand, self.known, self.steps - 1)
        if inner is not None:
            return None if inner.moves else inner.affine
        # Front ends may store bytes in wider integers.
        if not is_integer:
            return None
        least, largest = range_of(operand, self.steps)
        if least >= 0 and largest <= 255:
            return replace(byte, unsigned=True)
        if least >= -(1 << _BYTE - 1) and largest < 1 << _BYTE - 1:
            return replace(byte, unsigned=False)
        if least >= -(1 << 2 * _BYTE - 1) and largest < 1 << 2 * _BYTE - 1:
            return replace(byte, unsigned=False, limits=(least, largest))
        return None

    @property
    def inputs(self) -> list[Any]:
        return ops.operand_groups(self.generic)[0]

    def _number_of(self, argument: Any) -> int | None:
        """The number of the input that the argument is an element of; None for other arguments."""
        arguments = list(self.generic.regions[0].blocks[0].arguments)[: len(self.inputs)]
        return arguments.index(argument) if argument in arguments else None

    def _shifted(self, value: Any, by: Any, sign: int) -> _Affine | None:
        number = self.number(by)
        inner = None if number is None else self.affine(value)
        # Once scaled, the value is not an integer.
        if inner is None or number is None or not (inner.scale == 1).all():
            return None
        if not (np.isfinite(number) & (number == np.round(number))).all():
            return None
        moved = replace(inner, zero=inner.zero + sign * number.astype(np.float64))
        if not isinstance(value.type, ir.IntegerType):
            return moved
        least, largest = range_of_type(value.type)
        return moved if least <= moved.range[0] and moved.range[1] <= largest else None

    def _scaled(self, value: Any, by: Any) -> _Affine | None:
        number = self.number(by)
        inner = None if number is None else self.affine(value)
        if inner is None or number is None or not np.isfinite(number).all():
            return None
        return replace(inner, scale=inner.scale * number.astype(np.float64))

    def number(self, value: Any) -> np.ndarray | None:
        """The value in all iterations, with one dimension for each loop, of its size or 1; None if
        it is unknown or there are no iterations."""
        rank = maps_of(self.generic)[0].n_dims
        operation = ops.defining(value)
        if operation is not None and operation.parent == self.generic:
            found = [self.number(operand) for operand in operation.operands]
            arrays = [one for one in found if one is not None]
            return apply(operation, arrays) if arrays and len(arrays) == len(found) else None
        if operation is not None:
            array = self.known.of(value)
            # A value that is not a scalar is a tensor from which the body extracts elements.
            return array.reshape([1] * rank) if array is not None and array.ndim == 0 else None
        number = self._number_of(value)
        if number is None:
            return None
        array, map_ = self.known.of(self.inputs[number]), maps_of(self.generic)[number]
        if array is None or array.size == 0 or not map_.is_projected_permutation:
            return None
        loops = [ir.AffineDimExpr(place).position for place in map_.results]
        shape = [1] * rank
        for loop, size in zip(loops, array.shape, strict=True):
            shape[loop] = size
        return _without_repeats(array.transpose(np.argsort(loops)).reshape(shape))
