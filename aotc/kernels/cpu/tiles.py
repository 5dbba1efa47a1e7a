"""Matrix products in the tile registers of AMX (x86).

A tile register has up to 16 rows of up to 64 bytes. An instruction adds the product of a tile of A,
whose rows are contiguous along K, and a tile of B, which has a row for each group of k with the
group's elements of 16 columns, to a tile of 16 x 16 accumulators. The sizes of the registers are
part of the thread's state, the configuration. See Intel's Software Developer's Manual, volume 1,
chapter 18.

Integer results are exact. For bf16, the instruction rounds products and additions to nearest even,
in its own order, and treats denormal numbers as zeros, as AVX512_BF16 does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from aotc.attributes import READS_BY_ADDRESS
from aotc.builder import Buffer, Builder
from aotc.builder.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare,
    select,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.cpu.dots import Instruction, call_intrinsic
from aotc.kernels.cpu.levels import AMX
from aotc.kernels.cpu.vectors import VECTOR_BYTES, Vectors

# The most rows of a register, and thus the most groups of k that an instruction multiplies.
SIDE = 16
# The most groups of k of a product: as many of 32 columns take two thirds of a cache of 48 KiB.
MOST_GROUPS = 256
# The bytes of a group of k, and of an accumulator.
_WORD = 4
CONFIGURATION_BYTES = 64
# The registers: 2 x 2 for accumulators, row by row, 2 for A and 2 for B.
_SUMS, _OF_A, _OF_B = (0, 1, 2, 3), (4, 5), (6, 7)


class TileInstruction(Instruction, frozen=True, kw_only=True):
    """An instruction on tile registers: the intrinsic `llvm.x86.NAME`."""

    name: str


def tile_instructions(
    elements: tuple[str, str], unsigned: tuple[bool, bool], accumulator: str
) -> tuple[TileInstruction, ...]:
    """The instruction for A and B of these types, if there is one."""
    if (*elements, accumulator) == ("bf16", "bf16", "f32"):
        return (TileInstruction(AMX, "bf16", 2, name="tdpbf16ps"),)
    if (*elements, accumulator) == ("i8", "i8", "i32"):
        signs = "".join("u" if one else "s" for one in unsigned)
        return (TileInstruction(AMX, "i8", 4, name=f"tdpb{signs}d"),)
    return ()


def address_of(b: Builder, buffer: Buffer, at: Sequence[Number], *, reads: bool = True) -> Scalar:
    """The address of an element, as an index. `reads`: elements are only read by it."""
    base, offset, _, strides = b.metadata(buffer.value)
    for index, stride in zip((*buffer.leading, *at), strides, strict=True):
        offset = offset + index * stride
    attributes = {READS_BY_ADDRESS: "unit"} if reads else {}
    name = "memref.extract_aligned_pointer_as_index"
    start = Scalar(b.op(name, [base], "index", **attributes))
    return start + offset * buffer.element_bytes


# The address of an element, given two indices.
Addresses = Callable[[Number, Number], Scalar]


class TileProduct(Struct, frozen=True):
    """C += A · B. `a` has the addresses of elements by the row and the group of k, `b` by the group
    of k and the column, `c` by the row and the column; all are linear in the first index. Columns
    are those of whole tiles. If `is_first` holds, C's previous values are taken as 0.
    `configuration` is memory of `CONFIGURATION_BYTES`, as i32.

    Registers hold the accumulators of 32 rows and 32 columns, so that each of the four instructions
    of a step has one load of a tile.
    """

    v: Vectors
    instruction: TileInstruction
    a: Addresses
    b: Addresses
    c: Addresses
    configuration: Buffer
    is_first: Condition

    def multiply(self, rows: Number, columns: Number, groups: Number) -> None:
        """Computes `rows` rows and `columns` columns, by `groups` groups of k, which should be at
        most `MOST_GROUPS`. Those after the last `SIDE` whole ones are multiplied in a second pass,
        with shorter registers: nothing is read past A's and B's last k."""
        v, b = self.v, self.v.b
        whole, whole_rows = v.whole(groups, SIDE), v.whole(rows, 2 * SIDE)
        first = select(compare("eq", whole, 0), SIDE, whole)
        # Without any k, one pass sets C to 0.
        with b.loop(0, signed_maximum(groups, 1), first) as pass_:
            start = pass_.index
            is_whole = compare("slt", start, whole)
            bounds = start, select(is_whole, whole, groups)
            each = select(is_whole, SIDE, signed_maximum(groups - start, 1))
            with b.where(compare("sgt", whole_rows, 0)):
                self._configure(SIDE, SIDE, each)
                self._multiply_rows((0, whole_rows, 2), columns, bounds)
            with b.where(compare("slt", whole_rows, rows)):
                left = rows - whole_rows
                is_long = compare("sgt", left, SIDE)
                self._configure(
                    signed_minimum(left, SIDE), select(is_long, left - SIDE, SIDE), each
                )
                with b.where(is_long) as branch:
                    self._multiply_rows((whole_rows, rows, 2), columns, bounds)
                with branch.otherwise():
                    self._multiply_rows((whole_rows, rows, 1), columns, bounds)
        self._call("tilerelease")

    def _configure(self, first: Number, second: Number, groups: Number) -> None:
        """Sets the sizes of registers: the rows of A's two tiles, and the groups of k."""
        b = self.v.b
        pair = 0x10001
        whole, of_k = VECTOR_BYTES * pair, groups * (_WORD * pair)
        rows_of_b = groups * pair
        words: list[Number] = [1, 0, 0, 0, whole, whole, of_k, whole, *[0] * 8]
        words[12] = first * 0x101 + second * 0x1010000
        words[13] = first + second * 0x100 + rows_of_b * 0x101 * 0x10000
        numbers = [b.signed_cast(word, "i32") for word in words]
        vector = b.from_elements(numbers, f"vector<{len(words)}xi32>")
        b.store_vector(vector, self.configuration, [0])
        self._call("ldtilecfg", self._pointer(address_of(b, self.configuration, [0])))

    def _multiply_rows(
        self, rows: tuple[Number, Number, int], columns: Number, groups: tuple[Number, Number]
    ) -> None:
        """`rows`: the first row, the end, and the tiles of rows to compute at a time. The part
        of B for two tiles of columns stays in the nearest cache for all rows."""
        b, v = self.v.b, self.v
        (start, stop, tiles), count = rows, v.groups(columns, SIDE)
        whole = v.whole(count, 2)
        for first, last, each in ((0, whole, 2), (whole, count, 1)):
            with b.loop(first, last, each) as tile, b.loop(start, stop, tiles * SIDE) as row:
                self._multiply_tiles((row.index, tiles), (tile.index * SIDE, each), groups)

    def _multiply_tiles(
        self,
        rows: tuple[Scalar, int],
        columns: tuple[Number, int],
        groups: tuple[Number, Number],
    ) -> None:
        b, (row, row_tiles), (column, column_tiles) = self.v.b, rows, columns
        sums = {
            (i, j): (_SUMS[2 * i + j], self.c(row + i * SIDE, column + j * SIDE))
            for i in range(row_tiles)
            for j in range(column_tiles)
        }
        with b.where(self.is_first & compare("eq", groups[0], 0)) as is_new:
            for number, _ in sums.values():
                self._call("tilezero", self._register(number))
        with is_new.otherwise():
            for number, address in sums.values():
                self._move("tileloadd64", number, address, self.c)
        with b.loop(*groups, SIDE) as loop:
            k = loop.index
            for i, number in enumerate(_OF_A[:row_tiles]):
                self._move("tileloadd64", number, self.a(row + i * SIDE, k), self.a)
            for j, number in enumerate(_OF_B[:column_tiles]):
                self._move("tileloadd64", number, self.b(k, column + j * SIDE), self.b)
            for (i, j), (number, _) in sums.items():
                registers = [self._register(one) for one in (number, _OF_A[i], _OF_B[j])]
                self._call(self.instruction.name, *registers)
        for number, address in sums.values():
            self._move("tilestored64", number, address, self.c)

    def _move(self, name: str, number: int, address: Scalar, addresses: Addresses) -> None:
        """Loads or stores a register."""
        row_bytes = self.v.b.signed_cast(addresses(1, 0) - addresses(0, 0), "i64")
        self._call(name, self._register(number), self._pointer(address), row_bytes)

    def _pointer(self, address: Number) -> Value:
        b = self.v.b
        return b.op("llvm.inttoptr", [b.signed_cast(address, "i64")], "!llvm.ptr")

    def _register(self, number: int) -> Value:
        return self.v.b.constant(number, "i8")

    def _call(self, name: str, *operands: Value) -> None:
        call_intrinsic(self.v.b, name, operands, None)
