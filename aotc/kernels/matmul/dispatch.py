"""Replaces matmuls in host code by launches of kernels, among which the program chooses at run
time.

The choice depends on the device, as Hopper GPUs have kernels of their own, and the CPU device may
keep the loops. It also depends on the addresses of matrices, as the widest copies need multiples of
16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import and_, or_
from typing import Any

from msgspec.structs import replace

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.block_order import BlockOrder
from aotc.analysis.functions import Functions
from aotc.analysis.generics import has_reduction
from aotc.analysis.views import VIEWS, root_of
from aotc.attributes import CAPABILITIES, TARGET_ATTRIBUTE
from aotc.builder import Builder
from aotc.builder.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    ceil_divide,
    compare,
    minimum,
    select,
)
from aotc.kernels.cpu.constant_copies import copy_of_constant
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.launch_functions import LaunchFunctions
from aotc.kernels.launches import generics_on_host, name_modules
from aotc.kernels.matmul.chosen import Choice
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.cpu.choice import choose_for_one_row
from aotc.kernels.matmul.cpu.gated import insert_gated
from aotc.kernels.matmul.cpu.grouped import CPU_GROUPED, grouped_copy
from aotc.kernels.matmul.cpu.packed import (
    CPU_PACKED,
    CPU_TRANSPOSED,
    packed_problem,
    transposed_problem,
)
from aotc.kernels.matmul.cpu.selected import insert_selected
from aotc.kernels.matmul.cpu.streamed import CPU_STREAMED
from aotc.kernels.matmul.cpu.streamed_packed import CPU_STREAMED_PACKED, packed_row_problem
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.fusion.fuse import Fused, remove_temporary
from aotc.kernels.matmul.fusion.narrow import narrow_results
from aotc.kernels.matmul.fusion.selection import RowSelection
from aotc.kernels.matmul.gates import Gates
from aotc.kernels.matmul.implicit_gemm.operand import count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.kernel_selection import KernelSelection, matmuls_of, select_kernels
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueOperand, Matrix, Problem
from aotc.kernels.matmul.waves import (
    Shape,
    Tiles,
    has_many_waves,
    parts_of_tiles,
    rows_of_waves,
)
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY, PACKED_COPY, TRANSPOSED_COPY
from aotc.remarks import Remarks
from aotc.request import BuildRequest, Chip
from aotc.rewrites.capability import declare_capability, has_gpu

# By CPU family: the families for a packed B, each with the prefix of the copy's name and the
# function that returns the problem with packed B.
_Packed = tuple[str, MatmulFamily[Any], Callable[[Problem], Problem | None]]
_PACKED: dict[MatmulFamily[Any], tuple[_Packed, ...]] = {
    CPU_BLOCKED: (
        (PACKED_COPY, CPU_PACKED, packed_problem),
        (TRANSPOSED_COPY, CPU_TRANSPOSED, transposed_problem),
    ),
    CPU_STREAMED: ((PACKED_COPY, CPU_STREAMED_PACKED, packed_row_problem),),
}
# Operations whose buffers have the alignment of the widest copies.
_ALIGNED = ("memref.alloc", "memref.get_global")
# The tiles along an image of unknown size up to which the kernel for few tiles is used.
_FEW_COLUMNS = 2
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
        matmuls = matmuls_of(generics, roots, request)
        narrow_results([one for one in matmuls if one.problem.has_matrices and not one.has_rows])
        selections: list[KernelSelection] = []
        done, order = set[Any](), BlockOrder()
        for number, matmul in enumerate(matmuls):
            later = [other.c for other in matmuls[number + 1 :]]
            one = select_kernels(matmul, roots, (done, later, order), request, remarks)
            done.update(one.operations)
            selections.append(one)
        # From the last one to the first: the operations that are fused to a matmul come after it.
        problems = [kept for one in selections for kept in one.problems]
        functions = LaunchFunctions(module, request, "aotc_matmul_", problems)
        for number, one in enumerate(reversed(selections)):
            _replace(one, functions, number)
        if selections:
            declare_capability(module)


def _is_empty(generic: Any) -> bool:
    """Whether an operand is known to have no elements, so that there is nothing to multiply."""
    types = [value.type for value in generic.operands if isinstance(value.type, ir.MemRefType)]
    return any(0 in list(type_.shape) for type_ in types)


def _replace(selection: KernelSelection, functions: LaunchFunctions, number: int) -> None:
    """Inserts the dispatch at the last of the operations, and erases those that it replaces.
    `number` identifies the matmul in the module."""
    fused, last = selection.fused, selection.operations[-1]
    with last.location, ir.InsertionPoint(last):
        made = _Dispatch(fused, functions, f"matmul_{number}").build(selection)
    if fused.pad is not None:
        ops.erase(fused.pad)
    # Where no kernel combines the gates, there are clones of these operations.
    for operation in reversed(selection.gate_operations):
        ops.erase(operation)
    if selection.loops_on is not None:
        return
    for operation in reversed(selection.of_gpus.replaced):
        ops.erase(operation)
    for temporary in fused.temporaries:
        if selection.on_gpus is None:
            remove_temporary(temporary)
        else:
            _free_behind(temporary, made)


def _free_behind(temporary: Any, operation: Any) -> None:
    """Moves the deallocation of a buffer behind `operation`, which is now its last use."""
    for use in list(temporary.uses):
        user = use.owner.operation
        if user.name == "memref.dealloc" and user.block == operation.block:
            user.move_after(operation)


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
        self._gates, self._rows, self._least_rows = fused.gates, fused.selection, 1
        self._gate_arguments = fused.gates.make_arguments() if fused.gates else None
        self._is_aligned = [
            (owner := ops.defining(root_of(operand.value, _SAME_POINTER))) is not None
            and owner.name in _ALIGNED
            for operand in fused.operands
        ]

    def build(self, selection: KernelSelection) -> Any:
        """Inserts and returns one operation that launches the kernels. If the CPU or GPUs run the
        original loops, it is an `scf.if`, and the replaced operations move to one of its
        regions."""
        self._least_rows = selection.least_rows
        made = self._insert(selection)
        name_modules(made, selection.capabilities, self._name)
        return made

    def _insert(self, selection: KernelSelection) -> Any:
        b = self._b
        if selection.loops_on == ANY_GPU:
            assert selection.cpu is not None
            with b.where(has_gpu()) as branch:
                self._write_padding()
                move_here(selection.fused.replaced)
                self._combine_gates()
            with branch.otherwise():
                self._cpu_kernel(selection.cpu, has_gates=selection.cpu_has_gates)
            return branch.operation
        callee = ir.FlatSymbolRefAttr.get(CAPABILITY)
        capability = b.op("func.call", (), "i32", callee=callee)
        if not selection.choices:
            assert selection.cpu is not None
            with b.execute_region() as region:
                self._cpu_kernel(selection.cpu, has_gates=selection.cpu_has_gates)
            return region
        if selection.cpu is None and selection.loops_on is None:
            with b.execute_region() as region:
                self._gpu_kernels(capability, selection)
            return region
        with b.where(compare("sge", capability, LEAST_CAPABILITY)) as branch:
            if not any(choice.reads_without_padding for choice in selection.choices):
                self._write_padding()
            self._gpu_kernels(capability, selection)
        with branch.otherwise():
            if selection.cpu is None or not selection.cpu.reads_without_padding:
                self._write_padding()
            if selection.cpu is not None:
                self._cpu_kernel(selection.cpu, has_gates=selection.cpu_has_gates)
            else:
                move_here(selection.fused.replaced)
        return branch.operation

    def _gpu_kernels(self, capability: Scalar, selection: KernelSelection) -> None:
        """Launches the kernels for GPUs: those that combine gates, if their conditions hold."""

        def rest() -> None:
            if selection.on_gpus is None:
                self._choose(capability, selection.choices)
            else:
                self._choose_for_less(capability, selection, selection.on_gpus)
            self._combine_gates()

        if selection.gated:
            self._choose(capability, selection.gated, rest)
        else:
            rest()

    def _combine_gates(self) -> None:
        """Clones the operations that combine gates, behind a kernel that does not."""
        for operation in self._gates.operations if self._gates is not None else []:
            operation.clone()

    def _choose_for_less(self, capability: Scalar, selection: KernelSelection, less: Fused) -> None:
        """Launches the kernels for `less`, which is a part of the operations of the CPU's kernel.
        The other operations are moved in front of them and behind them."""
        every = selection.fused.replaced
        first = every.index(less.replaced[0])
        move_here(every[:first])
        _Dispatch(less, self._functions, self._name)._choose(capability, selection.choices)
        move_here(every[first + len(less.replaced) :])

    def _choose(
        self,
        capability: Scalar,
        choices: Sequence[Choice],
        rest: Callable[[], None] | None = None,
    ) -> None:
        """Launches the first choice whose conditions hold. The last choice is unconditional, unless
        `rest` is given, which builds what else is done. Choices in front of `rest` have gates."""
        first, *others = choices
        has_gates = rest is not None
        shared = _of_shared_rows(choices)
        if shared is not None and not has_gates:
            self._share_rows(capability, shared, choices[len(shared) :])
            return
        conditions = self._conditions(capability, first)
        if not conditions or not (others or has_gates):
            self._kernel(first, has_gates=has_gates)
            return
        with self._b.where(reduce(and_, conditions)) as branch:
            self._kernel(first, has_gates=has_gates)
        with branch.otherwise():
            if first.reads_without_padding:
                self._write_padding()
            if others:
                self._choose(capability, others, rest)
            elif rest is not None:
                rest()

    def _share_rows(
        self, capability: Scalar, choices: Sequence[Choice], others: Sequence[Choice]
    ) -> None:
        """Launches the kernels of `_of_shared_rows`, each for its rows of C, or another one if
        their conditions do not hold. Each kernel has one launch."""
        b, (*large, tiny, small) = self._b, choices
        conditions = self._conditions(capability, small)
        if conditions and others:
            with b.where(reduce(and_, conditions)) as branch:
                self._share_rows(capability, choices, ())
            with branch.otherwise():
                self._choose(capability, others)
            return
        c, batched = self._arguments.c, self._problem.batched
        m, n, k = self._rows_of_c(), b.dim(c, _rank(c) - 1), self._k_extent()
        shape = Shape(m, n, k, b.dim(c, 0) if batched else 1)

        def tiles_of(choice: Choice) -> Tiles:
            tiles = choice.family.wave_tiles(choice.problem, choice.variant, k)
            assert tiles is not None
            return tiles

        of_tiny, rows, is_large = tiles_of(tiny), 0, False
        _, clocks = parts_of_tiles(shape, m, of_tiny)
        for choice in (small, *large):
            its_rows, its_clocks = rows_of_waves(shape, tiles_of(choice), of_tiny)
            is_better = compare("ult", its_clocks, clocks)
            if choice is small:
                is_better |= has_many_waves(shape, of_tiny)
            rows, clocks = select(is_better, its_rows, rows), select(is_better, its_clocks, clocks)
            is_large = is_better
        if tiny.least_k and self._problem.k is None:
            is_short = compare("ult", k, tiny.least_k)
            rows = select(is_short, m, rows)
        rows = minimum(rows, m)  # A selection alone would be computed again in the kernel.
        with b.where(compare("ne", rows, 0)):
            with b.where(is_large if large else True) as branch:
                self._kernel(large[0] if large else small, of_rows=(0, rows))
            if large:
                with branch.otherwise():
                    self._kernel(small, of_rows=(0, rows))
        with b.where(compare("ult", rows, m)):
            self._kernel(tiny, of_rows=(rows, m - rows))

    def _conditions(self, capability: Scalar, choice: Choice) -> list[Condition]:
        """The conditions of a choice that depend on the device, the addresses and the sizes."""
        conditions = list[Condition]()
        if choice.target != ANY_GPU:
            conditions.append(compare("eq", capability, Chip(choice.target).capability))
        if choice.capabilities:
            conditions.append(_is_one_of(capability, choice.capabilities))
        for number, buffer in enumerate(_buffers(choice.problem)):
            if buffer.element is not None:
                conditions += self._alignment(number, buffer)
        if choice.least_tiles:
            conditions.append(compare("uge", self._tiles(choice.variant), choice.least_tiles))
        if choice.most_tiles:
            is_used = compare("ule", self._tiles(choice.variant), choice.most_tiles)
            if not isinstance(problem := choice.problem, ImplicitGemm):
                is_used |= compare("ule", self._rows_of_c(), choice.variant.m)
            elif problem.n is None:
                # Most of a large tile is beyond the end of a small image, however many there are.
                pixels = count_of(self._b, self._arguments, problem.columns)
                is_used |= compare("ule", pixels, _FEW_COLUMNS * choice.variant.n)
            conditions.append(is_used)
        if choice.problem.k is None and (choice.least_k or choice.target != ANY_GPU):
            # At least 1: TMA needs an address, and a matrix without elements may have none.
            conditions.append(compare("uge", self._k_extent(), max(1, choice.least_k)))
        if choice.rows is not None:
            rows, (least, most) = self._rows_of_c(), choice.rows
            conditions += [compare("uge", rows, least), compare("ule", rows, most)]
        return conditions

    def _write_padding(self) -> None:
        """Writes the padded image, for kernels that read it."""
        if self._pad is not None:
            self._pad.clone()

    def _cpu_kernel(self, choice: Choice, *, has_gates: bool = False) -> None:
        """Launches the CPU's kernel. If the number of rows is unknown, one row has its own: a batch
        of one, or a token after others."""
        can_be_one = not has_gates and self._rows is None and self._least_rows == 1
        row = choose_for_one_row(choice) if can_be_one else None
        if row is None:
            self._cpu_kernel_of(choice, has_gates=has_gates)
        else:
            rows = self._b.dim(self._arguments.c, 0)
            with self._b.where(compare("eq", rows, 1)) as branch:
                self._cpu_kernel_of(row)
            with branch.otherwise():
                self._cpu_kernel_of(choice)
        if not has_gates:
            self._combine_gates()

    def _cpu_kernel_of(self, choice: Choice, *, has_gates: bool = False) -> None:
        """Launches a CPU's kernel, with a packed B if B is a constant."""
        given = self._arguments
        grouped = grouped_copy(choice.problem) if choice.family is CPU_GROUPED else None
        if grouped is not None and self._rows is None:
            packed = copy_of_constant(self._b, given.b, *grouped)
            self._kernel(choice, has_gates=has_gates, packed_b=packed)
            return
        for prefix, family, problem_of in _PACKED.get(choice.family, ()):
            problem = problem_of(choice.problem)
            if problem is None:
                continue
            packed = copy_of_constant(self._b, given.b, prefix, problem.b.type)
            if packed is not None:
                self._arguments = replace(given, b=packed)
                variant = family.variants(problem)[0]
                choice = replace(choice, family=family, problem=problem, variant=variant)
                break
        self._kernel(choice, has_gates=has_gates)
        self._arguments = given

    def _kernel(
        self,
        choice: Choice,
        *,
        has_gates: bool = False,
        of_rows: tuple[Number, Number] | None = None,
        packed_b: Value | None = None,
    ) -> None:
        arguments = self._arguments
        if padded := choice.problem.padded_operand:
            arguments = replace(arguments, **{padded: self._source})
        launch, values, gates = partial(self._launch, choice), arguments.values, None
        if of_rows is not None:
            launch = partial(launch, has_rows=True)
            values = *values, *self._b.values(of_rows)
        rows = self._rows if choice.target == CPU else None
        if has_gates and self._gates is not None and self._gate_arguments is not None:
            gates = self._gates.gates
            launch = partial(launch, gates=gates)
            values = *values, *self._gate_arguments.values
        if packed_b is not None:
            launch = partial(launch, has_packed_b=True)
            values = *values, packed_b
        if rows is not None or choice.family.depends_on_host_code:
            launch(values, rows=rows)
            return
        keys = self._problem, (choice, self._epilogue, gates)
        self._functions.launch(keys, values, self._name, launch)

    def _launch(
        self,
        choice: Choice,
        values: Sequence[Value],
        gates: Gates | None = None,
        rows: RowSelection | None = None,
        *,
        has_rows: bool = False,
        has_packed_b: bool = False,
    ) -> None:
        """Inserts the launch with the values of `Arguments`, and those of `GateArguments`, or, with
        `has_rows`, of its `rows`. With `has_packed_b`, the last value is that copy."""
        packed_b = values[-1] if has_packed_b else None
        a, b, c, *others = values[:-1] if has_packed_b else values
        own = len(self._arguments.epilogue_operands)
        arguments = Arguments(a, b, c, tuple(others[:own]), packed_b=packed_b)
        if has_rows:
            first, count = map(Scalar, others[own:])
            arguments = replace(arguments, rows=(first, count))
        if self._epilogue:
            bound = self._epilogue.bind(choice.problem.epilogue_operands, others[:own])
            arguments = replace(arguments, epilogue=bound)
        if gates is not None:
            arguments = replace(arguments, gates=(gates, gates.arguments_of(others[own:])))
        with self._b.execute_region() as region:
            kernel = choice.family.kernel_name(choice.problem, choice.variant)
            chosen = choice.problem, choice.variant
            if rows is not None:
                with self._b.kernel_name(f"{kernel}_selected"):
                    insert_selected(self._b, chosen, arguments, rows)
            elif gates is None or choice.target != CPU:
                choice.build(self._b, arguments)
            else:
                with self._b.kernel_name(f"{kernel}_gates"):
                    insert_gated(self._b, chosen, arguments)
        region.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(choice.target)
        if choice.capabilities:
            region.attributes[CAPABILITIES] = ir.DenseI32ArrayAttr.get(choice.capabilities)

    def _rows_of_c(self) -> Number:
        return self._b.dim(self._arguments.c, _rank(self._arguments.c) - 2)

    def _tiles(self, variant: Any) -> Number:
        """The number of tiles of C, in all matmuls of the batch."""
        if isinstance(problem := self._problem, ImplicitGemm):
            roles = (problem.rows, problem.columns, problem.batch)
            m, n, batches = (count_of(self._b, self._arguments, loops) for loops in roles)
            return ceil_divide(m, variant.m) * ceil_divide(n, variant.n) * batches
        c = self._arguments.c
        last = _rank(c) - 1
        tiles = {last - 1: variant.m, last: variant.n}
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


def _of_shared_rows(choices: Sequence[Choice]) -> Sequence[Choice] | None:
    """The first choices, if C's rows are divided among them: a kernel for many tiles, if there is
    one, the one for few tiles, and the one after it."""
    for number in range(min(2, len(choices) - 1)):
        few = choices[number]
        if few.shares_rows and few.most_tiles:
            found = choices[: number + 2]
            same = {(one.problem, one.target, one.capabilities) for one in found}
            is_one_family = all(one.family is few.family for one in found)
            return found if len(same) == 1 and is_one_family else None
    return None


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
