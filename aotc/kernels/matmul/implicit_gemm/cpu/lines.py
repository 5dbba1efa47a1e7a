"""Implicit GEMM for the CPU device with B read in place, line by line of the result.

The columns of C are lines of images, for example of a convolution with a stride. A vector of
columns is in one line, and its elements of B have a constant stride. The last vector of a line ends
with the line. If the line is no whole number of vectors, it overlaps the previous vector, and
computes some columns again, which are not stored. Nothing is packed, and nothing is read past a
line. The length of a line may be known at run time only.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder.numbers import (
    Condition,
    Number,
    Value,
    compare,
    is_equal,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.cpu.vectors import VECTOR_BYTES, VECTOR_STRIDES
from aotc.kernels.matmul.cpu.blocked import Step, Tile
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.implicit_gemm.cpu.image import InPlaceKernel
from aotc.kernels.matmul.implicit_gemm.operand import Layout, Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, loop_step
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Line

# If more than one of so many columns is computed again, packing is faster.
_LEAST_FOR_ONE_AGAIN = 5
# The largest number of multiply-adds that are computed again for a column and a k: packing an
# element of B takes as long.
_MOST_AGAIN = 4
# With more rows, B is read so often that packing, or a copy, is worth it.
_MOST_ROWS = 95


class Lines(Struct, frozen=True):
    """Lines of `size` columns of C, in vectors of `width` columns. Consecutive columns are `stride`
    elements apart in B."""

    size: Number
    width: int
    stride: int

    @property
    def padded(self) -> Number:
        """The number of columns in all vectors of a line."""
        return (self.size + self.width - 1) // self.width * self.width

    @property
    def whole(self) -> Number:
        """The number of columns in whole vectors that do not overlap."""
        return self.size // self.width * self.width

    def are_faster(self, rows: int) -> Condition:
        """Whether a line has a whole vector at least, and the kernel is faster for C of so many
        rows."""
        size, again = self.size, self.padded - self.size
        return (
            _is_at_most(self.width, size)
            & _is_at_most(again * _LEAST_FOR_ONE_AGAIN, size)
            & _is_at_most(again * rows, size * _MOST_AGAIN)
        )


def _is_at_most(number: Number, limit: Number) -> Condition:
    if isinstance(number, int) and isinstance(limit, int):
        return number <= limit
    return compare("sle", number, limit)


def lines_of(problem: ImplicitGemm, size: Number) -> Lines | None:
    """The lines of `size` columns each into which C's columns divide; None if the kernel does not
    support them, or C has so many rows that packing B is faster."""
    element = computed_in(problem)
    if problem.b.element != element or problem.m is None or problem.m > _MOST_ROWS:
        return None
    column = problem.columns[-1]
    steps = [loop_step(problem, column, name) for name in "bc"]
    width = VECTOR_BYTES // ELEMENT_BYTES[element]
    stride = steps[0]
    if stride not in VECTOR_STRIDES or steps[1] != 1:
        return None
    return Lines(size, width, stride)


class LineKernel(InPlaceKernel):
    """The kernel by lines. Its tiles and columns count the columns of vectors, including those that
    are computed again."""

    lines: Lines

    def build_lines(self, lines: Lines, arguments: Arguments) -> None:
        """Inserts the kernel, for the lines of `lines_of`."""
        b, p, self.lines = self.b, self.problem, lines
        *images, column = p.columns
        line = images[-1:]
        images = images[:-1]
        self.line_count = count_of(b, arguments, line)
        self.images = count_of(b, arguments, images)
        self.has_batch = bool(p.batch)
        self.problem = replace(p, batch=(*p.batch, *images), columns=p.columns[-2:])
        # The layouts of lines, and of columns in one.
        apart = replace(self.problem, rows=tuple(line), columns=(column,))
        in_b, in_c = (Operand(b, apart, arguments, letter) for letter in "bc")
        self.of_lines: dict[str, tuple[Layout, Layout]] = {
            "b": (in_b.m, in_b.n),
            "c": (in_c.m, in_c.n),
        }
        self.launch_columns(arguments, self.line_count * lines.padded)

    @property
    def columns(self) -> int | None:
        count = self.line_count * self.lines.padded
        return count if isinstance(count, int) else None

    @property
    def columns_apart(self) -> int:
        return 0

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        a, _ = super().packed_shapes
        return a, (0, 0)

    # --- B -------------------------------------------------------------------------------------

    def multiply_step(self, tile: Tile, step: Step) -> None:
        """See the base class. All vectors are whole."""
        self.multiply(tile, step, (0, tile.columns), is_packed_b=False)

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        lines, (of_line, of_column) = self.lines, self.of_lines["b"]
        line, at = self._divide(tile.column + column)
        at = signed_minimum(at, lines.size - lines.width)
        begin = self.of_b.batch.offset(self.batch) + of_line.offset(line) + of_column.offset(at)
        place = begin + self.offset("k_b", k)
        return self.load_strided(self.of_b.buffer, place, lines.stride)

    def _divide(self, column: Number) -> tuple[Number, Number]:
        """The line, and the column in the line's vectors, of a column of a tile."""
        b, padded = self.b, self.lines.padded
        if self.line_count == 1:
            return 0, column
        short, by = (b.signed_cast(number, "i32") for number in (column, padded))
        return b.index(short // by), b.index(short % by)

    # --- C -------------------------------------------------------------------------------------

    def store_c(self, tile: Tile) -> None:
        """Stores the columns of the tile that are inside of C, line by line."""
        b, lines = self.b, self.lines
        first = tile.column // lines.padded
        end = tile.column + tile.columns
        # The epilogue gets the column among those of all images.
        of_images = self.batch % self.images * self.line_count
        with b.loop(first, self.groups(end, lines.padded)) as line, b.loop(0, tile.rows) as row:
            of_vectors = line.index * lines.padded
            begin = signed_maximum(of_vectors, tile.column) - of_vectors
            stop = signed_minimum(of_vectors + lines.padded, end) - of_vectors
            number = of_images + line.index
            base = self.offset("m_c", row.index) + self.of_lines["c"][0].offset(line.index)
            in_tile = of_vectors - tile.column

            def store(column: Number, place: Number, width: int) -> None:
                """Stores `width` columns of the line, whose accumulators are at `place`."""
                at = [row.index, in_tile + place]
                value = self.load(self.tile_accumulators, at, width)
                of_c = tile.row + row.index, number * lines.size + column
                of_line = Line(lines.size, number) if isinstance(lines.size, int) else None
                self.store_result(value, self.of_c.buffer, [base + column], of_c, of_line)

            width = lines.width if self.stores_vectors else 1
            with b.loop(begin, signed_minimum(stop, lines.whole), width) as loop:
                store(loop.index, loop.index, width)
            if not is_equal(lines.size - lines.whole, 0):
                with b.where(compare("eq", stop, lines.padded)):
                    self._store_rest(store)

    def _store_rest(self, store: Callable[[Number, Number, int], None]) -> None:
        """Stores the columns past the whole vectors, by vectors of half the width, a quarter of
        it, and so on."""
        lines, shift = self.lines, self.lines.padded - self.lines.size
        if self.stores_vectors:
            for column, width in self.each_shorter_vector(lines.whole, lines.size, lines.width):
                store(column, column + shift, width)
        else:
            with self.b.loop(lines.whole, lines.size) as loop:
                store(loop.index, loop.index + shift, 1)
