"""Matrix-vector products as matmuls: the vector is the only row of A, and the result that of C.

In a batch, each matrix has its own vector.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir


def row_type(type_: Any) -> Any:
    """The type of a view of a vector, or of a batch of vectors, with a further dimension of size 1
    for its row."""
    shape, (strides, offset) = list(type_.shape), type_.get_strides_and_offset()
    shape.insert(-1, 1)
    layout = None
    # Layouts are compared as affine maps: `strided<[1]>`, the layout of a slice, is the identity.
    if type_.affine_map != ir.AffineMap.get_identity(type_.rank):
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        count = shape[-1]
        length = unknown if count == ir.ShapedType.get_dynamic_size() else count * strides[-1]
        layout = ir.StridedLayoutAttr.get(offset, [*strides[:-1], length, strides[-1]])
    place = ir.Location.unknown(type_.context)
    return ir.MemRefType.get(shape, type_.element_type, layout, loc=place)


def as_row(vector: Any) -> Any:
    """The view of type `row_type` of a vector, created at the insertion point."""
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
