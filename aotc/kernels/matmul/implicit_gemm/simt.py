"""Implicit GEMM without tensor cores: the mainloop of `simt`, with its own addresses.

Elements that are not contiguous are copied one by one. The offset of a k is looked up in a table in
shared memory, which each block first fills for its part of K. If C has too few tiles for a GPU, K
is split, and a second kernel adds the accumulators of the parts in the order of K.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare, divide_up, minimum, unravel
from aotc.chips import H100, KIB
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.family import FewTiles
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.operand import Layout, Mode, Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.split_k import (
    clocks_of_parts,
    few_tiles_of,
    likely_tiles,
    parts_of,
    split_k_extent,
    table_length,
)
from aotc.kernels.matmul.mma_sync.tiles import ProblemShape
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    Matrix,
    Place,
    Problem,
)
from aotc.kernels.matmul.scalar import Block, accumulator_type_of, has_known_types, launch
from aotc.kernels.matmul.simt import tiles as simt_tiles
from aotc.kernels.matmul.simt.family import SIMT
from aotc.kernels.matmul.simt.kernel import tile_coordinate
from aotc.kernels.matmul.simt.mainloop import CopyVector, Mainloop
from aotc.kernels.matmul.simt.tiles import OperandTile
from aotc.kernels.matmul.split_k_reduction import (
    part_extent,
    parts_of_few_tiles,
    sum_of_parts,
)

_SHARED_BYTES = 160 * KIB
_REDUCTION_THREADS = 128
_LEAST_EXTENT = 16  # the smallest K extent of a part


class Variant(simt_tiles.Variant, frozen=True, kw_only=True):
    """As `simt.tiles.Variant`. `split_k`: the number of parts of K; 0 if the program chooses it."""

    split_k: int = 1


# The cost model of a multiprocessor: multiply-adds of f32 per clock; the overhead of a thread's
# other instructions (with e elements of C, it reaches e / (e + _OVERHEAD) of the rate); and the
# clocks until the first tile has arrived.
_MULTIPLY_ADDS = 128
_OVERHEAD = 24
_START_CLOCKS = 3000
_THREADS_TO_BE_BUSY = 256
# Candidates whose areas are between the powers of two, as those of simt/family.py.
_BALANCED = (
    *(((64, 96, 32), (32, 96, 8, 12), 4), ((32, 96, 32), (32, 96, 8, 12), 4)),
    *(((128, 96, 32), (32, 96, 8, 12), 2), ((128, 192, 16), (32, 96, 8, 12), 1)),
)
# The tiles for C of few tiles, of f32 and of other types.
_FEW_TILES = ((64, 96, 32), (32, 96, 32), (64, 64, 16), (32, 64, 16))
# Larger candidates, without split-K.
_LARGE = (((64, 256, 16), (64, 64, 8, 16), 2), ((128, 256, 16), (64, 64, 8, 16), 1))
# The gain of large tiles of f32: there are fewer copies to shared memory, whose addresses are
# looked up, per multiply-add than in a tile of 64x96. Fitted to convolutions of 3x3 with 64 to 1280
# channels on an H200. With split-K, the kernel that adds the parts takes as long as this gain.
_COPIES = (64 + 96) / (64 * 96)
_COPY_CLOCKS = 17


def _operand_tiles(
    problem: ImplicitGemm, variant: simt_tiles.Variant
) -> tuple[OperandTile, OperandTile]:
    return simt_tiles.operand_tiles(problem, variant, _width)


def _width(operand: OperandTile, variant: simt_tiles.Variant) -> int:
    """The number of elements that are copied at once: adjacent in the tile and in memory."""
    if not variant.copy_bytes or operand.is_k_major:
        return 1
    matrix = operand.matrix
    return max(1, min(variant.copy_bytes, matrix.alignment) // ELEMENT_BYTES[matrix.element])


def _clocks(problem: ImplicitGemm, variant: simt_tiles.Variant) -> float:
    """The clocks of a warp per multiply-add, relative to a multiply-add without any overhead."""
    each = variant.thread_m * variant.thread_n
    clocks = (each + _OVERHEAD) / each
    sides = _operand_tiles(problem, variant)
    is_f32 = all(side.matrix.element == "f32" for side in sides)
    if not is_f32 or not variant.copy_bytes or variant.split_k != 1:
        return clocks
    copies = sum(side.tile / side.width for side in sides) / (variant.m * variant.n)
    return clocks - _COPY_CLOCKS * max(0, _COPIES - copies)


def _tile_bytes(problem: ImplicitGemm, variant: simt_tiles.Variant) -> int:
    return simt_tiles.shared_bytes(problem, variant, _operand_tiles(problem, variant))


class _Target(Protocol):
    """The destination of accumulators: a buffer of one dimension, and the layouts of matrices, rows
    and columns in it."""

    @property
    def buffer(self) -> Buffer: ...
    @property
    def batch(self) -> Layout: ...
    @property
    def m(self) -> Layout: ...
    @property
    def n(self) -> Layout: ...


class _Workspace:
    """The workspace of split-K: a contiguous matrix of the size of C for each part and batch."""

    def __init__(self, b: Builder, type_: str, sizes: ProblemShape, split_k: Number) -> None:
        size, count = sizes.m * sizes.n, sizes.batches * split_k
        self.buffer = Buffer(b.alloc([size * count], f"memref<?x{type_}>"))
        self.batch = Layout(b, [Mode(count, size)])
        self.m, self.n = Layout(b, [Mode(sizes.m, sizes.n)]), Layout(b, [Mode(sizes.n, 1)])


class _Gemm:
    """The host code, the epilogue, and the kernel that adds the accumulators of the parts of K."""

    def __init__(
        self, b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.epilogue = arguments.epilogue
        self.operand_a, self.operand_b, self.c = (
            Operand(b, problem, arguments, name, for_gpu=True) for name in "abc"
        )
        roles = (problem.rows, problem.columns, problem.k_loops, problem.batch)
        self.sizes = ProblemShape(*(count_of(b, arguments, loops) for loops in roles))
        self.type = accumulator_type_of(problem)

    def build(self) -> None:
        b, v, sizes = self.b, self.variant, self.sizes
        tiles_m, tiles_n = divide_up(sizes.m, v.m), divide_up(sizes.n, v.n)
        tiles = tiles_m * tiles_n
        self.split_k: Number = v.split_k
        if v.split_k == 0:
            self.split_k = parts_of_few_tiles(tiles * sizes.batches, sizes.k, 1)
        blocks = tiles * (sizes.batches * self.split_k)
        workspace = _Workspace(b, self.type, sizes, self.split_k) if v.split_k != 1 else None
        shared = IMPLICIT_SIMT.shared_bytes(self.problem, v)
        with launch(b, blocks, v.threads, shared) as block:
            _Kernel(self, workspace).build(block, tiles_m, tiles_n)
        if workspace is not None:
            elements = (sizes.m * sizes.n) * sizes.batches
            blocks = divide_up(elements, _REDUCTION_THREADS)
            with launch(b, blocks, _REDUCTION_THREADS, role="reduction") as block:
                self._reduce_split_k(block, workspace.buffer, elements)
            b.op("memref.dealloc", [workspace.buffer.value])

    def _reduce_split_k(self, block: Block, workspace: Buffer, elements: Number) -> None:
        b, sizes = self.b, self.sizes
        number = block.index * _REDUCTION_THREADS + block.thread
        with b.where(compare("ult", number, elements)):
            total = sum_of_parts(
                b, self.split_k, lambda split: b.load(workspace, [number + elements * split])
            )
            batch, place = unravel(number, sizes.m * sizes.n)
            row, column = unravel(place, sizes.n)
            at = self.c.batch.offset(batch) + (self.c.m.offset(row) + self.c.n.offset(column))
            self.store(at, (batch, row, column), [total])

    def store(
        self, at: Number, place: tuple[Number, Number, Number], sums: Sequence[Value]
    ) -> None:
        """Stores the elements of C for accumulators of consecutive columns, at offset `at` of C.
        `place`: the batch, the row, and the first column."""
        b, problem = self.b, self.problem
        batch, row, column = place
        olds = b.load_elements(self.c.buffer, [at], len(sums)) if problem.adds else []
        values: list[Value] = []
        for number, total in enumerate(sums):
            if problem.adds:
                total = b.add(b.convert(olds[number], self.type), total)
            total = b.convert(total, problem.accumulator)
            if self.epilogue is None:
                values.append(b.convert(total, problem.c.element))
            else:
                own = Place(b.value(batch), b.value(row), [b.value(column + number)])
                values += self.epilogue(b, [total], own)
        b.store_elements(values, self.c.buffer, [at])


class _Kernel(Mainloop):
    """The kernel. `workspace`: the buffer for the accumulators of the parts, if K is split."""

    def __init__(self, gemm: _Gemm, workspace: _Workspace | None) -> None:
        problem, variant = gemm.problem, gemm.variant
        self.gemm, self.workspace = gemm, workspace
        self.target: _Target = gemm.c if workspace is None else workspace
        self.operands = (gemm.operand_a, gemm.operand_b)
        buffers = (gemm.operand_a.buffer, gemm.operand_b.buffer)
        super().__init__(gemm.b, problem, variant, _operand_tiles(problem, variant), buffers)

    def build(self, block: Block, tiles_m: Number, tiles_n: Number) -> None:
        v, sizes = self.variant, self.gemm.sizes
        split_k = self.gemm.split_k
        self.batch, self.split, tile = unravel(block.index, split_k, tiles_m * tiles_n)
        tile_m, tile_n = tile_coordinate(tile, tiles_m, tiles_n, v.group)
        self.thread, self.first = block.thread, (tile_m * v.m, tile_n * v.n)
        self.k_begin, self.k_end = 0, sizes.k
        if v.split_k != 1:
            k_extent = part_extent(sizes.k, v.k, split_k)
            self.k_begin = self.split * k_extent
            if v.split_k == 0:
                self.k_begin = minimum(self.k_begin, sizes.k)
            self.k_end = minimum(self.k_begin + k_extent, sizes.k)
        self.k_valid = self.k_end
        self.tiles = self.make_tiles(block.shared)
        self.tables = self._make_tables(block.shared)
        self.vectors = []
        self.offsets: dict[CopyVector, Number] = {}
        for number, (operand, extent) in enumerate(
            zip(self.operands, (sizes.m, sizes.n), strict=True)
        ):
            along, first = (operand.m, operand.n)[number], self.first[number]
            base = operand.batch.offset(self.batch)
            vectors = list(self.copy_vectors(number, first, extent))
            self.vectors += vectors
            for vector in vectors:
                self.offsets[vector] = base + along.offset(first + vector.along)
        self.partition()
        accumulators = self.accumulate()
        matrix = self.batch if self.workspace is None else self.split * sizes.batches + self.batch
        base = self.target.batch.offset(matrix)
        if v.sliced_k == 1 or block.shared is None:
            self._store(base, accumulators)
            return
        for row, first, sums in self.add_slices(block.shared, accumulators):
            column = self.first[1] + first
            offset = self.target.n.offset(column)
            self._store_row(base, self.first[0] + row, [column], [offset], sums)

    # --- Addresses ----------------------------------------------------------------------------

    def _make_tables(self, shared: Value) -> list[Buffer | None]:
        """For each operand, the offsets of the block's part of K, unless K has one stride."""
        b, length = self.b, table_length(self.problem, self.variant)
        type_ = self.gemm.problem.offset_type
        begin = end = _tile_bytes(self.gemm.problem, self.variant)
        tables: list[Buffer | None] = []
        for operand in self.operands:
            if len(operand.k.modes) < 2:
                tables.append(None)
                continue
            table = b.shared_buffer(shared, end, [length], type_)
            end += length * table.element_bytes
            with b.loop(self.thread, length, self.variant.threads) as loop:
                # Past the end of K, any valid offset will do.
                k = minimum(self.k_begin + loop.index, self.gemm.sizes.k - 1)
                entry = b.signed_cast(operand.k.offset(k), type_)
                b.store(entry, table, [loop.index])
            tables.append(table)
        if end > begin:
            b.barrier()
        return tables

    def _source(self, vector: CopyVector, k0: Number) -> list[Number]:
        b, table = self.b, self.tables[vector.operand]
        k = k0 + vector.k
        if table is None:
            moved = self.operands[vector.operand].k.offset(k)
        else:
            moved = b.signed_cast(b.load(table, [k - self.k_begin]), "index")
        return [self.offsets[vector] + moved]

    # --- To C, or to the workspace ------------------------------------------------------------

    def _store(self, base: Number, accumulators: Sequence[Value]) -> None:
        across, width = self.variant.thread_n, self.width
        columns = [self.first[1] + first for first in self.columns]
        offsets = [self.target.n.offset(column) for column in columns]
        for number, first in enumerate(self.rows):
            for i in range(width):
                begin = (number * width + i) * across
                row = self.first[0] + (first + i)
                self._store_row(base, row, columns, offsets, accumulators[begin : begin + across])

    def _store_row(
        self,
        base: Number,
        row: Number,
        columns: Sequence[Number],
        offsets: Sequence[Number],
        accumulators: Sequence[Value],
    ) -> None:
        """Stores vectors of a row of the matrix at offset `base`."""
        width, is_whole = self.width, self.operand_tiles[0].is_whole
        with self.b.where(is_whole or compare("ult", row, self.gemm.sizes.m)):
            start = base + self.target.m.offset(row)
            for j, (column, offset) in enumerate(zip(columns, offsets, strict=True)):
                values = accumulators[j * width : (j + 1) * width]
                self._store_vector(start, offset, row, column, values)

    def _store_vector(
        self, start: Number, offset: Number, row: Number, column: Number, values: Sequence[Value]
    ) -> None:
        """Stores consecutive elements of a row. `start` is the offset of the row, and `offset` that
        of the first column."""
        b, n, is_whole = self.b, self.gemm.sizes.n, self.operand_tiles[1].is_whole
        if self._has_vectors:
            is_there = is_whole or compare("ult", column, n)
            at = start + offset
            with b.where(is_there):
                self._store_elements(at, row, column, values)
            return
        for number, value in enumerate(values):
            own = column + number
            with b.where(is_whole or compare("ult", own, n)):
                self._store_elements(start + self.target.n.offset(own), row, own, [value])

    @property
    def _has_vectors(self) -> bool:
        """Whether vectors of consecutive columns are contiguous and aligned in C or the
        workspace."""
        width, last, c = self.width, self.gemm.c.n.modes[-1], self.problem.c
        if not isinstance(last.size, int) or last.size % width:
            return False
        is_aligned = last.stride == 1 and c.alignment % (width * ELEMENT_BYTES[c.element]) == 0
        return self.workspace is not None or is_aligned

    def _store_elements(
        self, at: Number, row: Number, column: Number, values: Sequence[Value]
    ) -> None:
        if self.workspace is not None:
            self.b.store_elements(values, self.workspace.buffer, [at])
        else:
            self.gemm.store(at, (self.batch, row, column), values)


class ImplicitSimt(ImplicitGemmFamily):
    """See the module's docstring."""

    name = "implicit GEMM by multiply-adds"
    mnemonic = "simt"
    target = ANY_GPU
    variant_type = Variant
    kernel_type = _Gemm

    def can_implement(self, problem: ImplicitGemm, variant: Variant) -> bool:
        if not has_known_types(problem):
            return False
        element = accumulator_type_of(problem)
        if problem.k is None:
            return False  # the tables in shared memory have the size of K
        plain = Matrix("", element, (None, None), None, ELEMENT_BYTES[element])
        one_by_one = Problem(plain, plain, plain, problem.accumulator)
        narrow = 0 if variant.copy_bytes == 0 else ELEMENT_BYTES[element]
        if not SIMT.can_implement(one_by_one, replace(variant, copy_bytes=narrow)):
            return False
        if variant.copy_bytes and {problem.a.element, problem.b.element} != {element}:
            return False
        operand_tiles = _operand_tiles(problem, variant)
        return (
            all(simt_tiles.can_copy(operand, variant) for operand in operand_tiles)
            and self.shared_bytes(problem, variant) <= _SHARED_BYTES
            and (variant.split_k == 1 or split_k_extent(problem, variant) >= _LEAST_EXTENT)
        )

    def variants(self, problem: ImplicitGemm) -> tuple[Variant, ...]:
        if not has_known_types(problem):
            return ()
        element = accumulator_type_of(problem)
        is_async = problem.a.element == problem.b.element == element and ELEMENT_BYTES[element] >= 4
        copying = (3, 16) if is_async else (2, 0)
        sizes = (
            *(((128, 128, 8), (64, 32, 8, 8)), ((128, 64, 8), (64, 32, 8, 8))),
            *(((64, 128, 8), (64, 32, 8, 8)), ((64, 64, 16), (32, 32, 8, 4))),
            *(((64, 64, 8), (64, 32, 8, 8)), ((32, 64, 16), (32, 16, 4, 4))),
            *(((64, 32, 16), (32, 16, 4, 4)), ((32, 32, 16), (32, 16, 4, 4))),
        )
        found = [
            Variant(*tile, *part, *copying, split_k=split_k)
            for tile, part in sizes
            for split_k in parts_of(problem, 32)
        ]
        if is_async and element == "f32":
            found += [
                Variant(*tile, *part, *copying, split_k=split_k, sliced_k=sliced_k)
                for tile, part, sliced_k in _BALANCED
                for split_k in parts_of(problem, 4)
            ]
            found += [
                Variant(*tile, *part, *copying, sliced_k=sliced_k)
                for tile, part, sliced_k in _LARGE
            ]
        return tuple(variant for variant in found if self.can_implement(problem, variant))

    def few_tiles(self, problem: ImplicitGemm) -> FewTiles | None:
        """See `MatmulFamily`."""
        known = {(one.m, one.n, one.k): one for one in self.variants(problem) if one.split_k == 1}
        for tile in _FEW_TILES:
            if tile in known and (problem.m is None or tile[0] <= max(32, problem.m)):
                return few_tiles_of(problem, known[tile])
        return None

    def clocks_on_h100(self, problem: ImplicitGemm, variant: Variant) -> float:
        tiles, k_extent = likely_tiles(problem, variant)
        at_once = max(1, _THREADS_TO_BE_BUSY // variant.threads)
        rounds = -(-tiles // (H100.multiprocessors * at_once))
        # Few threads do not keep a multiprocessor busy.
        alone = min(1.0, variant.threads * min(at_once, -(-tiles // H100.multiprocessors)) / 256)
        together = min(at_once, -(-tiles // H100.multiprocessors))
        busy = k_extent * variant.m * variant.n * together / _MULTIPLY_ADDS / alone
        busy *= _clocks(problem, variant)
        total = rounds * busy + _START_CLOCKS
        return total + clocks_of_parts(problem, variant.split_k)

    def shared_bytes(self, problem: ImplicitGemm, variant: Variant) -> int:
        tables = 2 * table_length(problem, variant) * problem.offset_bytes
        return _tile_bytes(problem, variant) + tables


IMPLICIT_SIMT = ImplicitSimt()
