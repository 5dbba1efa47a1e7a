"""Attention on Hopper (sm_90a), in one kernel: TMA copies Q, K and V, wgmma computes scores and O.

A block has a producer warpgroup and one to four consumer warpgroups, each of which computes 64 rows
of O. A consumer iterates over K and V in tiles of some keys, from the last tile, the only one with
keys past the end, to the first. For each, it computes S = Q · Kᵀ and P, the exponentials of S, both
in registers, and O = O · rescale + P · V, with P as the A operand. Scores are never in memory.
While a warpgroup computes the exponentials of a tile, its MMAs of the previous tile are in flight,
and those of the other warpgroups (ping-pong schedule).

Between producer and consumers is a ring of stages (`hopper.pipeline`). A stage has a tile of K or
of V, in the order of their use: K, K, V, K, V, … V. Q has its own ring, of one stage.

With causality, a warpgroup skips the tiles of keys that only later warpgroups of its tile attend
to.

Scores and O are f32. P is converted to Q's type before the second matmul, and O is divided by the
row sums after it. This is another order than that of the operations, with the same error bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from aotc.builder import Buffer, Builder, Launch
from aotc.builder.numbers import (
    Float,
    Number,
    Scalar,
    Value,
    ceil_divide,
    compare,
    maximum,
    minimum,
    signed_maximum,
)
from aotc.chips import H100
from aotc.kernels.attention.masks import MaskReader
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.softmax import Rows, Softmax
from aotc.kernels.attention.wgmma.mask_tiles import MaskTiles, has_tiles
from aotc.kernels.attention.wgmma.mma import ROWS, Operand, TiledMma, operands_of
from aotc.kernels.hopper.cta import WARPGROUP, Cta, size_of
from aotc.kernels.hopper.mma import fence
from aotc.kernels.hopper.pipeline import TmaPipeline
from aotc.kernels.hopper.smem import (
    SWIZZLE_BYTES,
    named_barrier,
    named_barrier_arrive,
    pack,
    struct_type,
)
from aotc.kernels.hopper.tiles import Tile, rasterize
from aotc.kernels.hopper.tma import TensorMap
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.wgmma.epilogue import TmaStoreEpilogue

# The registers of a thread of the producer and of a consumer, by the number of consumers.
REGISTERS = {1: (40, 232), 2: (24, 240), 3: (32, 160), 4: (24, 112)}
_MASK_STAGES = 2


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    `consumers`: the number of consumer warpgroups. `keys`: the keys of a tile of K and V. `stages`:
    the stages of the ring, each of which has a tile of K or V. `group`: the number of matrices of
    the batch that are rasterized together, so that their K and V stay in the L2 cache.
    `is_ping_pong`: the warpgroups take turns at the tensor cores. `blocks`: the number of
    concurrent blocks; 0 for one block for each tile of O.
    """

    consumers: int = 2
    keys: int = 128
    stages: int = 4
    group: int = 1
    is_ping_pong: bool = True
    blocks: int = H100.multiprocessors

    @property
    def m(self) -> int:
        """The rows of a tile of O."""
        return ROWS * self.consumers

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)


class SharedMemory(Struct, frozen=True):
    """The layout of shared memory: Q, the ring, mask tiles from byte `mask` on, and the epilogue's
    buffers from byte `epilogue` on; `bytes` in all."""

    mask: int
    epilogue: int
    bytes: int

    @staticmethod
    def of(problem: Attention, variant: Variant) -> SharedMemory:
        q, k, _ = operands_of(problem, variant.m, variant.keys)
        tiles = mask_tiles_of(problem, variant)
        mask = q.bytes + variant.stages * k.bytes
        epilogue = mask + (0 if tiles is None else _MASK_STAGES * tiles.stage_bytes)
        buffers = TmaStoreEpilogue.shared_bytes(4 * variant.consumers)
        return SharedMemory(mask, epilogue, epilogue + buffers)


def mask_tiles_of(problem: Attention, variant: Variant) -> MaskTiles | None:
    mask = problem.mask
    return MaskTiles(mask, variant.m, variant.keys) if mask and has_tiles(mask) else None


class _State(Struct, frozen=True):
    """The loop-carried values: P of the previous tile of keys, the rows, the accumulators of O."""

    p: list[Scalar]
    rows: Rows
    o: list[Float]

    @property
    def values(self) -> list[Value]:
        return [*self.p, *self.rows.values, *self.o]

    def like(self, values: Sequence[Value]) -> _State:
        """The state with these values, in the order of `values`."""
        words = len(self.p)
        rows = Rows.of(values[words : words + 4])
        return _State(list(values[:words]), rows, list(values[words + 4 :]))


class Kernel:
    """Builds the kernel. Values that its methods share are members."""

    def __init__(
        self, b: Builder, problem: Attention, variant: Variant, arguments: Sequence[Value]
    ) -> None:
        self.b, self.problem, self.variant = b, problem, variant
        self.arguments = arguments
        self.head_dim = problem.head_dim or 0
        self.operands = operands_of(problem, variant.m, variant.keys)
        self.q, self.k, self.v = self.operands
        self.mask_tiles = mask_tiles_of(problem, variant)
        self.shared = SharedMemory.of(problem, variant)
        product = Problem(problem.q, problem.v, problem.o, accumulator="f32", batched=True)
        self.epilogue = TmaStoreEpilogue(b, product, self.head_dim, arguments[3])

    def build(self) -> None:
        b, variant = self.b, self.variant
        q, k, v, _, *masks = self.arguments
        batch, self.host_queries = (b.dim(q, axis) for axis in range(2))
        self.host_keys = b.dim(k, 1)
        self.host_batch = batch * max(self.problem.heads[0], 1)
        with b.where(compare("ne", self.host_batch * self.host_queries, 0)):
            self.maps = [
                operand.create_tensor_map(b, source)
                for operand, source in zip(self.operands, (q, k, v), strict=True)
            ]
            if self.mask_tiles is not None:
                self.mask_map = self.mask_tiles.create_tensor_map(b, masks[0])
            self.epilogue.create_tensor_maps()
            blocks = ceil_divide(self.host_queries, variant.m) * self.host_batch
            if variant.blocks:
                blocks = minimum(blocks, variant.blocks)
            with b.launch(blocks, variant.threads, self.shared.bytes) as launch:
                self._build_kernel(launch)

    # --- The kernel ----------------------------------------------------------------------

    def _build_kernel(self, launch: Launch) -> None:
        b, problem, variant = self.b, self.problem, self.variant
        self.launch, self.cta = launch, Cta(b, launch)
        self.queries = size_of(b, problem.q.sizes[0], self.host_queries)
        self.keys = size_of(b, problem.k.sizes[0], self.host_keys)
        self.batch = b.i32(self.host_batch)
        self.down = (self.queries + (variant.m - 1)) // variant.m
        self.tiles = self.down * self.batch
        self._begin_pipelines()
        self.cta.specialize(self._produce, self._consume, REGISTERS[variant.consumers])

    def _begin_pipelines(self) -> None:
        b, variant, cta = self.b, self.variant, self.cta
        self.ring = TmaPipeline(b, variant.stages, self.k.bytes)
        self.q_ring = TmaPipeline(b, 1, self.q.bytes)
        self.pipelines = [self.ring, self.q_ring]
        if self.mask_tiles is not None:
            self.mask_ring = TmaPipeline(b, _MASK_STAGES, self.mask_tiles.stage_bytes)
            self.pipelines.append(self.mask_ring)
        with cta.initializes_barriers():
            for pipeline in self.pipelines:
                pipeline.init_barriers(4 * variant.consumers)
        cta.prefetch(self.maps)
        b.barrier()

    def _tile(self, number: Scalar) -> Tile:
        """The coordinates of tile `number`. Tiles are numbered over `group` matrices of the batch,
        then down the rows. With causality they are numbered up, as the last rows have the most
        keys, so that the longest tiles start first. Tiles are then aligned to the last row, so that
        only the first tile, which has the fewest keys, may be partial. It may begin in front of the
        matrix, where TMA reads zeros."""
        variant = self.variant
        batch, row = rasterize(number, self.batch, self.down, variant.group)
        first = row * variant.m
        if self.problem.causal:
            # In front of the matrix, a warpgroup has either all of its rows or none.
            parts = (self.queries + (ROWS - 1)) // ROWS
            first = parts * ROWS - variant.m - first
        return Tile(first, 0, batch)

    def _key_tiles(self, end: Number) -> Scalar:
        """The number of tiles of keys that the rows in front of `end` attend to; at least 1."""
        seen: Number = self.keys
        if self.problem.causal:
            seen = minimum(seen, signed_maximum(end, 1))
        return Scalar((seen + (self.variant.keys - 1)) // self.variant.keys)

    @contextmanager
    def _each_tile(self) -> Iterator[tuple[Tile, Scalar, Scalar, list[Number]]]:
        """For each tile of the block: the tile, the number of tiles and of the ring's stages before
        it, and a list, to which the body appends the number of stages after it."""
        b = self.b
        block, step = b.i32(self.launch.block), b.i32(self.launch.blocks)
        zero = b.zero("i32")
        with b.loop(block, self.tiles, step, [zero, zero]) as loop:
            iteration, count = loop.carried
            behind: list[Number] = []
            yield self._tile(loop.index), iteration, count, behind
            loop.next([iteration + 1, *behind])

    # --- The producer --------------------------------------------------------------------

    def _produce(self) -> None:
        b = self.b
        q_map, k_map, v_map = self.maps
        with self._each_tile() as (tile, iteration, self.count, behind):
            tiles = self._key_tiles(tile.row + self.variant.m)
            last = tiles - 1
            self._copy(self.q_ring, iteration, self.q, q_map, 0, (tile.row, tile.batch))
            self._copy_keys(self.k, k_map, self.count, last, tile)
            self._copy_mask(0, last, tile)
            with b.loop(1, tiles) as loop:
                # K's tile j, and V's j - 1.
                j = loop.index
                count, number = self.count + (j << 1), last - j
                self._copy_keys(self.k, k_map, count - 1, number, tile)
                self._copy_keys(self.v, v_map, count, number + 1, tile)
                self._copy_mask(j, number, tile)
            end = self.count + (tiles << 1)
            self._copy_keys(self.v, v_map, end - 1, 0, tile)
            behind.append(end)

    def _copy_keys(
        self, operand: Operand, map_: TensorMap, count: Number, number: Number, tile: Tile
    ) -> None:
        """Copies a tile of keys to the ring."""
        row = number * self.variant.keys
        self._copy(self.ring, count, operand, map_, self.q.bytes, (row, tile.batch))

    def _copy(
        self,
        ring: TmaPipeline,
        count: Number,
        operand: Operand,
        map_: TensorMap,
        begin: int,
        place: tuple[Number, Number | None],
    ) -> None:
        """Copies the operand's tile to a stage. `begin`: the ring's offset in shared memory.
        `place`: the tile's row, and its index in the batch."""
        row, batch = place
        assert batch is not None
        stage = ring.producer_acquire(count, operand.bytes)
        offset = stage * ring.stage_bytes + begin
        operand.load(self.b, map_, self.cta.shared, offset, (row, batch), ring, stage)

    def _copy_mask(self, j: Number, number: Number, tile: Tile) -> None:
        """Copies the mask of the j-th tile of keys, whose number is `number`."""
        if self.mask_tiles is None:
            return
        assert tile.batch is not None
        ring, tiles = self.mask_ring, self.mask_tiles
        stage = ring.producer_acquire(self._mask_count(j), tiles.bytes)
        offset = stage * ring.stage_bytes + self.shared.mask
        first = number * self.variant.keys
        for more, coordinates in tiles.copies(self.b, tile.batch, tile.row, first):
            to = offset + more
            self.mask_map.load(self.b, coordinates, self.cta.shared, to, ring.full, stage)

    def _mask_count(self, j: Number) -> Number:
        """The mask ring's count. It has one mask tile for each two stages of the ring (K and V)."""
        return (self.count >> 1) + j

    # --- Consumers -----------------------------------------------------------------------

    def _consume(self) -> None:
        self.consumer = self.cta.warpgroup - 1
        self._partition()
        if self._is_ping_pong:
            with self.b.where(compare("eq", self.consumer, self.variant.consumers - 1)):
                self._give_turn()
        with self._each_tile() as (tile, iteration, self.count, behind):
            behind.append(self._compute_tile(tile, iteration))
        self.epilogue.end()

    def _partition(self) -> None:
        """Sets this warpgroup's rows, operands and buffers."""
        b, cta, problem = self.b, self.cta, self.problem
        own = cta.address + self.consumer * (ROWS * SWIZZLE_BYTES)
        self.mma = TiledMma(b, self.operands, own, cta.address + self.q.bytes)
        warp_rows = (cta.warp & 3) * 16
        self.warp_row = self.consumer * ROWS + warp_rows
        buffers = (cta.warp - 4) * TmaStoreEpilogue.shared_bytes(1) + self.shared.epilogue
        columns = b.constant(self.head_dim * max(problem.heads[3], 1), "i32")
        self.epilogue.begin(cta, buffers, (self.queries, columns))
        for pipeline in self.pipelines:
            pipeline.begin_consumer(cta.lane)
        if self.mask_tiles is not None:
            self.mask_tiles.begin(b, self.warp_row, cta.lane)
        self.softmax = Softmax(b, problem.scale, problem.q.element, cta.lane, problem.mask)

    def _compute_tile(self, tile: Tile, iteration: Scalar) -> Number:
        """Computes O of this warpgroup's rows. Returns the ring's count after the tile."""
        b, variant = self.b, self.variant
        tiles = self._key_tiles(tile.row + variant.m)
        last = tiles - 1
        self._find_rows(tile)
        own_row = tile.row + self.consumer * ROWS
        skipped: Number = 0
        if self._can_skip:
            skipped = tiles - self._key_tiles(own_row + ROWS)
            self._skip(skipped)
        self.q_ring.consumer_wait(iteration)
        stage = self.ring.consumer_wait(self._k_count(skipped))
        fence(b)
        scores = self.mma.wait(self.mma.multiply_qk(stage), 0)
        self.ring.consumer_release(stage)
        number = last - skipped
        scores = self._mask_keys(self._add_mask(scores, number, skipped), number)
        p, rows, _ = self.softmax.update(scores, self.softmax.initial_rows())
        words = self.softmax.pack(p)
        state = _State(words, rows, [b.zero("f32")] * (self.head_dim // 2))

        first_unmasked = first = skipped + 1
        if self.problem.causal and variant.keys % ROWS:
            # The tiles that the first rows do not attend to completely.
            behind = signed_maximum(own_row + 1, 0)
            whole = minimum(behind // variant.keys, tiles)
            first_unmasked = maximum(tiles - whole, first)
            state = self._mainloop(state, first, first_unmasked, last, masks_keys=True)
        state = self._mainloop(state, first_unmasked, tiles, last, masks_keys=False)

        self.q_ring.consumer_release(0)
        end = self.count + (tiles << 1)
        stage = self.ring.consumer_wait(end - 1)
        fence(b)
        o = self.mma.wait(self.mma.multiply_pv(stage, state.p, state.o), 0, state.p)
        self.ring.consumer_release(stage)
        is_zero = self.problem.masked_rows_are_zero
        inverses = self.softmax.inverse_row_sums(state.rows, empty_is_zero=is_zero)
        o = self.softmax.rescale(o, inverses)
        assert tile.batch is not None
        column, batch = 0, tile.batch
        if heads := self.problem.heads[3]:
            column, batch = batch % heads * self.head_dim, batch // heads
        # Tiles that begin in front of the matrix are not stored.
        with b.where(compare("sge", own_row, 0)):
            packed = pack(b, o, struct_type("f32", len(o)))
            self.epilogue.store([packed], Tile(self.row, column, batch))
        return end

    def _find_rows(self, tile: Tile) -> None:
        mask = self.problem.mask
        self.row = tile.row + self.warp_row
        self.first_row = self.row + self.softmax.row
        self.mask_reader = None
        if mask is not None and self.mask_tiles is None:
            assert tile.batch is not None
            buffer, sizes = Buffer(self.arguments[4]), (self.queries, self.keys)
            self.mask_reader = MaskReader(self.b, mask, buffer, tile.batch, self.first_row, sizes)

    @property
    def _can_skip(self) -> bool:
        """Whether a warpgroup may attend to fewer tiles of keys than the last one of its tile."""
        return self.problem.causal and self.variant.consumers > 1

    def _skip(self, tiles: Number) -> None:
        """Skips `tiles` tiles of keys that this warpgroup does not attend to: it releases their
        stages, and passes its turns on to the next warpgroup."""
        with self.b.loop(0, tiles) as loop:
            j = loop.index
            following = j + 1
            self._pass(self.ring, self._k_count(j))
            self._await_turn()
            self._give_turn()
            self._pass(self.ring, self.count + (following << 1))
            if self.mask_tiles is not None:
                self._pass(self.mask_ring, self._mask_count(j))

    def _pass(self, ring: TmaPipeline, count: Number) -> None:
        ring.consumer_release(ring.consumer_wait(count))

    def _k_count(self, j: Number) -> Number:
        """The ring's count of the tile's j-th tile of K. K 0 is followed by K 1, V 0, K 2, V 1 and
        so on: each but the first is one before the V of the previous tile."""
        return self.count + ((j << 1) - minimum(j, 1))

    def _mainloop(
        self, state: _State, first: Number, end: Number, last: Scalar, *, masks_keys: bool
    ) -> _State:
        """The state after the tiles from `first` to `end`, which are numbered from `last` down."""
        with self.b.loop(first, end, 1, state.values) as loop:
            number = last, loop.index
            loop.next(
                self._add_tile(state.like(loop.carried), *number, masks_keys=masks_keys).values
            )
        return state.like(loop.results)

    def _add_tile(self, state: _State, last: Scalar, j: Scalar, *, masks_keys: bool) -> _State:
        """Multiplies the scores of tile j, numbered from `last` down, and adds P · V of the
        previous tile to O; then computes P of tile j. `masks_keys`: some of its keys are masked or
        beyond the last one."""
        b, ring = self.b, self.ring
        v_count = self.count + (j << 1)
        k_count = v_count - 1
        k_stage, v_stage = ring.stage(k_count), ring.stage(v_count)
        ring.consumer_wait(k_count)
        self._await_turn()
        fence(b)
        packed_scores = self.mma.multiply_qk(k_stage)
        ring.consumer_wait(v_count)
        packed_o = self.mma.multiply_pv(v_stage, state.p, state.o)
        self._give_turn()
        scores = self.mma.wait(packed_scores, 1)
        ring.consumer_release(k_stage)
        number = last - j
        scores = self._add_mask(scores, number, j)
        if masks_keys:
            scores = self._mask_keys(scores, number)
        p, rows, factors = self.softmax.update(scores, state.rows)
        o = self.mma.wait(packed_o, 0, state.p)
        ring.consumer_release(v_stage)
        words = self.softmax.pack(p)
        return _State(words, rows, self.softmax.rescale(o, factors))

    def _add_mask(self, scores: list[Float], number: Number, j: Number) -> list[Float]:
        """The scores plus the mask."""
        keys = self.variant.keys
        if self.mask_reader is not None:
            first = number * keys + self.softmax.column
            return self.softmax.add_mask(scores, self.mask_reader.read(first, keys))
        if self.mask_tiles is None:
            return scores
        ring = self.mask_ring
        stage = ring.consumer_wait(self._mask_count(j))
        offset = stage * ring.stage_bytes + self.shared.mask
        mask = self.mask_tiles.load(self.cta.address + offset)
        scores = self.softmax.add_mask(scores, mask)
        ring.consumer_release(stage)
        return scores

    def _mask_keys(self, scores: list[Float], number: Number) -> list[Float]:
        """The scores, -infinity for keys beyond the last one and for keys that causality masks."""
        problem, keys = self.problem, self.variant.keys
        first = number * keys
        known = problem.k.sizes[0]
        if not problem.causal and known is not None and known % keys == 0:
            return scores
        row = self.first_row if problem.causal else None
        return self.softmax.mask_keys(scores, self.keys, first, row)

    # Ping-pong schedule: the warpgroups take turns at the tensor cores. Each has a named barrier (0
    # is gpu.barrier's), on which it waits and the previous warpgroup arrives.

    @property
    def _is_ping_pong(self) -> bool:
        return self.variant.is_ping_pong and self.variant.consumers > 1

    def _await_turn(self) -> None:
        if self._is_ping_pong:
            named_barrier(self.b, self.consumer + 1, 2 * WARPGROUP)

    def _give_turn(self) -> None:
        if self._is_ping_pong:
            following = (self.consumer + 1) % self.variant.consumers
            named_barrier_arrive(self.b, following + 1, 2 * WARPGROUP)
