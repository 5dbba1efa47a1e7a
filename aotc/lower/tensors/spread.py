"""A `linalg.generic` that copies elements to where a map says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir


def create_spread(
    source: Any, type_: Any, map_: Any, sizes: Sequence[Any] = (), cast: str = ""
) -> Any:
    """A tensor of `type_`, and of `sizes` where that does not say them, with the elements of
    `source`, a tensor or a scalar, that `map_` says, at the insertion point. `cast`: the operation
    that converts each element, where they have another type."""
    empty = ops.create("tensor.empty", list(sizes), [type_]).result
    maps = [map_, ir.AffineMap.get_identity(type_.rank)]
    generic = ops.create_generic([source, empty], maps, ["parallel"] * type_.rank)
    block = generic.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        value = block.arguments[0]
        given = ops.unary(cast, value, type_.element_type) if cast else value
        ops.create("linalg.yield", [given])
    return generic.result
