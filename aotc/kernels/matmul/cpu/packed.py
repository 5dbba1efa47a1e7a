"""A matmul for the CPU device whose B is a constant, which the runtime packs once (see
`aotc_constant_get_packed`). It is `cpu.blocked`, with the packed B read in place."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.builder import Buffer
from aotc.builder.numbers import Number, Value
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import CpuBlocked, Step, Tile
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem

# With more rows, each element of B is used so often that its layout does not matter.
_MOST_ROWS = 512
# A smaller B stays in the caches, so that packing gains nothing.
_LEAST_BYTES = 16 << 10


def packed_type(matrix: Matrix) -> str | None:
    """The type of a matrix's packed copy; None if nothing is gained."""
    k, n = matrix.sizes
    element_bytes = ELEMENT_BYTES[matrix.element]
    if matrix.transposed or k is None or n is None or k * n * element_bytes < _LEAST_BYTES:
        return None
    width = VECTOR_BYTES // element_bytes
    return f"memref<{-(-n // width)}x{k + 1}x{width}x{matrix.element}>"


def packed_problem(problem: Problem) -> Problem | None:
    """The problem with a packed B; None if nothing is gained."""
    type_ = packed_type(problem.b)
    if problem.batched or problem.b.element != computed_in(problem) or type_ is None:
        return None
    if problem.m is not None and problem.m > _MOST_ROWS:
        return None
    return replace(problem, b=replace(problem.b, type=type_))


class Kernel(blocked.Kernel):
    """The kernel with a packed B, whose columns are padded to whole vectors."""

    reads_b = True
    columns_apart = 0

    def prepare(self, tile: Tile, rows: Number) -> None:
        super().prepare(tile, rows)
        self.source_b = Buffer(self.arguments.b)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        self.multiply(tile, step, (0, tile.columns), is_packed_b=False)

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        group = self.signed("divsi", self.column_of(tile, column), self.width)
        return self.load(self.source_b, [group, step.start + k, 0], self.width)


class CpuPacked(CpuBlocked):
    """See the module's docstring. The type of B in the problem is that of the packed copy."""

    name = "blocks of a packed constant"
    mnemonic = "cpu_packed"
    kernel_type = Kernel


CPU_PACKED: CpuBlocked = CpuPacked()
