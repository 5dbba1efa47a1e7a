"""Matrices that an epilogue reads: memory → subtiles in shared memory → registers, in the layout of
accumulators.

A thread holds two adjacent elements in each of many rows, so loads in this layout would take one
access per row. Instead, a warp loads whole rows of a subtile, 16 bytes per lane, while it stores
the previous subtile. The elements are then exchanged through the subtile's buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, Value, minimum
from aotc.chips import WARP
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    extract,
    ldmatrix,
    load,
    shared_pointer,
    store,
    synchronize_warp,
)
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, EpilogueOperand, Problem

_ACCESS = 16  # bytes
_CHUNKS = SWIZZLE_BYTES // _ACCESS  # accesses per row

# A thread's pairs of adjacent elements of a subtile, by the index of the group of 8 columns and by
# the half of the rows.
Pairs = dict[tuple[int, int], tuple[Value, Value]]


class MatrixOperands:
    """The epilogue operands that have C's shape and elements of its size. `shape`: the rows and
    columns of a subtile. `lane` and `sizes`, the sizes of C, are i32."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        values: Sequence[Value],
        shape: tuple[int, int],
        lane: Scalar,
        sizes: tuple[Scalar, Scalar],
    ) -> None:
        self.b, self.lane, self.sizes = b, lane, sizes
        self.rows, self.columns = shape
        self.operands = {
            number: (operand, value)
            for number, (operand, value) in enumerate(
                zip(problem.epilogue_operands, values, strict=True)
            )
            if is_matrix_operand(problem, operand)
        }

    # --- From memory ---------------------------------------------------------------------

    def load(self, at: Tile) -> dict[int, list[Value]]:
        """Loads this lane's part of the subtile: vectors of 16 bytes, by the operand's number."""
        return {
            number: list(self._load(operand, Buffer(value), at))
            for number, (operand, value) in self.operands.items()
        }

    def _load(self, operand: EpilogueOperand, buffer: Buffer, at: Tile) -> Iterator[Value]:
        b, width = self.b, _width(operand)
        column = at.column + self._chunk() * width
        place = b.index(minimum(column, self.sizes[1] - width))
        front = [] if at.batch is None else [b.index(at.batch)]
        for row in self._rows():
            inside = b.index(minimum(at.row + row, self.sizes[0] - 1))
            yield b.load_vector(buffer, [*front, inside, place], width, _ACCESS)

    def _chunk(self) -> Scalar:
        """The index of the 16 bytes of a row that this lane loads."""
        return Scalar(self.lane & (_CHUNKS - 1))

    def _rows(self) -> Iterator[Scalar]:
        """The rows of a subtile that this lane loads a part of."""
        at_once = WARP // _CHUNKS
        first = self.lane >> (_CHUNKS.bit_length() - 1)
        for number in range(self.rows // at_once):
            yield first + number * at_once

    # --- Through shared memory -----------------------------------------------------------

    def exchange(self, loaded: dict[int, list[Value]], address: Number) -> dict[int, Pairs]:
        """This lane's elements of the subtile in the layout of accumulators, exchanged through the
        buffer at `address`."""
        return {
            number: self._exchange(self.operands[number][0], vectors, address)
            for number, vectors in loaded.items()
        }

    def _exchange(
        self, operand: EpilogueOperand, vectors: Sequence[Value], address: Number
    ) -> Pairs:
        b = self.b
        for row, vector in zip(self._rows(), vectors, strict=True):
            in_row = (self._chunk() ^ (row & 7)) << (_ACCESS.bit_length() - 1)
            place = row * SWIZZLE_BYTES + in_row
            store(b, vector, shared_pointer(b, address + place), _ACCESS)
        synchronize_warp(b)
        is_word = ELEMENT_BYTES[operand.element or ""] == 4
        pair = f"vector<2x{operand.element}>"
        pairs = (self._load_words if is_word else self._load_halves)(address, pair)
        synchronize_warp(b)
        return pairs

    def _load_halves(self, address: Number, pair: str) -> Pairs:
        """Loads 16-bit elements in the layout that `stmatrix` writes."""
        b, found = self.b, Pairs()
        row = self.lane & 15
        side = self.lane >> 4 ^ (self.lane & 7)
        base = address + (row * SWIZZLE_BYTES + (side << 4))
        for group in range(0, self.columns // 8, 2):
            words = ldmatrix(b, shared_pointer(b, base ^ 16 * group))
            for number in range(4):
                word = extract(b, words, "i32", number)
                left, right = b.elements(b.op("llvm.bitcast", [word], pair))
                found[group + number // 2, number % 2] = left, right
        return found

    def _load_words(self, address: Number, pair: str) -> Pairs:
        """Loads 32-bit elements, each lane its own pairs."""
        b, found = self.b, Pairs()
        row, quad = self.lane >> 2, self.lane & 3
        side = quad >> 1 ^ row
        in_row = (side << 4) + ((quad & 1) << 3)
        base = address + (row * SWIZZLE_BYTES + in_row)
        for group in range(self.columns // 8):
            place = base ^ 32 * group
            for half in range(2):
                pointer = shared_pointer(b, place + 8 * half * SWIZZLE_BYTES)
                left, right = b.elements(load(b, pointer, pair, 8))
                found[group, half] = left, right
        return found


def is_matrix_operand(problem: Problem, operand: EpilogueOperand) -> bool:
    c, n = problem.c, problem.n
    names = ("batch", "row", "column") if problem.batched else ("row", "column")
    if operand.axes != tuple(map(Axis, names)) or operand.alignment % _ACCESS:
        return False
    size = ELEMENT_BYTES.get(operand.element or "")
    if size != ELEMENT_BYTES[c.element] or size not in (2, 4):
        return False
    # No access is to end behind a row: where nothing lies between rows, they have its multiple.
    has_layout = "," in operand.type
    return not has_layout if n is None else n % (_ACCESS // size) == 0


def _width(operand: EpilogueOperand) -> int:
    return _ACCESS // ELEMENT_BYTES[operand.element or ""]
