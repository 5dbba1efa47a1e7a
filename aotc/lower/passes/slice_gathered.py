"""`aotc-slice-gathered`: slices a result of which only a range of indices is gathered.

Attention with relative positions, as DeBERTa's, multiplies by the vectors of all 1024 distances,
and then gathers those of the distances between the tokens there are: 127 with 64 tokens. The
indices are computed from loop indices and constants, so that their ranges are known. The gathers
read a slice, which `aotc-slice-producers` moves to the operands of what computes the result.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Any

from aotc import ops
from aotc.analysis.generics import RESHAPES
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors import slices
from aotc.lower.tensors.integer_ranges import Range, range_of_scalar, ranges_in
from aotc.mlir import ir

# The limit of operations that the range analysis looks through. Logarithmic buckets of distances
# are some twenty operations.
_MOST_STEPS = 40
# A smaller part is left out: it saves less than it may cost to read rows of a slice.
_LEAST_LEFT_OUT = 2
# Slices are widened to a multiple of this many elements, of which tiles and vectors are made.
_MULTIPLE = 16

# The gathers of a result, and the range of each index.
_Gathered = tuple[list[Any], list[Range]]


class SliceGathered(OwnPass, frozen=True):
    """Runs in front of `aotc-slice-producers`."""

    name = "aotc-slice-gathered"
    reason: str = "of results that are gathered by indices in a known range, that range is computed"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            # All ranges are found before the IR is changed: they are kept by value.
            found: dict[Any, Range] = {}
            gathered = {
                producer.results[0]: one
                for producer in ops.find(lowering.module.operation, "linalg.generic", *RESHAPES)
                if len(producer.results) == 1 and (one := _gathered(producer, found))
            }
            for tensor, (gathers, ranges) in gathered.items():
                part = _part(tensor.type.shape, ranges)
                if part is not None:
                    _slice(tensor, part, gathers)


def _gathered(producer: Any, found: dict[Any, Range]) -> _Gathered | None:
    """The gathers that are all readers of the operation's result; None if it has other readers."""
    type_ = producer.results[0].type
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is not None:
        return None
    gathers = [use.owner.operation for use in producer.results[0].uses]
    if not type_.has_static_shape or not gathers:
        return None
    if any(one.name != "tensor.extract" for one in gathers):
        return None
    generics = [ops.enclosing(one, "linalg.generic") for one in gathers]
    if any(one is None or one.block != producer.block for one in generics):
        return None
    ranges = [_ranges_of_indices(*one, found) for one in zip(gathers, generics, strict=True)]
    return gathers, [reduce(_hull, of_dimension) for of_dimension in zip(*ranges, strict=True)]


def _ranges_of_indices(gather: Any, generic: Any, found: dict[Any, Range]) -> list[Range]:
    known = ranges_in(generic, _MOST_STEPS, found)
    _, *indices = gather.operands
    return [range_of_scalar(index, known, _MOST_STEPS, found) for index in indices]


def _hull(left: Range, right: Range) -> Range:
    return min(left[0], right[0]), max(left[1], right[1])


def _part(shape: list[int], ranges: list[Range]) -> slices.Slice | None:
    """The slice of a tensor that indices in these ranges read, if it is small enough."""
    part = []
    for size, (least, largest) in zip(shape, ranges, strict=True):
        if least < 0 or largest >= size:
            part.append(slices.whole(size))
            continue
        count = min(size, -(-(largest + 1 - least) // _MULTIPLE) * _MULTIPLE)
        part.append(slices.Range(min(least, size - count), count, 1))
    read = prod(one.size for one in part)
    return tuple(part) if read * _LEAST_LEFT_OUT <= prod(shape) else None


def _slice(tensor: Any, part: slices.Slice, gathers: list[Any]) -> None:
    """Makes the gathers read this slice of the tensor."""
    producer = tensor.owner
    with producer.location, ir.InsertionPoint.after(producer):
        made = slices.extract(tensor, part)
    for gather in gathers:
        with gather.location, ir.InsertionPoint(gather):
            gather.operands[0] = made
            for i, one in enumerate(part, start=1):
                if one.offset:
                    offset = ops.constant_index(one.offset)
                    gather.operands[i] = ops.index_op("arith.subi", gather.operands[i], offset)
