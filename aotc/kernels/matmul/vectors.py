"""A matrix with a vector, seen as a matmul: the vector is A's one row, the result C's.

Of a batch, each matrix has a vector of its own.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir


def row_type(type_: Any) -> Any:
    """The type of a view of a vector, or of one for each of a batch, with a dimension for its one
    row."""
    shape, (strides, offset) = list(type_.shape), type_.get_strides_and_offset()
    shape.insert(-1, 1)
    layout = None
    # By the map: `strided<[1]>`, of a row that is sliced, is no other layout than none.
    if type_.affine_map != ir.AffineMap.get_identity(type_.rank):
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        count = shape[-1]
        length = unknown if count == ir.ShapedType.get_dynamic_size() else count * strides[-1]
        layout = ir.StridedLayoutAttr.get(offset, [*strides[:-1], length, strides[-1]])
    place = ir.Location.unknown(type_.context)
    return ir.MemRefType.get(shape, type_.element_type, layout, loc=place)


def as_row(vector: Any) -> Any:
    """That view at the insertion point."""
    type_ = ir.MemRefType(vector.type)
    unknown = ir.ShapedType.get_dynamic_size()
    sizes = ops.dynamic_sizes(vector)
    known = [
        unknown if type_.is_dynamic_dim(dimension) else type_.shape[dimension]
        for dimension in range(type_.rank)
    ]
    known.insert(-1, 1)
    groups = [[0, 1]] if type_.rank == 1 else [[0], [1, 2]]
    attributes = {
        "reassociation": ops.reassociation(groups),
        "static_output_shape": ir.DenseI64ArrayAttr.get(known),
    }
    view = row_type(type_)
    return ops.create("memref.expand_shape", [vector, *sizes], [view], attributes).result
