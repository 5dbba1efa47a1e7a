"""A thread block (CTA) of a kernel whose tiles TMA copies: thread ids and warp specialization.

Dynamic shared memory begins with the stages of the pipeline, each aligned to 1024 bytes. The
kernel's other buffers follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aotc.builder import Builder, Launch
from aotc.builder.numbers import Scalar, compare
from aotc.chips import KIB, LIMITS
from aotc.kernels.hopper.tma import TensorMap
from aotc.mlir import ir

WARPGROUP = 128  # threads
# The largest dynamic shared memory of a block. 1 KiB is reserved for the alignment of the stages,
# as the barriers are in front of them.
SHARED_BYTES = LIMITS[90].block_shared - KIB


class Cta:
    """The ids of the current thread, and the block's dynamic shared memory.

    `thread`, `lane`, `warp` and `warpgroup` are i32; the compiler knows that `warp` is uniform in a
    warp. `shared` is the dynamic shared memory as a memref, and `address` its address, an i32.
    """

    def __init__(self, b: Builder, launch: Launch) -> None:
        self.b = b
        self.thread = Scalar(b.i32(launch.thread))
        self.lane = self.thread & 31
        # The shuffle makes the warp's number uniform for the compiler.
        operands = [b.constant(-1, "i32"), self.thread >> 5]
        operands += [b.constant(number, "i32") for number in (0, 31)]
        kind = "#nvvm<shfl_kind idx>"
        self.warp = Scalar(b.op("nvvm.shfl.sync", operands, "i32", kind=kind))
        self.warpgroup = self.warp >> 2
        self.shared = b.shared_memory()
        address = b.op("memref.extract_aligned_pointer_as_index", [self.shared], "index")
        self.address = Scalar(b.i32(address))

    @contextmanager
    def initializes_barriers(self) -> Iterator[None]:
        """Executes the body in the block's first thread, followed by the fence that makes the
        initialized mbarriers visible."""
        with self.b.where(compare("eq", self.thread, 0)):
            yield
            self.b.op("nvvm.fence.mbarrier.init")

    def prefetch(self, maps: Sequence[TensorMap]) -> None:
        is_first = compare("eq", self.thread, 0)
        for map_ in maps:
            map_.prefetch(self.b, is_first)

    @contextmanager
    def elects_one(self, warp: int) -> Iterator[None]:
        """Executes the body in one elected thread of a warp."""
        is_warp = compare("eq", self.warp, warp)
        elected = self.b.op("nvvm.elect.sync", (), "i1")
        with self.b.where(is_warp & elected):
            yield

    def specialize(
        self,
        producer: Callable[[], None],
        consumer: Callable[[], None],
        registers: tuple[int, int] | None,
    ) -> None:
        """Branches by role: one thread of the first warpgroup is the producer, the other warpgroups
        are consumers. `registers`: the registers per thread of a producer and of a consumer, set by
        setmaxnreg; None leaves them as launched."""
        with self.b.where(compare("eq", self.warpgroup, 0)) as roles:
            if registers is not None:
                self._set_registers("decrease", registers[0])
            with self.elects_one(0):
                producer()
        with roles.otherwise():
            if registers is not None:
                self._set_registers("increase", registers[1])
            consumer()

    def _set_registers(self, action: str, count: int) -> None:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        self.b.op("nvvm.setmaxregister", regCount=number, action=f"#nvvm<action {action}>")


def size_of(b: Builder, known: int | None, in_host_code: Scalar) -> Scalar:
    """A size in a kernel, as an i32: a constant if it is known, else the host's value (an
    index)."""
    return Scalar(b.i32(in_host_code) if known is None else b.constant(known, "i32"))
