"""Further matrices that a kernel of `hopper` reads where it stores: memory → pieces in shared
memory → registers, as its sums lie.

A thread has two neighbours in each of many rows: to read those of memory takes as many accesses as
there are rows. So a warp reads whole rows of a piece, 16 bytes a lane, while it stores the piece
before; the buffer of the piece turns them.
"""

from __future__ import annotations

from collections.abc import Iterator

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, Extra, Problem
from aotc.kernels.matmul.wgmma.tiles import SWIZZLED, Body, Tile

_ACCESS = 16  # bytes
_LANES = 32
_WORDS = "!llvm.struct<(i32, i32, i32, i32)>"

# Of a piece, by the number of 8 columns and by the half of its rows: a thread's two neighbours.
Neighbours = dict[tuple[int, int], tuple[str, str]]


class Extras:
    """Those of the problem that have C's shape and elements as long as its; `rows` and `columns`:
    of a piece."""

    def __init__(self, e: Body, problem: Problem, rows: int, columns: int) -> None:
        self.e, self.problem = e, problem
        self.rows, self.columns = rows, columns
        self.numbers = [i for i, one in enumerate(problem.extras) if self._is_taken(one)]

    def _is_taken(self, extra: Extra) -> bool:
        c, n = self.problem.c, self.problem.n
        names = ("batch", "row", "column") if self.problem.batched else ("row", "column")
        if extra.axes != tuple(map(Axis, names)) or extra.alignment % _ACCESS:
            return False
        size = ELEMENT_BYTES.get(extra.element or "")
        if size != ELEMENT_BYTES[c.element] or size not in (2, 4):
            return False
        # No access is to end behind a row: where nothing lies between rows, they have its multiple.
        has_layout = "," in extra.type
        return not has_layout if n is None else n % (_ACCESS // size) == 0

    def begin(self, lane: str, sizes: tuple[str, str]) -> None:
        """Of a consumer: its lane, and C's sizes, i32 values."""
        self.lane, self.sizes = lane, sizes

    # --- From memory ---------------------------------------------------------------------

    def load(self, at: Tile) -> dict[int, list[str]]:
        """By the extra's number, what this lane reads of the piece: vectors of 16 bytes."""
        return {number: list(self._load(number, at)) for number in self.numbers}

    def _load(self, number: int, at: Tile) -> Iterator[str]:
        e, extra = self.e, self.problem.extras[number]
        width = self._width(extra)
        column = e.do("addi", at.column, e.do("muli", self._chunk(), width))
        last = e.do("subi", self.sizes[1], width)
        place = e.index(e.do("minui", column, last))
        front = [] if at.batch is None else [e.index(at.batch)]
        for row in self._rows():
            inside = e.do("minui", e.do("addi", at.row, row), e.do("subi", self.sizes[0], 1))
            indices = ", ".join([*front, e.index(inside), place])
            yield e.value(
                f"vector.load %e{number}[{indices}] {{alignment = {_ACCESS} : i64}} "
                f": {extra.type}, vector<{width}x{extra.element}>"
            )

    def _width(self, extra: Extra) -> int:
        return _ACCESS // ELEMENT_BYTES[extra.element or ""]

    def _chunk(self) -> str:
        """Which 16 bytes of a row this lane has."""
        return self.e.do("andi", self.lane, SWIZZLED // _ACCESS - 1)

    def _rows(self) -> Iterator[str]:
        """Of a piece, the rows that this lane has a part of."""
        at_once = _LANES // (SWIZZLED // _ACCESS)
        first = self.e.do("shrui", self.lane, (SWIZZLED // _ACCESS).bit_length() - 1)
        for number in range(self.rows // at_once):
            yield self.e.do("addi", first, number * at_once)

    # --- Through shared memory -----------------------------------------------------------

    def turn(self, loaded: dict[int, list[str]], address: str) -> dict[int, Neighbours]:
        """What this lane has of the piece as sums lie, by the buffer at an address."""
        return {number: self._turn(number, vectors, address) for number, vectors in loaded.items()}

    def _turn(self, number: int, vectors: list[str], address: str) -> Neighbours:
        e, extra = self.e, self.problem.extras[number]
        vector = f"vector<{self._width(extra)}x{extra.element}>"
        for row, value in zip(self._rows(), vectors, strict=True):
            side = e.do("xori", self._chunk(), e.do("andi", row, 7))
            in_row = e.do("shli", side, _ACCESS.bit_length() - 1)
            place = e.do("addi", e.do("muli", row, SWIZZLED), in_row)
            pointer = e.pointer(e.do("addi", address, place))
            e.line(
                f"llvm.store {value}, {pointer} {{alignment = 16 : i64}} : {vector}, !llvm.ptr<3>"
            )
        self._synchronize_warp()
        read = self._read_words if ELEMENT_BYTES[extra.element or ""] == 4 else self._read_halves
        pairs = read(address, f"vector<2x{extra.element}>", extra.element or "")
        self._synchronize_warp()
        return pairs

    def _synchronize_warp(self) -> None:
        everyone = self.e.constant(-1, "i32")
        self.e.line(f"nvvm.bar.warp.sync {everyone} : i32")

    def _read_halves(self, address: str, pair: str, element: str) -> Neighbours:
        """As `stmatrix` writes them."""
        e, found = self.e, Neighbours()
        row = e.do("andi", self.lane, 15)
        side = e.do("xori", e.do("shrui", self.lane, 4), e.do("andi", self.lane, 7))
        offset = e.do("addi", e.do("muli", row, SWIZZLED), e.do("shli", side, 4))
        base = e.do("addi", address, offset)
        for group in range(0, self.columns // 8, 2):
            place = e.pointer(e.do("xori", base, 16 * group))
            words = e.value(
                f"nvvm.ldmatrix {place} {{num = 4 : i32, layout = #nvvm.mma_layout<row>, "
                "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
                "eltType = #nvvm.ld_st_matrix_elt_type<b16>} "
                f": (!llvm.ptr<3>) -> {_WORDS}"
            )
            for number in range(4):
                word = e.value(f"llvm.extractvalue {words}[{number}] : {_WORDS}")
                both = e.value(f"llvm.bitcast {word} : i32 to {pair}")
                found[group + number // 2, number % 2] = self._split(both, pair, element)
        return found

    def _read_words(self, address: str, pair: str, element: str) -> Neighbours:
        """Each lane its own."""
        e, found = self.e, Neighbours()
        row, quad = e.do("shrui", self.lane, 2), e.do("andi", self.lane, 3)
        side = e.do("xori", e.do("shrui", quad, 1), row)
        in_row = e.do("addi", e.do("shli", side, 4), e.do("shli", e.do("andi", quad, 1), 3))
        base = e.do("addi", address, e.do("addi", e.do("muli", row, SWIZZLED), in_row))
        for group in range(self.columns // 8):
            place = e.do("xori", base, 32 * group)
            for half in range(2):
                pointer = e.pointer(e.do("addi", place, 8 * half * SWIZZLED))
                both = e.value(
                    f"llvm.load {pointer} {{alignment = 8 : i64}} : !llvm.ptr<3> -> {pair}"
                )
                found[group, half] = self._split(both, pair, element)
        return found

    def _split(self, both: str, pair: str, element: str) -> tuple[str, str]:
        left, right = (
            self.e.value(f"vector.extract {both}[{i}] : {element} from {pair}") for i in range(2)
        )
        return left, right
