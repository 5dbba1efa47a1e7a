"""K in slices, of which blocks of `hopper` make tiles of their own: sums in a buffer → C.

That is for C of so few tiles that many multiprocessors would have none. The first kernel stores
the sums of each slice, f32; the second one adds them in the order of K, and does what is to be done
with the whole sums. It comes while the first one ends (programmatic dependent launch).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Finish,
    Matrix,
    Place,
    Problem,
    convert,
)
from aotc.kernels.matmul.wgmma.tiles import DEPTH, Body, Tile

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.variants import Variant

_SUMS, _SUMS_TYPE = "%sums", "memref<?x?x?xf32>"
_THREADS = 128
# Sums that a thread reads at once.
_WIDTH = 4
_VECTOR = f"vector<{_WIDTH}xf32>"


def can_slice(problem: Problem, variant: Variant) -> bool:
    if variant.slices == 1:
        return True
    return (
        variant.slices > 1
        and bool(problem.k)
        and not problem.batched
        and variant.splits == 1
        and not variant.swaps
        and ELEMENT_BYTES[problem.a.element] == 2
    )


class Slices:
    """Of a variant; with one, sums are C's, and nothing is done here."""

    def __init__(self, e: Body, problem: Problem, variant: Variant, finish: Finish | None) -> None:
        self.e, self.problem, self.variant, self.finish = e, problem, variant, finish
        self.count = variant.slices
        self.target = _SUMS if self.count > 1 else "%c"

    @property
    def first(self) -> tuple[Problem, Finish | None]:
        """What the first kernel stores, and what it does before: with slices, a matrix for each."""
        if self.count == 1:
            return self.problem, self.finish
        sizes = self.problem.m, self.problem.n
        c = Matrix(_SUMS_TYPE, "f32", sizes, None, _WIDTH * 4)
        return replace(self.problem, c=c, adds=False, batched=True, extras=()), None

    # --- The first kernel ----------------------------------------------------------------

    def allocate(self, rows: str, columns: str) -> None:
        """Makes the buffer, whose rows are of whole vectors. Of the host's part."""
        if self.count == 1:
            return
        e = self.e
        pitch = e.do("muli", self._vectors(columns), _WIDTH, "index")
        sizes = ", ".join((e.constant(self.count), rows, pitch))
        e.line(f"{_SUMS} = memref.alloc({sizes}) : {_SUMS_TYPE}")

    def divide(self, stages: str) -> str:
        """How many of K's stages a slice has: all as many, of the last one some behind K's end."""
        e = self.e
        own = e.do("divui", e.do("addi", stages, self.count - 1), self.count)
        self.depth = e.do("muli", own, DEPTH)
        return own

    def place(self, tile: Tile, first_k: str) -> tuple[Tile, str]:
        """Where a tile is in A and B, and where K begins for it. Slices are a batch of C alone."""
        if self.count == 1:
            return tile, first_k
        assert tile.batch is not None
        return Tile(tile.row, tile.column, None), self.e.do("muli", tile.batch, self.depth)

    # --- The second kernel ---------------------------------------------------------------

    def add(self, rows: str, columns: str) -> None:
        """Launches it, and gives the buffer back. Of the host's part."""
        if self.count == 1:
            return
        e = self.e
        across = self._vectors(columns)
        all_ = e.do("muli", rows, across, "index")
        blocks, one = e.do("ceildivui", all_, e.constant(_THREADS), "index"), e.constant(1)
        threads = e.constant(_THREADS)
        e.line(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {blocks}, %gy = {one}, %gz = {one})")
        with e.block(f"    threads(%tx, %ty, %tz) in (%sx = {threads}, %sy = {one}, %sz = {one})"):
            e.line("nvvm.griddepcontrol wait")
            e.line("nvvm.griddepcontrol launch_dependents")
            block, thread = e.i32("%bx"), e.i32("%tx")
            number = e.do("addi", e.do("muli", block, _THREADS), thread)
            across = e.i32(across)
            row, place = e.do("divui", number, across), e.do("remui", number, across)
            column = e.do("muli", place, _WIDTH)
            is_there = e.compare("ult", row, e.i32(rows))
            with e.block(f"scf.if {is_there}"):
                self._store(e.index(row), column, e.i32(columns))
            e.line("gpu.terminator")
        e.line(f"memref.dealloc {_SUMS} : {_SUMS_TYPE}")

    def _vectors(self, columns: str) -> str:
        return self.e.do("ceildivui", columns, self.e.constant(_WIDTH), "index")

    def _store(self, row: str, column: str, columns: str) -> None:
        """What a thread stores."""
        e, first = self.e, self.e.index(column)
        total = ""
        for slice_ in range(self.count):
            at = f"{_SUMS}[{e.constant(slice_)}, {row}, {first}]"
            one = e.value(f"vector.load {at} {{alignment = 16 : i64}} : {_SUMS_TYPE}, {_VECTOR}")
            total = e.value(f"arith.addf {total}, {one} : {_VECTOR}") if total else one
        sums = [e.value(f"vector.extract {total}[{i}] : f32 from {_VECTOR}") for i in range(_WIDTH)]
        if self._has_whole_vectors:
            others = [e.value(f"arith.addi {first}, {e.constant(i)} : index")
                      for i in range(1, _WIDTH)]  # fmt: skip
            values = self._finished(sums, Place(None, row, [first, *others], is_whole=True))
            self._store_vector(values, row, first)
            return
        for i, sum_ in enumerate(sums):
            own = e.do("addi", column, i)
            with e.block(f"scf.if {e.compare('ult', own, columns)}"):
                at = e.index(own)
                [value] = self._finished([sum_], Place(None, row, [at]))
                e.line(f"memref.store {value}, %c[{row}, {at}] : {self.problem.c.type}")

    @property
    def _has_whole_vectors(self) -> bool:
        """Whether C's rows are of them, and begin where one may be stored at once."""
        n, c = self.problem.n, self.problem.c
        return (
            n is not None
            and n % _WIDTH == 0
            and c.alignment % (_WIDTH * ELEMENT_BYTES[c.element]) == 0
        )

    def _store_vector(self, values: list[str], row: str, column: str) -> None:
        e, c = self.e, self.problem.c
        type_ = f"vector<{_WIDTH}x{c.element}>"
        vector = e.value(f"vector.from_elements {', '.join(values)} : {type_}")
        aligned = f"{{alignment = {_WIDTH * ELEMENT_BYTES[c.element]} : i64}}"
        e.line(f"vector.store {vector}, %c[{row}, {column}] {aligned} : {c.type}, {type_}")

    def _finished(self, sums: list[str], place: Place) -> list[str]:
        """C's elements there."""
        e, problem, c = self.e, self.problem, self.problem.c
        if problem.adds:
            for i, column in enumerate(place.columns):
                before = e.value(f"memref.load %c[{place.row}, {column}] : {c.type}")
                before = convert(e, before, c.element, "f32")
                sums[i] = e.value(f"arith.addf {before}, {sums[i]} : f32")
        if self.finish is not None:
            return list(self.finish(e, sums, place))
        return [convert(e, sum_, "f32", c.element) for sum_ in sums]
