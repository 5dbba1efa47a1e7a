"""Q, K and V on their way from memory to shared memory, by asynchronous copies of 16 bytes.

In shared memory rows are of an odd number of 16 bytes: any eight rows of one column are in
different banks, for ldmatrix. Of the columns behind the last one, which fill up 16, elements are 0.
Matrices that are not at multiples of 16 bytes are loaded and stored element by element.
"""

from __future__ import annotations

from aotc.builder import Buffer, Builder
from aotc.kernels.attention.mma_sync.tiles import STAGES, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.kernels.tensor_core import copy_async
from aotc.numbers import Condition, Number, Value, compare, select

COLUMNS = 16  # that are added at once
CHUNK = 8  # elements of 16 bytes
_ALIGNMENT = 16


def operands_of(problem: Attention, variant: Variant) -> tuple[Operand, Operand, Operand]:
    """Q, K and V."""
    head_dim, heads, threads = problem.head_dim or 0, problem.heads, variant.threads
    ring = (STAGES, variant.keys, head_dim)
    return (
        Operand(problem.q, (1, variant.m, head_dim), heads[0], threads),
        Operand(problem.k, ring, heads[1], threads),
        Operand(problem.v, ring, heads[2], threads),
    )


class Operand:
    """Q, K or V: tiles of some rows, all columns of a head, in a ring of `stages` (`ring`, from
    `begin` on). All threads of a block copy the same chunks of 16 bytes, in rows some apart."""

    def __init__(
        self, matrix: Matrix, shape: tuple[int, int, int], heads: int, threads: int
    ) -> None:
        """`shape`: of the ring, without what fills rows up."""
        self.matrix, self.heads, self.threads = matrix, heads, threads
        self.stages, self.rows, self.columns = shape
        self.is_async = matrix.alignment % _ALIGNMENT == 0
        chunks = self.columns // CHUNK
        # So many threads copy neighbours of a row at once, as often as `across` says.
        self.width = min(chunks & -chunks, threads)
        self.across = chunks // self.width
        self.rows_at_once = threads // self.width
        self.padded = -(-self.columns // COLUMNS) * COLUMNS
        self.pitch = self.padded + CHUNK
        self.bytes = self.stages * self.rows * self.pitch * ELEMENT_BYTES[matrix.element]

    @property
    def is_shared_evenly(self) -> bool:
        """Whether threads copy as many rows each, or some of them one."""
        return self.rows % self.rows_at_once == 0 or self.rows < self.rows_at_once

    def begin(
        self, b: Builder, source: Value, shared: Value, offset: int, thread: Number, batch: Number
    ) -> None:
        """`source`: the matrix. `offset`: of the ring in shared memory, in bytes. `batch`: the
        tile's, which counts heads."""
        self.b = b
        shape = (self.stages, self.rows, self.pitch)
        self.ring = b.shared_buffer(shared, offset, shape, self.matrix.element)
        own_row, own_column = thread // self.width, thread % self.width * CHUNK
        self.row, self.column = b.index(own_row), b.index(own_column)
        self._partition(source, batch)
        if self.padded > self.columns:
            self._fill_up(thread)

    def _partition(self, source: Value, batch: Number) -> None:
        """What this thread copies of the first tile, as a vector: one address to keep in
        registers."""
        b, column = self.b, self.column
        if self.heads:
            column = column + b.index(batch % self.heads * self.columns)
            batch = batch // self.heads
        base, offset, _, (batch_stride, self.stride, _) = b.metadata(source)
        first = offset + b.index(batch) * batch_stride + column
        below = self.row * self.stride
        # To the first row, which is there.
        own, self.back = first + below, 0 - below
        type_ = f"memref<?x{self.matrix.element}, strided<[1], offset: ?>>"
        self.own = Buffer(b.reinterpret_cast(base, own, [self.stride], [1], type_))

    def _fill_up(self, thread: Number) -> None:
        b = self.b
        zeros, own = b.zero(f"vector<{CHUNK}x{self.matrix.element}>"), b.index(thread)
        for stage in range(self.stages):
            with b.loop(own, self.rows, self.threads) as loop:
                b.store_vector(zeros, self.ring, [stage, loop.index, self.columns])

    def copy(self, row: Number, stage: Number, count: Number | None = None) -> None:
        """Begins to copy the tile that begins at `row` (an i32) to a stage of the ring. `count`:
        how many rows there are, where the tile may end behind the last one; what is not there is
        0."""
        b = self.b
        first = b.index(row) * self.stride
        left = None if count is None else b.index(count - row) - self.row
        if self.rows >= self.rows_at_once:
            for down in range(0, self.rows, self.rows_at_once):
                self._copy_row(first, down, stage, left)
            return
        with b.where(compare("ult", self.row, self.rows)):
            self._copy_row(first, 0, stage, left)

    def _copy_row(self, first: Number, down: int, stage: Number, left: Number | None) -> None:
        """What this thread copies of a row, `down` below its first one, of which there are `left`
        with those below. `first`: how far the tile is from the first one, in elements."""
        row, at = self.row + down, first + self.stride * down
        is_valid = True if left is None else compare("sgt", left, down)
        # The address is one of the matrix, where nothing is read, too.
        at = select(is_valid, at, self.back)
        for chunk in range(0, self.columns, self.width * CHUNK):
            source, to = at + chunk, [stage, row, self.column + chunk]
            if self.is_async:
                valid = select(is_valid, CHUNK, 0)
                copy_async(self.b, self.own, [source], self.ring, to, CHUNK, valid)
            else:
                self._load_chunk(source, to, is_valid)

    def _load_chunk(self, at: Number, to: list[Number], is_valid: Condition) -> None:
        b = self.b
        zero = b.zero(self.matrix.element)
        values = [b.select(is_valid, b.load(self.own, [at + i]), zero) for i in range(CHUNK)]
        b.store_elements(values, self.ring, to)
