"""A `linalg.generic` that copies elements to where a map says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir


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
