"""Lowers a module of any level to the outlined form: host functions that launch kernels in
gpu.modules."""

from __future__ import annotations

from collections.abc import Sequence

from aotc import ops
from aotc.attributes import GIVEN, INTO_ATTRIBUTE
from aotc.errors import InputError
from aotc.input.entries import functions_of
from aotc.input.source import Source
from aotc.input.state import targets_of
from aotc.lower.checks.host_code import check_host_code
from aotc.lower.passes.base import Lowering, Pass
from aotc.lower.passes.write_into_arguments import WriteIntoArguments
from aotc.lower.plan.explanation import Explanation
from aotc.lower.plan.levels import recognise
from aotc.lower.plan.pipeline import (
    ERASE_SCHEDULES,
    SCHEDULE,
    parse_plan,
    plan_for,
    with_placement,
)
from aotc.mlir import ir
from aotc.request import BuildRequest, MemoryMode
from aotc.rewrites.run import PassWatch

_MAIN_SEQUENCE = "__transform_main"


def outline(
    source: Source,
    request: BuildRequest,
    explanation: Explanation,
    watch: PassWatch,
) -> frozenset[str]:
    """Changes the source's module in place, by aotc's plan for it or by the user's pipeline.

    Records each plan in `explanation` before it is run. Returns the names of the globals that are
    kernel arguments.
    """
    lowering = Lowering(source, request, explanation.remarks, watch)
    explanation.levels = recognise(source)
    if request.memory is MemoryMode.EXPLICIT or request.pipeline is not None:
        _mark_allocations(source)
    if request.pipeline is not None:
        if request.block is not None:
            raise InputError(
                "--block is for aotc's own pipeline: in that of --pipeline, its pass has the "
                "option, aotc-map-parallel-loops{block=...}."
            )
        if request.verify:
            raise InputError(
                "--verify is for aotc's own pipeline: put its pass, aotc-verify-operations, into "
                "that of --pipeline."
            )
        explanation.add(passes := with_placement(parse_plan(request.pipeline), request.memory))
        _check_writes(source, passes)
        lowering.run(passes, doing="the pipeline given by --pipeline", blame=InputError)
        return lowering.managed_globals
    sequences = ops.find(source.module.operation, "transform.named_sequence")
    if sequences:
        is_run = any(ops.symbol_of(sequence) == _MAIN_SEQUENCE for sequence in sequences)
        explanation.add(passes := SCHEDULE if is_run else ERASE_SCHEDULES)
        lowering.run(passes, doing="the module's schedule", blame=InputError)
    # This is checked before bufferization, which fails for operations with unknown effects.
    check_host_code(source, is_outlined=False)
    levels = [found.level for found in recognise(source)]
    passes = plan_for(levels, block=request.block, memory=request.memory, verify=request.verify)
    explanation.add(passes)
    lowering.run(passes)
    return lowering.managed_globals


def _mark_allocations(source: Source) -> None:
    """Tells the author's allocations from those that the passes make, which they must place."""
    with source.module.context:
        for allocation in ops.find(source.module.operation, "memref.alloc"):
            allocation.attributes[GIVEN] = ir.UnitAttr.get()


def _check_writes(source: Source, passes: Sequence[Pass]) -> None:
    """Raises InputError for a pipeline that would return a result that must be written into an
    argument."""
    writes = any(targets_of(function) for function in functions_of(source.module))
    if writes and all(one.name != WriteIntoArguments.name for one in passes):
        raise InputError(
            f"A result is to be written into an argument ({INTO_ATTRIBUTE}), which --pipeline does "
            f"not do: put {WriteIntoArguments.name} behind bufferization."
        )
