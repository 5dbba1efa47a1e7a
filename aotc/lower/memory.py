"""Memory placement: what a kernel is given is memory that the GPU can reach.

Runs after outlining. A host buffer (`memref.alloc`, `memref.alloca`) that reaches a launch
becomes managed memory, which the host may go on touching. A `memref.global` that does is
named in the result: `aotc.host.embed` gives it a managed copy, made on first use. GPU
operations written without tokens (`gpu.memcpy`, `gpu.memset`, `gpu.dealloc`) become the
asynchronous form with a wait behind it: the only one that `gpu-to-llvm` lowers.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.errors import InternalError
from aotc.lower.access import Flow, Functions
from aotc.lower.memory_spaces import is_workgroup
from aotc.lower.remarks import Remarks
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import MemoryMode

_ALLOCATIONS = ("memref.alloc", "memref.alloca")
# Constants up to this size are copied into the kernel that uses them; larger ones are handed
# to it, so that they are not in every image once more.
_MAX_KERNEL_CONSTANT = 4096


def hoist_globals(module: Any) -> None:
    """Moves `memref.get_global` out of gpu.launch bodies, before they are outlined.

    Outlining would give the kernel a copy of the global: right for a constant, and for workgroup
    memory, which goes the other way.
    """
    with module.context:
        constants = {
            symbol_of(op.operation)
            for op in module.body.operations
            if op.operation.name == "memref.global"
            and "constant" in op.operation.attributes
            and _global_bytes(op.operation) <= _MAX_KERNEL_CONSTANT
        }
        for use in ops.find(module.operation, "memref.get_global"):
            launch = ops.enclosing(use, "gpu.launch")
            if is_workgroup(use.results[0].type):
                _sink_workgroup_global(use)
            elif launch is not None and _global_name(use) not in constants:
                use.move_before(launch)


def _sink_workgroup_global(use: Any) -> None:
    """Gives each launch that uses workgroup memory its own `use` of it: outlining then gives the
    kernel's module the global. The host has no such memory."""
    if ops.enclosing(use, "gpu.launch", "gpu.module") is not None:
        return
    for operand in list(use.results[0].uses):
        user = operand.owner.operation
        if ops.enclosing(user, "gpu.launch") is not None:
            copy = use.clone(ir.InsertionPoint(user)).operation
            user.operands[operand.operand_number] = copy.results[0]


# Computed from their operands alone.
_PURE_DIALECTS = ("vector", "arith", "math")


def sink_vectors(module: Any) -> None:
    """Computes vectors in the kernels that use them, rather than passing them as arguments.

    Loop-invariant code motion took them out of the loop that is a launch now; as an argument a
    vector costs parameter space, and one of i1 is not passed right at all.
    """
    with module.context:
        for launch in ops.find(module.operation, "gpu.launch"):
            pending = ops.walk(launch)[1:]
            while pending:
                user = pending.pop()
                for i, operand in enumerate(user.operands):
                    producer = ops.defining(operand)
                    if not isinstance(operand.type, ir.VectorType) or producer is None:
                        continue
                    if launch in ops.ancestors(producer) or not _is_pure(producer):
                        continue
                    # One for each use: what is the same is found to be so in the kernel.
                    copy = producer.clone(ir.InsertionPoint(user)).operation
                    user.operands[i] = copy.results[list(producer.results).index(operand)]
                    pending.append(copy)


def _is_pure(operation: Any) -> bool:
    dialect = operation.name.split(".")[0]
    reads = operation.name in ("vector.load", "vector.transfer_read", "vector.gather")
    return dialect in _PURE_DIALECTS and len(operation.regions) == 0 and not reads


def _global_name(use: Any) -> str:
    return str(ir.FlatSymbolRefAttr(use.attributes["name"]).value)


def _global_bytes(variable: Any) -> int:
    """The size in bytes, of a memref of numbers; a guess above any limit for others."""
    type_ = ir.MemRefType(ir.TypeAttr(variable.attributes["type"]).value)
    try:
        bits = int(type_.element_type.width)
    except AttributeError:
        return _MAX_KERNEL_CONSTANT + 1
    return int(math.prod(type_.shape)) * -(-bits // 8)


def place_memory(module: Any, mode: MemoryMode, remarks: Remarks) -> frozenset[str]:
    """Places the buffers of the module's host functions; changes the module in place.

    Returns the names of the `memref.global`s that kernels are given.
    """
    with module.context:
        functions = Functions(module)
        managed_globals = frozenset(
            _global_name(use)
            for use in _host_operations(module, "memref.get_global")
            if Flow.of(use.results[0], functions).reaches_launch
        )
        for allocation, flow in _placed_allocations(module, functions):
            with allocation.location:
                _make_managed(allocation, flow)
        for name in ("gpu.memcpy", "gpu.memset", "gpu.dealloc"):
            for operation in _host_operations(module, name):
                if len(operation.results) == 0:
                    with operation.location:
                        _make_asynchronous(operation)
    return managed_globals


def _host_operations(module: Any, *names: str) -> list[Any]:
    return [
        op
        for op in ops.find(module.operation, *names)
        if ops.enclosing(op, "gpu.module", "gpu.launch") is None
    ]


def _placed_allocations(module: Any, functions: Functions) -> list[tuple[Any, Flow]]:
    """The allocations that reach a launch, or share a `memref.dealloc` with one that does."""
    flows = {
        op: Flow.of(op.results[0], functions) for op in _host_operations(module, *_ALLOCATIONS)
    }
    placed = {op for op, flow in flows.items() if flow.reaches_launch}
    while True:
        # A dealloc frees managed memory or host memory, not either: whoever shares one with
        # a placed buffer is placed, too.
        frees = {free for op in placed for free in flows[op].deallocations}
        more = {op for op, flow in flows.items() if frees & flow.deallocations} - placed
        if not more:
            return [(op, flow) for op, flow in flows.items() if op in placed]
        placed |= more


def _make_managed(allocation: Any, flow: Flow) -> None:
    if allocation.name == "memref.alloca":
        _free_at_the_end(allocation, flow)
    dynamic_sizes, symbols = ops.operand_groups(allocation)
    with ir.InsertionPoint(allocation):
        managed = ir.Operation.create(
            "gpu.alloc",
            results=[allocation.results[0].type],
            operands=[*dynamic_sizes, *symbols],
            attributes={
                "hostShared": ir.UnitAttr.get(),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                    [0, len(dynamic_sizes), len(symbols)]
                ),
            },
        )
    for free in flow.deallocations:
        # Another buffer that shares it may have replaced it already.
        if free.parent is not None and free.name == "memref.dealloc":
            with ir.InsertionPoint(free):
                _create_dealloc(free.operands[0])
            free.detach_from_parent()
    allocation.results[0].replace_all_uses_with(managed.results[0])
    allocation.erase()


def _create_dealloc(buffer: Any) -> None:
    ir.Operation.create("gpu.dealloc", results=[], operands=[buffer])


def _free_at_the_end(allocation: Any, flow: Flow) -> None:
    """Frees what an alloca becomes where the alloca's memory ends: when its function returns."""
    function = ops.enclosing(allocation, "func.func")
    assert function is not None
    entry = function.regions[0].blocks[0]
    buffer = allocation.results[0]
    if allocation.block == entry or len(allocation.operands) == 0:
        if allocation.block != entry:
            allocation.move_before(next(iter(entry.operations)))
        for end in ops.find(function, "func.return"):
            with ir.InsertionPoint(end):
                _create_dealloc(buffer)
        return
    leaves = any(_is_outside(alias, allocation) for alias in flow.aliases)
    if leaves or allocation.parent.operation.name == "func.func":
        raise InternalError(
            "A memref.alloca whose size is computed in a branch or a loop reaches a kernel, and "
            "leaves the block that it is in: aotc does not know where to free it.",
            hint="Use memref.alloc and memref.dealloc, or move the memref.alloca to the "
            "function's first block.",
        )
    with ir.InsertionPoint(list(allocation.block.operations)[-1]):
        _create_dealloc(buffer)


def _is_outside(alias: Any, allocation: Any) -> bool:
    owner = ops.defining(alias)
    return owner is not None and allocation.parent.operation not in ops.ancestors(owner)


def _make_asynchronous(operation: Any) -> None:
    token = ir.Type.parse("!gpu.async.token")
    with ir.InsertionPoint(operation):
        start = ir.Operation.create("gpu.wait", results=[token], operands=[])
        asynchronous = ir.Operation.create(
            operation.name,
            results=[token],
            operands=[start.results[0], *operation.operands],
        )
        ir.Operation.create("gpu.wait", results=[], operands=[asynchronous.results[0]])
    operation.erase()
