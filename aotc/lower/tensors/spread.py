"""A `linalg.generic` made: any, and one that copies elements to where a map says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir


def sizes_of(tensor: Any, dimensions: Iterable[int] | None = None) -> list[Any]:
    """The sizes of a tensor, or of some of its dimensions, that its type does not say."""
    return [
        ops.create("tensor.dim", [tensor, ops.constant_index(i)], [ir.IndexType.get()]).result
        for i in (range(tensor.type.rank) if dimensions is None else dimensions)
        if tensor.type.is_dynamic_dim(i)
    ]


def create_generic(operands: Sequence[Any], maps: Sequence[Any], kinds: Sequence[str]) -> Any:
    """An operation whose last operand is what it writes, a tensor or a buffer, with a block that is
    yet to be filled. `kinds`: of each loop, parallel or reduction."""
    result = operands[-1].type
    generic = ops.create(
        "linalg.generic",
        list(operands),
        [] if isinstance(result, ir.MemRefType) else [result],
        {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands) - 1, 1]),
        },
        regions=1,
    )
    types = [getattr(one.type, "element_type", one.type) for one in operands]
    generic.regions[0].blocks.append(*types)
    return generic


def create_spread(
    source: Any, type_: Any, map_: Any, sizes: Sequence[Any] = (), cast: str = ""
) -> Any:
    """A tensor of `type_`, and of `sizes` where that does not say them, with the elements of
    `source`, a tensor or a scalar, that `map_` says, at the insertion point. `cast`: the operation
    that converts each element, where they have another type."""
    empty = ops.create("tensor.empty", list(sizes), [type_]).result
    maps = [map_, ir.AffineMap.get_identity(type_.rank)]
    generic = create_generic([source, empty], maps, ["parallel"] * type_.rank)
    block = generic.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        value = block.arguments[0]
        given = ops.unary(cast, value, type_.element_type) if cast else value
        ops.create("linalg.yield", [given])
    return generic.result
