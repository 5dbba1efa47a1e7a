"""Maps parallel loops of host functions to `gpu.launch`, and decides on the kind of kernel for each
loop.

An outermost `scf.parallel` without an explicit mapping becomes a launch. Before that, loops over
the same rows are fused, and accumulators in memory become loop-carried values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.effects import Overlaps
from aotc.analysis.functions import Functions
from aotc.analysis.gpu_modules import module_for
from aotc.input.entries import functions_of
from aotc.kernels.family import ANY_GPU
from aotc.lower.gpu_branches import is_for_gpu
from aotc.lower.mapping.accumulators import carry_accumulators
from aotc.lower.mapping.blocks import BlockShape, block_of
from aotc.lower.mapping.columns import Columns, describe_columns
from aotc.lower.mapping.explicit_parallelism import (
    attach_block_sizes,
    drop_device_mappings,
    erase_marks,
    is_sequential,
)
from aotc.lower.mapping.extrema import (
    searches_columns,
    split_extrema_of_columns,
    split_extremum,
)
from aotc.lower.mapping.forward import (
    drop_overwritten,
    drop_unread,
    forward_in_rows,
    forward_row_values,
)
from aotc.lower.mapping.full_reductions import launch_full_reduction, plan_full_reduction
from aotc.lower.mapping.groups import fuse_loops
from aotc.lower.mapping.interchange import interchange_dimensions
from aotc.lower.mapping.interleave import can_interleave, interleave_last_dimension
from aotc.lower.mapping.merge import merge_columns, merge_dimensions
from aotc.lower.mapping.neighbours import with_neighbours
from aotc.lower.mapping.nested_loops import (
    launch_nested_loops,
    plan_nested_loops,
    put_on_stack,
)
from aotc.lower.mapping.points import PointsPlan, launch_points, plan_points
from aotc.lower.mapping.ragged_rows import launch_ragged_rows, plan_ragged_rows
from aotc.lower.mapping.recompute import recompute_in_rows
from aotc.lower.mapping.row_kernel import launch_rows
from aotc.lower.mapping.row_vectors import (
    create_row_vectors,
    plan_row_vectors,
    plan_window_vectors,
)
from aotc.lower.mapping.rows import plan_rows, reduces_columns
from aotc.lower.mapping.scans import describe_scan
from aotc.lower.mapping.single_rows import fuse_single_rows, wrap_in_row
from aotc.lower.mapping.split_reductions import split_reductions
from aotc.lower.mapping.squares import create_squares, plan_squares
from aotc.lower.mapping.tiles import launch_tiles, plan_tiles
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.rewrites.capability import declare_capability, has_gpu
from aotc.rewrites.cloning import body_of

STEP = "aotc-map-parallel-loops"
# gpu.modules of kernels for GPUs only: see `module_for`.
_SCANS, _RAGGED_ROWS, _NESTED_LOOPS, _POINTS = "scan_0", "rows_0", "nested_0", "points_0"


def map_parallel_loops(
    module: Any,
    device_functions: frozenset[str],
    *,
    block: tuple[int, ...] | None,
    remarks: Remarks | None,
    cpu_kernels: bool,
) -> int:
    """Maps each parallel loop of the host functions without an explicit mapping to a launch.

    `device_functions` are called from kernels, and keep their loops. `block` is the size of all
    blocks if it is given. Without `cpu_kernels`, there are no launches for the CPU only. Returns
    the number of launches created.
    """
    mapped = 0
    with module.context:
        overlaps = Overlaps(Roots(Functions(module)))
        for function in functions_of(module):
            if function.name != "func.func" or symbol_of(function) in device_functions:
                continue
            overlaps.renew()
            drop_device_mappings(function)
            attach_block_sizes(function, remarks.source if remarks is not None else None)
            _simplify(function, overlaps, remarks, block, cpu_kernels=cpu_kernels)
            # The last one first: it is a kernel when those that it uses are mapped.
            for loop in [columns.loop for columns in reversed(_full_reductions(function))]:
                mapped += _map_full_reduction(loop, block, remarks)
            for loop in _mappable_loops(function):
                overlaps.renew()
                _map(loop, block, overlaps, remarks, cpu_kernels=cpu_kernels)
                mapped += 1
        erase_marks(module)
    return mapped


def _simplify(
    function: Any,
    overlaps: Overlaps,
    remarks: Remarks | None,
    block: tuple[int, ...] | None,
    *,
    cpu_kernels: bool,
) -> None:
    """Fuses the loops of a function, makes their reductions visible, and splits reductions."""
    for loop in _mappable_loops(function):
        carry_accumulators(loop, overlaps)
        for inner in ops.find(loop, "scf.for"):
            split_extremum(inner, overlaps, along_rows=True)
        for inner in [op for op in ops.find(loop, "scf.parallel") if op != loop]:
            forward_in_rows(inner, overlaps)
    host_blocks = {}
    for loop in [op for op in ops.find(function, "scf.for") if _may_be_full_reduction(op)]:
        host_blocks[loop.block] = loop.block
        carry_accumulators(loop, overlaps)
    for host_block in host_blocks.values():
        forward_row_values(ops.operations_in(host_block), overlaps)
        drop_overwritten(ops.operations_in(host_block), overlaps)
        loops = [op.operation for op in host_block.operations if op.operation.name == "scf.for"]
        for loop in loops:
            split_extremum(loop, overlaps)
    for loop in _host_scans(function, overlaps):
        wrap_in_row([loop])
    reductions = [columns.loop for columns in _full_reductions(function)]
    _forward_values(fuse_single_rows(reductions, is_mappable), overlaps, remarks)
    _forward_values(fuse_loops(function, overlaps, is_mappable), overlaps, remarks)
    for loop in _mappable_loops(function):
        location = loop.location
        if _block_for(loop, block) is not None:
            continue
        with location:
            merge_columns(loop)
        loop = split_extrema_of_columns(loop, cpu_kernels=cpu_kernels)
        what = split_reductions(loop, overlaps, cpu_kernels=cpu_kernels)
        if what is not None and remarks is not None:
            remarks.add(STEP, location, what)
    for loop in _mappable_loops(function):
        recompute_in_rows(loop, overlaps)
    drop_unread(function)
    put_on_stack(_mappable_loops(function))


def _forward_values(
    fused: list[tuple[Any, str]], overlaps: Overlaps, remarks: Remarks | None
) -> None:
    """Forwards values between the parts of fused loops, and reports the fusions."""
    for loop, what in fused:
        forward_in_rows(loop, overlaps)
        carry_accumulators(loop, overlaps)
        forward_in_rows(loop, overlaps)
        drop_overwritten(body_of(loop), overlaps)
        if remarks is not None:
            remarks.add(STEP, loop.location, what)


def _map(
    loop: Any,
    block: tuple[int, ...] | None,
    overlaps: Overlaps,
    remarks: Remarks | None,
    *,
    cpu_kernels: bool,
) -> None:
    location = loop.location
    given = _block_for(loop, block)
    if is_for_gpu(loop) is False and given is None and _has_long_threads(loop, overlaps):
        given = BlockShape(1)
    with location:
        why = _launch(loop, given, overlaps, cpu_kernels=cpu_kernels)
    if remarks is not None:
        remarks.add(STEP, location, why)


def _has_long_threads(loop: Any, overlaps: Overlaps) -> bool:
    """Whether threads of the CPU have so much to do that each is a block, as blocks are spread over
    the cores: rows with loops along them, without vectors of these."""
    if reduces_columns(loop, overlaps) or searches_columns(loop) or not ops.find(loop, "scf.for"):
        return False
    rows = plan_rows(loop, None, overlaps)
    return rows is None or plan_row_vectors(loop, rows.items) is None


def _launch(loop: Any, given: BlockShape | None, overlaps: Overlaps, *, cpu_kernels: bool) -> str:
    """Replaces the loop by a launch of the first kind that fits. Returns its description."""
    if given is None:
        merge_columns(loop)
    rows = plan_rows(loop, given, overlaps)
    if rows is not None and rows.scans and cpu_kernels:
        points = plan_points(loop, given)
        _launch_by_device(loop, _SCANS, lambda: launch_rows(loop, rows, overlaps), points)
        return f"{rows}; on the CPU a thread for each row"
    vectors = None
    if rows is not None and cpu_kernels and given is None:
        vectors = plan_row_vectors(loop, rows.items)
    if rows is not None and vectors is not None:
        wide = with_neighbours(rows, loop)
        _launch_either(
            *(loop, lambda: create_row_vectors(loop, vectors)),
            lambda: launch_rows(loop, wide, overlaps),
        )
        return f"{wide}; on the CPU {vectors}"
    if rows is not None:
        is_for_gpus = not cpu_kernels and given is None
        plan = with_neighbours(rows, loop) if is_for_gpus else rows
        launch_rows(loop, plan, overlaps)
        return str(plan)
    ragged = plan_ragged_rows(loop, overlaps) if given is None else None
    if ragged is not None and not cpu_kernels:
        launch_ragged_rows(loop, ragged)
        return str(ragged)
    if ragged is not None:
        points = plan_points(loop, given)
        _launch_by_device(loop, _RAGGED_ROWS, lambda: launch_ragged_rows(loop, ragged), points)
        return f"{ragged}; on the CPU {points}"
    what = _launch_nested(loop, given, cpu_kernels=cpu_kernels)
    if what is not None:
        return what
    if given is None:
        loop = interchange_dimensions(merge_dimensions(loop))
    return _launch_points(loop, given, overlaps, cpu_kernels=cpu_kernels)


def _launch_points(
    loop: Any, given: BlockShape | None, overlaps: Overlaps, *, cpu_kernels: bool
) -> str:
    """As `_launch`, for a loop whose points are independent."""
    points = plan_points(loop, given)
    tiles = plan_tiles(loop, given, overlaps)
    known = is_for_gpu(loop) if cpu_kernels else True
    if tiles is not None and not tiles.indices:
        squares = plan_squares(loop, tiles, overlaps) if cpu_kernels and given is None else None
        if squares is None:
            launch_tiles(loop, tiles)
            return str(tiles)
        _launch_either(
            *(loop, lambda: create_squares(loop, squares), lambda: launch_tiles(loop, tiles))
        )
        return f"{tiles}; on the CPU {squares}"
    on_gpus: tuple[str, Callable[[], None]] | None = None
    if tiles is not None:
        on_gpus = str(tiles), lambda: launch_tiles(loop, tiles)
    elif given is None and can_interleave(loop):
        on_gpus = (
            "a kernel with a thread for adjacent points along x that it loads along another one",
            lambda: _launch_interleaved(loop),
        )
    if on_gpus is not None and known:
        what, launch = on_gpus
        launch()
        return what
    vectors = plan_window_vectors(loop, overlaps) if cpu_kernels and given is None else None
    if vectors is not None:
        what, launch = on_gpus or (str(points), lambda: launch_points(loop, points))
        _launch_either(loop, lambda: create_row_vectors(loop, vectors), launch)
        return f"{what}; on the CPU {vectors}"
    if on_gpus is not None and known is None:
        what, launch = on_gpus
        _launch_by_device(loop, _POINTS, launch, points)
        return f"{what}; on the CPU {points}"
    launch_points(loop, points)
    return str(points)


def _launch_interleaved(loop: Any) -> None:
    made = interleave_last_dimension(loop)
    launch_points(made, plan_points(made, None))


def _launch_nested(loop: Any, given: BlockShape | None, *, cpu_kernels: bool) -> str | None:
    """As `_launch`, for a loop that contains parallel loops; None if it is not of that kind."""
    known = is_for_gpu(loop)
    plan = plan_nested_loops(loop) if given is None and known is not False else None
    if plan is None:
        return None
    if known or not cpu_kernels:
        launch_nested_loops(loop, plan)
        return str(plan)
    # Blocks are spread over the cores, and each of such threads has much to do.
    points = plan_points(loop, BlockShape(1))
    _launch_by_device(loop, _NESTED_LOOPS, lambda: launch_nested_loops(loop, plan), points)
    return f"{plan}; on the CPU a thread for each"


def _launch_by_device(
    loop: Any, name: str, launch_on_gpu: Callable[[], None], points: PointsPlan
) -> None:
    """Launches a kernel for GPUs, or one for the CPU.

    On a CPU, threads that share a row in this way would take many times as long as one thread per
    row, whose block is vectorized across rows. `name` is that of the GPU's gpu.module.
    """

    def on_gpu() -> None:
        block = ir.InsertionPoint.current.block
        ir.InsertionPoint.current.insert(loop.detach_from_parent())
        launch_on_gpu()
        for operation in block.operations:
            for launch in ops.find(operation.operation, "gpu.launch"):
                module = module_for(ANY_GPU, name)
                launch.attributes["module"] = ir.FlatSymbolRefAttr.get(module)

    declare_capability(ops.enclosing(loop, "builtin.module"))
    with ir.InsertionPoint(loop):
        again = loop.clone().operation

        def on_cpu() -> None:
            ir.InsertionPoint.current.insert(again.detach_from_parent())
            launch_points(again, points)

        ops.create_either(has_gpu(), on_gpu, on_cpu)


def _launch_either(
    loop: Any, launch_on_cpu: Callable[[], None], launch_on_gpu: Callable[[], None]
) -> None:
    """Launches a kernel with threads on a GPU, or one with vectors on a CPU, which leaves the
    loop."""
    known = is_for_gpu(loop)
    if known is None:
        declare_capability(ops.enclosing(loop, "builtin.module"))
        with ir.InsertionPoint(loop):
            ops.create_either(
                has_gpu(),
                lambda: ir.InsertionPoint.current.insert(loop.detach_from_parent()),
                launch_on_cpu,
            )
    if known is False:
        with ir.InsertionPoint(loop):
            launch_on_cpu()
        ops.erase(loop)
    else:
        launch_on_gpu()


# In a host loop, a reduction of fewer points than this does not become a kernel.
_LEAST_POINTS_IN_LOOP = 1024


def _may_be_full_reduction(loop: Any) -> bool:
    """Whether a loop of host code may be a reduction: it is not marked sequential, and is
    outermost."""
    outside = list(ops.ancestors(loop))
    return not is_sequential(loop) and not any(
        op.name in ("scf.parallel", "scf.for", "gpu.launch", "gpu.module") for op in outside
    )


def _full_reductions(function: Any) -> list[Columns]:
    """The reductions of host code that become kernels."""
    found = []
    for loop in ops.find(function, "scf.for", "scf.parallel"):
        if len(loop.results) == 0 or "mapping" in loop.attributes:
            continue
        outside = [op.name for op in ops.ancestors(loop)]
        if any(name in ("scf.parallel", "gpu.launch", "gpu.module") for name in outside):
            continue
        if loop.name == "scf.for" and not _may_be_full_reduction(loop):
            continue
        columns = describe_columns(loop)
        if columns is None:
            continue
        count = columns.known_count
        if "scf.for" in outside and count is not None and count < _LEAST_POINTS_IN_LOOP:
            continue
        found.append(columns)
    return found


def _host_scans(function: Any, overlaps: Overlaps) -> list[Any]:
    """The scans of host code that become kernels, as the host does not use their results."""
    return [
        loop
        for loop in ops.find(function, "scf.for")
        if _may_be_full_reduction(loop)
        and len(loop.results) > 0
        and not any(True for _ in loop.results[0].uses)
        and (scan := describe_scan(loop, overlaps)) is not None
        and scan.is_along_row()
    ]


def _map_full_reduction(loop: Any, block: tuple[int, ...] | None, remarks: Remarks | None) -> int:
    """Maps a reduction if possible. Returns the number of reductions mapped."""
    location = loop.location
    # Described again, as its initial value may be the result of a reduction that was mapped before.
    columns = describe_columns(loop)
    plan = None if columns is None else plan_full_reduction(columns, _block_for(loop, block))
    if plan is None:
        return 0
    with location:
        launch_full_reduction(plan)
    if remarks is not None:
        remarks.add(STEP, location, str(plan))
    return 1


def _block_for(loop: Any, default: tuple[int, ...] | None) -> BlockShape | None:
    """The requested block size: the loop's own, or the one for all loops; None if there is none."""
    return block_of(loop, None) or (None if default is None else BlockShape(*default))


def _mappable_loops(function: Any) -> list[Any]:
    return [loop for loop in ops.find(function, "scf.parallel") if is_mappable(loop)]


def is_mappable(loop: Any) -> bool:
    """Whether an scf.parallel is outermost, has no explicit mapping and no results."""
    if len(loop.results) > 0:
        return False  # it is executed by the host
    if any(op.name in ("scf.parallel", "gpu.launch", "gpu.module") for op in ops.ancestors(loop)):
        return False
    inside = list(ops.walk(loop))
    if any(op.name in ("gpu.launch", "gpu.launch_func") for op in inside):
        return False
    return not any("mapping" in op.attributes for op in inside if op.name == "scf.parallel")
