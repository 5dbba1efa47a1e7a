"""Replaces max pooling of dequantized tensors by max pooling of bytes, dequantized afterwards.

With a positive scale, the largest byte is the one that the largest number comes from. Bytes take a
quarter of the memory and vector width. A padding of -inf becomes the smallest byte, which the image
may contain as well. So each window must contain an element of the image, and must be known not to
be empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import (
    has_reduction,
    maps_of,
    reduction_loops,
    reduction_size,
)
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.lower.tensors.known_operations import NUMBERS
from aotc.lower.tensors.known_tensors import KnownTensors
from aotc.lower.tensors.narrow_integers import filled_with
from aotc.lower.tensors.quantized_matmuls import (
    dequantized,
    moved,
    padding_of,
    zero_byte,
)
from aotc.mlir import ir

_BYTE = 8
# The limit of operations to look through.
_MOST_STEPS = 12
_FLOATS = ("f32", "f64")


def fuse_quantized_pools(module: Any) -> None:
    """Changes `module`, whose named operations are `linalg.generic` on tensors, in place."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            if _is_maximum(generic) and (pool := _pool(generic)) is not None:
                with generic.location, ir.InsertionPoint(generic):
                    pool.replace()


class _Pool(Struct, frozen=True):
    """A max pooling whose elements come from `image`. `pad`: the operation that pads the image, or
    None."""

    generic: Any
    image: Any
    pad: Any | None

    def replace(self) -> None:
        generic, affine = self.generic, self.image.affine
        byte = ir.IntegerType.get_signless(_BYTE)
        least = 0 if affine.unsigned else -128
        zero = int(affine.zero.reshape(()))
        tensor = affine.source
        for move in self.image.moves:
            tensor = moved(tensor, move, zero)
        if self.pad is not None:
            tensor = moved(tensor, self.pad, least)
        _, *windows, start = generic.operands
        type_ = ir.RankedTensorType.get(list(start.type.shape), byte)
        none = ir.AffineMap.get(type_.rank, 0, [])
        least_bytes = create_broadcast(
            ops.constant(byte, least), type_, none, ops.dynamic_sizes(start)
        )
        name = "arith.maxui" if affine.unsigned else "arith.maxsi"
        pooled = ops.create_generic(
            [tensor, *windows, least_bytes],
            maps_of(generic),
            lambda *elements: ops.binary(name, elements[-1], elements[0]),
            reduction_loops(generic),
        )
        ops.replace(generic, [self._dequantized(pooled.result, zero)])

    def _dequantized(self, tensor: Any, zero: int) -> Any:
        affine, type_ = self.image.affine, self.generic.results[0].type
        element, scale = type_.element_type, float(affine.scale.reshape(()))
        moves, scales = ops.constant(element, float(zero)), ops.constant(element, scale)
        convert = "arith.uitofp" if affine.unsigned else "arith.sitofp"

        def dequantize(byte: Any) -> Any:
            difference = ops.binary("arith.subf", ops.unary(convert, byte, element), moves)
            return ops.binary("arith.mulf", difference, scales)

        return ops.create_elementwise([tensor], type_, ops.dynamic_sizes(tensor), dequantize)


def _is_maximum(generic: Any) -> bool:
    """Whether the operation is a max reduction of its first operand."""
    if not has_reduction(generic) or len(generic.results) != 1:
        return False
    block = generic.regions[0].blocks[0]
    operation, *others = ops.content(generic)[:-1] or [None]
    if operation is None or others or operation.name not in ("arith.maximumf", "arith.maxnumf"):
        return False
    element, start = block.arguments[0], list(block.arguments)[-1]
    is_yielded = ops.content(generic)[-1].operands[0] == operation.results[0]
    is_maximum = set(operation.operands) == {element, start} and element != start
    return is_yielded and is_maximum and str(start.type) in _FLOATS


def _pool(generic: Any) -> _Pool | None:
    """The pooling if its initial value is -inf and its elements are bytes with one scale; otherwise
    None."""
    known = KnownTensors()
    start = filled_with(generic.operands[len(generic.operands) - 1])
    least = None if start is None else known.of(start)
    if least is None or not np.isneginf(least).all():
        return None
    if not reduction_size(generic):
        return None  # the maximum of an empty window is -inf
    image, pad = generic.operands[0], ops.defining(generic.operands[0])
    found = None
    if pad is not None and pad.name == "linalg.generic" and not has_reduction(pad):
        found = padding_of(pad)
    if found is not None:
        select, extract = found
        fill = known.of(select.operands[2])
        if fill is None or not np.isneginf(fill).all() or not _contain_some(generic, extract):
            return None
        image = extract.operands[0]
    inner = dequantized(image, known, _MOST_STEPS)
    if inner is None or inner.affine.limits is not None:
        return None
    affine = inner.affine
    type_ = NUMBERS[str(image.type.element_type)]
    # Padding by 0 is the zero point as a byte.
    if affine.scale.size != 1 or zero_byte(affine) is None or not (affine.scale > 0).all():
        return None
    is_exact = (affine.scale.astype(type_) == affine.scale).all()
    limits = np.finfo(type_)
    is_normal = limits.tiny <= affine.scale.reshape(()) <= limits.max / (1 << _BYTE)
    is_byte = affine.source.type.element_type == ir.IntegerType.get_signless(_BYTE)
    if not (is_exact and is_normal and is_byte):
        return None
    return _Pool(generic, inner, None if found is None else pad)


def _contain_some(generic: Any, extract: Any) -> bool:
    """Whether each window is longer than the padding along each padded dimension."""
    padded, source = generic.operands[0].type, extract.operands[0].type
    if not (padded.has_static_shape and source.has_static_shape):
        return False
    maps, reductions = maps_of(generic), reduction_loops(generic)
    sizes: dict[int, int] = {}
    for value, map_ in list(zip(generic.operands, maps, strict=True))[1:]:
        for place, size in zip(map_.results, value.type.shape, strict=True):
            if isinstance(place, ir.AffineDimExpr):
                sizes[place.position] = size
    paddings = dict.fromkeys(range(padded.rank), 0)
    for axis, index in enumerate(list(extract.operands)[1:]):
        dimension = _dimension(index)
        if dimension is not None:
            paddings[dimension] = padded.shape[dimension] - source.shape[axis]
        elif source.shape[axis] != 1:
            return False
    return all(
        padding == 0 or 0 < padding < _length(place, reductions, sizes)
        for padding, place in zip(paddings.values(), maps[0].results, strict=True)
    )


def _dimension(index: Any) -> int | None:
    """The dimension of the padded tensor along which an index into the source varies."""
    operation = ops.defining(index)
    while operation is not None and operation.name in ("arith.select", "arith.subi"):
        place = 1 if operation.name == "arith.select" else 0
        operation = ops.defining(operation.operands[place])
    if operation is None or operation.name != "linalg.index":
        return None
    return int(ir.IntegerAttr(operation.attributes["dim"]).value)


def _length(place: Any, reductions: Any, sizes: dict[int, int]) -> int:
    """The number of adjacent elements that a window reads along the indexing expression; 0 if they
    are not adjacent."""
    words = str(place).replace("(", "").replace(")", "").split(" + ")
    found = [sizes.get(loop, 0) for loop in reductions if f"d{loop}" in words]
    return found[0] if len(found) == 1 else 0
