"""Failed assertions of host code → a failure of the runtime, and a return from the entry.

The function in which an assertion fails returns at once, with zeros, as do its callers, up to the
entry. Memory that they allocated is not freed. With upstream's runtime, which records no failures,
the message is printed and the process aborts.

A function also returns where it waits for the device, if anything has failed before and what it
reads chooses addresses or branches: kernels that did not run have not written that memory. Other
functions go on, and free their memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc import llvm_ops, ops
from aotc.attributes import FOR_MEMORY, MESSAGE_ATTRIBUTE, ONE_STREAM
from aotc.host.llvm_dialect import (
    append,
    create_call,
    create_constant,
    defined_functions,
    drop_declarations,
    merge,
    runtime_declarations,
    signature,
    string_global,
)
from aotc.host.steering import reads_steer
from aotc.manifest import Entry
from aotc.mlir import ir
from aotc.module_names import CHECK, CHECK_NUMBERS, GOES_ON, WAIT
from aotc.ops import symbol_of

_FAIL = "aotc_fail_check"
_FAIL_FOR_MEMORY = "aotc_fail_allocation"
# Fails with two numbers in the message.
_FAIL_WITH = "aotc_fail_check_with"
_CHECKS = (CHECK, CHECK_NUMBERS)
# Whether nothing has failed; otherwise the function returns.
_MAY_READ, _IS_STOPPED = "aotc_may_read", "aotc_is_stopped"
_DESTROY_STREAM = "mgpuStreamDestroy"
# The name of a flag: the thread is returning from an entry after a failure.
_IS_LEAVING = "aotc_is_leaving"

# abort() does not flush stdio's buffers; dprintf has no buffer.
_DECLARATIONS = """
llvm.func @abort()
llvm.func @dprintf(i32, !llvm.ptr, ...) -> i32
"""
_WRITE_DECLARATION = "llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32"
_LEAVING = f"""
llvm.mlir.global internal thread_local @{_IS_LEAVING}(0 : i8) {{addr_space = 0 : i32}} : i8
"""
# Function → the runtime's function that it calls, and what it prints if the runtime has none.
_FAILURES = {
    _FAIL: ("aotc_assertion_failed", "assertion failed: %s\n"),
    _FAIL_FOR_MEMORY: ("aotc_allocation_failed", "%s\n"),
}


def _failure_text(name: str, report: str, printed: str) -> str:
    return f"""
{string_global(f"{name}_format", printed)}
llvm.func internal @{name}(%message: !llvm.ptr) attributes {{passthrough = ["cold"]}} {{
  %report = llvm.mlir.addressof @{report} : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %report, %null : !llvm.ptr
  llvm.cond_br %is_there, ^report, ^stop
^report:
  llvm.call @{report}(%message) : (!llvm.ptr) -> ()
  %leaving = llvm.mlir.addressof @{_IS_LEAVING} : !llvm.ptr
  %yes = llvm.mlir.constant(1 : i8) : i8
  llvm.store %yes, %leaving : i8, !llvm.ptr
  llvm.return
^stop:
  %stderr = llvm.mlir.constant(2 : i32) : i32
  %format = llvm.mlir.addressof @{name}_format : !llvm.ptr
  %written = llvm.call @dprintf(%stderr, %format, %message) vararg(!llvm.func<i32 (i32, ptr, ...)>)
      : (i32, !llvm.ptr, !llvm.ptr) -> i32
  llvm.call @abort() : () -> ()
  llvm.unreachable
}}
"""


_FAIL_WITH_TEXT = f"""
llvm.func internal @{_FAIL_WITH}(%format: !llvm.ptr, %first: i64, %second: i64)
    attributes {{passthrough = ["cold"]}} {{
  %size = llvm.mlir.constant(2048 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %written = llvm.call @snprintf(%message, %size, %format, %first, %second)
      vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
      : (!llvm.ptr, i64, !llvm.ptr, i64, i64) -> i32
  llvm.call @{_FAIL}(%message) : (!llvm.ptr) -> ()
  llvm.return
}}
"""

_MAY_READ_TEXT = f"""
llvm.func internal @{_MAY_READ}() -> i1 {{
  %is_stopped = llvm.mlir.addressof @{_IS_STOPPED} : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %is_stopped, %null : !llvm.ptr
  llvm.cond_br %is_there, ^ask, ^go_on
^ask:
  %stopped = llvm.call @{_IS_STOPPED}() : () -> i1
  llvm.cond_br %stopped, ^leave, ^go_on
^leave:
  %leaving = llvm.mlir.addressof @{_IS_LEAVING} : !llvm.ptr
  %yes = llvm.mlir.constant(1 : i8) : i8
  llvm.store %yes, %leaving : i8, !llvm.ptr
  %no = llvm.mlir.constant(false) : i1
  llvm.return %no : i1
^go_on:
  %true = llvm.mlir.constant(true) : i1
  llvm.return %true : i1
}}
"""

# A task calls this after each call: the return from the called function ends there.
_GOES_ON = f"""
llvm.func internal @{GOES_ON}() -> i1 {{
  %leaving = llvm.mlir.addressof @{_IS_LEAVING} : !llvm.ptr
  %flag = llvm.load %leaving : !llvm.ptr -> i8
  %no = llvm.mlir.constant(0 : i8) : i8
  llvm.store %no, %leaving : i8, !llvm.ptr
  %goes_on = llvm.icmp "eq" %flag, %no : i8
  llvm.return %goes_on : i1
}}
"""


def return_from_failed_checks(host: Any, entries: Sequence[Entry]) -> None:
    """Lowers the checks that `aotc.lower.host.assertions` has made."""
    functions = defined_functions(host)
    # Tasks (coroutines) do not return early: they ask whether to go on.
    calls = {
        name: ops.find(function, "llvm.call")
        for name, function in functions.items()
        if not _is_coroutine(function)
    }
    exported = {entry.symbol for entry in entries}
    # Entries pass results on.
    used = {
        _callee(call) for name, inside in calls.items() if name not in exported for call in inside
    }
    waits = {
        name: _waits(functions[name], inside)
        if reads_steer(functions[name], is_result_used=name in used)
        else []
        for name, inside in calls.items()
    }
    failing = _failing_functions(calls, waits)
    question = next((op for op in ops.content(host) if _is_question(op)), None)
    if not failing and question is None:
        return
    _append_failures(host, calls, question, waits=any(waits.values()))
    messages: dict[str, str] = {}
    for name, inside in calls.items():
        function = functions[name]
        leave = _EarlyReturn(function)
        failures = [call for call in inside if _callee(call) in _CHECKS]
        if name not in exported:
            failures += [call for call in inside if _may_fail(call, failing)]
        for call, (block, rest) in _split_behind([*failures, *waits[name]]):
            with call.location:
                if call in waits[name]:
                    with ir.InsertionPoint(block):
                        _branch(create_call(_MAY_READ, [], "i1"), rest, leave.block)
                    continue
                if _callee(call) not in _CHECKS:
                    _return_early(block, rest, leave)
                    continue
                text = str(ir.StringAttr(call.attributes[MESSAGE_ATTRIBUTE]).value)
                if text not in messages:
                    messages[text] = f"aotc_check_message_{len(messages)}"
                    append(host, string_global(messages[text], text))
                _fail_unless(call, messages[text], (block, rest), leave)
        if name in exported and any(_may_fail(call, failing) for call in inside):
            with function.location:
                _clear_leaving(function)
    for operation in ops.content(host):
        if operation.name == "llvm.func" and symbol_of(operation) in _CHECKS:
            ops.erase(operation)


def _waits(function: Any, calls: list[Any]) -> list[Any]:
    """Where a function has waited for the device. Without a stream of its own, it waits for each
    kernel that has no tokens, and destroys the stream of a token behind a wait for it."""
    if ONE_STREAM in function.attributes:
        return [call for call in calls if _callee(call) == WAIT]
    launches = ops.find(function, "gpu.launch_func")
    without_tokens = [launch for launch in launches if not ops.operand_groups(launch)[12]]
    return without_tokens + [call for call in calls if _callee(call) == _DESTROY_STREAM]


def _append_failures(host: Any, calls: dict[str, list[Any]], question: Any, *, waits: bool) -> None:
    """Appends the functions that fail, and those that ask whether to go on, for tasks and behind
    waits."""
    checks = [call for inside in calls.values() for call in inside if _callee(call) in _CHECKS]
    wanted = dict.fromkeys(_failure_of(check) for check in checks)
    runtime = runtime_declarations()
    has_numbers = any(_callee(check) == CHECK_NUMBERS for check in checks)
    declared = [_DECLARATIONS, *([_WRITE_DECLARATION] if has_numbers else [])]
    declared += [runtime[_IS_STOPPED]] if waits else []
    declarations = "\n".join([*declared, *(runtime[_FAILURES[name][0]] for name in wanted)])
    merge(host, ir.Module.parse(declarations).operation)
    text = _LEAVING + "".join(_failure_text(name, *_FAILURES[name]) for name in wanted)
    if has_numbers:
        text += _FAIL_WITH_TEXT
    text += _MAY_READ_TEXT if waits else ""
    if question is not None:
        ops.erase(question)
        text += _GOES_ON
    drop_declarations(append(host, f"{declarations}\n{text}"))


def _failure_of(check: Any) -> str:
    return _FAIL_FOR_MEMORY if FOR_MEMORY in check.attributes else _FAIL


def _is_coroutine(function: Any) -> bool:
    return "presplitcoroutine" in str(function.attributes.get("passthrough", ""))


def _is_question(operation: Any) -> bool:
    return operation.name == "llvm.func" and symbol_of(operation) == GOES_ON


def _callee(call: Any) -> str | None:
    return ops.callee_of(call) if "callee" in call.attributes else None


def _may_fail(call: Any, failing: set[str]) -> bool:
    # The callee of an indirect call is unknown.
    callee = _callee(call)
    return callee is None or callee in failing


def _failing_functions(calls: dict[str, list[Any]], waits: dict[str, list[Any]]) -> set[str]:
    """The functions that contain a check or a wait, and those that call one of them."""
    callees = {name: {_callee(call) for call in inside} for name, inside in calls.items()}
    failing = {
        name for name, called in callees.items() if waits[name] or called.intersection(_CHECKS)
    }
    while True:
        more = {name for name, called in callees.items() if called & failing} - failing
        if not more:
            return failing
        failing |= more


class _EarlyReturn:
    """The blocks by which a function returns early, each created on first use."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._block: Any = None
        self._failures: dict[str, Any] = {}

    @property
    def block(self) -> Any:
        """The block that returns zeros."""
        if self._block is None:
            _, result = signature(self._function)
            self._block = self._function.regions[0].blocks.append()
            with ir.InsertionPoint(self._block):
                values = []
                if result != "void":
                    prefix = "!llvm." if result.startswith(("struct", "array", "ptr")) else ""
                    type_ = ir.Type.parse(prefix + result)
                    values = [ir.Operation.create("llvm.mlir.zero", results=[type_]).result]
                ir.Operation.create("llvm.return", operands=values)
        return self._block

    def failure(self, name: str) -> Any:
        """The block that first calls the function `name` with the message that is its argument.

        There is one for all messages: LLVM duplicates a large result for each of its predecessors.
        """
        if name not in self._failures:
            pointer, unknown = ir.Type.parse("!llvm.ptr"), ir.Location.unknown()
            block = self.block.create_before(pointer, arg_locs=[unknown])
            self._failures[name] = block
            with ir.InsertionPoint(block):
                create_call(name, [block.arguments[0]])
                ir.Operation.create("llvm.br", successors=[self.block])
        return self._failures[name]


def _fail_unless(check: Any, message: str, parts: tuple[Any, Any], leave: _EarlyReturn) -> None:
    """Fails with the text in the variable `message`, and returns, if the check does not hold.
    `parts` are the block that ends with the check, and the block after it."""
    block, rest = parts
    condition, *numbers = check.operands
    if numbers:
        failed = leave.block.create_before()
        with ir.InsertionPoint(failed):
            create_call(_FAIL_WITH, [llvm_ops.llvm_address(message), *numbers])
            ir.Operation.create("llvm.br", successors=[leave.block])
    else:
        failed = leave.failure(_failure_of(check))
    with ir.InsertionPoint(block):
        _branch(condition, rest, failed, *([] if numbers else [llvm_ops.llvm_address(message)]))
    ops.erase(check)


def _return_early(block: Any, rest: Any, leave: _EarlyReturn) -> None:
    """Returns at the end of `block`, if its last call has returned after a failure."""
    with ir.InsertionPoint(block):
        flag = ops.unary("llvm.load", llvm_ops.llvm_address(_IS_LEAVING), ops.integer(8))
        _branch(ops.unary("llvm.trunc", flag, ops.integer(1)), leave.block, rest)


def _clear_leaving(entry: Any) -> None:
    """Clears the flag at the beginning of an entry: its caller is outside of the module, so that
    returning after a failure ends there."""
    with ir.InsertionPoint.at_block_begin(entry.regions[0].blocks[0]):
        ops.create("llvm.store", [create_constant(0, 8), llvm_ops.llvm_address(_IS_LEAVING)])


def _split_behind(calls: Sequence[Any]) -> Iterator[tuple[Any, tuple[Any, Any]]]:
    """Splits blocks after each of the calls. Yields (the call, (its block, the block after))."""
    by_block: dict[Any, set[Any]] = {}
    for call in calls:
        by_block.setdefault(call.block, set()).add(call)
    for block, ends in by_block.items():
        # Each operation is moved only once, however many calls precede it.
        current, found = block, []
        for op in ops.operations_in(block):
            if current != block:
                current.append(op)
            if op in ends:
                rest = current.create_after()
                found.append((op, (current, rest)))
                current = rest
        yield from found


def _branch(condition: Any, if_true: Any, if_false: Any, *given: Any) -> None:
    """A conditional branch. `given` are the arguments of `if_false`."""
    ir.Operation.create(
        "llvm.cond_br",
        operands=[condition, *given],
        successors=[if_true, if_false],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(given)])},
    )
