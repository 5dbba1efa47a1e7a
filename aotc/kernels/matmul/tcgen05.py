"""Products of f16 and bf16 on Blackwell (sm_100a): TMA brings tiles, one thread multiplies them.

A block makes one tile of C. One warp fetches stages of A and B into a ring in shared memory, as
in `hopper`; a thread of another one starts the products (tcgen05.mma), whose sums are in tensor
memory: a lane for each of 128 rows, a column of 32 bits for each of C's. Four warps store what 32
lanes each have.

No such GPU has run this yet: that it assembles is all that is known. It is chosen where it is asked
for alone (`--untested-kernels`).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.chips import KIB, LIMITS
from aotc.kernels.family import SM_100A
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Place, Problem, convert
from aotc.kernels.matmul.wgmma.block import Block, in_groups
from aotc.kernels.matmul.wgmma.pipeline import Barriers, Ring
from aotc.kernels.matmul.wgmma.tiles import DEPTH, Body, Operand, Tile, is_aligned

# Warps: four that store, one that fetches, one that multiplies.
_STORING, _FETCHING, _MULTIPLYING = 4, 4, 5
_THREADS = 32 * 6
_ROWS = 128  # of a tile: a lane of tensor memory each
_K = 16  # of one tcgen05.mma
# Of a block at most, less what aligns the stages behind the barriers, and tensor memory's address.
_SHARED_BYTES = LIMITS[100].block_shared - 2 * KIB
_LOADED = 32  # columns that a thread loads from tensor memory at once
_STORED_BYTES = 16


class Variant(Struct, frozen=True):
    """Parameters of a kernel: a tile of C has 128 rows and `n` columns (a multiple of 32, at most
    256); `stages` are those of the ring. `group`: how many tiles of a column of C follow each
    other, so that the blocks that run at once share rows of A and columns of B in the L2 cache."""

    n: int = 256
    stages: int = 4
    group: int = 16

    @property
    def m(self) -> int:
        """Rows of a tile."""
        return _ROWS

    @property
    def splits(self) -> int:
        """A block computes its tile along the whole of K."""
        return 1


# Of a multiprocessor, by what NVIDIA says of a B200: multiply-adds of 16 bits in a clock. And a
# guess: clocks until the first tile is there, and elements stored in one.
_MULTIPLY_ADDS = 4096
_START_CLOCKS = 2000
_STORED_A_CLOCK = 64


class _Kernel:
    """The function's text, part by part. Names of values that its parts share are its members."""

    def __init__(self, problem: Problem, variant: Variant, finish: Finish | None = None) -> None:
        self.problem, self.variant, self.finish = problem, variant, finish
        a, b = problem.a, problem.b
        batched = problem.batched
        self.a = Operand.of(a, variant.m, is_deep=not a.transposed, batched=batched)
        self.b = Operand.of(b, variant.n, is_deep=b.transposed, batched=batched)
        self.e = Body()
        self.block = Block(self.e)
        self.ring = Ring(self.e, variant.stages, self.a.bytes + self.b.bytes)
        self.done = Barriers(self.e)  # of the sums

    # --- The host's part -----------------------------------------------------------------

    def text(self, name: str) -> str:
        e, problem, size = self.e, self.problem, self.block.size
        first = 1 if problem.batched else 0
        self.host_m = size("%c", problem.c, first)
        self.host_n = size("%c", problem.c, first + 1)
        self.host_k = size("%a", problem.a, first + (0 if problem.a.transposed else 1))
        down = e.do("ceildivui", self.host_m, self.variant.m, "index")
        across = e.do("ceildivui", self.host_n, self.variant.n, "index")
        blocks = e.do("muli", down, across, "index")
        if problem.batched:
            blocks = e.do("muli", blocks, size("%c", problem.c, 0), "index")
        with e.block(f"scf.if {e.compare('ne', blocks, 0, 'index')}"):
            self.a_map = self.a.make_map(e, "%a")
            self.b_map = self.b.make_map(e, "%b")
            bytes_ = TCGEN05.shared_bytes(problem, self.variant)
            self.block.launch(blocks, _THREADS, bytes_, self._body)
        return f"func.func @{name}({problem.signature}) {{\n{e.text()}\n  return\n}}"

    # --- The kernel ----------------------------------------------------------------------

    def _body(self) -> None:
        e = self.e
        self.block.begin()
        self._find_tile()
        self._begin()
        with self.block.one_thread_of(_FETCHING):
            self._fetch_all()
        with self.block.one_thread_of(_MULTIPLYING):
            self._multiply()
        stores = e.compare("ult", self.block.warp, _STORING)
        with e.block(f"scf.if {stores}"):
            self._store()
        e.line("nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>")
        e.line("gpu.barrier")
        with e.block(f"scf.if {e.compare('eq', self.block.warp, _MULTIPLYING)}"):
            columns = e.constant(self._columns(), "i32")
            e.line(f"nvvm.tcgen05.dealloc {self.sums}, {columns} : !llvm.ptr<6>, i32")

    def _columns(self) -> int:
        """Of tensor memory: a power of two."""
        return max(32, 1 << (self.variant.n - 1).bit_length())

    def _find_tile(self) -> None:
        """The block's tile; tiles are counted down `group` rows of tiles, then across."""
        e, variant, problem = self.e, self.variant, self.problem
        known = self.block.known
        self.m, self.n = known(problem.m, self.host_m), known(problem.n, self.host_n)
        k = known(problem.k, self.host_k)
        stages = e.do("divui", e.do("addi", k, DEPTH - 1), DEPTH)
        # With K = 0 there is one, behind K's end: zeros.
        self.stages_of_tile = e.do("maxui", stages, 1)
        has_none = e.compare("eq", k, 0)
        behind, zero = e.constant(DEPTH, "i32"), e.constant(0, "i32")
        self.first_k = e.value(f"arith.select {has_none}, {behind}, {zero} : i32")
        down = e.do("divui", e.do("addi", self.m, variant.m - 1), variant.m)
        across = e.do("divui", e.do("addi", self.n, variant.n - 1), variant.n)
        number, batch = e.i32("%bx"), None
        if problem.batched:
            tiles = e.do("muli", down, across)
            batch, number = e.do("divui", number, tiles), e.do("remui", number, tiles)
        row, column = in_groups(e, number, (down, across), variant.group)
        self.tile = Tile(e.do("muli", row, variant.m), e.do("muli", column, variant.n), batch)

    def _begin(self) -> None:
        """Barriers, and the block's part of tensor memory, whose address all threads get."""
        e = self.e
        self.ring.make()
        self.done.make()
        with self.block.first_thread():
            self.ring.begin(1)
            self.done.begin(e.constant(0), e.constant(1))
        self.block.prefetch([(self.a_map, self.a.map_type), (self.b_map, self.b.map_type)])
        slot = e.pointer(e.do("addi", self.block.address, self.ring.bytes))
        with e.block(f"scf.if {e.compare('eq', self.block.warp, _MULTIPLYING)}"):
            columns = e.constant(self._columns(), "i32")
            e.line(f"nvvm.tcgen05.alloc {slot}, {columns} : !llvm.ptr<3>, i32")
            e.line("nvvm.tcgen05.relinquish_alloc_permit")
        e.line("nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>")
        e.line("gpu.barrier")
        e.line("nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>")
        self.sums_address = e.value(f"llvm.load {slot} : !llvm.ptr<3> -> i32")
        self.sums = self._tensor_memory(self.sums_address)

    def _tensor_memory(self, address: str) -> str:
        return self.e.value(f"llvm.inttoptr {address} : i32 to !llvm.ptr<6>")

    # --- What fetches --------------------------------------------------------------------

    def _fetch_all(self) -> None:
        e = self.e
        zero, one = e.constant(0, "i32"), e.constant(1, "i32")
        with e.block(f"scf.for %k = {zero} to {self.stages_of_tile} step {one} : i32"):
            self.ring.await_empty("%k")
            stage = self.ring.stage("%k")
            self.ring.full.expect(stage, self.ring.stage_bytes)
            depth = e.do("addi", e.do("muli", "%k", DEPTH), self.first_k)
            a_at = e.do("muli", stage, self.ring.stage_bytes)
            b_at = e.do("addi", a_at, self.a.bytes)
            self._load(self.a, self.a_map, stage, a_at, self.tile.row, depth)
            self._load(self.b, self.b_map, stage, b_at, self.tile.column, depth)

    def _load(
        self, operand: Operand, map_: str, stage: str, offset: str, at: str, depth: str
    ) -> None:
        e = self.e
        for more, coordinates in operand.coordinates(e, at, depth, self.tile.batch, ""):
            to = (e.do("addi", offset, more), operand.tile)
            self.block.load((map_, operand.map_type), coordinates, self.ring.full, stage, to)

    # --- What multiplies -----------------------------------------------------------------

    def _multiply(self) -> None:
        """The tensor cores say themselves that they have read a stage, and that all is summed."""
        e = self.e
        what = e.constant(self._instruction(), "i32")
        a = self._descriptor(self.a, self.block.address)
        b = self._descriptor(self.b, e.do("addi", self.block.address, self.a.bytes))
        zero, one = e.constant(0, "i32"), e.constant(1, "i32")
        with e.block(f"scf.for %k = {zero} to {self.stages_of_tile} step {one} : i32"):
            self.ring.await_full("%k")
            stage = self.ring.stage("%k")
            e.line("nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>")
            wide = e.value(f"arith.extui {stage} : i32 to i64")
            offset = e.do("muli", wide, self.ring.stage_bytes >> 4, "i64")
            a_stage, b_stage = e.do("addi", a, offset, "i64"), e.do("addi", b, offset, "i64")
            is_later = e.compare("ne", "%k", 0)
            for step in range(DEPTH // _K):
                a_at = e.do("addi", a_stage, step * self.a.step, "i64")
                b_at = e.do("addi", b_stage, step * self.b.step, "i64")
                # The first products are not added to anything: there are no zeros to write.
                adds = is_later if step == 0 else e.value("arith.constant true")
                e.line(
                    f"nvvm.tcgen05.mma {self.sums}, {a_at}, {b_at}, {what}, {adds} "
                    "{kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} "
                    ": (!llvm.ptr<6>, i64, i64, i32, i1)"
                )
            self._commit(self.ring.empty, stage)
        self._commit(self.done, zero)

    def _commit(self, barriers: Barriers, stage: str) -> None:
        """The barrier's phase ends when all products that were begun are made."""
        e = self.e
        e.line(f"nvvm.tcgen05.commit {e.pointer(barriers.address(stage))} : !llvm.ptr<3>")

    def _instruction(self) -> int:
        """What is multiplied (PTX manual, «Instruction descriptor», of kind f16): sums of f32; the
        types; whether rows, and columns, are contiguous rather than K; sizes of the tile."""
        number = 1 if self.problem.a.element == "bf16" else 0
        return (
            1 << 4
            | number << 7
            | number << 10
            | (not self.a.is_deep) << 15
            | (not self.b.is_deep) << 16
            | (self.variant.n >> 3) << 17
            | (self.variant.m >> 4) << 24
        )

    def _descriptor(self, operand: Operand, address: str) -> str:
        """As wgmma's, but for a number (1, in bits 46 to 48) that says whose it is (PTX manual,
        «Shared memory descriptor»)."""
        return self.e.do("ori", operand.descriptor(self.e, address), 1 << 46, "i64")

    # --- What stores ---------------------------------------------------------------------

    def _store(self) -> None:
        """A thread has a row."""
        e = self.e
        first_phase = e.constant(0, "i32")
        self.done.wait(first_phase, first_phase)
        e.line("nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>")
        row = e.do("addi", self.tile.row, self.block.thread)
        is_row = e.compare("ult", row, self.m)
        # An address in tensor memory is a lane in its upper half, and a column.
        lanes = e.do("shli", e.do("muli", self.block.warp, 32), 16)
        first = e.do("addi", self.sums_address, lanes)
        zero, end, step = (e.constant(i, "i32") for i in (0, self.variant.n, _LOADED))
        with e.block(f"scf.for %first = {zero} to {end} step {step} : i32"):
            place = self._tensor_memory(e.do("addi", first, "%first"))
            bits = e.value(
                f"nvvm.tcgen05.ld {place} {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} "
                f": vector<{_LOADED}xi32>"
            )
            e.line("nvvm.tcgen05.wait <load>")
            sums = e.value(
                f"vector.bitcast {bits} : vector<{_LOADED}xi32> to vector<{_LOADED}xf32>"
            )
            with e.block(f"scf.if {is_row}"):
                column = e.do("addi", self.tile.column, "%first")
                self._store_columns(sums, row, column)

    def _store_columns(self, sums: str, row: str, column: str) -> None:
        e, c = self.e, self.problem.c
        count = _STORED_BYTES // ELEMENT_BYTES[c.element]
        front = [] if self.tile.batch is None else [e.index(self.tile.batch)]
        for first in range(0, _LOADED, count):
            at = e.do("addi", column, first)
            places = [e.do("addi", at, number) for number in range(count)]
            values = [
                e.value(f"vector.extract {sums}[{first + i}] : f32 from vector<{_LOADED}xf32>")
                for i in range(count)
            ]
            if is_aligned(c):
                all_inside = e.compare("ule", e.do("addi", at, count), self.n)
                e.open(f"scf.if {all_inside} {{")
                made = [
                    self._result(value, [*front, e.index(row), e.index(place)])
                    for value, place in zip(values, places, strict=True)
                ]
                type_ = f"vector<{count}x{c.element}>"
                together = e.value(f"vector.from_elements {', '.join(made)} : {type_}")
                indices = ", ".join([*front, e.index(row), e.index(at)])
                e.line(
                    f"vector.store {together}, %c[{indices}] "
                    f"{{alignment = {_STORED_BYTES} : i64}} : {c.type}, {type_}"
                )
                e.otherwise()
                self._store_each(values, front, row, places)
                e.close()
            else:
                self._store_each(values, front, row, places)

    def _store_each(self, values: list[str], front: list[str], row: str, places: list[str]) -> None:
        e, c = self.e, self.problem.c
        for value, place in zip(values, places, strict=True):
            with e.block(f"scf.if {e.compare('ult', place, self.n)}"):
                indices = [*front, e.index(row), e.index(place)]
                made = self._result(value, indices)
                e.line(f"memref.store {made}, %c[{', '.join(indices)}] : {c.type}")

    def _result(self, value: str, indices: list[str]) -> str:
        """What is stored of a sum."""
        e, c = self.e, self.problem.c
        if self.problem.adds:
            before = e.value(f"memref.load %c[{', '.join(indices)}] : {c.type}")
            value = e.value(f"arith.addf {convert(e, before, c.element, 'f32')}, {value} : f32")
        if self.finish is not None:
            batch = indices[0] if self.problem.batched else None
            [made] = self.finish(e, [value], Place(batch, indices[-2], [indices[-1]]))
            return made
        return convert(e, value, "f32", c.element)


class Tcgen05(MatmulFamily):
    """See the module's docstring."""

    name = "tcgen05"
    target = SM_100A
    variant_type = Variant

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        """Whether the kernel is right for the problem, as far as the manual tells."""
        return (
            (problem.a.element, problem.b.element) in (("f16", "f16"), ("bf16", "bf16"))
            and problem.accumulator == "f32"
            and problem.c.element in ("f16", "bf16", "f32")
            and is_aligned(problem.a)
            and is_aligned(problem.b)
            and variant.n in range(_LOADED, 257, _LOADED)
            and variant.stages >= 2
            and _Kernel(problem, variant).ring.bytes <= _SHARED_BYTES
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """Those worth a try, the best one for large problems first: with as many stages as there is
        room for."""
        found = []
        for n in (256, 192, 128, 64):
            one = Variant(n=n)
            stages = min(_SHARED_BYTES // _Kernel(problem, one).ring.stage_bytes, 8)
            found.append(replace(one, stages=stages))
        return tuple(variant for variant in found if self.can_take(problem, variant))

    def tile_clocks(self, problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
        """What a tile takes of a multiprocessor, about, and what a launch takes besides."""
        del problem
        elements = variant.m * variant.n
        return elements * k / _MULTIPLY_ADDS + elements / _STORED_A_CLOCK, _START_CLOCKS

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        """Dynamic shared memory of a block: behind the ring is tensor memory's address."""
        return _Kernel(problem, variant).ring.bytes + 16

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        return _Kernel(problem, variant, finish).text(name)


TCGEN05 = Tcgen05()
