"""Multicast among the blocks of a cluster, which compute adjacent tiles of C.

Blocks in one row of tiles read the same tile of A, and blocks in one column the same tile of B.
Each of them copies a part of the tile to the shared memory of all of them (TMA multicast). A stage
may thus be overwritten only when all blocks that receive a part of it have released it.

Blocks are numbered in column-major order in the cluster.
"""

from __future__ import annotations

from aotc.builder import Builder, Launch
from aotc.builder.numbers import Number, Scalar, Value, compare
from aotc.kernels.hopper.pipeline import TmaPipeline
from aotc.kernels.hopper.smem import shared_pointer


class Cluster:
    """A cluster of `down` x `across` blocks that share operand tiles.

    With `cluster_split_k` > 1, the hardware cluster is that many blocks, which split K of one tile
    and share no operand tiles.

    `number`: this cluster's index among the `count` clusters of the grid. `row` and `column`: the
    position of this block's tile in its cluster. All are i32.
    """

    def __init__(
        self, b: Builder, launch: Launch, down: int, across: int, cluster_split_k: int = 1
    ) -> None:
        self.b, self.down, self.across = b, down, across
        self.size = down * across
        block, blocks = Scalar(b.i32(launch.block)), Scalar(b.i32(launch.blocks))
        if cluster_split_k > 1:
            block, blocks = block // cluster_split_k, blocks // cluster_split_k
        self.number, self.count = block // self.size, blocks // self.size
        rank = block % self.size
        self.row, self.column = rank % down, rank // down

    @property
    def sharers(self) -> int:
        """The number of blocks that write to a block's shared memory: those of its row and of its
        column, including itself."""
        return self.down + self.across - 1

    def arrive(self) -> None:
        """Arrives at the cluster's barrier."""
        if self.size > 1:
            self.b.op("nvvm.cluster.arrive")

    def wait(self) -> None:
        """Waits until all threads of the cluster have arrived. For a cluster of one block, this is
        the block's barrier."""
        if self.size > 1:
            self.b.op("nvvm.cluster.wait")
        else:
            self.b.barrier()

    def end(self) -> None:
        """Waits for the cluster before the end of the kernel, as other blocks may still arrive at
        this block's barriers."""
        if self.size > 1:
            self.arrive()
            self.wait()

    def multicast_masks(self) -> tuple[Value | None, Value | None]:
        """The multicast masks of A and B, as i16: one bit for each block in this block's row, and
        in its column. A mask is None if this is the only block."""
        b = self.b
        row = b.constant(sum(1 << self.down * number for number in range(self.across)), "i32")
        column = b.constant((1 << self.down) - 1, "i32")
        first, second = row << self.row, column << self.column * self.down
        masks = [b.op("arith.trunci", [mask], "i16") for mask in (first, second)]
        return masks[0] if self.across > 1 else None, masks[1] if self.down > 1 else None

    def is_sharer(self, number: Scalar) -> Scalar:
        """Whether `number` is the rank of a block in this block's row or column."""
        if self.size == 1:
            return compare("eq", number, 0)
        is_block = compare("ult", number, self.size)
        in_row = compare("eq", number % self.down, self.row)
        in_column = compare("eq", number // self.down, self.column)
        return Scalar(is_block & (in_row | in_column))

    def arrive_remotely(self, barrier: Scalar, number: Scalar) -> None:
        """Arrives at the mbarrier of block `number`, at the same address as this block's own."""
        b, cluster = self.b, "!llvm.ptr<7>"
        remote = b.op("nvvm.mapa", [shared_pointer(b, barrier), number], cluster)
        # Without the cluster scope, which would be a fence of all memory at each arrival.
        b.op("nvvm.mbarrier.arrive", [remote])


class ClusterPipeline(TmaPipeline):
    """A pipeline whose stages other blocks of the cluster write to as well."""

    def __init__(self, b: Builder, cluster: Cluster, stages: int, stage_bytes: int) -> None:
        super().__init__(b, stages, stage_bytes)
        self.cluster = cluster

    def init_barriers(self, consumer_warps: int) -> None:
        super().init_barriers(consumer_warps * self.cluster.sharers)

    def begin_consumer(self, lane: Scalar) -> None:
        self.lane = lane
        self.arrives = self.cluster.is_sharer(lane)

    def consumer_release(self, stage: Number) -> None:
        """Each warp arrives at the `empty` barrier of every block that writes to the stage."""
        if self.cluster.size == 1:
            super().consumer_release(stage)
            return
        with self.b.where(self.arrives):
            self.cluster.arrive_remotely(self.empty.address(stage), self.lane)
