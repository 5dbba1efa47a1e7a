"""Accesses that are out of bounds of a buffer with a static shape whenever they are executed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc.analysis.extents import bounds_of, is_empty
from aotc.analysis.values import Known, evaluate, evaluate_map
from aotc.input.source import Source
from aotc.lower.checks.operations import Operations
from aotc.mlir import ir
from aotc.warnings import BuildWarning

# Operation → the operand number of the buffer; the indices follow it.
_ACCESSES = {
    "affine.load": 0,
    "affine.store": 1,
    "memref.atomic_rmw": 1,
    "memref.load": 0,
    "memref.store": 1,
    "tensor.extract": 0,
    "tensor.insert": 1,
    "vector.load": 0,
    "vector.store": 1,
}
_DIMENSIONS = ("memref.dim", "tensor.dim")
_SHAPED = (ir.MemRefType, ir.RankedTensorType)


def check_bounds(source: Source, operations: Operations) -> list[BuildWarning]:
    """Warnings for indices that are constant, or constant in a loop's first or last iteration, and
    for dimensions that do not exist."""
    found = [
        *(_check(source, access) for access in operations.named(*_ACCESSES)),
        *(_check_dimension(source, dim) for dim in operations.named(*_DIMENSIONS)),
    ]
    return [warning for warning in found if warning is not None]


def _check_dimension(source: Source, dim: Any) -> BuildWarning | None:
    shaped, dimension = dim.operands[0].type, evaluate(dim.operands[1])
    if dimension is None or not isinstance(shaped, _SHAPED) or 0 <= dimension < shaped.rank:
        return None
    text = f"{dim.name} asks for dimension {dimension} of {shaped}, which has {shaped.rank}"
    return BuildWarning.at(source, "out-of-bounds", dim.location, text)


def _check(source: Source, access: Any) -> BuildWarning | None:
    buffer = access.operands[_ACCESSES[access.name]]
    if not isinstance(buffer.type, _SHAPED):
        return None
    shape = list(buffer.type.shape)
    for known in ((), *_runs_of(access)):
        for axis, index in enumerate(_indices(access, known)):
            if index is None or buffer.type.is_dynamic_dim(axis) or 0 <= index < shape[axis]:
                continue
            verb = "reaches" if known else "has"
            return BuildWarning.at(
                source,
                "out-of-bounds",
                access.location,
                f"{access.name} {verb} index {index}, which is out of bounds for dimension {axis} "
                f"of {buffer.type}",
            )
    return None


def _indices(access: Any, known: Known) -> list[int | None]:
    operands = list(access.operands)[_ACCESSES[access.name] + 1 :]
    if access.name.startswith("affine."):
        return evaluate_map(access.attributes["map"].value, operands, known)
    return [evaluate(operand, known) for operand in operands]


def _runs_of(access: Any) -> Iterator[Known]:
    """Two executions of `access` that happen whenever its innermost loop is executed: the first and
    the last iteration of all loops around it. The search for loops ends at a condition, and at a
    loop that may be empty."""
    first: list[tuple[Any, int]] = []
    last: list[tuple[Any, int]] = []
    block = access.block
    is_sure = True
    while is_sure and len(block.region.blocks) == 1:
        loop = block.owner.operation
        bounds = bounds_of(loop)
        if bounds is None:
            break
        if any(map(is_empty, bounds)):
            return
        variables = zip(loop.regions[0].blocks[0].arguments, bounds, strict=False)
        for variable, (low, high, step) in variables:
            if low is None or high is None or step is None or high <= low or step <= 0:
                is_sure = False
                continue
            first.append((variable, low))
            last.append((variable, low + (high - low - 1) // step * step))
        block = loop.block
    if first:
        yield first
        yield last
