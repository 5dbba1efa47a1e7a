"""`aotc-slice-elementwise`: computes an elementwise operation per slice if its result is read by
slices.

The operation moves from the whole tensor behind each of several slices, next to their readers.
(`aotc-slice-producers` moves one slice to the operands, where nothing else is read.)
A recurrence that is unrolled over time, such as that of a state-space model, reads one step at a
time of a tensor that is computed for all steps at once (`exp(dt * A)`, of batch x channels x steps
x states). MLIR fuses no operation through `tensor.extract_slice`, so the whole tensor would be
stored and loaded again. An operation on each slice is fused with its reader, and nothing is stored.
No element is computed twice, as the slices do not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import has_reduction, maps_of, origin
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors import slices
from aotc.mlir import ir
from aotc.rewrites.cloning import copy

# The code size of an elementary function, in arithmetic operations (a rough estimate).
_FUNCTION = 16
# The limit of the code that one reader gets for a slice, in the same unit: each reader has a copy.
_MOST_COPIED = 3 * _FUNCTION


class SliceElementwise(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-slice-elementwise"
    reason: str = "elementwise results that are read in slices are computed by the slices' readers"

    def run(self, lowering: Lowering) -> None:
        # Operation on a slice → the cost of the chain of such operations that its reader will
        # compute.
        copied: dict[Any, int] = {}
        with lowering.module.context:
            # In reverse order: slicing an operation makes slices of its operands.
            for generic in reversed(ops.find(lowering.module.operation, "linalg.generic")):
                found = _slices_of(generic) if _is_elementwise(generic) else None
                if not found:
                    continue
                below = max(copied.get(_reader_of(one), 0) for one in found)
                cost = below + sum(map(_cost, ops.content(generic)))
                if cost <= _MOST_COPIED:
                    for one in found:
                        copied[_compute(generic, one)] = cost
                    ops.erase(generic)


class _Slice(Struct):
    """A `tensor.extract_slice` with unit strides: its part of the tensor, and the dimensions that
    its result keeps. The dropped dimensions have size 1."""

    operation: Any
    part: slices.Slice
    kept: list[int]


def _is_elementwise(generic: Any) -> bool:
    """Whether the operation can be computed per slice.

    It computes each element of its one result from one element of each operand, and from nothing
    that may change before a slice is read. It is not fused into a matmul or reduction that computes
    an operand.
    """
    if has_reduction(generic) or len(generic.results) != 1:
        return False
    if not isinstance(generic.results[0].type, ir.RankedTensorType):
        return False
    *maps, result = maps_of(generic)
    if result != ir.AffineMap.get_identity(result.n_dims):
        return False
    if not all(isinstance(one, ir.AffineDimExpr) for map_ in maps for one in map_.results):
        return False
    *_, old = generic.regions[0].blocks[0].arguments
    if list(old.uses) or not all(map(slices.is_movable, ops.content(generic))):
        return False
    inputs, _ = ops.operand_groups(generic)
    return not any(map(_is_reduced, inputs))


def _is_reduced(value: Any) -> bool:
    owner = ops.defining(origin(value))
    if owner is None or not owner.name.startswith("linalg."):
        return False
    return owner.name != "linalg.generic" or has_reduction(owner)


def _slices_of(generic: Any) -> list[_Slice] | None:
    """The slices of the result, if they do not overlap and one elementwise operation reads each;
    None if the result has other users."""
    result = generic.results[0]
    found = []
    for use in result.uses:
        one = _slice(use.owner.operation)
        if one is None or not _has_elementwise_reader(one.operation, generic.block):
            return None
        found.append(one)
    shape = list(result.type.shape)
    partial = {i for one in found for i, of in enumerate(one.part) if of.size != shape[i]}
    if len(partial) != 1:
        return None
    [axis] = partial
    found.sort(key=lambda one: one.part[axis].offset)
    along = [one.part[axis] for one in found]
    if any(one.offset + one.size > other.offset for one, other in pairwise(along)):
        return None
    return found


def _slice(operation: Any) -> _Slice | None:
    if operation.name != "tensor.extract_slice":
        return None
    part = slices.read_slice(operation)
    if part is None or any(one.stride != 1 for one in part):
        return None
    kept: list[int] = []
    shape = list(operation.results[0].type.shape)
    for dimension, one in enumerate(part):
        if len(kept) < len(shape) and shape[len(kept)] == one.size:
            kept.append(dimension)
    return _Slice(operation, part, kept)


def _has_elementwise_reader(operation: Any, block: Any) -> bool:
    """Whether one operation in the same block reads the slice, each element once. A reader in a
    loop might compute it more than once."""
    uses = list(operation.results[0].uses)
    readers = [use.owner.operation for use in uses]
    if operation.block != block or len(readers) != 1 or readers[0].block != block:
        return False
    [reader] = readers
    if reader.name != "linalg.generic" or has_reduction(reader):
        return False
    inputs, _ = ops.operand_groups(reader)
    number = uses[0].operand_number
    return number < len(list(inputs)) and bool(maps_of(reader)[number].is_permutation)


def _reader_of(slice_: _Slice) -> Any:
    [use] = slice_.operation.results[0].uses
    return use.owner.operation


def _cost(operation: Any) -> int:
    return _FUNCTION if operation.name.startswith("math.") else 1


def _compute(generic: Any, slice_: _Slice) -> Any:
    """Computes a slice in place of its `extract_slice`, and returns the new operation."""
    kept, extract = slice_.kept, slice_.operation
    inputs, _ = ops.operand_groups(generic)
    maps = maps_of(generic)
    with generic.location, ir.InsertionPoint(extract):
        parts, part_maps = [], []
        for value, map_ in zip(inputs, maps, strict=False):
            along = [one.position for one in map_.results]
            parts.append(_part(value, along, slice_))
            dims = [ir.AffineDimExpr.get(kept.index(loop)) for loop in along if loop in kept]
            part_maps.append(ir.AffineMap.get(len(kept), 0, dims))
        type_ = extract.results[0].type
        made = ops.create_elementwise(parts, type_, [], partial(_body, generic), part_maps)
    extract.results[0].replace_all_uses_with(made)
    ops.erase(extract)
    return made.owner


def _body(generic: Any, *elements: Any) -> Any:
    """Clones the operation's body for these elements, and returns its result."""
    block = generic.regions[0].blocks[0]
    values = dict(zip(block.arguments, elements, strict=False))
    *operations, end = ops.content(generic)
    for operation in operations:
        copy(operation, values)
    [result] = end.operands
    return values.get(result, result)


def _part(value: Any, along: Sequence[int], slice_: _Slice) -> Any:
    """The part of an operand that the slice needs. `along`: the loop of each dimension of the
    operand."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    part = tuple(slice_.part[loop] for loop in along)
    kept = [i for i, loop in enumerate(along) if loop in slice_.kept]
    return slices.extract(value, part, kept)
