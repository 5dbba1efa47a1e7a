"""The body of a launch: what a block copies, what its warps read and multiply, what they store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.kernels.indices import Index
from aotc.kernels.matmul.mma_sync.store import Store
from aotc.kernels.matmul.mma_sync.tiles import (
    CHUNK_BYTES,
    MOST_EXACT_PRODUCTS,
    MOST_I8_PRODUCTS,
    SHARED,
    SWIZZLED_ROWS,
    Place,
    Side,
    Sizes,
    Staging,
    Variant,
    has_totals,
    instruction_of,
    sides,
)
from aotc.kernels.matmul.mma_sync.writer import Writer
from aotc.kernels.matmul.problem import Finish, Problem

# Of a stage and a part of its K, the fragments.
_Reader = Callable[[Index, int], list[str]]


class _Copy(Struct, frozen=True):
    """A piece of a tile that a thread copies: its first row and column in it, and where that is in
    shared memory. Of it, `bound` of elements are there: of the whole matrix where K is contiguous
    (a column that they end before), else of these. `outer` is where it is in M or N: behind the
    last row, the last one (no sum of those is stored)."""

    row: Index
    column: Index
    shared_column: Index
    bound: Index
    outer: Index


class Kernel:
    """The body of the launch: the product from `first_k` to the K of `sizes`.

    `target` is what C is called here, `at` where the block's matrix is in it.
    """

    def __init__(
        self,
        w: Writer,
        problem: Problem,
        variant: Variant,
        sizes: Sizes,
        place: Place,
        first_k: Index = 0,
        target: str = "%c",
        at: tuple[str, ...] = (),
    ) -> None:
        self.w = w
        self.problem, self.variant, self.sizes, self.place = problem, variant, sizes, place
        self.first_k, self.target, self.at = first_k, target, at
        self.instruction = instruction_of(problem, variant)
        self.a, self.b = sides(problem, variant)
        self.tiles_m = variant.m // variant.warps_m // self.instruction.m
        self.tiles_n = variant.n // variant.warps_n // self.instruction.n
        self.flushes = has_totals(problem)
        # A group of copies: any will do to wait for the last ones.
        self.group = ""

    def write(self, finish: Finish | None) -> None:
        w, sums = self.w, self._multiply()
        if self.a.is_async:
            # What was fetched behind the last tile comes where sums are staged, too.
            w.line(f"nvgpu.device_async_wait {self.group} {{numGroups = 0 : i32}}")
        place = self.sizes, self.place, self.target, self.at
        Store(w, self.problem, self.variant, *place).write(sums, finish)

    # Copies to shared memory

    def _rings(self) -> None:
        """%a_ring and %b_ring, and %staged, which has their place later."""
        w = self.w
        shared = w.value(f"gpu.dynamic_shared_memory : {SHARED}")
        for side, start in ((self.a, 0), (self.b, self.a.bytes)):
            line = f"{side.name}_ring = memref.view {shared}[{w.index(start)}][]"
            w.line(f"{line} : {SHARED} to {side.type}")
            if side.has_pairs:
                line = f"{side.name}_pairs = memref.view {shared}[{w.index(start)}][]"
                w.line(f"{line} : {SHARED} to {side.pairs_type}")
        staging = Staging.of(self.problem, self.variant)
        line = f"%staged = memref.view {shared}[{w.index(0)}][]"
        w.line(f"{line} : {SHARED} to {staging.type}")

    def _outer(self, side: Side) -> tuple[Index, Index]:
        """Where the block's tile begins in M or N, and how many there are."""
        if side is self.a:
            return self.place.row, self.sizes.m
        return self.place.column, self.sizes.n

    def _copies(self, side: Side) -> list[_Copy]:
        """This thread's. Those that follow each other have neighbours in memory."""
        w, threads = self.w, self.variant.threads
        across = side.columns // side.copied
        first_row = w.divide(self.place.thread, across)
        column = w.multiply(w.remainder(self.place.thread, across), side.copied)
        start, size = self._outer(side)
        is_whole = isinstance(size, int) and size % side.outer == 0
        copies = []
        for number in range(side.rows * across // threads):
            row = w.add(first_row, number * (threads // across))
            bound: Index
            outer = w.add(start, row if side.is_deep else column)
            if side.is_deep:
                bound = self.sizes.k
                if not is_whole:
                    outer = w.least(outer, w.subtract(w.index(size), 1))
            else:
                bound = side.copied
                if not is_whole:
                    bound = w.clamp(w.subtract(w.index(size), outer), side.copied)
            copies.append(_Copy(row, column, self._swizzled(side, row, column), bound, outer))
        return copies

    def _swizzled(self, side: Side, row: Index, column: Index) -> Index:
        """The column in shared memory: chunks of 16 bytes change places by their row."""
        w = self.w
        chunks = side.columns // side.chunk
        if not side.has_ldmatrix or chunks == 1:
            return column
        if side.has_pairs:
            # Eight rows are 0, 1, 4, 5, 8, ... then: see `_pair_reader`.
            moved = w.remainder(w.divide(row, 4), min(chunks, 4))
            if chunks >= SWIZZLED_ROWS:
                moved = w.add(w.multiply(moved, 2), w.remainder(row, 2))
            return w.xor(column, w.multiply(moved, side.chunk))
        # Rows that share 128 bytes have the same order.
        together = max(1, SWIZZLED_ROWS // chunks)
        moved = w.remainder(w.divide(row, together), min(chunks, SWIZZLED_ROWS))
        return w.xor(column, w.multiply(moved, side.chunk))

    def _fetch(self, side: Side, copies: Sequence[_Copy], step_k: Index, stage: Index) -> list[str]:
        """Begins to copy a tile that begins at `step_k`, which may be behind the last one."""
        w = self.w
        tokens = []
        for copy in copies:
            count = self._count(side, copy, step_k)
            row, column = self._global(side, copy, step_k)
            source = w.at(*self.place.batch, row, column)
            target = w.at(stage, copy.row, copy.shared_column)
            # What goes past the L1 cache leaves it to others.
            bypass = " {bypassL1}" if side.copy_bytes == CHUNK_BYTES else ""
            tokens.append(
                w.value(
                    f"nvgpu.device_async_copy {side.name}{source}, {side.name}_ring{target}, "
                    f"{side.copied}, {w.index(count)}{bypass} : {side.matrix.type} to {side.type}"
                )
            )
        return tokens

    def _fetch_both(
        self, sides: Sequence[tuple[Side, Sequence[_Copy]]], step_k: Index, stage: Index
    ) -> str:
        """The group of copies, to wait for."""
        tokens = [
            token for side, copies in sides for token in self._fetch(side, copies, step_k, stage)
        ]
        return self.w.value(f"nvgpu.device_async_create_group {', '.join(tokens)}")

    def _global(self, side: Side, copy: _Copy, step_k: Index) -> tuple[Index, Index]:
        if side.is_deep:
            return copy.outer, self.w.add(step_k, copy.column)
        return self.w.add(step_k, copy.row), copy.outer

    def _count(self, side: Side, copy: _Copy, step_k: Index) -> Index:
        """How many elements of the piece there are."""
        w, k = self.w, self.sizes.k
        if not side.is_deep:
            # Where tiles end with K, all rows of one are there or none.
            is_even = isinstance(k, int) and k % side.k == 0
            row = step_k if is_even else w.add(step_k, copy.row)
            return w.select(w.is_less(row, k), copy.bound, 0)
        column = w.add(step_k, copy.column)
        if side.ends_with_copies or (isinstance(k, int) and k % side.copied == 0):
            return w.select(w.is_less(column, copy.bound), side.copied, 0)
        return w.clamp(w.subtract(w.index(copy.bound), column), side.copied)

    def _load(self, side: Side, copies: Sequence[_Copy], step_k: Index) -> list[str]:
        """The elements of a tile one by one, of a matrix that has some."""
        w = self.w
        element = side.matrix.element
        outer_size = self._outer(side)[1]
        rows, columns = (outer_size, self.sizes.k) if side.is_deep else (self.sizes.k, outer_size)
        zero = w.constant("0" if element == "i8" else "0.0", element)
        loaded = []
        for copy in copies:
            count = self._count(side, copy, step_k)
            row, column = self._global(side, copy, step_k)
            row = w.least(row, w.subtract(w.index(rows), 1))
            values = []
            for number in range(side.copied):
                at = w.least(w.add(column, number), w.subtract(w.index(columns), 1))
                place = w.at(*self.place.batch, row, at)
                value = w.value(f"memref.load {side.name}{place} : {side.matrix.type}")
                there = w.is_less(number, count)
                values.append(w.value(f"arith.select {there}, {value}, {zero} : {element}"))
            type_ = f"vector<{side.copied}x{element}>"
            loaded.append(w.value(f"vector.from_elements {', '.join(values)} : {type_}"))
        return loaded

    def _put(
        self, side: Side, copies: Sequence[_Copy], loaded: Sequence[str], stage: Index
    ) -> None:
        w = self.w
        for copy, value in zip(copies, loaded, strict=True):
            target = w.at(stage, copy.row, copy.shared_column)
            at = f"{side.name}_ring{target}"
            self.w.store_vector(value, at, side.type, side.copied, side.matrix.element)

    # Registers of the tensor cores

    def _multiply(self) -> list[str]:
        """The sums of this lane, tile by tile: those of a row one after the other."""
        w, i, sizes = self.w, self.instruction, self.sizes
        self._rings()
        sides = [(side, self._copies(side)) for side in (self.a, self.b)]
        readers = self._reader(self.a), self._reader(self.b)
        self._fill(sides)
        self._wait()
        fragments = [value for read in readers for value in read(0, 0)]
        zero = "0" if i.sum == "i32" else "0.0"
        nothing = w.value(f"arith.constant dense<{zero}> : {i.sum_type}")
        count = self.tiles_m * self.tiles_n
        totals = [nothing] * count if self.flushes else []
        carried = [
            *(("index", w.index(stage)) for stage in (0, self.variant.stages - 1)),
            *((i.a_type, fragment) for fragment in fragments[: self.tiles_m]),
            *((i.b_type, fragment) for fragment in fragments[self.tiles_m :]),
            *((i.sum_type, sum_) for sum_ in [nothing] * count + totals),
        ]
        depth = sizes.k if self.first_k == 0 else w.subtract(sizes.k, self.first_k)
        steps = w.divide_up(depth, self.variant.k)
        of_fragments = 2 + self.tiles_m + self.tiles_n

        def body(step: str, used: str, free: str, *rest: str) -> list[str]:
            given, sums = rest[: of_fragments - 2], rest[of_fragments - 2 :]
            next_used, following, added = self._step(
                sides, readers, step, (used, free), given, sums[:count]
            )
            if totals:
                added = self._flush(step, added, sums[count:])
            return [w.index(next_used), w.index(self._after(free)), *following, *added]

        sums = w.loop(steps, carried, body)[of_fragments:]
        if totals:
            return self._add_vectors(sums[:count], sums[count:])
        return sums

    def _fill(self, sides: Sequence[tuple[Side, Sequence[_Copy]]]) -> None:
        """Begins to bring the first tiles, all but one of the ring."""
        w = self.w
        for stage in range(self.variant.stages - 1):
            step_k = w.add(self.first_k, stage * self.variant.k)
            if self.a.is_async:
                self.group = self._fetch_both(sides, step_k, stage)
                continue
            with w.where(w.is_less(step_k, self.sizes.k)):
                for side, copies in sides:
                    self._put(side, copies, self._load(side, copies, step_k), stage)

    def _step(
        self,
        sides: Sequence[tuple[Side, Sequence[_Copy]]],
        readers: Sequence[_Reader],
        step: str,
        stages: tuple[str, str],
        fragments: Sequence[str],
        sums: Sequence[str],
    ) -> tuple[Index, Sequence[str], list[str]]:
        """Multiplies a tile while the next one's fragments and a later tile come: the next stage,
        its fragments, the sums."""
        w, variant = self.w, self.variant
        used, free = stages
        later_k = w.add(self.first_k, w.multiply(w.add(step, variant.stages - 1), variant.k))
        parts = variant.k // self.instruction.k
        next_used: Index = used
        loaded: list[list[str]] = []
        added = list(sums)
        for part in range(parts):
            if part == parts - 1:
                for (side, copies), values in zip(sides, loaded, strict=False):
                    self._put(side, copies, values, free)
                # All have read the whole of this tile, and the next one is there.
                self._wait()
                next_used = self._after(used)
            following = [value for read in readers for value in read(next_used, (part + 1) % parts)]
            if part == 0 and self.a.is_async:
                self._fetch_both(sides, later_k, free)
            elif part == 0:
                loaded = [self._load(side, copies, later_k) for side, copies in sides]
            added = self._products(fragments[: self.tiles_m], fragments[self.tiles_m :], added)
            fragments = following
        return next_used, fragments, added

    def _flush(self, step: str, sums: Sequence[str], totals: Sequence[str]) -> list[str]:
        """Adds the sums to the totals, before they can leave their type (as the tensor cores do
        not, this wraps) or lose bits. Both, sums first."""
        w, type_ = self.w, self.instruction.sum_type
        is_integer = self.instruction.sum == "i32"
        products = MOST_I8_PRODUCTS if is_integer else MOST_EXACT_PRODUCTS
        most = 2 ** (max(products // self.variant.k, 1).bit_length() - 1)
        is_last = w.equals(w.remainder(step, most), most - 1)
        result, count = w.name(), 2 * len(sums)
        types = ", ".join([type_] * count)
        w.open(f"{result}:{count} = scf.if {is_last} -> ({types}) {{")
        nothing = w.value(f"arith.constant dense<{'0' if is_integer else '0.0'}> : {type_}")
        flushed = [*[nothing] * len(sums), *self._add_vectors(sums, totals)]
        w.line(f"scf.yield {', '.join(flushed)} : {types}")
        w.otherwise()
        w.line(f"scf.yield {', '.join([*sums, *totals])} : {types}")
        w.close()
        return [f"{result}#{number}" for number in range(count)]

    def _add_vectors(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        type_ = self.instruction.sum_type
        operation = "addi" if self.instruction.sum == "i32" else "addf"
        return [
            self.w.value(f"arith.{operation} {one}, {other} : {type_}")
            for one, other in zip(left, right, strict=True)
        ]

    def _wait(self) -> None:
        """Until the oldest tile under way is there, for all."""
        if self.a.is_async:
            pending = self.variant.stages - 2
            self.w.line(f"nvgpu.device_async_wait {self.group} {{numGroups = {pending} : i32}}")
        self.w.line("gpu.barrier")

    def _after(self, stage: str) -> str:
        w = self.w
        following = w.add(stage, 1)
        return w.select(w.equals(following, self.variant.stages), 0, following)

    def _products(self, a: Sequence[str], b: Sequence[str], sums: Sequence[str]) -> list[str]:
        i = self.instruction
        added = list(sums)
        tf32 = ", tf32Enabled" if i.element == "f32" else ""
        for m, left in enumerate(a):
            # There and back: the last operand is used again.
            for n in range(len(b))[:: -1 if m % 2 else 1]:
                at = m * len(b) + n
                added[at] = self.w.value(
                    f"nvgpu.mma.sync ({left}, {b[n]}, {added[at]}) "
                    f"{{mmaShape = [{i.m}, {i.n}, {i.k}]{tf32}}} "
                    f": ({i.a_type}, {i.b_type}, {i.sum_type}) -> {i.sum_type}"
                )
        return added

    def _reader(self, side: Side) -> _Reader:
        """What reads the fragments of a part of K from a stage."""
        if side.has_pairs:
            return self._pair_reader(side)
        if side.reads_two:
            return self._double_reader(side)
        return self._matrix_reader(side) if side.has_ldmatrix else self._lane_reader(side)

    def _warp_outer(self, side: Side) -> Index:
        return self.place.warp_row if side is self.a else self.place.warp_column

    def _matrix_reader(self, side: Side) -> _Reader:
        """By ldmatrix, whose lane gives the address of a row of 16 bytes: four matrices of 8 rows
        are 16 by 16 elements of 16 bits. They are a tile of A, or two of B."""
        w, i = self.w, self.instruction
        lane = self.place.lane
        # In A, the second matrix is further in M; in B, further in K.
        if side.is_deep == (side is self.a):
            row, chunk = w.remainder(lane, 16), w.divide(lane, 16)
        else:
            upper = w.multiply(w.divide(lane, 16), 8)
            row = w.add(w.remainder(lane, 8), upper)
            chunk = w.remainder(w.divide(lane, 8), 2)
        column = w.multiply(chunk, side.chunk)
        outer = self._warp_outer(side)
        tiles = self.tiles_m if side is self.a else self.tiles_n // 2
        parts = side.k // i.k
        if side.is_deep:
            rows = [w.add(w.add(outer, row), 16 * tile) for tile in range(tiles)]
            columns = [
                self._swizzled(side, row, w.add(column, i.k * part)) for part in range(parts)
            ]
        else:
            rows = [w.add(row, i.k * part) for part in range(parts)]
            columns = [
                self._swizzled(side, row, w.add(w.add(outer, column), 16 * tile))
                for tile in range(tiles)
            ]
        type_ = f"vector<4x{i.width}x{i.element}>"
        transpose = str(not side.is_deep).lower()

        def read(stage: Index, part: int) -> list[str]:
            fragments = []
            for tile in range(tiles):
                at = (rows[tile], columns[part]) if side.is_deep else (rows[part], columns[tile])
                four = w.value(
                    f"nvgpu.ldmatrix {side.name}_ring{w.at(stage, *at)} "
                    f"{{numTiles = 4 : i32, transpose = {transpose}}} : {side.type} -> {type_}"
                )
                fragments += [four] if side is self.a else self._halves(four)
            return fragments

        return read

    def _pair_reader(self, side: Side) -> _Reader:
        """By ldmatrix of pairs of i8, which transposes 8 rows (of K) of 16 elements: a lane gets
        elements 2g and 2g + 1 of two rows. Two matrices, of rows 0, 1, 4, 5, ... and 2, 3, 6, 7,
        ..., have four rows for it. So the tensor cores' rows of A, or columns of B, are the even
        ones of 16 and then the odd ones."""
        w, i = self.w, self.instruction
        which, row = w.divide(self.place.lane, 8), w.remainder(self.place.lane, 8)
        row = w.add(w.multiply(w.divide(row, 2), 4), w.remainder(row, 2))
        row = w.add(row, w.multiply(w.divide(which, 2), 16))
        row = w.add(row, w.multiply(w.remainder(which, 2), 2))
        outer = self._warp_outer(side)
        tiles = self.tiles_m if side is self.a else self.tiles_n // 2
        rows = [w.add(row, i.k * part) for part in range(side.k // i.k)]
        columns = [
            w.divide(self._swizzled(side, row, w.add(outer, 16 * tile)), 2) for tile in range(tiles)
        ]

        def read(stage: Index, part: int) -> list[str]:
            fragments = []
            for column in columns:
                at = w.at(stage, rows[part], column)
                pairs = w.value(
                    f"nvgpu.ldmatrix {side.name}_pairs{at} {{numTiles = 4 : i32, "
                    f"transpose = true}} : {side.pairs_type} -> vector<4x2xf16>"
                )
                even, odd = self._part_pairs(pairs)
                if side is self.a:
                    fragments.append(self._fragment([even[0], odd[0], even[1], odd[1]]))
                else:
                    fragments += [self._fragment(even), self._fragment(odd)]
            return fragments

        return read

    def _part_pairs(self, pairs: str) -> tuple[list[str], list[str]]:
        """Registers of even elements and of odd ones, of both halves of K."""
        w = self.w
        four = "vector<4xi8>"
        bytes_ = w.value(f"vector.bitcast {pairs} : vector<4x2xf16> to vector<4x4xi8>")
        registers = [
            w.value(f"vector.extract {bytes_}[{number}] : {four} from vector<4x4xi8>")
            for number in range(4)
        ]
        even, odd = (
            [
                w.value(f"vector.shuffle {low}, {high} {order} : {four}, {four}")
                for low, high in (registers[:2], registers[2:])
            ]
            for order in ("[0, 2, 4, 6]", "[1, 3, 5, 7]")
        )
        return even, odd

    def _fragment(self, registers: Sequence[str]) -> str:
        w, i = self.w, self.instruction
        type_ = f"vector<{len(registers)}x{i.width}x{i.element}>"
        zero = "0" if i.element == "i8" else "0.0"
        fragment = w.value(f"arith.constant dense<{zero}> : {type_}")
        for number, register in enumerate(registers):
            fragment = w.value(
                f"vector.insert {register}, {fragment} [{number}] "
                f": vector<{i.width}x{i.element}> into {type_}"
            )
        return fragment

    def _halves(self, four: str) -> list[str]:
        """Two fragments of B."""
        i = self.instruction
        return [
            self.w.value(
                f"vector.extract_strided_slice {four} {{offsets = [{2 * half}], sizes = [2], "
                f"strides = [1]}} : vector<4x{i.width}x{i.element}> to {i.b_type}"
            )
            for half in range(2)
        ]

    def _double_reader(self, side: Side) -> _Reader:
        """By 16 bytes, two of K where that is contiguous, else two of M: rows of A that the
        instruction has 8 apart."""
        w, i = self.w, self.instruction
        halves, count = (2, self.tiles_m) if side is self.a else (1, self.tiles_n)
        outer = self._warp_outer(side)
        group, member = self.place.group, w.multiply(self.place.member, 2)
        first = w.add(outer, group if side.is_deep else w.multiply(group, 2))
        type_ = i.a_type if side is self.a else i.b_type

        def two(stage: Index, row: Index, column: Index) -> list[str]:
            at = f"{side.name}_ring{w.at(stage, row, column)}"
            return w.load_vector(at, side.type, 2, i.element)

        def deep(stage: Index, part: int) -> dict[tuple[int, int], str]:
            """Elements by their tile and register."""
            found = {}
            for tile in range(count):
                for half, k in itertools.product(range(halves), range(0, i.k // 4, 2)):
                    row = w.add(first, tile * 8 * halves + 8 * half)
                    values = two(stage, row, w.add(member, part * i.k + 4 * k))
                    for number, value in enumerate(values):
                        found[tile, half + halves * (k + number)] = value
            return found

        def flat(stage: Index, part: int) -> dict[tuple[int, int], str]:
            found = {}
            for tile, k in itertools.product(range(count), range(i.k // 4)):
                row = w.add(member, part * i.k + 8 * (k // 2) + k % 2)
                for half, value in enumerate(two(stage, row, w.add(first, 16 * tile))):
                    found[tile, half + 2 * k] = value
            return found

        def read(stage: Index, part: int) -> list[str]:
            found = (deep if side.is_deep else flat)(stage, part)
            fragments = []
            for tile in range(count):
                values = [found[tile, register] for register in range(halves * i.k // 4)]
                fragments.append(w.value(f"vector.from_elements {', '.join(values)} : {type_}"))
            return fragments

        return read

    def _lane_reader(self, side: Side) -> _Reader:
        """Element by element, as the PTX manual has them in lanes."""
        w, i = self.w, self.instruction
        is_a = side is self.a
        registers = i.a_registers if is_a else i.b_registers
        halves = i.m // 8 if is_a else 1
        tiles, size = (self.tiles_m, i.m) if is_a else (self.tiles_n, i.n)
        outer = w.add(self._warp_outer(side), self.place.group)
        depth = w.multiply(self.place.member, i.width)
        type_ = f"vector<{registers}x{i.width}x{i.element}>"

        def element(stage: Index, part: int, tile: int, register: int, number: int) -> str:
            o = w.add(outer, tile * size + 8 * (register % halves))
            k = w.add(depth, part * i.k + 4 * i.width * (register // halves) + number)
            at = w.at(stage, o, k) if side.is_deep else w.at(stage, k, o)
            return w.value(f"memref.load {side.name}_ring{at} : {side.type}")

        def read(stage: Index, part: int) -> list[str]:
            fragments = []
            for tile in range(tiles):
                values = [
                    element(stage, part, tile, register, number)
                    for register in range(registers)
                    for number in range(i.width)
                ]
                fragments.append(w.value(f"vector.from_elements {', '.join(values)} : {type_}"))
            return fragments

        return read
