"""How two warpgroups of a kernel of `hopper` take turns at the tensor cores (ping-pong).

By a named barrier each (0 is gpu.barrier's), on which its owner waits and the other one arrives.
Without that one could be a round of the ring ahead of the other, and take an old phase for its own.
"""

from __future__ import annotations

from aotc.kernels.matmul.wgmma.tiles import Body

_THREADS = 256  # of both


class Turns:
    """`consumer`: which of the two this thread is of, 0 or 1."""

    def __init__(self, e: Body) -> None:
        self.e = e

    def begin(self, consumer: str) -> None:
        """The first one's turn is the first."""
        is_second = self.e.compare("eq", consumer, 1)
        with self.e.block(f"scf.if {is_second}"):
            self.give(consumer)

    def wait(self, consumer: str) -> None:
        self.e.line(f"nvvm.barrier {self._barrier(self.e.do('addi', consumer, 1))}")

    def give(self, consumer: str) -> None:
        """To the other one."""
        two = self.e.constant(2, "i32")
        self.e.line(f"nvvm.barrier.arrive {self._barrier(self.e.do('subi', two, consumer))}")

    def _barrier(self, number: str) -> str:
        return f"id = {number} number_of_threads = {self.e.constant(_THREADS, 'i32')}"
