"""A matmul for the CPU device whose B is a constant, which the runtime packs once (see
`aotc_constant_get_packed` and `aotc_constant_get_transposed`). It is `cpu.blocked`, with the packed
B read in place."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.builder import Buffer
from aotc.builder.numbers import Number, Value, signed_maximum
from aotc.kernels.cpu.levels import SSE2, is_for_level
from aotc.kernels.cpu.mainloop import LONG_ROWS, LONG_VECTORS
from aotc.kernels.cpu.packing import Part, pack_groups
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import CpuBlocked, Step, Tile
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem

# With more rows, each element of B is used so often that its layout does not matter.
_MOST_ROWS = 512
# A smaller B stays in the caches, so that packing gains nothing.
_LEAST_BYTES = 16 << 10
# The same for a transposed B, which each block would transpose.
_LEAST_TRANSPOSED_BYTES = 1 << 10
# The fewest rows of a tile: it reads a transposed B in place, possibly from a distant cache.
_LEAST_TILE_ROWS = 24


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


def transposed_type(matrix: Matrix, computed: str) -> str | None:
    """The type of the packed copy of a transposed B of f16 that is computed in f32; None if nothing
    is gained."""
    n, k = matrix.sizes
    if (matrix.element, computed) != ("f16", "f32") or k is None or n is None:
        return None
    if matrix.pitch not in (k, None) or k * n * ELEMENT_BYTES["f16"] < _LEAST_TRANSPOSED_BYTES:
        return None
    width = VECTOR_BYTES // ELEMENT_BYTES[computed]
    return f"memref<{-(-n // width)}x{k + 1}x{width}x{matrix.element}>"


def transposed_problem(problem: Problem) -> Problem | None:
    """The problem with a packed copy of a transposed B; None if nothing is gained."""
    if problem.batched or not problem.b.transposed:
        return None
    type_ = transposed_type(problem.b, computed_in(problem))
    return None if type_ is None else replace(problem, b=replace(problem.b, type=type_))


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


class TransposedKernel(blocked.Kernel):
    """The kernel with a packed copy of a transposed B, whose columns are padded to whole vectors.
    Its elements are converted where they are multiplied: this takes one instruction for all rows
    of a register tile. With SSE2, which has no such instruction, each step converts them."""

    columns_apart = 0

    def tile_sizes(self, m: Number, n: Number) -> tuple[Number, Number, Number]:
        """With several rows of tiles, they are as large as those of the base class, but wider: B is
        not packed for each of these rows, and all tiles of a row pack the same part of A."""
        rows, columns, across = super().tile_sizes(m, n)
        if not isinstance(m, int) or not isinstance(n, int) or m <= self.variant.tile_rows // 2:
            return rows, columns, across
        whole = max(n - self.width, 1)
        wide = self.even(whole, self.variant.tile_columns, LONG_VECTORS * self.width)
        least = signed_maximum(rows * columns // wide, _LEAST_TILE_ROWS)
        return self.even(m, least, LONG_ROWS), wide, self.groups(whole, wide)

    @property
    def transposed_b(self) -> Buffer:
        return Buffer(self.arguments.b)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        b = self.b
        with b.where(is_for_level(b, SSE2)) as is_short:
            super().multiply_step(tile, step)
        with is_short.otherwise():
            self.multiply(tile, step, (0, tile.columns), is_packed_b=False)

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        group = self.signed("divsi", self.column_of(tile, column), self.width)
        return self.load(self.transposed_b, [group, step.start + k, 0], self.width)

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        part = Part(step.start, tile.column + start, step.count, tile.columns - start)
        pack_groups(self, self.transposed_b, part, self.packed_b)


class CpuPacked(CpuBlocked):
    """See the module's docstring. The type of B in the problem is that of the packed copy."""

    name = "blocks of a packed constant"
    mnemonic = "cpu_packed"
    kernel_type = Kernel


class CpuTransposed(CpuBlocked):
    """As `CpuPacked`, for a transposed B."""

    name = "blocks of a transposed constant"
    mnemonic = "cpu_packed"
    kernel_type = TransposedKernel


CPU_PACKED: CpuBlocked = CpuPacked()
CPU_TRANSPOSED: CpuBlocked = CpuTransposed()
