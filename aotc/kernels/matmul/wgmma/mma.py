"""The mainloop of a consumer warpgroup: wgmma over a tile's stages, accumulators in registers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Scalar, Value
from aotc.kernels.hopper.mma import (
    MMA_K_BYTES,
    OPERAND_REGISTERS,
    MmaAtom,
    commit_group,
    fence,
    wait_group,
    zero_extend,
)
from aotc.kernels.hopper.operand import SLAB_BYTES, OperandTile
from aotc.kernels.hopper.pipeline import TmaPipeline
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    assembly,
    extract,
    pack,
    struct_type,
    undefined,
    unpack,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.wgmma.fragments import Fragments

_K_BLOCKS = range(SWIZZLE_BYTES // MMA_K_BYTES)  # the MMAs along K of a stage


class TileShape(Struct, frozen=True):
    """The shape of the part of the C tile that one warpgroup computes: `m_blocks` times 64 rows,
    and `n` columns, which are computed in `parts` groups, one after the other."""

    m_blocks: int
    n: int
    parts: int


class WarpgroupPart(Struct, frozen=True):
    """The part of the C tile that one warpgroup computes. `stages`: the address of the first stage.
    `number`: the index of the warpgroup's part of the tile's rows. `lane`: this thread's lane.
    `first_row`: its warp's first row. All are i32."""

    stages: Scalar
    number: Number
    lane: Scalar
    first_row: Number


class CollectiveMma:
    """The mainloop of a consumer warpgroup. A is read from registers if it is not K-major and its
    elements do not have 16 bits.

    Each tile calls `mainloop`, then `tail`.
    """

    def __init__(
        self,
        b: Builder,
        operands: tuple[OperandTile, OperandTile],
        shape: TileShape,
        pipeline: TmaPipeline,
        accumulator: str,
        part: WarpgroupPart,
    ) -> None:
        self.b, self.shape, self.pipeline = b, shape, pipeline
        self.left, self.right = operands
        element = self.left.matrix.element
        self.atom = MmaAtom(
            b,
            shape.n // shape.parts,
            (element, self.right.matrix.element),
            accumulator,
            MMA_K_BYTES // ELEMENT_BYTES[element],
            is_a_k_major=self.left.is_k_major,
            is_b_k_major=self.right.is_k_major,
        )
        self.fragments = None
        if not self.left.is_k_major and ELEMENT_BYTES[element] != 2:
            self.fragments = Fragments(
                b, element, part.lane, part.first_row, part.stages, shape.m_blocks
            )
        else:
            rows = part.stages + part.number * (shape.m_blocks * SLAB_BYTES)
            self.left_descriptor = self.left.descriptor(b, rows)
        self.right_descriptor = self.right.descriptor(b, part.stages + self.left.bytes)

    def mainloop(self, count: Number, k_tiles: Number) -> tuple[list[Value], Number]:
        """Issues the MMAs of `k_tiles` stages, from stage number `count` on. Returns the
        accumulators while the last MMAs are still in flight, and the stage that these read."""
        b, pipeline = self.b, self.pipeline
        # The first MMAs overwrite the accumulators, so they need no initialization.
        undefined_ = self._undefined()
        stage = pipeline.consumer_wait(count)
        accumulators = self._mma(self._load_a(stage), stage, undefined_, accumulates=False)
        carried = [b.value(stage, "i32"), *accumulators]
        with b.loop(b.constant(1, "i32"), k_tiles, 1, carried) as loop:
            previous, *accumulators = loop.carried
            stage = pipeline.consumer_wait(count + loop.index)
            a = self._load_a(stage)
            if a is None:
                accumulators = self._mma(None, stage, accumulators)
                # All MMAs but those of this stage are done.
                wait_group(b, 1)
                pipeline.consumer_release(previous)
            else:
                # Registers that an MMA reads must not change until it is done.
                wait_group(b, 0)
                pipeline.consumer_release(previous)
                accumulators = self._mma(self._moved(a), stage, accumulators)
            loop.next([stage, *accumulators])
        last, *accumulators = loop.results
        return accumulators, last

    def tail(self, accumulators: list[Value], last_stage: Number) -> list[Value]:
        """Waits for the MMAs of `mainloop`, and returns the accumulators."""
        accumulators = self.atom.await_accumulators(accumulators)
        self.pipeline.consumer_release(last_stage)
        return accumulators

    def _undefined(self) -> list[Value]:
        return [undefined(self.b, self.atom.type) for _ in range(self.shape.m_blocks)]

    # --- A stage -------------------------------------------------------------------------

    def _mma(
        self,
        a: _Registers | None,
        stage: Number,
        accumulators: Sequence[Value],
        *,
        accumulates: bool = True,
        part: int = 0,
    ) -> list[Value]:
        """Issues the MMAs of a stage as one group. `part`: the index of the group of columns."""
        b, atom = self.b, self.atom
        offset = zero_extend(b, stage) * (self.pipeline.stage_bytes >> 4)
        right = self.right_descriptor + offset
        left = None if a is not None else self.left_descriptor + offset
        accumulators = list(accumulators)
        fence(b)
        for k_block in _K_BLOCKS:
            # Columns have a constant stride only in a K-major tile.
            columns = part * atom.n * SWIZZLE_BYTES >> 4
            b_ = right + (k_block * self.right.k_step + columns)
            for block, accumulator in enumerate(accumulators):
                adds = accumulates or k_block > 0
                if left is not None:
                    a_ = left + (k_block * self.left.k_step + (block * SLAB_BYTES >> 4))
                    made = atom.multiply(accumulator, a_, b_, accumulates=adds)
                else:
                    assert a is not None
                    registers = a[k_block, block]
                    made = atom.multiply_registers(accumulator, registers, b_, accumulates=adds)
                accumulators[block] = made
        commit_group(b)
        return accumulators

    # --- A left operand in registers -----------------------------------------------------

    def _load_a(self, stage: Number) -> _Registers | None:
        """Loads A's fragments, by block of K and block of rows; None if A is in shared memory."""
        if self.fragments is None:
            return None
        offset = stage * self.pipeline.stage_bytes
        return {
            (k_block, block): self.fragments.load(offset, block, k_block)
            for k_block in _K_BLOCKS
            for block in range(self.shape.m_blocks)
        }

    def _moved(self, a: _Registers) -> _Registers:
        """Copies A's fragments to registers that nothing else writes."""
        registers = [register for fragment in a.values() for register in fragment]
        count = len(registers)
        moves = " ".join(f"mov.b32 ${i}, ${count + i};" for i in range(count))
        # Early-clobber: results are written before all operands are read.
        constraints = ",".join(["=&r"] * count + ["r"] * count)
        moved = assembly(self.b, moves, constraints, registers, struct_type("i32", count))
        values = unpack(self.b, moved, "i32", range(count))
        each = OPERAND_REGISTERS
        return {key: values[each * i : each * (i + 1)] for i, key in enumerate(a)}


# The registers of A's fragments, by block of K and block of rows.
_Registers = dict[tuple[int, int], list[Value]]


class PromotingMma(CollectiveMma):
    """Computes each stage into its own accumulators, and adds these to the tile's outside of the
    tensor cores, which accumulate f8 with about 14 bits."""

    def mainloop(self, count: Number, k_tiles: Number) -> tuple[list[Value], Number]:
        """See `CollectiveMma`. On return, all MMAs are done and all stages are released."""
        b, pipeline, shape = self.b, self.pipeline, self.shape
        each = shape.n // 2
        zeros = [b.constant(0, "f32")] * (each * shape.m_blocks)
        with b.loop(b.constant(0, "i32"), k_tiles, 1, zeros) as loop:
            stage = pipeline.consumer_wait(count + loop.index)
            a, totals = self._load_a(stage), list(loop.carried)
            for part in range(shape.parts):
                newest = self._mma(a, stage, self._undefined(), accumulates=False, part=part)
                newest = self.atom.await_accumulators(newest)
                if part == shape.parts - 1:
                    pipeline.consumer_release(stage)
                self._promote(newest, totals, part)
            loop.next(totals)
        results, type_ = loop.results, struct_type(self.atom.accumulator, each)
        blocks = [results[each * block :][:each] for block in range(shape.m_blocks)]
        return [pack(b, block, type_) for block in blocks], 0

    def tail(self, accumulators: list[Value], last_stage: Number) -> list[Value]:
        return accumulators

    def _promote(self, newest: Sequence[Value], totals: list[Value], part: int) -> None:
        """Adds the accumulators of a group of columns of a stage to the tile's accumulators."""
        b, each, count = self.b, self.shape.n // 2, self.atom.count
        for block, accumulators in enumerate(newest):
            for number in range(count):
                at = block * each + part * count + number
                one = extract(b, accumulators, "f32", number)
                totals[at] = b.op("arith.addf", [totals[at], one], "f32")
