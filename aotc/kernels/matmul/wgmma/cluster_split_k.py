"""Where blocks of a cluster divide K (`hopper`): their sums → sums of all, in each block a part.

A block writes each part of its sums' columns to the shared memory of the block that stores it, in
the place of the ring. That one adds what all have written, in the order of the blocks: no buffer,
no second kernel, and the same bits each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.wgmma.tiles import DEPTH, Body, Tile

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.store import Store
    from aotc.kernels.matmul.wgmma.variants import Variant

MOST_SPLITS = 8  # blocks: the largest cluster that every GPU takes
_WARPGROUP = 128  # threads
# What a thread has of 8 columns of 64 rows, which is written and read at once.
_PIECE = 4
_PIECE_BYTES = _WARPGROUP * _PIECE * 4
_PIECE_TYPE = f"vector<{_PIECE}xf32>"
# What a store takes at least.
_LEAST_COLUMNS = 16


def parts_of(n: int, splits: int) -> int:
    """How many blocks store a part each of a tile of `n` columns, all of the same width."""
    most = n // _LEAST_COLUMNS
    return max(part for part in range(1, min(splits, most) + 1) if most % part == 0)


def sums_type(n: int) -> str:
    """Of a thread, for 64 rows of `n` columns."""
    return f"!llvm.struct<({', '.join(['f32'] * (n // 2))})>"


def can_split(problem: Problem, variant: Variant) -> bool:
    """Whether blocks may divide K so, and whether rows that are not fetched are none of C's, and
    lie behind each other."""
    if ELEMENT_BYTES[problem.a.element] != 2:
        return variant.splits == 1 and not variant.few
    is_plain = variant.cluster == 1 and not variant.ping_pong and not variant.swaps
    is_small = problem.m is None or problem.m <= variant.few
    has_few = is_small and variant.few % 8 == 0 and variant.m == 64 and not problem.a.transposed
    return (
        1 <= variant.splits <= MOST_SPLITS
        and (is_plain or (variant.splits == 1 and not variant.few))
        and (has_few or not variant.few)
    )


class Exchange:
    """Of a variant's tile; without splits, a block's sums are its own."""

    def __init__(self, e: Body, variant: Variant) -> None:
        self.e, self.n, self.m_blocks = e, variant.n, variant.m_blocks
        self.consumers, self.splits = variant.consumers, variant.splits
        self.is_early = variant.is_early
        self.parts = parts_of(self.n, self.splits)

    def begin(self) -> None:
        """Finds the block's place in the cluster, which is its part of K and of the columns."""
        if self.splits > 1:
            self.rank = self.e.value("nvvm.read.ptx.sreg.cluster.ctarank : i32")

    @property
    def bytes(self) -> int:
        """Of shared memory, for the sums of a part's columns from each block."""
        rows = 64 * self.m_blocks * self.consumers
        return rows * self.columns * self.splits * 4 if self.splits > 1 else 0

    @property
    def columns(self) -> int:
        """Of a part."""
        return self.n // self.parts

    def divide(self, stages: str, k: str) -> tuple[str, str]:
        """How many of K's stages are this block's, and where K begins for it. It has one at least,
        behind K's end where there is none for it."""
        e = self.e
        # What has no elements is said to have one, where K begins.
        has_none = e.value(f"arith.extui {e.compare('eq', k, 0)} : i1 to i32")
        each = e.do("divui", e.do("addi", stages, self.splits - 1), self.splits)
        each = e.do("maxui", each, 1)
        first = e.do("muli", self.rank, each)
        rest = e.do("maxsi", e.do("subi", stages, first), 1)
        return e.do("minui", rest, each), e.do("muli", e.do("addi", first, has_none), DEPTH)

    def store(self, sums: list[str], tile: Tile, address: str, consumer: str, store: Store) -> None:
        """Stores a consumer's sums, those of all blocks where they divide K. `address`: where the
        block's shared memory begins, which is free then."""
        if not self.is_early:
            self.e.line("nvvm.griddepcontrol launch_dependents")
        if self.splits == 1:
            store.store(sums, tile)
            return

        def store_part(sums: list[str], first: str) -> None:
            column = self.e.do("addi", tile.column, first)
            store.store(sums, Tile(tile.row, column, tile.batch))

        thread = self.e.do("andi", self.e.i32("%tx"), _WARPGROUP - 1)
        self.add(sums, address, consumer, thread, store_part)

    def add(
        self, sums: list[str], address: str, part: str, thread: str, store: Callable[..., None]
    ) -> None:
        """Calls `store` with the sums of all blocks, where this one has columns to store, and with
        the first of them. `part`: of the consumer; `thread`: in it. All consumers must come here,
        once."""
        e = self.e
        pieces = self.columns // 8  # of a part
        of_consumer = self.m_blocks * pieces * _PIECE_BYTES
        of_block = of_consumer * self.consumers
        base = e.do("addi", address, e.do("muli", part, of_consumer))
        base = e.do("addi", base, e.do("muli", thread, 4 * _PIECE))
        # All warps of the cluster have read their operands: its rings are free.
        self._meet()
        own = e.do("addi", base, e.do("muli", self.rank, of_block))
        for rank in range(self.parts):
            there = self._peer(own, rank)
            for block, values in enumerate(sums):
                for piece in range(pieces):
                    self._write(values, rank * pieces + piece, there, block * pieces + piece)
        self._meet()
        has_part = e.compare("ult", self.rank, self.parts)
        with e.block(f"scf.if {has_part}"):
            first = e.do("muli", self.rank, self.columns)
            blocks = [e.do("addi", base, rank * of_block) for rank in range(self.splits)]
            found = [self._read(blocks, block * pieces) for block in range(self.m_blocks)]
            store(found, first)

    def _meet(self) -> None:
        """Of the threads of the cluster; those that have ended are not waited for."""
        self.e.line("nvvm.cluster.arrive")
        self.e.line("nvvm.cluster.wait")

    def _write(self, sums: str, piece: int, there: str, place: int) -> None:
        e, type_ = self.e, sums_type(self.n)
        values = [
            e.value(f"llvm.extractvalue {sums}[{piece * _PIECE + i}] : {type_}")
            for i in range(_PIECE)
        ]
        vector = e.value(f"vector.from_elements {', '.join(values)} : {_PIECE_TYPE}")
        at = e.value(
            f"llvm.getelementptr {there}[{place * _PIECE_BYTES}] : (!llvm.ptr<7>) -> !llvm.ptr<7>, "
            "i8"
        )
        e.line(f"llvm.store {vector}, {at} {{alignment = 16 : i64}} : {_PIECE_TYPE}, !llvm.ptr<7>")

    def _peer(self, address: str, rank: int) -> str:
        """The same address in another block."""
        e = self.e
        pointer, number = e.pointer(address), e.constant(rank, "i32")
        return e.value(f"nvvm.mapa {pointer}, {number} : !llvm.ptr<3> -> !llvm.ptr<7>")

    def _read(self, blocks: list[str], first: int) -> str:
        """The sums of this block's columns."""
        e, type_ = self.e, sums_type(self.columns)
        result = e.value(f"llvm.mlir.undef : {type_}")
        for piece in range(self.columns // 8):
            place = (first + piece) * _PIECE_BYTES
            total = ""
            for block in blocks:
                at = e.pointer(e.do("addi", block, place))
                one = e.value(
                    f"llvm.load {at} {{alignment = 16 : i64}} : !llvm.ptr<3> -> {_PIECE_TYPE}"
                )
                total = e.value(f"arith.addf {total}, {one} : {_PIECE_TYPE}") if total else one
            for i in range(_PIECE):
                value = e.value(f"vector.extract {total}[{i}] : f32 from {_PIECE_TYPE}")
                result = e.value(
                    f"llvm.insertvalue {value}, {result}[{piece * _PIECE + i}] : {type_}"
                )
        return result
