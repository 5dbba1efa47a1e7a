"""The mainloop of a SIMT kernel's block: copies tiles of A and B to shared memory, multiplies them.

A copy vector is what a thread copies in one access. Fragments are the elements that a thread reads
of a column of A's tile and of a row of B's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare,
    minimum,
    next_in_ring,
    select,
    unravel,
)
from aotc.chips import WARP
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.scalar import accumulator_type_of
from aotc.kernels.matmul.simt.tiles import OperandTile, Variant, copy_counts, divides_digits
from aotc.kernels.tensor_core import commit_group, copy_async, wait_group

# Accumulators of a thread that leave few registers.
_MANY_ACCUMULATORS = 128


class CopyVector(Struct, frozen=True):
    """The elements that a thread copies in one access to the tile of `operand` (0: A, 1: B). They
    begin at `k` along K and at `along` along M or N, relative to the tile.

    `valid`: the number of elements inside the matrix along M or N, `is_valid`: whether it is not 0;
    neither regards the end of K. For a K-major operand that is copied by cp.async, `remaining`
    (i32) is the number of the matrix's elements along M or N from the thread's first vector on, and
    this vector is `distance` elements after that one: one register serves all vectors.
    """

    operand: int
    k: Number
    along: Number
    valid: Number
    is_valid: Condition
    remaining: Scalar | None = None
    distance: int = 0


class Mainloop(ABC):
    """The code of a block between the launch and the store. Subclasses set the annotated attributes
    while they build the block.

    The block's part of K is from `k_begin` to `k_end`; elements from `k_valid` on are not read.
    """

    thread: Number
    k_begin: Number
    k_end: Number
    k_valid: Number
    tiles: list[Buffer]
    vectors: list[CopyVector]

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        operand_tiles: tuple[OperandTile, OperandTile],
        buffers: tuple[Buffer, Buffer],
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.operand_tiles, self.buffers = operand_tiles, buffers
        self.type = accumulator_type_of(problem)
        self.steps = variant.k // variant.sliced_k  # the K extent of a slice of a tile
        # The elements of an access to shared memory.
        self.width = WIDEST_ACCESS // ELEMENT_BYTES[self.type]

    @abstractmethod
    def _source(self, vector: CopyVector, k0: Number) -> list[Number]:
        """The indices in the operand's buffer of the first element of `vector`, for the tile that
        begins at `k0` along K. simt/kernel.py implements it for matrices; implicit_gemm/simt.py
        overrides it with one offset, for which it may look up K in a table."""

    def make_tiles(self, shared: Value) -> list[Buffer]:
        tiles, offset = [], 0
        for operand_tile in self.operand_tiles:
            shape = operand_tile.shape(self.variant, self.type)
            tiles.append(self.b.shared_buffer(shared, offset, shape, self.type))
            offset += prod(shape) * ELEMENT_BYTES[self.type]
        return tiles

    # --- The partition among threads ----------------------------------------------------------

    def copy_vectors(self, operand: int, first: Number, extent: Number) -> Iterator[CopyVector]:
        """A thread's copy vectors of a tile of A or B, which begins at `first` along M or N, of
        `extent`. Consecutive threads have consecutive vectors."""
        operand_tile, variant = self.operand_tiles[operand], self.variant
        width, counts = operand_tile.width, copy_counts(operand_tile, variant)
        run = counts[-1]
        remaining: Scalar | None = None
        for number in range(prod(counts) // variant.threads):
            digits = self._digits(number * variant.threads, counts)
            if operand_tile.is_k_major:
                k, along = (digits[0] * run + digits[2]) * width, digits[1]
            else:
                k, along = digits[0], digits[1] * width
            if operand_tile.is_whole:
                yield CopyVector(operand, k, along, width, True)
                continue
            at = first + along
            is_valid = compare("ult", at, extent)
            if operand_tile.is_k_major and variant.copy_bytes:
                if remaining is None:
                    left = minimum(extent - minimum(at, extent), operand_tile.tile)
                    remaining = self.b.signed_cast(left, "i32")
                distance = number * variant.threads // run % operand_tile.tile
                yield CopyVector(operand, k, along, 1, is_valid, remaining, distance)
                continue
            valid: Number = 1
            if not operand_tile.is_k_major and width > 1:
                valid = minimum(extent - minimum(at, extent), width)
            yield CopyVector(operand, k, along, valid, is_valid)

    def _digits(self, first: int, counts: Sequence[int]) -> list[Number]:
        """The digits, in the mixed radix of `counts`, of the thread's id plus `first`, a multiple
        of the number of threads. `first` adds a constant to each digit, so that the digits of the
        thread's id are computed once for all vectors."""
        if not divides_digits(self.variant.threads, counts):
            return unravel(self.thread + first, *counts[1:])
        digits: list[Number] = []
        number: Number = self.thread
        span = self.variant.threads  # how many different values `number` has
        for count in reversed(counts):
            if span <= count:
                digits.insert(0, number + first % count)
                number, span = 0, 1
            else:
                digits.insert(0, number % count)
                number, span = number // count, span // count
            first //= count
        return digits

    def partition(self) -> None:
        """Sets `rows` and `columns`, the first rows and columns of the thread's groups in the
        block's tile, and `slice`, the index of its slice of each tile of K. The groups of a warp's
        lanes are adjacent, so that they read from all banks."""
        variant, width = self.variant, self.width
        down, across = variant.warp_m // variant.thread_m, variant.warp_n // variant.thread_n
        warp, lane = unravel(self.thread, WARP)
        self.slice: Number = 0
        if variant.sliced_k > 1:
            self.slice, warp = unravel(warp, variant.slice_threads // WARP)
        warp_m, warp_n = unravel(warp, variant.n // variant.warp_n)
        lane_m, lane_n = _lane_coordinate(lane, across)
        first_m = warp_m * variant.warp_m + lane_m * width
        first_n = warp_n * variant.warp_n + lane_n * width
        self.rows = [first_m + width * down * i for i in range(variant.thread_m // width)]
        self.columns = [first_n + width * across * i for i in range(variant.thread_n // width)]

    # --- From global memory to shared memory --------------------------------------------------

    def _copy(self, vectors: Sequence[CopyVector], k0: Number, stage: Number) -> None:
        """Starts asynchronous copies of `vectors` of the tiles that begin at `k0` along K."""
        for vector in vectors:
            valid = self._valid(vector, k0)
            at, to = self._source(vector, k0), [stage, vector.k, vector.along]
            source, tile = self.buffers[vector.operand], self.tiles[vector.operand]
            copy_async(
                self.b, source, at, tile, to, self.operand_tiles[vector.operand].width, valid
            )

    def _is_k_valid(self, vector: CopyVector, k0: Number) -> Condition:
        """Whether the vector begins inside of K, for the tile that begins at `k0`."""
        k = self.problem.k
        is_whole = k is not None and k % self.variant.k == 0
        return compare("ult", k0 if is_whole else k0 + vector.k, self.k_valid)

    def _valid(self, vector: CopyVector, k0: Number) -> Number:
        """The number of elements of the vector inside the matrix, for the tile from `k0` on."""
        is_k_valid = self._is_k_valid(vector, k0)
        if vector.remaining is None:
            return select(is_k_valid, select(vector.is_valid, vector.valid, 0), 0)
        remaining = select(is_k_valid, vector.remaining, 0)
        return select(compare("slt", vector.distance, remaining), vector.valid, 0)

    def _load(self, k0: Number) -> list[list[Value]]:
        """The elements of all vectors of the tiles from `k0` on; 0 outside of the matrices."""
        b, loaded = self.b, []
        for vector in self.vectors:
            operand_tile, buffer = self.operand_tiles[vector.operand], self.buffers[vector.operand]
            element = operand_tile.matrix.element
            at = self._source(vector, k0)
            is_valid = self._is_k_valid(vector, k0) & vector.is_valid
            load = partial(b.load_elements, buffer, at, operand_tile.width)
            zeros = partial(_zeros, b, element, operand_tile.width)
            loaded.append(b.choose(is_valid, [element] * operand_tile.width, load, zeros))
        return loaded

    def _store_tiles(self, loaded: Sequence[Sequence[Value]], stage: Number) -> None:
        """Converts the elements of `_load` to the accumulators' type, and stores them to the
        tiles."""
        b = self.b
        for vector, values in zip(self.vectors, loaded, strict=True):
            operand_tile, tile = self.operand_tiles[vector.operand], self.tiles[vector.operand]
            converted = [b.convert(value, self.type) for value in values]
            step = 1 if operand_tile.is_k_major else min(self.width, operand_tile.width)
            for i in range(0, operand_tile.width, step):
                k, along = (i, 0) if operand_tile.is_k_major else (0, i)
                to = [stage, vector.k + k, vector.along + along]
                b.store_elements(converted[i : i + step], tile, to)

    @property
    def _copies_at_barrier(self) -> int | None:
        """The number of copies that start right after a barrier; None: all. With unknown sizes,
        addresses take registers, which threads with many accumulators do not have."""
        is_large = self.variant.thread_m * self.variant.thread_n >= _MANY_ACCUMULATORS
        return 1 if self.problem.has_known_sizes or not is_large else None

    # --- The mainloop -------------------------------------------------------------------------

    def _fragments(self, stage: Number, k: int) -> list[Value]:
        """This thread's elements of a column of A's tile, then of a row of B's; `k` is relative to
        the thread's slice."""
        at = self.slice * self.steps + k
        return [
            value
            for tile, firsts in zip(self.tiles, (self.rows, self.columns), strict=True)
            for first in firsts
            for value in self.b.load_elements(tile, [stage, at, first], self.width)
        ]

    def accumulate(self) -> list[Value]:
        """The accumulators of a thread's tile, row by row.

        An iteration begins with the last multiply-adds of the previous tile, while the loads of its
        first fragments, issued after a barrier, are in flight. (The assembler moves multiply-adds
        before a barrier, but not to another iteration.) Copies begin one by one, between
        multiply-adds: issued all at once they would stall each other and what follows them.
        """
        b, variant, at_barrier = self.b, self.variant, self._copies_at_barrier
        is_async, ahead = variant.copy_bytes > 0, variant.stages - 1
        if is_async:
            for stage in range(ahead):
                self._copy(self.vectors, self.k_begin + stage * variant.k, stage)
                group = commit_group(b)
            wait_group(b, group, ahead - 1)
        else:
            self._store_tiles(self._load(self.k_begin), 0)
        b.barrier()
        held = variant.thread_m + variant.thread_n
        zeros = [b.zero(self.type)] * (held + variant.thread_m * variant.thread_n)
        carried = [0, ahead, *self._fragments(0, 0), *zeros]
        if is_async:
            self._copy(self.vectors[:at_barrier], self.k_begin + ahead * variant.k, ahead)
        with b.loop(self.k_begin, self.k_end, variant.k, carried) as loop:
            k0, (used, free, *rest) = loop.index, loop.carried
            fragments, last, sums = rest[:held], rest[held : 2 * held], rest[2 * held :]
            loaded: list[list[Value]] = []
            copies: list[CopyVector] = []
            if not is_async:
                loaded = self._load(k0 + variant.k)
            elif at_barrier:
                next_k, copies = k0 + ahead * variant.k, self.vectors[at_barrier:]
            sums = self._multiply(last, sums)
            for k in range(1, self.steps):
                following = self._fragments(used, k)
                if copies:
                    self._copy(copies[k - 1 :: self.steps - 1], next_k, free)
                sums = self._multiply(fragments, sums)
                fragments = following
            next_used = next_in_ring(used, self.variant.stages)
            if is_async:
                wait_group(b, commit_group(b), ahead - 1)
            else:
                self._store_tiles(loaded, next_used)
            # After this, all threads have read this tile, and the next one has arrived.
            b.barrier()
            first = self._fragments(next_used, 0)
            if is_async:
                # After the reads: as the copies may write to memory, the reads stay in this
                # iteration.
                self._copy(self.vectors[:at_barrier], k0 + variant.stages * variant.k, used)
            loop.next([next_used, used, *first, *fragments, *sums])
        done = loop.results[2 + held :]
        return self._multiply(done[:held], done[held:])

    def add_slices(
        self, shared: Value, accumulators: Sequence[Value]
    ) -> Iterator[tuple[Number, Number, list[Value]]]:
        """Adds the accumulators of all slices. Yields the thread's share of the sums, as vectors:
        the row and the column in the block's tile of the first element, and the elements. Each
        slice sums the same number of vectors of the tile, so that all threads store. Shared memory
        has the accumulators of the other slices."""
        b, variant, width = self.b, self.variant, self.width
        slices, threads = variant.sliced_k, variant.slice_threads
        across = variant.thread_n // width
        count = variant.thread_m * across
        vectors = [accumulators[at : at + width] for at in range(0, count * width, width)]
        own = self.thread % threads * width
        sums = b.shared_buffer(shared, 0, (slices - 1, count, threads * width), self.type)
        if variant.copy_bytes:
            # Copies past the end of K write zeros to the tiles.
            wait_group(b, commit_group(b), 0)
        b.barrier()
        share = count // slices
        for number, vector in enumerate(vectors):
            owner = number // share
            with b.where(compare("ne", self.slice, owner)):
                place = select(compare("ugt", self.slice, owner), self.slice - 1, self.slice)
                b.store_elements(vector, sums, [place, number, own])
        b.barrier()
        down = width * (variant.warp_m // variant.thread_m)
        right = width * (variant.warp_n // variant.thread_n)
        for i in range(share):
            number = self.slice * share + i
            total = list(vectors[i])
            for owner in range(1, slices):
                is_own = compare("eq", self.slice, owner)
                mine = vectors[owner * share + i]
                pairs = zip(mine, total, strict=True)
                total = [b.select(is_own, value, other) for value, other in pairs]
            for place in range(slices - 1):
                part = b.load_elements(sums, [place, number, own], width)
                total = [b.add(one, more) for one, more in zip(total, part, strict=True)]
            row, column = unravel(number, across)
            group, in_group = unravel(row, width)
            yield self.rows[0] + group * down + in_group, self.columns[0] + column * right, total

    def _multiply(self, fragments: Sequence[Value], accumulators: Sequence[Value]) -> list[Value]:
        """The accumulators plus the outer product of a column of A and a row of B."""
        thread_m, thread_n = self.variant.thread_m, self.variant.thread_n
        column, row = fragments[:thread_m], fragments[thread_m:]
        places = [(m, n) for m in range(thread_m) for n in range(thread_n)]
        # In serpentine order along the shorter of both: each multiply-add shares an operand with
        # the previous one, whose register is then read once.
        if thread_n > thread_m and self._copies_at_barrier == 1:
            places.sort(key=lambda at: (at[1], at[0] if at[1] % 2 == 0 else -at[0]))
        else:
            places.sort(key=lambda at: (at[0], at[1] if at[0] % 2 == 0 else -at[1]))
        added = list(accumulators)
        for m, n in places:
            at = m * thread_n + n
            added[at] = self.b.multiply_add(column[m], row[n], added[at])
        return added


def _lane_coordinate(lane: Number, across: int) -> list[Number]:
    """A lane's row and column among `across` columns.

    Shared memory serves 16 lanes at once if each two lanes that differ in the lowest bit read the
    same address, or each two that differ in the next bit. The lowest bit therefore belongs to the
    column, so that two adjacent columns read the same element of A, and the next bit to the row.
    """
    orders = {4: ((1, 2, 4), (0, 3)), 8: ((1, 4), (0, 2, 3))}
    if across not in orders:
        return unravel(lane, across)

    def pick(bits: Sequence[int]) -> Number:
        picked: Number = 0
        for number, bit in enumerate(bits):
            picked = picked + lane // (1 << bit) % 2 * (1 << number)
        return picked

    return [pick(bits) for bits in orders[across]]


def _zeros(b: Builder, element: str, count: int) -> list[Value]:
    return [b.zero(element)] * count
