"""The code of a block of a SIMT kernel, which computes a tile of C, or of the partial accumulators
of a part of K."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare, divide_up, minimum, unravel
from aotc.kernels.matmul.problem import ELEMENT_BYTES, EpilogueBuilder, Matrix, Problem
from aotc.kernels.matmul.scalar import Block, Operands, elements_of_c
from aotc.kernels.matmul.simt.mainloop import CopyVector, Mainloop
from aotc.kernels.matmul.simt.tiles import Variant, operand_tiles


def tile_coordinate(
    number: Number, tiles_m: Number, tiles_n: Number, group: int
) -> tuple[Number, Number]:
    """The row and column of tile `number`. Tiles are numbered in groups of `group` rows, column by
    column in a group."""
    band, place = unravel(number, tiles_n * group)
    first = band * group
    rows = minimum(tiles_m - first, group)
    column, row = unravel(place, rows)
    return first + row, column


class Kernel(Mainloop):
    """The kernel for matrices. `partial`: the buffer of the partial accumulators of `split_k` parts
    of K, and its matrix; None if accumulators are stored to C, through the epilogue. `first_row`:
    the row of C of the first tile, and of the buffer's first row."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        operands: Operands,
        epilogue: EpilogueBuilder | None,
        partial: tuple[Buffer, Matrix] | None = None,
        split_k: Number = 1,
        first_row: Number = 0,
    ) -> None:
        self.first_row = first_row
        buffers = (operands.a, operands.b)
        super().__init__(b, problem, variant, operand_tiles(problem, variant), buffers)
        self.operands, self.epilogue, self.split_k = operands, epilogue, split_k
        self.is_partial = partial is not None
        self.target, self.c = partial or (operands.c, problem.c)

    def build(self, block: Block, tiles_m: Number, tiles_n: Number) -> None:
        variant, operands = self.variant, self.operands
        split, tile = unravel(block.index, tiles_m * tiles_n)
        self._take_split(split)
        tile_m, tile_n = tile_coordinate(tile, tiles_m, tiles_n, variant.group)
        self.thread = block.thread
        self.first = (self.first_row + tile_m * variant.m, tile_n * variant.n)
        self.tiles = self.make_tiles(block.shared)
        self.vectors = [
            vector
            for operand, extent in enumerate((operands.m, operands.n))
            for vector in self.copy_vectors(operand, self.first[operand], extent)
        ]
        self.partition()
        accumulators = self.accumulate()
        if variant.sliced_k == 1 or block.shared is None:
            self._store(accumulators)
            return
        for row, column, sums in self.add_slices(block.shared, accumulators):
            self._store_row(self.first[0] + row, [column], sums)

    def _take_split(self, split: Number) -> None:
        """Sets the block's batch and its part of K. `split`: the index of the part among those of
        all batches."""
        k = self.operands.k
        self.split, self.batch = split, split
        self.k_begin, self.k_end, self.k_valid = 0, k, k
        if not self.is_partial:
            return
        self.batch, own = unravel(split, self.split_k)
        # Each part has the same number of whole tiles; the last ones may be empty.
        extent = divide_up(divide_up(k, self.variant.k), self.split_k) * self.variant.k
        self.k_begin = own * extent
        self.k_end = minimum(self.k_begin + extent, k)

    def _source(self, vector: CopyVector, k0: Number) -> list[Number]:
        k, along = k0 + vector.k, self.first[vector.operand] + vector.along
        return self.operands.at(self.batch, *self.operand_tiles[vector.operand].index(along, k))

    # --- To C ---------------------------------------------------------------------------------

    def _store(self, accumulators: Sequence[Value]) -> None:
        """Stores the elements inside of C."""
        across = self.variant.thread_n
        for number, first in enumerate(self.rows):
            for i in range(self.width):
                begin = (number * self.width + i) * across
                row = self.first[0] + (first + i)
                self._store_row(row, self.columns, accumulators[begin : begin + across])

    def _store_row(
        self, row: Number, columns: Sequence[Number], accumulators: Sequence[Value]
    ) -> None:
        """Stores vectors of a row, which begin at the `columns` of the block's tile."""
        is_whole = self.operand_tiles[0].is_whole
        with self.b.where(is_whole or compare("ult", row, self.operands.m)):
            for number, first in enumerate(columns):
                values = accumulators[number * self.width : (number + 1) * self.width]
                self._store_vector(row, self.first[1] + first, values)

    def _store_vector(self, row: Number, column: Number, values: Sequence[Value]) -> None:
        b, width, n = self.b, self.width, self.problem.n
        is_whole, bytes_ = self.operand_tiles[1].is_whole, ELEMENT_BYTES[self.c.element] * width
        is_wide = self.c.alignment >= bytes_ and self.c.alignment % bytes_ == 0
        if not is_wide or (n is not None and n % width and not is_whole):
            self._store_each(row, column, values)
        elif is_whole or n is not None:
            with b.where(is_whole or compare("ult", column, self.operands.n)):
                self._store_elements(row, column, values)
        else:
            is_there = compare("ult", column + (width - 1), self.operands.n)
            with b.where(is_there) as branch:
                self._store_elements(row, column, values)
            with branch.otherwise():
                self._store_each(row, column, values)

    def _store_each(self, row: Number, column: Number, accumulators: Sequence[Value]) -> None:
        is_whole = self.operand_tiles[1].is_whole
        for i, accumulator in enumerate(accumulators):
            at = column + i
            with self.b.where(is_whole or compare("ult", at, self.operands.n)):
                self._store_elements(row, at, [accumulator])

    def _store_elements(self, row: Number, column: Number, accumulators: Sequence[Value]) -> None:
        """Stores one element, or a vector that begins at a multiple of its length."""
        b, at = self.b, (self.batch, row, column)
        if self.is_partial:
            place = [self.split, row - self.first_row, column]
            b.store_elements(accumulators, self.target, place)
            return
        values = elements_of_c(b, self.operands, self.epilogue, accumulators, at, is_aligned=True)
        b.store_elements(values, self.target, self.operands.at(*at))
