"""The elements that the windows of a convolution or pooling read."""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir, linalg


def window_maps(operation: Any) -> list[Any]:
    """The indexing maps of a linalg operation, named or not. Empty for another operation."""
    if not operation.name.startswith("linalg.") or len(operation.regions) != 1:
        return []
    return [ir.AffineMapAttr(map_).value for map_ in linalg.get_indexing_maps(operation) or ()]


def tensor_operands(operation: Any, maps: list[Any]) -> list[tuple[int, Any, Any]]:
    """The index, the value and the map of each tensor operand."""
    return [
        (i, operand, map_)
        for i, (operand, map_) in enumerate(zip(operation.operands, maps, strict=False))
        if isinstance(operand.type, ir.RankedTensorType)
    ]


def extents_of(operation: Any, maps: list[Any]) -> dict[int, int]:
    """The number of iterations of each loop for which an operand's type gives it."""
    return {
        result.position: size
        for _, operand, map_ in tensor_operands(operation, maps)
        for result, size in zip(map_.results, sizes_of(operand), strict=True)
        if isinstance(result, ir.AffineDimExpr) and size is not None
    }


def sizes_of(tensor: Any) -> list[int | None]:
    """The sizes of a tensor; None for a dynamic size."""
    type_ = tensor.type
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def is_monotone(expression: Any) -> bool:
    """Whether its value at the last point of the loops is the largest."""
    if isinstance(expression, ir.AffineConstantExpr):
        return bool(expression.value >= 0)
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return is_monotone(expression.lhs) and is_monotone(expression.rhs)
    return isinstance(expression, ir.AffineDimExpr)


def largest_index(expression: Any, extents: dict[int, int]) -> int | None:
    """The value at the last point of the loops; None where the size of one is not known."""
    if isinstance(expression, ir.AffineConstantExpr):
        return int(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        extent = extents.get(expression.position)
        return None if extent is None else extent - 1
    left, right = (largest_index(part, extents) for part in (expression.lhs, expression.rhs))
    if left is None or right is None:
        return None
    return left + right if isinstance(expression, ir.AffineAddExpr) else left * right
