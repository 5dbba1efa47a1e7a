"""Products of f16 and bf16 on Hopper (sm_90a): TMA brings tiles, warpgroups multiply them (wgmma).

A block is one warpgroup that fetches and one or two that multiply, and makes one tile of C after
the other. Between them is a ring of stages in shared memory, each with a tile of A and one of B,
64 deep: a barrier says that a stage is full (TMA counts its bytes), another that it is empty (each
warp that multiplies arrives). All count stages from the kernel's beginning, over all tiles; a
count says the place in the ring and the phase of its barriers.

Blocks of a cluster share what they fetch (`cluster`): then tiles are counted by clusters, of
which each block makes its own.

What a tile has outside of A and B is filled with zeros, and what it has outside of C is not stored.
"""

from __future__ import annotations

from msgspec.structs import replace

from aotc.lower.contractions.hopper import cost
from aotc.lower.contractions.hopper.cluster import Cluster
from aotc.lower.contractions.hopper.products import Products, PromotedProducts, Ring, Sizes
from aotc.lower.contractions.hopper.split import Exchange, can_split
from aotc.lower.contractions.hopper.store import Store
from aotc.lower.contractions.hopper.swapped_store import SwappedStore, can_store_swapped
from aotc.lower.contractions.hopper.tiles import (
    SHARED,
    SPACE,
    Body,
    Operand,
    Tile,
    depth_of,
    is_aligned,
)
from aotc.lower.contractions.hopper.transposed_store import TransposedStore
from aotc.lower.contractions.hopper.turns import Turns
from aotc.lower.contractions.hopper.variants import (
    MOST_PROMOTED,
    Variant,
    has_fragments,
    shapes,
    sums_of,
)
from aotc.lower.contractions.problem import ELEMENT_BYTES, Finish, Matrix, Problem
from aotc.lower.contractions.writing.writer import Writer
from aotc.lower.rewrites.float8 import FLOAT8

NAME = "wgmma"
_WARPGROUP = 128  # threads
# Of a block at most, less what aligns the stages behind the barriers.
_SHARED_BYTES = 232448 - 1024
# By the number of warpgroups that multiply: for how many sums each of their threads has registers,
# and for how many where fragments of A have some, or where those of a stage stand beside the
# others; and the registers of a thread that fetches, and of one that multiplies. All warpgroups
# begin with the same, 168 of three and 128 of four; of two each has what it needs.
_MOST_SUMS = {1: 128, 2: 192, 3: 96}
_MOST_SUMS_BESIDE_FRAGMENTS = {1: 128, 2: 128, 3: 64}
_REGISTERS = {2: (40, 232), 3: (32, 160)}
_TICKS = 10_000_000  # of one try to wait, which is repeated


# Stages: what there is room for, up to so many; of the largest tiles three were seen to be best.
_MOST_STAGES, _MOST_OF_LARGEST = 8, 3
_GROUP = 16


def can_take(problem: Problem, variant: Variant) -> bool:
    """Whether the kernel is right for the problem."""
    return (
        _are_types_known(problem)
        and problem.k != 0
        and is_aligned(problem.a)
        and is_aligned(problem.b)
        and _is_possible(variant)
        and _can_swap(problem, variant)
        and can_split(problem, variant)
        and (kernel := _Kernel(problem, variant)).shared_bytes <= _SHARED_BYTES
        and kernel.exchange.bytes <= kernel.ring_bytes
    )


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


def variants(problem: Problem) -> tuple[Variant, ...]:
    """Those worth a try, the best one for large problems first."""
    found = []
    for shape in shapes(problem):
        shape = replace(shape, group=_GROUP // shape.down)
        both = (_with_stages(problem, replace(shape, buffers=buffers)) for buffers in (2, 1))
        found.append(max(both, key=lambda one: one.stages))
    return tuple(variant for variant in found if can_take(problem, variant))


def _with_stages(problem: Problem, shape: Variant) -> Variant:
    """With as many as there is room for."""
    room = _SHARED_BYTES - Store.shared_bytes(4 * shape.consumers, shape.buffers)
    is_largest = (shape.n, shape.m, shape.cluster, shape.swaps) == (256, 128, 1, False)
    most = _MOST_OF_LARGEST if is_largest else _MOST_STAGES
    return replace(shape, stages=min(room // _Kernel(problem, shape).stage_bytes, most))


def clocks(problem: Problem, variant: Variant, m: int, n: int, k: int) -> float:
    """How long a multiprocessor is expected to be busy."""
    pitches = (matrix.pitch or 0 for matrix in (problem.a, problem.b))
    sizes = cost.Sizes(m, n, k, *pitches)
    return float(cost.clocks(Writer(), *operands(problem, variant), variant, sizes))


def operands(problem: Problem, variant: Variant) -> tuple[Operand, Operand]:
    """A's tile in a stage, and B's."""
    kernel = _Kernel(problem, variant)
    return kernel.a, kernel.b


def function(problem: Problem, variant: Variant, name: str, finish: Finish | None = None) -> str:
    """`func.func @name(%a, %b, %c, ...)`, which launches the kernel."""
    return _Kernel(problem, variant, finish).text(name)


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
        self.stage_bytes = self.a.bytes + self.b.bytes
        self.ring_bytes = variant.stages * self.stage_bytes
        self.shared_bytes = self.ring_bytes + Store.shared_bytes(
            4 * variant.consumers, variant.buffers
        )
        self.barriers = (
            f"!nvgpu.mbarrier.group<memorySpace = {SPACE}, num_barriers = {variant.stages}>"
        )
        self.e = Body()
        self.cluster = Cluster(self.e, variant.down, variant.across, variant.splits)
        self.exchange = Exchange(self.e, variant)
        self.turns = Turns(self.e)
        store: type[Store] = SwappedStore if self.swaps else Store
        if self.swaps and ELEMENT_BYTES[a.element] != 2:
            store = TransposedStore
        self.store = store(self.e, problem, self.exchange.columns, finish, variant.buffers)
        ring = Ring(
            self._stage, lambda count: self._wait(self.full, count), self._release, self.stage_bytes
        )
        make = PromotedProducts if variant.promotes else Products
        sizes = Sizes(variant.m_blocks, variant.n, variant.parts)
        self.products = make(self.e, (self.a, self.b), sizes, ring, self.store.sum)

    # --- The host's part -----------------------------------------------------------------

    def text(self, name: str) -> str:
        e = self.e
        self._find_sizes()
        with e.block(f"scf.if {self._is_there()}"):
            self.a_map, self.b_map = (
                operand.make_map(e, name)
                for operand, name in zip((self.a, self.b), self.names, strict=True)
            )
            self.store.make_maps()
            self._launch()
        return f"func.func @{name}({self.problem.signature}) {{\n{e.text()}\n  return\n}}"

    def _find_sizes(self) -> None:
        problem = self.problem
        first = 1 if problem.batched else 0
        self.host_m = self._dim("%c", problem.c, first)
        self.host_n = self._dim("%c", problem.c, first + 1)
        self.host_k = self._dim("%a", problem.a, first + (0 if problem.a.transposed else 1))
        self.host_batch = self._dim("%c", problem.c, 0) if problem.batched else None
        if self.swaps:
            self.host_m, self.host_n = self.host_n, self.host_m

    def _dim(self, name: str, matrix: Matrix, number: int) -> str:
        which = self.e.constant(number)
        return self.e.value(f"memref.dim {name}, {which} : {matrix.type}")

    def _is_there(self) -> str:
        """Whether C has elements."""
        e = self.e
        elements = e.do("muli", self.host_m, self.host_n, "index")
        if self.host_batch is not None:
            elements = e.do("muli", elements, self.host_batch, "index")
        return e.compare("ne", elements, 0, "index")

    def _launch(self) -> None:
        e = self.e
        blocks, one = self._blocks(), e.constant(1)
        threads = e.constant(self.variant.threads)
        bytes_ = e.constant(self.shared_bytes, "i32")
        e.line(f"gpu.launch {self.cluster.launched()}blocks(%bx, %by, %bz)")
        e.line(f"    in (%gx = {blocks}, %gy = {one}, %gz = {one})")
        e.line(f"    threads(%tx, %ty, %tz) in (%sx = {threads}, %sy = {one}, %sz = {one})")
        with e.block(f"    dynamic_shared_memory_size {bytes_}"):
            self._body()
            e.line("gpu.terminator")

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
        thread = e.i32("%tx")
        self._find_block(thread)
        self._count_tiles()
        self._make_barriers(e.compare("eq", thread, 0))
        is_producer = e.compare("eq", self.warpgroup, 0)
        e.open(f"scf.if {is_producer} {{")
        self._produce()
        e.otherwise()
        self._consume()
        e.close()
        self.cluster.end()

    def _find_block(self, thread: str) -> None:
        """What a thread knows of itself and of its block."""
        e = self.e
        self.cluster.begin(e.i32("%bx"), e.i32("%gx"))
        self.exchange.begin()
        self.lane = e.do("andi", thread, 31)
        # The same for all lanes, which a shuffle tells the compiler.
        everyone, first, last = (e.constant(number, "i32") for number in (-1, 0, 31))
        warp = e.do("shrui", thread, 5)
        self.warp = e.value(f"nvvm.shfl.sync idx {everyone}, {warp}, {first}, {last} : i32 -> i32")
        self.warpgroup = e.do("shrui", self.warp, 2)
        self.shared = e.value(f"gpu.dynamic_shared_memory : {SHARED}")
        address = e.value(
            f"memref.extract_aligned_pointer_as_index {self.shared} : {SHARED} -> index"
        )
        self.address = e.i32(address)

    def _count_tiles(self) -> None:
        e, problem, variant = self.e, self.problem, self.variant
        sizes = (problem.n, problem.m) if self.swaps else (problem.m, problem.n)
        self.m = self._size(sizes[0], self.host_m)
        self.n = self._size(sizes[1], self.host_n)
        self.k = self._size(problem.k, self.host_k)
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
        if variant.splits > 1:
            self.stages_of_tile, self.first_k = self.exchange.divide(stages, self.k)
            return
        self.stages_of_tile = e.do("maxui", stages, 1)
        has_none = e.compare("eq", self.k, 0)
        behind, zero = e.constant(self.depth, "i32"), e.constant(0, "i32")
        self.first_k = e.value(f"arith.select {has_none}, {behind}, {zero} : i32")

    def _size(self, known: int | None, size: str) -> str:
        return self.e.i32(size) if known is None else self.e.constant(known, "i32")

    def _make_barriers(self, is_first: str) -> None:
        e, variant = self.e, self.variant
        self.full, self.empty = (
            e.value(f"nvgpu.mbarrier.create -> {self.barriers}") for _ in range(2)
        )
        with e.block(f"scf.if {is_first}"):
            # A stage is filled by one thread, and emptied by the warps that multiply it.
            warps = 4 if variant.ping_pong else 4 * variant.consumers
            one, arrivals = e.constant(1), e.constant(warps * self.cluster.sharers)
            for number in range(variant.stages):
                stage = e.constant(number)
                e.line(f"nvgpu.mbarrier.init {self.full}[{stage}], {one} : {self.barriers}")
                e.line(f"nvgpu.mbarrier.init {self.empty}[{stage}], {arrivals} : {self.barriers}")
            e.line("nvvm.fence.mbarrier.init")
        for map_, type_ in ((self.a_map, self.a.map_type), (self.b_map, self.b.map_type)):
            e.line(f"nvgpu.tma.prefetch.descriptor {map_}, predicate = {is_first} : {type_}")
        self.cluster.arrive_all()
        # All this may be done while the kernel before ends, and the next one may do it from now on.
        e.line("nvvm.griddepcontrol wait")
        if variant.is_early:
            e.line("nvvm.griddepcontrol launch_dependents")
        self.cluster.await_all()

    def _tile(self, number: str) -> Tile:
        """This block's, of a cluster's. They are counted down `group` rows of tiles, then across;
        then in the next rows."""
        e, variant = self.e, self.variant
        batch = None
        if self.problem.batched:
            batch = e.do("divui", number, self.tiles_of_one)
            number = e.do("remui", number, self.tiles_of_one)
        in_group = e.do("muli", self.across, variant.group)
        first = e.do("muli", e.do("divui", number, in_group), variant.group)
        place = e.do("remui", number, in_group)
        height = e.do("minui", e.do("subi", self.down, first), variant.group)
        row = e.do("addi", first, e.do("remui", place, height))
        column = e.do("divui", place, height)
        row = e.do("addi", e.do("muli", row, variant.down), self.cluster.below)
        column = e.do("addi", e.do("muli", column, variant.across), self.cluster.beside)
        return Tile(e.do("muli", row, variant.m), e.do("muli", column, variant.n), batch)

    def _stage(self, count: str) -> str:
        return self.e.do("remui", count, self.variant.stages)

    def _wait(self, barriers: str, count: str, *, for_round_before: bool = False) -> None:
        """Until the count's stage is full; or, of the barriers that say that it is empty, until
        what the round before put there is done with. (Nothing, in the first round: a new barrier
        counts as one whose phase before is over.)"""
        e = self.e
        stage = e.index(self._stage(count))
        phase = e.do("divui", count, self.variant.stages)
        if for_round_before:
            phase = e.do("addi", phase, 1)
        parity = e.value(f"arith.trunci {phase} : i32 to i1")
        ticks = e.constant(_TICKS)
        e.line(
            f"nvgpu.mbarrier.try_wait.parity {barriers}[{stage}], {parity}, {ticks} "
            f": {self.barriers}"
        )

    # --- What fetches --------------------------------------------------------------------

    def _produce(self) -> None:
        e = self.e
        if self.variant.consumers > 1:
            few, _ = _REGISTERS[self.variant.consumers]
            e.line(f"nvvm.setmaxregister decrease {few}")
        is_first_warp = e.compare("eq", self.warp, 0)
        elected = e.value("nvvm.elect.sync -> i1")
        fetches = e.do("andi", is_first_warp, elected, "i1")
        with e.block(f"scf.if {fetches}"):
            zero, one = e.constant(0, "i32"), e.constant(1, "i32")
            masks = self.cluster.masks()
            tiles = f"{self.cluster.number} to {self.tiles} step {self.cluster.count}"
            loop = f"{e.name()} = scf.for %tile = {tiles}"
            with e.block(f"{loop} iter_args(%count = {zero}) -> (i32) : i32"):
                tile = self._tile("%tile")
                with e.block(f"scf.for %k = {zero} to {self.stages_of_tile} step {one} : i32"):
                    self._fetch(tile, "%k", e.do("addi", "%count", "%k"), masks)
                count = e.do("addi", "%count", self.stages_of_tile)
                e.line(f"scf.yield {count} : i32")

    def _fetch(self, tile: Tile, k: str, count: str, masks: tuple[str, str]) -> None:
        e = self.e
        self._wait(self.empty, count, for_round_before=True)
        stage = self._stage(count)
        barrier, bytes_ = f"{self.full}[{e.index(stage)}]", e.constant(self.stage_bytes)
        e.line(f"nvgpu.mbarrier.arrive.expect_tx {barrier}, {bytes_} : {self.barriers}")
        depth = e.do("addi", e.do("muli", k, self.depth), self.first_k)
        a_at = e.do("muli", stage, self.stage_bytes)
        b_at = e.do("addi", a_at, self.a.bytes)
        # Blocks with the same rows of A differ in their columns, and the other way round.
        a_place = (tile.row, depth, tile.batch, self.cluster.beside)
        self._load(self.a, self.a_map, barrier, a_at, a_place, masks[0])
        b_place = (tile.column, depth, tile.batch, self.cluster.below)
        self._load(self.b, self.b_map, barrier, b_at, b_place, masks[1])

    def _load(
        self,
        operand: Operand,
        map_: str,
        barrier: str,
        offset: str,
        place: tuple[str, str, str | None, str],
        mask: str,
    ) -> None:
        """Fetches the operand's tile at a place in the matrix, or this block's part of it, to an
        offset in shared memory, of all blocks that share it."""
        e = self.e
        to_all = f" multicast_mask = {mask}" if operand.sharers > 1 else ""
        for more, coordinates in operand.coordinates(e, *place):
            at = e.index(e.do("addi", offset, more))
            tile = e.value(f"memref.view {self.shared}[{at}][] : {SHARED} to {operand.tile}")
            e.line(
                f"nvgpu.tma.async.load {map_}[{', '.join(coordinates)}], {barrier} to {tile}"
                f"{to_all} : {operand.map_type}, {self.barriers} -> {operand.tile}"
            )

    # --- What multiplies -----------------------------------------------------------------

    def _consume(self) -> None:
        e, variant = self.e, self.variant
        if variant.consumers > 1:
            _, many = _REGISTERS[variant.consumers]
            e.line(f"nvvm.setmaxregister increase {many}")
        consumer = e.do("subi", self.warpgroup, 1)
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
            if variant.ping_pong:
                self.turns.wait(consumer)
            sums, last_stage = self.products.add("%count", self.stages_of_tile)
            if variant.ping_pong:
                self.turns.give(consumer)
            sums = self.products.finish(sums, last_stage)
            tile = self._tile("%tile")
            tile = Tile(e.do("addi", tile.row, self.first_row), tile.column, tile.batch)
            self.exchange.store(sums, tile, self.address, consumer, self.store)
            e.line(f"scf.yield {e.do('addi', '%count', counts)} : i32")
        self.store.end()

    def _find_part(self, consumer: str) -> None:
        """Where this warp's rows are in the tile, and its operands in a stage."""
        e, variant = self.e, self.variant
        part = e.constant(0, "i32") if variant.ping_pong else consumer
        warp_rows = e.do("muli", e.do("andi", self.warp, 3), 16)
        self.first_row = e.do("addi", e.do("muli", part, 64 * variant.m_blocks), warp_rows)
        self.products.begin(self.address, part, self.lane, self.first_row)
        warp = e.do("subi", self.warp, 4)
        buffers = e.do(
            "addi", e.do("muli", warp, Store.shared_bytes(1, variant.buffers)), self.ring_bytes
        )
        sizes = (self.n, self.m) if self.swaps else (self.m, self.n)
        self.store.begin(self.shared, self.address, buffers, self.lane, sizes)
        self.releases = self.cluster.is_sharer(self.lane)

    def _release(self, stage: str) -> None:
        """Each warp says that it has read the stage, to all blocks that write there."""
        e = self.e
        with e.block(f"scf.if {self.releases}"):
            place = f"{self.empty}[{e.index(stage)}] : {self.barriers}"
            if self.cluster.size > 1:
                barrier = e.value(f"nvgpu.mbarrier.get {place} -> i32")
                self.cluster.arrive(barrier, self.lane)
                return
            e.value(
                f"nvgpu.mbarrier.arrive {place} -> !nvgpu.mbarrier.token<memorySpace = {SPACE}, "
                f"num_barriers = {self.variant.stages}>"
            )
