"""Implicit GEMM for the CPU device with B read in place: convolutions without strides.

The columns of C are the rows of images, whose pixels are contiguous in B. B's rows may have a
larger pitch, as those of a padded image do. Columns are therefore counted along B's rows: for each
k, the columns of a tile are contiguous in B, and a vector may have columns past the end of an
image's row, which are computed and dropped. Each image is a separate matmul of a batch.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder.numbers import Number, Value, signed_maximum, signed_minimum
from aotc.kernels.cpu.mainloop import LONG_ROWS, Finish
from aotc.kernels.matmul.cpu.blocked import Step, Tile
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.implicit_gemm.cpu.gathered import Kernel
from aotc.kernels.matmul.implicit_gemm.operand import count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, loop_step
from aotc.kernels.matmul.problem import Arguments, Line

# The largest ratio of computed columns to those of C. Above it, packing is faster.
_MOST_COMPUTED = 1.1
# Images of a batch with fewer columns are not worth separate matmuls.
_LEAST_COLUMNS = 32


class Image(Struct, frozen=True):
    """The columns of C in one image: `height` rows of `width` columns, with rows `pitch` elements
    apart in B."""

    height: int
    width: int
    pitch: int

    @property
    def columns(self) -> int:
        """The number of columns, counted along B's rows."""
        return (self.height - 1) * self.pitch + self.width


def image_of(problem: ImplicitGemm) -> Image | None:
    """The images of C's columns; None if the kernel does not support them, or is not faster."""
    if len(problem.columns) < 2 or problem.b.element != computed_in(problem):
        return None
    outer, inner = problem.columns[-2:]
    pitch = loop_step(problem, outer, "b")
    if outer.size is None or inner.size is None or pitch is None:
        return None
    image = Image(outer.size, inner.size, pitch)
    if pitch == inner.size == loop_step(problem, outer, "c"):
        # Contiguous rows of an image are one row.
        image = Image(1, outer.size * inner.size, outer.size * inner.size)
    is_one = len(problem.columns) == 2 or image.columns >= _LEAST_COLUMNS
    is_dense = image.columns <= _MOST_COMPUTED * image.height * image.width
    steps = [loop_step(problem, inner, name) for name in "bc"]
    is_contiguous = image.pitch >= image.width > 0 and steps == [1, 1]
    return image if is_one and is_dense and is_contiguous else None


class InPlaceKernel(Kernel):
    """A kernel that computes the offsets of columns of B, without tables.

    Each image is a separate matmul of a batch: `images` is their number in each matmul of the
    problem, and `has_batch` tells whether the problem itself has a batch.
    """

    images: Number
    has_batch: bool

    @property
    def batch_of_c(self) -> Value | None:
        """See the base class."""
        return self.b.value(self.batch // self.images) if self.has_batch else None

    def launch_columns(self, arguments: Arguments, columns: Number) -> None:
        """Launches a matmul of `columns` columns for each batch of the problem."""
        b, p = self.b, self.problem
        self.find_operands(arguments)
        m, k, batches = (count_of(b, arguments, loops) for loops in (p.rows, p.k_loops, p.batch))
        self.launch(m, columns, k, batches)

    @property
    def reads_b(self) -> bool:
        return True

    @property
    def table_lengths(self) -> dict[str, int]:
        return {n: length for n, length in super().table_lengths.items() if not n.startswith("n_")}

    def fill_columns(self, tile: Tile) -> None:
        """Does nothing: there are no tables of columns."""


class ImageKernel(InPlaceKernel):
    """The kernel by images. Its tiles and columns are those of B; `image` determines which of them
    are columns of C."""

    image: Image

    def build(self, arguments: Arguments) -> None:
        b, p = self.b, self.problem
        image = image_of(p)
        assert image is not None
        self.image, images = image, p.columns[:-2]
        self.images = count_of(b, arguments, images)
        self.has_batch = bool(p.batch)
        self.problem = replace(p, batch=(*p.batch, *images), columns=p.columns[-2:])
        self.launch_columns(arguments, image.columns)

    @property
    def columns(self) -> int:
        return self.image.columns

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        a, _ = super().packed_shapes
        return a, (self.variant.tile_k, self.width)

    # --- B -------------------------------------------------------------------------------------

    def vector_in_place(self, tile: Tile, step: Step, column: Number, k: Number) -> Value:
        return self.load(self.of_b.buffer, [self.place_in_b(tile, column, k)], self.width)

    def multiply_in_place(self, tile: Tile, step: Step, stop: Number) -> None:
        """See the base class. B is prefetched, as its rows are so far apart that hardware
        prefetches little of them."""

        def prefetch(column: Number, k: Number) -> None:
            # Clamped to the image.
            ahead = signed_minimum(tile.column + column, self.image.columns - 1)
            at = self.of_b.batch.offset(self.batch) + ahead + self.offset("k_b", k)
            self.b.prefetch(self.of_b.buffer, [at])

        finish = self.finish(tile, step) if self.stores_early else None
        self.multiply(tile, step, (0, stop), is_packed_b=False, finish=finish, prefetch_b=prefetch)

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        """Packs the columns past the last whole vector."""
        b, mask = self.b, self.mask(tile.columns - start)
        with b.loop(0, step.count) as k:
            at = [self.place_in_b(tile, start, k.index)]
            vector = self.load_masked(self.of_b.buffer, at, mask)
            self.store(vector, self.packed_b, [k.index, 0])

    def place_in_b(self, tile: Tile, column: Number, k: Number) -> Number:
        batch = self.of_b.batch.offset(self.batch)
        return batch + tile.column + column + self.offset("k_b", k)

    def packed_vector(self, column: Number, k: Number) -> Value:
        return self.load(self.packed_b, [k, 0], self.width)

    # --- C -------------------------------------------------------------------------------------

    @property
    def stores_early(self) -> bool:
        """Whether accumulators are stored from registers: all columns are columns of C, and the
        epilogue is short enough for a copy for each register."""
        return self.image.height == 1 and self.stores_vectors and self.has_short_epilogue

    def finish(self, tile: Tile, step: Step) -> Finish:
        """The epilogue of the mainloop, which stores the whole vectors of columns."""
        number = self.batch % self.images
        line = Line(self.image.width, number)

        def place_of(row: Number, column: Number) -> tuple[Number, Number]:
            return tile.row + row, number * self.image.width + tile.column + column

        def place_in_c(row: Number, column: Number) -> list[Number]:
            return [self.offset("m_c", row) + self.of_c.n.offset(tile.column + column)]

        def prefetch(row: Number, column: Number) -> None:
            at = place_in_c(row, column)
            self.prefetch_operands(self.of_c.buffer, at, place_of(row, column), line)

        def store(vector: Value, row: Number, column: Number) -> None:
            at = place_in_c(row, column)
            self.store_result(vector, self.of_c.buffer, at, place_of(row, column), line)

        # Tiles have a multiple of `LONG_ROWS` rows, except the last one.
        divisor = math.gcd(self.problem.m or 1, LONG_ROWS)
        return Finish(step.is_last, divisor, store, prefetch)

    def store_c(self, tile: Tile) -> None:
        """Stores the columns of the tile that are inside of C and not stored yet, row by row of the
        image."""
        if self.stores_early and self.columns % self.width == 0:
            return
        b, image = self.b, self.image
        stored = self.whole(tile.columns, self.width) if self.stores_early else 0
        start = tile.column + stored
        first = start // image.pitch
        end = tile.column + tile.columns
        # The epilogue gets the column among those of all images.
        of_images = self.batch % self.images * image.height
        with b.loop(first, self.groups(end, image.pitch)) as line:
            begin = signed_maximum(line.index * image.pitch, start)
            count = signed_minimum(line.index * image.pitch + image.width, end) - begin
            column = begin - line.index * (image.pitch - image.width)
            offset = self.of_c.n.offset(column)
            number = of_images + line.index
            of_all = of_images * image.width + column
            with b.loop(0, tile.rows) as row:
                base = self.offset("m_c", row.index) + offset
                for j, width in self.each_stored(0, count, self.width):
                    at = [row.index, begin - tile.column + j]
                    value = self.load(self.tile_accumulators, at, width)
                    place = tile.row + row.index, of_all + j
                    of_line = Line(image.width, number)
                    self.store_result(value, self.of_c.buffer, [base + j], place, of_line)
