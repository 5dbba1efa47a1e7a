"""Kernels for parallel loops that contain parallel loops, such as loops over tiles.

A block computes an iteration of the outer loop, and its threads share the points of each inner one.

What stands between the inner loops is computed by all threads, and stored by one. The buffers of an
iteration are in shared memory. Those that do not fit are in global memory, where each block has its
own; then there are fewer blocks, each of which computes several iterations.

Barriers separate each write of the block from what other threads access before and after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import is_understood
from aotc.builder import SHARED_MEMORY
from aotc.chips import MAX_GRID, STATIC_SHARED_BYTES, WARP
from aotc.lower.mapping.blocks import PREFERRED_THREADS, BlockShape, power_of_two_from
from aotc.lower.mapping.build import EQ, Launch, allocate_temporary, create_launch
from aotc.lower.mapping.nest import (
    Dimension,
    dimensions_of,
    induction_values,
    known_product,
    known_trips,
    product,
)
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy, copy_interleaved
from aotc.sizes import element_bytes

# With fewer points in its largest inner loop, an iteration has a thread, if it allocates nothing:
# the memory from which threads do that is small.
_LEAST_POINTS = WARP
# The most bytes of an iteration's buffers that its thread has on its stack.
_MOST_ON_STACK = 1024
# The blocks of a kernel whose blocks have buffers in global memory, and the alignment of these.
_MOST_BLOCKS, _ALIGNMENT = 1024, 256
_BUFFERS = ("memref.alloc", "memref.alloca")
_BRANCHES, _QUIET = ("scf.for", "scf.if"), ("memref.dealloc", "cf.assert", "scf.yield")
_LEAST = ("arith.minsi", "arith.minui")
_VIEWS = ("memref.subview", "memref.cast", "memref.expand_shape", "memref.collapse_shape")
# The most steps to a bound of a size.
_MOST_STEPS = 8


class NestedLoops(Struct, frozen=True):
    """A plan: the threads of a block, and the most bytes of each allocation of an iteration, those
    in shared memory apart from the others. None: only the host can compute the bytes."""

    threads: int
    in_shared_memory: dict[Any, int]
    in_global_memory: dict[Any, int | None]

    @property
    def shared_bytes(self) -> int:
        return sum(map(_aligned, self.in_shared_memory.values()))

    def __str__(self) -> str:
        text = f"a block of {self.threads} threads for each iteration, for its parallel loops"
        if self.in_shared_memory:
            text += f", with {self.shared_bytes} bytes of shared memory"
        return text + (", with buffers in global memory" if self.in_global_memory else "")


def plan_nested_loops(loop: Any) -> NestedLoops | None:
    """The plan for a parallel loop. None if it has neither buffers nor a parallel loop of enough
    points in it, or other operations than loads, stores, loops, branches and allocations."""
    uniform = _uniform(body_of(loop))
    inner = [op for op in uniform if op.name == "scf.parallel"]
    allocations = [op for op in uniform if op.name in _BUFFERS]
    counts = [_most_points(one) for one in inner]
    known = [count for count in counts if count is not None]
    points = max(known, default=0) if len(known) == len(counts) else PREFERRED_THREADS
    if points < _LEAST_POINTS and not any(op.name == "memref.alloc" for op in allocations):
        return None
    if any(len(one.results) > 0 for one in inner) or not all(map(_is_understood, uniform)):
        return None
    if allocations and any(map(_carries_buffers, uniform)):
        # An iteration would get the buffer that it reads.
        return None
    threads = max(_LEAST_POINTS, min(PREFERRED_THREADS, power_of_two_from(points)))
    plan = NestedLoops(threads, {}, {})
    for allocation in allocations:
        size = _most_bytes(allocation)
        if size is not None and plan.shared_bytes + _aligned(size) <= STATIC_SHARED_BYTES:
            plan.in_shared_memory[allocation] = size
        elif size is not None or all(
            ops.is_made_outside(value, loop) for value in allocation.operands
        ):
            plan.in_global_memory[allocation] = size
        else:
            return None
    return plan


def put_on_stack(loops: Sequence[Any]) -> None:
    """Lets the threads of each of these parallel loops have small buffers on their stacks, if none
    of its inner loops has points for several threads."""
    for loop in loops:
        _put_on_stack(loop)


def _put_on_stack(loop: Any) -> None:
    buffers = [op for op in body_of(loop) if op.name == "memref.alloc" and _is_local(op)]
    sizes = [_most_bytes(one) for one in buffers if not one.operands]
    inner = [_most_points(one) for one in _uniform(body_of(loop)) if one.name == "scf.parallel"]
    is_small = None not in sizes and sum(filter(None, sizes)) <= _MOST_ON_STACK
    if not is_small or any(count is None or count >= _LEAST_POINTS for count in inner):
        return
    for buffer in buffers:
        if buffer.operands:
            continue
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        with buffer.location, ir.InsertionPoint(buffer):
            made = ops.create("memref.alloca", [], [buffer.results[0].type], segments)
        for use in list(buffer.results[0].uses):
            if use.owner.operation.name == "memref.dealloc":
                ops.erase(use.owner.operation)
        ops.replace(buffer, [made.result])


def _is_local(buffer: Any) -> bool:
    """Whether a buffer is only accessed, directly or through views, and freed itself."""
    waiting = [buffer.results[0]]
    while waiting:
        value = waiting.pop()
        for use in value.uses:
            user = use.owner.operation
            if user.name in _VIEWS:
                waiting += user.results
            elif user.name == "memref.dealloc":
                if value != buffer.results[0]:
                    return False
            elif user.name == "memref.store":
                if use.operand_number == 0:
                    return False
            elif user.name not in ("memref.load", "memref.dim"):
                return False
    return ir.MemRefType(buffer.results[0].type).memory_space is None


def _uniform(operations: Sequence[Any]) -> list[Any]:
    """The operations that all threads of a block execute together, in loops and branches, too, and
    the inner parallel loops, without what is in these."""
    found: list[Any] = []
    for operation in operations:
        found.append(operation)
        if operation.name in _BRANCHES:
            for region in operation.regions:
                for block in region.blocks:
                    found += _uniform(ops.operations_in(block))
    return found


def _carries_buffers(operation: Any) -> bool:
    is_loop = operation.name == "scf.for"
    return is_loop and any(isinstance(one.type, ir.MemRefType) for one in operation.results)


def _is_understood(operation: Any) -> bool:
    if operation.name in _BUFFERS:
        type_ = ir.MemRefType(operation.results[0].type)
        is_dense = type_.affine_map == ir.AffineMap.get_identity(type_.rank)
        is_of_bytes = element_bytes(type_.element_type) is not None
        return is_dense and is_of_bytes and type_.memory_space is None
    # What is in a branch is asked for on its own.
    return operation.name in (*_BRANCHES, *_QUIET) or is_understood(operation)


def _most_points(loop: Any) -> int | None:
    """An upper bound of the number of points of an `scf.parallel`; None if there is none."""
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    total = 1
    for lower, upper, step in zip(lowers, uppers, steps, strict=True):
        most = known_trips(lower, upper, step)
        if most is None and _is_at_least_0(lower):
            most = _most(upper)
        if most is None:
            return None
        total *= most
    return total


def _is_at_least_0(value: Any) -> bool:
    known = ops.known_index(value)
    return known is not None and known >= 0


def _most_bytes(allocation: Any) -> int | None:
    """An upper bound of a buffer's size in bytes; None if there is none."""
    type_ = ir.MemRefType(allocation.results[0].type)
    sizes = [_most(size) for size in allocation.operands]
    if None in sizes:
        return None
    known = (size for i, size in enumerate(type_.shape) if not type_.is_dynamic_dim(i))
    return math.prod((*known, *filter(None, sizes), element_bytes(type_.element_type) or 0))


def _most(value: Any, steps: int = _MOST_STEPS) -> int | None:
    """An upper bound of a size that is at least 0, such as that of a tile at the end of a row."""
    owner = ops.defining(value)
    if owner is None or owner.name not in (*_LEAST, "arith.subi") or steps == 0:
        return ops.known_index(value)
    if owner.name in _LEAST:
        found = [_most(one, steps - 1) for one in owner.operands]
    else:
        # min(begin + size, end) - begin
        end, begin = owner.operands
        least = ops.defining(end)
        sums = (
            [] if least is None or least.name not in _LEAST else map(ops.defining, least.operands)
        )
        found = [
            _most(size, steps - 1)
            for one in sums
            if one is not None and one.name == "arith.addi" and begin in list(one.operands)
            for size in one.operands
            if size != begin
        ]
    return min((most for most in found if most is not None), default=None)


def launch_nested_loops(loop: Any, plan: NestedLoops) -> None:
    """Replaces the loop by a launch."""
    block = BlockShape(plan.threads)
    with ir.InsertionPoint(loop):
        dimensions = dimensions_of(loop)
        count = ops.capped_product([d.trips for d in dimensions])
        known = known_product([d.known_trips for d in dimensions])
        most = _MOST_BLOCKS if plan.in_global_memory else MAX_GRID[0]
        # A launch without blocks is an error in CUDA: the block of an empty loop does nothing.
        blocks = ops.index_op("arith.maxsi", count, ops.constant_index(1))
        blocks = ops.index_op("arith.minsi", blocks, ops.constant_index(most))
        parts = {one: _part(one, size) for one, size in plan.in_global_memory.items()}
        wholes = {
            one: allocate_temporary(ops.integer(8), ops.index_op("arith.muli", blocks, part))
            for one, part in parts.items()
        }
        launch = create_launch([blocks], block, dynamic_bytes=plan.shared_bytes)
        for whole in wholes.values():
            ops.create("gpu.dealloc", [whole])
    variables = list(loop.regions[0].blocks[0].arguments)
    with ir.InsertionPoint(launch.end):
        kernel = _Kernel(launch, plan)
        kernel.place(wholes, parts)

        def iteration(position: Any) -> None:
            values = induction_values(dimensions, position)
            kernel.fill(body_of(loop), dict(zip(variables, values, strict=True)))

        if known is not None and 1 <= known <= most:
            iteration(launch.block_ids[0])
        else:
            # What one iteration loads, the next one may write.
            kernel.is_open = True
            ops.create_for(launch.block_ids[0], count, launch.grid_sizes[0], iteration)
    ops.erase(loop)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _part(allocation: Any, size: int | None) -> Any:
    """The bytes of a block's part of a buffer in global memory, at the insertion point."""
    if size is not None:
        return ops.constant_index(_aligned(size))
    type_ = ir.MemRefType(allocation.results[0].type)
    known = math.prod(n for i, n in enumerate(type_.shape) if not type_.is_dynamic_dim(i))
    each = known * (element_bytes(type_.element_type) or 0)
    total = ops.capped_product([ops.constant_index(each), *allocation.operands])
    unit = ops.constant_index(_ALIGNMENT)
    return ops.index_op("arith.muli", ops.index_op("arith.ceildivui", total, unit), unit)


class _Kernel:
    """A block's code for iterations of the outer loop."""

    def __init__(self, launch: Launch, plan: NestedLoops) -> None:
        self._launch, self._plan = launch, plan
        # The memory of each buffer, as bytes, and the offset where it begins.
        self._places: dict[Any, tuple[Any, Any]] = {}
        # Whether threads may have loaded, since the last barrier, what others write next.
        self.is_open = False

    def place(self, wholes: dict[Any, Any], parts: dict[Any, Any]) -> None:
        """Finds the places of the buffers, at the insertion point."""
        if self._plan.in_shared_memory:
            memory = ops.create(
                "gpu.dynamic_shared_memory", results=[ir.Type.parse(SHARED_MEMORY)]
            ).result
            plain = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ops.integer(8))
            memory = ops.create("memref.memory_space_cast", [memory], [plain]).result
            at = 0
            for allocation, size in self._plan.in_shared_memory.items():
                self._places[allocation] = memory, ops.constant_index(at)
                at += _aligned(size)
        for allocation, whole in wholes.items():
            offset = ops.index_op("arith.muli", self._launch.block_ids[0], parts[allocation])
            self._places[allocation] = whole, offset

    def fill(self, operations: Sequence[Any], values: dict[Any, Any]) -> None:
        """Creates the code of operations that all threads execute. `values` has their operands."""
        for operation in operations:
            if operation.name == "scf.parallel":
                self._separately(lambda: self._share(operation, values))  # noqa: B023
            elif operation.name == "memref.store":
                self._separately(lambda: self._by_one(operation, values))  # noqa: B023
            elif operation in self._places:
                values[operation.results[0]] = self._buffer(operation, values)
            elif operation.name in _BRANCHES:
                self._enter(operation, values)
            elif operation.name != "memref.dealloc":
                copy(operation, values)
                self.is_open = self.is_open or operation.name == "memref.load"

    def _separately(self, write: Callable[[], None]) -> None:
        """Creates code that writes between barriers."""
        if self.is_open:
            ops.create("gpu.barrier")
        write()
        ops.create("gpu.barrier")
        self.is_open = False

    def _share(self, loop: Any, values: dict[Any, Any]) -> None:
        """Creates a thread's points of an inner loop: neighbouring threads have neighbours."""
        lowers, uppers, steps, _ = ops.operand_groups(loop)
        dimensions = [
            Dimension.of(*(values.get(bound, bound) for bound in bounds))
            for bounds in zip(lowers, uppers, steps, strict=True)
        ]
        variables = list(loop.regions[0].blocks[0].arguments)

        def point(position: Any) -> None:
            own = zip(variables, induction_values(dimensions, position), strict=True)
            copy_interleaved(body_of(loop), [values | dict(own)])

        threads = ops.constant_index(self._plan.threads)
        ops.create_for(self._launch.thread_ids[0], product(dimensions), threads, point)

    def _by_one(self, store: Any, values: dict[Any, Any]) -> None:
        is_first = ops.compare(EQ, self._launch.thread_ids[0], ops.constant_index(0))
        ops.create_if(is_first, lambda: copy(store, values))

    def _buffer(self, allocation: Any, values: dict[Any, Any]) -> Any:
        sizes = [values.get(size, size) for size in allocation.operands]
        type_ = allocation.results[0].type
        return ops.create("memref.view", [*self._places[allocation], *sizes], [type_]).result

    def _enter(self, operation: Any, values: dict[Any, Any]) -> None:
        """Copies a loop or a branch that all threads enter together."""
        made = ops.create(
            operation.name,
            [values.get(value, value) for value in operation.operands],
            [result.type for result in operation.results],
            ops.attributes_of(operation),
            len(operation.regions),
        )
        for region, target in zip(operation.regions, made.regions, strict=True):
            for block in region.blocks:
                copied = target.blocks.append(*[argument.type for argument in block.arguments])
                values.update(zip(block.arguments, copied.arguments, strict=True))
                self.is_open = True
                with ir.InsertionPoint(copied):
                    *inside, end = ops.operations_in(block)
                    self.fill(inside, values)
                    copy(end, values)
        self.is_open = True
        values.update(zip(operation.results, made.results, strict=True))
