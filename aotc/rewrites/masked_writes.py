"""Masked `vector.transfer_write`s of some dimensions of a buffer → writes of all of them.

Upstream adds a buffer's missing dimensions to the vector as dimensions of one element, but to the
mask behind its last dimension, also if they are before it in the buffer: a mask of 1x6 for the
dimensions 0 and 2 becomes one of 1x6x1 instead of 1x1x6, which the verifier rejects.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_BUFFER, _MASK = 1, -1  # operands of a masked transfer_write
_MASK_SEGMENT = 3


def expand_masked_writes(module: Any) -> None:
    """Rewrites these writes under `module` in place."""
    with module.context:
        for write in ops.find(module, "vector.transfer_write"):
            segments = ir.DenseI32ArrayAttr(write.attributes["operandSegmentSizes"])
            if list(segments)[_MASK_SEGMENT] == 1:
                _expand(write)


def _expand(write: Any) -> None:
    written = _dimensions(write)
    rank = write.operands[_BUFFER].type.rank
    missing = [i for i in range(min(written, default=rank), rank) if i not in written]
    if not missing:
        return
    vector, mask = write.operands[0], write.operands[len(write.operands) + _MASK]
    sizes = iter(mask.type.shape)
    every = sorted([*written, *missing])
    mask_shape = [1 if i in missing else next(sizes) for i in every]
    with write.location, ir.InsertionPoint(write):
        write.operands[0] = _reshaped(vector, [1] * len(missing) + list(vector.type.shape))
        write.operands[len(write.operands) + _MASK] = _reshaped(mask, mask_shape)
    results = [ir.AffineExpr.get_dim(i) for i in (*missing, *written)]
    write.attributes["permutation_map"] = ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))
    in_bounds = [ir.BoolAttr.get(value=True)] * len(missing)
    in_bounds += ir.ArrayAttr(write.attributes["in_bounds"])
    write.attributes["in_bounds"] = ir.ArrayAttr.get(in_bounds)


def _dimensions(write: Any) -> list[int]:
    """The buffer's dimension that each dimension of the vector is written along."""
    map_ = ir.AffineMapAttr(write.attributes["permutation_map"]).value
    return [ir.AffineDimExpr(one).position for one in map_.results]


def _reshaped(vector: Any, shape: list[int]) -> Any:
    type_ = ir.VectorType.get(shape, vector.type.element_type)
    return ops.create("vector.shape_cast", [vector], [type_]).result
