"""The kernel: cp.async brings Q, K and V, mma.sync makes scores and sums (FlashAttention-2, Dao).

A block makes a tile of O: each of its warps some tiles of 16 rows. It goes over K and V in blocks
of some keys, the last one first (which alone has keys that are not seen): scores = Q · Kᵀ, in
registers; their exponentials, which are the next product's first factor in registers; sums =
sums · factor + exponentials · V. Scores are never in memory. With one stage V of a block comes
while its scores are made, and K of the next one while its sums are; with two, both come a block
ahead.

Scores and sums are f32. Exponentials become Q's type before the second product, and are divided by
their sum after it: in another order than the operation says, with the same error bounds.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.lower.attention.masks import MaskReader
from aotc.lower.attention.problem import Attention
from aotc.lower.attention.softmax import Rows, Softmax
from aotc.lower.attention.tensor_cores.operands import CHUNK, Operand
from aotc.lower.attention.tensor_cores.products import TILE, Products
from aotc.lower.attention.tensor_cores.store import Place, Store
from aotc.lower.contractions.hopper.tiles import SHARED, Body
from aotc.lower.contractions.problem import Matrix

WARP = 32
# Of a block at most, on every GPU from sm_80 on.
_SHARED_BYTES = 101376
_MOST_DEPTH = 256


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    `warps`, each with `tiles` of 16 rows of Q. `keys`: of a block. `stages`: how many blocks of K
    and of V there is room for. `holds_q`: Q is in registers. `group`: how many matrices of the
    batch are gone through at once, so that their K and V are in the L2 cache.
    """

    warps: int = 4
    tiles: int = 2
    keys: int = 64
    stages: int = 1
    holds_q: bool = False
    group: int = 1

    @property
    def m(self) -> int:
        """Rows of a tile."""
        return TILE * self.tiles * self.warps

    @property
    def threads(self) -> int:
        return WARP * self.warps


def can_take(problem: Attention, variant: Variant) -> bool:
    """Whether the kernel is right for the problem."""
    depth = problem.depth
    matrices = (problem.q, problem.k, problem.v)
    if depth is None or not 0 < depth <= _MOST_DEPTH or depth % CHUNK:
        return False
    if problem.q.element not in ("f16", "bf16") or problem.scale <= 0:
        return False
    kernel = _Kernel(problem, variant)
    return (
        all(one.element == problem.q.element and not one.transposed for one in matrices)
        and problem.o.element in (problem.q.element, "f32")
        and variant.keys % TILE == 0
        and variant.stages in (1, 2)
        and all(one.is_shared_evenly for one in (kernel.q, kernel.k, kernel.v))
        and kernel.shared_bytes <= _SHARED_BYTES
    )


def function(problem: Attention, variant: Variant, name: str) -> str:
    """`func.func @name(%q, %k, %v, %c)`, which launches the kernel; C is O."""
    return _Kernel(problem, variant).text(name)


class _Tile(Struct, frozen=True):
    """A tile's first row, its batch (which counts heads), and how many blocks of keys it sees: i32
    values."""

    row: str
    batch: str
    blocks: str


class _State(Struct, frozen=True):
    """Of each of the warp's tiles: its rows, and the sums of O."""

    rows: tuple[Rows, ...]
    sums: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> list[str]:
        return [
            value
            for rows, sums in zip(self.rows, self.sums, strict=True)
            for value in (*rows.largest, *rows.sums, *sums)
        ]

    @staticmethod
    def of(values: list[str], tiles: int) -> _State:
        size = len(values) // tiles
        parts = [values[size * i : size * (i + 1)] for i in range(tiles)]
        rows = tuple(Rows((one[0], one[1]), (one[2], one[3])) for one in parts)
        return _State(rows, tuple(tuple(one[4:]) for one in parts))


class _Kernel:
    """The function's text, part by part. Names of values that its parts share are its members."""

    def __init__(self, problem: Attention, variant: Variant) -> None:
        self.problem, self.variant = problem, variant
        self.depth = problem.depth or 0
        heads, threads = problem.heads, variant.threads
        ring = (variant.stages, variant.keys, self.depth)
        self.q = Operand("q", problem.q, (1, variant.m, self.depth), heads[0], threads)
        self.k = Operand("k", problem.k, ring, heads[1], threads)
        self.v = Operand("v", problem.v, ring, heads[2], threads)
        self.shared_bytes = self.q.bytes + self.k.bytes + self.v.bytes
        self.e = Body()
        self.products = Products(self.e, self.q, self.k, self.v, variant.tiles)
        self.store = Store(self.e, problem, self.q)
        mask = problem.mask
        self.softmax = Softmax(self.e, problem.scale, problem.q.element, masked=mask is not None)
        self.masks = [
            MaskReader(self.e, mask, variant.keys) for _ in range(variant.tiles) if mask is not None
        ]

    # --- The host's part -----------------------------------------------------------------

    def text(self, name: str) -> str:
        e, problem = self.e, self.problem
        types = {"q": problem.q.type, "k": problem.k.type, "v": problem.v.type, "c": problem.o.type}
        if problem.mask is not None:
            types["m"] = problem.mask.type
        self.host_batch, self.host_queries = (self._dim("%q", problem.q, i) for i in (0, 1))
        self.host_keys = self._dim("%k", problem.k, 1)
        if problem.heads[0]:
            self.host_batch = e.do("muli", self.host_batch, problem.heads[0], "index")
        down = e.do("ceildivui", self.host_queries, self.variant.m, "index")
        blocks = e.do("muli", down, self.host_batch, "index")
        with e.block(f"scf.if {e.compare('ne', blocks, 0, 'index')}"):
            self._launch(blocks)
        arguments = ", ".join(f"%{key}: {type_}" for key, type_ in types.items())
        return f"func.func @{name}({arguments}) {{\n{e.text()}\n  return\n}}"

    def _dim(self, name: str, matrix: Matrix, number: int) -> str:
        which = self.e.constant(number)
        return self.e.value(f"memref.dim {name}, {which} : {matrix.type}")

    def _launch(self, blocks: str) -> None:
        e = self.e
        one, threads = e.constant(1), e.constant(self.variant.threads)
        bytes_ = e.constant(self.shared_bytes, "i32")
        e.line(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {blocks}, %gy = {one}, %gz = {one})")
        e.line(f"    threads(%tx, %ty, %tz) in (%sx = {threads}, %sy = {one}, %sz = {one})")
        with e.block(f"    dynamic_shared_memory_size {bytes_}"):
            self._body()
            e.line("gpu.terminator")

    # --- The kernel ----------------------------------------------------------------------

    def _body(self) -> None:
        e, problem, variant = self.e, self.problem, self.variant
        thread = e.i32("%tx")
        self.lane = e.do("andi", thread, WARP - 1)
        # The same for all lanes, which a shuffle tells the compiler.
        everyone, first, last = (e.constant(number, "i32") for number in (-1, 0, 31))
        warp = e.do("divui", thread, WARP)
        warp = e.value(f"nvvm.shfl.sync idx {everyone}, {warp}, {first}, {last} : i32 -> i32")
        shared = e.value(f"gpu.dynamic_shared_memory : {SHARED}")
        self.queries = self._size(problem.q.sizes[0], self.host_queries)
        self.keys = self._size(problem.k.sizes[0], self.host_keys)
        tile = self._tile(e.i32("%bx"))
        offset = 0
        for operand in (self.q, self.k, self.v):
            operand.begin(e, shared, offset, thread, tile.batch)
            offset += operand.bytes
        self.warp_row = e.do("muli", warp, TILE * variant.tiles)
        self.products.begin(self.lane, self.warp_row)
        self.softmax.begin(self.lane)
        row = e.do("addi", e.do("addi", tile.row, self.warp_row), self.softmax.row)
        self.first_rows = [e.do("addi", row, TILE * i) for i in range(variant.tiles)]
        for mask, first_row in zip(self.masks, self.first_rows, strict=False):
            both = (first_row, e.do("addi", first_row, 8))
            mask.begin_tile(tile.batch, both, (self.queries, self.keys))
        self._compute(tile)

    def _size(self, known: int | None, size: str) -> str:
        return self.e.i32(size) if known is None else self.e.constant(known, "i32")

    def _tile(self, number: str) -> _Tile:
        """Tiles are counted over `group` matrices of the batch, then down; causal ones up, as the
        last rows have the most keys, and what takes longest comes first."""
        e, variant = self.e, self.variant
        batches = e.i32(self.host_batch)
        down = e.do("divui", e.do("addi", self.queries, variant.m - 1), variant.m)
        if variant.group == 1:
            row, batch = e.do("remui", number, down), e.do("divui", number, down)
        else:
            in_group = e.do("muli", down, variant.group)
            first = e.do("muli", e.do("divui", number, in_group), variant.group)
            place = e.do("remui", number, in_group)
            width = e.do("minui", e.do("subi", batches, first), variant.group)
            row = e.do("divui", place, width)
            batch = e.do("addi", first, e.do("remui", place, width))
        seen = self.keys
        if self.problem.causal:
            row = e.do("subi", e.do("subi", down, 1), row)
        row = e.do("muli", row, variant.m)
        if self.problem.causal:
            seen = e.do("minui", seen, e.do("addi", row, variant.m))
        blocks = e.do("divui", e.do("addi", seen, variant.keys - 1), variant.keys)
        return _Tile(row, batch, blocks)

    def _compute(self, tile: _Tile) -> None:
        e, problem, variant = self.e, self.problem, self.variant
        self.last = e.do("subi", tile.blocks, 1)
        end = e.do("muli", self.last, variant.keys)
        known = problem.q.sizes[0]
        is_whole = known is not None and known % variant.m == 0
        first = e.constant(0)
        self.q.copy(e, tile.row, first, None if is_whole else self.queries)
        self.k.copy(e, end, first, self._key_count)
        if variant.stages > 1:
            self.v.copy(e, end, first, self._key_count)
        self.group = self._commit()
        self.held: list[str] = []
        if variant.holds_q:
            self._await()
            self.held = self.products.q_fragments()
        nothing = tuple([e.constant("0.0", "f32")] * (self.v.padded // 2))
        rows = self.softmax.nothing()
        state = _State((rows,) * variant.tiles, (nothing,) * variant.tiles)
        begin = e.constant(0, "i32")
        if (hidden := self._hidden(tile)) is not None:
            state = self._over_blocks(state, (begin, hidden), tile.blocks, hides=True)
            begin = hidden
        state = self._over_blocks(state, (begin, tile.blocks), tile.blocks, hides=False)
        inverses = [
            self.softmax.inverses(rows, masked_are_zero=problem.masked_rows_are_zero)
            for rows in state.rows
        ]
        sums = [
            self.softmax.scaled(list(one), factors)
            for one, factors in zip(state.sums, inverses, strict=True)
        ]
        row = e.do("addi", tile.row, self.warp_row)
        place = Place(tile.batch, row, self.warp_row, self.queries)
        self.store.store(sums, place, self.lane, (self.softmax.row, self.softmax.column))

    @property
    def _key_count(self) -> str | None:
        """How many keys there are, if the last block may have fewer."""
        known = self.problem.k.sizes[0]
        is_whole = known is not None and known % self.variant.keys == 0
        return None if is_whole else self.keys

    def _hidden(self, tile: _Tile) -> str | None:
        """How many blocks have keys that are not seen by all rows."""
        e, keys = self.e, self.variant.keys
        if not self.problem.causal:
            return None if self._key_count is None else e.constant(1, "i32")
        whole = e.do("divui", e.do("addi", tile.row, 1), keys)
        hidden = e.do("subi", tile.blocks, e.do("minui", whole, tile.blocks))
        return e.do("maxui", hidden, 1)

    def _over_blocks(
        self, state: _State, numbers: tuple[str, str], blocks: str, *, hides: bool
    ) -> _State:
        """The state behind the blocks of those numbers, counted from the last one down."""
        e = self.e
        values = state.values
        names, done, j = [e.name() for _ in values], e.name(), e.name()
        pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        types = ", ".join(["f32"] * len(values))
        first, end = numbers
        one = e.constant(1, "i32")
        with e.block(
            f"{done}:{len(values)} = scf.for {j} = {first} to {end} step {one} "
            f"iter_args({pairs}) -> ({types}) : i32"
        ):
            before = _State.of(names, self.variant.tiles)
            state = self._add_block(before, j, blocks, hides=hides)
            e.line(f"scf.yield {', '.join(state.values)} : {types}")
        return _State.of([f"{done}#{i}" for i in range(len(names))], self.variant.tiles)

    def _add_block(self, state: _State, j: str, blocks: str, *, hides: bool) -> _State:
        """Block j's scores, terms and sums. `hides`: some of its keys are not seen."""
        e, variant = self.e, self.variant
        number = e.do("subi", self.last, j)
        row = e.do("muli", number, variant.keys)
        is_another = e.compare("ne", number, 0)
        following = e.do("subi", row, variant.keys)
        self._await()
        if variant.stages == 1:
            stage = e.constant(0)
            self.v.copy(e, row, stage, self._key_count if hides else None)
            self._commit()
        else:
            odd = e.do("andi", j, 1)
            stage, other = e.index(odd), e.index(e.do("xori", odd, 1))
            self._copy_next(is_another, following, other, (self.k, self.v))
        scores = self.products.multiply_q(stage, self.held)
        if variant.stages == 1:
            self._await()
            self._copy_next(is_another, following, stage, (self.k,))
        all_terms, all_rows, all_sums = [], [], []
        for tile, own in enumerate(scores):
            if self.masks:
                first = e.do("addi", row, self.softmax.column)
                own = self.softmax.with_mask(own, self.masks[tile].read(first))
            if hides:
                own = self._hide(own, row, self.first_rows[tile])
            terms, rows, factors = self.softmax.add(own, state.rows[tile])
            all_terms.append(self.softmax.words(terms))
            all_rows.append(rows)
            all_sums.append(self.softmax.scaled(list(state.sums[tile]), factors))
        sums = self.products.multiply_v(stage, all_terms, all_sums)
        return _State(tuple(all_rows), tuple(tuple(one) for one in sums))

    def _await(self) -> None:
        """Until all that is under way is there, for all, and all have read what was before."""
        self.e.line(f"nvgpu.device_async_wait {self.group} {{numGroups = 0 : i32}}")
        self.e.line("gpu.barrier")

    def _copy_next(
        self, is_another: str, row: str, stage: str, operands: tuple[Operand, ...]
    ) -> None:
        e = self.e
        with e.block(f"scf.if {is_another}"):
            for operand in operands:
                operand.copy(e, row, stage, None)
        self._commit()

    def _commit(self) -> str:
        """Makes a group of the copies that have begun. (Any of them will do to wait for all.)"""
        return self.e.value("nvgpu.device_async_create_group {}")

    def _hide(self, scores: list[str], first: str, row: str) -> list[str]:
        """Without keys that are not there, and those behind a causal row."""
        e = self.e
        ends = []
        for half in range(2):
            end = self.keys
            if self.problem.causal:
                end = e.do("minui", end, e.do("addi", row, 8 * half + 1))
            ends.append(e.do("subi", end, first))
        return self.softmax.hide(scores, (ends[0], ends[1]))
