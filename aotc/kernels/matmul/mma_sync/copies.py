"""Copies of tiles of A and B from global to shared memory, by cp.async or by registers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import (
    Number,
    Value,
    compare,
    minimum,
    select,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.matmul.mma_sync.tiles import OperandTile, Variant
from aotc.kernels.tensor_core import commit_group, copy_async, wait_group


class TileCopy(ABC):
    """Copies tiles of A or B to their ring in shared memory. A thread copies the same vectors of
    each tile: `vectors`. The fields `row` and `shared_column` of a vector are its indices in the
    ring's tile."""

    vectors: Sequence[Any]

    def __init__(self, b: Builder, tiles: OperandTile, ring: Buffer) -> None:
        self.b, self.tiles, self.ring = b, tiles, ring

    @abstractmethod
    def begin(self, k: Number, stage: Number) -> list[Value]:
        """Starts to copy the tile that begins at `k`, which may be past the end of K. Returns the
        tokens of the copies."""

    @abstractmethod
    def load(self, k: Number) -> list[Value]:
        """Loads this thread's vectors of the tile that begins at `k` to registers. K is not
        empty."""

    def store(self, loaded: Sequence[Value], stage: Number) -> None:
        alignment = self.tiles.copy_width * self.tiles.element_bytes
        for vector, value in zip(self.vectors, loaded, strict=True):
            at = [stage, vector.row, vector.shared_column]
            self.b.store_vector(value, self.ring, at, alignment)


class Pipeline:
    """The copies of A's and B's tiles through the stages of their rings. If they are not
    asynchronous, a tile stays in registers while the previous tile is multiplied."""

    def __init__(self, b: Builder, copies: Sequence[TileCopy], variant: Variant) -> None:
        self.b, self.copies, self.variant = b, copies, variant
        self.is_async = copies[0].tiles.is_async
        self.loaded: list[list[Value]] = []

    def fill(self, first_k: Number, end_k: Number) -> None:
        """Starts to fetch the first tiles, to all stages but the last one."""
        for stage in range(self.variant.stages - 1):
            k = first_k + stage * self.variant.k
            if self.is_async:
                self.group = self._begin(k, stage)
                continue
            with self.b.where(compare("slt", k, end_k)):
                for copy in self.copies:
                    copy.store(copy.load(k), stage)

    def begin_fetch(self, k: Number, stage: Number) -> None:
        """Starts to fetch the tiles that begin at `k`."""
        if self.is_async:
            self._begin(k, stage)
        else:
            self.loaded = [copy.load(k) for copy in self.copies]

    def end_fetch(self, stage: Number) -> None:
        """Stores the tiles in registers to shared memory. (For asynchronous copies, see `wait`.)"""
        for copy, values in zip(self.copies, self.loaded, strict=False):
            copy.store(values, stage)

    def wait(self) -> None:
        """Waits until the oldest tiles in flight have arrived, for all threads."""
        if self.is_async:
            wait_group(self.b, self.group, self.variant.stages - 2)
        self.b.barrier()

    def drain(self) -> None:
        """Waits for the copies that were started past the last tile."""
        if self.is_async:
            wait_group(self.b, self.group, 0)

    def _begin(self, k: Number, stage: Number) -> Value:
        tokens = [token for copy in self.copies for token in copy.begin(k, stage)]
        return commit_group(self.b, tokens)


class _Vector(Struct, frozen=True):
    """A copy vector of a thread. `row` and `column`: its first element in the tile.
    `shared_column`: its column in shared memory. `outer`: its index along M or N in the matrix,
    clamped to the last row, as results past it are not stored. If K is contiguous, `bound` is the
    first column of the matrix that is out of bounds; otherwise it is the number of the vector's
    elements that are in bounds."""

    row: Number
    column: Number
    shared_column: Number
    bound: Number
    outer: Number


class MatrixCopy(TileCopy):
    """Copies the tiles of the matrix `source`. The block's part of K ends at `end_k`."""

    def __init__(
        self, b: Builder, tiles: OperandTile, ring: Buffer, source: Buffer, end_k: Number
    ) -> None:
        super().__init__(b, tiles, ring)
        self.source, self.k = source, end_k

    def partition(self, thread: Number, threads: int, start: Number, extent: Number) -> MatrixCopy:
        """Partitions tiles among threads, so that consecutive threads copy consecutive vectors. The
        tile begins at `start` along M or N, which has `extent` elements. Returns this copy, with
        the thread's vectors."""
        tiles, self.extent = self.tiles, extent
        across = tiles.copies_per_row
        first_row = thread // across
        column = thread % across * tiles.copy_width
        is_whole = isinstance(extent, int) and extent % tiles.outer == 0
        self.vectors = []
        for number in range(tiles.rows * across // threads):
            row = first_row + number * (threads // across)
            outer = start + (row if tiles.is_k_major else column)
            bound: Number = self.k if tiles.is_k_major else tiles.copy_width
            if not is_whole and tiles.is_k_major:
                outer = minimum(outer, extent - 1)
            elif not is_whole:
                bound = _clamp(extent - outer, tiles.copy_width)
            self.vectors.append(_Vector(row, column, tiles.swizzled(row, column), bound, outer))
        return self

    def begin(self, k: Number, stage: Number) -> list[Value]:
        b, width = self.b, self.tiles.copy_width
        tokens = []
        for vector in self.vectors:
            valid = self._valid(vector, k)
            at, to = self._at(vector, k), [stage, vector.row, vector.shared_column]
            tokens.append(copy_async(b, self.source, at, self.ring, to, width, valid))
        return tokens

    def load(self, k: Number) -> list[Value]:
        """See `TileCopy`. Elements are loaded one by one, with addresses clamped to the matrix."""
        b, tiles, element = self.b, self.tiles, self.tiles.matrix.element
        rows, columns = (self.extent, self.k) if tiles.is_k_major else (self.k, self.extent)
        zero = b.zero(element)
        loaded = []
        for vector in self.vectors:
            valid = self._valid(vector, k)
            row, column = self._at(vector, k)
            row = minimum(row, rows - 1)
            values = []
            for number in range(tiles.copy_width):
                value = b.load(self.source, [row, minimum(column + number, columns - 1)])
                values.append(b.select(compare("slt", number, valid), value, zero))
            loaded.append(b.from_elements(values, f"vector<{len(values)}x{element}>"))
        return loaded

    def _at(self, vector: _Vector, k: Number) -> list[Number]:
        if self.tiles.is_k_major:
            return [vector.outer, k + vector.column]
        return [k + vector.row, vector.outer]

    def _valid(self, vector: _Vector, k: Number) -> Number:
        """The number of the vector's elements that are in bounds."""
        tiles, end = self.tiles, self.k
        if not tiles.is_k_major:
            # If K is a multiple of the tile, either all rows of a tile are in bounds, or none.
            is_even = isinstance(end, int) and end % tiles.k == 0
            row = k if is_even else k + vector.row
            return select(compare("slt", row, end), vector.bound, 0)
        column = k + vector.column
        if tiles.has_whole_copies or (isinstance(end, int) and end % tiles.copy_width == 0):
            return select(compare("slt", column, vector.bound), tiles.copy_width, 0)
        return _clamp(vector.bound - column, tiles.copy_width)


def _clamp(number: Number, most: int) -> Number:
    """A number that may be negative, clamped to 0 to `most`."""
    return signed_maximum(signed_minimum(number, most), 0)
