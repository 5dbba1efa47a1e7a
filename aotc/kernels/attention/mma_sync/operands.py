"""Copies of Q, K and V from global to shared memory, by asynchronous copies of 16 bytes, or of 8 if
the rows of a head are no multiple of 16.

In shared memory, the pitch is an odd number of 16 bytes, so that any eight rows of one column are
in different banks for ldmatrix. Rows are padded to a multiple of 16 columns with zeros. Matrices
that are not aligned to their copies are loaded and stored element by element.
"""

from __future__ import annotations

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Condition, Number, Value, compare, select
from aotc.kernels.attention.mma_sync.tiles import STAGES, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.kernels.tensor_core import copy_async

COLUMNS = 16  # the K extent of one mma.sync
CHUNK = 8  # elements of 16 bytes
HALF_CHUNK = CHUNK // 2


def chunk_of(columns: int) -> int:
    """The elements of a copy, of which a row has a multiple."""
    return HALF_CHUNK if columns % CHUNK else CHUNK


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
    """Q, K or V: tiles of some rows and all columns of a head, in a ring of `stages` (`ring`, which
    `begin` sets). A thread copies the same chunks in each of its rows."""

    def __init__(
        self, matrix: Matrix, shape: tuple[int, int, int], heads: int, threads: int
    ) -> None:
        """`shape`: the shape of the ring, without the padding of rows."""
        self.matrix, self.heads, self.threads = matrix, heads, threads
        self.stages, self.rows, self.columns = shape
        self.chunk = chunk_of(self.columns)
        self.is_async = matrix.alignment % (self.chunk * ELEMENT_BYTES[matrix.element]) == 0
        chunks = self.columns // self.chunk
        # `width` threads copy adjacent chunks of a row at once, `across` times.
        self.width = min(chunks & -chunks, threads)
        self.across = chunks // self.width
        self.rows_at_once = threads // self.width
        self.padded = -(-self.columns // COLUMNS) * COLUMNS
        self.pitch = self.padded + CHUNK
        self.bytes = self.stages * self.rows * self.pitch * ELEMENT_BYTES[matrix.element]

    @property
    def is_shared_evenly(self) -> bool:
        """Whether all threads copy the same number of rows, or at most one row each."""
        return self.rows % self.rows_at_once == 0 or self.rows < self.rows_at_once

    def begin(
        self, b: Builder, source: Value, shared: Value, offset: int, thread: Number, batch: Number
    ) -> None:
        """Prepares the copies. `source`: the matrix. `offset`: the ring's offset in shared memory,
        in bytes. `batch`: the tile's index in the batch, which includes heads."""
        self.b = b
        shape = (self.stages, self.rows, self.pitch)
        self.ring = b.shared_buffer(shared, offset, shape, self.matrix.element)
        own_row, own_column = thread // self.width, thread % self.width * self.chunk
        self.row, self.column = b.index(own_row), b.index(own_column)
        self._partition(source, batch)
        if self.padded > self.columns:
            self._fill_up(thread)

    def _partition(self, source: Value, batch: Number) -> None:
        """Sets `own`, a view that begins at this thread's first element of the first tile, so that
        only one address is in registers."""
        b, column = self.b, self.column
        if self.heads:
            column = column + b.index(batch % self.heads * self.columns)
            batch = batch // self.heads
        base, offset, _, (batch_stride, self.stride, _) = b.metadata(source)
        first = offset + b.index(batch) * batch_stride + column
        below = self.row * self.stride
        # `back` is the offset from `own` to the first row, which is always in bounds.
        own, self.back = first + below, 0 - below
        type_ = f"memref<?x{self.matrix.element}, strided<[1], offset: ?>>"
        self.own = Buffer(b.reinterpret_cast(base, own, [self.stride], [1], type_))

    def _fill_up(self, thread: Number) -> None:
        b = self.b
        zeros, own = b.zero(f"vector<{self.chunk}x{self.matrix.element}>"), b.index(thread)
        for stage in range(self.stages):
            with b.loop(own, self.rows, self.threads) as loop:
                for column in range(self.columns, self.padded, self.chunk):
                    b.store_vector(zeros, self.ring, [stage, loop.index, column])

    def copy(self, row: Number, stage: Number, count: Number | None = None) -> None:
        """Starts to copy the tile that begins at `row` (an i32) to a stage of the ring. `count`:
        the number of rows of the matrix, if the tile may end past the last one. Rows past it are
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
        """Copies this thread's part of the row `down` rows below its first one. `left`: the number
        of rows from its first row to the end of the matrix. `first`: the tile's distance from the
        first tile, in elements."""
        row, at = self.row + down, first + self.stride * down
        is_valid = True if left is None else compare("sgt", left, down)
        # The address is in bounds even if nothing is read.
        at = select(is_valid, at, self.back)
        for chunk in range(0, self.columns, self.width * self.chunk):
            source, to = at + chunk, [stage, row, self.column + chunk]
            if self.is_async:
                valid = select(is_valid, self.chunk, 0)
                copy_async(self.b, self.own, [source], self.ring, to, self.chunk, valid)
            else:
                self._load_chunk(source, to, is_valid)

    def _load_chunk(self, at: Number, to: list[Number], is_valid: Condition) -> None:
        b = self.b
        zero = b.zero(self.matrix.element)
        values = [b.select(is_valid, b.load(self.own, [at + i]), zero) for i in range(self.chunk)]
        b.store_elements(values, self.ring, to)
