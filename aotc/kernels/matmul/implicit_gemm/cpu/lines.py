"""Implicit GEMM for the CPU device with B read in place, line by line of the result.

The columns of C are lines of images, for example of a convolution with a stride. A vector of
columns is in one line, and its elements of B have a constant stride. The last vector of a line ends
with the line. If the line is no whole number of vectors, it overlaps the previous vector, and
computes some columns again, which are not stored. Nothing is packed, and nothing is read past a
line.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder.numbers import Number, Value, compare, signed_maximum, signed_minimum
from aotc.kernels.cpu.vectors import VECTOR_BYTES, VECTOR_STRIDES
from aotc.kernels.matmul.cpu.blocked import Step, Tile
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.implicit_gemm.cpu.image import InPlaceKernel
from aotc.kernels.matmul.implicit_gemm.operand import Layout, Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, loop_step
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Line

# The largest ratio of computed columns to those of C. Above it, packing is faster.
_MOST_COMPUTED = 1.2
# The largest number of multiply-adds that are computed again for a column and a k: packing an
# element of B takes as long.
_MOST_AGAIN = 4
# With more rows, B is read so often that packing, or a copy, is worth it.
_MOST_ROWS = 95


class Lines(Struct, frozen=True):
    """Lines of `size` columns of C, in vectors of `width` columns. Consecutive columns are `stride`
    elements apart in B."""

    size: int
    width: int
    stride: int

    @property
    def padded(self) -> int:
        """The number of columns in all vectors of a line."""
        return -(-self.size // self.width) * self.width

    @property
    def whole(self) -> int:
        """The number of columns in whole vectors that do not overlap."""
        return self.size // self.width * self.width


def lines_of(problem: ImplicitGemm) -> Lines | None:
    """The lines of C's columns; None if the kernel does not support them, or is not faster."""
    element = computed_in(problem)
    if problem.b.element != element or problem.m is None or problem.m > _MOST_ROWS:
        return None
    column = problem.columns[-1]
    steps = [loop_step(problem, column, name) for name in "bc"]
    width = VECTOR_BYTES // ELEMENT_BYTES[element]
    if column.size is None or column.size < width or steps[1] != 1:
        return None
    stride = steps[0]
    if stride not in VECTOR_STRIDES:
        return None
    lines = Lines(column.size, width, stride)
    again = problem.m * (lines.padded - lines.size)
    is_faster = lines.padded <= _MOST_COMPUTED * lines.size and again <= _MOST_AGAIN * lines.size
    return lines if is_faster else None


class LineKernel(InPlaceKernel):
    """The kernel by lines. Its tiles and columns count the columns of vectors, including those that
    are computed again."""

    lines: Lines

    def build(self, arguments: Arguments) -> None:
        b, p = self.b, self.problem
        lines = lines_of(p)
        assert lines is not None
        self.lines = lines
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
        count = self.line_count
        return count * self.lines.padded if isinstance(count, int) else None

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
        short = b.signed_cast(column, "i32")
        return b.index(short // padded), b.index(short % padded)

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
                of_line = Line(lines.size, number)
                self.store_result(value, self.of_c.buffer, [base + column], of_c, of_line)

            width = lines.width if self.stores_vectors else 1
            with b.loop(begin, signed_minimum(stop, lines.whole), width) as loop:
                store(loop.index, loop.index, width)
            if lines.whole < lines.size:
                with b.where(compare("eq", stop, lines.padded)):
                    for column, width in self._rest():
                        store(column, column + lines.padded - lines.size, width)

    def _rest(self) -> Iterator[tuple[int, int]]:
        """The columns past the whole vectors, with the number that are stored at a time."""
        column, width = self.lines.whole, self.lines.width
        while column < self.lines.size:
            if column + width <= self.lines.size:
                yield column, width
                column += width
            elif width > 1:
                width = width // 2 if self.stores_vectors else 1
