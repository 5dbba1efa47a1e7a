"""Implicit GEMM for the CPU device of elements of 8 or 16 bits, by the instructions of
`kernels/cpu/dots.py`: the addresses of `gathered`, with the mainloop of `matmul.cpu.grouped`.

A, whose rows are contiguous along K as those of a filter are, is read or packed as in a matmul. The
elements of a group of B may be anywhere in memory: a group is packed from as many rows of B, whose
columns have a stride of 1 or 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.builder.numbers import Number, Value, compare, is_equal
from aotc.kernels.cpu.levels import AVX512
from aotc.kernels.cpu.tiles import TileInstruction
from aotc.kernels.cpu.vectors import VECTOR_STRIDES
from aotc.kernels.matmul.cpu import grouped
from aotc.kernels.matmul.cpu.blocked import Step, Tile
from aotc.kernels.matmul.cpu.grouped import dots_of_problem
from aotc.kernels.matmul.cpu.grouped_packing import Packing
from aotc.kernels.matmul.implicit_gemm.cpu import gathered
from aotc.kernels.matmul.implicit_gemm.cpu.gathered import line_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, known_count, loop_step
from aotc.kernels.matmul.problem import Line


def takes_groups(problem: ImplicitGemm) -> bool:
    """Whether there are instructions for the problem, and the kernel supports the layouts of its
    operands."""
    stride = loop_step(problem, problem.columns[-1], "b")
    if not dots_of_problem(problem) or stride not in VECTOR_STRIDES:
        return False
    run: int | None = 1
    for loop in reversed(problem.k_loops):
        if run is None or loop_step(problem, loop, "a") != run:
            return False
        run = None if loop.size is None else run * loop.size
    return True


class Branch(grouped.Branch, gathered.Kernel):
    """See `grouped.Branch`."""

    def take_operands(self, kernel: Any) -> None:
        self.of_a, self.of_b, self.of_c = kernel.of_a, kernel.of_b, kernel.of_c
        self.runs = {}

    @property
    def reads_a(self) -> bool:
        k = known_count(self.problem.k_loops)
        is_whole = k is not None and k % self.dot.group == 0
        # A tile's rows are equally far apart.
        fits = not isinstance(self.dot, TileInstruction) or len(self.of_a.m.modes) <= 1
        return is_whole and fits and self.problem.a.element == self.dot.element

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """See the base class. As in `gathered`, B's rows of groups are consecutive."""
        a, _ = super().packed_shapes
        columns = self.variant.tile_columns + 2 * self.width
        return a, (self.variant.tile_k, columns * self.dot.group)

    @property
    def table_lengths(self) -> dict[str, int]:
        return _with_groups(super().table_lengths, self.dot.group)

    def prepare(self, tile: Tile, rows: Number) -> None:
        super().prepare(tile, rows)
        self.source_a = self.of_a.buffer

    def place_in_a(self, tile: Tile, step: Step, row: Number) -> list[Number]:
        return [self.offset("m_a", row) + step.start]

    def place_of_packed(self, column: Number, k: Number) -> list[Number]:
        return [k, column * self.dot.group]

    # --- C -------------------------------------------------------------------------------------

    @property
    def stores_early(self) -> bool:
        """Where all columns of C are neighbours in memory."""
        strides = [mode.stride for mode in self.of_c.n.modes]
        return strides == [1] and super().stores_early

    @property
    def columns(self) -> int | None:
        return known_count(self.problem.columns)

    def store_vector(self, tile: Tile, vector: Value, row: Number, column: Number) -> None:
        at = [self.offset("m_c", row) + self.offset("n_c", column)]
        place, line = self._place(tile, row, column)
        self.store_result(vector, self.of_c.buffer, at, place, line)

    def prefetch_vector(self, tile: Tile, row: Number, column: Number) -> None:
        at = [self.offset("m_c", row) + self.offset("n_c", column)]
        self.prefetch_operands(self.of_c.buffer, at, *self._place(tile, row, column))

    def _place(
        self, tile: Tile, row: Number, column: Number
    ) -> tuple[tuple[Number, Number], Line | None]:
        of_c = tile.column + column
        return (tile.row + row, of_c), line_of(self.of_c.n, of_c)

    # --- Packing -------------------------------------------------------------------------------

    def pack_a(self, tile: Tile, step: Step) -> None:
        grouped.Branch.pack_a(self, tile, step)

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        gathered.Kernel.pack_runs(self, tile, step)

    def pack_run(self, step: Step, begin: Number, end: Number, stride: int) -> None:
        b, group = self.b, self.dot.group
        whole = self.whole(step.count, group)
        first = self.offset("n_b", begin)
        columns = end - begin
        rest = columns - self.whole(columns, self.width)
        masks = list(self.masks_of(rest, stride).values()) if self.dot.level >= AVX512 else []

        def pack(k: Number, rows: Number) -> None:
            places = [first + self.offset("k_b", k + i) for i in range(group)]
            run = _Run(self, places, rows, stride, masks)
            run.pack([self.signed("divsi", k, group), begin * group], columns)

        with b.loop(0, whole, group) as k:
            pack(k.index, group)
        with b.where(compare("slt", whole, step.count)):
            pack(whole, step.count - whole)


class _Run(Struct, frozen=True):
    """A run of columns of a group of `rows` rows of B. `places`: the offset of the first column in
    each row. `stride`: the distance of columns. `masks`: the masks of the columns past the last
    whole vector."""

    branch: Branch
    places: Sequence[Number]
    rows: Number
    stride: int
    masks: Sequence[Value]

    def pack(self, to: Sequence[Number], columns: Number) -> None:
        """Packs `columns` columns. Whole vectors are stored; values past the last column are
        overwritten by the next run, or unused."""
        v, group = self.branch, self.branch.dot.group
        b, (row, first) = v.b, to
        whole = v.whole(columns, v.width)
        with b.loop(0, whole, v.width) as column:
            groups = self._groups(column.index, ())
            b.store_vector(groups, v.packed_b, [row, first + column.index * group])
        if self.masks:
            with b.where(compare("slt", whole, columns)):
                groups = self._groups(whole, self.masks)
                b.store_vector(groups, v.packed_b, [row, first + whole * group])
            return
        with b.loop(whole, columns) as column:
            for number in range(group):
                element = self._element(number, column.index)
                b.store(element, v.packed_b, [row, first + column.index * group + number])

    @property
    def _source(self) -> Packing:
        v = self.branch
        return Packing(v, v.of_b.buffer, v.problem.b.unsigned, moves=v.moves_b)

    def _groups(self, column: Number, masks: Sequence[Value]) -> Value:
        """A vector of groups of the columns from `column` on, loaded with `masks` if there are
        any."""
        v, source = self.branch, self._source
        type_ = v.of(source.source.element, v.width)
        # With a stride of 2, the second load ends at the last element.
        starts = (0,) if self.stride == 1 else (0, v.width - 1)

        def load(number: int) -> Value:
            first = self.places[number] + column * self.stride
            vectors = [
                v.b.load_vector(source.source, [first + start], v.width)
                if not masks
                else v.load_elements_masked(source.source, [first + start], masks[i])
                for i, start in enumerate(starts)
            ]
            return v.strided(vectors)

        return source.gathered(load, type_, self.rows)

    def _element(self, number: int, column: Number) -> Value:
        b, source = self.branch.b, self._source

        def load() -> list[Value]:
            at = [self.places[number] + column * self.stride]
            return [source.converted(b.load(source.source, at))]

        if is_equal(self.rows, self.branch.dot.group):
            return load()[0]
        type_ = self.branch.dot.element
        is_there = compare("slt", number, self.rows)
        return b.choose(is_there, [type_], load, lambda: [b.zero(type_)])[0]


class Kernel(grouped.Kernel, gathered.Kernel):
    """See the module's docstring."""

    branch_type: type[Any] = Branch

    @property
    def table_lengths(self) -> dict[str, int]:
        most = max(dot.group for dot in dots_of_problem(self.problem))
        return _with_groups(super().table_lengths, most)


def _with_groups(lengths: dict[str, int], group: int) -> dict[str, int]:
    """The lengths of tables, with those along K multiplied by the size of a group."""
    return {name: n * group if name.startswith("k") else n for name, n in lengths.items()}
