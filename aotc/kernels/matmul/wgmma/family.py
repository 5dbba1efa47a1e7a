"""Products of f16 and bf16 on Hopper (sm_90a): TMA brings tiles, warpgroups multiply them (wgmma).

A block is one warpgroup that fetches and one or two that multiply, and makes one tile of C after
the other. Between them is a ring of stages (`ring`), each with a tile of A and one of B, 64 deep;
each warp that multiplies says when it has read one.

Blocks of a cluster share what they fetch (`cluster`): then tiles are counted by clusters, of
which each block makes its own.

What a tile has outside of A and B is filled with zeros, and what it has outside of C is not stored.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from aotc.kernels.family import SM_90A
from aotc.kernels.matmul.family import MatmulFamily, least_clocks
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Problem
from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma.block import SHARED_BYTES, Block, in_groups
from aotc.kernels.matmul.wgmma.cluster import Cluster, SharedRing
from aotc.kernels.matmul.wgmma.cluster_split_k import Exchange, can_split
from aotc.kernels.matmul.wgmma.grid_split_k import Slices, can_slice
from aotc.kernels.matmul.wgmma.mma import Products, PromotedProducts, Sizes
from aotc.kernels.matmul.wgmma.ping_pong import Turns
from aotc.kernels.matmul.wgmma.store import Store
from aotc.kernels.matmul.wgmma.tiles import Body, Operand, Tile, depth_of, is_aligned
from aotc.kernels.matmul.wgmma.transpose_of_c_store import SwappedStore, can_store_swapped
from aotc.kernels.matmul.wgmma.transposed_store import TransposedStore
from aotc.kernels.matmul.wgmma.variants import (
    MOST_PROMOTED,
    Variant,
    has_fragments,
    shapes,
    sums_of,
)
from aotc.kernels.writer import Writer
from aotc.lower.rewrites.float8 import FLOAT8
from aotc.request import Chip

# By the number of warpgroups that multiply: for how many sums each of their threads has registers,
# and for how many where fragments of A have some, or where those of a stage stand beside the
# others; and the registers of a thread that fetches, and of one that multiplies. All warpgroups
# begin with the same, 168 of three and 128 of four; of two each has what it needs.
_MOST_SUMS = {1: 128, 2: 192, 3: 96}
_MOST_SUMS_BESIDE_FRAGMENTS = {1: 128, 2: 128, 3: 64}
_REGISTERS = {2: (40, 232), 3: (32, 160)}
# With more, or with three that multiply, a thread has no registers for what is read ahead.
_MOST_SUMS_AHEAD = 128
# Stages: what there is room for, up to so many; of the largest tiles three were seen to be best.
_MOST_STAGES, _MOST_OF_LARGEST = 8, 3
_GROUP = 16


def _are_types_known(problem: Problem) -> bool:
    a, b, c = problem.a, problem.b, problem.c
    if a.element == b.element == "i8":
        is_known = problem.accumulator == "i32" and c.element == "i32"
    elif a.element == b.element == "f32":
        is_known = problem.allow_tf32 and problem.accumulator == c.element == "f32"
    else:
        is_same = a.element == b.element and a.element in ("f16", "bf16")
        is_known = (
            (is_same or (a.element in FLOAT8 and b.element in FLOAT8))
            and problem.accumulator == "f32"
            and c.element in ("f16", "bf16", "f32")
        )
    # Of other sizes than 16 bits, wgmma takes operands along K alone, but for one in registers.
    return is_known and (ELEMENT_BYTES[a.element] == 2 or not a.transposed)


def _can_swap(problem: Problem, variant: Variant) -> bool:
    if ELEMENT_BYTES[problem.a.element] == 2:
        return not variant.swaps or can_store_swapped(problem)
    return variant.swaps == has_fragments(problem) and (
        not variant.swaps or _has_room_for_fragments(variant)
    )


def _with_stages(problem: Problem, shape: Variant) -> Variant:
    """With as many as there is room for."""
    room = SHARED_BYTES - Store.shared_bytes(4 * shape.consumers, shape.buffers)
    blocks = shape.cluster * shape.splits
    is_largest = (shape.n, shape.m, blocks, shape.swaps) == (256, 128, 1, False)
    most = _MOST_OF_LARGEST if is_largest else _MOST_STAGES
    return replace(shape, stages=min(room // _Kernel(problem, shape).ring.stage_bytes, most))


def operands(problem: Problem, variant: Variant) -> tuple[Operand, Operand]:
    """A's tile in a stage, and B's."""
    kernel = _Kernel(problem, variant)
    return kernel.a, kernel.b


def _has_room_for_fragments(variant: Variant) -> bool:
    """Whether there are registers for those."""
    if variant.promotes:
        return sums_of(variant) + 16 * (variant.m_blocks - 1) <= MOST_PROMOTED[variant.consumers]
    return sums_of(variant) <= _MOST_SUMS_BESIDE_FRAGMENTS[variant.consumers]


def _is_possible(variant: Variant) -> bool:
    most = MOST_PROMOTED if variant.promotes else _MOST_SUMS
    return (
        variant.n in range(16, 257, 16)
        and variant.consumers in most
        and variant.m_blocks >= 1
        and variant.m <= 256
        and sums_of(variant) <= most[variant.consumers]
        and variant.n % (16 * variant.parts) == 0
        and (variant.promotes or variant.parts == 1)
        and variant.stages >= 2
        and variant.group >= 1
        and variant.buffers in (1, 2)
        and variant.blocks >= variant.cluster
        and (variant.down, variant.across) in ((1, 1), (2, 1), (1, 2), (2, 2))
        and (variant.consumers == 2 or not variant.ping_pong)
    )


class _Kernel:
    """The function's text, part by part. Names of values that its parts share are its members."""

    def __init__(self, problem: Problem, variant: Variant, finish: Finish | None = None) -> None:
        self.problem, self.variant = problem, variant
        batched = problem.batched
        a, b = problem.a, problem.b
        self.names = ("%a", "%b")
        left, right = not a.transposed, b.transposed
        self.swaps = variant.swaps
        if self.swaps:
            # C transposed is made of B and A transposed.
            a, b, left, right = b, a, right, left
            self.names = ("%b", "%a")
        down, across = variant.down, variant.across
        rows = variant.few or variant.m
        self.a = Operand.of(a, rows, is_deep=left, batched=batched, sharers=across)
        self.b = Operand.of(b, variant.n, is_deep=right, batched=batched, sharers=down)
        self.depth = depth_of(a.element)
        self.e = Body()
        self.block = Block(self.e)
        self.cluster = Cluster(self.e, variant.down, variant.across, variant.splits)
        stage_bytes = self.a.bytes + self.b.bytes
        self.ring = SharedRing(self.e, self.cluster, variant.stages, stage_bytes)
        self.shared_bytes = self.ring.bytes + Store.shared_bytes(
            4 * variant.consumers, variant.buffers
        )
        self.exchange = Exchange(self.e, variant)
        self.turns = Turns(self.e)
        store: type[Store] = SwappedStore if self.swaps else Store
        if self.swaps and ELEMENT_BYTES[a.element] != 2:
            store = TransposedStore
        self.slices = Slices(self.e, problem, variant, finish)
        stored, finish = self.slices.first
        self.store = store(self.e, stored, self.exchange.columns, finish, variant.buffers)
        if variant.consumers == 3 or sums_of(variant) > _MOST_SUMS_AHEAD:
            self.store.column_extras.numbers.clear()
        make = PromotedProducts if variant.promotes else Products
        sizes = Sizes(variant.m_blocks, variant.n, variant.parts)
        self.products = make(self.e, (self.a, self.b), sizes, self.ring, self.store.sum)

    # --- The host's part -----------------------------------------------------------------

    def text(self, name: str) -> str:
        e = self.e
        self._find_sizes()
        with e.block(f"scf.if {self._is_there()}"):
            self.a_map, self.b_map = (
                operand.make_map(e, name)
                for operand, name in zip((self.a, self.b), self.names, strict=True)
            )
            self.slices.allocate(self.host_m, self.host_n)
            self.store.make_maps(self.slices.target)
            blocks, threads = self._blocks(), self.variant.threads
            self.block.launch(
                blocks, threads, self.shared_bytes, self._body, self.cluster.launched()
            )
            self.slices.add(self.host_m, self.host_n)
        return f"func.func @{name}({self.problem.signature}) {{\n{e.text()}\n  return\n}}"

    def _find_sizes(self) -> None:
        problem, size = self.problem, self.block.size
        first = 1 if problem.batched else 0
        self.host_m = size("%c", problem.c, first)
        self.host_n = size("%c", problem.c, first + 1)
        self.host_k = size("%a", problem.a, first + (0 if problem.a.transposed else 1))
        self.host_batch = size("%c", problem.c, 0) if problem.batched else None
        if self.variant.slices > 1:
            self.host_batch = self.e.constant(self.variant.slices)
        if self.swaps:
            self.host_m, self.host_n = self.host_n, self.host_m

    def _is_there(self) -> str:
        """Whether C has elements."""
        e = self.e
        elements = e.do("muli", self.host_m, self.host_n, "index")
        if self.host_batch is not None:
            elements = e.do("muli", elements, self.host_batch, "index")
        return e.compare("ne", elements, 0, "index")

    def _blocks(self) -> str:
        """As few as make the tiles in as many turns as all would: more would have nothing to do
        in the last turn, and share the power before. Where blocks divide K, as many as tiles."""
        e, variant = self.e, self.variant
        down = e.do("ceildivui", self.host_m, variant.m * variant.down, "index")
        across = e.do("ceildivui", self.host_n, variant.n * variant.across, "index")
        tiles = e.do("muli", down, across, "index")
        if self.host_batch is not None:
            tiles = e.do("muli", tiles, self.host_batch, "index")
        if variant.splits > 1:
            return e.do("muli", tiles, variant.splits, "index")
        turns = e.do("ceildivui", tiles, variant.blocks // variant.cluster, "index")
        clusters = e.do("ceildivui", tiles, turns, "index")
        return e.do("muli", clusters, variant.cluster, "index")

    # --- The kernel ----------------------------------------------------------------------

    def _body(self) -> None:
        e = self.e
        self.cluster.begin(e.i32("%bx"), e.i32("%gx"))
        self.exchange.begin()
        self.block.begin()
        self._count_tiles()
        self._begin_ring()
        registers = _REGISTERS.get(self.variant.consumers)
        self.block.divide(self._produce, self._consume, registers)
        self.cluster.end()

    def _count_tiles(self) -> None:
        e, problem, variant = self.e, self.problem, self.variant
        sizes = (problem.n, problem.m) if self.swaps else (problem.m, problem.n)
        known = self.block.known
        self.m, self.n = known(sizes[0], self.host_m), known(sizes[1], self.host_n)
        self.k = known(problem.k, self.host_k)
        # Of tiles of whole clusters.
        rows, columns = variant.m * variant.down, variant.n * variant.across
        self.down = e.do("divui", e.do("addi", self.m, rows - 1), rows)
        self.across = e.do("divui", e.do("addi", self.n, columns - 1), columns)
        self.tiles_of_one = e.do("muli", self.down, self.across)
        self.tiles = self.tiles_of_one
        if self.host_batch is not None:
            self.tiles = e.do("muli", self.tiles, e.i32(self.host_batch))
        # With K = 0 there is one, behind K's end: zeros.
        stages = e.do("divui", e.do("addi", self.k, self.depth - 1), self.depth)
        if variant.slices > 1:
            self.stages_of_tile, self.first_k = self.slices.divide(stages), e.constant(0, "i32")
            return
        if variant.splits > 1:
            self.stages_of_tile, self.first_k = self.exchange.divide(stages, self.k)
            return
        self.stages_of_tile = e.do("maxui", stages, 1)
        has_none = e.compare("eq", self.k, 0)
        behind, zero = e.constant(self.depth, "i32"), e.constant(0, "i32")
        self.first_k = e.value(f"arith.select {has_none}, {behind}, {zero} : i32")

    def _begin_ring(self) -> None:
        e, variant = self.e, self.variant
        self.ring.make()
        with self.block.first_thread():
            warps = 4 if variant.ping_pong else 4 * variant.consumers
            self.ring.begin(warps * self.cluster.sharers)
        self.block.prefetch([(self.a_map, self.a.map_type), (self.b_map, self.b.map_type)])
        self.cluster.arrive_all()
        # All this may be done while the kernel before ends, and the next one may do it from now on.
        e.line("nvvm.griddepcontrol wait")
        if variant.is_early:
            e.line("nvvm.griddepcontrol launch_dependents")
        self.cluster.await_all()

    def _tile(self, number: str) -> Tile:
        """This block's, of a cluster's."""
        e, variant = self.e, self.variant
        batch = None
        if self.problem.batched or variant.slices > 1:
            batch = e.do("divui", number, self.tiles_of_one)
            number = e.do("remui", number, self.tiles_of_one)
        row, column = in_groups(e, number, (self.down, self.across), variant.group)
        row = e.do("addi", e.do("muli", row, variant.down), self.cluster.below)
        column = e.do("addi", e.do("muli", column, variant.across), self.cluster.beside)
        return Tile(e.do("muli", row, variant.m), e.do("muli", column, variant.n), batch)

    # --- What fetches --------------------------------------------------------------------

    def _produce(self) -> None:
        e = self.e
        zero, one = e.constant(0, "i32"), e.constant(1, "i32")
        masks = self.cluster.masks()
        tiles = f"{self.cluster.number} to {self.tiles} step {self.cluster.count}"
        loop = f"{e.name()} = scf.for %tile = {tiles}"
        with e.block(f"{loop} iter_args(%count = {zero}) -> (i32) : i32"):
            tile = self._tile("%tile")
            tile, first_k = self.slices.place(tile, self.first_k)
            with e.block(f"scf.for %k = {zero} to {self.stages_of_tile} step {one} : i32"):
                depth = e.do("addi", e.do("muli", "%k", self.depth), first_k)
                self._fetch(tile, depth, e.do("addi", "%count", "%k"), masks)
            count = e.do("addi", "%count", self.stages_of_tile)
            e.line(f"scf.yield {count} : i32")

    def _fetch(self, tile: Tile, depth: str, count: str, masks: tuple[str, str]) -> None:
        e = self.e
        self.ring.await_empty(count)
        stage = self.ring.stage(count)
        self.ring.full.expect(stage, self.ring.stage_bytes)
        a_at = e.do("muli", stage, self.ring.stage_bytes)
        b_at = e.do("addi", a_at, self.a.bytes)
        # Blocks with the same rows of A differ in their columns, and the other way round.
        a_place = (tile.row, depth, tile.batch, self.cluster.beside)
        self._load(self.a, self.a_map, stage, a_at, a_place, masks[0])
        b_place = (tile.column, depth, tile.batch, self.cluster.below)
        self._load(self.b, self.b_map, stage, b_at, b_place, masks[1])

    def _load(
        self,
        operand: Operand,
        map_: str,
        stage: str,
        offset: str,
        place: tuple[str, str, str | None, str],
        mask: str,
    ) -> None:
        """Fetches the operand's tile at a place in the matrix, or this block's part of it, to an
        offset in shared memory, of all blocks that share it."""
        e = self.e
        descriptor, to_all = (map_, operand.map_type), mask if operand.sharers > 1 else ""
        for more, coordinates in operand.coordinates(e, *place):
            to = (e.do("addi", offset, more), operand.tile)
            self.block.load(descriptor, coordinates, self.ring.full, stage, to, to_all)

    # --- What multiplies -----------------------------------------------------------------

    def _consume(self) -> None:
        e, variant = self.e, self.variant
        consumer = e.do("subi", self.block.warpgroup, 1)
        self._find_part(consumer)
        first, step = self.cluster.number, self.cluster.count
        count, counts = e.constant(0, "i32"), self.stages_of_tile
        if variant.ping_pong:
            # Tiles alternately, each with its stages.
            first = e.do("addi", first, e.do("muli", consumer, step))
            step = e.do("muli", step, 2)
            count = e.do("muli", consumer, counts)
            counts = e.do("muli", counts, 2)
            self.turns.begin(consumer)
        loop = f"{e.name()} = scf.for %tile = {first} to {self.tiles} step {step}"
        with e.block(f"{loop} iter_args(%count = {count}) -> (i32) : i32"):
            tile = self._tile("%tile")
            tile = Tile(e.do("addi", tile.row, self.first_row), tile.column, tile.batch)
            if variant.splits == 1:
                self.store.prepare(tile)
            if variant.ping_pong:
                self.turns.wait(consumer)
            sums, last_stage = self.products.add("%count", self.stages_of_tile)
            if variant.ping_pong:
                self.turns.give(consumer)
            sums = self.products.finish(sums, last_stage)
            self.exchange.store(sums, tile, self.block.address, consumer, self.store)
            e.line(f"scf.yield {e.do('addi', '%count', counts)} : i32")
        self.store.end()

    def _find_part(self, consumer: str) -> None:
        """Where this warp's rows are in the tile, and its operands in a stage."""
        e, block, variant = self.e, self.block, self.variant
        part = e.constant(0, "i32") if variant.ping_pong else consumer
        warp_rows = e.do("muli", e.do("andi", block.warp, 3), 16)
        self.first_row = e.do("addi", e.do("muli", part, 64 * variant.m_blocks), warp_rows)
        self.products.begin(block.address, part, block.lane, self.first_row)
        warp = e.do("subi", block.warp, 4)
        buffers = e.do(
            "addi", e.do("muli", warp, Store.shared_bytes(1, variant.buffers)), self.ring.bytes
        )
        sizes = (self.n, self.m) if self.swaps else (self.m, self.n)
        self.store.begin(block.shared, block.address, buffers, block.lane, sizes)
        self.ring.begin_reader(block.lane)


class Wgmma(MatmulFamily):
    """See the module's docstring."""

    name = "wgmma"
    target = SM_90A
    variant_type = Variant

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        return (
            _are_types_known(problem)
            and problem.k != 0
            and is_aligned(problem.a)
            and is_aligned(problem.b)
            and _is_possible(variant)
            and _can_swap(problem, variant)
            and can_split(problem, variant)
            and can_slice(problem, variant)
            and (kernel := _Kernel(problem, variant)).shared_bytes <= SHARED_BYTES
            and kernel.exchange.bytes <= kernel.ring.bytes
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """Those worth a try, the best one for large problems first."""
        found = []
        for shape in shapes(problem):
            shape = replace(shape, group=_GROUP // shape.down)
            both = (_with_stages(problem, replace(shape, buffers=buffers)) for buffers in (2, 1))
            found.append(max(both, key=lambda one: one.stages))
        return tuple(variant for variant in found if self.can_take(problem, variant))

    def expected_clocks(
        self,
        problem: Problem,
        variant: Variant,
        sizes: tuple[int, int, int],
        chip: Chip,
        *,
        at_most: bool = False,
    ) -> float:
        pitches = (matrix.pitch or 0 for matrix in (problem.a, problem.b))
        given = cost.Sizes(*sizes, *pitches)
        clocks = float(cost.clocks(Writer(), *operands(problem, variant), variant, given))
        return max(clocks, least_clocks(problem, sizes, chip)) if at_most else clocks

    def chosen_when_known(self, problem: Problem) -> tuple[MatmulFamily, Any]:
        from aotc.kernels.matmul.wgmma.dispatch_table import WGMMA_TABLE

        return WGMMA_TABLE, WGMMA_TABLE.table(problem, self.able(problem))

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return _Kernel(problem, variant).shared_bytes

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        return _Kernel(problem, variant, finish).text(name)


WGMMA = Wgmma()
