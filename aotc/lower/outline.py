"""Any input → the outlined module: host functions that launch the kernels of gpu.modules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from aotc import ops
from aotc.errors import AotcError, InputError, InternalError
from aotc.input.source import Source
from aotc.lower.checks.host_code import check_host_code
from aotc.lower.passes.own import Lowering, run_own_pass
from aotc.lower.passes.run import run_passes
from aotc.lower.plan.explanation import Explanation
from aotc.lower.plan.levels import recognise
from aotc.lower.plan.steps import (
    ERASE_SCHEDULES,
    SCHEDULE,
    Step,
    parse_plan,
    plan_for,
    with_placement,
)
from aotc.request import BuildRequest

_MAIN_SEQUENCE = "__transform_main"


def outline(source: Source, request: BuildRequest, explanation: Explanation) -> frozenset[str]:
    """Changes the source's module in place, by aotc's plan for it or by the user's pipeline.

    Tells `explanation` what it does, before it does it. Returns the names of the globals that
    kernels are given.
    """
    lowering = Lowering(source, request, explanation.remarks)
    explanation.levels = recognise(source)
    if request.pipeline is not None:
        explanation.add(steps := with_placement(parse_plan(request.pipeline)))
        _run(lowering, steps, blame=InputError, doing="the pipeline given by --pipeline")
        return lowering.managed_globals
    sequences = ops.find(source.module.operation, "transform.named_sequence")
    if sequences:
        is_run = any(ops.symbol_of(sequence) == _MAIN_SEQUENCE for sequence in sequences)
        explanation.add(steps := SCHEDULE if is_run else ERASE_SCHEDULES)
        _run(lowering, steps, blame=InputError, doing="the module's schedule")
    # Before tensors become buffers: that fails at what nobody knows the effects of.
    check_host_code(source, is_outlined=False)
    levels = [found.level for found in recognise(source)]
    explanation.add(steps := plan_for(levels, block=request.block, memory=request.memory.value))
    _run(lowering, steps, blame=InternalError, doing="lowering the module")
    return lowering.managed_globals


def _run(lowering: Lowering, steps: Sequence[Step], *, blame: type[AotcError], doing: str) -> None:
    source = lowering.source
    # One pass manager for what is MLIR's in a row.
    for is_own, group in itertools.groupby(steps, key=lambda step: step.is_own):
        if is_own:
            for step in group:
                run_own_pass(lowering, step)
            continue
        run_passes(
            source.module,
            [step.text for step in group],
            name=source.name,
            lines=source.lines,
            blame=blame,
            doing=doing,
        )
