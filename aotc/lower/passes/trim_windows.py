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
from aotc.lower.tensors.windows import (
    extents_of,
    is_monotone,
    largest_index,
    sizes_of,
    tensor_operands,
    window_maps,
)
from aotc.mlir import ir
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
        maps = window_maps(operation)
        # The canonicalizer does this if each result of the maps is a single loop.
        if not all(map_.is_projected_permutation for map_ in maps):
            _declare_sizes(operation, maps)
            _trim(operation, maps, sizes)
        for result in operation.results:
            if isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape:
                sizes.all_of(result)


def _declare_sizes(operation: Any, maps: list[Any]) -> None:
    """Casts operands to types with the sizes that the types of other operands give."""
    extents = extents_of(operation, maps)
    results = list(operation.results)
    first_output = len(maps) - len(results)
    for i, operand, map_ in tensor_operands(operation, maps):
        sizes = sizes_of(operand)
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
    operands, extents = tensor_operands(operation, maps), extents_of(operation, maps)
    for i, operand, map_ in operands:
        declared = sizes_of(operand)
        with operation.location, ir.InsertionPoint(operation):
            read = [
                size if _is_whole(result, extents) else _read_size(result, size, extents, operands)
                for result, size in zip(map_.results, declared, strict=True)
            ]
            for dimension, size in enumerate(read):
                # A slice of the whole tensor would hide its layout from later passes.
                if isinstance(size, ir.Value) and _is_all(
                    size, sizes, sizes.of(operand, dimension)
                ):
                    read[dimension] = declared[dimension]
            # A value is a size that differs from the declared one.
            if any(
                isinstance(one, ir.Value) or one != size
                for one, size in zip(read, declared, strict=True)
            ):
                operation.operands[i] = _first(operand, read)


def _is_whole(expression: Any, extents: dict[int, int]) -> bool:
    """Whether the expression contains no loop of one iteration, so that nothing is trimmed."""
    if isinstance(expression, ir.AffineDimExpr):
        return True
    return all(extents.get(position) != 1 for position in loops_in(expression))


def _is_all(read: Any, sizes: Sizes, declared: Any) -> bool:
    """Whether `read`, a result of `_create_read_size`, is the declared size. A size is never
    negative, also if it is a value of which nothing is known."""
    greatest: Any = ops.defining(read)
    return declared in (sizes.value(read), sizes.value(greatest.operands[0]))


def _read_size(
    expression: Any, size: int | None, extents: dict[int, int], operands: list[Any]
) -> Any:
    """The part of a dimension of `size` that is read: an int, or an SSA value if it is dynamic."""
    if not is_monotone(expression):
        return size
    known = largest_index(expression, extents)
    if known is None:
        return _create_read_size(expression, operands)
    return known + 1 if size is None else min(size, known + 1)


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
