"""Matmuls without tensor cores: f32 without tf32, f64, integers, and any other types.

A block computes a tile of C, each warp a part of the block's tile, and each thread some rows and
columns of its warp's part. Tiles of A and B are in shared memory with K outermost, so that a thread
reads 16 bytes of them in one access. The next tiles are copied while one is used. A thread loads
its fragments one step of K before it multiplies them, also across the end of a tile, so that no
multiply-add waits for a load that has just been issued. docs/matmul_ladder.md has the gain of each
of these.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from msgspec.structs import replace

from aotc.builder import WIDEST_ACCESS, Builder
from aotc.builder.numbers import Number, divide_up
from aotc.chips import H100, KIB, MAX_BLOCK_THREADS, WARP, gpu_of
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.family import FewTiles, MatmulFamily
from aotc.kernels.matmul.mma_sync.tiles import ProblemShape
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Problem
from aotc.kernels.matmul.scalar import Operands, accumulator_type_of, has_known_types, launch
from aotc.kernels.matmul.simt.kernel import Kernel
from aotc.kernels.matmul.simt.tiles import (
    OperandTile,
    Variant,
    can_copy,
    operand_tiles,
    shared_bytes,
)
from aotc.kernels.matmul.split_k_reduction import (
    SplitKReduction,
    partial_of,
)
from aotc.kernels.matmul.tuned import SMALL, Sizes
from aotc.kernels.matmul.waves import LEAST_PART, Shape, Tiles, parts_of_tiles
from aotc.request import Chip

_SHARED_BYTES = 160 * KIB
_MANY_BLOCKS = 2 * H100.multiprocessors  # concurrent blocks of a large GPU
_FEW_STEPS = 8  # the fewest tiles of K that a part of split-K has
_LEAST_EXTENT = 96  # the fewest elements of K that a part of f32 of known sizes has
# The kernel for C of few tiles: its m, n and k, its warps' and threads' tiles, and its slices of K.
# (Its blocks have eight warps, so that one for each multiprocessor is best. Tiles of four warps,
# with parts for two blocks, take 1.4 times as long for 100 x 4096 x 4096 on an H200.)
_SMALL_TILE = ((64, 64, 32), (64, 32, 8, 8), 4)
# The clocks of tiles in the choice at run time, to those that their multiply-adds are expected to
# take: of tiles whose accumulators another kernel adds, and of blocks of few threads. (Measured.)
_PARTIAL, _SLOW = 1.2, 1.2
_FEW_SPLITS = (2, 4, 8)  # candidates for the parts of a K of known size
_SPLITS = (2, 3, 4, 6, 8)  # likewise, of f32
# Candidates for f32 of known sizes: their m, n and k, their warps' and threads' tiles, and slices
# of K, as many as give a block of such a tile eight warps. One of their areas is often C's share of
# a multiprocessor, where the powers of two leave a part of the GPU idle.
_BALANCED = (
    *(((64, 96, 32), (32, 96, 8, 12), 4), ((96, 64, 32), (96, 32, 12, 8), 4)),
    *(((64, 96, 16), (32, 96, 8, 12), 2), ((96, 64, 16), (96, 32, 12, 8), 2)),
    *(((32, 96, 32), (32, 96, 8, 12), 4), ((96, 32, 32), (96, 32, 12, 8), 4)),
    *(((32, 64, 32), (32, 64, 8, 8), 4), ((64, 32, 32), (64, 32, 8, 8), 4)),
    *(((128, 96, 32), (32, 96, 8, 12), 2), ((96, 128, 16), (96, 32, 12, 8), 2)),
    *(((64, 192, 16), (32, 96, 8, 12), 2), ((192, 64, 16), (96, 32, 12, 8), 2)),
    *(((128, 192, 16), (32, 96, 8, 12), 1), ((192, 128, 16), (96, 32, 12, 8), 1)),
    *(((64, 128, 32), (64, 64, 8, 16), 4), ((128, 64, 32), (64, 64, 16, 8), 4)),
    *(((128, 128, 16), (64, 64, 8, 16), 2), ((64, 64, 16), (64, 32, 8, 8), 2)),
)
# Likewise, with four warps, for a C that fills a GPU by parts of K alone otherwise. (With two such
# blocks for a multiprocessor, 256 x 512 x 512 takes 7.1 us on an H200, and 6.3 with larger tiles.)
_SMALLEST = ((16, 32, 32), (16, 32, 4, 4), 4)
_LOADING_TOO = 3  # candidates with loads and stores, where asynchronous copies are possible


class _Costs(NamedTuple):
    """The cost model, measured on a multiprocessor."""

    multiply_adds: float  # of f32, per clock; `_clocks` adds those of other instructions
    alone: float  # fraction of the rate that a small block reaches, alone on its multiprocessor
    start_clocks: float  # until the first tile is in shared memory, and of the launch
    # Clocks of split-K's reduction kernel: those of its launch, and those for each partial
    # accumulator of a multiprocessor's share of C.
    sum_start_clocks: float
    sum_clocks: float


# f32 of known sizes: fitted to 108 timed kernels of 12 sizes on an H200 and an H100. The error is
# 6 %, root mean square.
_FITTED = _Costs(128, 0.95, 4900, 1200, 0.52)
# The clocks of a multiply-add, of an instruction that reads from shared memory, and of an
# instruction that copies to shared memory.
_CLOCKS = 0.9
_READ_CLOCKS = 5.0
_COPY_CLOCKS = 18.5
_SLICE_CLOCKS = 0.1  # for each element of C's tile of a slice of K, to add them
# All other problems, whose loops have more address instructions, or other multiply-adds: a thread
# with e elements of C reaches the fraction e / (e + _OVERHEAD) of the rate.
_OTHER = _Costs(116, 0.9, 2000, 20000, 0)
_OVERHEAD = 16
_ALONE = 256 * 96  # with as many accumulators, a block takes most registers of a multiprocessor
_ENOUGH_THREADS = 256  # a block of fewer threads counts as small
_LEAST_THREADS = 128  # below these threads, a small block's rate falls in proportion


def _is_fitted(problem: Problem) -> bool:
    elements = {problem.a.element, problem.b.element, accumulator_type_of(problem)}
    return elements == {"f32"} and problem.has_known_sizes


def _costs(problem: Problem) -> _Costs:
    return _FITTED if _is_fitted(problem) else _OTHER


def _clocks(problem: Problem, variant: Variant) -> float:
    """The clocks of a warp per multiply-add, relative to a multiply-add without any overhead."""
    each = variant.thread_m * variant.thread_n
    if not _is_fitted(problem):
        return (each + _OVERHEAD) / each
    # Instructions for each multiply-add.
    group = WIDEST_ACCESS // ELEMENT_BYTES[accumulator_type_of(problem)]
    reads = (variant.thread_m + variant.thread_n) / group / each
    copied = sum(_copies(side, variant) for side in operand_tiles(problem, variant))
    copies = copied / (variant.m * variant.n)
    return _CLOCKS + _READ_CLOCKS * reads + _COPY_CLOCKS * copies


def _is_worth_splitting(problem: Problem, variant: Variant, split_k: int) -> bool:
    """Whether C has too few tiles for a GPU, and each part of K is still worth a block."""
    m, n, k = problem.m, problem.n, problem.k
    if m is None or n is None or k is None or variant.threads < _LEAST_THREADS:
        return False
    tiles = -(-m // variant.m) * -(-n // variant.n)
    least = _LEAST_EXTENT if _is_fitted(problem) else variant.k * _FEW_STEPS
    return 0 < tiles * split_k <= _MANY_BLOCKS and k >= split_k * least


def _fits_smallest(problem: Problem) -> bool:
    """Whether C, of all batches, has at most one tile of `_SMALLEST` for each multiprocessor."""
    rows, columns, _ = _SMALLEST[0]
    m, n = problem.m, problem.n
    if m is None or n is None:
        return False
    return -(-m // rows) * -(-n // columns) * problem.likely_batch <= H100.multiprocessors


def _copies(side: OperandTile, variant: Variant) -> float:
    """The number of instructions that copy one index of K of a tile. If they are loads, it includes
    the stores to shared memory, which are of single elements if K is contiguous."""
    copies = side.tile / side.width
    if variant.copy_bytes == 0:
        copies += side.tile if side.is_k_major else copies
    return copies


class Simt(MatmulFamily[Problem]):
    """Matmuls by multiply-adds, without tensor cores."""

    name = "multiply-adds"
    mnemonic = "simt"
    target = ANY_GPU
    variant_type = Variant
    is_arithmetic_bound = True

    def describe(self, variant: Variant) -> str:
        words = [super().describe(variant)]
        if variant.sliced_k > 1:
            words.append(f"{variant.sliced_k} slices of each tile of K")
        if variant.split_k > 1:
            words.append(f"K in {variant.split_k} parts")
        return ", ".join(words)

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return shared_bytes(problem, variant)

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        if not has_known_types(problem):
            return False
        element = accumulator_type_of(problem)
        group = WIDEST_ACCESS // ELEMENT_BYTES[element]
        lanes = variant.warp_m // variant.thread_m * (variant.warp_n // variant.thread_n)
        vectors = variant.thread_m * variant.thread_n // group
        if (
            variant.k & (variant.k - 1)
            or (variant.k % variant.sliced_k or vectors % variant.sliced_k)
            or variant.k < 2 * variant.sliced_k
            or (lanes != WARP or variant.m % variant.warp_m or variant.n % variant.warp_n)
            or (variant.thread_m % group or variant.thread_n % group)
            or not (WARP <= variant.threads <= MAX_BLOCK_THREADS)
            or self.shared_bytes(problem, variant) > _SHARED_BYTES
            # Partial accumulators are stored without a conversion.
            or (variant.split_k != 1 and problem.a.element != element)
        ):
            return False
        both = operand_tiles(problem, variant)
        if variant.copy_bytes:
            if problem.a.element != element or problem.b.element != element:
                return False
            if variant.stages < 2 or variant.copy_bytes < ELEMENT_BYTES[element]:
                return False
            if any(side.matrix.alignment < side.width * ELEMENT_BYTES[element] for side in both):
                return False
        elif variant.stages != 2:
            return False
        return all(can_copy(side, variant) for side in both)

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        if not has_known_types(problem):
            return ()
        element = accumulator_type_of(problem)
        sizes = [
            *(((128, 64, 8), (64, 32, 8, 8)), ((64, 64, 8), (64, 32, 8, 8))),
            *(((128, 128, 8), (64, 32, 8, 8)), ((64, 64, 8), (32, 16, 8, 4))),
            *(((64, 32, 8), (32, 16, 4, 4)), ((32, 32, 8), (16, 16, 4, 2))),
        ]
        if ELEMENT_BYTES[element] == 4:
            # With an A that is K-major and of unknown sizes, tiles of half the K extent are as fast
            # (B transposed: by 6 %), and their code is half as long. (As measured; with known sizes
            # or another A they are 2 to 5 % slower.)
            k = 8 if not (problem.has_known_sizes or problem.a.transposed) else 16
            large = [((128, 256, k), (64, 64, 8, 16)), ((256, 128, k), (64, 64, 16, 8))]
            # Elements of a K-major operand are copied one by one: the wider side of the tile is
            # then best on the other operand. (As measured; also for unknown sizes.)
            transposed = (problem.a.transposed, problem.b.transposed)
            if all(transposed) or (any(transposed) and not problem.has_known_sizes):
                large.reverse()
            sizes = [
                *(*large, ((256, 128, 8), (64, 64, 16, 8))),
                *(((128, 64, 16), (64, 32, 8, 8)), ((64, 128, 8), (64, 32, 8, 8))),
                *(((128, 64, 8), (64, 32, 8, 8)), ((128, 128, 8), (64, 32, 8, 8))),
                *(((128, 128, 16), (64, 32, 8, 8)), ((128, 128, 8), (64, 64, 16, 8))),
                *(((64, 64, 8), (64, 32, 8, 8)), ((64, 64, 16), (32, 32, 8, 4))),
                *(((64, 64, 16), (32, 16, 4, 4)), ((32, 64, 16), (32, 16, 4, 4))),
                *(((32, 32, 16), (32, 16, 4, 4)), ((32, 32, 32), (32, 16, 4, 4))),
            ]
        # The widest copies that alignments allow, with 3 stages and with 4; and loads.
        copying, loading = [], []
        for tile, part in sizes:
            stages = (4, 3) if tile[2] == 8 else (3, 4)
            kinds = itertools.product((16, 8, 4), stages)
            able = [Variant(*tile, *part, count, bytes_) for bytes_, count in kinds]
            copying += [variant for variant in able if self.can_implement(problem, variant)][:2]
            loading.append(Variant(*tile, *part, 2, 0))
        if copying:
            loading = loading[:_LOADING_TOO]
        if copying and accumulator_type_of(problem) == "f32":
            smallest = [_SMALLEST] if _fits_smallest(problem) else []
            tiles = [*_BALANCED, *smallest] if _is_fitted(problem) else [*_BALANCED[:2]]
            balanced = [
                Variant(*tile, *part, copy_bytes=copying[0].copy_bytes, sliced_k=count)
                for tile, part, count in tiles
            ]
            copying += [variant for variant in balanced if self.can_implement(problem, variant)]
        split = [
            one
            for variant in copying
            for split_k in (_SPLITS if _is_fitted(problem) else _FEW_SPLITS)
            if _is_worth_splitting(problem, variant, split_k)
            and self.can_implement(problem, one := replace(variant, split_k=split_k))
        ]
        return (
            *copying,
            *(variant for variant in loading if self.can_implement(problem, variant)),
            *split,
        )

    def tile_clocks(self, problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
        """See `MatmulFamily`."""
        costs = _costs(problem)
        elements = variant.m * variant.n
        clocks = _clocks(problem, variant) / costs.multiply_adds
        tile = k / variant.split_k * elements * clocks
        if variant.sliced_k > 1:
            tile += _SLICE_CLOCKS * elements * variant.sliced_k
        once = costs.start_clocks
        # The last block on a multiprocessor runs alone.
        if variant.threads < _ENOUGH_THREADS:
            alone = costs.alone * min(1, variant.threads / _LEAST_THREADS)
            once += tile * (1 / alone - 1)
        return tile, once

    def expected_clocks(
        self,
        problem: Problem,
        variant: Variant,
        sizes: Sizes,
        chip: Chip,
        *,
        at_most: bool = False,
    ) -> float:
        clocks = super().expected_clocks(problem, variant, sizes, chip, at_most=at_most)
        split_k = self.for_sizes(problem, variant, sizes).split_k
        if split_k == 1:
            return clocks
        costs = _costs(problem)
        sums = sizes[0] * sizes[1] / gpu_of(chip.capability).multiprocessors * (split_k + 1)
        return clocks + costs.sum_start_clocks + costs.sum_clocks * sums

    def few_tiles(self, problem: Problem) -> FewTiles | None:
        tile, part, slices = _SMALL_TILE
        for copy_bytes in (16, 8, 4):
            small = Variant(*tile, *part, copy_bytes=copy_bytes, sliced_k=slices)
            split = replace(small, split_k=0)
            if not self.can_implement(problem, split):
                continue
            if problem.k is not None and problem.k < 2 * LEAST_PART:
                return FewTiles(small, H100.multiprocessors, 0)
            return FewTiles(split, H100.multiprocessors, 2 * LEAST_PART)
        return None

    def wave_tiles(self, problem: Problem, variant: Variant, k: Number) -> Tiles:
        clocks = self.tile_clocks(problem, replace(variant, split_k=1), SMALL)[0]
        has_parts, is_small = variant.split_k == 0, variant.threads < _LEAST_THREADS
        clocks *= _PARTIAL if has_parts else _SLOW if is_small else 1
        least_waves = _ENOUGH_THREADS // variant.threads if is_small else 1
        # Where B's copies are of single elements, two blocks for each multiprocessor hide their
        # latency: with one, 128 x 1024 x 4096 takes 1.7 times as long.
        if has_parts and problem.b.transposed:
            least_waves = max(least_waves, 2)
        return Tiles(
            (variant.m, variant.n),
            k * round(clocks) // SMALL,
            has_parts,
            least_waves,
            are_alone=variant.threads * variant.thread_m * variant.thread_n >= _ALONE,
        )

    def for_sizes(self, problem: Problem, variant: Variant, sizes: Sizes) -> Variant:
        """The variant with the number of parts of K that the program computes for the sizes."""
        return replace(variant, split_k=self._parts(problem, variant, Shape(*sizes)))

    def _parts(self, problem: Problem, variant: Variant, shape: Shape) -> Number:
        """The number of parts of K."""
        if variant.split_k:
            return variant.split_k
        tiles = self.wave_tiles(problem, variant, shape.k)
        return parts_of_tiles(shape, shape.m, tiles)[0]

    def insert(self, b: Builder, problem: Problem, variant: Variant, arguments: Arguments) -> None:
        operands = Operands(b, problem, arguments)
        first, count = arguments.rows or (0, operands.m)
        if variant.split_k == 1:
            kernel = Kernel(b, problem, variant, operands, arguments.epilogue, first_row=first)
            self._launch(b, kernel, count, operands.batches)
            return
        shape = ProblemShape(count, operands.n, operands.k, operands.batches)
        sizes = Shape(shape.m, shape.n, shape.k, shape.batches)
        split_k = self._parts(problem, variant, sizes)
        reduction = SplitKReduction(b, problem, split_k, shape, first)
        target = (reduction.buffer, partial_of(problem).c)
        kernel = Kernel(b, problem, variant, operands, None, target, split_k, first)
        self._launch(b, kernel, count, reduction.count)
        reduction.reduce_to(arguments)

    def _launch(self, b: Builder, kernel: Kernel, rows: Number, split_k: Number) -> None:
        """Launches the kernel for a number of rows of C. `split_k`: the number of parts of K, times
        the size of the batch."""
        variant, operands = kernel.variant, kernel.operands
        tiles_m, tiles_n = divide_up(rows, variant.m), divide_up(operands.n, variant.n)
        blocks = split_k * (tiles_m * tiles_n)
        shared = self.shared_bytes(kernel.problem, variant)
        with launch(b, blocks, variant.threads, shared) as block:
            kernel.build(block, tiles_m, tiles_n)


SIMT = Simt()
