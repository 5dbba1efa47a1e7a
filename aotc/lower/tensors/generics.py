"""`linalg.generic` on tensors: what it reads, and the simplest one made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir

RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")


def maps_of(generic: Any) -> list[Any]:
    """The indexing map of each operand."""
    return [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(generic.attributes["indexing_maps"])]


def has_reduction(generic: Any) -> bool:
    kinds = ir.ArrayAttr(generic.attributes["iterator_types"])
    return any("reduction" in str(kind) for kind in kinds)


def origin(value: Any) -> Any:
    """The tensor as it was made, before it was reshaped."""
    while (owner := ops.defining(value)) is not None and owner.name in RESHAPES:
        value = owner.operands[0]
    return value


def body_of(generic: Any) -> list[Any]:
    """The operations on elements, the last of which yields."""
    return [op.operation for op in generic.regions[0].blocks[0].operations]


def turning_loops(generic: Any, operand: int) -> set[int]:
    """The loops along the operand's dimensions that are not known to turn once alone."""
    type_ = generic.operands[operand].type
    return {
        expression.position
        for dimension, expression in enumerate(maps_of(generic)[operand].results)
        if isinstance(expression, ir.AffineDimExpr)
        and (type_.is_dynamic_dim(dimension) or type_.get_dim_size(dimension) != 1)
    }


def create_spread(source: Any, type_: Any, map_: Any, sizes: Sequence[Any] = ()) -> Any:
    """A tensor of `type_`, and of `sizes` where that does not say them, with the elements of
    `source`, a tensor or a scalar, that `map_` says, at the insertion point."""
    empty = ops.create("tensor.empty", list(sizes), [type_]).result
    maps = [map_, ir.AffineMap.get_identity(type_.rank)]
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = ops.create(
        "linalg.generic",
        [source, empty],
        [type_],
        {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
            "iterator_types": ir.ArrayAttr.get([parallel] * type_.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    element = type_.element_type
    block = generic.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        ops.create("linalg.yield", [block.arguments[0]])
    return generic.result
