"""Allocations → memory of the GPU, which the host reaches, too (managed), or does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aotc import ops
from aotc.errors import InternalError
from aotc.lower.placement.alias_classes import FUNCTIONS, AliasClass, UseKind
from aotc.mlir import ir
from aotc.module_names import CPU_COPIES, DEVICE_COPY, RESULT

_TASK = "async.execute"


def create_alloc(allocation: Any, *, is_host_shared: bool, is_result: bool = False) -> Any:
    """A buffer like that of a host `allocation`; the insertion point is the caller's."""
    dynamic_sizes, symbols = ops.operand_groups(allocation)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(dynamic_sizes), len(symbols)])
    }
    if is_host_shared:
        attributes["hostShared"] = ir.UnitAttr.get()
    if is_result:
        attributes[RESULT] = ir.UnitAttr.get()
    return ops.create(
        "gpu.alloc", [*dynamic_sizes, *symbols], [allocation.results[0].type], attributes
    ).results[0]


def create_dealloc(buffer: Any) -> None:
    ops.create("gpu.dealloc", [buffer])


def move_to_gpu(alias_class: AliasClass, *, is_host_shared: bool, is_result: bool = False) -> None:
    """Makes the allocations of an alias class, and what frees them, the GPU's."""
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
    """Moves an alloca of constant size to its function's first block, or its task's: it is there
    once."""
    entry = _home_of(alloca).regions[0].blocks[0]
    if alloca.block != entry and len(alloca.operands) == 0:
        alloca.move_before(next(iter(entry.operations)))


def free_at_the_end(alloca: Any, buffer: Any, aliases: Sequence[Any]) -> None:
    """Frees `buffer` where the memory of `alloca` ends: where its function, or its task, does.

    Or at the end of its block, if its size is computed there; `aliases` are the values that may
    be the alloca's memory.
    """
    home = _home_of(alloca)
    if alloca.block == home.regions[0].blocks[0]:
        is_task = home.name == _TASK
        ends = ops.find(home, "func.return", "async.return")
        ends = [list(alloca.block.operations)[-1]] if is_task else ends
    else:
        leaves = any(_is_outside(alias, alloca) for alias in aliases)
        if leaves or alloca.parent.operation == home:
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


def _home_of(alloca: Any) -> Any:
    """What has memory of its own for each time that it runs."""
    home = ops.enclosing(alloca, _TASK, *FUNCTIONS)
    assert home is not None
    return home


def _is_outside(alias: Any, allocation: Any) -> bool:
    owner = ops.defining(alias)
    return owner is not None and allocation.parent.operation not in ops.ancestors(owner)


def globals_of(alias_classes: Iterable[AliasClass]) -> frozenset[str]:
    """The names of the `memref.global`s in alias classes, but for copies of constants."""
    owners = [ops.defining(root) for alias_class in alias_classes for root in alias_class.roots]
    names = {
        ops.global_of(owner)
        for owner in owners
        if owner is not None and owner.name == "memref.get_global"
    }
    return frozenset(name for name in names if not name.startswith((DEVICE_COPY, *CPU_COPIES)))
