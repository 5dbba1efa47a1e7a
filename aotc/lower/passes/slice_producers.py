"""`aotc-slice-producers`: computes the part of a result that is read, where all readers read one
slice of it.

The slice moves from the result to the operands, and what is outside of it is not computed at all.
(`aotc-slice-elementwise` moves elementwise operations behind several slices that are all needed.)
A language model predicts the next word from the last row, and a classifier reads the row of its
class token: of all rows of the last layer, the operations behind its attention need to compute that
one. So the slice becomes one of their operands: of those of matmuls, norms and elementwise
operations, and through reshapes, up to an operation whose result has another reader.
MLIR has patterns for this (bubbling up `extract_slice`), but no pass, and not for results that
several operations read.
"""

from __future__ import annotations

from math import prod
from typing import Any

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, maps_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors import slices
from aotc.mlir import ir

# A smaller part is left out: its slices would stand between operations that are one kernel.
_LEAST_LEFT_OUT = 2


class SliceProducers(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`, and attention is a function, which needs all
    of its keys."""

    name = "aotc-slice-producers"
    needs = ("aotc-outline-attention",)
    reason: str = "operations of whose result one slice is read compute that slice alone"

    def run(self, lowering: Lowering) -> None:
        names = ("linalg.generic", *RESHAPES)
        # Operations whose result is a mask, or the operands of such an operation: their constants
        # are no weights.
        of_masks: set[Any] = set()
        with lowering.module.context:
            # In reverse order: slicing an operation makes slices of its operands.
            for operation in reversed(ops.find(lowering.module.operation, *names)):
                part = _slice_read_of(operation)
                if part is None:
                    continue
                is_mask = operation in of_masks or _is_mask(operation.results[0])
                owners = {ops.defining(value) for value in operation.operands}
                with operation.location, ir.InsertionPoint(operation):
                    make = _slice_generic if operation.name == "linalg.generic" else _slice_reshape
                    made = make(operation, part, has_weights=not is_mask)
                if made is not None:
                    _replace(operation, made)
                    of_masks |= owners if is_mask else set()


def _is_mask(value: Any) -> bool:
    return str(value.type.element_type) == "i1"


def _slice_read_of(operation: Any) -> slices.Slice | None:
    """The slice that all readers of the operation's one result read, if it is small enough."""
    if len(operation.results) != 1:
        return None
    [result] = operation.results
    type_ = result.type
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is not None:
        return None
    readers = [use.owner.operation for use in result.uses]
    if not readers or any(
        one.name != "tensor.extract_slice" or one.block != operation.block for one in readers
    ):
        return None
    part, *others = map(slices.read_slice, readers)
    if part is None or any(other != part for other in others):
        return None
    read = prod(one.size for one in part)
    return part if 0 < read * _LEAST_LEFT_OUT <= prod(type_.shape) else None


def _slice_generic(generic: Any, part: slices.Slice, *, has_weights: bool) -> Any | None:
    """The slice of its result, by an operation on slices of its operands. `has_weights`: constants
    are weights."""
    maps = maps_of(generic)
    if not all(one.is_projected_permutation for one in maps):
        return None
    if not all(map(slices.is_movable, ops.content(generic))) or _reads_indices(generic):
        return None
    loops = dict(zip((one.position for one in maps[-1].results), part, strict=True))
    parts = [
        _part(value, map_, loops, has_rows=i == 0, has_weights=has_weights)
        for i, (value, map_) in enumerate(zip(generic.operands, maps, strict=True))
    ]
    if None in parts:
        return None
    made = generic.clone().operation
    for i, (value, one) in enumerate(zip(generic.operands, parts, strict=True)):
        if one:
            with ir.InsertionPoint(made):
                made.operands[i] = slices.extract(value, one)
    made.results[0].set_type(slices.sliced_type(generic.results[0].type, part))
    return made.results[0]


def _reads_indices(generic: Any) -> bool:
    return any(one.name == "linalg.index" for one in ops.walk(generic))


def _part(
    value: Any,
    map_: Any,
    loops: dict[int, slices.Range],
    *,
    has_rows: bool,
    has_weights: bool,
) -> slices.Slice | None:
    """The slice of an operand that these ranges of loops read. None if it is a part of a constant:
    a weight may be packed, shared or replaced as a whole. Consecutive rows of an operand that
    `has_rows`, as the first one of a product, are read in place."""
    if not isinstance(value.type, ir.RankedTensorType):
        return ()
    if not value.type.has_static_shape or value.type.encoding is not None:
        return None
    positions = [one.position for one in map_.results]
    part = tuple(
        loops.get(loop, slices.whole(size))
        for loop, size in zip(positions, value.type.shape, strict=True)
    )
    is_whole = part == tuple(map(slices.whole, value.type.shape))
    if is_whole or not (has_weights and _is_of_constant(value)):
        return part
    are_rows = part[1:] == tuple(map(slices.whole, value.type.shape[1:])) and part[0].stride == 1
    return part if has_rows and are_rows and _keeps_rows(value) else None


def _is_of_constant(value: Any) -> bool:
    """Whether the tensor is a constant, reshaped, transposed or converted; one with a single number
    is as good as none, and so are the sums of a constant's rows."""
    while (owner := ops.defining(value)) is not None and not ops.is_constant(value):
        if owner.name == "linalg.generic":
            inputs, _ = ops.operand_groups(owner)
            if len(inputs) != 1 or not isinstance(inputs[0].type, ir.RankedTensorType):
                return False
            if has_reduction(owner):
                return False
        elif owner.name not in RESHAPES:
            return False
        value = owner.operands[0]
    number = ops.known_constant(value)
    return number is not None and not (isinstance(number, ir.DenseElementsAttr) and number.is_splat)


def _keeps_rows(value: Any) -> bool:
    """Whether the tensor is a constant, converted at most."""
    while (owner := ops.defining(value)) is not None and owner.name == "linalg.generic":
        if not all(one == ir.AffineMap.get_identity(one.n_dims) for one in maps_of(owner)):
            return False
        value = owner.operands[0]
    return ops.is_constant(value)


def _slice_reshape(reshape: Any, part: slices.Slice, *, has_weights: bool) -> Any | None:
    """The slice of its result, reshaped from one of its operand."""
    source = reshape.operands[0]
    if not source.type.has_static_shape or (has_weights and _is_of_constant(source)):
        return None
    groups = ops.groups_of(reshape)
    read: list[slices.Range] = []
    for i, group in enumerate(groups):
        ranges: slices.Slice | None
        if reshape.name == "tensor.expand_shape":
            shape = [reshape.results[0].type.shape[dimension] for dimension in group]
            one = slices.collapsed([part[dimension] for dimension in group], shape)
            ranges = None if one is None else (one,)
        else:
            ranges = slices.expanded(part[i], [source.type.shape[dimension] for dimension in group])
        if ranges is None:
            return None
        read += ranges
    if not groups:
        return None
    type_ = slices.sliced_type(reshape.results[0].type, part)
    attributes = {"reassociation": reshape.attributes["reassociation"]}
    if reshape.name == "tensor.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(type_.shape))
    made = slices.extract(source, tuple(read))
    return ops.create(reshape.name, [made], [type_], attributes).result


def _replace(operation: Any, made: Any) -> None:
    """Puts `made` in the place of all slices of the operation's result."""
    for use in list(operation.results[0].uses):
        reader = use.owner.operation
        with reader.location, ir.InsertionPoint(reader):
            same = slices.drop_units(made, reader.results[0].type)
        reader.results[0].replace_all_uses_with(same)
        ops.erase(reader)
    ops.erase(operation)
