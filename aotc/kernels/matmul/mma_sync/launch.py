"""The host code: launches of blocks for the tiles of C, with all of K or with a part of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from aotc.builder import Builder, Launch
from aotc.builder.numbers import Number, ceil_divide, maximum, minimum
from aotc.chips import WARP
from aotc.kernels.matmul.mma_sync.copies import TileCopy
from aotc.kernels.matmul.mma_sync.kernel import Kernel
from aotc.kernels.matmul.mma_sync.store import Output, PartialOutput
from aotc.kernels.matmul.mma_sync.tiles import Coordinates, ProblemShape, Variant
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.split_k_reduction import (
    SplitKReduction,
    part_extent,
    partial_of,
    parts_of_few_tiles,
)

# The blocks that a multiprocessor has at once, if they load elements one by one and wait for these.
_BLOCKS_OF_ELEMENTS = 6


class TiledLaunch(ABC):
    """Launches kernels whose blocks compute tiles of C. Subclasses define the access to
    operands."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        shape: ProblemShape,
        shared_bytes: int,
    ) -> None:
        self.b, self.problem, self.variant, self.shape = b, problem, variant, shape
        self.shared_bytes = shared_bytes

    @abstractmethod
    def copies(self, kernel: Kernel) -> Sequence[TileCopy]:
        """The copies of A's and B's tiles. It is called in the kernel."""

    @abstractmethod
    def output(self, coordinates: Coordinates) -> Output:
        """The output that stores a block's accumulators to C."""

    @abstractmethod
    def reduce(self, reduction: SplitKReduction) -> None:
        """Launches the kernel that adds partial accumulators and stores C."""

    def build(self) -> None:
        if self.variant.split_k != 1:
            self._build_split()
            return
        with self._blocks(self.shape.batches) as (coordinates, batch):
            coordinates = replace(coordinates, batch=batch)
            kernel = Kernel(self.b, self.problem, self.variant, self.shape, coordinates)
            kernel.build(self.copies(kernel), self.output(coordinates))

    def _build_split(self) -> None:
        """Launches split-K: a block computes the partial accumulators of a tile of C, over a part
        of K."""
        b, variant, shape = self.b, self.variant, self.shape
        tiles = ceil_divide(shape.m, variant.m) * ceil_divide(shape.n, variant.n)
        blocks = 2 if variant.copy_bytes > 1 else _BLOCKS_OF_ELEMENTS
        split_k = variant.split_k or parts_of_few_tiles(tiles * shape.batches, shape.k, blocks)
        reduction = SplitKReduction(b, self.problem, split_k, shape)
        extent = part_extent(shape.k, variant.k, split_k)
        with self._blocks(reduction.count) as (coordinates, number):
            batch, split = number // split_k, number % split_k
            first_k = split * extent
            end = maximum(first_k, minimum(first_k + extent, shape.k))
            coordinates, part = replace(coordinates, batch=batch), replace(shape, k=end)
            partial = partial_of(self.problem)
            kernel = Kernel(b, partial, variant, part, coordinates, first_k)
            output = PartialOutput(b, partial, reduction.matrix(number), None, None)
            kernel.build(self.copies(kernel), output)
        self.reduce(reduction)

    @contextmanager
    def _blocks(self, matrices: Number) -> Iterator[tuple[Coordinates, Number]]:
        """The body of a launch for the tiles of `matrices` matrices. Yields the thread's
        coordinates, and the index of its matrix."""
        variant, shape = self.variant, self.shape
        tiles = ceil_divide(shape.m, variant.m), ceil_divide(shape.n, variant.n)
        # All blocks are along x, as a grid's other dimensions are limited to 65535.
        blocks = tiles[0] * tiles[1] * matrices
        with self.b.launch_unless_empty(blocks, variant.threads, self.shared_bytes) as launch:
            yield _coordinates(self.b, variant, launch, tiles)


def _coordinates(
    b: Builder, variant: Variant, launch: Launch, tiles: tuple[Number, Number]
) -> tuple[Coordinates, Number]:
    """A thread's coordinates without a batch, and the index of the block's matrix. `tiles`: the
    number of tiles of a matrix, along M and N."""
    tile_m, tile_n, matrix = _tile(b, variant, launch.block, tiles)
    lane, warp = launch.thread % WARP, launch.thread // WARP
    warp_m, warp_n = warp // variant.warps_n, warp % variant.warps_n
    coordinates = Coordinates(
        batch=0,
        row=tile_m * variant.m,
        column=tile_n * variant.n,
        thread=launch.thread,
        lane=lane,
        group=lane // 4,
        in_group=lane % 4,
        warp=warp,
        warp_row=warp_m * (variant.m // variant.warps_m),
        warp_column=warp_n * (variant.n // variant.warps_n),
    )
    return coordinates, matrix


def _tile(
    b: Builder, variant: Variant, block: Number, tiles: tuple[Number, Number]
) -> list[Number]:
    """The block's tile, as its row and column, and its matrix. Divisions are in 32 bits, which is
    far faster than in 64."""
    block, m, n = (b.signed_cast(one, "i32") for one in (block, *tiles))
    each = m * n
    matrix, number = block // each, block % each
    # Groups of `group` rows of tiles, column by column; the last group may have fewer rows.
    in_group = n * variant.group
    first = number // in_group * variant.group
    rows = minimum(m - first, variant.group)
    rest = number % in_group
    row, column = first + rest % rows, rest // rows
    return [b.signed_cast(one, "index") for one in (row, column, matrix)]
