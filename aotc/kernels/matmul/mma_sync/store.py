"""The epilogue: stores the accumulators of a block's warps to C. They are staged in shared memory,
so that consecutive threads store consecutive elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import Number, Value, compare
from aotc.chips import WARP
from aotc.kernels.matmul.mma_sync.tiles import (
    Coordinates,
    ProblemShape,
    Staging,
    Variant,
    mma_of,
    tiles_of,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, EpilogueBuilder, Place, Problem
from aotc.kernels.matmul.scalar import accumulator_type_of
from aotc.kernels.tensor_core import add_accumulators


class Output(Protocol):
    """The destination of accumulators. If `has_padded_rows`, an access may write past the end of a
    row."""

    has_padded_rows: bool

    def store(self, accumulators: Sequence[Value], row: Number, column: Number) -> None:
        """Stores consecutive elements of a row of C. The first one is at `row` and `column`."""


class MatrixOutput:
    """Stores to a matrix of the problem's C. `batch` is its index in the batch, if there is one."""

    has_padded_rows = False

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        target: Buffer,
        batch: Number | None,
        epilogue: EpilogueBuilder | None,
    ) -> None:
        self.b, self.problem, self.target = b, problem, target
        self.batch, self.epilogue = batch, epilogue

    def store(self, accumulators: Sequence[Value], row: Number, column: Number) -> None:
        b, at = self.b, [row, column]
        if self.problem.adds:
            accumulators = add_to_old(b, self.problem, accumulators, self.target, at)
        columns = b.values([column + number for number in range(len(accumulators))])
        batch = None if self.batch is None else b.value(self.batch)
        # The width of a vector divides that of the tile, and thus the first column.
        place = Place(batch, b.value(row), columns, is_whole=True)
        values = elements_of_c(b, self.problem, accumulators, place, self.epilogue)
        store_vector(b, values, self.target, at)


class PartialOutput(MatrixOutput):
    """Stores to a matrix of partial accumulators."""

    has_padded_rows = True


class StagedStore:
    """Stores the accumulators of a warp's tile. `staged` is the block's staging buffer in shared
    memory."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        shape: ProblemShape,
        coordinates: Coordinates,
        staged: Buffer,
    ) -> None:
        self.b, self.shape, self.at, self.staged = b, shape, coordinates, staged
        self.staging, self.mma = Staging.of(problem, variant), mma_of(problem, variant)
        self.tiles_m = variant.m // variant.warps_m // self.mma.m
        self.tiles_n = variant.n // variant.warps_n // self.mma.n
        self.has_neighbours = [tiles.holds_neighbours for tiles in tiles_of(problem, variant)]

    def store(self, accumulators: Sequence[Value], output: Output) -> None:
        """Stores the accumulators, a few rows of the instruction's tiles at a time."""
        for first in range(0, self.tiles_m, self.staging.tiles):
            self.b.barrier()
            for tile in range(self.staging.tiles):
                of_row = accumulators[(first + tile) * self.tiles_n :][: self.tiles_n]
                for n, accumulator in enumerate(of_row):
                    self._stage(accumulator, tile * self.mma.m, n)
            self.b.barrier()
            self._store_rows(first * self.mma.m, output)

    def _stage(self, accumulator: Value, first_row: int, n: int) -> None:
        """Writes an instruction's tile to the warp's part of the staging buffer."""
        b, mma, at = self.b, self.mma, self.at
        is_paired_m, is_paired_n = self.has_neighbours
        if is_paired_m:
            rows = [at.group * 2 + (first_row + half) for half in range(2)]
        else:
            rows = [at.group + (first_row + 8 * half) for half in range(mma.accumulator_rows)]
        for half, row in enumerate(rows):
            two = b.extract(accumulator, [half])
            if not is_paired_n:
                column = at.in_group * 2 + n * mma.n
                alignment = 2 * ELEMENT_BYTES[mma.accumulator]
                b.store_vector(two, self.staged, [at.warp, row, column], alignment)
                continue
            for neighbour in range(2):
                column = at.in_group * 4 + (n // 2 * 16 + 2 * neighbour + n % 2)
                b.store(b.extract(two, [neighbour]), self.staged, [at.warp, row, column])

    def _store_rows(self, first_row: int, output: Output) -> None:
        """Stores the staged rows of the warp, `width` elements of a row at once."""
        b, at, n = self.b, self.at, self.shape.n
        width, across = self.staging.width, self.staging.columns // self.staging.width
        with b.loop(0, self.staging.rows * across // WARP) as loop:
            number = loop.index * WARP + at.lane
            own_row, own_column = number // across, number % across * width
            row = (at.row + at.warp_row) + (own_row + first_row)
            column = (at.column + at.warp_column) + own_column

            def store(offset: Number, width: int) -> None:
                place = [at.warp, own_row, own_column + offset]
                output.store(load_vector(b, self.staged, place, width), row, column + offset)

            with b.where(compare("slt", row, self.shape.m)):
                is_even = isinstance(n, int) and n % width == 0
                if width == 1 or output.has_padded_rows or is_even:
                    with b.where(compare("slt", column, n)):
                        store(0, width)
                    return
                with b.where(compare("slt", column + (width - 1), n)) as branch:
                    store(0, width)
                with branch.otherwise(), b.loop(0, width) as rest:
                    is_there = compare("slt", column + rest.index, n)
                    with b.where(is_there):
                        store(rest.index, 1)


# --- Elements of C -----------------------------------------------------------------------------


def load_vector(b: Builder, source: Buffer, at: Sequence[Number], count: int) -> list[Value]:
    """Loads consecutive elements of a row in one access, as a vector even for one element."""
    alignment = min(count * source.element_bytes, WIDEST_ACCESS)
    return b.elements(b.load_vector(source, at, count, alignment))


def store_vector(b: Builder, values: Sequence[Value], target: Buffer, at: Sequence[Number]) -> None:
    """Stores consecutive elements of a row in one access, as a vector even for one element."""
    vector = b.from_elements(values, f"vector<{len(values)}x{target.element}>")
    b.store_vector(vector, target, at, len(values) * target.element_bytes)


def add_to_old(
    b: Builder, problem: Problem, accumulators: Sequence[Value], c: Buffer, at: Sequence[Number]
) -> list[Value]:
    """The accumulators plus the previous elements of C at `at`."""
    old = load_vector(b, c, at, len(accumulators))
    return [
        add_accumulators(b, b.convert(one, accumulator_type_of(problem)), accumulator)
        for one, accumulator in zip(old, accumulators, strict=True)
    ]


def elements_of_c(
    b: Builder,
    problem: Problem,
    accumulators: Sequence[Value],
    place: Place,
    epilogue: EpilogueBuilder | None,
) -> Sequence[Value]:
    """The values that are stored to C for the accumulators."""
    rounded = [b.convert(one, problem.accumulator) for one in accumulators]
    if epilogue is not None:
        return epilogue(b, rounded, place)
    return [b.convert(one, problem.c.element) for one in rounded]
