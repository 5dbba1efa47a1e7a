"""Implicit GEMM for the CPU device that copies B if the number of columns is unknown, as of a
convolution with strides of images of any size.

If several blocks compute rows of C, each would pack the same B. One kernel copies a strip of B's
columns, which are contiguous for each k, and another one multiplies it: see `copied` for images of
known size.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare, signed_maximum, signed_minimum
from aotc.kernels.cpu.vectors import VECTOR_STRIDES, Vectors
from aotc.kernels.matmul.cpu.blocked import Step, Tile, Variant
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.implicit_gemm.cpu.copied import MOST_BYTES, ROWS_OF_BLOCK, allocated
from aotc.kernels.matmul.implicit_gemm.cpu.gathered import Kernel
from aotc.kernels.matmul.implicit_gemm.cpu.image import image_of
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, known_count, loop_step
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments

# The smallest number of columns of a strip, and the number of rows that a block copies.
_LEAST_COLUMNS, _ROWS = 192, 8


class Strip(Struct, frozen=True):
    """The copy of `count` columns of B, from `first` on, as (k, column)."""

    copy: Buffer
    first: Number
    count: Number


def can_copy_strips(problem: ImplicitGemm) -> bool:
    """Whether B is copied by strips: columns are of an unknown number, and neighbours are one or
    two elements apart."""
    if problem.batch or not problem.columns or known_count(problem.columns) is not None:
        return False
    if problem.m is None or problem.m <= ROWS_OF_BLOCK or problem.k is None:
        return False
    if image_of(problem) is not None:
        return False
    return (
        problem.b.element == computed_in(problem)
        and loop_step(problem, problem.columns[-1], "b") in VECTOR_STRIDES
    )


def insert_strips(
    b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
) -> None:
    """Inserts the launches of the kernels, for a problem that `can_copy_strips` accepts."""
    k, element = problem.k, computed_in(problem)
    assert k is not None
    vectors = Vectors(b, element)
    most = max(MOST_BYTES // ELEMENT_BYTES[element] // k, _LEAST_COLUMNS)
    columns = count_of(b, arguments, problem.columns)
    # All strips are about equally long.
    some = signed_maximum(columns, 1)
    strips = (some + most - 1) // most
    strip = (some + strips - 1) // strips
    # A vector more, as runs are stored as whole vectors. With an odd number of vectors, consecutive
    # k are in different sets of a cache.
    pitch = ((strip + vectors.width - 1) // vectors.width + 1 | 1) * vectors.width
    type_ = f"memref<{k}x?x{element}>"
    with allocated(b, [pitch], type_) as memref, b.loop(0, columns, strip) as loop:
        count = signed_minimum(columns - loop.index, strip)
        part = Strip(Buffer(memref), loop.index, count)
        CopyKernel(b, problem).build(arguments, part)
        StripKernel(b, problem, variant, arguments.epilogue).build_strip(part, arguments)


class CopyKernel(Vectors):
    """Copies a strip; `build` inserts the kernel. A block copies `_ROWS` rows of it."""

    def __init__(self, b: Builder, problem: ImplicitGemm) -> None:
        super().__init__(b, computed_in(problem))
        self.problem = problem

    def build(self, arguments: Arguments, strip: Strip) -> None:
        b, k = self.b, self.problem.k
        assert k is not None
        source = Operand(b, self.problem, arguments, "b")
        with b.launch([-(-k // _ROWS), 1, 1], 1, role="copy") as launch:
            first = launch.block_ids[0] * _ROWS
            with b.loop(first, signed_minimum(first + _ROWS, k)) as loop:
                self._copy_row(source, loop.index, strip)

    def _copy_row(self, source: Operand, k: Number, strip: Strip) -> None:
        of_k, run = source.k.offset(k), source.n.modes[-1]
        skipped = strip.first % run.size
        # The strip begins and ends within a run of columns.
        with self.b.loop(0, self.groups(strip.count + skipped, run.size)) as loop:
            begin = signed_maximum(loop.index * run.size - skipped, 0)
            end = signed_minimum((loop.index + 1) * run.size - skipped, strip.count)
            at = of_k + source.n.offset(strip.first + begin)
            self._copy_run(source.buffer, (at, run.stride), strip.copy, (k, begin), end - begin)

    def _copy_run(
        self,
        source: Buffer,
        at: tuple[Number, Number],
        target: Buffer,
        to: tuple[Number, Number],
        size: Number,
    ) -> None:
        """Copies a run. It stores whole vectors; the next run overwrites the values past its
        end."""
        (first, stride), (k, column), whole = at, to, self.whole(size, self.width)
        assert isinstance(stride, int)
        with self.b.loop(0, whole, self.width) as j:
            vector = self.load_strided(source, first + j.index * stride, stride)
            self.store(vector, target, [k, column + j.index])
        with self.b.where(compare("slt", whole, size)):
            masks = self.masks_of(size - whole, stride)
            vector = self.load_strided(source, first + whole * stride, stride, masks)
            self.store(vector, target, [k, column + whole])


class StripKernel(Kernel):
    """The kernel that reads the copy of a strip."""

    strip: Strip

    def build_strip(self, strip: Strip, arguments: Arguments) -> None:
        b, p, self.strip = self.b, self.problem, strip
        self.find_operands(arguments)
        m, k = (count_of(b, arguments, loops) for loops in (p.rows, p.k_loops))
        self.launch(m, strip.count, k, 1)

    def compute_tile(self, tile: Tile, k: Number, rows: Number) -> None:
        super().compute_tile(replace(tile, column=self.strip.first + tile.column), k, rows)

    @property
    def reads_b(self) -> bool:
        return True

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        a, _ = super().packed_shapes
        return a, (0, 0)

    @property
    def table_lengths(self) -> dict[str, int]:
        return {name: n for name, n in super().table_lengths.items() if not name.endswith("_b")}

    def fill(self, name: str, first: Number, count: Number, base: Number = 0) -> None:
        """See the base class. B has no tables."""
        if not name.endswith("_b"):
            super().fill(name, first, count, base)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        """See the base class."""
        self.multiply_padded(tile, step)

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        at = [step.start + k, tile.column - self.strip.first + column]
        return self.load(self.strip.copy, at, self.width)

    def pack_column(self, tile: Tile, step: Step, column: Number, number: Number) -> None:
        b, at = self.b, tile.column - self.strip.first + column
        with b.loop(0, step.count) as k:
            value = self.load(self.strip.copy, [step.start + k.index, at])
            b.store(value, self.packed_columns, [number, k.index])
