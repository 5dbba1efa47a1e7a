"""The family of implicit GEMM kernels for the CPU device."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import Condition
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED, Variant
from aotc.kernels.matmul.cpu.kernel import CpuFamily
from aotc.kernels.matmul.implicit_gemm.cpu.copied import CopyKernel, copy_of
from aotc.kernels.matmul.implicit_gemm.cpu.gathered import Kernel
from aotc.kernels.matmul.implicit_gemm.cpu.grouped import Kernel as GroupedKernel
from aotc.kernels.matmul.implicit_gemm.cpu.grouped import takes_groups
from aotc.kernels.matmul.implicit_gemm.cpu.image import ImageKernel, image_of
from aotc.kernels.matmul.implicit_gemm.cpu.lines import LineKernel, Lines, lines_of
from aotc.kernels.matmul.implicit_gemm.cpu.phases import insert_phases, phases_of
from aotc.kernels.matmul.implicit_gemm.cpu.strips import can_copy_strips, insert_strips
from aotc.kernels.matmul.implicit_gemm.cpu.transposed import Kernel as TransposedKernel
from aotc.kernels.matmul.implicit_gemm.cpu.transposed import transposed_filters
from aotc.kernels.matmul.implicit_gemm.cpu.winograd import can_implement as can_use_winograd
from aotc.kernels.matmul.implicit_gemm.cpu.winograd import insert_winograd
from aotc.kernels.matmul.implicit_gemm.operand import size_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.problem import Arguments


class ImplicitCpu(CpuFamily[ImplicitGemm]):
    """The choice among the implicit GEMM kernels. Filters of 3 x 3 may use Winograd's algorithm,
    and elements of 8 and 16 bits are multiplied in groups. Otherwise B is read in place if its
    columns are rows of an image; or it is copied, if several blocks read it; or the runtime packs
    it, if it is a constant; or each block packs it."""

    name = "implicit GEMM"
    depends_on_host_code = True  # Winograd's filters are constants; a copy precedes conditions
    problem_type = ImplicitGemm
    variant_type = Variant

    def can_implement(self, problem: ImplicitGemm, variant: Variant) -> bool:
        return CPU_BLOCKED.can_implement(problem, variant)

    def variants(self, problem: ImplicitGemm) -> tuple[Variant, ...]:
        return CPU_BLOCKED.variants(problem)

    def insert(
        self, b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
    ) -> None:
        seen = replace(
            problem,
            a=replace(problem.a, transposed=False),
            b=replace(problem.b, transposed=False),
            batched=False,
        )
        phases = phases_of(seen)
        if phases is not None and (
            seen.padding is not None or _are_lines_faster(b, seen, arguments)[1] is not True
        ):
            insert_phases(b, phases, seen, variant, arguments)
            return
        if can_use_winograd(seen) and insert_winograd(b, seen, variant, arguments):
            return
        if takes_groups(seen):
            GroupedKernel(b, seen, variant, arguments.epilogue).build(arguments)
            return
        copy = copy_of(seen)
        if copy is None and can_copy_strips(seen):
            insert_strips(b, seen, variant, arguments)
            return
        if copy is None:
            _insert_in_place(b, seen, variant, arguments)
            return
        with copy.allocate(b, arguments) as memref:
            CopyKernel(b, seen, copy).build(arguments, memref)
            kernel = ImageKernel(b, copy.problem, variant, arguments.epilogue)
            kernel.build(replace(arguments, b=memref))


def _insert_in_place(
    b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
) -> None:
    """Inserts the kernel that reads B in place, if there is one and it is faster, and otherwise the
    one that packs it. Unless B's sizes are known, both are inserted."""
    kernel = b, problem, variant, arguments.epilogue
    if image_of(problem) is not None:
        ImageKernel(*kernel).build(arguments)
        return
    filters = transposed_filters(b, problem, arguments)
    if filters is not None:
        TransposedKernel(*kernel).build_transposed(filters, arguments)
        return
    lines, by_lines = _are_lines_faster(b, problem, arguments)
    if by_lines is False or lines is None:
        Kernel(*kernel).build(arguments)
        return
    with b.where(by_lines) as branch:
        LineKernel(*kernel).build_lines(lines, arguments)
    if by_lines is not True:
        with branch.otherwise():
            Kernel(*kernel).build(arguments)


def _are_lines_faster(
    b: Builder, problem: ImplicitGemm, arguments: Arguments
) -> tuple[Lines | None, Condition]:
    """The lines of C's columns, if there are any, and whether their kernel is faster than the one
    that packs B."""
    lines = lines_of(problem, size_of(b, arguments, problem.columns[-1]))
    return lines, lines is not None and problem.m is not None and lines.are_faster(problem.m)


IMPLICIT_CPU = ImplicitCpu()
