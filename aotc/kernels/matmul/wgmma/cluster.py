"""Multicast among the blocks of a cluster, which compute neighbouring tiles of C.

Those in one row of tiles have the same tile of A, those in one column the same of B: each copies a
part of it to all of them (TMA's multicast). So a stage may be overwritten when all blocks that have
a part of it are done with theirs.

Blocks are numbered down, then across.
"""

from __future__ import annotations

from aotc.builder import Builder, Launch
from aotc.kernels.hopper.pipeline import TmaPipeline
from aotc.kernels.hopper.smem import shared_pointer
from aotc.numbers import Number, Scalar, Value, compare


class Cluster:
    """A cluster of `down` times `across` blocks. With `cluster_split_k`, it is one of that many
    blocks which divide K of one tile (`cluster_split_k`), and share nothing.

    `number` and `count`: of this cluster, and of all. `row` and `column`: where this block's tile
    is among those of its cluster. All are i32.
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
        """How many blocks write to one's shared memory: those of its row and of its column."""
        return self.down + self.across - 1

    def arrive(self) -> None:
        """Says that this thread is here."""
        if self.size > 1:
            self.b.op("nvvm.cluster.arrive")

    def wait(self) -> None:
        """Waits until all threads of the cluster have said so."""
        if self.size > 1:
            self.b.op("nvvm.cluster.wait")
        else:
            self.b.barrier()

    def end(self) -> None:
        """Others may still arrive at this block's barriers."""
        if self.size > 1:
            self.arrive()
            self.wait()

    def multicast_masks(self) -> tuple[Value | None, Value | None]:
        """For A and B: the blocks in this block's row, and those in its column, a bit of an i16
        each. None where a block is alone."""
        b = self.b
        row = b.constant(sum(1 << self.down * number for number in range(self.across)), "i32")
        column = b.constant((1 << self.down) - 1, "i32")
        first, second = row << self.row, column << self.column * self.down
        masks = [b.op("arith.trunci", [mask], "i16") for mask in (first, second)]
        return masks[0] if self.across > 1 else None, masks[1] if self.down > 1 else None

    def is_sharer(self, number: Scalar) -> Scalar:
        """Whether it is the number of a block in this block's row or column."""
        if self.size == 1:
            return compare("eq", number, 0)
        is_block = compare("ult", number, self.size)
        in_row = compare("eq", number % self.down, self.row)
        in_column = compare("eq", number // self.down, self.column)
        return Scalar(is_block & (in_row | in_column))

    def arrive_remotely(self, barrier: Scalar, number: Scalar) -> None:
        """Arrives at the mbarrier of a block, which is where this block has its own."""
        b, cluster = self.b, "!llvm.ptr<7>"
        remote = b.op("nvvm.mapa", [shared_pointer(b, barrier), number], cluster)
        # No scope of the cluster: that would be a fence of all memory, each time.
        b.op("nvvm.mbarrier.arrive", [remote])


class ClusterPipeline(TmaPipeline):
    """A pipeline of stages that other blocks of the cluster write to, too."""

    def __init__(self, b: Builder, cluster: Cluster, stages: int, stage_bytes: int) -> None:
        super().__init__(b, stages, stage_bytes)
        self.cluster = cluster

    def init_barriers(self, consumer_warps: int) -> None:
        super().init_barriers(consumer_warps * self.cluster.sharers)

    def begin_consumer(self, lane: Scalar) -> None:
        self.lane = lane
        self.arrives = self.cluster.is_sharer(lane)

    def consumer_release(self, stage: Number) -> None:
        """Each warp says so to all blocks that write there."""
        if self.cluster.size == 1:
            super().consumer_release(stage)
            return
        with self.b.where(self.arrives):
            self.cluster.arrive_remotely(self.empty.address(stage), self.lane)
