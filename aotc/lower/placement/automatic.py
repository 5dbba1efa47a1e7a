"""Placement by what is known of each buffer: decisions, then what they make of the module."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.access import ModuleAccess
from aotc.lower.placement.arena import share_allocation
from aotc.lower.placement.coherence import Coherence
from aotc.lower.placement.constants import DeviceCopies
from aotc.lower.placement.decide import Decisions, Placement
from aotc.lower.placement.host_code import HostCode
from aotc.lower.placement.managed import globals_of, move_to_gpu
from aotc.lower.placement.streams import (
    declare_wait,
    make_asynchronous,
    mark_one_stream,
)
from aotc.lower.placement.twins import Twins
from aotc.lower.placement.webs import UseKind, Web, Webs, host_functions
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.remarks import Remarks
from aotc.rewrites.run import run_pipeline

STEP = "aotc-place-memory"


def place_automatically(module: Any, remarks: Remarks) -> frozenset[str]:
    """Places each buffer where its uses want it.

    Returns the names of the `memref.global`s that become managed memory.
    """
    if not ops.find(module.operation, "gpu.launch_func"):
        return frozenset()
    given = ops.find(module.operation, "gpu.alloc")
    webs = Webs(module)
    access = ModuleAccess(module)
    decisions = Decisions(webs, access, lambda location: _place(remarks, location))
    host = HostCode(webs, decisions)
    with_stream = [
        function
        for function in host_functions(module)
        if symbol_of(function) in decisions.structured
        and any(map(host.is_enqueued, ops.walk(function)))
    ]
    _tell(webs, decisions, remarks)
    managed_globals = globals_of(
        web for web in webs if web.reaches_launch and _is_left_or_managed(decisions, web)
    )
    with_twins = {value: web for web in decisions.having(Placement.TWIN) for value in web.values}
    # From here on operations go away: what is known is known by then.
    device_copies = DeviceCopies(module)
    for web in decisions.having(Placement.CONSTANT):
        copies = web.of_kind(UseKind.COPY_FROM)
        device_copies.use(web, [c for c in copies if host.is_enqueued(c.operation)])
    for placement in (Placement.MANAGED, Placement.DEVICE):
        for web in decisions.having(placement):
            move_to_gpu(web, is_host_shared=placement is Placement.MANAGED)
    for function in host_functions(module):
        if function not in with_stream:
            _enqueue_copies(function, host)
            continue
        twins = Twins(function, with_twins)
        coherence = Coherence(twins, host, access)
        coherence.guard(function)
        for type_, count in coherence.copies.items():
            places = "at 1 place" if count == 1 else f"at {count} places"
            text = f"@{symbol_of(function)}: {type_}: copied, where it must be, {places}"
            remarks.add(STEP, function.location, text)
        twins.forget_unread_states()
    host.forget_numbers()
    for function in with_stream:
        mark_one_stream(function)
        share_allocation(function, given)
        _allocate_in_stream(function)
    declare_wait(module)
    # Each guard has constants of its own.
    run_pipeline(module.operation, ("func.func(cse)",))
    return managed_globals


def _place(remarks: Remarks, location: Any) -> str:
    place = remarks.source.place(location)
    return str(place) if place else ""


def _is_left_or_managed(decisions: Decisions, web: Web) -> bool:
    return decisions[web].placement in (Placement.LEFT, Placement.MANAGED)


def _tell(webs: Webs, decisions: Decisions, remarks: Remarks) -> None:
    for web in webs:
        decision = decisions[web]
        if not decision.reason:
            continue
        for root in web.roots:
            owner = ops.defining(root)
            if owner is not None:
                text = f"{root.type}: {decision.placement.value}: {decision.reason}"
                remarks.add(STEP, owner.location, text)


def _enqueue_copies(function: Any, host: HostCode) -> None:
    for copy in ops.find(function, "memref.copy"):
        if host.is_enqueued(copy):
            with copy.location, ir.InsertionPoint(copy):
                ops.create("gpu.memcpy", [copy.operands[1], copy.operands[0]])
            ops.erase(copy)


def _allocate_in_stream(function: Any) -> None:
    """Has the device's memory allocated in the order of the function's stream."""
    for allocation in ops.find(function, "gpu.alloc"):
        if "hostShared" not in allocation.attributes and len(allocation.results) == 1:
            make_asynchronous(allocation)
