"""A matmul for the CPU device of elements of 8 or 16 bits, by dot-product instructions
(`kernels/cpu/dots.py`) or those of tile registers (`kernels/cpu/tiles.py`). It is `cpu.blocked`,
with a mainloop that takes a group of consecutive elements along K in place of one. A kernel has a
branch for each instruction. On processors without any of them, it is `cpu.blocked`.

A is read in place if K is a multiple of the group, and packed otherwise. B is packed in vectors
that have a group of each column. Groups are padded with zeros past the last k.

AVX512_VNNI multiplies unsigned bytes by signed bytes. If A and B have the same signedness, B is
packed with the other one, which shifts its values by 128. (A is shifted instead, if it is packed
because K is not contiguous in it.) The accumulators begin with a correction of the shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from aotc.builder import Buffer
from aotc.builder.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare,
    select,
    signed_maximum,
)
from aotc.kernels.cpu.dots import Dot, Instruction, dots_of
from aotc.kernels.cpu.levels import has_level
from aotc.kernels.cpu.mainloop import LONG_ROWS, ROWS_BEHIND, Finish, Mainloop, Row
from aotc.kernels.cpu.tiles import (
    CONFIGURATION_BYTES,
    MOST_GROUPS,
    TileInstruction,
    TileProduct,
    address_of,
    tile_instructions,
)
from aotc.kernels.cpu.vectors import VECTOR_BYTES, Vectors
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import ROW_GAP_BYTES, CpuBlocked, Step, Tile, Variant
from aotc.kernels.matmul.cpu.grouped_packing import MOVE, Packing
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Problem
from aotc.module_names import GROUPED_BYTES_COPY, GROUPED_HALVES_COPY, GROUPED_WORDS_COPY

_GROUP_BYTES = 4
# The approximate smallest number of rows of a tile, and that where C has enough tiles of it for
# every core.
_ROWS, _MANY_ROWS = 128, 256
_ENOUGH_ELEMENTS = 40 * _MANY_ROWS * 96


class _Operands(Struct, frozen=True):
    """The operands of the mainloop, whose elements are groups."""

    kernel: Branch
    tile: Tile
    step: Step

    def row_of_a(self, v: Vectors, row: Number) -> Row:
        group = self.kernel.groups_of_a(self.tile, self.step, row)
        return lambda k, width=1: group(k)

    def vector_of_b(self, v: Vectors, column: Number, k: Number) -> Value:
        return self.kernel.packed_vector(column, k)


class _Mainloop(Mainloop):
    kernel: Branch

    def factor(self, element: Value) -> Value:
        return element

    def add_products(self, sums: Value, factor: Value, vector: Value) -> Value:
        return self.kernel.add_products(sums, factor, vector)

    def corrected(
        self, rows: Sequence[Number], columns: Sequence[Number], accumulators: Sequence[Value]
    ) -> Sequence[Value]:
        return self.kernel.corrected(rows, columns, accumulators)


class Branch(blocked.Kernel):
    """The branch of a kernel that uses the instruction `dot`."""

    reads_b = False
    columns_apart = 0

    def __init__(self, kernel: Kernel, dot: Instruction) -> None:
        super().__init__(kernel.b, kernel.problem, kernel.variant, kernel.epilogue)
        self.batch, self.dot = kernel.batch, dot
        self.take_operands(kernel)
        self.step_unit = self.width * dot.group
        groups = self.variant.tile_k
        if isinstance(dot, TileInstruction):
            groups = min(groups, MOST_GROUPS)
        self.longest_step = groups * dot.group
        self.groups_type = self.of(dot.element, self.width * dot.group)
        a, b = self.problem.a, self.problem.b
        # Whether A's or B's values are shifted to change their signedness.
        moves = dot.is_mixed and a.unsigned == b.unsigned
        self.moves_a, self.moves_b = moves and a.transposed, moves and not a.transposed
        self.is_a_first = a.unsigned is not self.moves_a

    def take_operands(self, kernel: Any) -> None:
        """Takes over the operands of the kernel."""
        self.arguments = kernel.arguments

    # --- Memory --------------------------------------------------------------------------------

    @property
    def reads_a(self) -> bool:
        a, k = self.problem.a, self.problem.k
        is_whole = k is not None and k % self.dot.group == 0
        return is_whole and not a.transposed and a.element == self.dot.element

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the packed A, whose groups are along K or along M, and of the packed B:
        (group of columns, group of k, column and k in the groups)."""
        v, group, gap = self.variant, self.dot.group, ROW_GAP_BYTES // _GROUP_BYTES
        a = (v.tile_rows, (v.tile_k + gap) * group)
        if self.problem.a.transposed:
            a = (v.tile_k, (v.tile_rows + gap) * group)
        if self.reads_a:
            a = (0, 0)
        return a, (v.tile_columns // self.width + 1, v.tile_k + 1, self.width * group)

    def packed_bytes(self) -> list[int]:
        packed = [math.prod(shape) * _GROUP_BYTES // self.dot.group for shape in self.packed_shapes]
        return [*packed, sums_bytes(self.variant, self.width)]

    def allocate(self) -> None:
        b, v = self.b, self.variant
        memory = b.shared_memory()
        (a_shape, b_shape), (a_bytes, b_bytes, of_sums) = self.packed_shapes, self.packed_bytes()
        self.packed_a = b.shared_buffer(memory, 0, a_shape, self.dot.element)
        self.packed_b = b.shared_buffer(memory, a_bytes, b_shape, self.dot.element)
        start, count = a_bytes + b_bytes, of_sums // self.bytes
        self.sums = b.shared_buffer(memory, start, [count], self.type)
        self.configuration = b.shared_buffer(memory, start, [CONFIGURATION_BYTES // 4], "i32")
        tile = [v.tile_rows + ROWS_BEHIND, v.tile_columns + self.width]
        self.tile_accumulators = b.shared_buffer(memory, start + of_sums, tile, self.type)

    # --- Steps ---------------------------------------------------------------------------------

    def multiply_step(self, tile: Tile, step: Step) -> None:
        count = self.groups(step.count, self.dot.group)
        is_first: Condition = compare("eq", step.start, 0)
        self.pack_b(tile, step, 0)
        if isinstance(self.dot, TileInstruction):
            self._multiply_tiles(self.dot, tile, step)
            return
        if self.moves_a:
            self._sum_columns(tile, step)
        elif self.moves_b:
            self._sum_rows(tile, step)
        operands = _Operands(self, tile, step)
        mainloop = _Mainloop(self, self.variant.rows, operands, self.tile_accumulators)
        mainloop.kernel = self
        finish = self.finish(tile, step) if self.stores_early else None
        mainloop.multiply(tile.rows, tile.columns, count, is_first, finish=finish)

    def _multiply_tiles(self, instruction: TileInstruction, tile: Tile, step: Step) -> None:
        b, group = self.b, self.dot.group

        def of_a(row: Number, k: Number) -> Scalar:
            if self.reads_a:
                *outer, first = self.place_in_a(tile, step, row)
                return address_of(b, self.source_a, [*outer, first + k * group])
            return address_of(b, self.packed_a, [row, k * group])

        TileProduct(
            self,
            instruction,
            a=of_a,
            b=lambda k, column: address_of(b, self.packed_b, self.place_of_packed(column, k)),
            c=lambda row, column: address_of(b, self.tile_accumulators, [row, column], reads=False),
            configuration=self.configuration,
            is_first=compare("eq", step.start, 0),
        ).multiply(tile.rows, tile.columns, self.groups(step.count, group))

    def add_products(self, sums: Value, of_a: Value, of_b: Value) -> Value:
        assert isinstance(self.dot, Dot)
        pair = (of_a, of_b) if self.is_a_first else (of_b, of_a)
        return self.dot.add(self, sums, *pair)

    def _sum_columns(self, tile: Tile, step: Step) -> None:
        """What A's move adds: B's columns times it."""
        b, count = self.b, self.groups(step.count, self.dot.group)
        move = b.constant(MOVE, self.groups_type)
        with b.loop(0, tile.columns, self.width) as column:
            with b.loop(0, count, 1, [b.zero(self.vector_type)]) as loop:
                vector = self.packed_vector(column.index, loop.index)
                loop.next([self.add_products(loop.carried[0], move, vector)])
            self.store(loop.results[0], self.sums, [column.index])

    def _sum_rows(self, tile: Tile, step: Step) -> None:
        """What B's move adds: A's rows times it."""
        b, each = self.b, self.width * self.dot.group
        move = b.constant(MOVE, self.groups_type)
        whole = self.whole(step.count, each)
        rest = b.op("vector.create_mask", [b.value(step.count - whole)], self.of("i1", each))
        with b.loop(0, tile.rows) as row:
            source, at = self.packed_a, [row.index, 0]
            if self.reads_a:
                source, at = self.source_a, self.place_in_a(tile, step, row.index)
            *outer, first = at
            with b.loop(0, whole, each, [b.zero(self.vector_type)]) as loop:
                vector = b.load_vector(source, [*outer, first + loop.index], each)
                loop.next([self.add_products(loop.carried[0], vector, move)])
            zeros = b.zero(self.groups_type)
            places = b.values([*source.leading, *outer, first + whole])
            vector = b.op("vector.maskedload", [source.value, *places, rest, zeros], zeros.type)
            sums = self.add_products(loop.results[0], vector, move)
            b.store(self.total(sums), self.sums, [row.index])

    def corrected(
        self, rows: Sequence[Number], columns: Sequence[Number], accumulators: Sequence[Value]
    ) -> Sequence[Value]:
        """The accumulators less what a move adds in a step."""
        b, count = self.b, len(columns)
        if self.moves_a:
            sums = [self.load(self.sums, [column], self.width) for column in columns] * len(rows)
        elif self.moves_b:
            of_rows = [self.broadcast(self.load(self.sums, [row])) for row in rows]
            sums = [vector for vector in of_rows for _ in range(count)]
        else:
            return accumulators
        return [b.subtract(*pair) for pair in zip(accumulators, sums, strict=True)]

    # --- C -------------------------------------------------------------------------------------

    @property
    def stores_early(self) -> bool:
        """See `blocked.Kernel`: the epilogue is short enough for a copy for each register. Tiles
        are stored to memory first."""
        is_tiled = isinstance(self.dot, TileInstruction)
        return not is_tiled and self.stores_vectors and self.has_short_epilogue

    def finish(self, tile: Tile, step: Step) -> Finish:
        """Stores the whole vectors of columns; the last one waits where all accumulators would."""
        b, is_whole = self.b, self.columns is not None and self.columns % self.width == 0

        def prefetch(row: Number, column: Number) -> None:
            self.prefetch_vector(tile, row, column)

        def store(vector: Value, row: Number, column: Number) -> None:
            if is_whole:
                self.store_vector(tile, vector, row, column)
                return
            with b.where(compare("sle", column + self.width, tile.columns)) as branch:
                self.store_vector(tile, vector, row, column)
            with branch.otherwise():
                self.store(vector, self.tile_accumulators, [row, column])

        # Tiles have a multiple of `LONG_ROWS`, or the last rows.
        divisor = math.gcd(self.problem.m or 1, LONG_ROWS)
        return Finish(step.is_last, divisor, store, prefetch)

    def store_vector(self, tile: Tile, vector: Value, row: Number, column: Number) -> None:
        """Stores a vector of accumulators at a row and a column of the tile."""
        at = (tile.row + row, tile.column + column)
        self.store_result(vector, self.c, at, at)

    def prefetch_vector(self, tile: Tile, row: Number, column: Number) -> None:
        """Prefetches what `store_vector` reads."""
        at = (tile.row + row, tile.column + column)
        self.prefetch_operands(self.c, at, at, None)

    # --- The mainloop's access to operands -----------------------------------------------------

    def groups_of_a(self, tile: Tile, step: Step, row: Number) -> Callable[[Number], Value]:
        """Access to the groups of a row by their index, each broadcast to a vector."""
        b, group = self.b, self.dot.group
        *outer, first = self.place_in_a(tile, step, row)

        def load(k: Number) -> Value:
            if self.reads_a:
                vector = b.load_vector(self.source_a, [*outer, first + k * group], group)
            else:
                at = [k, row * group] if self.problem.a.transposed else [row, k * group]
                vector = b.load_vector(self.packed_a, at, group)
            bits = b.op("vector.bitcast", [vector], "vector<1xi32>")
            return self._of_groups(
                b.op("vector.broadcast", [b.extract(bits, [0])], self.of("i32", self.width))
            )

        return load

    def place_in_a(self, tile: Tile, step: Step, row: Number) -> list[Number]:
        """The indices of the first element of a row in a step, if K is contiguous in A."""
        return [tile.row + row, step.start]

    def packed_vector(self, column: Number, k: Number) -> Value:
        at = self.place_of_packed(column, k)
        return self.b.load_vector(self.packed_b, at, self.width * self.dot.group)

    def place_of_packed(self, column: Number, k: Number) -> list[Number]:
        """The indices in the packed B of a group of k of the vector of columns from a column on."""
        return [self.signed("divsi", column, self.width), k, 0]

    def _of_groups(self, bits: Value) -> Value:
        return self.b.op(
            "vector.bitcast", [bits], self.of(self.dot.element, bits.type.shape[0] * self.dot.group)
        )

    # --- Packing -------------------------------------------------------------------------------

    def pack_a(self, tile: Tile, step: Step) -> None:
        pack = Packing(self, self.source_a, self.problem.a.unsigned, moves=self.moves_a)
        if self.problem.a.transposed:
            pack.rows((step.start, tile.row), (step.count, tile.rows), self._store_groups_of_a)
        else:
            place = partial(self.place_in_a, tile, step)
            pack.copy(place, (tile.rows, step.count), self.packed_a)

    def _store_groups_of_a(self, groups: Value, k: Number, row: Number) -> None:
        self.b.store_vector(groups, self.packed_a, [k, row * self.dot.group])

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        pack = Packing(self, self.source_b, self.problem.b.unsigned, moves=self.moves_b)
        first, counts = (step.start, tile.column), (step.count, tile.columns)
        if self.problem.b.transposed:
            pack.columns(first, counts, self.packed_b)
        else:
            pack.rows(first, counts, self._store_groups_of_b)

    def _store_groups_of_b(self, groups: Value, k: Number, column: Number) -> None:
        self.b.store_vector(groups, self.packed_b, self.place_of_packed(column, k))


class PackedBranch(Branch):
    """The branch for a B that is packed already, see `grouped_copy`. If A and B have the same
    signedness, A's values are shifted while it is packed."""

    def __init__(self, kernel: Kernel, dot: Instruction) -> None:
        super().__init__(kernel, dot)
        self.moves_a, self.moves_b = self.moves_a or self.moves_b, False
        self.is_a_first = self.problem.a.unsigned is not self.moves_a

    @property
    def reads_a(self) -> bool:
        return not self.moves_a and super().reads_a

    @property
    def packed_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        a, _ = super().packed_shapes
        return a, (0, 0, 0)

    def allocate(self) -> None:
        super().allocate()
        self.packed_b = Buffer(self.arguments.packed_b)

    def pack_b(self, tile: Tile, step: Step, start: Number) -> None:
        """Nothing is packed: the part's place in B is taken."""
        self.first = tile.column, self.signed("divsi", step.start, self.dot.group)

    def place_of_packed(self, column: Number, k: Number) -> list[Number]:
        first_column, first_k = self.first
        return super().place_of_packed(first_column + column, first_k + k)


class Kernel(blocked.Kernel):
    """See the module's docstring."""

    branch_type: type[Any] = Branch
    is_packed = False

    def build(self, arguments: Arguments) -> None:
        self.is_packed = arguments.packed_b is not None
        super().build(arguments)

    def branch(self, dot: Instruction) -> Any:
        """The branch for an instruction. The packed B has groups of its elements."""
        is_packed = self.is_packed and dot.element == self.problem.b.element
        return (PackedBranch if is_packed else self.branch_type)(self, dot)

    def packed_bytes(self) -> list[int]:
        """With the sums of branches."""
        *packed, of_columns = super().packed_bytes()
        return [*packed, max(of_columns, sums_bytes(self.variant, self.width))]

    def tile_sizes(self, m: Number, n: Number) -> tuple[Number, Number, Number]:
        """See the base class. Tiles have many rows, as each row of tiles packs the same B again."""
        rows, columns, across = super().tile_sizes(m, n)
        few, many = (
            self.even(m, min(most, self.variant.tile_rows), LONG_ROWS)
            for most in (_ROWS, _MANY_ROWS)
        )
        is_large = compare("sge", m * n, _ENOUGH_ELEMENTS)
        return signed_maximum(rows, select(is_large, many, few)), columns, across

    def compute_tile(self, tile: Tile, k: Number, rows: Number) -> None:
        self._compute(dots_of_problem(self.problem), tile, k, rows)

    def _compute(self, dots: Sequence[Instruction], tile: Tile, k: Number, rows: Number) -> None:
        if not dots:
            super().compute_tile(tile, k, rows)
            return
        branch = self.branch(dots[0])
        assert sum(branch.packed_bytes()) <= sum(self.packed_bytes())
        with self.b.where(has_level(self.b, dots[0].level)) as where:
            branch.compute_tile(tile, k, rows)
        with where.otherwise():
            self._compute(dots[1:], tile, k, rows)


def sums_bytes(variant: Variant, width: int) -> int:
    """The bytes of a number of 32 bits for each row of a tile, or for each column. The accumulators
    follow, which begin with a cache line."""
    count = 4 * max(variant.tile_rows, variant.tile_columns + width)
    return -(-count // VECTOR_BYTES) * VECTOR_BYTES


def dots_of_problem(problem: Problem) -> tuple[Instruction, ...]:
    """The instructions for a problem, the best one first."""
    a, b, accumulator = problem.a, problem.b, computed_in(problem)
    dots = dots_of(a.element, b.element, accumulator)
    # Tiles of A have rows along K.
    if a.transposed:
        return dots
    tiles = tile_instructions((a.element, b.element), (a.unsigned, b.unsigned), accumulator)
    return (*tiles, *dots)


def grouped_copy(problem: Problem) -> tuple[str, str] | None:
    """The prefix of the name, and the type, of the copy of a constant B that the runtime packs once
    (see `aotc_constant_get_grouped_words` and the others); None if there is none. Where there are
    no instructions on such groups, kernels read the original."""
    a, b = problem.a, problem.b
    k, n = problem.k, problem.n
    if problem.batched or k is None or n is None or k % _GROUP_BYTES or a.element != b.element:
        return None
    prefix = {"i8": GROUPED_BYTES_COPY, "bf16": GROUPED_HALVES_COPY}.get(b.element)
    if prefix is None or b.pitch not in (None, k if b.transposed else n):
        return None
    if b.transposed:
        prefix = GROUPED_WORDS_COPY
    words = k * ELEMENT_BYTES[b.element] // _GROUP_BYTES
    width = VECTOR_BYTES // _GROUP_BYTES
    elements = VECTOR_BYTES // ELEMENT_BYTES[b.element]
    return prefix, f"memref<{-(-n // width)}x{words + 1}x{elements}x{b.element}>"


class CpuGrouped(CpuBlocked):
    """See the module's docstring."""

    name = "blocks of narrow elements"
    mnemonic = "cpu_grouped"
    kernel_type = Kernel

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """See `KernelFamily`. Tiles have many rows, see `Kernel.tile_sizes`."""
        variant = Variant(tile_rows=264)
        return (variant,) if self.can_implement(problem, variant) else ()

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        return bool(dots_of_problem(problem)) and super().can_implement(problem, variant)


CPU_GROUPED: CpuBlocked = CpuGrouped()
