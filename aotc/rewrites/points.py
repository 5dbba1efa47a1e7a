"""The points of one thread: a loop over them in the kernel, which is marked by an attribute.

The points of a parallel loop have no order. On a GPU, a thread should load for all of its points
before it continues with the first, so that the loads overlap. On a CPU, all threads of a block
should finish their first points before they start the second ones, which are far away in memory. So
the kernel has a loop, which each target lowers in its own way.

If the points are contiguous along x, a GPU thread gets consecutive points instead of points that
are a block's width apart, and accesses them as vectors (`point_vectors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import is_pure
from aotc.attributes import NEIGHBOURS, OF_BLOCK, POINTS_ATTRIBUTE
from aotc.mlir import ir
from aotc.ops import create_either
from aotc.rewrites.cloning import body_of, copy, copy_interleaved
from aotc.rewrites.point_vectors import create_vectors, is_along_x

# The largest number of operations that are unrolled for a thread's points where vector accesses are
# not aligned. Above it the code stays a loop, as it comes on top of the code with vectors.
_MOST_APART = 128
_BLOCK_SIZE = "known_block_size"
# What the mapping of loops computes positions and guards with.
_HARMLESS = tuple(f"arith.{word}" for word in ("constant", "addi", "subi", "muli", "cmpi"))
# The operations that do not depend on the number of a block's threads along x.
_WITHOUT_X = ("gpu.func", "gpu.return", "gpu.thread_id", "gpu.block_id", "gpu.grid_dim")


def create_points(
    distance: int, points: int, body: Callable[[Any], None], *, are_neighbours: bool
) -> None:
    """Creates the loop at the insertion point: `body(offset)` for `points` offsets, `distance`
    apart.

    `are_neighbours` says that `distance` is the block's width, and that the body uses the thread id
    along x only in the sum of it and the offset. Then the points of a block may be reordered.
    """
    zero, size = ops.constant_index(0), ops.constant_index(distance)
    loop = ops.create("scf.for", [zero, ops.constant_index(points * distance), size], regions=1)
    loop.attributes[POINTS_ATTRIBUTE] = ir.UnitAttr.get()
    if are_neighbours:
        loop.attributes[NEIGHBOURS] = ir.UnitAttr.get()
    block = loop.regions[0].blocks.append(ir.IndexType.get())
    with ir.InsertionPoint(block):
        body(block.arguments[0])
        ops.create("scf.yield")


def _marked(operation: Any, *marks: str) -> list[Any]:
    loops = ops.find(operation, "scf.for")
    return [loop for loop in loops if any(mark in loop.attributes for mark in marks)]


def take_points_together(gpu_module: Any) -> None:
    """For a GPU: interleaves the points of a thread, each operation for all points."""
    with gpu_module.context:
        for loop in _marked(gpu_module, OF_BLOCK):
            _forget(loop)
        # Inner loops come first. The loop around one stays a loop.
        for loop in reversed(_marked(gpu_module, POINTS_ATTRIBUTE)):
            if ops.find(loop, "vector.load", "vector.store"):
                _forget(loop)
                continue
            lower, upper, step = (ops.known_index(value) for value in list(loop.operands)[:3])
            if lower is None or upper is None or step is None:
                continue
            with loop.location, ir.InsertionPoint(loop):
                offsets = [ops.constant_index(at) for at in range(lower, upper, step)]
                _take_together(loop, offsets)
            ops.erase(loop)


def _take_together(loop: Any, offsets: Sequence[Any]) -> None:
    """Replaces the loop, for the points at these offsets."""
    (variable,) = loop.regions[0].blocks[0].arguments

    def apart() -> None:
        operations = body_of(loop)
        if NEIGHBOURS in loop.attributes and len(operations) * len(offsets) > _MOST_APART:
            _forget(copy(loop, {}))
            return
        _create_together(operations, [{variable: offset} for offset in offsets])

    if NEIGHBOURS not in loop.attributes or not create_vectors(loop, len(offsets), apart):
        apart()


def _create_together(operations: Sequence[Any], copies: Sequence[dict[Any, Any]]) -> None:
    """Creates the code of all points. If the points are guarded, it is interleaved if all are in
    bounds, else one point after the other."""
    *before, last = operations
    if not _is_guard(last) or not all(is_pure(op) or op.name == "arith.constant" for op in before):
        copy_interleaved(operations, copies)
        return
    copy_interleaved(before, copies)
    condition = last.operands[0]
    all_there = copies[0].get(condition, condition)
    for values in copies[1:]:
        all_there = ops.binary("arith.andi", all_there, values.get(condition, condition))

    def one_by_one() -> None:
        for values in copies:
            copy(last, dict(values))

    create_either(
        all_there, lambda: _create_together(body_of(last), [dict(v) for v in copies]), one_by_one
    )


def widen_blocks(gpu_module: Any) -> dict[str, tuple[int, int, int]]:
    """For a CPU: a block gets as many threads along x as it has consecutive points there, instead
    of a loop over the points of each thread. The loop over the threads is then that much longer,
    and is vectorized as a whole. Returns the sizes of these blocks by the names of the kernels;
    launches keep theirs."""
    found = {}
    with gpu_module.context:
        for kernel in ops.find(gpu_module, "gpu.func"):
            loops = _marked(kernel, POINTS_ATTRIBUTE)
            bounds = {tuple(map(ops.known_index, list(loop.operands)[:3])) for loop in loops}
            if len(bounds) != 1 or _BLOCK_SIZE not in kernel.attributes:
                continue
            ((lower, upper, step),) = bounds
            width, *others = ir.DenseI32ArrayAttr(kernel.attributes[_BLOCK_SIZE])
            if upper is None or (lower, step) != (0, width) or not _have_all_of_x(kernel, loops):
                continue
            y, z = map(int, others)
            found[ops.symbol_of(kernel)] = upper, y, z
            for loop in loops:
                (variable,) = loop.regions[0].blocks[0].arguments
                with loop.location, ir.InsertionPoint(loop):
                    copy_interleaved(body_of(loop), [{variable: loop.operands[0]}])
                ops.erase(loop)
    return found


def _have_all_of_x(kernel: Any, loops: Sequence[Any]) -> bool:
    """Whether the loops are over consecutive points, and nothing outside of them depends on the
    threads along x: threads exchange nothing, and only the loops use their ids. (The id of a single
    thread is the constant 0, which would not tell more threads apart.)"""
    using = []
    for operation in ops.walk(kernel):
        if operation.name == "gpu.thread_id" and is_along_x(operation):
            for use in operation.results[0].uses:
                inside = [one for one in ops.ancestors(use.owner.operation) if one in loops]
                if not inside:
                    return False
                using += inside
        elif operation.name.startswith("gpu.") and operation.name not in _WITHOUT_X:
            return False
    return all(loop in using and NEIGHBOURS in loop.attributes for loop in loops)


def join_guards(gpu_module: Any) -> None:
    """For a CPU: a branch for the threads along x within one for those along y is one branch, as
    the loops over threads take their bounds from the first branch of a point."""
    with gpu_module.context:
        for loop in _marked(gpu_module, OF_BLOCK):
            for operation in body_of(loop):
                if _is_guard(operation):
                    _join(operation)


def _join(guard: Any) -> None:
    """Replaces the branch and the one that is all of its work, as often as there is one."""
    operations = body_of(guard)
    if not operations or not _is_guard(operations[-1]):
        return
    *before, inner = operations
    if not all(map(_is_harmless, before)):
        return
    with guard.location, ir.InsertionPoint(guard):
        for operation in operations:
            ir.InsertionPoint.current.insert(operation.detach_from_parent())
        both = ops.binary("arith.andi", guard.operands[0], inner.operands[0])
        both.owner.move_before(inner)
    inner.operands[0] = both
    ops.erase(guard)
    _join(inner)


def _is_harmless(operation: Any) -> bool:
    """Whether an operation neither traps nor has an undefined result, whatever its operands are. It
    may be run in front of the branch that guards it."""
    flags = ops.attributes_of(operation).get("overflowFlags")
    return operation.name in _HARMLESS and str(flags) in ("None", "#arith.overflow<none>")


def _is_guard(operation: Any) -> bool:
    """Whether the operation is a branch without an alternative."""
    is_branch = operation.name == "scf.if" and not operation.results
    return is_branch and not operation.regions[1].blocks


def synchronize_points(gpu_module: Any) -> None:
    """For a CPU: adds a barrier of the block's threads between one point and the next. The loop
    over the points is then around the loops over the threads, which can be vectorized.

    This is not done inside a branch or another kind of loop, where some threads might not reach it.
    """
    with gpu_module.context:
        loops = _marked(gpu_module, POINTS_ATTRIBUTE, OF_BLOCK)
        for loop in loops:
            outer = next(one for one in ops.ancestors(loop) if one not in loops)
            if outer.name == "gpu.func":
                end = ops.terminator(loop.regions[0].blocks[0])
                with loop.location, ir.InsertionPoint(end):
                    ops.create("gpu.barrier")
        for loop in loops:
            _forget(loop)


def _forget(loop: Any) -> None:
    for mark in (POINTS_ATTRIBUTE, NEIGHBOURS, OF_BLOCK):
        if mark in loop.attributes:
            del loop.attributes[mark]
