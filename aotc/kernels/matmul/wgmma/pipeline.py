"""A ring of stages in shared memory, between what fetches by TMA and what reads.

Each stage has two mbarriers: one says that it is full (TMA counts its bytes), another that it is
empty (what reads it arrives). Both sides count stages from the kernel's beginning, over all tiles;
a count says the place in the ring, and by the round the phase of the barriers.
"""

from __future__ import annotations

from aotc.kernels.matmul.wgmma.tiles import SPACE, Body

_TICKS = 10_000_000  # of one try to wait, which is repeated


class Barriers:
    """Some mbarriers of a block; `stage` is the number of one, an i32."""

    def __init__(self, e: Body, count: int = 1) -> None:
        self.e, self.count = e, count
        of = f"<memorySpace = {SPACE}, num_barriers = {count}>"
        self.type, self._token = f"!nvgpu.mbarrier.group{of}", f"!nvgpu.mbarrier.token{of}"

    def make(self) -> None:
        self.name = self.e.value(f"nvgpu.mbarrier.create -> {self.type}")

    def begin(self, number: str, arrivals: str) -> None:
        """A phase ends with so many arrivals. Both are values of type index."""
        self.e.line(f"nvgpu.mbarrier.init {self.name}[{number}], {arrivals} : {self.type}")

    def at(self, stage: str) -> str:
        """What a load says of the barrier that counts its bytes."""
        return f"{self.name}[{self.e.index(stage)}]"

    def address(self, stage: str) -> str:
        """In shared memory, an i32."""
        return self.e.value(f"nvgpu.mbarrier.get {self.at(stage)} : {self.type} -> i32")

    def expect(self, stage: str, count: int) -> None:
        """One arrival, and so many bytes, end the phase."""
        barrier, bytes_ = self.at(stage), self.e.constant(count)
        self.e.line(f"nvgpu.mbarrier.arrive.expect_tx {barrier}, {bytes_} : {self.type}")

    def arrive(self, stage: str) -> None:
        self.e.value(f"nvgpu.mbarrier.arrive {self.at(stage)} : {self.type} -> {self._token}")

    def wait(self, stage: str, phase: str) -> None:
        """Until the phase is over; of its number (an i32) the lowest bit counts."""
        e = self.e
        barrier, parity = self.at(stage), e.value(f"arith.trunci {phase} : i32 to i1")
        ticks = e.constant(_TICKS)
        e.line(f"nvgpu.mbarrier.try_wait.parity {barrier}, {parity}, {ticks} : {self.type}")


class Ring:
    """Of so many stages, each of so many bytes at most.

    `make` is first, of all threads; then one begins, for so many warps that read.
    """

    def __init__(self, e: Body, stages: int, stage_bytes: int) -> None:
        self.e, self.stages, self.stage_bytes = e, stages, stage_bytes
        self.full, self.empty = Barriers(e, stages), Barriers(e, stages)

    @property
    def bytes(self) -> int:
        return self.stages * self.stage_bytes

    def make(self) -> None:
        self.full.make()
        self.empty.make()

    def begin(self, warps: int) -> None:
        e = self.e
        one, arrivals = e.constant(1), e.constant(warps)
        for number in range(self.stages):
            stage = e.constant(number)
            self.full.begin(stage, one)
            self.empty.begin(stage, arrivals)

    def stage(self, count: str) -> str:
        """A count's place in the ring."""
        return self.e.do("remui", count, self.stages)

    def _round(self, count: str) -> str:
        return self.e.do("divui", count, self.stages)

    def await_full(self, count: str) -> None:
        self.full.wait(self.stage(count), self._round(count))

    def await_empty(self, count: str) -> None:
        """Until what the round before put there is read. (Nothing, in the first round: a new
        barrier counts as one whose phase before is over.)"""
        self.empty.wait(self.stage(count), self.e.do("addi", self._round(count), 1))

    def begin_reader(self, lane: str) -> None:
        """Of the threads that read."""
        self.arrives = self.e.compare("eq", lane, 0)

    def release(self, stage: str) -> None:
        """Each warp says that it has read the stage."""
        with self.e.block(f"scf.if {self.arrives}"):
            self.empty.arrive(stage)
