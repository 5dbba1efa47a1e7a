"""The kernel: cp.async brings Q, K and V, mma.sync makes scores and sums (FlashAttention-2, Dao).

A block makes a tile of O: each of its warps some tiles of 16 rows. It goes over K and V in blocks
of some keys: scores = Q · Kᵀ, in registers; their exponentials, which are the next product's first
factor in registers; sums = sums · factor + exponentials · V. Scores are never in memory.

Scores and sums are f32. Exponentials become Q's type before the second product, and are divided by
their sum after it: in another order than the operation says, with the same error bounds.
"""

from __future__ import annotations

from aotc.chips import BLOCK_SHARED_BYTES, WARP
from aotc.kernels.attention.mma_sync.blocks import Blocks
from aotc.kernels.attention.mma_sync.operands import CHUNK, Operand
from aotc.kernels.attention.mma_sync.store import Place, Store
from aotc.kernels.attention.mma_sync.tiles import STAGES, TILE, Tile, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.matmul.problem import Matrix
from aotc.kernels.matmul.wgmma.tiles import SHARED, Body

_MOST_DEPTH = 256


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
        and all(one.is_shared_evenly for one in (kernel.q, kernel.k, kernel.v))
        and kernel.shared_bytes <= BLOCK_SHARED_BYTES
    )


def function(problem: Attention, variant: Variant, name: str) -> str:
    """`func.func @name(%q, %k, %v, %c)`, which launches the kernel; C is O."""
    return _Kernel(problem, variant).text(name)


class _Kernel:
    """The function's text, part by part. Names of values that its parts share are its members."""

    def __init__(self, problem: Attention, variant: Variant) -> None:
        self.problem, self.variant = problem, variant
        self.depth = problem.depth or 0
        heads, threads = problem.heads, variant.threads
        ring = (STAGES, variant.keys, self.depth)
        self.q = Operand("q", problem.q, (1, variant.m, self.depth), heads[0], threads)
        self.k = Operand("k", problem.k, ring, heads[1], threads)
        self.v = Operand("v", problem.v, ring, heads[2], threads)
        self.shared_bytes = self.q.bytes + self.k.bytes + self.v.bytes
        self.e = Body()
        self.store = Store(self.e, problem, self.q)
        self.blocks = Blocks(self.e, problem, variant, (self.q, self.k, self.v))

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
        lane = e.do("andi", thread, WARP - 1)
        # The same for all lanes, which a shuffle tells the compiler.
        everyone, first, last = (e.constant(number, "i32") for number in (-1, 0, 31))
        warp = e.do("divui", thread, WARP)
        warp = e.value(f"nvvm.shfl.sync idx {everyone}, {warp}, {first}, {last} : i32 -> i32")
        shared = e.value(f"gpu.dynamic_shared_memory : {SHARED}")
        self.queries = self._size(problem.q.sizes[0], self.host_queries)
        keys = self._size(problem.k.sizes[0], self.host_keys)
        tile = self._tile(e.i32("%bx"))
        offset = 0
        for operand in (self.q, self.k, self.v):
            operand.begin(e, shared, offset, thread, tile.batch)
            offset += operand.bytes
        warp_row = e.do("muli", warp, TILE * variant.tiles)
        self.blocks.begin(tile, lane, warp_row, (self.queries, keys))
        rows = self.blocks.compute(tile)
        place = Place(tile.batch, e.do("addi", tile.row, warp_row), warp_row, self.queries)
        softmax = self.blocks.softmax
        self.store.store(rows, place, lane, (softmax.row, softmax.column))

    def _size(self, known: int | None, size: str) -> str:
        return self.e.i32(size) if known is None else self.e.constant(known, "i32")

    def _tile(self, number: str) -> Tile:
        """Tiles are counted down a matrix, and those of `group` matrices side by side; causal ones
        up, as the last rows have the most keys, and what takes longest comes first."""
        e, variant = self.e, self.variant
        batches = e.i32(self.host_batch)
        down = e.do("divui", e.do("addi", self.queries, variant.m - 1), variant.m)
        in_group = e.do("muli", down, variant.group)
        first = e.do("muli", e.do("divui", number, in_group), variant.group)
        place = e.do("remui", number, in_group)
        width = e.do("minui", e.do("subi", batches, first), variant.group)
        row = e.do("divui", place, width)
        batch = e.do("addi", first, e.do("remui", place, width))
        if self.problem.causal:
            row = e.do("subi", e.do("subi", down, 1), row)
        return Tile(e.do("muli", row, variant.m), batch)
