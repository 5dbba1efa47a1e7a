"""Copies between a buffer and its twin, and waits, where one side needs what the other did.

In front of what uses a buffer stands a guard that looks at the buffer's state (`twins.State`) and
makes the copy if it is needed: so a copy is made only when the other side wrote in between,
whichever way the program took. Guards of host code stand in front of the outermost loop around it
that enqueues nothing; where an earlier guard holds there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.lower.access import ModuleAccess, first_kernel_operand
from aotc.lower.placement.decide import is_whole_type
from aotc.lower.placement.host_code import HostCode, HostUse
from aotc.lower.placement.streams import create_wait
from aotc.lower.placement.twins import State, Twin, Twins, get_state, set_state
from aotc.mlir import ir

_LOOPS = ("scf.for", "scf.while", "scf.parallel", "scf.forall")
# What the guards passed so far say of a buffer, and of the stream.
_READABLE, _WRITABLE = "readable", "writable"
_IDLE = ("idle", None)
Facts = set[tuple[str, Any]]


class Coherence:
    """Puts the guards into one function; `guards` counts those of each root value."""

    def __init__(self, twins: Twins, host: HostCode, access: ModuleAccess) -> None:
        self._twins, self._host, self._access = twins, host, access
        self.guards: Counter[str] = Counter()

    def guard(self, function: Any, *, waits: bool) -> None:
        """Changes the function; without `waits` its own waits stand behind what it enqueues."""
        if waits:
            self._block(function.regions[0].blocks[0], set())
            return
        for operation in ops.walk(function):
            if operation.name == "memref.copy" and self._host.is_enqueued(operation):
                with operation.location:
                    self._enqueue_copy(operation)

    # ---- The walk ---------------------------------------------------------------------------

    def _block(self, block: Any, facts: Facts) -> None:
        for operation in [op.operation for op in block.operations]:
            self._operation(operation, facts)

    def _operation(self, operation: Any, facts: Facts) -> None:
        if self._host.is_enqueued(operation):
            self._enqueued(operation)
            facts.clear()
        elif len(operation.regions) > 0:
            self._regions(operation, facts)
        else:
            self._guard_host_code([operation], operation, facts)

    def _regions(self, operation: Any, facts: Facts) -> None:
        inside = ops.walk(operation)
        enqueues = any(self._host.is_enqueued(op) for op in inside)
        is_loop = operation.name in _LOOPS
        if is_loop and not enqueues:
            self._guard_host_code(inside, operation, facts)
        for region in operation.regions:
            for block in region.blocks:
                self._block(block, set() if is_loop and enqueues else set(facts))
        if enqueues:
            facts.clear()

    # ---- Host code --------------------------------------------------------------------------

    def _guard_host_code(self, operations: list[Any], at: Any, facts: Facts) -> None:
        with at.location, ir.InsertionPoint(at):
            for operation in operations:
                for use in self._host.uses(operation):
                    self._guard_host_use(use, at, facts)
                if self._host.needs_wait(operation) and _IDLE not in facts:
                    create_wait()
                    facts.add(_IDLE)

    def _guard_host_use(self, use: HostUse, at: Any, facts: Facts) -> None:
        root, twin = self._twins.root(use.value)
        if _is_inside(root, at):
            return  # it is made anew in each turn of the loop: its guard is there
        if (_READABLE, root) not in facts and not use.is_freed:
            self._copy_back(root, twin)
            facts.add((_READABLE, root))
        if not use.is_written or (_WRITABLE, root) in facts:
            return
        ops.create_if(get_state(twin.state, State.COPYING), lambda: self._finish_copy(twin))
        facts.add((_WRITABLE, root))
        if not use.is_freed:
            set_state(twin.state, State.DEVICE, False)

    def _copy_back(self, root: Any, twin: Twin) -> None:
        def copy() -> None:
            ops.create("gpu.memcpy", [root, twin.device])
            self._finish_copy(twin)
            set_state(twin.state, State.HOST, True)

        self.guards["back"] += 1
        ops.create_if(_not(get_state(twin.state, State.HOST)), copy)

    def _finish_copy(self, twin: Twin) -> None:
        create_wait()
        set_state(twin.state, State.COPYING, False)

    # ---- The device's work ------------------------------------------------------------------

    def _enqueued(self, operation: Any) -> None:
        with operation.location:
            uses = list(self._device_uses(operation))
            with ir.InsertionPoint(operation):
                for index, reads, writes in uses:
                    if reads or writes:
                        self._copy_over(operation.operands[index])
                for index, _, writes in uses:
                    if writes:
                        _, twin = self._twins.root(operation.operands[index])
                        set_state(twin.state, State.HOST, False)
            if operation.name == "memref.copy":
                self._enqueue_copy(operation)
                return
            for index, _, _ in uses:
                operation.operands[index] = self._twins.device(operation.operands[index])

    def _device_uses(self, operation: Any) -> Iterator[tuple[int, bool, bool]]:
        """(operand, does the device read it, does it write a part of it) of those with twins."""
        for index, operand in enumerate(operation.operands):
            if operand not in self._twins:
                continue
            if operation.name == "memref.copy":
                is_target = index == 1
                yield index, not is_target or not _is_all(operand), False
            elif operation.name == "gpu.launch_func":
                number = index - first_kernel_operand(operation)
                flow = self._access.kernel_flow(operation, number)
                yield index, flow.reads, flow.writes

    def _copy_over(self, value: Any) -> None:
        root, twin = self._twins.root(value)

        def copy() -> None:
            ops.create("gpu.memcpy", [twin.device, root])
            set_state(twin.state, State.DEVICE, True)
            set_state(twin.state, State.COPYING, True)

        self.guards["over"] += 1
        ops.create_if(_not(get_state(twin.state, State.DEVICE)), copy)

    def _enqueue_copy(self, copy: Any) -> None:
        source, target = (
            self._twins.device(operand) if operand in self._twins else operand
            for operand in copy.operands
        )
        with ir.InsertionPoint(copy):
            ops.create("gpu.memcpy", [target, source])
            if copy.operands[1] in self._twins:
                _, twin = self._twins.root(copy.operands[1])
                set_state(twin.state, State.DEVICE, True)
                set_state(twin.state, State.HOST, False)
        copy.erase()


def _not(bit: Any) -> Any:
    return ops.binary("arith.xori", bit, ops.constant(ops.integer(1), 1))


def _is_all(value: Any) -> bool:
    """Whether `value` is a whole buffer, rather than a part of one."""
    owner = ops.defining(value)
    while owner is not None and owner.name == "memref.cast" and is_whole_type(value.type):
        value = owner.operands[0]
        owner = ops.defining(value)
    return owner is None or owner.name in ("memref.alloc", "memref.alloca", "scf.for", "scf.if")


def _is_inside(value: Any, operation: Any) -> bool:
    owner = value.owner
    around = owner.owner if isinstance(owner, ir.Block) else owner.operation
    around = around.operation if hasattr(around, "operation") else around
    return around == operation or operation in ops.ancestors(around)
