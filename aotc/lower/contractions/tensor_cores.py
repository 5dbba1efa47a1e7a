"""Products on the tensor cores of sm_80 and later: `nvgpu.mma.sync` on tiles in shared memory.

A block makes a tile of C, its warps a part of it each. Tiles of A and B follow each other through
a ring of `stages` places in shared memory, where asynchronous copies bring them while the ones
before are multiplied. What is outside of A and B is filled with zeros there.

A tile lies in shared memory as its matrix does in memory. Where an operand's K is contiguous, or
its elements have 16 bits, `nvgpu.ldmatrix` gives the registers that the tensor cores want, and
chunks of 16 bytes are swizzled: eight rows of one column are then in different banks. Otherwise
lanes load their elements one by one, from rows that are padded for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd

from msgspec import Struct
from msgspec.structs import replace

from aotc.lower.contractions.problem import (
    ELEMENT_BYTES,
    Emitter,
    Finish,
    Matrix,
    Problem,
    convert,
)

NAME = "mma.sync"
_WARP = 32
# What ldmatrix reads of a row, the widest copy, and what a swizzle moves.
_CHUNK_BYTES = 16
_SWIZZLED_ROWS = 8
_WORKGROUP = "#gpu.address_space<workgroup>"
_SHARED = f"memref<?xi8, {_WORKGROUP}>"
# The least that asynchronous copies take.
_LEAST_ASYNC_BYTES = 4
# How many blocks a large GPU has at once, and how many steps are worth a block of their own.
_MANY_BLOCKS = 264
_FEW_STEPS = 8
# A block's of the kernel that adds parts of K.
_SUM_THREADS = 256
# Sums of more products of i8 than these may leave i32, where tensor cores saturate: no sum of them
# has more, and those are added elsewhere.
_MOST_I8_PRODUCTS = (2**31 - 1) // 2**14


class Instruction(Struct, frozen=True):
    """A kind of nvgpu.mma.sync: its sizes, the type it sums in, and how many elements a register
    has."""

    m: int
    n: int
    k: int
    element: str
    sum: str
    width: int

    @property
    def a_registers(self) -> int:
        return self.m * self.k // _WARP // self.width

    @property
    def b_registers(self) -> int:
        return self.k * self.n // _WARP // self.width

    @property
    def a_type(self) -> str:
        return f"vector<{self.a_registers}x{self.width}x{self.element}>"

    @property
    def b_type(self) -> str:
        return f"vector<{self.b_registers}x{self.width}x{self.element}>"

    @property
    def sum_rows(self) -> int:
        """A lane's rows of the result, 8 apart; of each it has two neighbours."""
        return self.m // 8

    @property
    def sum_type(self) -> str:
        return f"vector<{self.sum_rows}x2x{self.sum}>"


INSTRUCTIONS = {
    "f16": Instruction(16, 8, 16, "f16", "f32", 2),
    "bf16": Instruction(16, 8, 16, "bf16", "f32", 2),
    # As tf32.
    "f32": Instruction(16, 8, 8, "f32", "f32", 1),
    "f64": Instruction(8, 8, 4, "f64", "f64", 1),
    "i8": Instruction(16, 8, 32, "i8", "i32", 4),
}
# What sums of an element's products may be asked for in: 16 bits are rounded to once, at the end.
_ACCUMULATORS = {
    "f16": ("f32", "f16"),
    "bf16": ("f32", "bf16"),
    "f32": ("f32",),
    "f64": ("f64",),
    "i8": ("i32",),
}


class Variant(Struct, frozen=True):
    """The parameters of a kernel: tiles are of powers of two, or of such in equal parts.

    A block makes m x n elements of C from k columns of A and k rows of B at a time, by
    warps_m x warps_n warps; `stages` of these are in shared memory, one in use and the others on
    their way. `copy_bytes` are copied at once: 16, 8 or 4, to which rows of A and B must be
    aligned, or 1, where elements are loaded and stored one by one. `group` rows of blocks work
    side by side, so that what they share stays in the L2 cache. K is made in `splits` parts, whose
    sums another kernel adds where they are more than one.
    """

    m: int = 128
    n: int = 128
    k: int = 32
    warps_m: int = 2
    warps_n: int = 2
    stages: int = 4
    copy_bytes: int = 16
    group: int = 8
    splits: int = 1

    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * _WARP


# Of a multiprocessor, about: bytes of K's products that it multiplies and adds in a clock, and
# that it fetches of A and B; clocks until the first tile is there.
_BYTES_MULTIPLIED, _BYTES_FETCHED = 1024 * 2, 64
_START_CLOCKS = 2000


def clocks(problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
    """What a tile takes of a multiprocessor, about, and what a launch takes besides."""
    size = ELEMENT_BYTES[problem.a.element]
    depth = k / variant.splits * size
    products = variant.m * variant.n / _BYTES_MULTIPLIED
    fetched = (variant.m + variant.n) / _BYTES_FETCHED
    again = 0 if variant.splits == 1 else _START_CLOCKS
    return depth * max(products, fetched) + variant.m * variant.n / 64, _START_CLOCKS + again


def can_take(problem: Problem, variant: Variant) -> bool:
    """Whether the kernel is right for the problem."""
    return (
        _are_types_known(problem)
        and _is_tile_whole(problem, variant)
        and all(_can_copy(matrix, variant) for matrix in (problem.a, problem.b))
    )


def _are_types_known(problem: Problem) -> bool:
    element, accumulator, result = problem.a.element, problem.accumulator, problem.c.element
    if problem.b.element != element or accumulator not in _ACCUMULATORS.get(element, ()):
        return False
    if element == "f32" and not problem.allow_tf32:
        return False
    return result in _results(accumulator)


def _results(accumulator: str) -> tuple[str, ...]:
    """What a sum may be stored as."""
    if accumulator == "i32":
        return ("i32", "i8")
    wider = ("f64", "f32", "bf16", "f16")
    size = ELEMENT_BYTES[accumulator]
    return (accumulator, *(other for other in wider if ELEMENT_BYTES[other] < size))


def _has_totals(problem: Problem) -> bool:
    """Whether sums could leave their type on the way."""
    return problem.a.element == "i8" and (problem.k is None or problem.k > _MOST_I8_PRODUCTS)


def _is_tile_whole(problem: Problem, variant: Variant) -> bool:
    """Whether warps and threads have equal parts of the tiles."""
    instruction = INSTRUCTIONS[problem.a.element]
    # ldmatrix brings two tiles of B at once.
    if variant.m % (variant.warps_m * 16) or variant.n % (variant.warps_n * 16):
        return False
    # Of two parts of K and more, the next tile's copies begin before it is waited for.
    if variant.k % (2 * instruction.k) or variant.stages < 2:
        return False
    if not _Staging.of(problem, variant).is_shared_evenly:
        return False
    return all(side.is_shared_evenly(variant) for side in _sides(problem, variant))


def _can_copy(matrix: Matrix, variant: Variant) -> bool:
    size = ELEMENT_BYTES[matrix.element]
    if variant.copy_bytes < _LEAST_ASYNC_BYTES:
        return True
    if variant.copy_bytes not in (16, 8, 4):
        return False
    if variant.copy_bytes % size or matrix.alignment % variant.copy_bytes:
        return False
    return matrix.pitch is None or matrix.pitch * size % variant.copy_bytes == 0


def variants(problem: Problem) -> tuple[Variant, ...]:
    """Those that are worth a try, the best guess for large squares first."""
    if not _are_types_known(problem):
        return ()
    # As many bytes of K as 32 or 64 elements of 16 bits have.
    size = ELEMENT_BYTES[problem.a.element]
    k, deep = 64 // size, 128 // size
    copy_bytes = next(
        bytes_
        for bytes_ in (16, 8, 4, 1)
        if all(_can_copy(matrix, Variant(copy_bytes=bytes_)) for matrix in (problem.a, problem.b))
    )
    # What takes many registers: sums of 64 bits, totals besides, elements one by one.
    is_heavy = size == 8 or _has_totals(problem) or copy_bytes < _LEAST_ASYNC_BYTES
    large = (
        Variant(128, 128, k, 2, 2, 4),
        Variant(128, 256, k, 2, 4, 3),
        Variant(256, 128, k, 4, 2, 3),
        Variant(128, 128, deep, 2, 2, 3),
    )
    tiles = (
        *(() if is_heavy else large),
        Variant(128, 128, k, 2, 4, 4),
        Variant(128, 64, k, 2, 2, 4),
        Variant(64, 128, k, 2, 2, 4),
        Variant(64, 64, deep, 2, 2, 4),
        Variant(64, 64, k, 2, 2, 4),
        Variant(32, 64, deep, 1, 4, 4),
        Variant(64, 32, deep, 2, 2, 4),
        Variant(32, 32, deep, 2, 2, 4),
        Variant(16, 64, deep, 1, 4, 4),
    )
    split = tuple(
        replace(tile, splits=splits)
        for tile in (*tiles[:1], Variant(64, 64, deep, 2, 2, 4))
        for splits in (2, 4, 8, 16)
        if _is_worth_splitting(problem, tile, splits)
    )
    return tuple(
        variant
        for tile in (*tiles, *split)
        if can_take(problem, variant := replace(tile, copy_bytes=copy_bytes))
    )


def _is_worth_splitting(problem: Problem, variant: Variant, splits: int) -> bool:
    """Where there are too few tiles for a GPU, and each part still has many steps."""
    m, n, k = problem.m, problem.n, problem.k
    if m is None or n is None or k is None:
        return False
    tiles = -(-m // variant.m) * -(-n // variant.n)
    return 0 < tiles * splits <= _MANY_BLOCKS and k >= splits * variant.k * _FEW_STEPS


def shared_bytes(problem: Problem, variant: Variant) -> int:
    """How much shared memory a block has."""
    tiles = sum(side.bytes for side in _sides(problem, variant))
    return max(tiles, _Staging.of(problem, variant).bytes)


# Operands in shared memory


class Side(Struct, frozen=True):
    """A or B, and its tiles: `outer` (of M or N) by `k`, as the matrix lies.

    `is_deep`: K is contiguous.
    """

    name: str
    matrix: Matrix
    outer: int
    k: int
    stages: int
    is_deep: bool
    copy_bytes: int

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.matrix.element]

    @property
    def rows(self) -> int:
        return self.outer if self.is_deep else self.k

    @property
    def columns(self) -> int:
        return self.k if self.is_deep else self.outer

    @property
    def has_ldmatrix(self) -> bool:
        if self.matrix.element == "f64":
            return False
        return self.is_deep or self.element_bytes < 4

    @property
    def has_pairs(self) -> bool:
        """Whether ldmatrix transposes pairs of neighbours in M or N, as one of 16 bits."""
        return self.element_bytes == 1 and not self.is_deep

    @property
    def pairs_type(self) -> str:
        shape = f"{self.stages}x{self.rows}x{self.pitch // 2}xf16"
        return f"memref<{shape}, {_WORKGROUP}>"

    @property
    def chunk(self) -> int:
        """How many elements 16 bytes are."""
        return _CHUNK_BYTES // self.element_bytes

    @property
    def copied(self) -> int:
        """How many elements a thread copies at once."""
        return self.copy_bytes // self.element_bytes if self.is_async else self.chunk

    @property
    def is_async(self) -> bool:
        return self.copy_bytes >= _LEAST_ASYNC_BYTES

    @property
    def pitch(self) -> int:
        """Of rows in shared memory. Lanes that load one by one are 4 (in K) by 8: behind rows of 4
        they stand in 32 banks where a row begins 8 banks after the one before, f64 likewise."""
        if self.has_ldmatrix:
            return self.columns
        return self.columns + {8: 4, 4: 8}[self.element_bytes]

    @property
    def type(self) -> str:
        """Of the ring."""
        shape = f"{self.stages}x{self.rows}x{self.pitch}x{self.matrix.element}"
        return f"memref<{shape}, {_WORKGROUP}>"

    @property
    def bytes(self) -> int:
        return self.stages * self.rows * self.pitch * self.element_bytes

    def is_shared_evenly(self, variant: Variant) -> bool:
        across, chunks = self.columns // self.copied, self.columns // self.chunk
        return (
            self.columns % self.chunk == 0
            # Swizzled chunks stay among those of their row.
            and (chunks in (1, 2, 4) or chunks % _SWIZZLED_ROWS == 0)
            and across > 0
            and variant.threads % across == 0
            and self.rows * across % variant.threads == 0
        )


def _sides(problem: Problem, variant: Variant) -> tuple[Side, Side]:
    return (
        Side(
            *("%a", problem.a, variant.m, variant.k, variant.stages),
            *(not problem.a.transposed, variant.copy_bytes),
        ),
        Side(
            *("%b", problem.b, variant.n, variant.k, variant.stages),
            *(problem.b.transposed, variant.copy_bytes),
        ),
    )


# The text

Index = str | int
# Of a stage and a part of its K, the fragments.
_Reader = Callable[[Index, int], list[str]]


class Writer(Emitter):
    """Indices: names of values, or numbers, which are computed with here."""

    def index(self, index: Index) -> str:
        return self.constant(index) if isinstance(index, int) else index

    def _binary(self, operation: str, left: Index, right: Index) -> str:
        left, right = self.index(left), self.index(right)
        return self.value(f"arith.{operation} {left}, {right} : index")

    def add(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 or right == 0:
            return left if right == 0 else right
        return self._binary("addi", left, right)

    def subtract(self, left: Index, right: Index) -> Index:
        return left if right == 0 else self._binary("subi", left, right)

    def multiply(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 1 or right == 1:
            return left if right == 1 else right
        return self._binary("muli", left, right)

    def divide(self, left: Index, right: int) -> Index:
        if isinstance(left, int):
            return left // right
        return left if right == 1 else self._binary("divui", left, right)

    def remainder(self, left: Index, right: int) -> Index:
        if isinstance(left, int):
            return left % right
        return 0 if right == 1 else self._binary("remui", left, right)

    def divide_up(self, left: Index, right: int) -> Index:
        if isinstance(left, int):
            return -(-left // right)
        return self._binary("ceildivui", left, right)

    def xor(self, left: Index, right: Index) -> Index:
        return left if right == 0 else self._binary("xori", left, right)

    def clamp(self, value: Index, most: int) -> str:
        """Between 0 and `most`, of a value that may be negative."""
        return self._binary("maxsi", self._binary("minsi", value, most), 0)

    def least(self, left: Index, right: Index) -> str:
        return self._binary("minui", left, right)

    def most(self, left: Index, right: Index) -> str:
        return self._binary("maxui", left, right)

    def is_less(self, left: Index, right: Index) -> str:
        """Whether it is, of values that may be negative."""
        left, right = self.index(left), self.index(right)
        return self.value(f"arith.cmpi slt, {left}, {right} : index")

    def equals(self, left: Index, right: Index) -> str:
        left, right = self.index(left), self.index(right)
        return self.value(f"arith.cmpi eq, {left}, {right} : index")

    def select(self, condition: str, yes: Index, no: Index) -> str:
        yes, no = self.index(yes), self.index(no)
        return self.value(f"arith.select {condition}, {yes}, {no} : index")

    def loop(
        self,
        steps: Index,
        carried: Sequence[tuple[str, str]],
        body: Callable[..., Sequence[str]],
    ) -> list[str]:
        """Values with their types, which each step makes others of: the last ones."""
        none, one, end = self.index(0), self.index(1), self.index(steps)
        names = [self.name() for _ in carried]
        result, step = self.name(), self.name()
        given = ", ".join(
            f"{name} = {value}" for name, (_, value) in zip(names, carried, strict=True)
        )
        types = ", ".join(type_ for type_, _ in carried)
        self.line(f"{result}:{len(carried)} = scf.for {step} = {none} to {end} step {one}")
        self.open(f"    iter_args({given}) -> ({types}) {{")
        self.line(f"scf.yield {', '.join(body(step, *names))} : {types}")
        self.close()
        return [f"{result}#{number}" for number in range(len(carried))]

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        self.open(f"scf.if {condition} {{")
        yield
        self.close()

    def at(self, *indices: Index) -> str:
        return "[" + ", ".join(self.index(index) for index in indices) + "]"


class Sizes(Struct, frozen=True):
    """Of the product; numbers where they are known."""

    m: Index
    n: Index
    k: Index
    batches: Index


class Place(Struct, frozen=True):
    """Where a block's tile of C begins, and what a thread is: its number, its lane's group of 4 and
    its place there, its warp, and where that one's part of the tile begins."""

    batch: tuple[str, ...]
    row: Index
    column: Index
    thread: str
    lane: Index
    group: Index
    member: Index
    warp: Index
    warp_row: Index
    warp_column: Index


def function(problem: Problem, variant: Variant, name: str, finish: Finish | None = None) -> str:
    """The text of a function that takes A, B and C, and launches the kernel."""
    w = Writer()
    a, b, c = problem.a, problem.b, problem.c
    w.open(f"func.func @{name}(%a: {a.type}, %b: {b.type}, %c: {c.type}) {{")
    sizes = _sizes(w, problem)
    if variant.splits == 1:
        _launch_product(w, problem, variant, sizes, finish)
    else:
        _launch_split(w, problem, variant, sizes, finish)
    w.line("return")
    w.close()
    return w.text() + "\n"


@contextmanager
def _launch(w: Writer, blocks: Index, threads: int, shared: int) -> Iterator[None]:
    """The body of a launch, which is none where there are no blocks: the runtime refuses those."""
    with w.where(w.is_less(0, blocks)):
        grid, one, block = w.index(blocks), w.index(1), w.index(threads)
        bytes_ = w.constant(shared, "i32")
        w.line(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {grid}, %gy = {one}, %gz = {one})")
        w.line(f"    threads(%tx, %ty, %tz) in (%sx = {block}, %sy = {one}, %sz = {one})")
        w.open(f"    dynamic_shared_memory_size {bytes_} {{")
        yield
        w.line("gpu.terminator")
        w.close()


def _launch_product(
    w: Writer, problem: Problem, variant: Variant, sizes: Sizes, finish: Finish | None
) -> None:
    tiles = w.divide_up(sizes.m, variant.m), w.divide_up(sizes.n, variant.n)
    # Behind each other in x, batches too: a grid's other dimensions end at 65535.
    blocks = w.multiply(w.multiply(*tiles), sizes.batches)
    with _launch(w, blocks, variant.threads, shared_bytes(problem, variant)):
        place, batch = _place(w, variant, tiles)
        at = (batch,) if problem.batched else ()
        place = replace(place, batch=at)
        _Kernel(w, problem, variant, sizes, place, at=at).write(finish)


def _launch_split(
    w: Writer, problem: Problem, variant: Variant, sizes: Sizes, finish: Finish | None
) -> None:
    """Sums of parts of K by one kernel, which another adds, in the order of K."""
    partial = _partial(problem)
    # Rows begin at multiples of 16 bytes.
    pitch = w.multiply(w.divide_up(sizes.n, 4), 4)
    parts = w.multiply(sizes.batches, variant.splits)
    rooms = ", ".join(w.index(size) for size in (parts, sizes.m, pitch))
    w.line(f"%sums = memref.alloc({rooms}) : {partial.c.type}")
    tiles = w.divide_up(sizes.m, variant.m), w.divide_up(sizes.n, variant.n)
    # Of K, each part has as many whole tiles.
    depth = w.multiply(w.divide_up(sizes.k, variant.k * variant.splits), variant.k)
    blocks = w.multiply(w.multiply(*tiles), parts)
    with _launch(w, blocks, variant.threads, shared_bytes(partial, variant)):
        place, part = _place(w, variant, tiles)
        batch, split = w.divide(part, variant.splits), w.remainder(part, variant.splits)
        first_k = w.multiply(split, depth)
        end = w.most(first_k, w.least(w.add(first_k, depth), sizes.k))
        place = replace(place, batch=(w.index(batch),) if problem.batched else ())
        own_sizes = replace(sizes, k=end)
        _Kernel(w, partial, variant, own_sizes, place, w.index(first_k), "%sums", (part,)).write(
            None
        )
    _launch_sum(w, problem, variant, sizes, finish)
    w.line(f"memref.dealloc %sums : {partial.c.type}")


def _partial(problem: Problem) -> Problem:
    """The product whose C are sums of parts of K."""
    type_ = INSTRUCTIONS[problem.a.element].sum
    sums = Matrix(f"memref<?x?x?x{type_}>", type_, (problem.m, problem.n), None, _CHUNK_BYTES)
    return replace(problem, c=sums, accumulator=type_, adds=False)


def _launch_sum(
    w: Writer, problem: Problem, variant: Variant, sizes: Sizes, finish: Finish | None
) -> None:
    """A thread for each element of C; a block has a part of a row."""
    partial, c = _partial(problem), problem.c
    across = w.divide_up(sizes.n, _SUM_THREADS)
    blocks = w.multiply(w.multiply(sizes.batches, sizes.m), across)
    with _launch(w, blocks, _SUM_THREADS, 0):
        rows, across = w.index(sizes.m), w.index(across)
        line = w.value(f"arith.divui %bx, {across} : index")
        first = w.multiply(w.value(f"arith.remui %bx, {across} : index"), _SUM_THREADS)
        column = w.index(w.add(first, "%tx"))
        batch = w.value(f"arith.divui {line}, {rows} : index")
        row = w.value(f"arith.remui {line}, {rows} : index")
        with w.where(w.is_less(column, sizes.n)):
            first_part = w.multiply(batch, variant.splits)
            total = ""
            for split in range(variant.splits):
                at = w.at(w.add(first_part, split), row, column)
                one = w.value(f"memref.load %sums{at} : {partial.c.type}")
                total = _add(w, total, one, partial.accumulator) if total else one
            at = w.at(*((batch,) if problem.batched else ()), row, column)
            if problem.adds:
                before = w.value(f"memref.load %c{at} : {c.type}")
                before = convert(w, before, c.element, partial.accumulator)
                total = _add(w, before, total, partial.accumulator)
            value = _result(w, problem, total, row, column, finish)
            w.line(f"memref.store {value}, %c{at} : {c.type}")


def _add(w: Writer, left: str, right: str, type_: str) -> str:
    return w.value(f"arith.{'addi' if type_ == 'i32' else 'addf'} {left}, {right} : {type_}")


def _result(
    w: Writer, problem: Problem, sum_: str, row: str, column: str, finish: Finish | None
) -> str:
    """What C gets for a sum."""
    total = convert(w, sum_, INSTRUCTIONS[problem.a.element].sum, problem.accumulator)
    if finish is None:
        return convert(w, total, problem.accumulator, problem.c.element)
    return finish(w, total, row, column)


def _sizes(w: Writer, problem: Problem) -> Sizes:
    first = 1 if problem.batched else 0

    def size(known: int | None, name: str, type_: str, dimension: int) -> Index:
        if known is not None:
            return known
        return w.value(f"memref.dim {name}, {w.index(dimension)} : {type_}")

    return Sizes(
        size(problem.m, "%c", problem.c.type, first),
        size(problem.n, "%c", problem.c.type, first + 1),
        size(problem.k, "%a", problem.a.type, first + (0 if problem.a.transposed else 1)),
        size(None if problem.batched else 1, "%c", problem.c.type, 0),
    )


def _place(w: Writer, variant: Variant, tiles: tuple[Index, Index]) -> tuple[Place, str]:
    """And which of the matrices, or of the parts of K, the block's is."""
    tile_m, tile_n, batch = _tile(w, variant, w.index(tiles[0]), w.index(tiles[1]))
    lane, warp = w.remainder("%tx", _WARP), w.divide("%tx", _WARP)
    warp_m, warp_n = w.divide(warp, variant.warps_n), w.remainder(warp, variant.warps_n)
    place = Place(
        (),
        w.multiply(tile_m, variant.m),
        w.multiply(tile_n, variant.n),
        "%tx",
        lane,
        w.divide(lane, 4),
        w.remainder(lane, 4),
        warp,
        w.multiply(warp_m, variant.m // variant.warps_m),
        w.multiply(warp_n, variant.n // variant.warps_n),
    )
    return place, batch


def _tile(w: Writer, variant: Variant, tiles_m: str, tiles_n: str) -> tuple[str, str, str]:
    """The block's tile and batch, of its number. Divided in 32 bits, which is far faster."""

    def short(value: str) -> str:
        return w.value(f"arith.index_cast {value} : index to i32")

    def binary(operation: str, left: str, right: str) -> str:
        return w.value(f"arith.{operation} {left}, {right} : i32")

    number, m, n = short("%bx"), short(tiles_m), short(tiles_n)
    most = w.constant(variant.group, "i32")
    tiles = binary("muli", m, n)
    batch, number = binary("divui", number, tiles), binary("remui", number, tiles)
    # `group` rows of tiles, column by column; the last group may have fewer.
    in_group = binary("muli", n, most)
    first = binary("muli", binary("divui", number, in_group), most)
    rows = binary("minui", binary("subi", m, first), most)
    rest = binary("remui", number, in_group)
    row, column = binary("addi", first, binary("remui", rest, rows)), binary("divui", rest, rows)

    def long(value: str) -> str:
        return w.value(f"arith.index_cast {value} : i32 to index")

    return long(row), long(column), long(batch)


class _Copy(Struct, frozen=True):
    """A piece of a tile that a thread copies: its first row and column in it, and where that is in
    shared memory. Of it, `bound` of elements are there: of the whole matrix where K is contiguous
    (a column that they end before), else of these."""

    row: Index
    column: Index
    shared_column: Index
    bound: Index


class _Staging(Struct, frozen=True):
    """Where sums lie before they are stored, in the place of A's and B's tiles: for each warp
    `tiles` rows of its tiles, whose elements are stored `width` at once."""

    tiles: int
    rows: int
    columns: int
    width: int
    warps: int
    element: str

    @classmethod
    def of(cls, problem: Problem, variant: Variant) -> _Staging:
        instruction, c = INSTRUCTIONS[problem.a.element], problem.c
        tiles = variant.m // variant.warps_m // instruction.m
        columns = variant.n // variant.warps_n
        size = ELEMENT_BYTES[c.element]
        known = gcd(_CHUNK_BYTES, c.alignment, 0 if c.pitch is None else c.pitch * size)
        width = max(1, known // size)
        warps = variant.warps_m * variant.warps_n

        def staging(tiles: int) -> _Staging:
            rows = tiles * instruction.m
            # Each lane has a part of them.
            part = min(width, rows * columns // _WARP)
            return cls(tiles, rows, columns, part, warps, instruction.sum)

        room = sum(side.bytes for side in _sides(problem, variant))
        while tiles > 1 and (tiles % 2 == 0 and staging(tiles).bytes > room):
            tiles //= 2
        return staging(tiles)

    @property
    def is_shared_evenly(self) -> bool:
        """Whether lanes store as many pieces each."""
        across = self.columns // self.width
        return self.columns % self.width == 0 and self.rows * across % _WARP == 0

    @property
    def pitch(self) -> int:
        """Rows begin 8 (of f64, 16) banks after each other."""
        return self.columns + 8

    @property
    def bytes(self) -> int:
        return self.warps * self.rows * self.pitch * ELEMENT_BYTES[self.element]

    @property
    def type(self) -> str:
        return f"memref<{self.warps}x{self.rows}x{self.pitch}x{self.element}, {_WORKGROUP}>"


class _Kernel:
    """The body of the launch: the product from `first_k` to the K of `sizes`.

    `target` is what C is called here, `at` where the block's matrix is in it.
    """

    def __init__(
        self,
        w: Writer,
        problem: Problem,
        variant: Variant,
        sizes: Sizes,
        place: Place,
        first_k: Index = 0,
        target: str = "%c",
        at: tuple[str, ...] = (),
    ) -> None:
        self.w = w
        self.problem, self.variant, self.sizes, self.place = problem, variant, sizes, place
        self.first_k, self.target, self.at = first_k, target, at
        self.instruction = INSTRUCTIONS[problem.a.element]
        self.a, self.b = _sides(problem, variant)
        self.tiles_m = variant.m // variant.warps_m // self.instruction.m
        self.tiles_n = variant.n // variant.warps_n // self.instruction.n
        self.flushes = _has_totals(problem)
        # A group of copies: any will do to wait for the last ones.
        self.group = ""

    def write(self, finish: Finish | None) -> None:
        self._store(self._multiply(), finish)

    # Copies to shared memory

    def _rings(self) -> None:
        """%a_ring and %b_ring, and %staged, which has their place later."""
        w = self.w
        shared = w.value(f"gpu.dynamic_shared_memory : {_SHARED}")
        for side, start in ((self.a, 0), (self.b, self.a.bytes)):
            line = f"{side.name}_ring = memref.view {shared}[{w.index(start)}][]"
            w.line(f"{line} : {_SHARED} to {side.type}")
            if side.has_pairs:
                line = f"{side.name}_pairs = memref.view {shared}[{w.index(start)}][]"
                w.line(f"{line} : {_SHARED} to {side.pairs_type}")
        staging = _Staging.of(self.problem, self.variant)
        line = f"%staged = memref.view {shared}[{w.index(0)}][]"
        w.line(f"{line} : {_SHARED} to {staging.type}")

    def _outer(self, side: Side) -> tuple[Index, Index]:
        """Where the block's tile begins in M or N, and how many there are."""
        if side is self.a:
            return self.place.row, self.sizes.m
        return self.place.column, self.sizes.n

    def _copies(self, side: Side) -> list[_Copy]:
        """This thread's. Those that follow each other have neighbours in memory."""
        w, threads = self.w, self.variant.threads
        across = side.columns // side.copied
        first_row = w.divide(self.place.thread, across)
        column = w.multiply(w.remainder(self.place.thread, across), side.copied)
        start, size = self._outer(side)
        is_whole = isinstance(size, int) and size % side.outer == 0
        copies = []
        for number in range(side.rows * across // threads):
            row = w.add(first_row, number * (threads // across))
            bound: Index
            if side.is_deep:
                bound = self.sizes.k
                if not is_whole:
                    bound = w.select(w.is_less(w.add(start, row), size), bound, 0)
            else:
                bound = side.copied
                if not is_whole:
                    left = w.subtract(w.index(size), w.add(start, column))
                    bound = w.clamp(left, side.copied)
            copies.append(_Copy(row, column, self._swizzled(side, row, column), bound))
        return copies

    def _swizzled(self, side: Side, row: Index, column: Index) -> Index:
        """The column in shared memory: chunks of 16 bytes change places by their row."""
        w = self.w
        chunks = side.columns // side.chunk
        if not side.has_ldmatrix or chunks == 1:
            return column
        if side.has_pairs:
            # Eight rows are 0, 1, 4, 5, 8, ... then: see `_pair_reader`.
            moved = w.remainder(w.divide(row, 4), min(chunks, 4))
            if chunks >= _SWIZZLED_ROWS:
                moved = w.add(w.multiply(moved, 2), w.remainder(row, 2))
            return w.xor(column, w.multiply(moved, side.chunk))
        # Rows that share 128 bytes have the same order.
        together = max(1, _SWIZZLED_ROWS // chunks)
        moved = w.remainder(w.divide(row, together), min(chunks, _SWIZZLED_ROWS))
        return w.xor(column, w.multiply(moved, side.chunk))

    def _fetch(self, side: Side, copies: Sequence[_Copy], step_k: Index, stage: Index) -> list[str]:
        """Begins to copy a tile that begins at `step_k`, which may be behind the last one."""
        w = self.w
        tokens = []
        for copy in copies:
            count = self._count(side, copy, step_k)
            row, column = self._global(side, copy, step_k)
            source = w.at(*self.place.batch, row, column)
            target = w.at(stage, copy.row, copy.shared_column)
            # What goes past the L1 cache leaves it to others.
            bypass = " {bypassL1}" if side.copy_bytes == _CHUNK_BYTES else ""
            tokens.append(
                w.value(
                    f"nvgpu.device_async_copy {side.name}{source}, {side.name}_ring{target}, "
                    f"{side.copied}, {w.index(count)}{bypass} : {side.matrix.type} to {side.type}"
                )
            )
        return tokens

    def _fetch_both(
        self, sides: Sequence[tuple[Side, Sequence[_Copy]]], step_k: Index, stage: Index
    ) -> str:
        """The group of copies, to wait for."""
        tokens = [
            token for side, copies in sides for token in self._fetch(side, copies, step_k, stage)
        ]
        return self.w.value(f"nvgpu.device_async_create_group {', '.join(tokens)}")

    def _global(self, side: Side, copy: _Copy, step_k: Index) -> tuple[Index, Index]:
        w = self.w
        outer, _ = self._outer(side)
        if side.is_deep:
            return w.add(outer, copy.row), w.add(step_k, copy.column)
        return w.add(step_k, copy.row), w.add(outer, copy.column)

    def _count(self, side: Side, copy: _Copy, step_k: Index) -> Index:
        """How many elements of the piece there are."""
        w, k = self.w, self.sizes.k
        if not side.is_deep:
            # Where tiles end with K, all rows of one are there or none.
            is_even = isinstance(k, int) and k % side.k == 0
            row = step_k if is_even else w.add(step_k, copy.row)
            return w.select(w.is_less(row, k), copy.bound, 0)
        column = w.add(step_k, copy.column)
        if isinstance(k, int) and k % side.copied == 0:
            return w.select(w.is_less(column, copy.bound), side.copied, 0)
        return w.clamp(w.subtract(w.index(copy.bound), column), side.copied)

    def _load(self, side: Side, copies: Sequence[_Copy], step_k: Index) -> list[str]:
        """The elements of a tile one by one, of a matrix that has some."""
        w = self.w
        element = side.matrix.element
        outer_size = self._outer(side)[1]
        rows, columns = (outer_size, self.sizes.k) if side.is_deep else (self.sizes.k, outer_size)
        zero = w.constant("0" if element == "i8" else "0.0", element)
        loaded = []
        for copy in copies:
            count = self._count(side, copy, step_k)
            row, column = self._global(side, copy, step_k)
            row = w.least(row, w.subtract(w.index(rows), 1))
            values = []
            for number in range(side.copied):
                at = w.least(w.add(column, number), w.subtract(w.index(columns), 1))
                place = w.at(*self.place.batch, row, at)
                value = w.value(f"memref.load {side.name}{place} : {side.matrix.type}")
                there = w.is_less(number, count)
                values.append(w.value(f"arith.select {there}, {value}, {zero} : {element}"))
            type_ = f"vector<{side.copied}x{element}>"
            loaded.append(w.value(f"vector.from_elements {', '.join(values)} : {type_}"))
        return loaded

    def _put(
        self, side: Side, copies: Sequence[_Copy], loaded: Sequence[str], stage: Index
    ) -> None:
        w = self.w
        for copy, value in zip(copies, loaded, strict=True):
            target = w.at(stage, copy.row, copy.shared_column)
            at = f"{side.name}_ring{target}"
            self._vector_store(value, at, side.type, side.copied, side.matrix.element)

    # Registers of the tensor cores

    def _multiply(self) -> list[str]:
        """The sums of this lane, tile by tile: those of a row one after the other."""
        w, i, sizes = self.w, self.instruction, self.sizes
        self._rings()
        sides = [(side, self._copies(side)) for side in (self.a, self.b)]
        readers = self._reader(self.a), self._reader(self.b)
        self._fill(sides)
        self._wait()
        fragments = [value for read in readers for value in read(0, 0)]
        zero = "0" if i.sum == "i32" else "0.0"
        nothing = w.value(f"arith.constant dense<{zero}> : {i.sum_type}")
        count = self.tiles_m * self.tiles_n
        totals = [nothing] * count if self.flushes else []
        carried = [
            *(("index", w.index(stage)) for stage in (0, self.variant.stages - 1)),
            *((i.a_type, fragment) for fragment in fragments[: self.tiles_m]),
            *((i.b_type, fragment) for fragment in fragments[self.tiles_m :]),
            *((i.sum_type, sum_) for sum_ in [nothing] * count + totals),
        ]
        depth = sizes.k if self.first_k == 0 else w.subtract(sizes.k, self.first_k)
        steps = w.divide_up(depth, self.variant.k)
        of_fragments = 2 + self.tiles_m + self.tiles_n

        def body(step: str, used: str, free: str, *rest: str) -> list[str]:
            given, sums = rest[: of_fragments - 2], rest[of_fragments - 2 :]
            next_used, following, added = self._step(
                sides, readers, step, (used, free), given, sums[:count]
            )
            if totals:
                added = self._flush(step, added, sums[count:])
            return [w.index(next_used), w.index(self._after(free)), *following, *added]

        sums = w.loop(steps, carried, body)[of_fragments:]
        if totals:
            return self._add_vectors(sums[:count], sums[count:])
        return sums

    def _fill(self, sides: Sequence[tuple[Side, Sequence[_Copy]]]) -> None:
        """Begins to bring the first tiles, all but one of the ring."""
        w = self.w
        for stage in range(self.variant.stages - 1):
            step_k = w.add(self.first_k, stage * self.variant.k)
            if self.a.is_async:
                self.group = self._fetch_both(sides, step_k, stage)
                continue
            with w.where(w.is_less(step_k, self.sizes.k)):
                for side, copies in sides:
                    self._put(side, copies, self._load(side, copies, step_k), stage)

    def _step(
        self,
        sides: Sequence[tuple[Side, Sequence[_Copy]]],
        readers: Sequence[_Reader],
        step: str,
        stages: tuple[str, str],
        fragments: Sequence[str],
        sums: Sequence[str],
    ) -> tuple[Index, Sequence[str], list[str]]:
        """Multiplies a tile while the next one's fragments and a later tile come: the next stage,
        its fragments, the sums."""
        w, variant = self.w, self.variant
        used, free = stages
        later_k = w.add(self.first_k, w.multiply(w.add(step, variant.stages - 1), variant.k))
        parts = variant.k // self.instruction.k
        next_used: Index = used
        loaded: list[list[str]] = []
        added = list(sums)
        for part in range(parts):
            if part == parts - 1:
                for (side, copies), values in zip(sides, loaded, strict=False):
                    self._put(side, copies, values, free)
                # All have read the whole of this tile, and the next one is there.
                self._wait()
                next_used = self._after(used)
            following = [value for read in readers for value in read(next_used, (part + 1) % parts)]
            if part == 0 and self.a.is_async:
                self._fetch_both(sides, later_k, free)
            elif part == 0:
                loaded = [self._load(side, copies, later_k) for side, copies in sides]
            added = self._products(fragments[: self.tiles_m], fragments[self.tiles_m :], added)
            fragments = following
        return next_used, fragments, added

    def _flush(self, step: str, sums: Sequence[str], totals: Sequence[str]) -> list[str]:
        """Adds the sums to the totals, before they can leave their type: as the tensor cores do
        not, this wraps. Both, sums first."""
        w, type_ = self.w, self.instruction.sum_type
        most = 2 ** ((_MOST_I8_PRODUCTS // self.variant.k).bit_length() - 1)
        is_last = w.equals(w.remainder(step, most), most - 1)
        result, count = w.name(), 2 * len(sums)
        types = ", ".join([type_] * count)
        w.open(f"{result}:{count} = scf.if {is_last} -> ({types}) {{")
        nothing = w.value(f"arith.constant dense<0> : {type_}")
        flushed = [*[nothing] * len(sums), *self._add_vectors(sums, totals)]
        w.line(f"scf.yield {', '.join(flushed)} : {types}")
        w.otherwise()
        w.line(f"scf.yield {', '.join([*sums, *totals])} : {types}")
        w.close()
        return [f"{result}#{number}" for number in range(count)]

    def _add_vectors(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        type_ = self.instruction.sum_type
        return [
            self.w.value(f"arith.addi {one}, {other} : {type_}")
            for one, other in zip(left, right, strict=True)
        ]

    def _wait(self) -> None:
        """Until the oldest tile under way is there, for all."""
        if self.a.is_async:
            pending = self.variant.stages - 2
            self.w.line(f"nvgpu.device_async_wait {self.group} {{numGroups = {pending} : i32}}")
        self.w.line("gpu.barrier")

    def _after(self, stage: str) -> str:
        w = self.w
        following = w.add(stage, 1)
        return w.select(w.equals(following, self.variant.stages), 0, following)

    def _products(self, a: Sequence[str], b: Sequence[str], sums: Sequence[str]) -> list[str]:
        i = self.instruction
        added = list(sums)
        tf32 = ", tf32Enabled" if i.element == "f32" else ""
        for m, left in enumerate(a):
            # There and back: the last operand is used again.
            for n in range(len(b))[:: -1 if m % 2 else 1]:
                at = m * len(b) + n
                added[at] = self.w.value(
                    f"nvgpu.mma.sync ({left}, {b[n]}, {added[at]}) "
                    f"{{mmaShape = [{i.m}, {i.n}, {i.k}]{tf32}}} "
                    f": ({i.a_type}, {i.b_type}, {i.sum_type}) -> {i.sum_type}"
                )
        return added

    def _reader(self, side: Side) -> _Reader:
        """What reads the fragments of a part of K from a stage."""
        if side.has_pairs:
            return self._pair_reader(side)
        return self._matrix_reader(side) if side.has_ldmatrix else self._lane_reader(side)

    def _warp_outer(self, side: Side) -> Index:
        return self.place.warp_row if side is self.a else self.place.warp_column

    def _matrix_reader(self, side: Side) -> _Reader:
        """By ldmatrix, whose lane gives the address of a row of 16 bytes: four matrices of 8 rows
        are 16 by 16 elements of 16 bits. They are a tile of A, or two of B."""
        w, i = self.w, self.instruction
        lane = self.place.lane
        # In A, the second matrix is further in M; in B, further in K.
        if side.is_deep == (side is self.a):
            row, chunk = w.remainder(lane, 16), w.divide(lane, 16)
        else:
            upper = w.multiply(w.divide(lane, 16), 8)
            row = w.add(w.remainder(lane, 8), upper)
            chunk = w.remainder(w.divide(lane, 8), 2)
        column = w.multiply(chunk, side.chunk)
        outer = self._warp_outer(side)
        tiles = self.tiles_m if side is self.a else self.tiles_n // 2
        parts = side.k // i.k
        if side.is_deep:
            rows = [w.add(w.add(outer, row), 16 * tile) for tile in range(tiles)]
            columns = [
                self._swizzled(side, row, w.add(column, i.k * part)) for part in range(parts)
            ]
        else:
            rows = [w.add(row, i.k * part) for part in range(parts)]
            columns = [
                self._swizzled(side, row, w.add(w.add(outer, column), 16 * tile))
                for tile in range(tiles)
            ]
        type_ = f"vector<4x{i.width}x{i.element}>"
        transpose = str(not side.is_deep).lower()

        def read(stage: Index, part: int) -> list[str]:
            fragments = []
            for tile in range(tiles):
                at = (rows[tile], columns[part]) if side.is_deep else (rows[part], columns[tile])
                four = w.value(
                    f"nvgpu.ldmatrix {side.name}_ring{w.at(stage, *at)} "
                    f"{{numTiles = 4 : i32, transpose = {transpose}}} : {side.type} -> {type_}"
                )
                fragments += [four] if side is self.a else self._halves(four)
            return fragments

        return read

    def _pair_reader(self, side: Side) -> _Reader:
        """By ldmatrix of pairs of i8, which transposes 8 rows (of K) of 16 elements: a lane gets
        elements 2g and 2g + 1 of two rows. Two matrices, of rows 0, 1, 4, 5, ... and 2, 3, 6, 7,
        ..., have four rows for it. So the tensor cores' rows of A, or columns of B, are the even
        ones of 16 and then the odd ones."""
        w, i = self.w, self.instruction
        which, row = w.divide(self.place.lane, 8), w.remainder(self.place.lane, 8)
        row = w.add(w.multiply(w.divide(row, 2), 4), w.remainder(row, 2))
        row = w.add(row, w.multiply(w.divide(which, 2), 16))
        row = w.add(row, w.multiply(w.remainder(which, 2), 2))
        outer = self._warp_outer(side)
        tiles = self.tiles_m if side is self.a else self.tiles_n // 2
        rows = [w.add(row, i.k * part) for part in range(side.k // i.k)]
        columns = [
            w.divide(self._swizzled(side, row, w.add(outer, 16 * tile)), 2) for tile in range(tiles)
        ]

        def read(stage: Index, part: int) -> list[str]:
            fragments = []
            for column in columns:
                at = w.at(stage, rows[part], column)
                pairs = w.value(
                    f"nvgpu.ldmatrix {side.name}_pairs{at} {{numTiles = 4 : i32, "
                    f"transpose = true}} : {side.pairs_type} -> vector<4x2xf16>"
                )
                even, odd = self._part_pairs(pairs)
                if side is self.a:
                    fragments.append(self._fragment([even[0], odd[0], even[1], odd[1]]))
                else:
                    fragments += [self._fragment(even), self._fragment(odd)]
            return fragments

        return read

    def _part_pairs(self, pairs: str) -> tuple[list[str], list[str]]:
        """Registers of even elements and of odd ones, of both halves of K."""
        w = self.w
        four = "vector<4xi8>"
        bytes_ = w.value(f"vector.bitcast {pairs} : vector<4x2xf16> to vector<4x4xi8>")
        registers = [
            w.value(f"vector.extract {bytes_}[{number}] : {four} from vector<4x4xi8>")
            for number in range(4)
        ]
        even, odd = (
            [
                w.value(f"vector.shuffle {low}, {high} {order} : {four}, {four}")
                for low, high in (registers[:2], registers[2:])
            ]
            for order in ("[0, 2, 4, 6]", "[1, 3, 5, 7]")
        )
        return even, odd

    def _fragment(self, registers: Sequence[str]) -> str:
        w, i = self.w, self.instruction
        type_ = f"vector<{len(registers)}x{i.width}x{i.element}>"
        zero = "0" if i.element == "i8" else "0.0"
        fragment = w.value(f"arith.constant dense<{zero}> : {type_}")
        for number, register in enumerate(registers):
            fragment = w.value(
                f"vector.insert {register}, {fragment} [{number}] "
                f": vector<{i.width}x{i.element}> into {type_}"
            )
        return fragment

    def _halves(self, four: str) -> list[str]:
        """Two fragments of B."""
        i = self.instruction
        return [
            self.w.value(
                f"vector.extract_strided_slice {four} {{offsets = [{2 * half}], sizes = [2], "
                f"strides = [1]}} : vector<4x{i.width}x{i.element}> to {i.b_type}"
            )
            for half in range(2)
        ]

    def _lane_reader(self, side: Side) -> _Reader:
        """Element by element, as the PTX manual has them in lanes."""
        w, i = self.w, self.instruction
        is_a = side is self.a
        registers = i.a_registers if is_a else i.b_registers
        halves = i.m // 8 if is_a else 1
        tiles, size = (self.tiles_m, i.m) if is_a else (self.tiles_n, i.n)
        outer = w.add(self._warp_outer(side), self.place.group)
        depth = w.multiply(self.place.member, i.width)
        type_ = f"vector<{registers}x{i.width}x{i.element}>"

        def element(stage: Index, part: int, tile: int, register: int, number: int) -> str:
            o = w.add(outer, tile * size + 8 * (register % halves))
            k = w.add(depth, part * i.k + 4 * i.width * (register // halves) + number)
            at = w.at(stage, o, k) if side.is_deep else w.at(stage, k, o)
            return w.value(f"memref.load {side.name}_ring{at} : {side.type}")

        def read(stage: Index, part: int) -> list[str]:
            fragments = []
            for tile in range(tiles):
                values = [
                    element(stage, part, tile, register, number)
                    for register in range(registers)
                    for number in range(i.width)
                ]
                fragments.append(w.value(f"vector.from_elements {', '.join(values)} : {type_}"))
            return fragments

        return read

    # Results

    def _store(self, sums: Sequence[str], finish: Finish | None) -> None:
        """Through shared memory, a few rows of tiles at a time, so that neighbours store
        neighbours."""
        w, i = self.w, self.instruction
        staging = _Staging.of(self.problem, self.variant)
        if self.a.is_async:
            # What was fetched behind the last tile comes there, too.
            w.line(f"nvgpu.device_async_wait {self.group} {{numGroups = 0 : i32}}")
        for first in range(0, self.tiles_m, staging.tiles):
            w.line("gpu.barrier")
            for tile in range(staging.tiles):
                of_row = sums[(first + tile) * self.tiles_n :][: self.tiles_n]
                for n, sum_ in enumerate(of_row):
                    self._stage(staging, tile * i.m, n, sum_)
            w.line("gpu.barrier")
            self._store_rows(staging, first * i.m, finish)

    def _stage(self, staging: _Staging, first_row: int, n: int, sum_: str) -> None:
        """Writes a tile into the warp's part of shared memory."""
        w, i, place = self.w, self.instruction, self.place
        rows: list[Index]
        if self.a.has_pairs:
            rows = [w.add(w.multiply(place.group, 2), first_row + half) for half in range(2)]
        else:
            rows = [w.add(place.group, first_row + 8 * half) for half in range(i.sum_rows)]
        for half, row in enumerate(rows):
            two = w.value(f"vector.extract {sum_}[{half}] : vector<2x{i.sum}> from {i.sum_type}")
            if not self.b.has_pairs:
                at = w.at(place.warp, row, w.add(w.multiply(place.member, 2), n * i.n))
                self._vector_store(two, f"%staged{at}", staging.type, 2, i.sum)
                continue
            for neighbour in range(2):
                column = w.add(w.multiply(place.member, 4), n // 2 * 16 + 2 * neighbour + n % 2)
                at = w.at(place.warp, row, column)
                one = w.value(f"vector.extract {two}[{neighbour}] : {i.sum} from vector<2x{i.sum}>")
                w.line(f"memref.store {one}, %staged{at} : {staging.type}")

    def _store_rows(self, staging: _Staging, first_row: int, finish: Finish | None) -> None:
        """Stores what the warp has staged, `width` elements of a row at once."""
        w, sizes, width = self.w, self.sizes, staging.width
        across = staging.columns // width
        none, one, pieces = w.index(0), w.index(1), w.index(staging.rows * across // _WARP)
        w.open(f"scf.for %piece = {none} to {pieces} step {one} {{")
        number = w.add(w.multiply("%piece", _WARP), self.place.lane)
        own_row, own_column = (
            w.divide(number, across),
            w.multiply(w.remainder(number, across), width),
        )
        row = w.add(w.add(self.place.row, self.place.warp_row), w.add(own_row, first_row))
        column = w.add(w.add(self.place.column, self.place.warp_column), own_column)
        source = staging, own_row, own_column
        with w.where(w.is_less(row, sizes.m)):
            # Rows of partial sums have room for it.
            has_room = width == 1 or self.target != "%c"
            if has_room or (isinstance(sizes.n, int) and sizes.n % width == 0):
                with w.where(w.is_less(column, sizes.n)):
                    self._store_some(*source, row, column, width, finish)
            else:
                is_whole = w.is_less(w.add(column, width - 1), sizes.n)
                w.open(f"scf.if {is_whole} {{")
                self._store_some(*source, row, column, width, finish)
                w.otherwise()
                none, one, end = w.index(0), w.index(1), w.index(width)
                w.open(f"scf.for %rest = {none} to {end} step {one} {{")
                column = w.add(column, "%rest")
                with w.where(w.is_less(column, sizes.n)):
                    own_column = w.add(own_column, "%rest")
                    self._store_some(staging, own_row, own_column, row, column, 1, finish)
                w.close()
                w.close()
        w.close()

    def _store_some(
        self,
        staging: _Staging,
        own_row: Index,
        own_column: Index,
        row: Index,
        column: Index,
        width: int,
        finish: Finish | None,
    ) -> None:
        w, c, sum_type = self.w, self.problem.c, self.instruction.sum
        at = w.at(self.place.warp, own_row, own_column)
        sums = self._vector_load(f"%staged{at}", staging.type, width, sum_type)
        at = w.at(*self.at, row, column)
        if self.problem.adds:
            before = self._vector_load(f"{self.target}{at}", c.type, width, c.element)
            sums = [
                _add(w, convert(w, old, c.element, sum_type), new, sum_type)
                for old, new in zip(before, sums, strict=True)
            ]
        values = []
        for number, sum_ in enumerate(sums):
            place = w.index(row), w.index(w.add(column, number))
            values.append(_result(w, self.problem, sum_, *place, finish))
        type_ = f"vector<{width}x{c.element}>"
        stored = w.value(f"vector.from_elements {', '.join(values)} : {type_}")
        self._vector_store(stored, f"{self.target}{at}", c.type, width, c.element)

    def _vector_load(self, at: str, type_: str, width: int, element: str) -> list[str]:
        """The elements that are loaded at once."""
        w, vector = self.w, f"vector<{width}x{element}>"
        alignment = f"{{alignment = {width * ELEMENT_BYTES[element]} : i64}}"
        if width * ELEMENT_BYTES[element] > _CHUNK_BYTES:
            alignment = f"{{alignment = {_CHUNK_BYTES} : i64}}"
        loaded = w.value(f"vector.load {at} {alignment} : {type_}, {vector}")
        return [
            w.value(f"vector.extract {loaded}[{number}] : {element} from {vector}")
            for number in range(width)
        ]

    def _vector_store(self, value: str, at: str, type_: str, width: int, element: str) -> None:
        alignment = f"{{alignment = {width * ELEMENT_BYTES[element]} : i64}}"
        vector = f"vector<{width}x{element}>"
        self.w.line(f"vector.store {value}, {at} {alignment} : {type_}, {vector}")
