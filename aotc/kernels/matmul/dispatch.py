"""Replaces matmuls in host code by launches of kernels, among which the program chooses at run
time.

The choice depends on the device, as Hopper GPUs have kernels of their own, and the CPU device may
keep the loops. It also depends on the addresses of matrices, as the widest copies need multiples of
16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial, reduce
from itertools import groupby
from operator import and_, or_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.block_order import BlockOrder
from aotc.analysis.functions import Functions
from aotc.analysis.generics import has_reduction
from aotc.analysis.views import VIEWS, root_of
from aotc.attributes import CAPABILITIES, TARGET_ATTRIBUTE
from aotc.builder import Builder
from aotc.builder.numbers import Condition, Number, Scalar, Value, ceil_divide, compare
from aotc.kernels.cpu.constant_copies import copy_of_constant
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.launch_functions import LaunchFunctions
from aotc.kernels.launches import chips_of, generics_on_host, is_for_cpu, name_modules
from aotc.kernels.matmul.choice import FAMILIES, Choice, choose, choose_for_cpu, is_worth_on_cpu
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.cpu.gated import can_implement as can_implement_gates
from aotc.kernels.matmul.cpu.gated import insert_gated
from aotc.kernels.matmul.cpu.packed import CPU_PACKED, packed_problem
from aotc.kernels.matmul.cpu.streamed import CPU_STREAMED
from aotc.kernels.matmul.cpu.streamed_packed import CPU_STREAMED_PACKED, packed_row_problem
from aotc.kernels.matmul.depthwise.recognition import recognise_depthwise
from aotc.kernels.matmul.explanation import reasons
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.fusion.fuse import Fused, fuse, remove_temporary, unfused
from aotc.kernels.matmul.fusion.gates import FusedGates
from aotc.kernels.matmul.fusion.narrow import narrow_results
from aotc.kernels.matmul.fusion.reduction_dimensions import collapse_reduction_dimensions
from aotc.kernels.matmul.implicit_gemm.broadcast import broadcast_shared_matrix
from aotc.kernels.matmul.implicit_gemm.flattened import flattened
from aotc.kernels.matmul.implicit_gemm.padding import with_padding
from aotc.kernels.matmul.implicit_gemm.recognition import recognise_implicit_gemm
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueOperand, Matrix, Problem
from aotc.kernels.matmul.recognition import Matmul, multiplies, recognise_matmul
from aotc.kernels.matmul.tuned import Entry, parse_tuned, problem_words, variant_of
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY, PACKED_COPY
from aotc.remarks import ChosenKernels, Remarks
from aotc.request import BuildRequest, Chip
from aotc.rewrites.capability import declare_capability, has_gpu

STEP = "aotc-choose-matmul-kernels"
# By CPU family: the family for a packed B, and the function that returns the problem with packed B.
_PACKED: dict[MatmulFamily[Any], tuple[MatmulFamily[Any], Callable[[Problem], Problem | None]]] = {
    CPU_BLOCKED: (CPU_PACKED, packed_problem),
    CPU_STREAMED: (CPU_STREAMED_PACKED, packed_row_problem),
}
# Operations whose buffers have the alignment of the widest copies.
_ALIGNED = ("memref.alloc", "memref.get_global")
# Views with the aligned pointer of their operand; an offset is in their type.
_SAME_POINTER = tuple(name for name in VIEWS if name != "memref.view")


def choose_matmul_kernels(module: Any, request: BuildRequest, remarks: Remarks) -> None:
    """Replaces the matmuls of `module` in place. Its linalg operations are `linalg.generic` on
    buffers."""
    with module.context:
        roots = Roots(Functions(module))
        generics = [
            generic
            for generic in generics_on_host(module)
            if has_reduction(generic) and not _is_empty(generic)
        ]
        matmuls = _matmuls(generics, roots, request)
        narrow_results([one for one in matmuls if one.problem.has_matrices and not one.has_rows])
        selections: list[_Selection] = []
        done, order = set[Any](), BlockOrder()
        for number, matmul in enumerate(matmuls):
            later = [other.c for other in matmuls[number + 1 :]]
            one = _select_kernels(matmul, roots, (done, later, order), request, remarks)
            done.update(one.operations)
            selections.append(one)
        # From the last one to the first: the operations that are fused to a matmul come after it.
        problems = [kept for one in selections for kept in one.problems]
        functions = LaunchFunctions(module, request, "aotc_matmul_", problems)
        for number, one in enumerate(reversed(selections)):
            one.replace(functions, number)
        if selections:
            declare_capability(module)


def _is_empty(generic: Any) -> bool:
    """Whether an operand is known to have no elements, so that there is nothing to multiply."""
    types = [value.type for value in generic.operands if isinstance(value.type, ir.MemRefType)]
    return any(0 in list(type_.shape) for type_ in types)


class _Selection(Struct):
    """A matmul and its kernels.

    `fused`: the matmul with its fused operations. `choices`: the kernels for GPUs. `cpu`: the
    kernel for the CPU device. `loops_on`: the target that runs the original loops, CPU or ANY_GPU,
    if there is one. `capabilities`: the compute capabilities that code is generated for. `on_gpus`:
    the part of `fused` that the kernels for GPUs compute, if it is not all; the other operations
    are kept there.
    """

    fused: Fused
    choices: list[Choice]
    cpu: Choice | None
    loops_on: str | None
    capabilities: tuple[int, ...]
    on_gpus: Fused | None = None

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
            steps += f" and, on the CPU, {self.fused.gates.gates.count} gates"
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

    def replace(self, functions: LaunchFunctions, number: int) -> None:
        """Inserts the dispatch at the last of the operations, and erases those that it replaces.
        `number` identifies the matmul in the module."""
        fused, last = self.fused, self.operations[-1]
        with last.location, ir.InsertionPoint(last):
            made = _Dispatch(fused, functions, f"matmul_{number}").build(self)
        if fused.pad is not None:
            ops.erase(fused.pad)
        if self.loops_on is not None:
            return
        # On a GPU, operations that combine gates are kernels of their own, and were moved.
        for operation in reversed(self.of_gpus.replaced if self.choices else self.operations):
            ops.erase(operation)
        for temporary in fused.temporaries:
            if self.on_gpus is None:
                remove_temporary(temporary)
            else:
                _free_behind(temporary, made)


def _free_behind(temporary: Any, operation: Any) -> None:
    """Moves the deallocation of a buffer behind `operation`, which is now its last use."""
    for use in list(temporary.uses):
        user = use.owner.operation
        if user.name == "memref.dealloc" and user.block == operation.block:
            user.move_after(operation)


def _matmuls(generics: Sequence[Any], roots: Roots, request: BuildRequest) -> list[Matmul]:
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


def _select_kernels(
    matmul: Matmul,
    roots: Roots,
    others: tuple[Collection[Any], Sequence[Any], BlockOrder],
    request: BuildRequest,
    remarks: Remarks,
) -> _Selection:
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
    if not any(choice.reads_without_padding for choice in kept.choices):
        kept.fused.pad = None
    if not _has_gated_kernel(kept):
        kept.fused.gates = None
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


def _is_for_cpu_alone(alone: _Selection, more: _Selection) -> bool:
    """Whether only the CPU's kernel has the fused operations, because the kernels for GPUs would
    change with them. A separate pass that scales accumulators of integers would take the CPU as
    long as the matmul itself."""
    has_all = bool(alone.choices) and alone.cpu is not None and more.cpu is not None
    return has_all and alone.fused.problem.accumulator == "i32" and more.fused.epilogue is not None


def _has_gated_kernel(selection: _Selection) -> bool:
    """Whether the CPU's kernel can combine the gates. (On GPUs, that is a kernel of its own.)"""
    fused, cpu = selection.fused, selection.cpu
    if fused.gates is None or cpu is None or cpu.family is not CPU_BLOCKED:
        return False
    return can_implement_gates(cpu.problem, cpu.variant, fused.epilogue, fused.gates.gates)


def _families(selection: _Selection) -> list[Any]:
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


def _with_kernels(fused: Fused, request: BuildRequest, remarks: Remarks) -> _Selection:
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
    return _Selection(fused, choices, cpu, loops_on, request.capabilities)


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
    if matmul is None:
        matmul = recognise_implicit_gemm(generic, roots, allow_tf32=request.allow_tf32)
        matmul = matmul and (flattened(matmul) or with_padding(matmul, roots))
    if (
        matmul is None
        and multiplies(generic)
        and (broadcast_shared_matrix(generic) or collapse_reduction_dimensions(generic))
    ):
        matmul = recognise(generic, roots)
    if matmul is None and is_for_cpu(generic):
        matmul = recognise_implicit_gemm(
            generic, roots, allow_tf32=request.allow_tf32, needs_near=False
        )
    return matmul or recognise_depthwise(generic, roots)


def move_here(operations: Sequence[Any]) -> None:
    """Moves operations to the insertion point."""
    for operation in operations:
        ir.InsertionPoint.current.insert(operation.detach_from_parent())


class _Dispatch:
    """The nest of conditions around the kernels of a matmul, with its operands."""

    def __init__(self, fused: Fused, functions: LaunchFunctions, name: str) -> None:
        """Creates views of the operands at the insertion point. `name`: the dispatch's, for
        `name_modules`."""
        a, b, c, *epilogue_operands = [operand.make() for operand in fused.operands]
        self._b = Builder()
        self._functions, self._name = functions, name
        self._problem, self._epilogue = fused.problem, fused.epilogue
        self._pad, self._source = fused.pad, fused.source
        self._arguments = Arguments(a, b, c, tuple(epilogue_operands))
        self._gates = fused.gates
        self._is_aligned = [
            (owner := ops.defining(root_of(operand.value, _SAME_POINTER))) is not None
            and owner.name in _ALIGNED
            for operand in fused.operands
        ]

    def build(self, selection: _Selection) -> Any:
        """Inserts and returns one operation that launches the kernels. If the CPU or GPUs run the
        original loops, it is an `scf.if`, and the replaced operations move to one of its
        regions."""
        made = self._insert(selection)
        name_modules(made, selection.capabilities, self._name)
        return made

    def _insert(self, selection: _Selection) -> Any:
        b = self._b
        if selection.loops_on == ANY_GPU:
            assert selection.cpu is not None
            with b.where(has_gpu()) as branch:
                move_here(selection.operations)
            with branch.otherwise():
                self._cpu_kernel(selection.cpu)
            return branch.operation
        callee = ir.FlatSymbolRefAttr.get(CAPABILITY)
        capability = b.op("func.call", (), "i32", callee=callee)
        if not selection.choices:
            assert selection.cpu is not None
            with b.execute_region() as region:
                self._cpu_kernel(selection.cpu)
            return region
        if selection.cpu is None and selection.loops_on is None:
            with b.execute_region() as region:
                self._choose(capability, selection.choices)
            return region
        with b.where(compare("sge", capability, LEAST_CAPABILITY)) as branch:
            if selection.on_gpus is None:
                self._choose(capability, selection.choices)
            else:
                self._choose_for_less(capability, selection, selection.on_gpus)
            move_here(selection.gate_operations)
        with branch.otherwise():
            self._write_padding()
            if selection.cpu is not None:
                self._cpu_kernel(selection.cpu)
            else:
                move_here(selection.fused.replaced)
        return branch.operation

    def _choose_for_less(self, capability: Scalar, selection: _Selection, less: Fused) -> None:
        """Launches the kernels for `less`, which is a part of the operations of the CPU's kernel.
        The other operations are moved in front of them and behind them."""
        every = selection.fused.replaced
        first = every.index(less.replaced[0])
        move_here(every[:first])
        _Dispatch(less, self._functions, self._name)._choose(capability, selection.choices)
        move_here(every[first + len(less.replaced) :])

    def _choose(self, capability: Scalar, choices: Sequence[Choice]) -> None:
        """Launches the first choice whose conditions hold. The last choice is unconditional."""
        first, *others = choices
        conditions = list[Condition]()
        if first.target != ANY_GPU:
            conditions.append(compare("eq", capability, Chip(first.target).capability))
        if first.capabilities:
            conditions.append(_is_one_of(capability, first.capabilities))
        for number, buffer in enumerate(_buffers(first.problem)):
            if buffer.element is not None:
                conditions += self._alignment(number, buffer)
        if first.least_tiles:
            conditions.append(compare("uge", self._tiles(first), first.least_tiles))
        if first.most_tiles:
            conditions.append(compare("ule", self._tiles(first), first.most_tiles))
        if first.problem.k is None and (first.least_k or first.target != ANY_GPU):
            # At least 1: TMA needs an address, and a matrix without elements may have none.
            conditions.append(compare("uge", self._k_extent(), max(1, first.least_k)))
        if first.rows is not None:
            rows = self._b.dim(self._arguments.c, _rank(self._arguments.c) - 2)
            conditions += [compare("uge", rows, first.rows[0]), compare("ule", rows, first.rows[1])]
        if not conditions or not others:
            self._kernel(first)
            return
        with self._b.where(reduce(and_, conditions)) as branch:
            self._kernel(first)
        with branch.otherwise():
            if first.reads_without_padding:
                self._write_padding()
            self._choose(capability, others)

    def _write_padding(self) -> None:
        """Writes the padded A, for kernels that read it."""
        if self._pad is not None:
            self._pad.clone()

    def _cpu_kernel(self, choice: Choice) -> None:
        """Launches the CPU's kernel, with a packed B if B is a constant."""
        family, problem_of = _PACKED.get(choice.family, (choice.family, lambda _: None))
        problem = problem_of(choice.problem)
        if problem is not None:
            packed = copy_of_constant(self._b, self._arguments.b, PACKED_COPY, problem.b.type)
            if packed is not None:
                self._arguments = replace(self._arguments, b=packed)
                variant = family.variants(problem)[0]
                choice = replace(choice, family=family, problem=problem, variant=variant)
        self._kernel(choice, self._gates)

    def _kernel(self, choice: Choice, gates: FusedGates | None = None) -> None:
        arguments = self._arguments
        if choice.reads_without_padding:
            arguments = replace(arguments, a=self._source)
        if gates is not None or choice.family.depends_on_host_code:
            self._launch(choice, arguments.values, gates)
            return
        keys = self._problem, (choice, self._epilogue)
        self._functions.launch(keys, arguments.values, self._name, partial(self._launch, choice))

    def _launch(
        self, choice: Choice, values: Sequence[Value], gates: FusedGates | None = None
    ) -> None:
        """Inserts the launch with the values of `Arguments`."""
        a, b, c, *others = values
        arguments = Arguments(a, b, c, tuple(others))
        if self._epilogue:
            bound = self._epilogue.bind(choice.problem.epilogue_operands, others)
            arguments = replace(arguments, epilogue=bound)
        with self._b.execute_region() as region:
            if gates is None:
                choice.build(self._b, arguments)
            else:
                kernel = choice.family.kernel_name(choice.problem, choice.variant)
                with self._b.kernel_name(f"{kernel}_gates"):
                    made = gates.gates, gates.make_arguments()
                    chosen = choice.problem, choice.variant
                    insert_gated(self._b, chosen, arguments, made)
        region.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(choice.target)
        if choice.capabilities:
            region.attributes[CAPABILITIES] = ir.DenseI32ArrayAttr.get(choice.capabilities)

    def _tiles(self, choice: Choice) -> Number:
        """The number of tiles of C, in all matmuls of the batch."""
        c = self._arguments.c
        last = _rank(c) - 1
        tiles = {last - 1: choice.variant.m, last: choice.variant.n}
        count: Number = 1
        for dimension in range(last + 1):
            size = self._b.dim(c, dimension)
            count = count * ceil_divide(size, tiles.get(dimension, 1))
        return count

    def _k_extent(self) -> Number:
        a = self._arguments.a
        return self._b.dim(a, _rank(a) - (2 if self._problem.a.transposed else 1))

    def _alignment(self, number: int, buffer: Matrix | EpilogueOperand) -> list[Condition]:
        """The conditions under which rows begin at multiples of the buffer's `alignment` (bytes).
        `number`: the argument's index."""
        size = ELEMENT_BYTES.get(buffer.element or "", 1)
        if buffer.alignment <= size:
            return []
        b = self._b
        value = self._arguments.values[number]
        parts, distances_exist = list[Number](), list[Condition]()
        if not self._is_aligned[number]:
            parts.append(b.op("memref.extract_aligned_pointer_as_index", [value], "index"))
        type_ = ir.MemRefType(value.type)
        if type_.layout != _identity(type_.rank):
            offset, strides = b.strides(value)
            distances = strides[:-1]
            parts += [one * size for one in (offset, *distances)]
            if isinstance(buffer, Matrix):  # TMA has no distance of 0
                distances_exist = [compare("ne", distance, 0) for distance in distances]
        elif _has_unknown_rows(buffer, type_):
            parts.append(b.dim(value, type_.rank - 1) * size)
        if not parts:
            return []
        bits = reduce(or_, parts)
        return [*distances_exist, compare("eq", bits & (buffer.alignment - 1), 0)]


def _is_one_of(capability: Scalar, numbers: Sequence[int]) -> Condition:
    return reduce(or_, (compare("eq", capability, number) for number in numbers))


def _rank(value: Value) -> int:
    return int(ir.MemRefType(value.type).rank)


def _has_unknown_rows(buffer: Matrix | EpilogueOperand, type_: Any) -> bool:
    """Whether the pitch of a buffer with contiguous rows is unknown."""
    if isinstance(buffer, Matrix):
        return buffer.pitch is None
    return bool(type_.rank > 1 and type_.is_dynamic_dim(type_.rank - 1))


def _buffers(problem: Problem) -> list[Matrix | EpilogueOperand]:
    """The buffers and scalars of a kernel's arguments, in their order."""
    return [problem.a, problem.b, problem.c, *problem.epilogue_operands]


def _identity(rank: int) -> Any:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
