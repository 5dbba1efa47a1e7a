"""The kernel with packed weights on tensor cores that loads chunks of W to registers.

Chunks are loaded some steps before they are used. If the weights are constant, the first chunks are
loaded before the kernel waits for the previous one (programmatic dependent launch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import gcd, prod
from typing import Any

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value, divide_up
from aotc.chips import H100
from aotc.kernels.matmul.dequantized.operands import Result
from aotc.kernels.matmul.dequantized.recognition import Product, factor_of
from aotc.kernels.matmul.dequantized.tensor_core import (
    ROWS,
    STEP,
    Chunk,
    TensorCoreProduct,
    Warps,
)
from aotc.kernels.matmul.scalar import launch, wait_for_previous

_ELEMENTS = ("f16", "bf16")
_ENOUGH_WARPS = 24 * H100.multiprocessors
# The largest number of concurrent warps of a GPU with 64 registers per thread.
_MOST_WARPS = 32 * H100.multiprocessors
_MANY_STEPS = 8
_WARPS = 8


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `tiles`: the tiles of a warp. `along`: the warps of a block that
    share K. `depth`: the number of steps between a load and its use. `warps`: the warps of a block.
    `loads_first`: the loads of a later step are issued before the current step is computed, to
    further registers; otherwise after it, to the registers that it used."""

    tiles: int
    along: int
    depth: int
    warps: int = _WARPS
    loads_first: bool = False
    overlaps_previous: bool = False


def can_implement(product: Product) -> bool:
    """Whether W is computed in the type of x, which tensor cores multiply."""
    x = product.inputs[product.vector].type.element_type
    return (
        str(x) in _ELEMENTS
        and factor_of(product, narrow=True).type == x
        and product.row_bytes % STEP == 0
    )


def choose_variant(product: Product, *, overlaps_previous: bool) -> Variant:
    """The best variant of those measured on an H200. All warps of a block share K. Few registers
    are used, except for few warps with many steps. There are more warps for several vectors, and if
    all blocks are concurrent and their warps have few steps."""
    steps, tiles = product.row_bytes // STEP, divide_up(product.sizes[product.row], ROWS)
    own = steps // gcd(steps, _WARPS)
    are_few = tiles * gcd(steps, _WARPS) < _ENOUGH_WARPS
    have_place = tiles * 2 * _WARPS <= _MOST_WARPS
    has_more = product.columns > 1 or (are_few and own <= _MANY_STEPS and have_place)
    warps = 2 * _WARPS if has_more else _WARPS
    along = gcd(steps, warps)
    own = steps // along
    is_long = own > _MANY_STEPS and are_few
    depth = min(3 if is_long else 2, own)
    return Variant(1, along, depth, warps, loads_first=is_long, overlaps_previous=overlaps_previous)


class TensorCoreKernel(TensorCoreProduct):
    """Builds the kernel at the insertion point."""

    def __init__(self, b: Builder, product: Product, variant: Variant, result: Result) -> None:
        super().__init__(b, product, Warps(variant.warps, variant.along, variant.tiles), result)
        self.variant = variant
        self.loads_early = variant.overlaps_previous and product.has_constant_weights

    def build(self) -> None:
        b, warps = self.b, self.warps
        shape = (warps.along, self.width, warps.rows)
        early, bytes_ = self.variant.overlaps_previous, self.x_bytes + 4 * prod(shape)
        later, threads = self.loads_early, warps.threads
        with launch(
            b, self.strips, threads, bytes_, overlaps_previous=early, waits_later=later
        ) as block:
            sums = b.shared_buffer(block.shared, self.x_bytes, shape, "f32")
            self.begin(block.thread, block.shared)
            rows = [self.row(block.index, local) for local in self.local]
            self.share(self._over_k(rows), sums)
            b.barrier()
            self.store(block.index, sums, self.thread)

    def _over_k(self, rows: Sequence[Number]) -> list[Value]:
        b, depth, steps = self.b, self.variant.depth, self.steps
        # The remainder of the steps modulo the depth comes first.
        rest = steps % depth
        # The loads of x are issued first, as they are waited for first, unless the loads of W are
        # issued before the wait for the previous kernel.
        chunks = [] if self.loads_early or not self.shares_x else self.load_chunks_of_x()
        with b.reads_constants() if self.loads_early else nullcontext():
            first = [self._load(rows, step) for step in range(rest + depth)]
        if self.loads_early:
            wait_for_previous(b)
        if self.shares_x:
            self.share_x(chunks or self.load_chunks_of_x())
        # The barrier is also needed if x is not copied: LLVM would otherwise move the loads in
        # front of the loop to their uses.
        b.barrier()
        sums = self.zeros()
        count = len(sums)
        for step in range(rest):
            sums = self._multiply(step, first[step], sums)
        held = first[rest:]
        shape = held
        if steps > rest + depth:
            carried = [*sums, *_values(held)]
            with b.loop(rest, steps - depth, depth, carried) as loop:
                sums, held = loop.carried[:count], _with_values(shape, loop.carried[count:])
                next_ = []
                for number, chunk in enumerate(held):
                    step = loop.index + number
                    if self.variant.loads_first:
                        next_.append(self._load(rows, step + depth))
                    sums = self._multiply(step, chunk, sums)
                    if not self.variant.loads_first:
                        next_.append(self._load(rows, step + depth))
                loop.next([*sums, *_values(next_)])
            sums, held = loop.results[:count], _with_values(shape, loop.results[count:])
        for number, chunk in enumerate(held):
            sums = self._multiply(steps - depth + number, chunk, sums)
        return sums

    def _load(self, rows: Sequence[Number], step: Number) -> list[Chunk]:
        """Loads a chunk of each row."""
        operands = self.operands
        words = [operands.load_words(row, self.place(step)) for row in rows]
        others = [operands.load_others(row, self.place_of_others(step)) for row in rows]
        return [Chunk(*one) for one in zip(words, others, strict=True)]

    def _multiply(
        self, step: Number, chunks: Sequence[Chunk], sums: Sequence[Value]
    ) -> list[Value]:
        """The accumulators after a step."""

        def add(zeros: Mapping[Any, Value]) -> list[Value]:
            return self.add_step(step, chunks, sums, zeros)

        return self.choose_exact([one.others for one in chunks], sums, add)


def _values(steps: Sequence[Sequence[Chunk]]) -> list[Value]:
    return [value for chunks in steps for chunk in chunks for value in chunk.values()]


def _with_values(shape: Sequence[Sequence[Chunk]], values: Sequence[Value]) -> list[list[Chunk]]:
    """Chunks of the structure of `shape`, with other values."""
    found, rest = [], list(values)
    for chunks in shape:
        own = []
        for chunk in chunks:
            count = len(chunk.values())
            own.append(chunk.with_values(rest[:count]))
            rest = rest[count:]
        found.append(own)
    return found
