"""The order in which two consumer warpgroups use the tensor cores (ping-pong schedule).

Each has a named barrier (0 is gpu.barrier's), on which its owner waits and the other one arrives.
Without that one could be a round of the pipeline ahead of the other, and take an old phase for its
own.
"""

from __future__ import annotations

from aotc.builder import Builder
from aotc.kernels.hopper.smem import named_barrier, named_barrier_arrive
from aotc.numbers import Scalar, compare

_THREADS = 256  # of both


class MainloopOrder:
    """`consumer`: which of the two this thread is of, 0 or 1 (an i32). The first one begins."""

    def __init__(self, b: Builder, consumer: Scalar) -> None:
        self.b, self.consumer = b, consumer
        with b.where(compare("eq", consumer, 1)):
            self.arrive()

    def wait(self) -> None:
        """Waits until it is this warpgroup's turn."""
        named_barrier(self.b, self.consumer + 1, _THREADS)

    def arrive(self) -> None:
        """Gives the turn to the other one."""
        named_barrier_arrive(self.b, 2 - self.consumer, _THREADS)
