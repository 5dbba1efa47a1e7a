"""What a block of a SIMT kernel does: its tiles of A and B, its products, its part of C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

from msgspec import Struct

from aotc.chips import WARP
from aotc.kernels.indices import Index
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Problem
from aotc.kernels.matmul.scalar import Operands, finished, sum_type
from aotc.kernels.matmul.simt.tiles import WIDEST_ACCESS, Side, Variant, sides
from aotc.kernels.matmul.split_k_reduction import SUMS
from aotc.kernels.writer import Buffer, Writer, converted

# Threads that follow each other take so many elements of a row whose direction is k's: 32 bytes of
# f32 are what memory gives at least, and stores of them, turned, are in different banks.
_RUN = 8
# Of a thread: they leave few registers.
_MANY_SUMS = 128


class Piece(Struct, frozen=True):
    """What a thread brings to a tile at once: from `depth` along k and from `place` along the tile.

    `there`: how many elements, those inside of the matrix; `is_there`: whether there are any (None:
    always). Depth is another matter. Of a turned side, `left` is how far the matrix goes from the
    thread's first piece on, an i32, and `behind` how far behind that this piece is: one register
    tells of all of them.
    """

    depth: Index
    place: Index
    there: Index
    is_there: str | None
    left: str = ""
    behind: int = 0


class Kernel:
    """The body of the kernel, piece by piece; `body` is the whole."""

    def __init__(
        self,
        problem: Problem,
        variant: Variant,
        writer: Writer,
        operands: Operands,
        finish: Finish | None,
        parts: Matrix | None = None,
        splits: Index = 1,
    ) -> None:
        self.problem, self.variant, self.writer = problem, variant, writer
        self.operands, self.finish = operands, finish
        # Where sums go: of parts of k not to C.
        self.c, self.target = problem.c, operands.c
        self.is_partial, self.splits = parts is not None, splits
        if parts is not None:
            self.c, self.target = parts, Buffer(SUMS, parts.type, parts.element)
        self.type = sum_type(problem)
        self.group = WIDEST_ACCESS // ELEMENT_BYTES[self.type]
        self.sides = sides(problem, variant)
        self.buffers = (operands.a, operands.b)
        # The block's part of k.
        self.first_k: Index = 0
        self.last_k: Index = operands.k

    def body(self, tiles_m: Index, tiles_n: Index) -> None:
        w, variant = self.writer, self.variant
        part, tile = w.unravel("%block", w.multiply(tiles_m, tiles_n))
        self._take_part(part)
        tile_m, tile_n = self._tile(tile, tiles_m, tiles_n)
        self.first = (w.multiply(tile_m, variant.m), w.multiply(tile_n, variant.n))
        self.tiles = self._make_tiles()
        extents = (self.operands.m, self.operands.n)
        self.pieces = [
            list(self._places(side, first, extent))
            for side, first, extent in zip(self.sides, self.first, extents, strict=True)
        ]
        self.rows, self.columns = self._part()
        self._store(self._multiply())

    def _take_part(self, part: Index) -> None:
        """The block's batch, and where its part of K begins and ends."""
        w, k = self.writer, self.operands.k
        self.part, self.batch = part, part
        if not self.is_partial:
            return
        self.batch, split = w.unravel(part, self.splits)
        # Each has as many whole tiles, and the last ones may have none.
        each = w.divide_up(w.divide_up(k, self.variant.k), self.splits)
        each = w.multiply(each, self.variant.k)
        self.first_k = w.multiply(split, each)
        self.last_k = w.minimum(w.add(self.first_k, each), k)

    def _tile(self, number: Index, tiles_m: Index, tiles_n: Index) -> tuple[Index, Index]:
        """A block's row and column of tiles: down `group` of them, then to the right."""
        w, group = self.writer, self.variant.group
        band, place = w.unravel(number, w.multiply(tiles_n, group))
        first = w.multiply(band, group)
        rows = w.minimum(w.subtract(tiles_m, first), group)
        column, row = w.unravel(place, rows)
        return w.add(first, row), column

    def _make_tiles(self) -> list[Buffer]:
        made, offset = [], 0
        for side in self.sides:
            shape = side.shape(self.variant, self.type)
            made.append(self.writer.shared(offset, shape, self.type))
            offset += prod(shape) * ELEMENT_BYTES[self.type]
        return made

    # --- Which elements are a thread's --------------------------------------------------------

    def _places(self, side: Side, first: Index, extent: Index) -> Iterator[Piece]:
        """A thread's pieces of a tile; those of threads that follow each other do, too."""
        w, variant, width = self.writer, self.variant, side.width
        if side.is_turned:
            run = min(variant.k, max(_RUN, width)) // width
            counts = [variant.k // width // run, side.tile, run]
        else:
            counts = [variant.k, side.tile // width]
        left_behind = ""
        for number in range(prod(counts) // variant.threads):
            digits = self._digits(number * variant.threads, counts)
            if side.is_turned:
                depth = w.multiply(w.add(w.multiply(digits[0], run), digits[2]), width)
                place = digits[1]
            else:
                depth, place = digits[0], w.multiply(digits[1], width)
            if side.is_whole:
                yield Piece(depth, place, width, None)
                continue
            at = w.add(first, place)
            is_there = w.less(at, extent)
            if side.is_turned and variant.copy_bytes:
                left_behind = left_behind or self._left(at, extent, side.tile)
                behind = number * variant.threads // run % side.tile
                yield Piece(depth, place, 1, is_there, left_behind, behind)
                continue
            left: Index = 1
            if not side.is_turned and width > 1:
                left = w.minimum(w.subtract(extent, w.minimum(at, extent)), width)
            yield Piece(depth, place, left, is_there)

    def _left(self, at: Index, extent: Index, most: int) -> str:
        """How many there are from `at` on, up to `most`: an i32."""
        w = self.writer
        left = w.minimum(w.subtract(extent, w.minimum(at, extent)), most)
        return w.value(f"arith.index_cast {w.index(left)} : index to i32")

    def _digits(self, first: int, counts: Sequence[int]) -> list[Index]:
        """The digits of `%thread` plus `first`, a multiple of the number of threads: what `first`
        gives to each is added to it, so that the thread's own are computed once for all."""
        w, threads = self.writer, self.variant.threads
        digits: list[Index] = []
        number: Index = "%thread"
        # How many different values `number` has: a power of two, as are all counts.
        span = threads
        for count in reversed(counts):
            if span <= count:
                digits.insert(0, w.add(number, first % count))
                number, span = 0, 1
            else:
                digits.insert(0, w.remainder(number, count))
                number, span = w.divide(number, count), span // count
            first //= count
        return digits

    def _part(self) -> tuple[list[Index], list[Index]]:
        """Where a thread's groups of rows and of columns begin in the block's tile: those of a
        warp's lanes are side by side, so that together they read from all banks."""
        w, variant, group = self.writer, self.variant, self.group
        down, across = variant.warp_m // variant.thread_m, variant.warp_n // variant.thread_n
        warp, lane = w.unravel("%thread", WARP)
        warp_m, warp_n = w.unravel(warp, variant.n // variant.warp_n)
        lane_m, lane_n = self._lane(lane, across)
        first_m = w.add(w.multiply(warp_m, variant.warp_m), w.multiply(lane_m, group))
        first_n = w.add(w.multiply(warp_n, variant.warp_n), w.multiply(lane_n, group))
        return (
            [w.add(first_m, group * down * i) for i in range(variant.thread_m // group)],
            [w.add(first_n, group * across * i) for i in range(variant.thread_n // group)],
        )

    def _lane(self, lane: Index, across: int) -> list[Index]:
        """A lane's row and column among `across` columns.

        Shared memory serves 16 lanes at once where each two lanes that differ in the lowest bit
        read the same, or each two that differ in the next one: so the lowest bit is of the column,
        whose neighbours then read the same of A, and the next one of the row.
        """
        w = self.writer
        orders = {4: ((1, 2, 4), (0, 3)), 8: ((1, 4), (0, 2, 3))}
        if across not in orders:
            return w.unravel(lane, across)

        def pick(bits: Sequence[int]) -> Index:
            picked: Index = 0
            for number, bit in enumerate(bits):
                digit = w.remainder(w.divide(lane, 1 << bit), 2)
                picked = w.add(picked, w.multiply(digit, 1 << number))
            return picked

        return [pick(bits) for bits in orders[across]]

    # --- From memory to shared memory ---------------------------------------------------------

    def _source(self, side: int, k0: Index, piece: Piece) -> list[Index]:
        """Where a piece lies in A or B."""
        w = self.writer
        depth, place = w.add(k0, piece.depth), w.add(self.first[side], piece.place)
        at = (place, depth) if self.sides[side].is_turned else (depth, place)
        return self.operands.at(self.batch, *at)

    def _is_deep(self, k0: Index, piece: Piece) -> str:
        """Whether a piece is not behind the last k."""
        w, depth = self.writer, self.problem.k
        is_whole = depth is not None and depth % self.variant.k == 0
        return w.less(k0 if is_whole else w.add(k0, piece.depth), self.operands.k)

    def _copies(self, k0: Index, stage: Index) -> list[Callable[[], str]]:
        """Of the tiles from `k0` on: each begins an asynchronous copy."""

        def copy(number: int, piece: Piece) -> str:
            there = self._there(k0, piece)
            at, place = self._source(number, k0, piece), [stage, piece.depth, piece.place]
            source, to, width = self.buffers[number], self.tiles[number], self.sides[number].width
            return self.writer.copy_async(source, at, to, place, width, there)

        return [
            partial(copy, number, piece)
            for number, pieces in enumerate(self.pieces)
            for piece in pieces
        ]

    def _there(self, k0: Index, piece: Piece) -> Index:
        """How many elements of a piece are inside of the matrix."""
        w, is_deep = self.writer, self._is_deep(k0, piece)
        if not piece.left:
            return w.select(is_deep, w.select(piece.is_there, piece.there, 0), 0)
        left = w.value(f"arith.select {is_deep}, {piece.left}, {w.constant(0, 'i32')} : i32")
        behind = w.constant(piece.behind, "i32")
        return w.select(w.value(f"arith.cmpi slt, {behind}, {left} : i32"), piece.there, 0)

    def _load(self, k0: Index) -> list[list[str]]:
        """The elements of the pieces from `k0` on, as they are in memory."""
        w, loaded = self.writer, []
        for number, side in enumerate(self.sides):
            element, buffer = side.matrix.element, self.buffers[number]
            for piece in self.pieces[number]:
                at = self._source(number, k0, piece)
                loaded.append(
                    w.choose(
                        w.both(self._is_deep(k0, piece), piece.is_there),
                        [element] * side.width,
                        partial(w.load, buffer, at, side.width),
                        partial(_zeros, w, element, side.width),
                    )
                )
        return loaded

    def _put(self, loaded: Sequence[list[str]], stage: Index) -> None:
        """Stores what `_load` has given into tiles."""
        w = self.writer
        rest = iter(loaded)
        for number, side in enumerate(self.sides):
            for piece in self.pieces[number]:
                values = converted(w, next(rest), side.matrix.element, self.type)
                step = 1 if side.is_turned else min(self.group, side.width)
                for i in range(0, side.width, step):
                    down, along = (i, 0) if side.is_turned else (0, i)
                    place = [stage, w.add(piece.depth, down), w.add(piece.place, along)]
                    w.store(self.tiles[number], place, values[i : i + step])

    @property
    def at_once(self) -> int | None:
        """How many copies begin behind a barrier; None: all. Of sizes that are not known, addresses
        take instructions and registers, which large parts of threads do not leave."""
        is_large = self.variant.thread_m * self.variant.thread_n >= _MANY_SUMS
        return 1 if self.problem.has_known_sizes or not is_large else None

    # --- Products -----------------------------------------------------------------------------

    def _read(self, stage: Index, k: int) -> list[str]:
        """This thread's elements of a tile's column of A, then of its row of B."""
        w = self.writer
        return [
            value
            for tile, firsts in zip(self.tiles, (self.rows, self.columns), strict=True)
            for first in firsts
            for value in w.load(tile, [stage, k, first], self.group)
        ]

    def _multiply(self) -> list[str]:
        """The sums of a thread's part.

        A turn begins with the last products of the tile before: what it has read of its own tile,
        behind a barrier, is on its way meanwhile. (The assembler moves products in front of a
        barrier, but not to another turn.) Copies begin one by one, between products: all at once
        they would be in each other's way, and products behind them would wait.
        """
        variant, w = self.variant, self.writer
        is_async = variant.copy_bytes > 0
        group, ahead = "", variant.stages - 1
        if is_async:
            for stage in range(ahead):
                for copy in self._copies(w.add(self.first_k, stage * variant.k), stage):
                    copy()
                group = w.end_copies()
            w.wait_copies(group, ahead - 1)
        else:
            self._put(self._load(self.first_k), 0)
        w.barrier()
        held = variant.thread_m + variant.thread_n
        nothing = [w.zero(self.type)] * (held + variant.thread_m * variant.thread_n)
        carried = [w.index(0), w.index(ahead), *self._read(0, 0), *nothing]
        if is_async:
            copies = self._copies(w.add(self.first_k, ahead * variant.k), ahead)
            for copy in copies[: self.at_once]:
                copy()

        def turn(k0: str, given: list[str]) -> list[str]:
            used, free, *rest = given
            factors, last, sums = rest[:held], rest[held : 2 * held], rest[2 * held :]
            loaded, copies = [], []
            if not is_async:
                loaded = self._load(w.add(k0, variant.k))
            elif self.at_once:
                copies = self._copies(w.add(k0, ahead * variant.k), free)[self.at_once :]
            sums = self._add_products(last, sums)
            for k in range(1, variant.k):
                following = self._read(used, k)
                for copy in copies[k - 1 :: variant.k - 1]:
                    copy()
                sums = self._add_products(factors, sums)
                factors = following
            next_used = self._after(used)
            if is_async:
                w.wait_copies(w.end_copies(), ahead - 1)
            else:
                self._put(loaded, next_used)
            # All have read the whole of this tile, and all parts of the next are there.
            w.barrier()
            first = self._read(next_used, 0)
            if is_async:
                # Behind the reads: what comes after them may write, so they stay in this turn.
                copies = self._copies(w.add(k0, variant.stages * variant.k), used)
                for copy in copies[: self.at_once]:
                    copy()
            return [w.index(next_used), used, *first, *factors, *sums]

        types = ["index", "index", *[self.type] * (held + len(nothing))]
        done = w.loop(self.first_k, self.last_k, variant.k, carried, types, turn)[2 + held :]
        return self._add_products(done[:held], done[held:])

    def _after(self, stage: Index) -> Index:
        w = self.writer
        following = w.add(stage, 1)
        return w.select(w.equal(following, self.variant.stages), 0, following)

    def _add_products(self, factors: Sequence[str], sums: Sequence[str]) -> list[str]:
        """The sums with the products of a column of A and a row of B."""
        w, added, row_length = self.writer, list(sums), self.variant.thread_n
        column, row = factors[: self.variant.thread_m], factors[self.variant.thread_m :]
        places = [(m, n) for m in range(len(column)) for n in range(len(row))]
        # Along the shorter of both, there and back: each product has an operand of the last one,
        # whose register is read once.
        if len(row) > len(column) and self.at_once == 1:
            places.sort(key=lambda at: (at[1], at[0] if at[1] % 2 == 0 else -at[0]))
        else:
            places.sort(key=lambda at: (at[0], at[1] if at[0] % 2 == 0 else -at[1]))
        for m, n in places:
            place = m * row_length + n
            added[place] = w.multiply_add(column[m], row[n], added[place], self.type)
        return added

    # --- To memory ----------------------------------------------------------------------------

    def _store(self, sums: Sequence[str]) -> None:
        """Writes what is inside of C."""
        w, across = self.writer, self.variant.thread_n
        for number, first in enumerate(self.rows):
            for i in range(self.group):
                begin = (number * self.group + i) * across
                row = w.add(self.first[0], w.add(first, i))
                is_there = None if self.sides[0].is_whole else w.less(row, self.operands.m)
                w.where(is_there, partial(self._store_row, row, sums[begin : begin + across]))

    def _store_row(self, row: Index, sums: Sequence[str]) -> None:
        w, group, n = self.writer, self.group, self.problem.n
        bytes_ = ELEMENT_BYTES[self.c.element] * group
        can_be_wide = self.c.alignment >= bytes_ and self.c.alignment % bytes_ == 0
        for number, first in enumerate(self.columns):
            column = w.add(self.first[1], first)
            values = sums[number * group : (number + 1) * group]
            one_by_one = partial(self._store_each, row, column, values)
            if self.sides[1].is_whole and can_be_wide:
                self._store_group(row, column, values)
            elif n is not None and n % group == 0 and can_be_wide:
                is_there = w.less(column, self.operands.n)
                w.where(is_there, partial(self._store_group, row, column, values))
            elif n is None and can_be_wide:
                is_whole = w.less(w.add(column, group - 1), self.operands.n)
                w.where(is_whole, partial(self._store_group, row, column, values), one_by_one)
            else:
                one_by_one()

    def _store_group(self, row: Index, column: Index, sums: Sequence[str]) -> None:
        values = self._finished(row, column, sums)
        self.writer.store(self.target, self._target_at(row, column), values)

    def _store_each(self, row: Index, column: Index, sums: Sequence[str]) -> None:
        w = self.writer
        for i, sum_ in enumerate(sums):
            at = w.add(column, i)
            is_there = None if self.sides[1].is_whole else w.less(at, self.operands.n)
            w.where(is_there, partial(self._store_one, row, at, sum_))

    def _store_one(self, row: Index, column: Index, sum_: str) -> None:
        place = self._target_at(row, column)
        self.writer.store(self.target, place, self._finished(row, column, [sum_]))

    def _target_at(self, row: Index, column: Index) -> list[Index]:
        if self.is_partial:
            return [self.part, row, column]
        return self.operands.at(self.batch, row, column)

    def _finished(self, row: Index, column: Index, sums: Sequence[str]) -> Sequence[str]:
        """Of one sum, or of a group, which begins at a multiple of its columns."""
        if self.is_partial:
            return sums
        at = (self.batch, row, column)
        return finished(self.writer, self.operands, self.finish, sums, at, is_whole=True)


def _zeros(writer: Writer, element: str, count: int) -> list[str]:
    return [writer.zero(element)] * count
