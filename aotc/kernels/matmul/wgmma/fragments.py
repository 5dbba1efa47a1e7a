"""A left operand of wgmma in registers: its fragments, from a stage where K is not contiguous.

wgmma reads elements of 8 and of 32 bits from shared memory only where K is contiguous. What lies
otherwise is read by threads: a stage has slabs of 128 bytes of neighbours in M (or N) by as many
elements of K, whose rows of 128 bytes are swizzled. A lane has two neighbours in M as rows g and
g + 8 of wgmma's (g: the lane's group of 4); so 16 rows are the even ones of 16 and then the odd
ones. The PTX manual says which elements of K a lane has, «Register Fragments for wgmma».
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.wgmma.tiles import SWIZZLED, WGMMA_BYTES, Body

REGISTERS = 4  # of a fragment, 32 bits each
_ROWS = 16  # of a warp
_CHUNK = 16  # bytes, which a swizzle moves


class Fragments:
    """Reads the fragments of a warp, whose rows begin at `row` of the tile and of each 64 after it.

    `lane` and `row` are names of i32 values. Addresses are those of the first stage's tile.
    """

    def __init__(self, e: Body, element: str, lane: str, row: str, address: str) -> None:
        self.e, self.element = e, element
        self.lane, self.row, self.address = lane, row, address
        self.element_bytes = ELEMENT_BYTES[element]
        # Elements of a slab, each way.
        self.width = SWIZZLED // self.element_bytes
        self.step_bytes = WGMMA_BYTES // self.element_bytes * SWIZZLED
        self.block_places: dict[int, list[str]] = {}

    def prepare(self, blocks: int) -> None:
        """Computes where the lane reads, for so many blocks of 64 rows."""
        e = self.e
        self.is_odd = e.compare("ne", e.do("andi", self.lane, 1), 0)
        if self.element_bytes == 1:
            self._select_bytes()
        for block in range(blocks):
            row = e.do("addi", self.row, 64 * block)
            places = self._pairs_of_words(row) if self.element_bytes == 4 else [self._rows(row)]
            self.block_places[block] = [e.do("addi", self.address, place) for place in places]

    def read(self, stage_offset: str, block: int, step: int) -> list[str]:
        """The registers of one wgmma, as i32, of a stage at an offset in bytes."""
        e = self.e
        places = [
            e.do("addi", e.do("addi", place, stage_offset), step * self.step_bytes)
            for place in self.block_places[block]
        ]
        return self._read_words(places) if self.element_bytes == 4 else self._read_bytes(*places)

    # --- 32 bits -------------------------------------------------------------------------

    def _pairs_of_words(self, row: str) -> list[str]:
        """Two places, of neighbours in M. Lanes of a quad have one element of K each, and another
        one 4 behind it: odd lanes read that first, and so half a warp reads from all banks."""
        e = self.e
        quad = e.do("andi", self.lane, 3)
        first_k = e.do("xori", quad, e.do("shli", e.do("andi", quad, 1), 2))
        column = e.do("addi", row, e.do("shli", e.do("shrui", self.lane, 2), 1))
        slab = e.do("muli", e.do("divui", column, self.width), SWIZZLED * self.width)
        in_row = e.do("shli", e.do("andi", column, self.width - 1), 2)
        places = []
        for k in (first_k, e.do("xori", first_k, 4)):
            swizzled = e.do("xori", in_row, e.do("muli", k, _CHUNK))
            places.append(e.do("addi", slab, e.do("addi", e.do("muli", k, SWIZZLED), swizzled)))
        return places

    def _read_words(self, places: list[str]) -> list[str]:
        e = self.e
        pair = "vector<2xi32>"
        words = []
        for place in places:
            loaded = e.value(
                f"llvm.load {e.pointer(place)} {{alignment = 8 : i64}} : !llvm.ptr<3> -> {pair}"
            )
            words.append([e.value(f"vector.extract {loaded}[{i}] : i32 from {pair}")
                          for i in range(2)])  # fmt: skip
        one, other = words
        registers = []
        for early, late in ((other, one), (one, other)):
            for side in range(2):
                choice = f"{self.is_odd}, {early[side]}, {late[side]}"
                registers.append(e.value(f"arith.select {choice} : i32"))
        return registers

    # --- 8 bits --------------------------------------------------------------------------

    def _rows(self, row: str) -> str:
        """Where the lane's row of a transposing ldmatrix is: 16 neighbours in M of one K, which
        become pairs. A lane of a quad needs four of K behind each other: two pairs, from two
        matrices. Of quads' lanes 2 and 3, these are exchanged, and so 8 rows are in all banks."""
        e = self.e
        number, which = e.do("andi", self.lane, 7), e.do("shrui", self.lane, 3)
        pair = e.do("shrui", number, 1)
        second = e.do("xori", e.do("andi", which, 1), e.do("shrui", pair, 1))
        k = e.do("addi", e.do("shli", pair, 2), e.do("andi", number, 1))
        k = e.do("addi", k, e.do("shli", second, 1))
        k = e.do("addi", k, e.do("shli", e.do("shrui", which, 1), 4))
        slab = e.do("muli", e.do("divui", row, self.width), SWIZZLED * self.width)
        in_row = e.do("andi", row, self.width - 1)
        swizzled = e.do("xori", in_row, e.do("muli", e.do("andi", k, 7), _CHUNK))
        return e.do("addi", slab, e.do("addi", e.do("muli", k, SWIZZLED), swizzled))

    def _select_bytes(self) -> None:
        """How bytes of two matrices become those of even columns, and of odd ones (prmt)."""
        e = self.e
        is_late = e.compare("ne", e.do("andi", self.lane, 2), 0)
        self.selectors = []
        for early, late in ((0x6420, 0x2064), (0x7531, 0x3175)):
            numbers = f"{e.constant(late, 'i32')}, {e.constant(early, 'i32')}"
            self.selectors.append(e.value(f"arith.select {is_late}, {numbers} : i32"))

    def _read_bytes(self, place: str) -> list[str]:
        e = self.e
        four = "!llvm.struct<(i32, i32, i32, i32)>"
        loaded = e.value(
            f"nvvm.ldmatrix {e.pointer(place)} {{num = 4 : i32, "
            "layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
            f"eltType = #nvvm.ld_st_matrix_elt_type<b16>}} : (!llvm.ptr<3>) -> {four}"
        )
        words = [e.value(f"llvm.extractvalue {loaded}[{i}] : {four}") for i in range(4)]
        registers = []
        for first, second in (words[:2], words[2:]):
            for selector in self.selectors:
                registers.append(
                    e.value(
                        'llvm.inline_asm asm_dialect = att "prmt.b32 $0, $1, $2, $3;", '
                        f'"=r,r,r,r" {first}, {second}, {selector} : (i32, i32, i32) -> i32'
                    )
                )
        return registers
