"""A `linalg.generic` that copies elements to where a map says."""

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


def create_spread(
    source: Any, type_: Any, map_: Any, sizes: Sequence[Any] = (), cast: str = ""
) -> Any:
    """A tensor of `type_`, and of `sizes` where that does not say them, with the elements of
    `source`, a tensor or a scalar, that `map_` says, at the insertion point. `cast`: the operation
    that converts each element, where they have another type."""
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
    given = source.type.element_type if isinstance(source.type, ir.ShapedType) else source.type
    block = generic.regions[0].blocks.append(given, element)
    with ir.InsertionPoint(block):
        value = block.arguments[0]
        ops.create("linalg.yield", [ops.unary(cast, value, element) if cast else value])
    return generic.result
