"""Rewrites batched matmuls that share one matrix to matmuls of a view that broadcasts it.

The view has a batch dimension with a stride of 0, so that all families support the matmul. (A
shared B with contiguous rows of A is no batch: recognition collapses the rows of several
dimensions.)
"""

from __future__ import annotations

from typing import Any

from aotc.analysis.generics import maps_of, set_maps
from aotc.builder import Builder
from aotc.mlir import ir


def broadcast_shared_matrix(generic: Any) -> bool:
    """Rewrites the operation to read a view, which is inserted in front of it. Returns whether it
    is such a batched matmul."""
    maps = maps_of(generic)
    if len(maps) != 3 or maps[0].n_dims != 4:
        return False
    first = maps[2].results[0] if len(maps[2].results) == 3 else None
    ranks = [len(map_.results) for map_ in maps[:2]]
    if sorted(ranks) != [2, 3] or not isinstance(first, ir.AffineDimExpr):
        return False
    which = ranks.index(2)
    batch = ir.AffineDimExpr(first)
    if maps[1 - which].results[0] != first or batch in list(maps[which].results):
        return False
    # No kernel supports buffers in other memory spaces.
    if any(value.type.memory_space is not None for value in generic.operands):
        return False
    with generic.location, ir.InsertionPoint(generic):
        view = _view(generic.operands[which], generic.operands[2])
    generic.operands[which] = view
    loops = [batch, *maps[which].results]
    maps[which] = ir.AffineMap.get(maps[which].n_dims, 0, loops)
    set_maps(generic, maps)
    return True


def _view(matrix: Any, result: Any) -> Any:
    """The view that broadcasts the matrix along the result's first dimension, created at the
    insertion point."""
    b = Builder()
    type_, batched = ir.MemRefType(matrix.type), ir.MemRefType(result.type)
    strides, offset = type_.get_strides_and_offset()
    begin, steps = b.strides(matrix)
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = [
        b.dim(value, axis) if own.is_dynamic_dim(axis) else int(own.shape[axis])
        for value, own, axis in ((result, batched, 0), (matrix, type_, 0), (matrix, type_, 1))
    ]
    view = ir.MemRefType.get(
        [batched.shape[0], *type_.shape],
        type_.element_type,
        ir.StridedLayoutAttr.get(offset, [0, *strides]),
    )
    known, *distances = (
        found if own == unknown else int(own)
        for own, found in zip((offset, *strides), (begin, *steps), strict=True)
    )
    return b.reinterpret_cast(matrix, known, sizes, [0, *distances], view)
