"""Loads of the fragments of a warp's tile from shared memory."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.matmul.mma_sync.tiles import Coordinates, OperandTile
from aotc.kernels.tensor_core import Mma, fragment, halves, ldmatrix


class FragmentLoads(ABC):
    """Loads the fragments of A or of B for `count` adjacent instructions. The warp's tile begins at
    `first` along M or N."""

    def __init__(
        self,
        b: Builder,
        mma: Mma,
        tiles: OperandTile,
        ring: Buffer,
        count: int,
        coordinates: Coordinates,
        *,
        is_a: bool,
    ) -> None:
        self.b, self.mma, self.tiles, self.ring, self.count = b, mma, tiles, ring, count
        self.is_a = is_a
        self.first = coordinates.warp_row if is_a else coordinates.warp_column
        self.begin(coordinates)

    @abstractmethod
    def begin(self, coordinates: Coordinates) -> None:
        """Computes the lane's addresses."""

    @abstractmethod
    def load(self, stage: Number, block: int) -> list[Value]:
        """Loads the fragments of a block of K of a stage's tile. A block has the K extent of an
        instruction."""


def fragment_loads(tiles: OperandTile) -> type[FragmentLoads]:
    if tiles.transposes_pairs:
        return LdmatrixOfPairs
    if tiles.reads_two:
        return LoadsOfTwo
    return Ldmatrix if tiles.uses_ldmatrix else Loads


class Ldmatrix(FragmentLoads):
    """Loads by ldmatrix, to which each lane passes the address of a row of 16 bytes. Four matrices
    of 8 rows are 16 x 16 elements of 16 bits, which are one fragment of A, or two of B."""

    def begin(self, coordinates: Coordinates) -> None:
        tiles, lane = self.tiles, coordinates.lane
        # In A, the second matrix is further in M; in B, further in K.
        if tiles.is_k_major == self.is_a:
            row, chunk = lane % 16, lane // 16
        else:
            upper = lane // 16 * 8
            row, chunk = lane % 8 + upper, lane // 8 % 2
        column = chunk * tiles.chunk
        loads = range(self.count if self.is_a else self.count // 2)
        blocks = range(tiles.k // self.mma.k)
        if tiles.is_k_major:
            self.rows = [self.first + row + 16 * load for load in loads]
            self.columns = [tiles.swizzled(row, column + self.mma.k * block) for block in blocks]
        else:
            self.rows = [row + self.mma.k * block for block in blocks]
            self.columns = [tiles.swizzled(row, self.first + column + 16 * load) for load in loads]

    def load(self, stage: Number, block: int) -> list[Value]:
        is_k_major = self.tiles.is_k_major
        fragments = []
        for load in range(self.count if self.is_a else self.count // 2):
            row, column = (load, block) if is_k_major else (block, load)
            at = [stage, self.rows[row], self.columns[column]]
            four = ldmatrix(self.b, self.ring, at, transpose=not is_k_major)
            fragments += [four] if self.is_a else halves(self.b, four)
        return fragments


class LdmatrixOfPairs(FragmentLoads):
    """Loads i8 by ldmatrix of pairs, as f16, which transposes 8 rows (along K) of 16 elements: a
    lane gets the elements 2g and 2g + 1 of two rows. Two matrices, of rows 0, 1, 4, 5, ... and of
    rows 2, 3, 6, 7, ..., together have a lane's four rows. The instruction's rows of A, or columns
    of B, are thus first the even ones of 16, then the odd ones. The ring has the type of pairs,
    f16."""

    def begin(self, coordinates: Coordinates) -> None:
        tiles, lane = self.tiles, coordinates.lane
        matrix, row = lane // 8, lane % 8
        row = row // 2 * 4 + row % 2
        row = row + matrix // 2 * 16
        row = row + matrix % 2 * 2
        loads = range(self.count if self.is_a else self.count // 2)
        self.rows = [row + self.mma.k * block for block in range(tiles.k // self.mma.k)]
        self.columns = [tiles.swizzled(row, self.first + 16 * load) // 2 for load in loads]

    def load(self, stage: Number, block: int) -> list[Value]:
        b, fragments = self.b, []
        for column in self.columns:
            pairs = ldmatrix(b, self.ring, [stage, self.rows[block], column], transpose=True)
            even, odd = self._separated(pairs)
            if self.is_a:
                fragments.append(fragment(b, [even[0], odd[0], even[1], odd[1]]))
            else:
                fragments += [fragment(b, even), fragment(b, odd)]
        return fragments

    def _separated(self, pairs: Value) -> list[list[Value]]:
        """The registers of even elements and those of odd elements, each for both halves of K."""
        b = self.b
        bytes_ = b.op("vector.bitcast", [pairs], "vector<4x4xi8>")
        registers = [b.extract(bytes_, [number]) for number in range(4)]
        return [
            [
                b.op("vector.shuffle", both, "vector<4xi8>", mask=f"array<i64: {order}>")
                for both in (registers[:2], registers[2:])
            ]
            for order in ("0, 2, 4, 6", "1, 3, 5, 7")
        ]


class LoadsOfTwo(FragmentLoads):
    """Loads of 16 bytes: two f64 elements that are adjacent in memory. They are adjacent along K,
    or along M, and then they are used as rows of A that are 8 apart in the instruction."""

    def begin(self, coordinates: Coordinates) -> None:
        group, is_k_major = coordinates.group, self.tiles.is_k_major
        self.in_group = coordinates.in_group * 2
        self.at = self.first + (group if is_k_major else group * 2)
        self.halves = 2 if self.is_a else 1

    def load(self, stage: Number, block: int) -> list[Value]:
        mma, find = self.mma, self._along_k if self.tiles.is_k_major else self._along_m
        found = find(stage, block)
        registers = range(self.halves * mma.k // 4)
        type_ = mma.a_type if self.is_a else mma.b_type
        return [
            self.b.from_elements([found[number, register] for register in registers], type_)
            for number in range(self.count)
        ]

    def _along_k(self, stage: Number, block: int) -> dict[tuple[int, int], Value]:
        """Elements by their fragment and register."""
        found = {}
        for number in range(self.count):
            for half, k in itertools.product(range(self.halves), range(0, self.mma.k // 4, 2)):
                row = self.at + (number * 8 * self.halves + 8 * half)
                column = self.in_group + (block * self.mma.k + 4 * k)
                for i, value in enumerate(self.b.load_elements(self.ring, [stage, row, column], 2)):
                    found[number, half + self.halves * (k + i)] = value
        return found

    def _along_m(self, stage: Number, block: int) -> dict[tuple[int, int], Value]:
        found = {}
        for number, k in itertools.product(range(self.count), range(self.mma.k // 4)):
            row = self.in_group + (block * self.mma.k + 8 * (k // 2) + k % 2)
            at: Sequence[Number] = [stage, row, self.at + 16 * number]
            for half, value in enumerate(self.b.load_elements(self.ring, at, 2)):
                found[number, half + 2 * k] = value
        return found


class Loads(FragmentLoads):
    """Loads single elements, in the layout of lanes that the PTX manual defines."""

    def begin(self, coordinates: Coordinates) -> None:
        self.at = self.first + coordinates.group
        self.k = coordinates.in_group * self.mma.width

    def load(self, stage: Number, block: int) -> list[Value]:
        mma = self.mma
        registers, type_, size = (
            (mma.a_registers, mma.a_type, mma.m)
            if self.is_a
            else (mma.b_registers, mma.b_type, mma.n)
        )
        return [
            self.b.from_elements(
                [
                    self._element(stage, block, number * size, register, i)
                    for register in range(registers)
                    for i in range(mma.width)
                ],
                type_,
            )
            for number in range(self.count)
        ]

    def _element(self, stage: Number, block: int, first: int, register: int, i: int) -> Value:
        mma, rows = self.mma, self.mma.m // 8 if self.is_a else 1
        outer = self.at + (first + 8 * (register % rows))
        k = self.k + (block * mma.k + 4 * mma.width * (register // rows) + i)
        at = [stage, outer, k] if self.tiles.is_k_major else [stage, k, outer]
        return self.b.load(self.ring, at)
