"""The kernel of a matrix-vector product with packed weights by f32 multiply-adds.

A warp computes some rows. A thread loads 16 bytes of each of its warp's rows, and the corresponding
elements of x once for all rows. Elements of W are computed in vectors (`body`). Accumulators are
f32; lanes add theirs by shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, compare, divide_up, minimum, unravel
from aotc.chips import WARP
from aotc.kernels.matmul.dequantized.body import weights
from aotc.kernels.matmul.dequantized.operands import Operands, Result
from aotc.kernels.matmul.dequantized.recognition import CHUNK, Product
from aotc.kernels.matmul.scalar import launch
from aotc.kernels.warp_reduction import butterfly_distances, reduce_over_lanes


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `warps`: the warps of a block. `rows`: the rows of a warp. `unroll`:
    the chunks of each row that a thread loads before it uses one."""

    warps: int = 4
    rows: int = 2
    unroll: int = 2
    overlaps_previous: bool = False


class Kernel:
    """Builds the kernel at the insertion point."""

    def __init__(self, b: Builder, product: Product, variant: Variant, result: Result) -> None:
        self.b, self.product, self.variant = b, product, variant
        self.operands = Operands(b, product, result)
        self.rows = self.operands.rows

    def build(self) -> None:
        b, variant = self.b, self.variant
        rows_of_block = variant.warps * variant.rows
        strips = divide_up(self.rows, rows_of_block)
        blocks, threads = strips * self.product.columns, variant.warps * WARP
        early = variant.overlaps_previous
        with launch(b, blocks, threads, overlaps_previous=early) as block:
            warp, self.lane = unravel(block.thread, WARP)
            strip, self.column = unravel(block.index, self.product.columns)
            self._compute((strip * variant.warps + warp) * variant.rows)

    def _compute(self, first: Number) -> None:
        b, variant = self.b, self.variant
        is_whole = self.rows % (variant.warps * variant.rows) == 0
        numbers = [first + i for i in range(variant.rows)]
        own = numbers if is_whole else [minimum(one, self.rows - 1) for one in numbers]
        type_ = b.type(f"vector<{CHUNK}xf32>")
        sums = [b.zero(type_)] * variant.rows
        step, end = WARP * CHUNK, self.product.row_bytes
        whole = end // (step * variant.unroll) * (step * variant.unroll)
        begin = self.lane * CHUNK
        if whole:
            sums = self._loop(own, begin, whole, step, variant.unroll, sums)
        if whole != end:
            sums = self._loop(own, begin + whole, end, step, 1, sums)
        totals = [reduce(b.add, b.elements(one)) for one in sums]
        added, number, writes = reduce_over_lanes(
            b, self.lane, totals, butterfly_distances(WARP, 1)
        )
        with b.where(writes):
            for i, total in enumerate(added):
                row = first + (number + i)
                is_there = is_whole or compare("ult", row, self.rows)
                with b.where(is_there):
                    self.operands.store(self.column, row, total)

    def _loop(
        self,
        rows: Sequence[Number],
        begin: Number,
        end: int,
        step: int,
        unroll: int,
        sums: Sequence[Value],
    ) -> list[Value]:
        b, operands = self.b, self.operands
        with b.loop(begin, end, step * unroll, sums) as loop:
            places = [loop.index + i * step for i in range(unroll)]
            loaded = [[operands.load_words(row, place) for row in rows] for place in places]
            found = list(loop.carried)
            for place, words in zip(places, loaded, strict=True):
                x = operands.load_x(self.column, place)
                for i, row in enumerate(rows):
                    others = operands.load_others(row, place)
                    found[i] = self._multiply(x, words[i], others, found[i])
            loop.next(found)
        return loop.results

    def _multiply(
        self,
        x: Sequence[Value],
        words: Sequence[Value],
        others: Sequence[dict[int, Value]],
        sums: Value,
    ) -> Value:
        """The accumulators plus the products of 16 bytes of a row."""
        b = self.b
        for inner, own, factors in zip(self.operands.inner, others, x, strict=True):
            w = weights(b, self.product, words, own, inner)
            # A fused multiply-add, if the chip has one.
            sums = b.multiply_add(b.convert(factors, sums.type), w, sums)
        return sums
