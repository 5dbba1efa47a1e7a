"""Thread functions in the LLVM dialect → the functions that the runtime calls.

If the threads of a kernel synchronize only where all of them surely arrive, the function runs a
whole block (`block_function`). Otherwise it runs one thread from one synchronization to the next
(`step_function`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir
from aotc.ops import content, create, symbol_of, walk
from aotc.rewrites.run import PassWatch, run_group
from aotc.symbols import has_body, symbols_of
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.block_function import add_block_function
from aotc.targets.cpu.blocks.flow import Sync
from aotc.targets.cpu.blocks.parallel_regions import DivergenceError
from aotc.targets.cpu.blocks.prologue import ARRIVE_FIELD, FAIL_FIELD, WORD, call_field
from aotc.targets.cpu.blocks.step_function import add_step_function
from aotc.targets.cpu.blocks.thread_memory import DynamicAllocaError
from aotc.targets.cpu.lowering import LoweringError
from aotc.targets.cpu.sizes import UnknownSizeError
from aotc.targets.cpu.synchronize import ARRIVE, FAIL, SYNCHRONIZATIONS
from aotc.targets.cpu.thread_function import ThreadFunction

_TO_VALUES = ("llvm.func(sroa,mem2reg)",)
INLINING_PASSES = ("inline{default-pipeline=canonicalize}", *_TO_VALUES)


class HostFunction(Struct, frozen=True):
    """What the runtime must know of a kernel's function: see aotc_cpu_kernel."""

    is_step: bool
    thread_bytes: int = 0
    block_dim: tuple[int, int, int] = (0, 0, 0)
    syncs: tuple[Sync, ...] = ()
    shared_bytes: int = 0


def add_host_functions(
    module: Any,
    kernels: Iterable[tuple[str, ThreadFunction]],
    *,
    debug: bool,
    watch: PassWatch,
) -> list[HostFunction]:
    """Adds a host function for each (its symbol, thread function). Raises LoweringError."""
    kernels = list(kernels)
    _inline_what_synchronizes(module, {thread.symbol for _, thread in kernels}, watch)
    functions = symbols_of(module.operation)
    _define_failure(functions)
    _define_arrival(functions)
    result: list[HostFunction] = []
    for symbol, thread in kernels:
        function = functions[thread.symbol]
        try:
            result.append(_add(module, symbol, function, thread, debug=debug))
        except (DynamicAllocaError, UnknownSizeError) as error:
            location = getattr(error, "location", function.location)
            raise LoweringError(str(error), location) from None
        ops.erase(function)
    for name in (*SYNCHRONIZATIONS, ARRIVE, FAIL):
        if not has_body(functions[name]):
            ops.erase(functions[name])
    return result


def _add(
    module: Any, symbol: str, function: Any, thread: ThreadFunction, *, debug: bool
) -> HostFunction:
    block_dim = thread.launched_block_size or (0, 0, 0)
    has_syncs = _synchronizes(function)
    name = symbol if debug else None
    try:
        thread_bytes = add_block_function(
            module, symbol, function, thread, has_syncs=has_syncs, debug_name=name
        )
        return HostFunction(False, thread_bytes * thread.widening, block_dim)
    except DivergenceError:
        # Threads of wide blocks exchange nothing.
        assert thread.widening == 1
        step = add_step_function(module, symbol, function, thread, debug_name=name)
        return HostFunction(True, step.thread_bytes, block_dim, step.syncs)


def _synchronizes(function: Any) -> bool:
    return any(
        operation.name == "llvm.call" and _callee(operation) in SYNCHRONIZATIONS
        for operation in walk(function)
    )


def _callee(call: Any) -> str | None:
    if "callee" not in call.attributes:
        return None
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def _inline_what_synchronizes(module: Any, kernels: set[str], watch: PassWatch) -> None:
    """Inlines functions, so that only thread functions contain synchronizations."""
    others = [
        operation
        for operation in content(module.operation)
        if operation.name == "llvm.func" and symbol_of(operation) not in kernels
    ]
    if not any(_synchronizes(function) for function in others):
        run_group(module.operation, _TO_VALUES, verifies_each=True, watch=watch)
        return
    run_group(module.operation, INLINING_PASSES, verifies_each=True, watch=watch)
    for function in [op for op in content(module.operation) if op.name == "llvm.func"]:
        if symbol_of(function) in kernels or not _synchronizes(function):
            continue
        if not _is_used(module, symbol_of(function)):
            ops.erase(function)
            continue
        raise LoweringError(
            f"@{symbol_of(function)} synchronizes threads and calls itself: that has no CPU form",
            function.location,
        )


def _is_used(module: Any, name: str) -> bool:
    return any(
        _callee(operation) == name
        for operation in walk(module.operation)
        if operation.name == "llvm.call"
    )


def _define_failure(functions: dict[str, Any]) -> None:
    """Gives `FAIL` a body: it calls the function pointer that the runtime puts into
    aotc_cpu_block."""
    function = functions[FAIL]
    if not _is_called(FAIL, functions):
        return
    pointer = build.pointer_type()
    entry = function.regions[0].blocks.append(
        pointer, pointer, build.i64(), build.i64(), build.i64()
    )
    block, message, *ids = entry.arguments
    with ir.InsertionPoint(entry), function.location:
        thread_id = build.allocate(build.i64(), len(ids), WORD)
        for dimension, value in enumerate(ids):
            build.store(value, build.at(thread_id, dimension * WORD))
        call_field(FAIL_FIELD, [block, message, thread_id])
        build.unreachable()
    function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    function.attributes["passthrough"] = ir.Attribute.parse('["cold", "noinline", "noreturn"]')


def _define_arrival(functions: dict[str, Any]) -> None:
    """Gives `ARRIVE` a body that calls a function pointer in aotc_cpu_block."""
    function = functions[ARRIVE]
    if not _is_called(ARRIVE, functions):
        return
    entry = function.regions[0].blocks.append(
        build.pointer_type(), build.i64(), build.i32(), build.i32()
    )
    with ir.InsertionPoint(entry), function.location:
        call_field(ARRIVE_FIELD, list(entry.arguments))
        create("llvm.return")
    function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


def _is_called(name: str, functions: dict[str, Any]) -> bool:
    return any(
        _callee(operation) == name
        for function in functions.values()
        for operation in walk(function)
        if operation.name == "llvm.call"
    )
