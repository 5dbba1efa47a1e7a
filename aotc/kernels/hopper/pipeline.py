"""The pipeline of stages in shared memory between a producer, which copies by TMA, and consumers.

Each stage has two mbarriers: `full`, whose phase ends when TMA has written the stage's bytes, and
`empty`, on which consumers arrive. Both sides number the K tiles that pass through the pipeline,
from the beginning of the kernel. This number, `count`, determines the stage and the phase of its
barriers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aotc.builder import Builder
from aotc.builder.numbers import Condition, Number, Scalar, Value, compare

if TYPE_CHECKING:
    from aotc.kernels.hopper.tma import TensorMap

_SPACE = "#gpu.address_space<workgroup>"
_TICKS = 10_000_000  # the time limit of one try_wait, which is repeated


class Mbarriers:
    """An array of mbarriers of a block. Indices are i32 values or ints."""

    def __init__(self, b: Builder, count: int = 1) -> None:
        self.b = b
        of = f"<memorySpace = {_SPACE}, num_barriers = {count}>"
        self._token = f"!nvgpu.mbarrier.token{of}"
        self.value = b.op("nvgpu.mbarrier.create", (), f"!nvgpu.mbarrier.group{of}")

    def init(self, number: int, arrivals: int) -> None:
        """Initializes a barrier. Each of its phases ends after `arrivals` arrivals."""
        operands = self.b.values([arrivals, number])
        self.b.op("nvgpu.mbarrier.init", [self.value, *operands])

    def index(self, number: Number) -> Value:
        return self.b.value(self.b.index(number))

    def address(self, number: Number) -> Scalar:
        """The barrier's address in shared memory, an i32."""
        return Scalar(self.b.op("nvgpu.mbarrier.get", [self.value, self.index(number)], "i32"))

    def arrive_expect_tx(self, number: Number, bytes_: int) -> None:
        """Arrives, and makes the phase wait for `bytes_` bytes of copies, too."""
        index, count = self.index(number), self.b.constant(bytes_)
        self.b.op("nvgpu.mbarrier.arrive.expect_tx", [self.value, count, index])

    def arrive(self, number: Number) -> None:
        self.b.op("nvgpu.mbarrier.arrive", [self.value, self.index(number)], self._token)

    def wait(self, number: Number, phase: Number) -> None:
        """Waits for the end of a phase. Only the lowest bit of its number, the parity, matters."""
        b, index = self.b, self.index(number)
        parity = b.op("arith.trunci", [b.value(phase, "i32")], "i1")
        operands = [self.value, parity, b.constant(_TICKS), index]
        b.op("nvgpu.mbarrier.try_wait.parity", operands)


class TmaPipeline:
    """`stages` stages of at most `stage_bytes` bytes each.

    All threads construct it, one initializes the barriers, and threads that consume call
    `begin_consumer` first. Counts and stages are i32.
    """

    def __init__(self, b: Builder, stages: int, stage_bytes: int) -> None:
        self.b, self.stages, self.stage_bytes = b, stages, stage_bytes
        self.full, self.empty = Mbarriers(b, stages), Mbarriers(b, stages)

    def init_barriers(self, consumer_warps: int) -> None:
        """Initializes the barriers. `consumer_warps`: the number of warps that release a stage,
        each once."""
        for number in range(self.stages):
            self.full.init(number, 1)
            self.empty.init(number, consumer_warps)

    def stage(self, count: Number) -> Number:
        return count % self.stages

    def producer_acquire(self, count: Number, bytes_: int | None = None) -> Number:
        """Waits until the stage is empty, and returns it. `bytes_`: the number of bytes that will
        be copied to it, by default `stage_bytes`.

        The previous phase of a new barrier counts as completed, so the first round of stages does
        not wait."""
        stage = self.stage(count)
        self.empty.wait(stage, count // self.stages + 1)
        self.full.arrive_expect_tx(stage, self.stage_bytes if bytes_ is None else bytes_)
        return stage

    def load(
        self,
        map_: TensorMap,
        copies: Iterable[tuple[Number, list[Number]]],
        shared: Value,
        offset: Number,
        stage: Number,
        mask: Value | None = None,
    ) -> None:
        """Starts an operand's copies to a stage. `offset`: the offset in `shared` of the operand's
        tile. `mask`: see `TensorMap.load`."""
        for place, coordinates in copies:
            map_.load(self.b, coordinates, shared, offset + place, self.full, stage, mask)

    def consumer_wait(self, count: Number) -> Number:
        """Waits until the stage is full, and returns it."""
        stage = self.stage(count)
        self.full.wait(stage, count // self.stages)
        return stage

    def begin_consumer(self, lane: Scalar) -> None:
        self.arrives: Condition = compare("eq", lane, 0)

    def consumer_release(self, stage: Number) -> None:
        """Releases a stage that the warp has read. Each consumer warp calls it."""
        with self.b.where(self.arrives):
            self.empty.arrive(stage)
