"""Automatic placement: decides on a placement for each buffer, and rewrites the module
accordingly."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.access import ModuleAccess
from aotc.attributes import TEMPORARY
from aotc.lower.placement.alias_classes import (
    FUNCTIONS,
    AliasClass,
    AliasClasses,
    UseKind,
    host_functions,
)
from aotc.lower.placement.arena import share_allocation
from aotc.lower.placement.coherence import Coherence
from aotc.lower.placement.constants import DeviceCopies
from aotc.lower.placement.decide import Decisions, Placement
from aotc.lower.placement.device_mirrors import DeviceMirrors
from aotc.lower.placement.host_code import HostCode
from aotc.lower.placement.managed import globals_of, move_to_gpu
from aotc.lower.placement.streams import (
    declare_wait,
    make_asynchronous,
    mark_one_stream,
)
from aotc.lower.placement.workspace import size_workspace
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.remarks import PlacedBuffer, Remarks
from aotc.rewrites.run import run_pipeline

STEP = "aotc-place-memory"


def place_automatically(module: Any, remarks: Remarks) -> frozenset[str]:
    """Places each buffer according to its uses.

    Returns the names of the `memref.global`s that become managed memory.
    """
    if not ops.find(module.operation, "gpu.launch_func"):
        return frozenset()
    given = [
        allocation
        for allocation in ops.find(module.operation, "gpu.alloc")
        if TEMPORARY not in allocation.attributes
    ]
    alias_classes = AliasClasses(module)
    access = ModuleAccess(module)
    decisions = Decisions(alias_classes, access, lambda location: _place(remarks, location))
    host = HostCode(alias_classes, decisions)
    with_stream = [
        function
        for function in host_functions(module)
        if symbol_of(function) in decisions.structured
        and any(map(host.is_enqueued, ops.walk(function)))
    ]
    _tell(alias_classes, decisions, remarks)
    managed_globals = globals_of(
        alias_class
        for alias_class in alias_classes
        if alias_class.reaches_launch and _is_left_or_managed(decisions, alias_class)
    )
    with_mirrors = {
        value: alias_class
        for alias_class in decisions.having(Placement.MIRRORED)
        for value in alias_class.values
    }
    # From here on operations are erased, so all analyses must be complete.
    device_copies = DeviceCopies(module)
    for alias_class in decisions.having(Placement.CONSTANT):
        copies = alias_class.of_kind(UseKind.COPY_FROM)
        device_copies.use(alias_class, [c for c in copies if host.is_enqueued(c.operation)])
    for placement in (Placement.RESULT, Placement.MANAGED, Placement.DEVICE):
        for alias_class in decisions.having(placement):
            move_to_gpu(
                alias_class,
                is_host_shared=placement is not Placement.DEVICE,
                is_result=placement is Placement.RESULT,
            )
    for function in host_functions(module):
        if function not in with_stream:
            _enqueue_copies(function, host)
            continue
        mirrors = DeviceMirrors(function, with_mirrors)
        coherence = Coherence(mirrors, host, access)
        coherence.guard(function)
        for type_, count in coherence.copies.items():
            places = "at 1 place" if count == 1 else f"at {count} places"
            text = f"@{symbol_of(function)}: {type_}: copied if needed, {places}"
            remarks.add(STEP, function.location, text)
        mirrors.erase_unread_states()
    host.erase_numbers()
    for function in with_stream:
        mark_one_stream(function)
        share_allocation(function, given)
        size_workspace(function)
        _allocate_in_stream(function)
    declare_wait(module)
    # Merges the constants of the guards.
    run_pipeline(module.operation, ("func.func(cse)",))
    return managed_globals


def _place(remarks: Remarks, location: Any) -> str:
    place = remarks.source.place(location)
    return str(place) if place else ""


def _is_left_or_managed(decisions: Decisions, alias_class: AliasClass) -> bool:
    return decisions[alias_class].placement in (Placement.LEFT, Placement.MANAGED)


def _tell(alias_classes: AliasClasses, decisions: Decisions, remarks: Remarks) -> None:
    for alias_class in alias_classes:
        decision = decisions[alias_class]
        if not decision.reason:
            continue
        for root in alias_class.roots:
            owner = ops.defining(root)
            if owner is not None:
                text = f"{root.type}: {decision.placement.value}: {decision.reason}"
                remarks.add(STEP, owner.location, text)
                function = ops.enclosing(owner, *FUNCTIONS)
                remarks.buffers.append(
                    PlacedBuffer(
                        remarks.source.place(owner.location),
                        "" if function is None else symbol_of(function),
                        str(root.type),
                        decision.placement.value,
                        decision.reason,
                    )
                )


def _enqueue_copies(function: Any, host: HostCode) -> None:
    for copy in ops.find(function, "memref.copy"):
        if host.is_enqueued(copy):
            with copy.location, ir.InsertionPoint(copy):
                ops.create("gpu.memcpy", [copy.operands[1], copy.operands[0]])
            ops.erase(copy)


def _allocate_in_stream(function: Any) -> None:
    """Makes device allocations stream-ordered."""
    for allocation in ops.find(function, "gpu.alloc"):
        if "hostShared" not in allocation.attributes and len(allocation.results) == 1:
            make_asynchronous(allocation)
