"""Memory placement: what a kernel is given is memory that the GPU can reach.

Runs after outlining. A host buffer (`memref.alloc`, `memref.alloca`) that reaches a launch
becomes managed memory, which the host may go on touching; a `memref.global` that is given to a
launch is copied into managed memory for it, and back where the kernel may write it. GPU
operations written without tokens (`gpu.memcpy`, `gpu.memset`, `gpu.dealloc`) become the
asynchronous form with a wait behind it: the only one that `gpu-to-llvm` lowers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc.lower import ops
from aotc.lower.access import Flow
from aotc.mlir import ir

_ALLOCATIONS = ("memref.alloc", "memref.alloca")


def place_memory(module: Any) -> None:
    """Places the buffers of the module's host functions; changes the module in place."""
    with module.context:
        _copy_globals(module)
        for allocation in _placed_allocations(module):
            with allocation.location:
                _make_managed(allocation)
        for name in ("gpu.memcpy", "gpu.memset", "gpu.dealloc"):
            for operation in _host_operations(module, name):
                if len(operation.results) == 0:
                    with operation.location:
                        _make_asynchronous(operation)


def _host_operations(module: Any, *names: str) -> list[Any]:
    return [
        op
        for op in ops.find(module.operation, *names)
        if ops.enclosing(op, "gpu.module", "gpu.launch") is None
    ]


def _placed_allocations(module: Any) -> list[Any]:
    """The allocations that reach a launch, or share a `memref.dealloc` with one that does."""
    flows = {op: Flow.of(op.results[0]) for op in _host_operations(module, *_ALLOCATIONS)}
    placed = {op for op, flow in flows.items() if flow.reaches_launch}
    while True:
        # A dealloc frees managed memory or host memory, not either: whoever shares one with
        # a placed buffer is placed, too.
        frees = {free for op in placed for free in flows[op].deallocations}
        more = {op for op, flow in flows.items() if frees & flow.deallocations} - placed
        if not more:
            return [op for op in flows if op in placed]
        placed |= more


def _make_managed(allocation: Any) -> None:
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
    flow = Flow.of(allocation.results[0])
    if allocation.name == "memref.alloca":
        for end in _scope_ends(allocation):
            with ir.InsertionPoint(end):
                _create_dealloc(managed.results[0])
    for free in flow.deallocations:
        if free.name == "memref.dealloc":
            with ir.InsertionPoint(free):
                _create_dealloc(free.operands[0])
            free.erase()
    allocation.results[0].replace_all_uses_with(managed.results[0])
    allocation.erase()


def _create_dealloc(buffer: Any) -> None:
    ir.Operation.create(
        "gpu.dealloc",
        results=[],
        operands=[buffer],
        attributes={},
    )


def _scope_ends(allocation: Any) -> Iterator[Any]:
    """The operations before which an alloca's memory ends: its scope's terminators."""
    scope = allocation.parent.operation
    if scope.name == "func.func":
        yield from ops.find(scope, "func.return")
    else:
        # An alloca in a loop's or a branch's body: hoisting it would change how often it is made.
        block = allocation.block
        yield list(block.operations)[-1].operation


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


def _copy_globals(module: Any) -> None:
    constants = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value
        for op in module.body.operations
        if op.operation.name == "memref.global" and "constant" in op.operation.attributes
    }
    for launch in _host_operations(module, "gpu.launch_func"):
        for i, operand in enumerate(launch.operands):
            source = operand.owner
            if isinstance(source, ir.Block) or source.name != "memref.get_global":
                continue
            with launch.location:
                is_constant = ir.FlatSymbolRefAttr(source.attributes["name"]).value in constants
                _copy_global(launch, i, is_constant=is_constant)


def _copy_global(launch: Any, operand: int, *, is_constant: bool) -> None:
    source = launch.operands[operand]
    with ir.InsertionPoint(launch):
        buffer = ir.Operation.create(
            "memref.alloc",
            results=[source.type],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        ).result
        ir.Operation.create("memref.copy", results=[], operands=[source, buffer])
    launch.operands[operand] = buffer
    following = ir.InsertionPoint(_next(launch))
    with following:
        if not is_constant:
            ir.Operation.create("memref.copy", results=[], operands=[buffer, source])
        ir.Operation.create("memref.dealloc", results=[], operands=[buffer])


def _next(operation: Any) -> Any:
    operations = list(operation.block.operations)
    return operations[[op.operation for op in operations].index(operation) + 1]
