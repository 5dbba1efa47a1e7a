"""A matrix with a vector, seen as a product of matrices: the vector is A's one row, the result C's.

Of a batch, each matrix has a vector of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.mlir import ir


def vector_roles(
    places: Sequence[Sequence[int]], reduced: Sequence[bool]
) -> tuple[int, bool, bool] | None:
    """Of the loops that the dimensions of both operands and of the result are (`places`), and of
    those that add (`reduced`): which operand is the vector, whether the other one is a transposed
    B, and whether there is a batch. None if it is no such product."""
    batched = len(reduced) == 3
    rank = 1 + batched
    if len(reduced) != rank + 1 or sum(reduced) != 1 or len(places[2]) != rank:
        return None
    ranks = [len(place) for place in places[:2]]
    if sorted(ranks) != [rank, rank + 1]:
        return None
    if batched and len({place[0] for place in places}) != 1:
        return None
    which = ranks.index(rank)
    vector, matrix, result = (
        list(place[batched:]) for place in (places[which], places[1 - which], places[2])
    )
    depth = reduced.index(True)
    if vector != [depth] or result == [depth] or sorted(matrix) != sorted([depth, *result]):
        return None
    return which, matrix[1] == depth, batched


def row_type(type_: Any) -> Any:
    """The type of a view of a vector, or of one for each of a batch, with a dimension for its one
    row."""
    shape, (strides, offset) = list(type_.shape), type_.get_strides_and_offset()
    shape.insert(-1, 1)
    layout = None
    if type_.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank)):
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        count = shape[-1]
        length = unknown if count == ir.ShapedType.get_dynamic_size() else count * strides[-1]
        layout = ir.StridedLayoutAttr.get(offset, [*strides[:-1], length, strides[-1]])
    place = ir.Location.unknown(type_.context)
    return ir.MemRefType.get(shape, type_.element_type, layout, loc=place)


def row_view(name: str, source: str, type_: Any) -> list[str]:
    """Lines that make the view `name` of `source`, a vector of `type_`."""
    lines, sizes = [], []
    for dimension in range(type_.rank):
        if not type_.is_dynamic_dim(dimension):
            sizes.append(str(type_.shape[dimension]))
            continue
        number, size = f"{name}_at{dimension}", f"{name}_size{dimension}"
        lines.append(f"{number} = arith.constant {dimension} : index")
        lines.append(f"{size} = memref.dim {source}, {number} : {type_}")
        sizes.append(size)
    groups = "[[0, 1]]" if type_.rank == 1 else "[[0], [1, 2]]"
    shape = ", ".join([*sizes[:-1], "1", sizes[-1]])
    view = row_type(type_)
    lines.append(
        f"{name} = memref.expand_shape {source} {groups} output_shape [{shape}] "
        f": {type_} into {view}"
    )
    return lines
