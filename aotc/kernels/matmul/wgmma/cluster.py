"""What a kernel of `hopper` does with the other blocks of its cluster.

They make tiles of C beside and below each other. Those in one row of tiles have the same tile of A,
those in one column the same of B: each brings a part of it to all of them (TMA's multicast). So a
stage may be overwritten when all blocks that have a part of it are done with theirs.

Blocks are numbered down, then across.
"""

from __future__ import annotations

from aotc.kernels.matmul.wgmma.pipeline import Ring
from aotc.kernels.matmul.wgmma.tiles import Body


class Cluster:
    """Of `down` times `across` blocks; of one, there is nothing to do. With `splits` it is of that
    many which divide K of one tile (`split`), and share nothing.

    `begin` is first. `number` and `count`: of this cluster, and of all. `below` and `beside`: where
    this block is in its cluster. All are names of i32 values.
    """

    def __init__(self, e: Body, down: int, across: int, splits: int = 1) -> None:
        self.e, self.down, self.across, self.splits = e, down, across, splits

    @property
    def size(self) -> int:
        return self.down * self.across

    @property
    def sharers(self) -> int:
        """How many blocks write to one's shared memory: those of its row and of its column."""
        return self.down + self.across - 1

    def launched(self) -> str:
        """What a gpu.launch says of it. Of the host's part."""
        if self.size * self.splits == 1:
            return ""
        size, one = self.e.constant(self.size * self.splits), self.e.constant(1)
        return f"clusters(%cx, %cy, %cz) in (%ox = {size}, %oy = {one}, %oz = {one}) "

    def begin(self, block: str, blocks: str) -> None:
        e = self.e
        if self.splits > 1:
            block, blocks = (e.do("divui", one, self.splits) for one in (block, blocks))
        self.number, self.count = e.do("divui", block, self.size), e.do("divui", blocks, self.size)
        rank = e.do("remui", block, self.size)
        self.below, self.beside = e.do("remui", rank, self.down), e.do("divui", rank, self.down)

    def arrive_all(self) -> None:
        """Says that this thread is here."""
        if self.size > 1:
            self.e.line("nvvm.cluster.arrive")

    def await_all(self) -> None:
        """Until all threads of the cluster have said so."""
        self.e.line("nvvm.cluster.wait" if self.size > 1 else "gpu.barrier")

    def end(self) -> None:
        """Others may still arrive at this block's barriers."""
        if self.size > 1:
            self.arrive_all()
            self.await_all()

    def masks(self) -> tuple[str, str]:
        """Of the blocks in this block's row, and of those in its column: a bit each, as i16."""
        e = self.e
        row = e.constant(sum(1 << self.down * number for number in range(self.across)), "i32")
        column = e.constant((1 << self.down) - 1, "i32")
        first = e.do("shli", row, self.below)
        second = e.do("shli", column, e.do("muli", self.beside, self.down))
        return (
            e.value(f"arith.trunci {first} : i32 to i16"),
            e.value(f"arith.trunci {second} : i32 to i16"),
        )

    def is_sharer(self, number: str) -> str:
        """Whether it is that of a block in this block's row or column."""
        e = self.e
        if self.size == 1:
            return e.compare("eq", number, 0)
        is_block = e.compare("ult", number, self.size)
        in_row = e.compare("eq", e.do("remui", number, self.down), self.below)
        in_column = e.compare("eq", e.do("divui", number, self.down), self.beside)
        return e.do("andi", is_block, e.do("ori", in_row, in_column, "i1"), "i1")

    def arrive(self, barrier: str, number: str) -> None:
        """At a block's barrier, which is where this block has its own: an address in i32."""
        e = self.e
        there = e.value(f"nvvm.mapa {e.pointer(barrier)}, {number} : !llvm.ptr<3> -> !llvm.ptr<7>")
        # No scope of the cluster: that would be a fence of all memory, each time.
        e.line(f"nvvm.mbarrier.arrive {there} : !llvm.ptr<7>")


class SharedRing(Ring):
    """Of stages that other blocks of the cluster write to, too."""

    def __init__(self, e: Body, cluster: Cluster, stages: int, stage_bytes: int) -> None:
        super().__init__(e, stages, stage_bytes)
        self.cluster = cluster

    def begin_reader(self, lane: str) -> None:
        self.lane = lane
        self.arrives = self.cluster.is_sharer(lane)

    def release(self, stage: str) -> None:
        """Each warp says so to all blocks that write there."""
        if self.cluster.size == 1:
            super().release(stage)
            return
        with self.e.block(f"scf.if {self.arrives}"):
            self.cluster.arrive(self.empty.address(stage), self.lane)
