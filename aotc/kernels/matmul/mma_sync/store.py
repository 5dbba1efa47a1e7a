"""Sums of a block's warps → C, through shared memory, so that neighbours store neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.chips import WARP
from aotc.kernels.indices import Index
from aotc.kernels.matmul.mma_sync.tiles import (
    Place,
    Sizes,
    Staging,
    Variant,
    instruction_of,
    sides,
)
from aotc.kernels.matmul.mma_sync.writer import Writer
from aotc.kernels.matmul.problem import Finish, Problem, convert
from aotc.kernels.matmul.problem import Place as ElementPlace
from aotc.kernels.matmul.scalar import sum_type


class Store:
    """`target` is what C is called here, `at` where the block's matrix is in it."""

    def __init__(
        self,
        w: Writer,
        problem: Problem,
        variant: Variant,
        sizes: Sizes,
        place: Place,
        target: str,
        at: tuple[str, ...],
    ) -> None:
        self.w, self.problem, self.variant = w, problem, variant
        self.sizes, self.place, self.target, self.at = sizes, place, target, at
        self.instruction = instruction_of(problem, variant)
        self.a, self.b = sides(problem, variant)
        self.tiles_m = variant.m // variant.warps_m // self.instruction.m
        self.tiles_n = variant.n // variant.warps_n // self.instruction.n

    def write(self, sums: Sequence[str], finish: Finish | None) -> None:
        """A few rows of tiles at a time."""
        w, i = self.w, self.instruction
        staging = Staging.of(self.problem, self.variant)
        for first in range(0, self.tiles_m, staging.tiles):
            w.line("gpu.barrier")
            for tile in range(staging.tiles):
                of_row = sums[(first + tile) * self.tiles_n :][: self.tiles_n]
                for n, sum_ in enumerate(of_row):
                    self._stage(staging, tile * i.m, n, sum_)
            w.line("gpu.barrier")
            self._store_rows(staging, first * i.m, finish)

    def _stage(self, staging: Staging, first_row: int, n: int, sum_: str) -> None:
        """Writes a tile into the warp's part of shared memory."""
        w, i, place = self.w, self.instruction, self.place
        rows: list[Index]
        if self.a.are_neighbours_together:
            rows = [w.add(w.multiply(place.group, 2), first_row + half) for half in range(2)]
        else:
            rows = [w.add(place.group, first_row + 8 * half) for half in range(i.sum_rows)]
        for half, row in enumerate(rows):
            two = w.value(f"vector.extract {sum_}[{half}] : vector<2x{i.sum}> from {i.sum_type}")
            if not self.b.are_neighbours_together:
                at = w.at(place.warp, row, w.add(w.multiply(place.member, 2), n * i.n))
                w.store_vector(two, f"%staged{at}", staging.type, 2, i.sum)
                continue
            for neighbour in range(2):
                column = w.add(w.multiply(place.member, 4), n // 2 * 16 + 2 * neighbour + n % 2)
                at = w.at(place.warp, row, column)
                one = w.value(f"vector.extract {two}[{neighbour}] : {i.sum} from vector<2x{i.sum}>")
                w.line(f"memref.store {one}, %staged{at} : {staging.type}")

    def _store_rows(self, staging: Staging, first_row: int, finish: Finish | None) -> None:
        """Stores what the warp has staged, `width` elements of a row at once."""
        w, sizes, width = self.w, self.sizes, staging.width
        across = staging.columns // width
        none, one, pieces = w.index(0), w.index(1), w.index(staging.rows * across // WARP)
        w.open(f"scf.for %piece = {none} to {pieces} step {one} {{")
        number = w.add(w.multiply("%piece", WARP), self.place.lane)
        own_row, own_column = (
            w.divide(number, across),
            w.multiply(w.remainder(number, across), width),
        )
        row = w.add(w.add(self.place.row, self.place.warp_row), w.add(own_row, first_row))
        column = w.add(w.add(self.place.column, self.place.warp_column), own_column)
        source = staging, own_row, own_column
        with w.where(w.is_less(row, sizes.m)):
            # Rows of partial sums have room for it.
            has_room = width == 1 or self.target != "%c"
            if has_room or (isinstance(sizes.n, int) and sizes.n % width == 0):
                with w.where(w.is_less(column, sizes.n)):
                    self._store_some(*source, row, column, width, finish)
            else:
                is_whole = w.is_less(w.add(column, width - 1), sizes.n)
                w.open(f"scf.if {is_whole} {{")
                self._store_some(*source, row, column, width, finish)
                w.otherwise()
                none, one, end = w.index(0), w.index(1), w.index(width)
                w.open(f"scf.for %rest = {none} to {end} step {one} {{")
                column = w.add(column, "%rest")
                with w.where(w.is_less(column, sizes.n)):
                    own_column = w.add(own_column, "%rest")
                    self._store_some(staging, own_row, own_column, row, column, 1, finish)
                w.close()
                w.close()
        w.close()

    def _store_some(
        self,
        staging: Staging,
        own_row: Index,
        own_column: Index,
        row: Index,
        column: Index,
        width: int,
        finish: Finish | None,
    ) -> None:
        w = self.w
        at = w.at(self.place.warp, own_row, own_column)
        sums = w.load_vector(f"%staged{at}", staging.type, width, self.instruction.sum)
        self._store_sums(sums, row, column, finish)

    def _store_sums(
        self, sums: Sequence[str], row: Index, column: Index, finish: Finish | None
    ) -> None:
        """Of neighbours in a row of C, the first one at `row`, `column`."""
        w, c, summed, width = self.w, self.problem.c, self.instruction.sum, len(sums)
        at = w.at(*self.at, row, column)
        if self.problem.adds:
            before = w.load_vector(f"{self.target}{at}", c.type, width, c.element)
            sums = [
                add_sums(w, convert(w, old, c.element, summed), new, summed)
                for old, new in zip(before, sums, strict=True)
            ]
        columns = [w.index(w.add(column, number)) for number in range(width)]
        batch = self.place.batch[0] if self.place.batch else None
        # `width` divides the tile, and so the first column.
        place = ElementPlace(batch, w.index(row), columns, is_whole=True)
        values = results_of(w, self.problem, sums, place, finish)
        type_ = f"vector<{width}x{c.element}>"
        stored = w.value(f"vector.from_elements {', '.join(values)} : {type_}")
        w.store_vector(stored, f"{self.target}{at}", c.type, width, c.element)


def add_sums(w: Writer, left: str, right: str, type_: str) -> str:
    return w.value(f"arith.{'addi' if type_ == 'i32' else 'addf'} {left}, {right} : {type_}")


def results_of(
    w: Writer, problem: Problem, sums: Sequence[str], place: ElementPlace, finish: Finish | None
) -> Sequence[str]:
    """What C gets for sums."""
    totals = [convert(w, sum_, sum_type(problem), problem.accumulator) for sum_ in sums]
    if finish is not None:
        return finish(w, totals, place)
    return [convert(w, total, problem.accumulator, problem.c.element) for total in totals]
