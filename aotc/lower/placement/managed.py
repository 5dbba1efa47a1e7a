"""Replaces host allocations by managed memory or device memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aotc import ops
from aotc.attributes import RESULT_ATTRIBUTE
from aotc.errors import InternalError
from aotc.lower.placement.alias_classes import FUNCTIONS, AliasClass, UseKind
from aotc.mlir import ir
from aotc.module_names import CPU_COPIES, DEVICE_COPY

_TASK = "async.execute"


def create_alloc(allocation: Any, *, is_host_shared: bool, is_result: bool = False) -> Any:
    """Creates a gpu.alloc of the type and sizes of a host `allocation` at the insertion point."""
    dynamic_sizes, symbols = ops.operand_groups(allocation)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(dynamic_sizes), len(symbols)])
    }
    if is_host_shared:
        attributes["hostShared"] = ir.UnitAttr.get()
    if is_result:
        attributes[RESULT_ATTRIBUTE] = ir.UnitAttr.get()
    return ops.create(
        "gpu.alloc", [*dynamic_sizes, *symbols], [allocation.results[0].type], attributes
    ).results[0]


def create_dealloc(buffer: Any) -> None:
    ops.create("gpu.dealloc", [buffer])


def move_to_gpu(alias_class: AliasClass, *, is_host_shared: bool, is_result: bool = False) -> None:
    """Replaces the allocations of an alias class, and their frees, by those of the gpu dialect."""
    for allocation in alias_class.allocations:
        buffer = allocation.results[0]
        with allocation.location:
            if allocation.name == "memref.alloca":
                move_to_first_block(allocation)
                free_at_the_end(allocation, buffer, alias_class.values)
            with ir.InsertionPoint(allocation):
                made = create_alloc(allocation, is_host_shared=is_host_shared, is_result=is_result)
        buffer.replace_all_uses_with(made)
        ops.erase(allocation)
    for use in alias_class.of_kind(UseKind.FREE):
        free = use.operation
        if free.name == "memref.dealloc":
            with free.location, ir.InsertionPoint(free):
                create_dealloc(free.operands[0])
            ops.erase(free)


def move_to_first_block(alloca: Any) -> None:
    """Moves an alloca of static size to the first block of its function or task, where it is
    executed once."""
    entry = _allocation_scope_of(alloca).regions[0].blocks[0]
    if alloca.block != entry and len(alloca.operands) == 0:
        alloca.move_before(next(iter(entry.operations)))


def free_at_the_end(alloca: Any, buffer: Any, aliases: Sequence[Any]) -> None:
    """Frees `buffer` where the lifetime of `alloca` ends: at the end of its function or task.

    If the alloca's size is computed in another block, it is freed at the end of that block.
    `aliases` are the values that may be the alloca's memory.
    """
    scope = _allocation_scope_of(alloca)
    if alloca.block == scope.regions[0].blocks[0]:
        is_task = scope.name == _TASK
        ends = ops.find(scope, "func.return", "async.return")
        ends = [list(alloca.block.operations)[-1]] if is_task else ends
    else:
        leaves = any(_is_outside(alias, alloca) for alias in aliases)
        if leaves or alloca.parent.operation == scope:
            raise InternalError(
                "A memref.alloca whose size is computed in a branch or a loop reaches a kernel, "
                "and leaves the block that it is in: aotc does not know where to free it.",
                hint="Use memref.alloc and memref.dealloc, or move the memref.alloca to the "
                "function's first block.",
            )
        ends = [list(alloca.block.operations)[-1]]
    for end in ends:
        with ir.InsertionPoint(end):
            create_dealloc(buffer)


def _allocation_scope_of(alloca: Any) -> Any:
    """The function or task that is the alloca's allocation scope."""
    scope = ops.enclosing(alloca, _TASK, *FUNCTIONS)
    assert scope is not None
    return scope


def _is_outside(alias: Any, allocation: Any) -> bool:
    owner = ops.defining(alias)
    return owner is not None and allocation.parent.operation not in ops.ancestors(owner)


def globals_of(alias_classes: Iterable[AliasClass]) -> frozenset[str]:
    """The names of the `memref.global`s in alias classes, without device and CPU copies of
    constants."""
    owners = [ops.defining(root) for alias_class in alias_classes for root in alias_class.roots]
    names = {
        ops.global_of(owner)
        for owner in owners
        if owner is not None and owner.name == "memref.get_global"
    }
    return frozenset(name for name in names if not name.startswith((DEVICE_COPY, *CPU_COPIES)))
