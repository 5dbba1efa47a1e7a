"""Reductions of all elements to one value, as two kernels: one partial result per block, then one
block that combines them.

The number of blocks and the order of the combinations only depend on the element count, so the
result is the same on each run and each GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import is_pure
from aotc.lower.mapping.blocks import PREFERRED_THREADS, BlockShape
from aotc.lower.mapping.build import EQ, allocate_temporary, create_launch, create_loop
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.nest import product
from aotc.lower.mapping.row_kernel import combine_threads
from aotc.lower.mapping.strides import Team, reduce_in_strides
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy

# Operations of one thread before or after a reduction, given the values that it knows.
_Step = Callable[[dict[Any, Any]], None]

MAX_BLOCKS = 2048
# Elements that a thread loads at a time.
_POINTS = 16
_LAST_THREADS = 512
# Up to this number of elements, one block reduces everything.
_ONE_BLOCK = 16384


class FullReductionPlan(Struct, frozen=True):
    """The block of the first kernel, or of the only one if `is_one_kernel`."""

    block: BlockShape
    is_one_kernel: bool
    columns: Columns

    def __str__(self) -> str:
        if self.is_one_kernel:
            return f"a reduction by one block of {self.block}, through shuffles"
        return (
            f"a reduction in two kernels, through shuffles, in a reproducible order: at most "
            f"{MAX_BLOCKS} blocks of {self.block}, then one of {_LAST_THREADS}x1x1"
        )


def plan_full_reduction(columns: Columns, given: BlockShape | None) -> FullReductionPlan | None:
    """The plan for a loop of host code with results; None if it has no accumulators, or does not
    load adjacent elements."""
    count = columns.known_count
    if not columns.accumulators or not columns.loads_along():
        return None
    if count is not None and count <= _ONE_BLOCK:
        return FullReductionPlan(given or BlockShape(_LAST_THREADS), True, columns)
    return FullReductionPlan(given or BlockShape(PREFERRED_THREADS), False, columns)


def launch_full_reduction(plan: FullReductionPlan) -> None:
    """Replaces the loop by launches. The kernel stores the results where the operations after the
    loop store them, or into buffers of one element that the host reads."""
    loop, accumulators = plan.columns.loop, plan.columns.accumulators
    stores = _stores_of_results(loop)
    loads = [load for a in accumulators if (load := _load_before(a.init, loop)) is not None]
    with ir.InsertionPoint(loop):
        results = [] if stores else [allocate_temporary(a.type) for a in accumulators]

        def start(values: dict[Any, Any]) -> None:
            for operation in loads:
                copy(operation, values)

        def finish(values: dict[Any, Any]) -> None:
            for operation in stores:
                copy(operation, values)
            for buffer, result in zip(results, loop.results, strict=False):
                ops.create("memref.store", [values[result], buffer, ops.constant_index(0)])

        if plan.is_one_kernel:
            _launch_last(plan.columns, plan.block, start, finish)
        else:
            _launch_both(plan, start, finish)
        for buffer, result in zip(results, loop.results, strict=False):
            if not _load_in_loops(buffer, result, loop):
                result.replace_all_uses_with(_read(buffer))
    for operation in reversed(stores):
        ops.erase(operation)
    ops.erase(loop)
    for operation in loads:
        ops.erase(operation)


def _load_before(init: Any, loop: Any) -> Any | None:
    """The load of an initial value, if only the loop uses it and nothing in between may change it:
    the kernel can load it instead of the host. Otherwise None."""
    load = ops.defining(init)
    if load is None or load.name != "memref.load" or len(list(init.uses)) != 1:
        return None
    before = ops.operations_in(loop.block)
    if load not in before:
        return None
    between = before[before.index(load) + 1 : before.index(loop)]
    return load if all(is_pure(op) or op.name == "memref.load" for op in between) else None


def _stores_of_results(loop: Any) -> list[Any]:
    """The operations that compute on the results and store them, in order, if the results have no
    other users; otherwise an empty list."""
    following = ops.operations_in(loop.block)
    following = following[following.index(loop) + 1 :]
    taken: list[Any] = []
    made = set(loop.results)
    movable = set(following)
    for operation in following:
        if not made & set(operation.operands):
            if is_pure(operation) or operation.name == "arith.constant":
                continue
            break
        if not (is_pure(operation) or operation.name == "memref.store"):
            break
        # Its other operands must be available before the loop.
        others = [ops.defining(v) for v in operation.operands if v not in made]
        if any(o in movable and not _move_before(o, loop, movable) for o in others):
            break
        taken.append(operation)
        made |= set(operation.results)
    users = {use.owner.operation for value in made for use in value.uses}
    is_stored = any(op.name == "memref.store" for op in taken)
    return taken if is_stored and users <= set(taken) else []


def _move_before(operation: Any, loop: Any, following: set[Any]) -> bool:
    """Moves a pure operation and its operands' producers from after the loop to before it. Returns
    whether that was possible."""
    if not (is_pure(operation) or operation.name == "arith.constant"):
        return False
    made = [one for value in operation.operands if (one := ops.defining(value)) is not None]
    if any(one == loop for one in made):
        return False
    if not all(_move_before(one, loop, following) for one in made if one in following):
        return False
    operation.move_before(loop)
    following.remove(operation)
    return True


def _load_in_loops(buffer: Any, result: Any, loop: Any) -> bool:
    """Lets the kernels after a loop load its result, so that the host need not wait for it.

    This requires that they, and pure operations for them, are its only users. Frees the buffer.
    Returns whether it was done.
    """
    readers: list[Any] = []
    computed: list[Any] = []
    if not _collect_readers([result], loop, readers, computed):
        return False
    block = ops.operations_in(loop.block)
    readers.sort(key=block.index)
    computed.sort(key=block.index)
    for reader in readers:
        body = reader.regions[0].blocks[0]
        with reader.location, ir.InsertionPoint.at_block_begin(body):
            zero = ops.constant_index(0)
            values = {result: ops.load(buffer, [zero])}
            # Operations after the reader use values that are not defined yet.
            for operation in computed:
                if block.index(operation) < block.index(reader):
                    copy(operation, values)
        for inner in [op for outer in body_of(reader) for op in ops.walk(outer)]:
            for i, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[i] = values[operand]
    for operation in reversed(computed):
        ops.erase(operation)
    with loop.location, ir.InsertionPoint.after(readers[-1]):
        ops.create("gpu.dealloc", [buffer])
    return True


def _collect_readers(
    made: Sequence[Any], loop: Any, readers: list[Any], computed: list[Any]
) -> bool:
    """Collects the loops that use the values, and the pure operations in between. Returns False if
    there are other users."""
    block = ops.operations_in(loop.block)
    users = [use.owner.operation for value in made for use in value.uses]
    for user in users:
        outer = next((one for one in (user, *ops.ancestors(user)) if one in block), None)
        if outer is None:
            return False
        if user == outer:
            if not is_pure(user):
                return False
            if user not in computed:
                computed.append(user)
                if not _collect_readers(user.results, loop, readers, computed):
                    return False
        elif not _is_kernel(outer):
            return False
        elif outer not in readers:
            readers.append(outer)
    return bool(users)


def _is_kernel(operation: Any) -> bool:
    """Whether it is a launch, or a parallel loop that will be one."""
    if operation.name == "gpu.launch":
        return True
    is_loop = operation.name == "scf.parallel" and not operation.results
    return is_loop and not any(inner.name.startswith("gpu.") for inner in ops.walk(operation))


def _read(buffer: Any) -> Any:
    """Reads the single element of a device buffer on the host, and frees the buffer."""
    type_ = ir.MemRefType(buffer.type)
    there = ops.alloc(type_)
    ops.create("gpu.memcpy", [there, buffer])
    value = ops.load(there, [ops.constant_index(0)])
    ops.create("memref.dealloc", [there])
    ops.create("gpu.dealloc", [buffer])
    return value


def _launch_both(plan: FullReductionPlan, start: _Step, finish: _Step) -> None:
    columns, threads = plan.columns, plan.block.threads
    dimensions = columns.dimensions({})
    count = product(dimensions)
    share = ops.constant_index(threads * _POINTS)
    blocks = ops.index_op("arith.ceildivsi", count, share)
    blocks = ops.index_op("arith.maxsi", blocks, ops.constant_index(1))
    blocks = ops.index_op("arith.minsi", blocks, ops.constant_index(MAX_BLOCKS))
    known = None
    if columns.known_count is not None:
        known = min(MAX_BLOCKS, max(1, -(-columns.known_count // (threads * _POINTS))))
        blocks = ops.constant_index(known)
    partials = [
        allocate_temporary(a.type, blocks if known is None else known) for a in columns.accumulators
    ]
    launch = create_launch([blocks], plan.block)
    with ir.InsertionPoint(launch.end):
        number = launch.number(plan.block)
        team = Team(threads, _POINTS, number, launch.block_ids[0], launch.grid_sizes[0])
        found = reduce_in_strides(columns, team, {})
        sums = [
            combine_threads(accumulator, value, is_warp=False)
            for accumulator, value in zip(columns.accumulators, found, strict=True)
        ]

        def store() -> None:
            for buffer, value in zip(partials, sums, strict=True):
                ops.create("memref.store", [value, buffer, launch.block_ids[0]])

        ops.create_if(ops.compare(EQ, number, ops.constant_index(0)), store)
    _launch_last(columns, BlockShape(_LAST_THREADS), start, finish, (partials, blocks))
    for buffer in partials:
        ops.create("gpu.dealloc", [buffer])


def _launch_last(
    columns: Columns,
    block: BlockShape,
    start: _Step,
    finish: _Step,
    partials: tuple[Sequence[Any], Any] | None = None,
) -> None:
    """Launches one block that combines `partials`, or reduces everything if that is None."""
    launch = create_launch([ops.constant_index(1)], block)
    with ir.InsertionPoint(launch.end):
        number = launch.number(block)
        if partials is None:
            found = reduce_in_strides(columns, Team(block.threads, _POINTS, number), {})
        else:
            buffers, count = partials

            def add(at: Any, carried: list[Any]) -> list[Any]:
                return [
                    a.combine(old, ops.load(buffer, [at]))
                    for a, old, buffer in zip(columns.accumulators, carried, buffers, strict=True)
                ]

            stride = ops.constant_index(block.threads)
            neutral = [a.neutral() for a in columns.accumulators]
            found = create_loop(number, count, stride, neutral, add)
        values: dict[Any, Any] = {}
        totals = [
            combine_threads(a, v, is_warp=False)
            for a, v in zip(columns.accumulators, found, strict=True)
        ]

        def by_one() -> None:
            start(values)
            for a, total, result in zip(
                columns.accumulators, totals, columns.loop.results, strict=True
            ):
                values[result] = a.combine(values.get(a.init, a.init), total)
            finish(values)

        ops.create_if(ops.compare(EQ, number, ops.constant_index(0)), by_one)
