"""Implicit GEMM on tensor cores: the kernel of `mma_sync`, with its own addresses.

Contiguous elements of an operand's tile are copied in vectors of 16 or 8 bytes, by asynchronous
copies if both operands allow them. Other elements are loaded one by one, while the previous tile is
multiplied. The offset of each k is looked up in a table in shared memory.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Condition, Number, Value, compare, select
from aotc.chips import H100, KIB
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.family import FewTiles
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.operand import Layout, Operand, count_of
from aotc.kernels.matmul.implicit_gemm.output import OutputOfLoops
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, likely_count
from aotc.kernels.matmul.implicit_gemm.split_k import (
    clocks_of_parts,
    few_tiles_of,
    likely_tiles,
    parts_of,
    table_length,
)
from aotc.kernels.matmul.mma_sync.copies import TileCopy
from aotc.kernels.matmul.mma_sync.family import are_types_known, is_tile_whole
from aotc.kernels.matmul.mma_sync.kernel import Kernel
from aotc.kernels.matmul.mma_sync.launch import TiledLaunch
from aotc.kernels.matmul.mma_sync.store import (
    Output,
    load_vector,
)
from aotc.kernels.matmul.mma_sync.tiles import (
    CHUNK_BYTES,
    Coordinates,
    OperandTile,
    ProblemShape,
    Variant,
)
from aotc.kernels.matmul.mma_sync.tiles import shared_bytes as bytes_of_tiles
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    Matrix,
    Problem,
)
from aotc.kernels.matmul.split_k_reduction import SplitKReduction, partial_of
from aotc.kernels.tensor_core import LEAST_ASYNC_BYTES, copy_async

_MOST_SHARED_BYTES = 160 * KIB
_FEW_STEPS = 1


def _as_tiles(problem: ImplicitGemm, variant: Variant) -> ImplicitGemm:
    """The problem with tiles as they are in shared memory. Operands that are copied element by
    element become K-major, for which `ldmatrix` is fast, and consecutive threads read adjacent
    elements."""

    def transposed_as(matrix: Matrix, transposed: bool) -> Matrix:
        if _is_contiguous(matrix, variant) or matrix.transposed == transposed:
            return matrix
        return replace(matrix, transposed=transposed, sizes=matrix.sizes[::-1])

    return replace(problem, a=transposed_as(problem.a, False), b=transposed_as(problem.b, True))


def _is_contiguous(matrix: Matrix, variant: Variant) -> bool:
    """Whether vectors of the operand are copied, and not its elements. If the other operand's are
    not, they are chunks."""
    is_async = variant.copy_bytes >= LEAST_ASYNC_BYTES
    return matrix.alignment >= (variant.copy_bytes if is_async else CHUNK_BYTES)


def _copy_bytes(problem: ImplicitGemm) -> int:
    """The bytes of asynchronous copies that both operands allow; 1 if they allow none."""
    aligned = min(problem.a.alignment, problem.b.alignment)
    return next((bytes_ for bytes_ in _COPIES if bytes_ <= aligned), 1)


# The sizes of asynchronous copies.
_COPIES = (CHUNK_BYTES, CHUNK_BYTES // 2)
# An approximate cost model of a multiprocessor: 16-bit multiply-adds per clock, elements per clock
# that are fetched one by one and in chunks, the clocks until the first tile has arrived, and the
# latency of a step.
_MULTIPLY_ADDS = 1024
_ELEMENTS, _CHUNKED = 16, 64
_START_CLOCKS = 3000
_STEP_CLOCKS = 500
_MOST_TOGETHER = 4
# Narrow tiles copy more than they multiply. A tile of theirs takes this many clocks for each row,
# and more for many rows, to find where its vectors are; and a step, to wait for all warps.
_NARROW = 32
_ROW_CLOCKS, _ROWS = 6, 64
_NARROW_STEP_CLOCKS = 50


def _first_table(problem: Problem, variant: Variant) -> int:
    """The offset of the first table in shared memory, a multiple of 16 bytes. It is behind the
    kernel's tiles and staging buffer, also for the partial accumulators of split-K."""
    most = max(bytes_of_tiles(problem, variant), bytes_of_tiles(partial_of(problem), variant))
    return -(-most // CHUNK_BYTES) * CHUNK_BYTES


class _ContractionLaunch(TiledLaunch):
    """The launch for operands that are not matrices in memory."""

    def __init__(
        self, b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
    ) -> None:
        problem = _as_tiles(problem, variant)
        self.operands = [Operand(b, problem, arguments, name, for_gpu=True) for name in "ab"]
        self.c = Operand(b, problem, arguments, "c", for_gpu=True)
        roles = problem.rows, problem.columns, problem.k_loops, problem.batch
        shape = ProblemShape(*(count_of(b, arguments, loops) for loops in roles))
        bytes_ = IMPLICIT_MMA_SYNC.shared_bytes(problem, variant)
        super().__init__(b, problem, variant, shape, bytes_)
        self.first_table, self.offset_type = _first_table(problem, variant), problem.offset_type
        self.epilogue = arguments.epilogue

    def copies(self, kernel: Kernel) -> list[TileCopy]:
        at, shape = kernel.coordinates, kernel.shape
        offsets = self._offsets_along_k(kernel)
        a, b = (
            _Copy(self.b, tiles, ring, operand, along_k, self.variant)
            for tiles, ring, operand, along_k in zip(
                kernel.tiles, kernel.rings, self.operands, offsets, strict=True
            )
        )
        return [
            a.partition(at, self.variant, a.operand.m, at.row, shape.m),
            b.partition(at, self.variant, b.operand.n, at.column, shape.n),
        ]

    def _offsets_along_k(self, kernel: Kernel) -> list[_OffsetsAlongK]:
        """The offsets along K of each operand. If K has no constant stride in an operand, they are
        in a table, which is filled here."""
        b, start = self.b, self.first_table
        length = table_length(self.problem, self.variant)
        made = []
        for operand in self.operands:
            offsets = _OffsetsAlongK(b, operand.k, self.shape.k, kernel.first_k, kernel.shape.k)
            if len(operand.k.modes) > 1:
                type_ = self.offset_type
                table = b.shared_buffer(kernel.memory, start, [length], type_)
                offsets.fill(table, length, kernel.coordinates.thread, self.variant.threads)
                start += length * table.element_bytes
            made.append(offsets)
        if start > self.first_table:
            b.barrier()
        return made

    def output(self, coordinates: Coordinates) -> Output:
        return OutputOfLoops(self.b, self.problem, self.c, coordinates.batch, self.epilogue)

    def reduce(self, reduction: SplitKReduction) -> None:
        def store(batch: Number, row: Number, column: Number, total: Value) -> None:
            OutputOfLoops(self.b, self.problem, self.c, batch, self.epilogue).store(
                [total], row, column
            )

        reduction.reduce(store)


class _OffsetsAlongK:
    """An operand's offsets along K. The block's part of K is from `first` to `end`. After `fill`,
    they are looked up in the table of this part."""

    def __init__(
        self, b: Builder, layout: Layout, extent: Number, first: Number, end: Number
    ) -> None:
        self.b, self.layout = b, layout
        self.extent, self.first, self.end = extent, first, end
        self.table: Buffer | None = None

    def fill(self, table: Buffer, length: int, thread: Number, threads: int) -> None:
        b, self.table = self.b, table
        with b.loop(thread, length, threads) as loop:
            offset = self.layout.offset(_in_bounds(self.first + loop.index, self.extent))
            b.store(b.signed_cast(offset, table.element), table, [loop.index])

    def get(self, k: Number, count: int) -> list[Number]:
        """The offsets of `count` indices from `k` on, which is a multiple of `count`."""
        b, table = self.b, self.table
        if table is None:
            return [
                self.layout.offset(_in_bounds(k + number, self.extent)) for number in range(count)
            ]
        at, width = k - self.first, min(count, CHUNK_BYTES // table.element_bytes)
        return [
            b.signed_cast(entry, "index")
            for number in range(0, count, width)
            for entry in load_vector(b, table, [at + number], width)
        ]


def _in_bounds(number: Number, extent: Number) -> Number:
    """The number, or 0 if it is out of bounds."""
    return select(compare("slt", number, extent), number, 0)


class _Vector(Struct, frozen=True):
    """A copy vector: its row and column in the tile, and its column in shared memory. `starts`: the
    offsets of its elements, without those along K; only one if the elements are contiguous or along
    K. `is_there`: whether it is in bounds along M or N."""

    row: Number
    column: Number
    shared_column: Number
    starts: tuple[Number, ...]
    is_there: Condition


class _Copy(TileCopy):
    """Copies the tiles of an operand that is not a matrix in memory."""

    def __init__(
        self,
        b: Builder,
        tiles: OperandTile,
        ring: Buffer,
        operand: Operand,
        along_k: _OffsetsAlongK,
        variant: Variant,
    ) -> None:
        super().__init__(b, tiles, ring)
        self.operand, self.source, self.along_k = operand, operand.buffer, along_k
        # Adjacent elements of a tile's row are adjacent in memory.
        self.is_contiguous = _is_contiguous(tiles.matrix, variant)

    def partition(
        self,
        at: Coordinates,
        variant: Variant,
        mode: Layout,
        start: Number,
        extent: Number,
    ) -> _Copy:
        """Partitions tiles among threads, so that consecutive threads read adjacent elements: along
        M or N, if elements are loaded one by one. `mode` is the operand's layout along M or N. The
        tile begins at `start` along it, which has `extent` elements. Returns this copy, with the
        thread's vectors."""
        self.batch, self.mode, self.start, self.extent = at.batch, mode, start, extent
        tiles, threads, vectors = self.tiles, variant.threads, []
        across = tiles.copies_per_row
        for number in range(tiles.rows * across // threads):
            if not self.is_contiguous and tiles.is_k_major:
                row, chunk = _down_rows(at.thread, threads, tiles.rows, number)
            else:
                row = at.thread // across + number * (threads // across)
                chunk = at.thread % across
            vectors.append(self._vector(row, chunk * tiles.copy_width))
        self.vectors = vectors
        # Tiles past the last one are not multiplied, so their contents do not matter.
        k = self.along_k.extent
        self.has_whole_tiles = isinstance(k, int) and k % variant.k == 0
        return self

    def _vector(self, row: Number, column: Number) -> _Vector:
        tiles, extent = self.tiles, self.extent
        begin = self.operand.batch.offset(self.batch)
        is_whole = isinstance(extent, int) and extent % tiles.outer == 0
        first = self.start + (row if tiles.is_k_major else column)
        is_single = tiles.is_k_major or self.is_contiguous
        starts = []
        for number in range(1 if is_single else tiles.copy_width):
            own = first + number
            if not is_whole:
                own = _in_bounds(own, extent)
            starts.append(begin + self.mode.offset(own))
        is_there = True if is_whole else compare("slt", first, extent)
        return _Vector(row, column, tiles.swizzled(row, column), tuple(starts), is_there)

    def begin(self, k: Number, stage: Number) -> list[Value]:
        b, width = self.b, self.tiles.copy_width
        tokens = []
        for vector in self.vectors:
            own_k = self._k(vector, k)
            valid = select(compare("slt", own_k, self.along_k.end), width, 0)
            valid = select(vector.is_there, valid, 0)
            [offset] = self.along_k.get(own_k, 1)
            at, to = vector.starts[0] + offset, [stage, vector.row, vector.shared_column]
            tokens.append(copy_async(b, self.source, [at], self.ring, to, width, valid))
        return tokens

    def load(self, k: Number) -> list[Value]:
        """See `TileCopy`. Elements past the end of K are 0; those past the end of M or N are those
        of the first row."""
        return [self._load(vector, self._k(vector, k)) for vector in self.vectors]

    def _load(self, vector: _Vector, k: Number) -> Value:
        b, width, is_k_major = self.b, self.tiles.copy_width, self.tiles.is_k_major
        offsets = self.along_k.get(k, width if is_k_major and not self.is_contiguous else 1)
        if self.is_contiguous:
            at = vector.starts[0] + offsets[0]
            return self._or_zero(b.load_vector(self.source, [at], width, CHUNK_BYTES), k)
        if is_k_major:
            places = [vector.starts[0] + offset for offset in offsets]
        else:
            places = [start + offsets[0] for start in vector.starts]
        values = [
            self._or_zero(b.load(self.source, [at]), k + number if is_k_major else k)
            for number, at in enumerate(places)
        ]
        return b.from_elements(values, f"vector<{width}x{self.source.element}>")

    def _or_zero(self, value: Value, k: Number) -> Value:
        """The value, or zeros if k is past the last one."""
        if self.has_whole_tiles:
            return value
        return self.b.select(compare("slt", k, self.along_k.end), value, self.b.zero(value.type))

    def _k(self, vector: _Vector, k: Number) -> Number:
        return k + (vector.column if self.tiles.is_k_major else vector.row)


def _down_rows(thread: Number, threads: int, rows: int, number: int) -> tuple[Number, Number]:
    """The row and the chunk of a thread's vector `number`. Consecutive threads have consecutive
    rows."""
    if threads % rows == 0:
        chunk = thread // rows + number * (threads // rows)
        return thread % rows, chunk
    times = rows // threads
    return thread + number % times * threads, number // times


class ImplicitMmaSync(ImplicitGemmFamily):
    """See the module's docstring."""

    name = "implicit GEMM by mma.sync"
    mnemonic = "mma_sync"
    target = ANY_GPU
    variant_type = Variant
    kernel_type = _ContractionLaunch

    def can_implement(self, problem: ImplicitGemm, variant: Variant) -> bool:
        if problem.k is None:
            return False
        problem = _as_tiles(problem, variant)
        assert problem.k is not None
        if not are_types_known(problem) or ELEMENT_BYTES[problem.a.element] == 8:
            return False
        if variant.copy_bytes > _copy_bytes(problem):
            return False
        steps = -(-problem.k // variant.k)
        return (
            is_tile_whole(problem, variant)
            and steps >= variant.split_k * _FEW_STEPS
            and self.shared_bytes(problem, variant) <= _MOST_SHARED_BYTES
        )

    def variants(self, problem: ImplicitGemm) -> tuple[Variant, ...]:
        size = ELEMENT_BYTES[problem.a.element]
        k, deep = 64 // size, 128 // size
        copy_bytes = _copy_bytes(problem)
        stages = 2 if copy_bytes == 1 else 4
        tiles = (
            *((128, 128, k, 2, 4), (128, 64, k, 2, 2), (64, 128, k, 2, 2)),
            *((128, 64, deep, 2, 2), (64, 128, deep, 2, 4)),
            *((64, 64, deep, 2, 2), (64, 64, k, 2, 2), (64, 32, deep, 2, 2)),
            *((32, 64, deep, 1, 4), (32, 32, deep, 2, 2)),
        )
        found = [
            Variant(*tile, stages, copy_bytes, split_k=split_k)
            for tile in tiles
            for split_k in parts_of(problem, 16)
        ]
        if copy_bytes > 1 and likely_count(problem.columns) <= _NARROW:
            # Few stages leave room for more blocks, which wait for different copies.
            found += [
                Variant(*tile, copy_bytes=copy_bytes)
                for tile in ((128, 32, k, 4, 1, 3), (128, 32, deep, 4, 1, 2), (64, 32, k, 2, 2, 3))
            ]
        return tuple(variant for variant in found if self.can_implement(problem, variant))

    def few_tiles(self, problem: ImplicitGemm) -> FewTiles | None:
        """See `MatmulFamily`."""
        m = 32 if problem.m is not None and problem.m <= 32 else 64
        for variant in self.variants(problem):
            if (variant.m, variant.n, variant.split_k) == (m, 64, 1):
                return few_tiles_of(problem, variant)
        return None

    def clocks_on_h100(self, problem: ImplicitGemm, variant: Variant) -> float:
        tiles, k_extent = likely_tiles(problem, variant)
        scale = ELEMENT_BYTES[problem.a.element] / 2
        fetched = sum(
            tile / (_CHUNKED if _is_contiguous(matrix, variant) else _ELEMENTS)
            for tile, matrix in ((variant.m, problem.a), (variant.n, problem.b))
        )
        busy = k_extent * scale * max(variant.m * variant.n / _MULTIPLY_ADDS, fetched)
        steps = -(-k_extent // variant.k)
        if likely_count(problem.columns) <= _NARROW and variant.copy_bytes > 1:
            busy = busy / k_extent * steps * variant.k
            busy += variant.m * (_ROW_CLOCKS + variant.m / _ROWS) + steps * _NARROW_STEP_CLOCKS
        alone = steps * _STEP_CLOCKS
        each = -(-tiles // H100.multiprocessors)
        total = max(busy * each, alone * -(-each // _MOST_TOGETHER)) + _START_CLOCKS
        return total + clocks_of_parts(problem, variant.split_k)

    def shared_bytes(self, problem: ImplicitGemm, variant: Variant) -> int:
        problem = _as_tiles(problem, variant)
        tables = 2 * table_length(problem, variant) * problem.offset_bytes
        return _first_table(problem, variant) + tables


IMPLICIT_MMA_SYNC = ImplicitMmaSync()
