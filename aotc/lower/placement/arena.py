"""Merges the device buffers of a function into one allocation.

An allocation and its free cost the host about as much as a launch. The work in a function's stream
is executed in order, so memory can be reused after the last use of its buffer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.access import DESCRIBES, reads_shape_only
from aotc.analysis.views import VIEWS
from aotc.mlir import ir
from aotc.sizes import LARGEST_MEMORY, element_bytes

# The alignment of cuMemAlloc in bytes, which kernels may rely on.
ALIGNMENT = 256
# Operations that do not use a buffer beyond their own execution.
_USES = ("gpu.launch_func", "gpu.memcpy", "gpu.memset")
# Operations whose result refers to the buffer; kernels access it through TMA descriptors as well.
_ALIASING = (*VIEWS, "memref.extract_strided_metadata", DESCRIBES)
# The largest buffer in bytes that is merged if only a branch allocates it. A larger one stays in
# the branch: the branch may not be taken, and filling the buffer takes longer than allocating it.
_MOST_CONDITIONAL = 16 * 2**20
_CONDITIONS = ("scf.if", "scf.execute_region")


class _Buffer(Struct):
    """A buffer and its live range in the function's block.

    The operations `first` to `last` of the block use it, and the operation `freed` frees it or
    contains its free. Its size is `size` bytes times the dynamic sizes of its allocation.
    `branches`: the `scf.if`s that contain the allocation, with the region of each. `offset`: its
    offset in the merged allocation in bytes.
    """

    allocation: Any
    free: Any
    freed: int
    size: int
    first: int
    last: int
    branches: tuple[tuple[int, int], ...]
    offset: int = 0

    @property
    def sizes(self) -> list[Any]:
        return list(self.allocation.operands)

    @property
    def end(self) -> int:
        return self.offset + self.size

    def interferes_with(self, other: _Buffer) -> bool:
        """Whether both may be live at the same time."""
        is_apart = self.last < other.first or other.last < self.first
        return not is_apart and not _are_alternatives(self.branches, other.branches)


def share_allocation(function: Any, given: Sequence[Any]) -> None:
    """Merges the allocations of a function with one block into one. Changes `function` in place.

    This covers allocations that are made and freed in the block, or in a branch, and whose uses are
    ordered by one stream. Allocations in `given`, which the input had, are not changed.

    Buffers of static size share memory. They are followed by buffers whose dynamic sizes are known
    at the first allocation. Of these, buffers with equal dynamic sizes share memory.
    """
    buffers = [buffer for buffer in _buffers(function) if buffer.allocation not in given]
    if not buffers:
        return
    (block,) = function.regions[0].blocks
    first = _ancestor_in(buffers[0].allocation, block)
    operations = ops.operations_in(block)
    before = set(operations[: operations.index(first)])
    buffers = [buffer for buffer in buffers if _is_size_known(buffer, before)]
    if len(buffers) < 2:
        return
    following = block.operations[max(buffer.freed for buffer in buffers) + 1].operation
    with first.location, ir.InsertionPoint(first):
        whole, offsets = _allocate(buffers)
    for buffer, offset in zip(buffers, offsets, strict=True):
        old, sizes = buffer.allocation.results[0], buffer.sizes
        with buffer.allocation.location, ir.InsertionPoint(buffer.allocation):
            view = ops.create("memref.view", [whole, offset, *sizes], [old.type]).result
        old.replace_all_uses_with(view)
        ops.erase(buffer.allocation)
    with following.location, ir.InsertionPoint(following):
        ops.create("gpu.dealloc", [whole])
    for buffer in buffers:
        ops.erase(buffer.free)


def _is_size_known(buffer: _Buffer, before: Collection[Any]) -> bool:
    """Whether each dynamic size is an argument or a result of one of the operations `before`."""
    producers = [ops.defining(size) for size in buffer.sizes]
    return all(producer is None or producer in before for producer in producers)


def _allocate(buffers: Sequence[_Buffer]) -> tuple[Any, list[Any]]:
    """Creates the merged allocation at the insertion point; returns it and the offset of each
    buffer."""
    static = [buffer for buffer in buffers if not buffer.sizes]
    end = _arrange(static) if static else 0
    if len(static) == len(buffers):
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0])}
        type_ = ir.MemRefType.get([end], ops.integer(8))
        whole = ops.create("gpu.alloc", [], [type_], attributes).result
        return whole, [ops.constant_index(buffer.offset) for buffer in buffers]
    # As an index, -256 is the mask of the upper bits.
    mask, rest = ops.constant_index(-ALIGNMENT), ops.constant_index(ALIGNMENT - 1)
    at = ops.constant_index(-(-end // ALIGNMENT) * ALIGNMENT)
    too_many = ops.constant_index(2 * LARGEST_MEMORY)
    begins = []
    slots = _slots([buffer for buffer in buffers if buffer.sizes])
    for slot in slots:
        begins.append(at)
        factor = ops.constant_index(max(buffer.size for buffer in slot))
        size = ops.capped_product([factor, *slot[0].sizes])
        size = ops.index_op("arith.minui", size, too_many)
        slot_end = ops.index_op("arith.addi", ops.index_op("arith.addi", at, size), rest)
        # A size that cannot be allocated stays too large and does not overflow.
        end = ops.index_op("arith.minui", slot_end, too_many)
        at = ops.index_op("arith.andi", end, mask)
    offsets = [
        next(begin for begin, slot in zip(begins, slots, strict=True) if buffer in slot)
        if buffer.sizes
        else ops.constant_index(buffer.offset)
        for buffer in buffers
    ]
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 0])}
    type_ = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ops.integer(8))
    return ops.create("gpu.alloc", [at], [type_], attributes).result, offsets


def _slots(buffers: Sequence[_Buffer]) -> list[list[_Buffer]]:
    """Groups buffers of dynamic sizes that share memory: their dynamic sizes are equal, and their
    live ranges do not overlap."""
    slots: list[list[_Buffer]] = []
    for buffer in sorted(buffers, key=lambda one: one.first):
        fitting = [
            slot
            for slot in slots
            if slot[0].sizes == buffer.sizes and not any(map(buffer.interferes_with, slot))
        ]
        if fitting:
            # The slot whose size changes least.
            min(fitting, key=lambda slot: abs(buffer.size - max(o.size for o in slot))).append(
                buffer
            )
        else:
            slots.append([buffer])
    return slots


def _buffers(function: Any) -> Iterator[_Buffer]:
    """Yields the function's mergeable buffers in the order of their allocations."""
    (block,) = function.regions[0].blocks
    operations = ops.operations_in(block)
    places = {operation: place for place, operation in enumerate(operations)}
    numbers: dict[Any, int] = {}
    for allocation in ops.find(function, "gpu.alloc"):
        size = plain_bytes(allocation)
        if size is None or not _is_mergeable(allocation, size, block):
            continue
        users = [
            user
            for user in ops.users_through(allocation.results[0], _ALIASING)
            if not reads_shape_only(user)
        ]
        frees = [user for user in users if user.name == "gpu.dealloc"]
        if (
            len(frees) != 1
            or frees[0].block != allocation.block
            or frees[0].operands[0] != allocation.results[0]
        ):
            continue
        at, freed = (places[_ancestor_in(op, block)] for op in (allocation, frees[0]))
        used = [places[_ancestor_in(user, block)] for user in users if user not in frees]
        is_known = all(user.name in _USES for user in users if user not in frees)
        last = max(used, default=at) if is_known else len(operations)
        first = min(used, default=at) if is_known else at
        if allocation.block != block:
            first = last = at
        branches = _branches(allocation, block, numbers)
        yield _Buffer(allocation, frees[0], freed, size, first, last, branches)


def _is_mergeable(allocation: Any, size: int, block: Any) -> bool:
    """Whether the allocation is in the function's block, or may be hoisted into it from a
    branch."""
    if allocation.block == block:
        return True
    is_conditional = all(outer.name in _CONDITIONS for outer in _parents_in(allocation, block))
    return is_conditional and not allocation.operands and size <= _MOST_CONDITIONAL


def _parents_in(operation: Any, block: Any) -> Iterator[Any]:
    """Yields the parents of the operation, up to the one in the block."""
    while operation.block != block:
        operation = operation.parent.operation
        yield operation


def _branches(allocation: Any, block: Any, numbers: dict[Any, int]) -> tuple[tuple[int, int], ...]:
    """(number, region) of each `scf.if` around the allocation."""
    found = []
    for inner in (allocation, *_parents_in(allocation, block)):
        if inner.block == block or inner.parent.operation.name != "scf.if":
            continue
        outer = inner.parent.operation
        (region,) = (i for i, one in enumerate(outer.regions) if inner.block in list(one.blocks))
        found.append((numbers.setdefault(outer, len(numbers)), region))
    return tuple(found)


def _are_alternatives(some: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> bool:
    """Whether the two are in different regions of one `scf.if`."""
    regions = dict(some)
    return any(regions.get(number, region) != region for number, region in others)


def plain_bytes(operation: Any) -> int | None:
    """The size of a plain device allocation in bytes, without the factors of its dynamic sizes;
    None for other operations."""
    if operation.name != "gpu.alloc" or len(operation.results) != 1:
        return None
    type_ = operation.results[0].type
    is_plain = type_.affine_map == ir.AffineMap.get_identity(type_.rank)
    if "hostShared" in operation.attributes or type_.memory_space is not None or not is_plain:
        return None
    # An i1 takes a byte in memory.
    element = 1 if str(type_.element_type) == "i1" else element_bytes(type_.element_type)
    known = [size for i, size in enumerate(type_.shape) if not type_.is_dynamic_dim(i)]
    return None if element is None else element * math.prod(known)


def _ancestor_in(operation: Any, block: Any) -> Any:
    while operation.block != block:
        operation = operation.parent.operation
    return operation


def _arrange(buffers: Sequence[_Buffer]) -> int:
    """Assigns offsets to the buffers, the largest first, each as low as possible. Returns the total
    size in bytes."""
    placed: list[_Buffer] = []
    for buffer in sorted(buffers, key=lambda one: -one.size):
        interfering = sorted(
            (o for o in placed if o.interferes_with(buffer)), key=lambda one: one.offset
        )
        offset = 0
        for other in interfering:
            if offset + buffer.size <= other.offset:
                break
            offset = max(offset, -(-other.end // ALIGNMENT) * ALIGNMENT)
        buffer.offset = offset
        placed.append(buffer)
    return max(buffer.end for buffer in placed)
