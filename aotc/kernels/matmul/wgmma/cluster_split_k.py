"""Cluster split-K: the blocks of a cluster split K of one tile, and reduce their accumulators
through distributed shared memory.

Each block stores a part of the tile's columns. A block writes each part of its accumulators to the
shared memory of the block that stores it, where the stages were. That block adds the parts in the
order of the blocks. There is no buffer in global memory and no second kernel, and results are
deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value, compare, maximum, minimum, signed_maximum
from aotc.kernels.hopper.cta import WARPGROUP, Cta
from aotc.kernels.hopper.mma import MMA_M
from aotc.kernels.hopper.smem import (
    insert,
    load,
    shared_pointer,
    store,
    struct_type,
    undefined,
    unpack,
)
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.hopper.tma import swizzled_width
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.mlir import ir

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.epilogue import TmaStoreEpilogue
    from aotc.kernels.matmul.wgmma.variants import Variant

MOST_SPLITS = 8  # blocks: the largest portable cluster size
# The accumulators of a thread in 8 columns of 64 rows, which are one access to shared memory.
_VECTOR = 4
_VECTOR_TYPE = f"vector<{_VECTOR}xf32>"
_GROUP_BYTES = WARPGROUP * _VECTOR * 4
# The smallest width that an epilogue supports.
_LEAST_COLUMNS = 16
_K_EXTENT = swizzled_width("f16")  # the K extent of a stage


def parts_of(n: int, cluster_split_k: int) -> int:
    """The number of blocks that store a tile of `n` columns. Each stores a part of equal width."""
    most = n // _LEAST_COLUMNS
    return max(part for part in range(1, min(cluster_split_k, most) + 1) if most % part == 0)


def can_split(problem: Problem, variant: Variant) -> bool:
    """Whether the variant's cluster split-K and its `small_m` are legal: the rows of A that are not
    copied must be outside of C, and behind the copied rows in the stage."""
    if ELEMENT_BYTES[problem.a.element] != 2:
        return variant.cluster_split_k == 1 and not variant.small_m
    is_plain = variant.cluster == 1 and not variant.ping_pong and not variant.transposes_c
    is_small = problem.m is None or problem.m <= variant.small_m
    has_small_m = (
        is_small and variant.small_m % 8 == 0 and variant.m == 64 and not problem.a.transposed
    )
    return (
        1 <= variant.cluster_split_k <= MOST_SPLITS
        and (is_plain or (variant.cluster_split_k == 1 and not variant.small_m))
        and (has_small_m or not variant.small_m)
    )


def stored_columns(variant: Variant) -> int:
    """The columns of the part of a tile that one block stores."""
    return variant.n // parts_of(variant.n, variant.cluster_split_k)


def exchanged_bytes(variant: Variant) -> int:
    """The bytes of a block's shared memory that receive the accumulators of its columns from all
    blocks of the cluster."""
    if variant.cluster_split_k == 1:
        return 0
    rows = MMA_M * variant.m_blocks * variant.consumers
    return rows * stored_columns(variant) * variant.cluster_split_k * 4


class ClusterSplitK:
    """The reduction among the blocks of a cluster that split K. Without cluster split-K, a block
    stores its own accumulators.

    `rank`: the block's rank in the cluster, which is the index of its part of K and of its part of
    the columns.
    """

    def __init__(self, b: Builder, variant: Variant) -> None:
        self.b, self.variant, self.cluster_split_k = b, variant, variant.cluster_split_k
        self.parts, self.columns = (
            parts_of(variant.n, variant.cluster_split_k),
            stored_columns(variant),
        )
        if self.cluster_split_k > 1:
            self.rank = Scalar(b.op("nvvm.read.ptx.sreg.cluster.ctarank", (), "i32"))

    def divide(self, k_tiles: Number, k: Number) -> tuple[Number, Number]:
        """The number of K stages of this block, at least 1, and its first index of K. A block
        without a part has one stage beyond the end of K."""
        b = self.b
        # The tensor map of a matrix without elements has one at K's beginning, so start past it.
        has_none = Scalar(b.op("arith.extui", [compare("eq", k, 0)], "i32"))
        each = maximum((k_tiles + (self.cluster_split_k - 1)) // self.cluster_split_k, 1)
        first = self.rank * each
        rest = signed_maximum(k_tiles - first, 1)
        return minimum(rest, each), (first + has_none) * _K_EXTENT

    def store(
        self,
        accumulators: list[Value],
        tile: Tile,
        cta: Cta,
        consumer: Number,
        epilogue: TmaStoreEpilogue,
    ) -> None:
        """Stores a consumer's accumulators. With cluster split-K, it stores the sums over all
        blocks, which are exchanged through the stages in shared memory."""
        if not self.variant.launches_dependents_early:
            self.b.op("nvvm.griddepcontrol", kind="#nvvm<grid_dep_action launch_dependents>")
        if self.cluster_split_k == 1:
            epilogue.store(accumulators, tile)
            return

        def store_part(sums: list[Value], first: Number) -> None:
            epilogue.store(sums, Tile(tile.row, tile.column + first, tile.batch))

        thread = cta.thread & (WARPGROUP - 1)
        self.reduce(accumulators, cta.address, consumer, thread, store_part)

    def reduce(
        self,
        accumulators: Sequence[Value],
        address: Number,
        consumer: Number,
        thread: Number,
        store_sums: Callable[[list[Value], Number], None],
    ) -> None:
        """Reduces the accumulators of all blocks. If this block has columns to store, calls
        `store_sums` with their sums and the first column. `thread`: the thread's index in the
        consumer warpgroup. All consumers must execute this code exactly once."""
        b, m_blocks = self.b, self.variant.m_blocks
        groups = self.columns // 8  # of a part
        of_consumer = m_blocks * groups * _GROUP_BYTES
        of_block = of_consumer * self.variant.consumers
        base = address + consumer * of_consumer + thread * (4 * _VECTOR)
        # After this, all warps of the cluster have read their operands, so the stages are free.
        self._synchronize_cluster()
        own = base + self.rank * of_block
        for rank in range(self.parts):
            remote = self._remote_pointer(own, rank)
            for block, values in enumerate(accumulators):
                for group in range(groups):
                    self._write(values, rank * groups + group, remote, block * groups + group)
        self._synchronize_cluster()
        with b.where(compare("ult", self.rank, self.parts)):
            first = self.rank * self.columns
            blocks = [base + rank * of_block for rank in range(self.cluster_split_k)]
            sums = [self._add(blocks, block * groups) for block in range(m_blocks)]
            store_sums(sums, first)

    def _synchronize_cluster(self) -> None:
        """Waits for the threads of the cluster, except those that have exited."""
        self.b.op("nvvm.cluster.arrive")
        self.b.op("nvvm.cluster.wait")

    def _write(self, accumulators: Value, group: int, remote: Value, place: int) -> None:
        b, first = self.b, group * _VECTOR
        values = unpack(b, accumulators, "f32", range(first, first + _VECTOR))
        vector = b.op("vector.from_elements", values, _VECTOR_TYPE)
        pointer = b.op(
            "llvm.getelementptr",
            [remote],
            remote.type,
            elem_type=ir.TypeAttr.get(b.type("i8")),
            rawConstantIndices=ir.DenseI32ArrayAttr.get([place * _GROUP_BYTES]),
        )
        store(b, vector, pointer, 16)

    def _remote_pointer(self, address: Number, rank: int) -> Value:
        """The address in block `rank` of the cluster that corresponds to `address`."""
        operands = [shared_pointer(self.b, address), self.b.constant(rank, "i32")]
        return self.b.op("nvvm.mapa", operands, "!llvm.ptr<7>")

    def _add(self, blocks: Sequence[Number], first: int) -> Value:
        """The sums of this block's columns."""
        b = self.b
        result = undefined(b, struct_type("f32", self.columns // 2))
        for group in range(self.columns // 8):
            total = None
            for block in blocks:
                pointer = shared_pointer(b, block + (first + group) * _GROUP_BYTES)
                one = load(b, pointer, _VECTOR_TYPE, 16)
                total = one if total is None else b.op("arith.addf", [total, one], _VECTOR_TYPE)
            for i in range(_VECTOR):
                result = insert(b, b.extract(total, [i]), result, group * _VECTOR + i)
        return result
