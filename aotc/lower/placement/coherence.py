"""Inserts copies between buffers and their mirrors, and waits, where one side needs the other's
result.

The pass walks over the function in program order with the known state of each buffer
(`KnownStates`). If the state is known, it decides whether a copy is needed. If the state depends on
the path that was taken, it inserts a guard that tests the state at run time. So a copy is only made
if the other side wrote in between. Copies and waits for host code are inserted before the outermost
loop around it that enqueues no device work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from aotc import ops
from aotc.analysis.access import ModuleAccess, first_kernel_operand
from aotc.lower.placement.device_mirrors import (
    DeviceMirror,
    DeviceMirrors,
    State,
    get_state,
    set_state,
)
from aotc.lower.placement.host_code import HostCode, HostUse
from aotc.lower.placement.known_states import KnownStates
from aotc.lower.placement.streams import create_wait
from aotc.mlir import ir

_LOOPS = ("scf.for", "scf.while", "scf.parallel", "scf.forall")
_ALLOCATIONS = ("memref.alloc", "memref.alloca")


class Facts(Struct):
    """Facts that hold on each path to the current point."""

    known: KnownStates = field(default_factory=KnownStates)
    is_idle: bool = False  # no enqueued work is pending

    def copy(self) -> Facts:
        return Facts(self.known.copy(), self.is_idle)

    def meet(self, others: Iterable[Facts]) -> None:
        """Keeps the facts that hold in all of `others` as well."""
        others = list(others)
        self.known.meet(other.known for other in others)
        self.is_idle = self.is_idle and all(other.is_idle for other in others)


class Coherence:
    """Inserts copies and waits into one function. `copies` counts them by the type of the whole
    buffer."""

    def __init__(self, mirrors: DeviceMirrors, host: HostCode, access: ModuleAccess) -> None:
        self._mirrors, self._host, self._access = mirrors, host, access
        self.copies: Counter[str] = Counter()

    def guard(self, function: Any) -> None:
        """Inserts the copies and waits into the function."""
        # The caller has waited for all work before the function.
        self._block(function.regions[0].blocks[0], Facts(is_idle=True))

    # ---- The walk ---------------------------------------------------------------------------

    def _block(self, block: Any, facts: Facts) -> None:
        for operation in ops.operations_in(block):
            if self._host.is_enqueued(operation):
                self._enqueued(operation, facts)
            elif len(operation.regions) > 0:
                self._regions(operation, facts)
            elif operation.name in _ALLOCATIONS and operation.results[0] in self._mirrors:
                self._allocated(operation.results[0], facts)
            else:
                self._host_code([operation], operation, facts)

    def _allocated(self, root: Any, facts: Facts) -> None:
        # Uninitialized memory may be in any state.
        self._note(facts, root, State.HOST, True)
        self._note(facts, root, State.DEVICE, True)
        self._note(facts, root, State.COPYING, False)

    def _regions(self, operation: Any, facts: Facts) -> None:
        self._host_code([operation], operation, facts)
        inside = ops.walk(operation)[1:]
        is_loop = operation.name in _LOOPS
        enqueues = any(self._host.is_enqueued(op) for op in inside)
        if is_loop and not enqueues:
            self._host_code(inside, operation, facts)
        if is_loop:
            # The state after an iteration is the state before the next one.
            facts.known.forget(self._changed_by_iterations(operation, enqueues=enqueues))
            facts.is_idle = facts.is_idle and not enqueues
        ways = []
        for region in operation.regions:
            for block in region.blocks:
                ways.append(facts.copy())
                self._block(block, ways[-1])
        if is_loop or len(ways) == 0:
            return
        is_always_one = len(operation.regions) == len(ways)
        if is_always_one:
            facts.known, facts.is_idle = ways[0].known, ways[0].is_idle
        facts.meet(ways)

    def _changed_by_iterations(self, loop: Any, *, enqueues: bool) -> set[Any]:
        """The buffers whose state an iteration of the loop may change, given the copies before the
        loop.

        If the loop enqueues no device work, these are the buffers allocated inside of it, and their
        aliases.
        """
        roots = {
            self._mirrors.root(operand)[0]
            for operation in ops.walk(loop)[1:]
            for operand in operation.operands
            if operand in self._mirrors
        }
        changed = {root for root in roots if enqueues or _is_inside(root, loop)}
        return changed | {other for root in changed for other in self._mirrors.aliases_of(root)}

    def _note(self, facts: Facts, root: Any, element: State, value: bool | None) -> None:
        facts.known.set(root, element, value, self._mirrors.aliases_of(root))

    # ---- Host code --------------------------------------------------------------------------

    def _host_code(self, operations: list[Any], at: Any, facts: Facts) -> None:
        with at.location, ir.InsertionPoint(at):
            for operation in operations:
                for use in self._host.uses(operation):
                    self._host_use(use, at, facts)
            if not facts.is_idle and any(self._host.needs_wait(op) for op in operations):
                self._wait(facts)

    def _wait(self, facts: Facts) -> None:
        create_wait()
        facts.is_idle = True
        facts.known.finish_copies()

    def _host_use(self, use: HostUse, at: Any, facts: Facts) -> None:
        root, mirror = self._mirrors.root(use.value)
        if _is_inside(root, at):
            return  # it is allocated in each iteration of the loop, and handled there
        if not use.is_freed:
            self._copy_back(root, mirror, facts)
        if use.is_written:
            self._finish_reading(root, mirror, facts)
        if use.is_written and not use.is_freed and facts.known.get(root, State.DEVICE) is not False:
            set_state(mirror.state, State.DEVICE, False)
            self._note(facts, root, State.DEVICE, False)

    def _copy_back(self, root: Any, mirror: DeviceMirror, facts: Facts) -> None:
        """Copies the content to the host if only the device has it."""

        def copy(facts: Facts) -> None:
            ops.create("gpu.memcpy", [root, mirror.device])
            self._wait(facts)
            set_state(mirror.state, State.COPYING, False)
            self._note(facts, root, State.COPYING, False)
            set_state(mirror.state, State.HOST, True)
            self._note(facts, root, State.HOST, True)

        self._unless(root, mirror, State.HOST, copy, facts)

    def _finish_reading(self, root: Any, mirror: DeviceMirror, facts: Facts) -> None:
        """Waits until the device no longer reads the host's memory."""

        def wait(facts: Facts) -> None:
            self._wait(facts)
            set_state(mirror.state, State.COPYING, False)
            self._note(facts, root, State.COPYING, False)

        is_copying = facts.known.get(root, State.COPYING)
        if is_copying is None:
            after = facts.copy()
            ops.create_if(get_state(mirror.state, State.COPYING), lambda: wait(after))
            self._note(facts, root, State.COPYING, False)
        elif is_copying:
            wait(facts)

    def _unless(
        self,
        root: Any,
        mirror: DeviceMirror,
        element: State,
        make: Callable[[Facts], None],
        facts: Facts,
    ) -> None:
        """Makes a copy unless an element of the state is set; sets the element."""
        is_set = facts.known.get(root, element)
        if is_set:
            return
        self.copies[str(root.type)] += 1
        if is_set is False:
            make(facts)
            return
        copied = facts.copy()
        condition = _not(get_state(mirror.state, element))
        ops.create_if(condition, lambda: make(copied))
        facts.meet([copied])
        self._note(facts, root, element, True)

    # ---- The device's work ------------------------------------------------------------------

    def _enqueued(self, operation: Any, facts: Facts) -> None:
        uses = list(self._device_uses(operation))
        with operation.location:
            with ir.InsertionPoint(operation):
                for index, reads, writes in uses:
                    if reads or writes:
                        self._copy_over(operation.operands[index], facts)
                for index, _, writes in uses:
                    if writes:
                        self._written_by_device(operation.operands[index], facts)
            if operation.name == "memref.copy":
                self._enqueue_copy(operation, facts)
            else:
                for index, _, _ in uses:
                    operation.operands[index] = self._mirrors.device(operation.operands[index])
        facts.is_idle = False

    def _device_uses(self, operation: Any) -> Iterator[tuple[int, bool, bool]]:
        """Yields (operand number, whether the device reads it, whether it writes a part of it) for
        operands with mirrors."""
        for index, operand in enumerate(operation.operands):
            if operand not in self._mirrors:
                continue
            if operation.name == "memref.copy":
                is_target = index == 1
                yield index, not is_target or not self._is_all(operand), False
            elif operation.name == "gpu.launch_func":
                number = index - first_kernel_operand(operation)
                flow = self._access.kernel_flow(operation, number)
                yield index, flow.reads, flow.writes

    def _is_all(self, value: Any) -> bool:
        return bool(value == self._mirrors.root(value)[0])

    def _copy_over(self, value: Any, facts: Facts) -> None:
        """Copies the content to the device if only the host has it."""
        root, mirror = self._mirrors.root(value)

        def copy(facts: Facts) -> None:
            ops.create("gpu.memcpy", [mirror.device, root])
            facts.is_idle = False
            for element in (State.DEVICE, State.COPYING):
                set_state(mirror.state, element, True)
                self._note(facts, root, element, True)

        self._unless(root, mirror, State.DEVICE, copy, facts)

    def _written_by_device(self, value: Any, facts: Facts) -> None:
        root, mirror = self._mirrors.root(value)
        if facts.known.get(root, State.HOST) is not False:
            set_state(mirror.state, State.HOST, False)
            self._note(facts, root, State.HOST, False)

    def _enqueue_copy(self, copy: Any, facts: Facts) -> None:
        source, target = copy.operands
        with ir.InsertionPoint(copy):
            if target in self._mirrors:
                root, mirror = self._mirrors.root(target)
                if facts.known.get(root, State.DEVICE) is not True:
                    set_state(mirror.state, State.DEVICE, True)
                    self._note(facts, root, State.DEVICE, True)
                self._written_by_device(target, facts)
            ends = [self._mirrors.device(v) if v in self._mirrors else v for v in (target, source)]
            ops.create("gpu.memcpy", ends)
        ops.erase(copy)


def _not(bit: Any) -> Any:
    return ops.binary("arith.xori", bit, ops.constant(ops.integer(1), 1))


def _is_inside(value: Any, operation: Any) -> bool:
    owner = value.owner
    around = owner.owner if isinstance(owner, ir.Block) else owner
    around = getattr(around, "operation", around)
    return around == operation or operation in ops.ancestors(around)
