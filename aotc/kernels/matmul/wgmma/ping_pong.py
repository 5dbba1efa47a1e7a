"""The order in which two consumer warpgroups use the tensor cores (ping-pong schedule).

Each warpgroup has a named barrier (0 is gpu.barrier's), on which it waits and the other one
arrives. Without them, one warpgroup could be a round of the pipeline ahead of the other, and
mistake the parity of an old phase for that of its own.
"""

from __future__ import annotations

from aotc.builder import Builder
from aotc.builder.numbers import Scalar, compare
from aotc.kernels.hopper.smem import named_barrier, named_barrier_arrive

_THREADS = 256  # of the two warpgroups together


class MainloopOrder:
    """The ping-pong order of two warpgroups. `consumer`: the index of this thread's warpgroup, 0 or
    1 (an i32). Warpgroup 0 begins."""

    def __init__(self, b: Builder, consumer: Scalar) -> None:
        self.b, self.consumer = b, consumer
        with b.where(compare("eq", consumer, 1)):
            self.arrive()

    def wait(self) -> None:
        """Waits until it is this warpgroup's turn."""
        named_barrier(self.b, self.consumer + 1, _THREADS)

    def arrive(self) -> None:
        """Gives the turn to the other warpgroup."""
        named_barrier_arrive(self.b, 2 - self.consumer, _THREADS)
