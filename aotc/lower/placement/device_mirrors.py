"""Creates device mirrors: for each value of an alias class, a device buffer and a run-time state.

    %a = memref.alloc() : memref<8xf32>      the host's memory
    %d = gpu.alloc() : memref<8xf32>         the device's memory
    %s = memref.alloca() : memref<3xi1>      their state, see `State`

Views are made of both buffers. Selects, branches and loops forward all three values. So for
whichever buffer a value refers to at run time, its mirror and state are available.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.views import VIEWS, root_of
from aotc.lower.placement.alias_classes import AliasClass
from aotc.lower.placement.managed import (
    create_alloc,
    create_dealloc,
    free_at_the_end,
    move_to_first_block,
)
from aotc.mlir import ir


class State(IntEnum):
    """The elements of a buffer's state."""

    HOST = 0  # the host's memory has the content
    DEVICE = 1  # the device's memory has the content
    COPYING = 2  # the device may still be reading the host's memory


class DeviceMirror(Struct, frozen=True):
    """The device buffer and the state of a value that is a whole buffer."""

    device: Any
    state: Any


class DeviceMirrors:
    """The mirrors of one function's values, created by a walk over the function."""

    def __init__(self, function: Any, values: dict[Any, AliasClass]) -> None:
        self._function = function
        self._values = values  # of alias classes with mirrors
        self._device: dict[Any, Any] = {}
        self._state: dict[Any, Any] = {}
        self._states_made: list[Any] = []
        self._walk(function.regions[0].blocks[0])

    def __contains__(self, value: Any) -> bool:
        return value in self._device

    def device(self, value: Any) -> Any:
        """The device's form of a value: its mirror, or a view of the mirror."""
        return self._device[value]

    def root(self, value: Any) -> tuple[Any, DeviceMirror]:
        """The whole buffer of which `value` is a view, and its mirror."""
        root = root_of(value)
        return root, DeviceMirror(self._device[root], self._state[root])

    def aliases_of(self, root: Any) -> list[Any]:
        """The whole buffers that may be the same as `root`, including `root`."""
        alias_class = self._values[root]
        if not alias_class.merges:
            return [root]
        return [other for other in self._state if self._values.get(other) is alias_class]

    def erase_unread_states(self) -> None:
        """Erases the states that are never read."""
        for made in self._states_made:
            users = [use.owner.operation for use in made.result.uses]
            if all(user.name == "memref.store" for user in users):
                for user in users:
                    ops.erase(user)
                ops.erase(made)

    def _walk(self, block: Any) -> None:
        for operation in ops.operations_in(block):
            self._visit(operation)

    def _visit(self, operation: Any) -> None:
        is_ours = any(result in self._values for result in operation.results)
        if operation.name in ("memref.alloc", "memref.alloca") and is_ours:
            self._allocate(operation)
        elif operation.name in VIEWS and is_ours:
            self._view(operation)
        elif operation.name == "arith.select" and is_ours:
            self._select(operation)
        elif operation.name == "scf.for" and is_ours:
            self._loop(operation)
        elif operation.name in ("scf.if", "scf.index_switch") and is_ours:
            self._branch(operation)
        elif operation.name == "memref.dealloc" and operation.operands[0] in self._values:
            with operation.location, ir.InsertionPoint(operation):
                create_dealloc(self._device[root_of(operation.operands[0])])
        else:
            for region in operation.regions:
                for block in region.blocks:
                    self._walk(block)

    def _allocate(self, allocation: Any) -> None:
        host = allocation.results[0]
        if allocation.name == "memref.alloca":
            move_to_first_block(allocation)
        with (
            allocation.location,
            ir.InsertionPoint.at_block_begin(self._function.regions[0].blocks[0]),
        ):
            made = ops.create(
                "memref.alloca",
                results=[ir.MemRefType.get([len(State)], ops.integer(1))],
                attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
            )
            state = made.result
        with allocation.location, ir.InsertionPoint.after(allocation):
            device = create_alloc(allocation, is_host_shared=False)
            # Uninitialized memory may be in any state.
            for element in (State.HOST, State.DEVICE):
                set_state(state, element, True)
            set_state(state, State.COPYING, False)
        if allocation.name == "memref.alloca":
            with allocation.location:
                free_at_the_end(allocation, device, ())
        self._device[host], self._state[host] = device, state
        self._states_made.append(made)

    def _view(self, view: Any) -> None:
        if view.operands[0] not in self._device:
            return  # the source has no mirror: its alias class has no root in this function
        with ir.InsertionPoint.after(view):
            mirror = view.clone()
        mirror.operation.operands[0] = self._device[view.operands[0]]
        self._device[view.results[0]] = mirror.operation.results[0]

    def _select(self, select: Any) -> None:
        condition, *choices = select.operands
        with select.location, ir.InsertionPoint.after(select):
            for made, values in (
                (self._device, [self._device[choice] for choice in choices]),
                (self._state, [self.root(choice)[1].state for choice in choices]),
            ):
                made[select.results[0]] = ops.create(
                    "arith.select", [condition, *values], [values[0].type]
                ).result

    def _loop(self, loop: Any) -> None:
        first = len(loop.operands) - len(loop.results)
        carried = [i for i, result in enumerate(loop.results) if result in self._values]
        body = loop.regions[0].blocks[0]
        starts: list[Any] = []
        for i in carried:
            start, argument = loop.operands[first + i], body.arguments[1 + i]
            for made, value in self._pairs(start):
                starts.append(value)
                made[argument] = body.add_argument(value.type, loop.location)
        self._walk(body)
        self._extend_yield(body, carried)
        self._replace(loop, [*loop.operands, *starts], carried)

    def _branch(self, branch: Any) -> None:
        carried = [i for i, result in enumerate(branch.results) if result in self._values]
        for region in branch.regions:
            self._walk(region.blocks[0])
            self._extend_yield(region.blocks[0], carried)
        self._replace(branch, list(branch.operands), carried)

    def _pairs(self, value: Any) -> Sequence[tuple[dict[Any, Any], Any]]:
        """(table, entry of `value`) for the device buffer and the state of a whole buffer."""
        return ((self._device, self._device[value]), (self._state, self.root(value)[1].state))

    def _extend_yield(self, block: Any, carried: Sequence[int]) -> None:
        end = ops.terminator(block)
        values = list(end.operands)
        for i in carried:
            values += [value for _, value in self._pairs(end.operands[i])]
        with end.location, ir.InsertionPoint(end):
            ops.create("scf.yield", values)
        ops.erase(end)

    def _replace(self, old: Any, operands: Sequence[Any], carried: Sequence[int]) -> None:
        """Recreates `old` with the mirrors' results after its own results."""
        yields = list(list(old.regions[0].blocks[0].operations)[-1].operands)
        types = [value.type for value in yields]
        with old.location, ir.InsertionPoint(old):
            new = ops.create(
                old.name,
                operands,
                types,
                ops.attributes_of(old),
                len(old.regions),
            )
        for source, target in zip(old.regions, new.regions, strict=True):
            for block in list(source.blocks):
                block.append_to(target)
        count = len(old.results)
        for old_result, new_result in zip(old.results, list(new.results)[:count], strict=True):
            if old_result in self._values:
                # The old result is removed, as a new value may reuse its address.
                self._values[new_result] = self._values.pop(old_result)
            old_result.replace_all_uses_with(new_result)
        for position, i in enumerate(carried):
            result = new.results[i]
            self._device[result] = new.results[count + 2 * position]
            self._state[result] = new.results[count + 2 * position + 1]
        ops.erase(old)


def set_state(state: Any, element: State, value: bool) -> None:
    """Stores an element of a buffer's state, at the insertion point."""
    bit = ops.constant(ops.integer(1), int(value))
    ops.create("memref.store", [bit, state, ops.constant_index(element)])


def get_state(state: Any, element: State) -> Any:
    """Loads an element of a buffer's state, at the insertion point."""
    return ops.load(state, [ops.constant_index(element)])
