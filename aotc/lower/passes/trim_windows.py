"""`aotc-trim-windows`: trims the inputs of convolutions and poolings to what their windows read.

If the output of such an operation has size 1 along a dimension, MLIR's linalg-fold-unit-extent-dims
drops that dimension. The input's size is then implied by the window's size alone. An input that is
larger than the window would no longer match, so it is trimmed before.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import loops_in
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir, linalg


class TrimWindows(OwnPass, frozen=True):
    name = "aotc-trim-windows"
    reason: str = "an input is trimmed to what its windows read, so that the sizes agree"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for operation in ops.walk(lowering.module.operation):
                if not operation.name.startswith("linalg.") or len(operation.regions) != 1:
                    continue
                maps = linalg.get_indexing_maps(operation)
                if maps is not None:
                    _trim(operation, [ir.AffineMapAttr(map_).value for map_ in maps])


def _trim(operation: Any, maps: list[Any]) -> None:
    operands = [
        (i, operand, map_)
        for i, (operand, map_) in enumerate(zip(operation.operands, maps, strict=False))
        if isinstance(operand.type, ir.RankedTensorType)
    ]
    extents = {
        result.position: size
        for _, operand, map_ in operands
        for result, size in zip(map_.results, _sizes(operand), strict=True)
        if isinstance(result, ir.AffineDimExpr) and size is not None
    }
    for i, operand, map_ in operands:
        sizes = _sizes(operand)
        read = [
            _read_size(result, size, extents)
            for result, size in zip(map_.results, sizes, strict=True)
        ]
        if read != sizes:
            with operation.location, ir.InsertionPoint(operation):
                operation.operands[i] = _first(operand, read)


def _sizes(tensor: Any) -> list[int | None]:
    """The sizes of a tensor; None for a dynamic size."""
    type_ = tensor.type
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def _read_size(expression: Any, size: int | None, extents: dict[int, int]) -> int | None:
    """The part of a dimension of `size` that the expression reads; `size` itself if no trimming is
    needed."""
    if isinstance(expression, ir.AffineDimExpr):
        return size
    if all(extents.get(position) != 1 for position in loops_in(expression)):
        return size
    last = _largest(expression, extents)
    if last is None:
        return size
    return last + 1 if size is None else min(size, last + 1)


def _largest(expression: Any, extents: dict[int, int]) -> int | None:
    """The expression's value at the last iteration of all loops, which is its maximum, as nothing
    in a window is negative. None for other forms of expressions."""
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value if expression.value >= 0 else None
    if isinstance(expression, ir.AffineDimExpr):
        extent = extents.get(expression.position)
        return None if extent is None else extent - 1
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        left, right = (_largest(part, extents) for part in (expression.lhs, expression.rhs))
        if left is None or right is None:
            return None
        return left + right if isinstance(expression, ir.AffineAddExpr) else left * right
    return None


def _first(tensor: Any, sizes: list[int | None]) -> Any:
    """The slice of a tensor that starts at 0 and has these sizes; None is the whole dimension."""
    rank, unknown = len(sizes), ir.ShapedType.get_dynamic_size()
    whole = [ops.dim(tensor, i) for i, size in enumerate(sizes) if size is None]
    shape = [unknown if size is None else size for size in sizes]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([0] * rank),
        "static_sizes": ir.DenseI64ArrayAttr.get(shape),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(whole), 0]),
    }
    result = ir.RankedTensorType.get(shape, tensor.type.element_type, tensor.type.encoding)
    operands = [tensor, *whole]
    return ops.create("tensor.extract_slice", operands, [result], attributes=attributes).result
