"""Chooses the kernels of the matmuls in host code: which operations they are fused with, and which
kernels they get on GPUs and on the CPU device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.analysis.aliasing import Roots
from aotc.analysis.block_order import BlockOrder
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.launches import chips_of, is_for_cpu
from aotc.kernels.matmul.choice import FAMILIES, choose, choose_gated
from aotc.kernels.matmul.chosen import Choice
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.cpu.choice import choose_for_cpu, is_worth_on_cpu
from aotc.kernels.matmul.cpu.gated import can_implement as can_implement_gates
from aotc.kernels.matmul.cpu.selected import can_implement as can_select_rows
from aotc.kernels.matmul.depthwise.recognition import recognise_depthwise
from aotc.kernels.matmul.explanation import reasons
from aotc.kernels.matmul.fusion.fuse import Fused, fuse, unfused
from aotc.kernels.matmul.fusion.reduction_dimensions import collapse_reduction_dimensions
from aotc.kernels.matmul.fusion.selection import gather_of
from aotc.kernels.matmul.implicit_gemm.broadcast import broadcast_shared_matrix
from aotc.kernels.matmul.implicit_gemm.flattened import flattened
from aotc.kernels.matmul.implicit_gemm.padding import with_padding
from aotc.kernels.matmul.implicit_gemm.recognition import recognise_implicit_gemm
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.recognition import Matmul, multiplies, recognise_matmul
from aotc.kernels.matmul.tuned import Entry, parse_tuned, problem_words, variant_of
from aotc.remarks import ChosenKernels, Remarks
from aotc.request import BuildRequest

STEP = "aotc-choose-matmul-kernels"


class KernelSelection(Struct):
    """A matmul and its kernels.

    `fused`: the matmul with its fused operations. `choices`: the kernels for GPUs. `cpu`: the
    kernel for the CPU device. `loops_on`: the target that runs the original loops, CPU or ANY_GPU,
    if there is one. `capabilities`: the compute capabilities that code is generated for. `on_gpus`:
    the part of `fused` that the kernels for GPUs compute, if it is not all; the other operations
    are kept there. `gated`: the kernels for GPUs that combine gates as well, which are tried first.
    `cpu_has_gates`: whether the CPU's kernel does so. `least_rows`: see `Matmul`.
    """

    fused: Fused
    choices: list[Choice]
    cpu: Choice | None
    loops_on: str | None
    capabilities: tuple[int, ...]
    on_gpus: Fused | None = None
    gated: list[Choice] = []
    cpu_has_gates: bool = False
    least_rows: int = 1

    def __str__(self) -> str:
        kernels = [", else ".join(map(str, self.choices))] if self.choices else []
        if self.cpu is not None:
            kernels.append(str(self.cpu))
        if self.loops_on is not None:
            kernels.append("loops on the CPU" if self.loops_on == CPU else "loops on GPUs")
        steps = " with an epilogue" if self.fused.epilogue else ""
        if self.on_gpus is not None:
            steps += " on the CPU"
        if self.fused.gates is not None:
            where = "" if self.gated else " on the CPU," if self.cpu_has_gates else ""
            where = "" if self.gated and self.cpu_has_gates else where or " on GPUs,"
            steps += f" and{where and ',' + where} {self.fused.gates.gates.count} gates"
        if self.fused.selection is not None:
            steps += " of the rows that are read, on the CPU"
        return f"{self.fused.problem.name}{steps}: {'; '.join(kernels)}"

    @property
    def gate_operations(self) -> list[Any]:
        """The operations that combine gates."""
        return self.fused.gates.operations if self.fused.gates is not None else []

    @property
    def operations(self) -> list[Any]:
        """The operations that the kernels replace, on the CPU at least, in order."""
        return [*self.fused.replaced, *self.gate_operations]

    @property
    def problems(self) -> set[Problem]:
        """The problems of its kernels."""
        return {self.fused.problem, self.of_gpus.problem}

    @property
    def of_gpus(self) -> Fused:
        """The matmul with the operations that the kernels for GPUs compute."""
        return self.on_gpus or self.fused


def matmuls_of(generics: Sequence[Any], roots: Roots, request: BuildRequest) -> list[Matmul]:
    """The matmuls among `generics` that get kernels."""
    matmuls = []
    for generic in generics:
        with generic.location:
            matmul = _recognise(generic, roots, request)
        if matmul is None:
            continue
        if _has_kernels(matmul.problem, request, on_cpu_alone=is_for_cpu(generic)):
            matmuls.append(matmul)
    return matmuls


def _has_kernels(problem: Problem, request: BuildRequest, *, on_cpu_alone: bool) -> bool:
    if not on_cpu_alone and _choose(problem, request):
        return True
    on_cpu_alone |= problem.has_slow_loops
    if not request.cpu_kernels or not (on_cpu_alone or is_worth_on_cpu(problem)):
        return False
    return choose_for_cpu(problem) is not None


def select_kernels(
    matmul: Matmul,
    roots: Roots,
    others: tuple[Collection[Any], Sequence[Any], BlockOrder],
    request: BuildRequest,
    remarks: Remarks,
) -> KernelSelection:
    """Chooses the kernels of a matmul, and reports the choice. Operations are fused to the matmul
    if it can have the same kernels then. `others`: further arguments of `fuse`."""
    location = matmul.operation.location
    alone = kept = _with_kernels(unfused(matmul), request, remarks)
    with location:
        more = _with_kernels(fuse(matmul, roots, *others), request, remarks)
    # If a family does not support the epilogue, nothing is fused.
    if _families(more) == _families(alone):
        kept = more
    elif _is_for_cpu_alone(alone, more):
        kept = replace(alone, fused=more.fused, cpu=more.cpu, on_gpus=alone.fused)
    # Kernels for fewer rows than there can be would never be launched.
    kept.least_rows = least = matmul.least_rows
    kept.choices = [one for one in kept.choices if one.rows is None or one.rows[1] >= least]
    if not any(one.reads_without_padding for one in (*kept.choices, kept.cpu) if one is not None):
        kept.fused.pad = None
    _choose_gated_kernels(kept, request)
    if not _has_selected_kernel(kept):
        kept.fused.selection = None
    if matmul.problem.has_matrices:  # those are not timed
        remarks.matmuls.append(replace(kept.of_gpus.problem, epilogue_operands=()))
    remarks.add(STEP, location, str(kept))
    if request.is_for_trying:
        remarks.add(STEP, location, "-O1: this one kernel is for all sizes and addresses")
    chips = chips_of(request)
    why = tuple(reasons(kept.choices, chips))
    for line in why:
        remarks.add(STEP, location, line)
    place, choices = remarks.source.place(location), tuple(kept.choices)
    remarks.chosen.append(
        ChosenKernels(place, str(kept), kept.of_gpus.problem, choices, why, tuple(chips))
    )
    return kept


def _is_for_cpu_alone(alone: KernelSelection, more: KernelSelection) -> bool:
    """Whether only the CPU's kernel has the fused operations, because the kernels for GPUs would
    change with them. A separate pass that scales accumulators of integers would take the CPU as
    long as the matmul itself."""
    has_all = bool(alone.choices) and alone.cpu is not None and more.cpu is not None
    return has_all and alone.fused.problem.accumulator == "i32" and more.fused.epilogue is not None


def _choose_gated_kernels(selection: KernelSelection, request: BuildRequest) -> None:
    """Chooses the kernels that combine the gates. If there are none, the gates are not fused."""
    fused, cpu = selection.fused, selection.cpu
    if fused.gates is None:
        return
    has_all_kernels = selection.choices and selection.loops_on is None
    if has_all_kernels and selection.on_gpus is None and not request.is_for_trying:
        selection.gated = choose_gated(fused.problem, fused.gates.gates, chips_of(request))
    selection.cpu_has_gates = (
        cpu is not None
        and cpu.family is CPU_BLOCKED
        and can_implement_gates(cpu.problem, cpu.variant, fused.epilogue, fused.gates.gates)
    )
    if not (selection.gated or selection.cpu_has_gates):
        fused.gates = None


def _has_selected_kernel(selection: KernelSelection) -> bool:
    """Whether the CPU's kernel can compute the rows that are read alone."""
    cpu = selection.cpu
    return cpu is not None and cpu.family is CPU_BLOCKED and can_select_rows(cpu.problem)


def _families(selection: KernelSelection) -> list[Any]:
    """The families of the choices, and whether the CPU has none. A choice for only some GPUs is
    left out, as the choice after it, for the other GPUs, represents both. A choice of an implicit
    GEMM for one chip is left out, as fusion saves more than that kernel gains. Consecutive choices
    of one family, which differ in alignments or sizes, count as one."""
    families = [
        choice.family
        for choice in selection.choices
        if not choice.capabilities and (choice.target == ANY_GPU or choice.problem.has_matrices)
    ]
    return [*(family for family, _ in groupby(families)), selection.cpu is None]


def _choose(
    problem: Problem, request: BuildRequest, measured: Sequence[Entry] = ()
) -> list[Choice]:
    return choose(
        problem,
        chips_of(request),
        measured,
        untested=request.untested_kernels,
        one_variant=request.is_for_trying,
        capabilities=request.capabilities,
    )


def _with_kernels(fused: Fused, request: BuildRequest, remarks: Remarks) -> KernelSelection:
    last = fused.replaced[-1]
    choices = []
    if not is_for_cpu(last):
        measured = _measured(fused.problem, last, request, remarks)
        choices = _choose(fused.problem, request, measured)
    cpu = choose_for_cpu(fused.problem) if request.cpu_kernels else None
    loops_on = None
    if request.cpu_kernels and cpu is None:
        loops_on = CPU
    elif cpu is not None and not choices and not is_for_cpu(last):
        loops_on = ANY_GPU
    return KernelSelection(fused, choices, cpu, loops_on, request.capabilities)


def _measured(
    problem: Problem, generic: Any, request: BuildRequest, remarks: Remarks
) -> list[Entry]:
    """The entries for the problem in the file of --tuned. Entries whose kernel this version of aotc
    cannot build are left out, with a warning."""
    if request.tuned is None or request.is_for_trying or not problem.has_matrices:
        return []
    words, found = problem_words(problem), []
    for entry in parse_tuned(request.tuned):
        if entry.problem != words:
            continue
        try:
            variant_of(entry, FAMILIES, problem)
        except ValueError as error:
            text = f"what was measured on {entry.gpu} is left out: {error}. Measure again"
            remarks.warn("stale-tuning", generic.location, text)
            continue
        found.append(entry)
    return found


def _recognise(generic: Any, roots: Roots, request: BuildRequest) -> Matmul | None:
    recognise = partial(
        recognise_matmul,
        allow_tf32=request.allow_tf32,
        allow_3xtf32=request.allow_3xtf32,
    )
    matmul = recognise(generic, roots)
    if matmul is None and multiplies(generic) and gather_of(generic.operands[2]) is not None:
        # Kernels of batches leave out rows that are not gathered.
        matmul = recognise(generic, roots) if broadcast_shared_matrix(generic) else None
    if matmul is None:
        matmul = recognise_implicit_gemm(generic, roots, allow_tf32=request.allow_tf32)
        matmul = matmul and (flattened(matmul) or with_padding(matmul, roots))
    if (
        matmul is None
        and multiplies(generic)
        and (broadcast_shared_matrix(generic) or collapse_reduction_dimensions(generic))
    ):
        matmul = recognise(generic, roots)
    if found := matmul or recognise_depthwise(generic, roots):
        return found
    far = recognise_implicit_gemm(generic, roots, allow_tf32=request.allow_tf32, needs_near=False)
    return far and (flattened(far) or far)
