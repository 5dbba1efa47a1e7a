"""GEMM of f16 and bf16 on Blackwell (sm_100a) by TMA and tcgen05, warp-specialized.

A block computes one tile of C. One warp copies stages of A and B to shared memory, as in `wgmma`. A
thread of another warp issues the MMAs (tcgen05.mma). The accumulators are in tensor memory: a lane
for each of 128 rows of C, and a column of 32 bits for each column of C. Four warps store C, each
from 32 lanes.

No such GPU has run these kernels yet: it is only known that they assemble. They are chosen only by
`--untested-kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Buffer, Builder, Launch
from aotc.builder.numbers import Number, Scalar, Value, ceil_divide, compare, divide_up, maximum
from aotc.chips import KIB, LIMITS, WARP
from aotc.kernels.family import SM_100A
from aotc.kernels.hopper.cta import Cta, size_of
from aotc.kernels.hopper.mma import zero_extend
from aotc.kernels.hopper.operand import OperandTile
from aotc.kernels.hopper.pipeline import Mbarriers, TmaPipeline
from aotc.kernels.hopper.smem import SWIZZLE_BYTES, load, shared_pointer
from aotc.kernels.hopper.tiles import Tile, rasterize
from aotc.kernels.hopper.tma import is_aligned
from aotc.kernels.matmul.family import MatmulFamily, named_tile
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Place, Problem
from aotc.mlir import ir

# Warps: four for the epilogue, the producer, and the one that issues MMAs.
_EPILOGUE_WARPS, _PRODUCER, _MMA = 4, 4, 5
_THREADS = WARP * 6
_ROWS = 128  # rows of a tile, one per lane of tensor memory
_MMA_K = 16  # the K extent of one tcgen05.mma
_CTA_GROUP = "#nvvm.cta_group<cta_1>"
# The largest size of the stages. The rest of the block's limit is for the alignment of the stages,
# as the barriers are in front of them, and for the address of the tensor memory.
_SHARED_BYTES = LIMITS[100].block_shared - 2 * KIB
_LOADED = 32  # columns that a thread loads from tensor memory at once
_STORED_BYTES = 16


class Variant(Struct, frozen=True):
    """Parameters of a kernel. A tile of C has 128 rows and `n` columns (a multiple of 32, at most
    256). `stages`: the number of stages of the pipeline. `group`: the number of rows of tiles that
    are rasterized together (see `rasterize`), for reuse in the L2 cache."""

    n: int = 256
    stages: int = 4
    group: int = 16

    @property
    def m(self) -> int:
        """The rows of a tile."""
        return _ROWS

    @property
    def split_k(self) -> int:
        """Always 1: a block computes its tile along all of K."""
        return 1


# The cost model of a multiprocessor. The 16-bit multiply-adds per clock are from NVIDIA's figures
# for a B200. Guesses: the clocks until the first tile has arrived, and the elements stored per
# clock.
_MULTIPLY_ADDS = 4096
_START_CLOCKS = 2000
_STORED_A_CLOCK = 64


class _Kernel:
    """Builds one kernel and its launch. Values that its methods share are members."""

    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, arguments: Arguments
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.arguments, self.epilogue = arguments, arguments.epilogue
        self.a, self.b_ = operands(problem, variant)
        self.c = Buffer(arguments.c)
        self.stage_bytes = self.a.bytes + self.b_.bytes

    # --- Host code -----------------------------------------------------------------------

    def build(self) -> None:
        b, problem, c = self.b, self.problem, self.arguments.c
        first = 1 if problem.batched else 0
        self.host_m, self.host_n = b.dim(c, first), b.dim(c, first + 1)
        self.host_k = b.dim(self.arguments.a, first + (0 if problem.a.transposed else 1))
        down = ceil_divide(self.host_m, self.variant.m)
        across = ceil_divide(self.host_n, self.variant.n)
        blocks = down * across
        if problem.batched:
            blocks = blocks * b.dim(c, 0)
        with b.where(compare("ne", blocks, 0)):
            self.a_map = self.a.create_tensor_map(b, self.arguments.a)
            self.b_map = self.b_.create_tensor_map(b, self.arguments.b)
            bytes_ = TCGEN05.shared_bytes(problem, self.variant)
            with b.launch(blocks, _THREADS, bytes_) as launch:
                self._kernel(launch)

    # --- The kernel ----------------------------------------------------------------------

    def _kernel(self, launch: Launch) -> None:
        b = self.b
        self.cta = Cta(b, launch)
        self._find_tile(launch)
        self._begin()
        with self.cta.elects_one(_PRODUCER):
            self._producer()
        with self.cta.elects_one(_MMA):
            self._mainloop()
        with b.where(compare("ult", self.cta.warp, _EPILOGUE_WARPS)):
            self._store()
        self._fence("before")
        b.barrier()
        with b.where(compare("eq", self.cta.warp, _MMA)):
            operands_ = [self.accumulators, b.constant(self._columns(), "i32")]
            b.op("nvvm.tcgen05.dealloc", operands_, group=_CTA_GROUP)

    def _columns(self) -> int:
        """The allocated columns of tensor memory: a power of two, at least 32."""
        return max(32, 1 << (self.variant.n - 1).bit_length())

    def _find_tile(self, launch: Launch) -> None:
        """Computes the coordinates of the block's tile, and its number of K tiles."""
        b, variant, problem = self.b, self.variant, self.problem
        self.m = size_of(b, problem.m, self.host_m)
        self.n = size_of(b, problem.n, self.host_n)
        k = size_of(b, problem.k, self.host_k)
        # With K = 0 there is one K tile, past the end of K, which TMA fills with zeros.
        self.k_tiles = maximum(divide_up(k, self.a.k_extent), 1)
        behind, zero = b.constant(self.a.k_extent, "i32"), b.constant(0, "i32")
        self.first_k = b.select(compare("eq", k, 0), behind, zero)
        down, across = divide_up(self.m, variant.m), divide_up(self.n, variant.n)
        number, batch = b.i32(launch.block), None
        if problem.batched:
            tiles = down * across
            batch, number = number // tiles, number % tiles
        row, column = rasterize(number, down, across, variant.group)
        self.tile = Tile(row * variant.m, column * variant.n, batch)

    def _begin(self) -> None:
        """Initializes the barriers, allocates the block's tensor memory, and broadcasts its address
        to all threads."""
        b, cta = self.b, self.cta
        self.pipeline = TmaPipeline(b, self.variant.stages, self.stage_bytes)
        self.done = Mbarriers(b)  # the accumulators are complete
        with cta.initializes_barriers():
            self.pipeline.init_barriers(1)
            self.done.init(0, 1)
        cta.prefetch([self.a_map, self.b_map])
        slot = shared_pointer(b, cta.address + self.variant.stages * self.stage_bytes)
        with b.where(compare("eq", cta.warp, _MMA)):
            columns = b.constant(self._columns(), "i32")
            b.op("nvvm.tcgen05.alloc", [slot, columns], group=_CTA_GROUP)
            b.op("nvvm.tcgen05.relinquish_alloc_permit", group=_CTA_GROUP)
        self._fence("before")
        b.barrier()
        self._fence("after")
        self.accumulators_address = load(b, slot, "i32")
        self.accumulators = self._tensor_memory(self.accumulators_address)

    def _tensor_memory(self, address: Number) -> Value:
        return self.b.op("llvm.inttoptr", [address], "!llvm.ptr<6>")

    def _fence(self, kind: str) -> None:
        self.b.op("nvvm.tcgen05.fence", kind=f"#nvvm.tcgen05_fence<{kind}>")

    # --- The producer --------------------------------------------------------------------

    def _producer(self) -> None:
        b, tile = self.b, self.tile
        with b.loop(b.constant(0, "i32"), self.k_tiles) as loop:
            stage = self.pipeline.producer_acquire(loop.index)
            k = loop.index * self.a.k_extent + self.first_k
            a_offset = stage * self.stage_bytes
            b_offset = a_offset + self.a.bytes
            shared = self.cta.shared
            copies = self.a.copies(b, tile.row, k, tile.batch, 0)
            self.pipeline.load(self.a_map, copies, shared, a_offset, stage)
            copies = self.b_.copies(b, tile.column, k, tile.batch, 0)
            self.pipeline.load(self.b_map, copies, shared, b_offset, stage)

    # --- The mainloop --------------------------------------------------------------------

    def _mainloop(self) -> None:
        """Issues the MMAs. The tensor cores themselves arrive on the barriers, when they have read
        a stage, and when the accumulators are complete."""
        b, address = self.b, self.cta.address
        instruction = b.constant(self._instruction_descriptor(), "i32")
        a = self._descriptor(self.a, address)
        b_ = self._descriptor(self.b_, address + self.a.bytes)
        with b.loop(b.constant(0, "i32"), self.k_tiles) as loop:
            stage = self.pipeline.consumer_wait(loop.index)
            self._fence("after")
            offset = zero_extend(b, stage) * (self.stage_bytes >> 4)
            a_stage, b_stage = a + offset, b_ + offset
            is_later = compare("ne", loop.index, 0)
            for k_block in range(self.a.k_extent // _MMA_K):
                a_at = a_stage + k_block * self.a.k_step
                b_at = b_stage + k_block * self.b_.k_step
                # The first MMA overwrites the accumulators, so they need no initialization.
                accumulates = is_later if k_block == 0 else b.constant(1, "i1")
                self._mma(a_at, b_at, instruction, accumulates)
            self._commit(self.pipeline.empty, stage)
        self._commit(self.done, 0)

    def _mma(self, a: Value, b_: Value, instruction: Value, accumulates: Value) -> None:
        self.b.op(
            "nvvm.tcgen05.mma",
            [self.accumulators, a, b_, instruction, accumulates],
            kind="#nvvm.tcgen05_mma_kind<f16>",
            ctaGroup=_CTA_GROUP,
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 1, 1, 1, 0, 0]),
        )

    def _commit(self, barriers: Mbarriers, stage: Number) -> None:
        """Makes the barrier's phase end when all MMAs issued so far are complete."""
        pointer = shared_pointer(self.b, barriers.address(stage))
        self.b.op("nvvm.tcgen05.commit", [pointer], group=_CTA_GROUP)

    def _instruction_descriptor(self) -> int:
        """The instruction descriptor (PTX manual, «Instruction descriptor», of kind f16): f32
        accumulators, the types of A and B, whether they are MN-major, and the sizes of the tile."""
        number = 1 if self.problem.a.element == "bf16" else 0
        return (
            1 << 4
            | number << 7
            | number << 10
            | (not self.a.is_k_major) << 15
            | (not self.b_.is_k_major) << 16
            | (self.variant.n >> 3) << 17
            | (self.variant.m >> 4) << 24
        )

    def _descriptor(self, operand: OperandTile, address: Number) -> Scalar:
        """The matrix descriptor. It is wgmma's with the constant 1 in bits 46 to 48 (PTX manual,
        «Shared memory descriptor»)."""
        return Scalar(operand.descriptor(self.b, address) | 1 << 46)

    # --- The epilogue --------------------------------------------------------------------

    def _store(self) -> None:
        """Stores the tile. Each thread has one row."""
        b = self.b
        self.done.wait(0, 0)
        self._fence("after")
        row = self.tile.row + self.cta.thread
        is_row = compare("ult", row, self.m)
        # An address in tensor memory has the lane in its upper half, and the column in the lower.
        first = self.accumulators_address + (self.cta.warp * WARP << 16)
        with b.loop(b.constant(0, "i32"), self.variant.n, _LOADED) as loop:
            place = self._tensor_memory(first + loop.index)
            shape = "#nvvm.tcgen05_ldst_shape<shape_32x32b>"
            bits = b.op("nvvm.tcgen05.ld", [place], f"vector<{_LOADED}xi32>", shape=shape)
            b.op("nvvm.tcgen05.wait", kind="#nvvm.tcgen05_wait<load>")
            accumulators = b.op("vector.bitcast", [bits], f"vector<{_LOADED}xf32>")
            with b.where(is_row):
                self._store_columns(accumulators, row, self.tile.column + loop.index)

    def _store_columns(self, accumulators: Value, row: Number, column: Number) -> None:
        b, c = self.b, self.problem.c
        count = _STORED_BYTES // ELEMENT_BYTES[c.element]
        batch = None if self.tile.batch is None else b.index(self.tile.batch)
        for first in range(0, _LOADED, count):
            at = column + first
            places = [at + number for number in range(count)]
            values = [b.extract(accumulators, [first + i]) for i in range(count)]
            if not is_aligned(c):
                self._store_each(values, batch, row, places)
                continue
            with b.where(compare("ule", at + count, self.n)) as branch:
                made = [
                    self._result(value, batch, b.index(row), b.index(place))
                    for value, place in zip(values, places, strict=True)
                ]
                vector = b.op("vector.from_elements", made, f"vector<{count}x{c.element}>")
                place = [*([] if batch is None else [batch]), b.index(row), b.index(at)]
                b.store_vector(vector, self.c, place, _STORED_BYTES)
            with branch.otherwise():
                self._store_each(values, batch, row, places)

    def _store_each(
        self,
        values: Sequence[Value],
        batch: Number | None,
        row: Number,
        columns: Sequence[Number],
    ) -> None:
        b, front = self.b, [] if batch is None else [batch]
        for value, column in zip(values, columns, strict=True):
            with b.where(compare("ult", column, self.n)):
                at = b.index(row), b.index(column)
                b.store(self._result(value, batch, *at), self.c, [*front, *at])

    def _result(self, value: Value, batch: Number | None, row: Number, column: Number) -> Value:
        """The value that is stored for an accumulator."""
        b, element = self.b, self.problem.c.element
        if self.problem.adds:
            before = b.load(self.c, [row, column] if batch is None else [batch, row, column])
            value = b.op("arith.addf", [b.convert(before, "f32"), value], "f32")
        if self.epilogue is not None:
            [value] = self.epilogue(b, [value], Place(batch, row, [column]))
            return value
        return b.convert(value, element)


def operands(problem: Problem, variant: Variant) -> tuple[OperandTile, OperandTile]:
    """A's tile in a stage, and B's."""
    a, b, batched = problem.a, problem.b, problem.batched
    return (
        OperandTile.of(a, variant.m, is_k_major=not a.transposed, batched=batched),
        OperandTile.of(b, variant.n, is_k_major=b.transposed, batched=batched),
    )


def _stage_bytes(problem: Problem, variant: Variant) -> int:
    return sum(operand.bytes for operand in operands(problem, variant))


class Tcgen05(MatmulFamily[Problem]):
    """See the module's docstring."""

    name = "tcgen05"
    mnemonic = "tcgen05"
    target = SM_100A
    variant_type = Variant
    kernel_type = _Kernel

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        """Whether the kernel computes the problem correctly, according to the PTX manual."""
        return (
            (problem.a.element, problem.b.element) in (("f16", "f16"), ("bf16", "bf16"))
            and problem.accumulator == "f32"
            and problem.c.element in ("f16", "bf16", "f32")
            and is_aligned(problem.a)
            and is_aligned(problem.b)
            and variant.n in range(_LOADED, 257, _LOADED)
            and variant.stages >= 2
            and variant.stages * _stage_bytes(problem, variant) <= _SHARED_BYTES
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """See `KernelFamily`. The best variant for large problems is first. Each has as many stages
        as fit shared memory, and at most 8."""
        found = []
        for n in (256, 192, 128, 64):
            one = Variant(n=n)
            stages = min(_SHARED_BYTES // _stage_bytes(problem, one), 8)
            found.append(replace(one, stages=stages))
        return tuple(variant for variant in found if self.can_implement(problem, variant))

    def tile_clocks(self, problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
        """See `MatmulFamily`."""
        elements = variant.m * variant.n
        return elements * k / _MULTIPLY_ADDS + elements / _STORED_A_CLOCK, _START_CLOCKS

    def tile_name(self, problem: Problem, variant: Variant) -> str:
        k = SWIZZLE_BYTES // ELEMENT_BYTES[problem.a.element]
        return named_tile(variant.m, variant.n, k, variant.stages)

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        """The dynamic shared memory of a block: the stages, followed by the address of the tensor
        memory."""
        return variant.stages * _stage_bytes(problem, variant) + 16


TCGEN05 = Tcgen05()
