"""What a kernel of `hopper` does with its sums: registers → pieces in shared memory → C.

A piece is 16 rows, as many as a warp has of a wgmma's 64, of 128 bytes; each warp makes its own.
TMA stores pieces, and drops what is outside of C. Where it cannot, as C's rows are not aligned,
the warp itself stores row after row.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Emitter,
    Finish,
    Place,
    Problem,
    convert,
)
from aotc.kernels.matmul.wgmma.column_operands import ColumnExtras
from aotc.kernels.matmul.wgmma.epilogue_operands import Extras, Neighbours
from aotc.kernels.matmul.wgmma.tiles import (
    SHARED,
    SWIZZLED,
    Body,
    Tile,
    is_aligned,
    make_map,
    map_type,
    tile_type,
)

PIECE_ROWS = 16
PIECE_BYTES = PIECE_ROWS * SWIZZLED

# Of 8 columns of a piece, what a thread has of them: two neighbours in one of the first 8 rows,
# and two in the row 8 below.
Pairs = tuple[tuple[str, str], tuple[str, str]]


class Store:
    """The part of a kernel that stores sums, for tiles of `n` columns.

    `make_maps` is of the host's part; `begin`, `store` and `end` are of a consumer's. `shared` and
    the others that `begin` takes are names of values in the kernel.
    """

    def __init__(
        self, e: Body, problem: Problem, n: int, finish: Finish | None, buffers: int = 2
    ) -> None:
        """`buffers`: of each warp. Of two one is filled while the other one is read."""
        self.e, self.problem, self.n, self.finish = e, problem, n, finish
        self.buffers = buffers
        self.c = problem.c
        self.element_bytes = ELEMENT_BYTES[self.c.element]
        self.columns = SWIZZLED // self.element_bytes
        self.by_tma = is_aligned(self.c)
        self.sum = "i32" if problem.a.element == "i8" else "f32"
        self.sums = f"!llvm.struct<({', '.join([self.sum] * (n // 2))})>"
        self.pair = f"vector<2x{self.c.element}>"
        self.extras = Extras(e, problem, PIECE_ROWS, self.columns)
        self.column_extras = ColumnExtras(e, problem, has_pairs=self._are_pairs_whole())
        # Of the next piece.
        self.beside: dict[int, Neighbours] | None = None
        # Descriptors, by the width of pieces.
        self.maps: dict[int, str] = {}

    @staticmethod
    def shared_bytes(warps: int, buffers: int = 2) -> int:
        return warps * buffers * PIECE_BYTES

    # --- The host's part -----------------------------------------------------------------

    def make_maps(self, target: str) -> None:
        """`target`: what C is called. The last piece of a tile may be narrower: more would be the
        next tile's."""
        if not self.by_tma:
            return
        for columns in {min(self.columns, self.n), self.n % self.columns} - {0}:
            self.maps[columns] = make_map(
                self.e, target, self.c, self._box(columns), self._map_type(columns)
            )

    def _box(self, columns: int) -> tuple[int, ...]:
        return (1, PIECE_ROWS, columns) if self.problem.batched else (PIECE_ROWS, columns)

    def _tile_type(self, columns: int) -> str:
        return tile_type(self._box(columns), self.c.element)

    def _map_type(self, columns: int) -> str:
        return map_type(self._tile_type(columns), SWIZZLED if columns == self.columns else 0)

    # --- The kernel's --------------------------------------------------------------------

    def begin(
        self, shared: str, address: str, offset: str, lane: str, sizes: tuple[str, str]
    ) -> None:
        """`shared`: the block's memory, and its address. `offset`: of this warp's buffers."""
        self.shared, self.address, self.offset = shared, address, offset
        self.lane, self.sizes = lane, sizes
        self.is_first_lane = self.e.compare("eq", lane, 0)
        self.extras.begin(lane, sizes)

    def prepare(self, tile: Tile) -> None:
        """Begins to read what `store` needs first, for the same tile."""
        self.beside = self._load_column_extras(0, tile)

    def _load_column_extras(self, first: int, at: Tile) -> dict[int, Neighbours]:
        """Of a piece that begins at the tile's column `first`."""
        return self.column_extras.load(at.column, min(self.columns, self.n - first), self.lane)

    def store(self, sums: list[str], tile: Tile) -> None:
        """`tile`: where the warp's rows of the first sums begin; the next ones are 64 below."""
        e = self.e
        firsts = range(0, self.n, self.columns)
        pieces = [
            (block_sums, first, self._place(tile, block, first))
            for block, block_sums in enumerate(sums)
            for first in firsts
        ]
        is_odd = len(pieces) % self.buffers != 0
        loaded = self._load_extras(*pieces[0][1:])
        if self.beside is None:
            self.prepare(tile)
        for number, (block_sums, first, place) in enumerate(pieces):
            # What the next piece needs comes while this one is stored.
            following, beside = {}, None
            if pieces[number + 1 :]:
                following = self._load_extras(*pieces[number + 1][1:])
                beside = self._load_column_extras(*pieces[number + 1][1:])
            # An odd number of pieces: this tile begins with the buffer that the one before ended
            # with.
            in_use = 0 if is_odd and number == 0 else self.buffers - 1
            self._await_buffer(in_use)
            buffer = e.do("addi", self.offset, number % self.buffers * PIECE_BYTES)
            self._store_piece(block_sums, first, place, buffer, loaded)
            loaded, self.beside = following, beside

    def _place(self, tile: Tile, block: int, first: int) -> Tile:
        e = self.e
        row, column = e.do("addi", tile.row, 64 * block), e.do("addi", tile.column, first)
        return Tile(row, column, tile.batch)

    def _load_extras(self, first: int, at: Tile) -> dict[int, list[str]]:
        """Of a piece that is as wide as others."""
        return self.extras.load(at) if self.n - first >= self.columns else {}

    def end(self) -> None:
        """A block's shared memory stays until TMA has read it."""
        if self.by_tma:
            self.e.line("nvvm.cp.async.bulk.wait_group 0 {read}")

    def _await_buffer(self, in_use: int) -> None:
        """Until at most so many of the warp's buffers are still read."""
        if self.by_tma:
            self.e.line(f"nvvm.cp.async.bulk.wait_group {in_use} {{read}}")
        # Lanes that read a buffer themselves have met since, at the other one.
        if self.by_tma or in_use == 0:
            self._synchronize_warp()

    def _synchronize_warp(self) -> None:
        everyone = self.e.constant(-1, "i32")
        self.e.line(f"nvvm.bar.warp.sync {everyone} : i32")

    def _store_piece(
        self, sums: str, first: int, at: Tile, buffer: str, loaded: dict[int, list[str]]
    ) -> None:
        """The piece from the tile's column `first` on, to C's `at`, by the buffer at an offset, and
        with what has been loaded of extras."""
        columns = min(self.columns, self.n - first)
        # TMA swizzles rows of 128 bytes alone.
        is_swizzled = columns == self.columns or not self.by_tma
        pitch = SWIZZLED if is_swizzled else columns * self.element_bytes
        address = self.e.do("addi", self.address, buffer)
        write = self._write_words if self.element_bytes == 4 else self._write_halves
        given = {**self.extras.turn(loaded, address), **(self.beside or {})}
        pairs = self._pairs(sums, first, columns, at, given)
        write(pairs, address, pitch, is_swizzled=is_swizzled)
        if self.by_tma:
            self._store_by_tma(at, buffer, columns)
        else:
            self._synchronize_warp()
            self._store_by_rows(at, address, columns)

    # --- Elements ------------------------------------------------------------------------

    def _pairs(
        self, sums: str, first: int, columns: int, at: Tile, given: dict[int, Neighbours]
    ) -> list[Pairs]:
        """This thread's elements of a piece, as C has them."""
        needs_place = self.finish is not None or self.problem.adds
        rows = self._rows(at) if needs_place else ["", ""]
        batch = None if at.batch is None or not needs_place else self.e.index(at.batch)
        groups = []
        for group in range(0, columns, 8):
            places = self._columns(at, group) if needs_place else ["", ""]
            number = (first + group) // 2
            upper, lower = (
                self._elements(
                    sums,
                    (number + 2 * half, number + 2 * half + 1),
                    (row, places),
                    batch,
                    {extra: pairs[group // 8, half] for extra, pairs in given.items()},
                )
                for half, row in enumerate(rows)
            )
            groups.append((upper, lower))
        return groups

    def _rows(self, at: Tile) -> list[str]:
        """This thread's rows, but inside of C: what is made for others is not stored."""
        e = self.e
        row = e.do("addi", at.row, e.do("shrui", self.lane, 2))
        return [self._inside(e.do("addi", row, 8 * half), self.sizes[0]) for half in range(2)]

    def _columns(self, at: Tile, offset: int) -> list[str]:
        """Likewise."""
        e = self.e
        pair = e.do("shli", e.do("andi", self.lane, 3), 1)
        column = e.do("addi", e.do("addi", at.column, pair), offset)
        return [self._inside(e.do("addi", column, side), self.sizes[1]) for side in range(2)]

    def _inside(self, place: str, size: str) -> str:
        e = self.e
        return e.index(e.do("minui", place, e.do("subi", size, 1)))

    def _elements(
        self,
        sums: str,
        numbers: tuple[int, int],
        place: tuple[str, list[str]],
        batch: str | None,
        given: dict[int, tuple[str, str]],
    ) -> tuple[str, str]:
        """Two neighbours, of these numbers among the sums."""
        e = self.e
        row, columns = place
        values = [
            e.value(f"llvm.extractvalue {sums}[{number}] : {self.sums}") for number in numbers
        ]
        if self.problem.adds:
            before = self._load_pair(row, columns, batch)
            values = [
                add_sums(e, convert(e, old, self.c.element, self.sum), new, self.sum)
                for old, new in zip(before, values, strict=True)
            ]
        if self.finish is not None:
            if self._are_pairs_whole():
                columns = self._last_pair(columns)
            at = Place(batch, row, columns, self._are_pairs_whole(), given)
            left, right = self.finish(e, values, at)
        else:
            left, right = (convert(e, value, self.sum, self.c.element) for value in values)
        return left, right

    def _are_pairs_whole(self) -> bool:
        """Whether all rows begin at multiples of 16 bytes, and none ends between two neighbours:
        both are inside or none is."""
        n = self.problem.n
        return self.by_tma and n is not None and n % 2 == 0

    def _last_pair(self, columns: list[str]) -> list[str]:
        """Two columns that are whole; behind C's last ones, these."""
        e, n = self.e, self.problem.n
        assert n is not None
        return [
            e.value(f"arith.minui {column}, {e.constant(n - 2 + side)} : index")
            for side, column in enumerate(columns)
        ]

    def _load_pair(self, row: str, columns: list[str], batch: str | None) -> list[str]:
        """What C has there."""
        e = self.e
        front = [] if batch is None else [batch]
        if self._are_pairs_whole():
            place = ", ".join([*front, row, self._last_pair(columns)[0]])
            both = e.value(
                f"vector.load %c[{place}] {{alignment = {2 * self.element_bytes} : i64}} "
                f": {self.c.type}, {self.pair}"
            )
            return [e.value(f"vector.extract {both}[{i}] : {self.c.element} from {self.pair}")
                    for i in range(2)]  # fmt: skip
        places = [", ".join([*front, row, column]) for column in columns]
        return [e.value(f"memref.load %c[{place}] : {self.c.type}") for place in places]

    def _vector(self, pair: tuple[str, str]) -> str:
        return self.e.value(f"vector.from_elements {', '.join(pair)} : {self.pair}")

    # --- To shared memory ----------------------------------------------------------------

    def _write_halves(
        self, groups: list[Pairs], address: str, pitch: int, *, is_swizzled: bool
    ) -> None:
        """Elements of 16 bits: 16 columns at once, as four matrices of 8 x 8, of whose 32 rows
        each lane gives the address of one."""
        e = self.e
        row = e.do("andi", self.lane, 15)
        side = e.do("shrui", self.lane, 4)
        if is_swizzled:
            side = e.do("xori", side, e.do("andi", self.lane, 7))
        offset = e.do("addi", e.do("muli", row, pitch), e.do("shli", side, 4))
        base = e.do("addi", address, offset)
        for number in range(0, len(groups), 2):
            words = [self._word(pair) for group in groups[number : number + 2] for pair in group]
            place = e.pointer(e.do("xori" if is_swizzled else "addi", base, 16 * number))
            e.line(
                f"nvvm.stmatrix {place}, {', '.join(words)} {{layout = #nvvm.mma_layout<row>, "
                "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
                "eltType = #nvvm.ld_st_matrix_elt_type<b16>} "
                ": !llvm.ptr<3>, i32, i32, i32, i32"
            )

    def _word(self, pair: tuple[str, str]) -> str:
        return self.e.value(f"llvm.bitcast {self._vector(pair)} : {self.pair} to i32")

    def _write_words(
        self, groups: list[Pairs], address: str, pitch: int, *, is_swizzled: bool
    ) -> None:
        """Elements of 32 bits: each lane writes its own."""
        e = self.e
        row, quad = e.do("shrui", self.lane, 2), e.do("andi", self.lane, 3)
        side = e.do("shrui", quad, 1)
        if is_swizzled:
            side = e.do("xori", side, row)
        in_row = e.do("addi", e.do("shli", side, 4), e.do("shli", e.do("andi", quad, 1), 3))
        base = e.do("addi", address, e.do("addi", e.do("muli", row, pitch), in_row))
        for number, group in enumerate(groups):
            place = e.do("xori" if is_swizzled else "addi", base, 32 * number)
            for half, pair in enumerate(group):
                pointer = e.pointer(e.do("addi", place, 8 * half * pitch))
                e.line(
                    f"llvm.store {self._vector(pair)}, {pointer} {{alignment = 8 : i64}} "
                    f": {self.pair}, !llvm.ptr<3>"
                )

    # --- From there to C -----------------------------------------------------------------

    def _store_by_tma(self, at: Tile, buffer: str, columns: int) -> None:
        e = self.e
        # TMA sees what was written.
        e.line(
            "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
            "space = #nvvm.shared_space<cta>}"
        )
        self._synchronize_warp()
        with e.block(f"scf.if {self.is_first_lane}"):
            tile = self._tile_type(columns)
            source = e.value(f"memref.view {self.shared}[{e.index(buffer)}][] : {SHARED} to {tile}")
            places = [at.column, at.row] if at.batch is None else [at.column, at.row, at.batch]
            coordinates = ", ".join([e.index(place) for place in places])
            e.line(
                f"nvgpu.tma.async.store {source} to {self.maps[columns]}[{coordinates}] "
                f": {tile} -> {self._map_type(columns)}"
            )
        e.line("nvvm.cp.async.bulk.commit.group")

    def _store_by_rows(self, at: Tile, address: str, columns: int) -> None:
        e = self.e
        zero, one, rows = (e.constant(number, "i32") for number in (0, 1, PIECE_ROWS))
        with e.block(f"scf.for %r = {zero} to {rows} step {one} : i32"):
            row = e.do("addi", at.row, "%r")
            is_row = e.compare("ult", row, self.sizes[0])
            swizzle = e.do("shli", e.do("andi", "%r", 7), 4)
            line = e.do("addi", address, e.do("muli", "%r", SWIZZLED))
            for first in range(0, columns, 32):
                column = e.do("addi", self.lane, first)
                place = Tile(row, e.do("addi", at.column, column), at.batch)
                is_inside = e.compare("ult", place.column, self.sizes[1])
                is_inside = e.do("andi", is_row, is_inside, "i1")
                if first + 32 > columns:
                    is_inside = e.do("andi", is_inside, e.compare("ult", column, columns), "i1")
                with e.block(f"scf.if {is_inside}"):
                    in_row = e.do("xori", e.do("muli", column, self.element_bytes), swizzle)
                    self._store_element(e.do("addi", line, in_row), place)

    def _store_element(self, address: str, at: Tile) -> None:
        e, c = self.e, self.c
        value = e.value(f"llvm.load {e.pointer(address)} : !llvm.ptr<3> -> {c.element}")
        places = [at.row, at.column] if at.batch is None else [at.batch, at.row, at.column]
        indices = ", ".join([e.index(place) for place in places])
        e.line(f"memref.store {value}, %c[{indices}] : {c.type}")


def add_sums(e: Emitter, left: str, right: str, type_: str) -> str:
    return e.value(f"arith.{'addi' if type_ == 'i32' else 'addf'} {left}, {right} : {type_}")
