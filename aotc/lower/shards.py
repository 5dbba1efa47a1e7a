"""Partitions a module with the shard dialect: each process computes its part, and exchanges data by
MPI.

This is the first step of the lowering: arguments and results of entries become those of one
process.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.input.source import Source, input_error
from aotc.lower.passes.expand_mpi import declare
from aotc.mlir import ir
from aotc.rewrites.run import UNWATCHED, PassWatch, run_passes

_CHECK = "aotc_mpi_check_processes"
_PASSES = (
    "func.func(sharding-propagation)",
    "func.func(shard-partition)",
    "canonicalize",
    "convert-shard-to-mpi",
    "canonicalize",
)


def partition(source: Source, watch: PassWatch = UNWATCHED) -> None:
    """Changes the module in place; does nothing without a `shard.grid`.

    Each function that uses a grid first checks that there are as many processes as the grid has.
    Raises InputError for operations that upstream's passes do not partition.
    """
    module = source.module
    grids = {ops.symbol_of(grid): grid for grid in ops.find(module.operation, "shard.grid")}
    if not grids:
        return
    counts = _counts(source, grids)
    run_passes(
        module,
        _PASSES,
        name=source.name,
        lines=source.lines,
        doing="partitioning the module over processes",
        watch=watch,
    )
    left = [op for op in ops.walk(module.operation) if _is_left(op)]
    if left:
        raise input_error(
            source,
            [(op.location, f"{op.name} has no lowering to MPI here.") for op in left],
        )
    for grid in ops.find(module.operation, "shard.grid"):
        ops.erase(grid)
    with module.context, ir.Location.unknown():
        _check_processes(module, counts)


def _is_left(operation: Any) -> bool:
    name: str = operation.name
    return name.startswith("shard.") and name != "shard.grid"


def _counts(source: Source, grids: dict[str, Any]) -> dict[str, int]:
    """Function → number of processes, for functions that use a grid of static size."""
    counts = {}
    for function in ops.find(source.module.operation, "func.func"):
        used = {_grid_of(operation) for operation in ops.walk(function)}
        sizes = [_processes(grid) for name, grid in grids.items() if name in used]
        known = {size for size in sizes if size is not None}
        if len(known) > 1:
            raise input_error(
                source,
                [(function.location, f"The grids have {sorted(known)} processes: expected one.")],
            )
        if known:
            counts[ops.symbol_of(function)] = known.pop()
    return counts


def _check_processes(module: Any, counts: dict[str, int]) -> None:
    for function in ops.find(module.operation, "func.func"):
        if (count := counts.get(ops.symbol_of(function))) is not None:
            with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                ops.call(_CHECK, [ops.constant(ops.integer(64), count)])
    if counts:
        declare(module, _CHECK, [ops.integer(64)], [])


def _grid_of(operation: Any) -> str | None:
    if not operation.name.startswith("shard.") or "grid" not in operation.attributes:
        return None
    return str(ir.FlatSymbolRefAttr(operation.attributes["grid"]).value)


def _processes(grid: Any) -> int | None:
    """The number of processes of a grid; None if a dimension is dynamic."""
    shape = list(ir.DenseI64ArrayAttr(grid.attributes["shape"]))
    return None if any(size < 0 for size in shape) else math.prod(shape)
