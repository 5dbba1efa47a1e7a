"""The code of a block: the mainloop of mma.sync over tiles in shared memory, and the epilogue."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, ceil_divide, compare, next_in_ring
from aotc.kernels.matmul.mma_sync.copies import Pipeline, TileCopy
from aotc.kernels.matmul.mma_sync.fragments import fragment_loads
from aotc.kernels.matmul.mma_sync.store import Output, StagedStore
from aotc.kernels.matmul.mma_sync.tiles import (
    MOST_EXACT_PRODUCTS,
    MOST_I8_PRODUCTS,
    Coordinates,
    ProblemShape,
    Staging,
    Variant,
    has_second_accumulators,
    mma_of,
    tiles_of,
)
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.tensor_core import add_accumulators


class Kernel:
    """The matmul of a block's tile, from `first_k` to the K of `shape`. `memory` is the block's
    shared memory. `tiles` and `rings` are the layouts and the buffers of A's and B's tiles in
    it."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        shape: ProblemShape,
        coordinates: Coordinates,
        first_k: Number = 0,
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.shape, self.coordinates, self.first_k = shape, coordinates, first_k
        self.mma, self.tiles = mma_of(problem, variant), tiles_of(problem, variant)
        self.tiles_m = variant.m // variant.warps_m // self.mma.m
        self.tiles_n = variant.n // variant.warps_n // self.mma.n
        self.memory = b.shared_memory()
        # A ring that ldmatrix reads as pairs has a second view for this.
        self.rings, self.read_rings, start = [], [], 0
        for tiles in self.tiles:
            (stages, rows, pitch), element = tiles.shape, tiles.matrix.element
            ring = read = b.shared_buffer(self.memory, start, tiles.shape, element)
            if tiles.transposes_pairs:
                shape_of_pairs = (stages, rows, pitch // 2)
                read = b.shared_buffer(self.memory, start, shape_of_pairs, "f16")
            self.rings.append(ring)
            self.read_rings.append(read)
            start += tiles.bytes
        staging = Staging.of(problem, variant)
        # The staging buffer reuses the memory of the tiles.
        self.staged = b.shared_buffer(self.memory, 0, staging.shape, staging.element)

    def build(self, copies: Sequence[TileCopy], output: Output) -> None:
        pipeline = Pipeline(self.b, copies, self.variant)
        accumulators = self._mainloop(pipeline)
        pipeline.drain()
        at, staged = self.coordinates, self.staged
        store = StagedStore(self.b, self.problem, self.variant, self.shape, at, staged)
        store.store(accumulators, output)

    def _mainloop(self, pipeline: Pipeline) -> list[Value]:
        """This lane's accumulators, in row-major order of the instruction's tiles. Fragments are
        loaded one block of K before they are multiplied, and tiles are fetched some stages
        before."""
        b, mma, variant, m = self.b, self.mma, self.variant, self.tiles_m
        loads = [
            fragment_loads(tiles)(b, mma, tiles, ring, count, self.coordinates, is_a=is_a)
            for tiles, ring, count, is_a in zip(
                self.tiles, self.read_rings, (m, self.tiles_n), (True, False), strict=True
            )
        ]

        def load(stage: Number, block: int) -> list[Value]:
            return [one for operand in loads for one in operand.load(stage, block)]

        pipeline.fill(self.first_k, self.shape.k)
        pipeline.wait()
        fragments = load(0, 0)
        accumulators = [b.zero(mma.accumulator_type)] * (m * self.tiles_n)
        second = accumulators if has_second_accumulators(self.problem) else []
        carried = [0, variant.stages - 1, *fragments, *accumulators, *second]
        first, last = 2 + len(fragments), 2 + len(fragments) + len(accumulators)
        steps = ceil_divide(self.shape.k - self.first_k, variant.k)
        blocks = variant.k // mma.k
        with b.loop(0, steps, 1, carried) as loop:
            read, write = loop.carried[:2]
            next_read = read
            fragments, accumulators = loop.carried[2:first], loop.carried[first:last]
            fetched_k = self.first_k + (loop.index + (variant.stages - 1)) * variant.k
            for block in range(blocks):
                if block == blocks - 1:
                    pipeline.end_fetch(write)
                    # After this, all threads have read this tile, and the next one has arrived.
                    pipeline.wait()
                    next_read = next_in_ring(read, variant.stages)
                next_fragments = load(next_read, (block + 1) % blocks)
                if block == 0:
                    pipeline.begin_fetch(fetched_k, write)
                accumulators = mma.multiply_tile(b, fragments[:m], fragments[m:], accumulators)
                fragments = next_fragments
            if second:
                accumulators = self._promote(loop.index, accumulators, loop.carried[last:])
            next_write = next_in_ring(write, variant.stages)
            loop.next(b.values([next_read, next_write, *fragments, *accumulators]))
        accumulators, second = loop.results[first:last], loop.results[last:]
        return self._sums(accumulators, second) if second else accumulators

    def _promote(
        self, step: Number, accumulators: Sequence[Value], second: Sequence[Value]
    ) -> list[Value]:
        """Adds the accumulators to the second ones and clears them, before they can overflow
        (tensor cores saturate, this addition wraps) or lose bits. Returns both, the first ones
        first."""
        b, type_ = self.b, self.mma.accumulator_type
        is_integer = self.mma.accumulator == "i32"
        most = MOST_I8_PRODUCTS if is_integer else MOST_EXACT_PRODUCTS
        steps = 2 ** (max(most // self.variant.k, 1).bit_length() - 1)
        return b.choose(
            compare("eq", step % steps, steps - 1),
            [type_] * (2 * len(accumulators)),
            lambda: [*[b.zero(type_)] * len(second), *self._sums(accumulators, second)],
            lambda: [*accumulators, *second],
        )

    def _sums(self, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return [
            add_accumulators(self.b, one, other) for one, other in zip(left, right, strict=True)
        ]
