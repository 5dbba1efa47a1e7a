"""The kernel: cp.async copies Q, K and V, mma.sync computes scores and O (FlashAttention-2, Dao).

A block computes a tile of O, and each of its warps some tiles of 16 rows. It iterates over K and V
in tiles of some keys. For each, it computes S = Q · Kᵀ and P, the exponentials of S, both in
registers, and O = O · rescale + P · V, with P as the A operand. Scores are never in memory.

Scores and O are f32. P is converted to Q's type before the second matmul, and O is divided by the
row sums after it. This is another order than that of the operations, with the same error bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Buffer, Builder, Launch
from aotc.builder.numbers import Number, Scalar, Value, ceil_divide, compare, minimum
from aotc.chips import WARP
from aotc.kernels.attention.mma_sync.epilogue import Epilogue, Place
from aotc.kernels.attention.mma_sync.mainloop import Mainloop
from aotc.kernels.attention.mma_sync.operands import operands_of
from aotc.kernels.attention.mma_sync.tiles import TILE, Tile, Variant
from aotc.kernels.attention.problem import Attention

_ALL_LANES, _LAST_LANE = -1, WARP - 1


class Kernel:
    """Builds the kernel. Values that its methods share are members."""

    def __init__(
        self, b: Builder, problem: Attention, variant: Variant, arguments: Sequence[Value]
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.operands = operands_of(problem, variant)
        self.arguments = list(map(Buffer, arguments))

    def build(self) -> None:
        b, variant = self.b, self.variant
        q, k, *_ = self.arguments
        self.host_batch: Number = b.dim(q.value, 0)
        self.host_queries, self.host_keys = b.dim(q.value, 1), b.dim(k.value, 1)
        self.host_batch = self.host_batch * max(self.problem.heads[0], 1)
        blocks = ceil_divide(self.host_queries, variant.m) * self.host_batch
        shared_bytes = sum(operand.bytes for operand in self.operands)
        with (
            b.where(compare("ne", blocks, 0)),
            b.launch(blocks, variant.threads, shared_bytes) as launch,
        ):
            self._compute_tile(launch)

    # --- The kernel ----------------------------------------------------------------------

    def _compute_tile(self, launch: Launch) -> None:
        b, problem, variant = self.b, self.problem, self.variant
        thread = Scalar(b.i32(launch.thread))
        lane = thread & (WARP - 1)
        warp = self._broadcast(thread // WARP)
        shared = b.shared_memory()
        queries = self._size(problem.q.sizes[0], self.host_queries)
        keys = self._size(problem.k.sizes[0], self.host_keys)
        tile = self._tile(b.i32(launch.block), queries)
        offset = 0
        for operand, source in zip(self.operands, self.arguments, strict=False):
            operand.begin(b, source.value, shared, offset, thread, tile.batch)
            offset += operand.bytes
        warp_row = warp * (TILE * variant.tiles)
        *_, o = self.arguments[:4]
        mainloop = Mainloop(b, problem, variant, self.operands, self.arguments[4:])
        mainloop.begin(tile, lane, warp_row, queries, keys)
        rows = mainloop.run(tile)
        place = Place(tile.batch, tile.row + warp_row, warp_row, queries)
        softmax = mainloop.softmax
        epilogue = Epilogue(b, problem, o, self.operands[0], place)
        epilogue.store(rows, lane, softmax.row, softmax.column)

    def _broadcast(self, warp: Number) -> Scalar:
        """The value, by a shuffle that tells the compiler that it is uniform over the warp."""
        b = self.b
        lanes, first, clamp = (b.constant(one, "i32") for one in (_ALL_LANES, 0, _LAST_LANE))
        operands = [lanes, warp, first, clamp]
        found: Scalar = b.op("nvvm.shfl.sync", operands, "i32", kind="#nvvm<shfl_kind idx>")
        return found

    def _size(self, known: int | None, host: Scalar) -> Scalar:
        found: Scalar = self.b.value(self.b.i32(host) if known is None else known, "i32")
        return found

    def _tile(self, number: Number, queries: Scalar) -> Tile:
        """The coordinates of tile `number`. Tiles are numbered down the rows of `group` matrices
        together. With causality they are numbered up, as the last rows have the most keys, so that
        the longest blocks start first."""
        variant = self.variant
        batches = self.b.i32(self.host_batch)
        down = (queries + (variant.m - 1)) // variant.m
        in_group = down * variant.group
        first = number // in_group * variant.group
        place = number % in_group
        width = minimum(batches - first, variant.group)
        row, batch = place // width, first + place % width
        if self.problem.causal:
            row = down - 1 - row
        return Tile(row * variant.m, batch)
