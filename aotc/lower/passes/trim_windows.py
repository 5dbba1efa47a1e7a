"""`aotc-trim-windows`: trims the inputs of convolutions and poolings to what their windows read.

If the output of such an operation has size 1 along a dimension, MLIR's linalg-fold-unit-extent-dims
drops that dimension. The input's size is then implied by the window's size alone. An input that is
larger than the window would no longer match, so it is trimmed before. The same pass takes the loops
of one iteration from the types of the operands, so a size that the type of one operand gives is
declared in the types of all others.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import loops_in
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.size_polynomials import Facts
from aotc.lower.tensors.size_values import Sizes
from aotc.mlir import ir, linalg
from aotc.slices import extract_slice


class TrimWindows(OwnPass, frozen=True):
    name = "aotc-trim-windows"
    reason: str = "an input is trimmed to what its windows read, so that the sizes agree"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for function in ops.find(lowering.module.operation, "func.func"):
                if not ops.is_declaration(function):
                    _trim_in(function)


def _trim_in(function: Any) -> None:
    sizes = Sizes(function, Facts())
    for operation in ops.walk(function):
        if operation.name.startswith("linalg.") and len(operation.regions) == 1:
            attributes = linalg.get_indexing_maps(operation)
            maps = [ir.AffineMapAttr(map_).value for map_ in attributes or ()]
            # The canonicalizer does this if each result of the maps is a single loop.
            if not all(map_.is_projected_permutation for map_ in maps):
                _declare_sizes(operation, maps)
                _trim(operation, maps, sizes)
        for result in operation.results:
            if isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape:
                sizes.all_of(result)


def _tensors(operation: Any, maps: list[Any]) -> list[tuple[int, Any, Any]]:
    """The index, the value and the map of each tensor operand."""
    return [
        (i, operand, map_)
        for i, (operand, map_) in enumerate(zip(operation.operands, maps, strict=False))
        if isinstance(operand.type, ir.RankedTensorType)
    ]


def _extents(operation: Any, maps: list[Any]) -> dict[int, int]:
    """The number of iterations of each loop for which an operand's type gives it."""
    return {
        result.position: size
        for _, operand, map_ in _tensors(operation, maps)
        for result, size in zip(map_.results, _sizes(operand), strict=True)
        if isinstance(result, ir.AffineDimExpr) and size is not None
    }


def _declare_sizes(operation: Any, maps: list[Any]) -> None:
    """Casts operands to types with the sizes that the types of other operands give."""
    extents = _extents(operation, maps)
    results = list(operation.results)
    first_output = len(maps) - len(results)
    for i, operand, map_ in _tensors(operation, maps):
        sizes = _sizes(operand)
        known = [
            extents.get(one.position)
            if size is None and isinstance(one, ir.AffineDimExpr)
            else size
            for one, size in zip(map_.results, sizes, strict=True)
        ]
        if known == sizes:
            continue
        with operation.location, ir.InsertionPoint(operation):
            type_ = _with_sizes(operand.type, known)
            operation.operands[i] = ops.create("tensor.cast", [operand], [type_]).result
        if i >= first_output:
            result = results[i - first_output]
            before = result.type
            result.set_type(type_)
            with operation.location, ir.InsertionPoint.after(operation):
                back = ops.create("tensor.cast", [result], [before])
            result.replace_all_uses_except(back.result, back)


def _trim(operation: Any, maps: list[Any], sizes: Sizes) -> None:
    operands, extents = _tensors(operation, maps), _extents(operation, maps)
    for i, operand, map_ in operands:
        declared = _sizes(operand)
        with operation.location, ir.InsertionPoint(operation):
            read = [
                size if _is_whole(result, extents) else _read_size(result, size, extents, operands)
                for result, size in zip(map_.results, declared, strict=True)
            ]
            for dimension, size in enumerate(read):
                # A slice of the whole tensor would hide its layout from later passes.
                if isinstance(size, ir.Value) and sizes.value(size) == sizes.of(operand, dimension):
                    read[dimension] = declared[dimension]
            # A value is a size that differs from the declared one.
            if any(
                isinstance(one, ir.Value) or one != size
                for one, size in zip(read, declared, strict=True)
            ):
                operation.operands[i] = _first(operand, read)


def _sizes(tensor: Any) -> list[int | None]:
    """The sizes of a tensor; None for a dynamic size."""
    type_ = tensor.type
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def _is_whole(expression: Any, extents: dict[int, int]) -> bool:
    """Whether the expression contains no loop of one iteration, so that nothing is trimmed."""
    if isinstance(expression, ir.AffineDimExpr):
        return True
    return all(extents.get(position) != 1 for position in loops_in(expression))


def _read_size(
    expression: Any, size: int | None, extents: dict[int, int], operands: list[Any]
) -> Any:
    """The part of a dimension of `size` that is read: an int, or an SSA value if it is dynamic."""
    if not _is_monotone(expression):
        return size
    known = _largest(expression, extents)
    if known is None:
        return _create_read_size(expression, operands)
    return known + 1 if size is None else min(size, known + 1)


def _is_monotone(expression: Any) -> bool:
    """Whether its value at the last point of the loops is the largest."""
    if isinstance(expression, ir.AffineConstantExpr):
        return bool(expression.value >= 0)
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return _is_monotone(expression.lhs) and _is_monotone(expression.rhs)
    return isinstance(expression, ir.AffineDimExpr)


def _largest(expression: Any, extents: dict[int, int]) -> int | None:
    """The value at the last point of the loops; None where the size of one is not known."""
    if isinstance(expression, ir.AffineConstantExpr):
        return int(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        extent = extents.get(expression.position)
        return None if extent is None else extent - 1
    left, right = (_largest(part, extents) for part in (expression.lhs, expression.rhs))
    if left is None or right is None:
        return None
    return left + right if isinstance(expression, ir.AffineAddExpr) else left * right


def _create_read_size(expression: Any, operands: list[Any]) -> Any:
    """One more than the value at the last point of the loops."""
    loops = {
        result.position: (operand, i)
        for _, operand, map_ in operands
        for i, result in enumerate(map_.results)
        if isinstance(result, ir.AffineDimExpr)
    }
    read = sorted(loops_in(expression))
    lasts = [ir.AffineConstantExpr.get(0)] * (read[-1] + 1)
    for i, loop in enumerate(read):
        lasts[loop] = ir.AffineDimExpr.get(i) - 1
    last = expression.compose(ir.AffineMap.get(len(read), 0, lasts))
    map_ = ir.AffineMapAttr.get(ir.AffineMap.get(len(read), 0, [last + 1]))
    extents = [ops.dim(*loops[loop]) for loop in read]
    size = ops.create("affine.apply", extents, [ops.index()], {"map": map_}).result
    # Of a window without elements, it would be negative.
    return ops.binary("arith.maxsi", size, ops.constant_index(0))


def _with_sizes(type_: Any, sizes: list[int | None]) -> Any:
    unknown = ir.ShapedType.get_dynamic_size()
    shape = [unknown if size is None else size for size in sizes]
    return ir.RankedTensorType.get(shape, type_.element_type, type_.encoding)


def _first(tensor: Any, sizes: list[Any]) -> Any:
    """The part of a tensor from its beginning; None is all of a dimension."""
    read = [ops.dim(tensor, i) if size is None else size for i, size in enumerate(sizes)]
    type_ = _with_sizes(tensor.type, [one if isinstance(one, int) else None for one in sizes])
    return extract_slice(tensor, type_, [0] * len(sizes), read)
