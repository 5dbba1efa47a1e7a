"""Attention on Hopper (sm_90a), in one kernel: TMA brings Q, K and V, wgmma makes scores and sums.

A block is one warpgroup that fetches and two or three that compute, each 64 rows of Q. For these it
goes over K and V in blocks of some keys, the last one first (which alone has keys that are not
seen): scores = Q · Kᵀ, in registers; their exponentials, which are the next product's A in
registers; sums = sums · factor + exponentials · V. Scores are never in memory. While it takes the
exponentials of a block, its products of the block before are under way, and those of the other
warpgroups, which take turns.

Between both kinds is a ring of stages (`contractions.hopper.ring`), each a block of K or one of V,
in the order of their use: K, K, V, K, V, … V. Q has a ring of its own, of one stage.

What a causal warpgroup does not see, and the next ones of its tile do, it skips.

Scores and sums are f32. Exponentials become Q's type before the second product, and are divided by
their sum after it: in another order than the operation says, with the same error bounds.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from aotc.chips import H100
from aotc.kernels.attention.masks import MaskReader
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.softmax import Rows, Softmax
from aotc.kernels.attention.wgmma.mask_tiles import MaskTiles, has_tiles
from aotc.kernels.attention.wgmma.mma import ROWS, Operand, Products
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.wgmma.block import SHARED_BYTES, WARPGROUP, Block, in_groups
from aotc.kernels.matmul.wgmma.pipeline import Ring
from aotc.kernels.matmul.wgmma.store import Store
from aotc.kernels.matmul.wgmma.tiles import (
    DEPTH,
    K_OF_WGMMA,
    SWIZZLED,
    Body,
    Tile,
    is_aligned,
)

NAME = "wgmma"
# Registers of a thread that fetches, and of one that computes, by the number of warpgroups that do.
_REGISTERS = {1: (40, 232), 2: (24, 240), 3: (32, 160)}
_MASK_STAGES = 2


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    `consumers`: warpgroups that compute. `keys`: of a block. `stages`: of the ring, each a block of
    K or V. `group`: how many matrices of the batch are gone through at once, so that their K and V
    are in the L2 cache. `takes_turns`: one warpgroup's products are between the other's.
    `blocks`: how many run at once; 0 for one for each tile of O.
    """

    consumers: int = 2
    keys: int = 128
    stages: int = 4
    group: int = 1
    takes_turns: bool = True
    blocks: int = H100.multiprocessors

    @property
    def m(self) -> int:
        """Rows of a tile."""
        return ROWS * self.consumers

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)


def can_take(problem: Attention, variant: Variant) -> bool:
    """Whether the kernel is right for the problem."""
    depth = problem.depth
    matrices = (problem.q, problem.k, problem.v)
    return (
        depth is not None
        and 0 < depth <= 256
        and depth % K_OF_WGMMA == 0
        and all(matrix.element == problem.q.element for matrix in matrices)
        and problem.o.element in (problem.q.element, "f32")
        and problem.q.element in ("f16", "bf16")
        and all(is_aligned(matrix) and not matrix.transposed for matrix in matrices)
        and problem.scale > 0
        and _is_possible(variant)
        and _Kernel(problem, variant).shared_bytes <= SHARED_BYTES
    )


def function(problem: Attention, variant: Variant, name: str) -> str:
    """`func.func @name(%q, %k, %v, %c)`, which launches the kernel; C is O, as a store calls it."""
    return _Kernel(problem, variant).text(name)


def _is_possible(variant: Variant) -> bool:
    return (
        variant.consumers in _REGISTERS
        and variant.keys in range(16, 257, 16)
        and variant.stages >= 2
        and variant.group >= 1
        and variant.blocks >= 0
    )


class _Kernel:
    """The function's text, part by part. Names of values that its parts share are its members."""

    def __init__(self, problem: Attention, variant: Variant) -> None:
        self.problem, self.variant = problem, variant
        self.element = problem.q.element
        self.depth = problem.depth or 0
        heads = problem.heads
        self.q = Operand(problem.q, variant.m, self.depth, heads[0])
        self.k = Operand(problem.k, variant.keys, self.depth, heads[1])
        self.v = Operand(problem.v, variant.keys, self.depth, heads[2])
        self.e = Body()
        self.block = Block(self.e)
        self.ring = Ring(self.e, variant.stages, self.k.bytes)
        self.q_ring = Ring(self.e, 1, self.q.bytes)
        self.products = Products(self.e, self.q, self.k, self.v)
        mask = problem.mask
        self.softmax = Softmax(self.e, problem.scale, self.element, masked=mask is not None)
        self.mask_reader = self.mask_tiles = None
        if mask is not None and has_tiles(mask):
            self.mask_tiles = MaskTiles(self.e, mask, variant.m, variant.keys)
        elif mask is not None:
            self.mask_reader = MaskReader(self.e, mask, variant.keys)
        mask_bytes = 0 if self.mask_tiles is None else self.mask_tiles.stage_bytes
        self.mask_ring = Ring(self.e, _MASK_STAGES, mask_bytes)
        self.mask_begin = self.q.bytes + self.ring.bytes
        self.store_begin = self.mask_begin + self.mask_ring.bytes
        self.shared_bytes = self.store_begin + Store.shared_bytes(4 * variant.consumers)
        product = Problem(problem.q, problem.v, problem.o, accumulator="f32", batched=True)
        self.store = Store(self.e, product, self.depth, None)

    # --- The host's part -----------------------------------------------------------------

    def text(self, name: str) -> str:
        e, problem = self.e, self.problem
        types = {"q": problem.q.type, "k": problem.k.type, "v": problem.v.type, "c": problem.o.type}
        if problem.mask is not None:
            types["m"] = problem.mask.type
        size = self.block.size
        self.host_batch, self.host_queries = (size("%q", problem.q, i) for i in (0, 1))
        self.host_keys = size("%k", problem.k, 1)
        if problem.heads[0]:
            self.host_batch = e.do("muli", self.host_batch, problem.heads[0], "index")
        elements = e.do("muli", self.host_batch, self.host_queries, "index")
        with e.block(f"scf.if {e.compare('ne', elements, 0, 'index')}"):
            self.q_map = self.q.make_map(e, "%q")
            self.k_map = self.k.make_map(e, "%k")
            self.v_map = self.v.make_map(e, "%v")
            if self.mask_tiles is not None:
                self.mask_map = self.mask_tiles.make_map("%m")
            self.store.make_maps("%c")
            threads = self.variant.threads
            self.block.launch(self._blocks(), threads, self.shared_bytes, self._body)
        arguments = ", ".join(f"%{key}: {type_}" for key, type_ in types.items())
        return f"func.func @{name}({arguments}) {{\n{e.text()}\n  return\n}}"

    def _blocks(self) -> str:
        e = self.e
        down = e.do("ceildivui", self.host_queries, self.variant.m, "index")
        blocks = e.do("muli", down, self.host_batch, "index")
        if self.variant.blocks:
            blocks = e.do("minui", blocks, self.variant.blocks, "index")
        return blocks

    # --- The kernel ----------------------------------------------------------------------

    def _body(self) -> None:
        self.block.begin()
        self._count_tiles()
        self._begin_rings()
        registers = _REGISTERS[self.variant.consumers]
        self.block.divide(self._produce, self._consume, registers)

    def _count_tiles(self) -> None:
        e, problem = self.e, self.problem
        self.queries = self.block.known(problem.q.sizes[0], self.host_queries)
        self.keys = self.block.known(problem.k.sizes[0], self.host_keys)
        self.batch = e.i32(self.host_batch)
        self.down = e.do("divui", e.do("addi", self.queries, self.variant.m - 1), self.variant.m)
        self.tiles = e.do("muli", self.down, self.batch)

    def _begin_rings(self) -> None:
        rings = [self.ring, self.q_ring]
        if self.mask_tiles is not None:
            rings.append(self.mask_ring)
        for ring in rings:
            ring.make()
        with self.block.first_thread():
            for ring in rings:
                ring.begin(4 * self.variant.consumers)
        maps = (self.q_map, self.k_map, self.v_map)
        operands = (self.q, self.k, self.v)
        self.block.prefetch(
            [(map_, operand.map_type) for map_, operand in zip(maps, operands, strict=True)]
        )
        self.e.line("gpu.barrier")

    def _tile(self, number: str) -> Tile:
        """Tiles are counted over `group` matrices of the batch, then down. Causal ones are counted
        up, as the last rows have the most keys, and what takes longest comes first; and from the
        last rows, so that of tiles that are not full the first one is, which has the fewest keys:
        it may begin in front of the matrix, where TMA reads zeros."""
        e, variant = self.e, self.variant
        batch, row = in_groups(e, number, (self.batch, self.down), variant.group)
        first = e.do("muli", row, variant.m)
        if self.problem.causal:
            # Of a warpgroup's rows all are there then, or none in front.
            parts = e.do("divui", e.do("addi", self.queries, ROWS - 1), ROWS)
            last = e.do("subi", e.do("muli", parts, ROWS), variant.m)
            first = e.do("subi", last, first)
        return Tile(first, e.constant(0, "i32"), batch)

    def _key_blocks(self, end: str) -> str:
        """How many blocks of keys the rows in front of `end` see, one of them at least."""
        e, keys = self.e, self.variant.keys
        seen = self.keys
        if self.problem.causal:
            seen = e.do("minui", seen, e.do("maxsi", end, 1))
        return e.do("divui", e.do("addi", seen, keys - 1), keys)

    # --- What fetches --------------------------------------------------------------------

    def _produce(self) -> None:
        self._over_tiles(self._fetch_tile)

    def _over_tiles(self, body: Callable[[Tile], str]) -> None:
        """`body` is given the tile, how many tiles were before, and the count of the ring's stages
        before; it returns the count behind."""
        e = self.e
        zero, done = e.constant(0, "i32"), e.name()
        with e.block(
            f"{done}:2 = scf.for %tile = {e.i32('%bx')} to {self.tiles} step {e.i32('%gx')} "
            f"iter_args(%turn = {zero}, %count = {zero}) -> (i32, i32) : i32"
        ):
            count = body(self._tile("%tile"))
            e.line(f"scf.yield {e.do('addi', '%turn', 1)}, {count} : i32, i32")

    def _fetch_tile(self, tile: Tile) -> str:
        e = self.e
        blocks = self._key_blocks(e.do("addi", tile.row, self.variant.m))
        last = e.do("subi", blocks, 1)
        zero = e.constant(0, "i32")
        self._fill(self.q_ring, "%turn", self.q, self.q_map, (zero, tile.row, tile.batch))
        self._fetch(self.k, self.k_map, "%count", last, tile)
        self._fetch_mask(zero, last, tile)
        one = e.constant(1, "i32")
        with e.block(f"scf.for %j = {one} to {blocks} step {one} : i32"):
            # K's block j, and V's j - 1.
            count = e.do("addi", "%count", e.do("shli", "%j", 1))
            number = e.do("subi", last, "%j")
            self._fetch(self.k, self.k_map, e.do("subi", count, 1), number, tile)
            self._fetch(self.v, self.v_map, count, e.do("addi", number, 1), tile)
            self._fetch_mask("%j", number, tile)
        end = e.do("addi", "%count", e.do("shli", blocks, 1))
        self._fetch(self.v, self.v_map, e.do("subi", end, 1), zero, tile)
        return end

    def _fetch(self, operand: Operand, map_: str, count: str, number: str, tile: Tile) -> None:
        """A block of keys into the ring."""
        row = self.e.do("muli", number, self.variant.keys)
        at = self.e.constant(self.q.bytes, "i32")
        self._fill(self.ring, count, operand, map_, (at, row, tile.batch))

    def _fetch_mask(self, j: str, number: str, tile: Tile) -> None:
        """That of a block of keys, the tile's j-th."""
        e, tiles, ring = self.e, self.mask_tiles, self.mask_ring
        if tiles is None:
            return
        assert tile.batch is not None
        count = self._mask_count(j)
        ring.await_empty(count)
        stage = ring.stage(count)
        ring.full.expect(stage, tiles.bytes)
        offset = e.do("addi", e.do("muli", stage, ring.stage_bytes), self.mask_begin)
        first = e.do("muli", number, self.variant.keys)
        for more, coordinates in tiles.coordinates(tile.batch, tile.row, first):
            to = (e.do("addi", offset, more), tiles.tile)
            self.block.load((self.mask_map, tiles.map_type), coordinates, ring.full, stage, to)

    def _mask_count(self, j: str) -> str:
        """There is one for a block of K and one of V."""
        return self.e.do("addi", self.e.do("shrui", "%count", 1), j)

    def _fill(
        self,
        ring: Ring,
        count: str,
        operand: Operand,
        map_: str,
        place: tuple[str, str, str | None],
    ) -> None:
        """Fetches the operand's tile into a stage. `place`: where the ring is in shared memory, the
        tile's row, and its matrix."""
        e = self.e
        begin, row, batch = place
        assert batch is not None
        ring.await_empty(count)
        stage = ring.stage(count)
        ring.full.expect(stage, operand.bytes)
        offset = e.do("addi", e.do("muli", stage, ring.stage_bytes), begin)
        first, batch = self._head(operand.heads, batch)
        for slab in range(operand.slabs):
            column = e.do("addi", first, slab * DEPTH)
            coordinates = [e.index(one) for one in (column, row, batch)]
            to = (e.do("addi", offset, slab * operand.slab_bytes), operand.tile)
            self.block.load((map_, operand.map_type), coordinates, ring.full, stage, to)

    def _head(self, heads: int, batch: str) -> tuple[str, str]:
        """A matrix's first column, and its place in the batch."""
        e = self.e
        if not heads:
            return e.constant(0, "i32"), batch
        head = e.do("remui", batch, heads)
        return e.do("muli", head, self.depth), e.do("divui", batch, heads)

    # --- What computes -------------------------------------------------------------------

    def _consume(self) -> None:
        self.consumer = self.e.do("subi", self.block.warpgroup, 1)
        self._find_part()
        if self._has_turns:
            self._let_the_first_begin()
        self._over_tiles(self._compute_tile)
        self.store.end()

    def _find_part(self) -> None:
        """Where this warpgroup's rows are, its operands, and its buffers."""
        e, block = self.e, self.block
        own = e.do("addi", block.address, e.do("muli", self.consumer, ROWS * SWIZZLED))
        self.products.begin(own, e.do("addi", block.address, self.q.bytes))
        warp_rows = e.do("muli", e.do("andi", block.warp, 3), 16)
        self.warp_row = e.do("addi", e.do("muli", self.consumer, ROWS), warp_rows)
        warp = e.do("subi", block.warp, 4)
        buffers = e.do("addi", e.do("muli", warp, Store.shared_bytes(1)), self.store_begin)
        columns = e.constant(self.depth * max(self.problem.heads[3], 1), "i32")
        sizes = (self.queries, columns)
        self.store.begin(block.shared, block.address, buffers, block.lane, sizes)
        for ring in (self.ring, self.q_ring, self.mask_ring):
            ring.begin_reader(block.lane)
        if self.mask_tiles is not None:
            self.mask_tiles.begin(self.warp_row, block.lane)
        self.softmax.begin(block.lane)

    def _compute_tile(self, tile: Tile) -> str:
        e = self.e
        blocks = self._key_blocks(e.do("addi", tile.row, self.variant.m))
        last = e.do("subi", blocks, 1)
        row = e.do("addi", tile.row, self.warp_row)
        self.first_row = e.do("addi", row, self.softmax.row)
        if self.mask_reader is not None and tile.batch is not None:
            both = (self.first_row, e.do("addi", self.first_row, 8))
            self.mask_reader.begin_tile(tile.batch, both, (self.queries, self.keys))
        own_row = e.do("addi", tile.row, e.do("muli", self.consumer, ROWS))
        skipped = e.constant(0, "i32")
        if self._can_skip:
            own = self._key_blocks(e.do("addi", own_row, ROWS))
            skipped = e.do("subi", blocks, own)
            self._skip(skipped)
        self.q_ring.await_full("%turn")
        k_count = self._k_count(skipped)
        self.ring.await_full(k_count)
        stage = self.ring.stage(k_count)
        e.line("nvvm.wgmma.fence.aligned")
        scores = self.products.unpacked(self.products.multiply_q(stage), 0, [])
        self.ring.release(stage)
        number = e.do("subi", last, skipped)
        scores = self._hide(self._masked(scores, number, skipped), number)
        terms, rows, _ = self.softmax.add(scores, self.softmax.nothing())
        words = self.softmax.words(terms)
        nothing = e.constant("0.0", "f32")
        state = [*words, *rows.largest, *rows.sums, *[nothing] * (self.depth // 2)]

        first_unhidden = first = e.do("addi", skipped, 1)
        if self.problem.causal and self.variant.keys % ROWS:
            # Blocks that the first rows do not see to their end.
            behind = e.do("maxsi", e.do("addi", own_row, 1), 0)
            whole = e.do("minui", e.do("divui", behind, self.variant.keys), blocks)
            first_unhidden = e.do("maxui", e.do("subi", blocks, whole), first)
            state = self._over_blocks(state, (first, first_unhidden), last, hides=True)
        state = self._over_blocks(state, (first_unhidden, blocks), last, hides=False)

        self.q_ring.release(e.constant(0, "i32"))
        words, rows, sums = self._split(state)
        end = e.do("addi", "%count", e.do("shli", blocks, 1))
        before = e.do("subi", end, 1)
        self.ring.await_full(before)
        e.line("nvvm.wgmma.fence.aligned")
        stage = self.ring.stage(before)
        sums = self.products.unpacked(self.products.multiply_v(stage, words, sums), 0, words)
        self.ring.release(stage)
        sums = self.softmax.scaled(
            sums, self.softmax.inverses(rows, masked_are_zero=self.problem.masked_rows_are_zero)
        )
        assert tile.batch is not None
        column, batch = self._head(self.problem.heads[3], tile.batch)
        # TMA stores nothing that begins in front of a matrix.
        is_there = e.compare("sge", own_row, 0)
        with e.block(f"scf.if {is_there}"):
            self.store.store([self.products.packed(sums)], Tile(row, column, batch))
        return end

    @property
    def _can_skip(self) -> bool:
        """Whether a warpgroup may see fewer blocks of keys than the tile's last one does."""
        return self.problem.causal and self.variant.consumers > 1

    def _skip(self, count: str) -> None:
        """So many blocks, which this warpgroup does not see: it lets the others have its turns."""
        e = self.e
        zero, one = e.constant(0, "i32"), e.constant(1, "i32")
        with e.block(f"scf.for %skipped = {zero} to {count} step {one} : i32"):
            following = e.do("addi", "%skipped", 1)
            self._pass(self.ring, self._k_count("%skipped"))
            self._await_turn()
            self._give_turn()
            self._pass(self.ring, e.do("addi", "%count", e.do("shli", following, 1)))
            if self.mask_tiles is not None:
                self._pass(self.mask_ring, self._mask_count("%skipped"))

    def _pass(self, ring: Ring, count: str) -> None:
        ring.await_full(count)
        ring.release(ring.stage(count))

    def _k_count(self, j: str) -> str:
        """Of the tile's j-th block of K. All but the first one are one in front of V's."""
        e = self.e
        before = e.do("subi", e.do("shli", j, 1), e.do("minui", j, 1))
        return e.do("addi", "%count", before)

    def _split(self, state: list[str]) -> tuple[list[str], Rows, list[str]]:
        """The terms as words, the rows, the sums of O."""
        words = self.variant.keys // 4
        a, b, c, d = state[words : words + 4]
        return state[:words], Rows((a, b), (c, d)), state[words + 4 :]

    def _over_blocks(
        self, state: list[str], numbers: tuple[str, str], last: str, *, hides: bool
    ) -> list[str]:
        """The state behind the blocks of those numbers, counted from the last one down."""
        e = self.e
        types = [
            *["i32"] * (self.variant.keys // 4),
            *["f32"] * (4 + self.depth // 2),
        ]
        names, done, j = [e.name() for _ in state], e.name(), e.name()
        pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, state, strict=True))
        first, end = numbers
        one = e.constant(1, "i32")
        with e.block(
            f"{done}:{len(state)} = scf.for {j} = {first} to {end} step {one} "
            f"iter_args({pairs}) -> ({', '.join(types)}) : i32"
        ):
            state = self._add_block(names, j, last, hides=hides)
            e.line(f"scf.yield {', '.join(state)} : {', '.join(types)}")
        return [f"{done}#{i}" for i in range(len(names))]

    def _add_block(self, state: list[str], j: str, last: str, *, hides: bool) -> list[str]:
        """Scores of block j, and the sums of the block before with its V; then the terms of
        block j, counted from block `last` down. `hides`: some of its keys are not seen."""
        e = self.e
        words, rows, sums = self._split(state)
        v_count = e.do("addi", "%count", e.do("shli", j, 1))
        k_count = e.do("subi", v_count, 1)
        k_stage, v_stage = self.ring.stage(k_count), self.ring.stage(v_count)
        self.ring.await_full(k_count)
        self._await_turn()
        e.line("nvvm.wgmma.fence.aligned")
        packed_scores = self.products.multiply_q(k_stage)
        self.ring.await_full(v_count)
        packed_sums = self.products.multiply_v(v_stage, words, sums)
        self._give_turn()
        scores = self.products.unpacked(packed_scores, 1, [])
        self.ring.release(k_stage)
        number = e.do("subi", last, j)
        scores = self._masked(scores, number, j)
        if hides:
            scores = self._hide(scores, number)
        terms, rows, factors = self.softmax.add(scores, rows)
        sums = self.products.unpacked(packed_sums, 0, words)
        self.ring.release(v_stage)
        words = self.softmax.words(terms)
        sums = self.softmax.scaled(sums, factors)
        return [*words, *rows.largest, *rows.sums, *sums]

    def _masked(self, scores: list[str], number: str, j: str) -> list[str]:
        """With the mask of the block's scores."""
        e, block = self.e, self.block
        if self.mask_reader is not None:
            first = e.do("addi", e.do("muli", number, self.variant.keys), self.softmax.column)
            return self.softmax.with_mask(scores, self.mask_reader.read(first))
        if self.mask_tiles is None:
            return scores
        count, ring = self._mask_count(j), self.mask_ring
        ring.await_full(count)
        stage = ring.stage(count)
        offset = e.do("addi", e.do("muli", stage, ring.stage_bytes), self.mask_begin)
        scores = self.softmax.with_mask(
            scores, self.mask_tiles.read(e.do("addi", block.address, offset))
        )
        ring.release(stage)
        return scores

    def _hide(self, scores: list[str], number: str) -> list[str]:
        """Without keys that are not there, and those behind a causal row."""
        e, problem, variant = self.e, self.problem, self.variant
        first = e.do("muli", number, variant.keys)
        known = problem.k.sizes[0]
        if not problem.causal and known is not None and known % variant.keys == 0:
            return scores
        ends = []
        for half in range(2):
            end = self.keys
            if problem.causal:
                end = e.do("minui", end, e.do("addi", self.first_row, 8 * half + 1))
            ends.append(e.do("subi", end, first))
        return self.softmax.hide(scores, (ends[0], ends[1]))

    # The warpgroups take turns at the tensor cores, by a named barrier each (0 is gpu.barrier's),
    # on which its owner waits and the one before arrives.

    @property
    def _has_turns(self) -> bool:
        return self.variant.takes_turns and self.variant.consumers > 1

    def _turn(self, number: str) -> str:
        return f"id = {number} number_of_threads = {self.e.constant(2 * WARPGROUP, 'i32')}"

    def _await_turn(self) -> None:
        if self._has_turns:
            self.e.line(f"nvvm.barrier {self._turn(self.e.do('addi', self.consumer, 1))}")

    def _give_turn(self) -> None:
        if self._has_turns:
            e = self.e
            following = e.do("remui", e.do("addi", self.consumer, 1), self.variant.consumers)
            e.line(f"nvvm.barrier.arrive {self._turn(e.do('addi', following, 1))}")

    def _let_the_first_begin(self) -> None:
        is_last = self.e.compare("eq", self.consumer, self.variant.consumers - 1)
        with self.e.block(f"scf.if {is_last}"):
            self._give_turn()
