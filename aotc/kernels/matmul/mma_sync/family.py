"""Products on the tensor cores of sm_80 and later: `nvgpu.mma.sync` on tiles in shared memory.

A block makes a tile of C, its warps a part of it each. Tiles of A and B follow each other through
a ring of `stages` places in shared memory, where asynchronous copies bring them while the ones
before are multiplied. What is outside of A and B is filled with zeros there.

Here are the parameters, and the host's part with its launches. `tiles` has what is
multiplied and how tiles lie in shared memory, `kernel` what a block does until it has
its sums, `store` how they are stored, `writer` what it is written in.
"""

from __future__ import annotations

from msgspec.structs import replace

from aotc.chips import H100, WARP
from aotc.kernels.family import ANY_GPU
from aotc.kernels.indices import Index
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.mma_sync.kernel import Kernel
from aotc.kernels.matmul.mma_sync.tiles import (
    LEAST_ASYNC_BYTES,
    Place,
    Sizes,
    Staging,
    Variant,
    has_totals,
    instruction_of,
    sides,
)
from aotc.kernels.matmul.mma_sync.tiles import shared_bytes as bytes_of_tiles
from aotc.kernels.matmul.mma_sync.writer import Writer
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Problem
from aotc.kernels.matmul.split_k_reduction import (
    SUMS,
    add_parts,
    allocate_parts,
    launch,
    partial_of,
)

# How many blocks a large GPU has at once, and how many steps are worth a block of their own.
_MANY_BLOCKS = 2 * H100.multiprocessors
_FEW_STEPS = 8
# What sums of an element's products may be asked for in: 16 bits are rounded to once, at the end.
_ACCUMULATORS = {
    "f16": ("f32", "f16"),
    "bf16": ("f32", "bf16"),
    "f32": ("f32",),
    "f64": ("f64",),
    "i8": ("i32",),
}
# Of a multiprocessor, about: bytes of K's products that it multiplies and adds in a clock, and
# that it fetches of A and B; clocks until the first tile is there.
_BYTES_MULTIPLIED, _BYTES_FETCHED = 1024 * 2, 64
_START_CLOCKS = 2000


def are_types_known(problem: Problem) -> bool:
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


def is_tile_whole(problem: Problem, variant: Variant) -> bool:
    """Whether warps and threads have equal parts of the tiles."""
    if variant.instruction_k and problem.a.element != "f64":
        return False
    instruction = instruction_of(problem, variant)
    # ldmatrix brings two tiles of B at once.
    if variant.m % (variant.warps_m * 16) or variant.n % (variant.warps_n * 16):
        return False
    # Of two parts of K and more, the next tile's copies begin before it is waited for.
    if variant.k % (2 * instruction.k) or variant.stages < 2:
        return False
    if not Staging.of(problem, variant).is_shared_evenly:
        return False
    return all(side.is_shared_evenly(variant) for side in sides(problem, variant))


def _can_copy(matrix: Matrix, variant: Variant) -> bool:
    size = ELEMENT_BYTES[matrix.element]
    if variant.copy_bytes < LEAST_ASYNC_BYTES:
        return True
    if variant.copy_bytes not in (16, 8, 4):
        return False
    if variant.copy_bytes % size or matrix.alignment % variant.copy_bytes:
        return False
    return matrix.pitch is None or matrix.pitch * size % variant.copy_bytes == 0


def _is_worth_splitting(problem: Problem, variant: Variant, splits: int) -> bool:
    """Where there are too few tiles for a GPU, and each part still has many steps."""
    m, n, k = problem.m, problem.n, problem.k
    if m is None or n is None or k is None:
        return False
    tiles = -(-m // variant.m) * -(-n // variant.n)
    return 0 < tiles * splits <= _MANY_BLOCKS and k >= splits * variant.k * _FEW_STEPS


def _launch_product(
    w: Writer, problem: Problem, variant: Variant, sizes: Sizes, finish: Finish | None
) -> None:
    tiles = w.divide_up(sizes.m, variant.m), w.divide_up(sizes.n, variant.n)
    # Behind each other in x, batches too: a grid's other dimensions end at 65535.
    blocks = w.multiply(w.multiply(*tiles), sizes.batches)
    with launch(w, blocks, variant.threads, MMA_SYNC.shared_bytes(problem, variant)):
        place, batch = place_of(w, variant, tiles)
        at = (batch,) if problem.batched else ()
        place = replace(place, batch=at)
        Kernel(w, problem, variant, sizes, place, at=at).write(finish)


def _launch_split(
    w: Writer, problem: Problem, variant: Variant, sizes: Sizes, finish: Finish | None
) -> None:
    """Sums of parts of K by one kernel, which another adds, in the order of K."""
    partial = partial_of(problem)
    parts = allocate_parts(w, problem, variant.splits, sizes)
    tiles = w.divide_up(sizes.m, variant.m), w.divide_up(sizes.n, variant.n)
    # Of K, each part has as many whole tiles.
    depth = w.multiply(w.divide_up(sizes.k, variant.k * variant.splits), variant.k)
    blocks = w.multiply(w.multiply(*tiles), parts)
    with launch(w, blocks, variant.threads, MMA_SYNC.shared_bytes(problem, variant)):
        place, part = place_of(w, variant, tiles)
        batch, split = w.divide(part, variant.splits), w.remainder(part, variant.splits)
        first_k = w.multiply(split, depth)
        end = w.most(first_k, w.least(w.add(first_k, depth), sizes.k))
        place = replace(place, batch=(w.index(batch),) if problem.batched else ())
        own_sizes = replace(sizes, k=end)
        Kernel(w, partial, variant, own_sizes, place, w.index(first_k), SUMS, (part,)).write(None)
    add_parts(w, problem, variant.splits, sizes, finish)


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


def place_of(w: Writer, variant: Variant, tiles: tuple[Index, Index]) -> tuple[Place, str]:
    """And which of the matrices, or of the parts of K, the block's is."""
    tile_m, tile_n, batch = _tile(w, variant, w.index(tiles[0]), w.index(tiles[1]))
    lane, warp = w.remainder("%tx", WARP), w.divide("%tx", WARP)
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


class MmaSync(MatmulFamily):
    """See the module's docstring."""

    name = "mma.sync"
    target = ANY_GPU
    variant_type = Variant

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        return (
            are_types_known(problem)
            and is_tile_whole(problem, variant)
            and all(_can_copy(matrix, variant) for matrix in (problem.a, problem.b))
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """Those that are worth a try, the best guess for large squares first."""
        if not are_types_known(problem):
            return ()
        # As many bytes of K as 32 or 64 elements of 16 bits have.
        size = ELEMENT_BYTES[problem.a.element]
        k, deep = 64 // size, 128 // size
        copy_bytes = next(
            bytes_
            for bytes_ in (16, 8, 4, 1)
            if all(
                _can_copy(matrix, Variant(copy_bytes=bytes_)) for matrix in (problem.a, problem.b)
            )
        )
        # What takes many registers: sums of 64 bits, totals besides, elements one by one.
        is_heavy = size == 8 or has_totals(problem) or copy_bytes < LEAST_ASYNC_BYTES
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
            for tile in (*tiles[:1], Variant(64, 64, deep, 2, 2, 4), *tiles[-1:])
            for splits in (2, 4, 8, 16)
            if _is_worth_splitting(problem, tile, splits)
        )
        return tuple(
            variant
            for tile in (*tiles, *split)
            if self.can_take(problem, variant := replace(tile, copy_bytes=copy_bytes))
        )

    def tile_clocks(self, problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
        """What a tile takes of a multiprocessor, about, and what a launch takes besides."""
        size = ELEMENT_BYTES[problem.a.element]
        depth = k / variant.splits * size
        products = variant.m * variant.n / _BYTES_MULTIPLIED
        fetched = (variant.m + variant.n) / _BYTES_FETCHED
        again = 0 if variant.splits == 1 else _START_CLOCKS
        return depth * max(products, fetched) + variant.m * variant.n / 64, _START_CLOCKS + again

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return bytes_of_tiles(problem if variant.splits == 1 else partial_of(problem), variant)

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        w = Writer()
        w.open(f"func.func @{name}({problem.signature}) {{")
        sizes = _sizes(w, problem)
        if variant.splits == 1:
            _launch_product(w, problem, variant, sizes, finish)
        else:
            _launch_split(w, problem, variant, sizes, finish)
        w.line("return")
        w.close()
        return w.text() + "\n"


MMA_SYNC = MmaSync()
