"""The kernel: a warp-specialized, persistent GEMM.

A block consists of a producer warpgroup, which copies, and up to three consumer warpgroups, which
compute one tile of C after the other. Between them is a pipeline of stages. A stage has a tile of A
and a tile of B, with 128 bytes along K.

The blocks of a cluster share their operand tiles (`cluster`). Clusters then iterate over groups of
tiles, of which each block computes one.

Elements of a tile outside of A and B are filled with zeros, and those outside of C are not stored.
"""

from __future__ import annotations

from aotc.builder import Builder, Launch
from aotc.builder.numbers import Number, Scalar, Value, ceil_divide, compare, divide_up, maximum
from aotc.kernels.hopper.cta import Cta, size_of
from aotc.kernels.hopper.operand import OperandTile
from aotc.kernels.hopper.tiles import Tile, computed_here, rasterize
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Problem
from aotc.kernels.matmul.wgmma.cluster import Cluster, ClusterPipeline
from aotc.kernels.matmul.wgmma.cluster_split_k import ClusterSplitK, stored_columns
from aotc.kernels.matmul.wgmma.epilogue import TmaStoreEpilogue, accumulator_of
from aotc.kernels.matmul.wgmma.grid_split_k import GridSplitK, stored_problem
from aotc.kernels.matmul.wgmma.mma import CollectiveMma, PromotingMma, TileShape, WarpgroupPart
from aotc.kernels.matmul.wgmma.ping_pong import MainloopOrder
from aotc.kernels.matmul.wgmma.transpose_of_c_store import TransposingEpilogue
from aotc.kernels.matmul.wgmma.transposed_store import TransposedEpilogue
from aotc.kernels.matmul.wgmma.variants import Variant, accumulators_of

# The registers of a thread of the producer and of a consumer, by the number of consumers.
# Warpgroups begin with equal numbers: 168 if there are three, and 128 if there are four. With two
# warpgroups, each has as many as it needs.
_REGISTERS = {2: (40, 232), 3: (32, 160)}
# Limits for loading epilogue operands a subtile ahead, with fewer than three consumers: the number
# of accumulators of a thread, and the registers of accumulators and loaded operands together.
# Beyond them, ptxas spills.
_MOST_ACCUMULATORS_AHEAD, _MOST_REGISTERS_AHEAD = 128, 192


def operands(problem: Problem, variant: Variant) -> tuple[OperandTile, OperandTile]:
    """The left and the right operand tile of a stage: A's and B's, or B's and A's if the kernel
    computes the transpose of C."""
    a, b = problem.a, problem.b
    a_is_k_major, b_is_k_major = not a.transposed, b.transposed
    if variant.transposes_c:
        a, b, a_is_k_major, b_is_k_major = b, a, b_is_k_major, a_is_k_major
    rows, batched = variant.small_m or variant.m, problem.batched
    return (
        OperandTile.of(a, rows, is_k_major=a_is_k_major, batched=batched, sharers=variant.across),
        OperandTile.of(
            b, variant.n, is_k_major=b_is_k_major, batched=batched, sharers=variant.down
        ),
    )


def stage_bytes(problem: Problem, variant: Variant) -> int:
    return sum(operand.bytes for operand in operands(problem, variant))


def epilogue_bytes(variant: Variant) -> int:
    return TmaStoreEpilogue.shared_bytes(4 * variant.consumers, variant.buffers)


def shared_bytes(problem: Problem, variant: Variant) -> int:
    """The dynamic shared memory of a block in bytes: the stages, followed by the epilogue's
    buffers."""
    return variant.stages * stage_bytes(problem, variant) + epilogue_bytes(variant)


class Kernel:
    """Builds one kernel and its launch. Values that its methods share are members."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        arguments: Arguments,
        left: OperandTile | None = None,
    ) -> None:
        """`left`: A's tile, if A is not a matrix in memory (implicit GEMM)."""
        self.b, self.problem, self.variant = b, problem, variant
        self.arguments, self.epilogue = arguments, arguments.epilogue
        # Cᵀ = Bᵀ · Aᵀ
        self.matrices = arguments.a, arguments.b
        if variant.transposes_c:
            self.matrices = arguments.b, arguments.a
        own, self.right = operands(problem, variant)
        self.left = left or own
        self.stage_bytes = self.left.bytes + self.right.bytes

    # --- Host code -----------------------------------------------------------------------

    def build(self) -> None:
        b, problem, variant = self.b, self.problem, self.variant
        self._find_sizes()
        split_k = self.grid_split_k = GridSplitK(
            *(b, problem, variant.grid_split_k, self.arguments),
            (self.host_m, self.host_n),
        )
        with b.where(self._has_elements()):
            self.maps = [
                operand.create_tensor_map(b, matrix)
                for operand, matrix in zip((self.left, self.right), self.matrices, strict=True)
            ]
            self.store = self._store(split_k.allocate())
            self.store.create_tensor_maps()
            blocks, cluster = self._blocks(), variant.cluster * variant.cluster_split_k
            bytes_ = shared_bytes(problem, variant)
            with b.launch(blocks, variant.threads, bytes_, cluster) as launch:
                self._kernel(launch)
            split_k.reduce()

    def _find_sizes(self) -> None:
        b, problem, c = self.b, self.problem, self.arguments.c
        first = 1 if problem.batched else 0
        self.host_m, self.host_n = b.dim(c, first), b.dim(c, first + 1)
        self.host_k = b.dim(self.arguments.a, first + (0 if problem.a.transposed else 1))
        self.host_batch = b.dim(c, 0) if problem.batched else None
        if self.variant.grid_split_k > 1:
            self.host_batch = b.constant(self.variant.grid_split_k)
        if self.variant.transposes_c:
            self.host_m, self.host_n = self.host_n, self.host_m

    def _has_elements(self) -> Scalar:
        """Whether C has elements."""
        elements = self.host_m * self.host_n
        if self.host_batch is not None:
            elements = elements * self.host_batch
        return compare("ne", elements, 0)

    def _store(self, target: Value) -> TmaStoreEpilogue:
        """The epilogue. `target`: the buffer that this kernel stores to."""
        problem, variant = self.problem, self.variant
        kind: type[TmaStoreEpilogue] = TmaStoreEpilogue
        if variant.transposes_c:
            is_half = ELEMENT_BYTES[problem.a.element] == 2
            kind = TransposingEpilogue if is_half else TransposedEpilogue
        is_whole = variant.grid_split_k == 1
        accumulators = accumulators_of(variant)
        has_registers = variant.consumers < 3 and accumulators <= _MOST_ACCUMULATORS_AHEAD
        return kind(
            *(self.b, stored_problem(problem, variant), stored_columns(variant), target),
            self.arguments.epilogue_operands if is_whole else (),
            self.epilogue if is_whole else None,
            buffers=variant.buffers,
            registers_ahead=_MOST_REGISTERS_AHEAD - accumulators if has_registers else 0,
        )

    def _blocks(self) -> Number:
        """The number of blocks of the grid: the smallest number with the same number of waves as
        all multiprocessors would take. More blocks would be idle in the last wave, and take a share
        of the power before. With cluster split-K, each tile has its own blocks."""
        variant = self.variant
        down = ceil_divide(self.host_m, variant.m * variant.down)
        across = ceil_divide(self.host_n, variant.n * variant.across)
        tiles = down * across
        if self.host_batch is not None:
            tiles = tiles * self.host_batch
        if variant.cluster_split_k > 1:
            return tiles * variant.cluster_split_k
        waves = ceil_divide(tiles, variant.blocks // variant.cluster)
        return ceil_divide(tiles, waves) * variant.cluster

    # --- The kernel ----------------------------------------------------------------------

    def _kernel(self, launch: Launch) -> None:
        b, variant = self.b, self.variant
        self.cluster = Cluster(b, launch, variant.down, variant.across, variant.cluster_split_k)
        self.cluster_split_k = ClusterSplitK(b, variant)
        self.cta = Cta(b, launch)
        self._count_tiles()
        self._begin_pipeline()
        registers = _REGISTERS.get(variant.consumers)
        self.cta.specialize(self._producer, self._consumer, registers)
        self.cluster.end()

    def _count_tiles(self) -> None:
        """Computes the sizes of C, the number of tiles, and the number of K tiles of each."""
        b, problem, variant = self.b, self.problem, self.variant
        sizes = (problem.n, problem.m) if variant.transposes_c else (problem.m, problem.n)
        self.m, self.n = size_of(b, sizes[0], self.host_m), size_of(b, sizes[1], self.host_n)
        k = size_of(b, problem.k, self.host_k)
        # The grid of the clusters' groups of tiles.
        self.down = divide_up(self.m, variant.m * variant.down)
        self.across = divide_up(self.n, variant.n * variant.across)
        self.tiles_of_matrix = self.tiles = self.down * self.across
        if self.host_batch is not None:
            self.tiles = self.tiles * b.i32(self.host_batch)
        k_tiles = divide_up(k, self.left.k_extent)
        if variant.grid_split_k > 1:
            self.k_tiles, self.first_k = self.grid_split_k.divide(k_tiles), b.constant(0, "i32")
        elif variant.cluster_split_k > 1:
            self.k_tiles, self.first_k = self.cluster_split_k.divide(k_tiles, k)
        else:
            # With K = 0 there is one K tile, past the end of K, which TMA fills with zeros.
            self.k_tiles = maximum(k_tiles, 1)
            behind = b.constant(self.left.k_extent, "i32")
            self.first_k = b.select(compare("eq", k, 0), behind, b.constant(0, "i32"))

    def _begin_pipeline(self) -> None:
        b, variant = self.b, self.variant
        self.pipeline = ClusterPipeline(b, self.cluster, variant.stages, self.stage_bytes)
        with self.cta.initializes_barriers():
            self.pipeline.init_barriers(4 if variant.ping_pong else 4 * variant.consumers)
        self.cta.prefetch(self.maps)
        self.cluster.arrive()
        # The code so far may run while the previous kernel ends; the next kernel may now start its
        # own.
        b.op("nvvm.griddepcontrol", kind="#nvvm<grid_dep_action wait>")
        if variant.launches_dependents_early:
            b.op("nvvm.griddepcontrol", kind="#nvvm<grid_dep_action launch_dependents>")
        self.cluster.wait()

    def _tile(self, number: Number) -> Tile:
        """This block's tile in the cluster's group of tiles `number`."""
        variant, batch = self.variant, None
        if self.problem.batched or variant.grid_split_k > 1:
            batch = number // self.tiles_of_matrix
            number = number % self.tiles_of_matrix
        row, column = rasterize(number, self.down, self.across, variant.group)
        row = row * variant.down + self.cluster.row
        column = column * variant.across + self.cluster.column
        return Tile(row * variant.m, column * variant.n, batch)

    # --- The producer --------------------------------------------------------------------

    def _producer(self) -> None:
        b, cluster, pipeline = self.b, self.cluster, self.pipeline
        zero = b.constant(0, "i32")
        a_mask, b_mask = cluster.multicast_masks()
        with b.loop(cluster.number, self.tiles, cluster.count, [zero]) as tiles:
            [first] = tiles.carried
            tile, first_k = self.grid_split_k.place(self._tile(tiles.index), self.first_k)
            with b.loop(zero, self.k_tiles) as k_tiles:
                k = k_tiles.index * self.left.k_extent + first_k
                stage = pipeline.producer_acquire(first + k_tiles.index)
                a_offset = stage * self.stage_bytes
                b_offset = a_offset + self.left.bytes
                # Blocks that share a tile of A are distinguished by their columns; those that share
                # a tile of B, by their rows.
                a = self.left.copies(b, tile.row, k, tile.batch, cluster.column)
                pipeline.load(self.maps[0], a, self.cta.shared, a_offset, stage, a_mask)
                b_ = self.right.copies(b, tile.column, k, tile.batch, cluster.row)
                pipeline.load(self.maps[1], b_, self.cta.shared, b_offset, stage, b_mask)
            tiles.next([first + self.k_tiles])

    # --- The consumers -------------------------------------------------------------------

    def _consumer(self) -> None:
        b, variant, cluster = self.b, self.variant, self.cluster
        consumer = self.cta.warpgroup - 1
        first_row, mma = self._partition(consumer)
        first: Number = cluster.number
        step: Number = cluster.count
        count, counts = b.constant(0, "i32"), self.k_tiles
        order = None
        if variant.ping_pong:
            # The two consumers alternate in tiles, and so in the tiles' stages.
            first, step = first + consumer * step, step * 2
            count, counts = consumer * counts, counts * 2
            order = MainloopOrder(b, consumer)
        with b.loop(first, self.tiles, step, [count]) as tiles:
            [count] = tiles.carried
            tile = computed_here(b, self._tile(tiles.index))
            tile = Tile(tile.row + first_row, tile.column, tile.batch)
            if variant.cluster_split_k == 1:
                self.store.prefetch(tile)
            if order is not None:
                order.wait()
            accumulators, last_stage = mma.mainloop(count, self.k_tiles)
            if order is not None:
                order.arrive()
            accumulators = mma.tail(accumulators, last_stage)
            self.cluster_split_k.store(accumulators, tile, self.cta, consumer, self.store)
            tiles.next([count + counts])
        self.store.end()

    def _partition(self, consumer: Scalar) -> tuple[Number, CollectiveMma]:
        """This warp's first row in the tile, and the mainloop of the warpgroup's part of it."""
        b, cta, variant = self.b, self.cta, self.variant
        number = 0 if variant.ping_pong else consumer
        warp_rows = (cta.warp & 3) * 16
        first_row = number * (64 * variant.m_blocks) + warp_rows
        part = WarpgroupPart(cta.address, number, cta.lane, first_row)
        kind = PromotingMma if variant.promotes else CollectiveMma
        shape = TileShape(variant.m_blocks, variant.n, variant.parts)
        accumulator = accumulator_of(self.problem)
        mma = kind(b, (self.left, self.right), shape, self.pipeline, accumulator, part)
        buffers = (cta.warp - 4) * TmaStoreEpilogue.shared_bytes(1, variant.buffers)
        sizes = (self.n, self.m) if variant.transposes_c else (self.m, self.n)
        self.store.begin(cta, buffers + variant.stages * self.stage_bytes, sizes)
        self.pipeline.begin_consumer(cta.lane)
        return first_row, mma
