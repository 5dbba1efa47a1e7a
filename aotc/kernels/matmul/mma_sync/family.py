"""Matmul on the tensor cores of sm_80 and later: `nvgpu.mma.sync` on tiles in shared memory.

A block computes a tile of C, and each of its warps a part of the tile. Tiles of A and B go through
a ring of `stages` buffers in shared memory. Asynchronous copies fill them while previous tiles are
multiplied. Elements out of bounds in A and B are filled with zeros.
"""

from __future__ import annotations

from msgspec.structs import replace

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.chips import H100
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.family import FewTiles, MatmulFamily
from aotc.kernels.matmul.mma_sync.copies import MatrixCopy, TileCopy
from aotc.kernels.matmul.mma_sync.kernel import Kernel
from aotc.kernels.matmul.mma_sync.launch import TiledLaunch
from aotc.kernels.matmul.mma_sync.store import MatrixOutput, Output
from aotc.kernels.matmul.mma_sync.tiles import (
    Coordinates,
    ProblemShape,
    Staging,
    Variant,
    has_second_accumulators,
    mma_of,
    tiles_of,
)
from aotc.kernels.matmul.mma_sync.tiles import shared_bytes as bytes_of_tiles
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Matrix, Problem
from aotc.kernels.matmul.split_k_reduction import (
    SplitKReduction,
    partial_of,
    parts_of_few_tiles,
)
from aotc.kernels.matmul.tuned import Sizes
from aotc.kernels.matmul.waves import LEAST_PART
from aotc.kernels.tensor_core import LEAST_ASYNC_BYTES

# Split-K: the number of concurrent blocks of a large GPU, and the smallest number of K tiles of a
# part.
_MANY_BLOCKS = 2 * H100.multiprocessors
_FEW_STEPS = 8
_SMALL_TILE = (64, 64)  # m and n of the kernel for C of few tiles
# The accumulator types that a problem may have, by element type. Accumulators of 16 bits are
# computed in f32, and rounded once, at the end.
_ACCUMULATORS = {
    "f16": ("f32", "f16"),
    "bf16": ("f32", "bf16"),
    "f32": ("f32",),
    "f64": ("f64",),
    "i8": ("i32",),
}
# An approximate cost model of a multiprocessor: the bytes of elements that are multiplied per
# clock, the bytes of A and B that are fetched per clock, and the clocks until the first tile has
# arrived.
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
    """The element types that an accumulator type may be stored as."""
    if accumulator == "i32":
        return ("i32", "i8")
    wider = ("f64", "f32", "bf16", "f16")
    size = ELEMENT_BYTES[accumulator]
    return (accumulator, *(other for other in wider if ELEMENT_BYTES[other] < size))


def is_tile_whole(problem: Problem, variant: Variant) -> bool:
    """Whether tiles divide evenly among warps and threads."""
    if variant.instruction_k and problem.a.element != "f64":
        return False
    # ldmatrix loads two of the instruction's tiles of B at once.
    if variant.m % (variant.warps_m * 16) or variant.n % (variant.warps_n * 16):
        return False
    # With two or more blocks of K, the copies of a later tile start before the wait for the next
    # tile.
    if variant.k % (2 * mma_of(problem, variant).k) or variant.stages < 2:
        return False
    if not Staging.of(problem, variant).is_shared_evenly:
        return False
    return all(tiles.is_copied_evenly(variant) for tiles in tiles_of(problem, variant))


def _can_copy(matrix: Matrix, variant: Variant) -> bool:
    size = ELEMENT_BYTES[matrix.element]
    if variant.copy_bytes < LEAST_ASYNC_BYTES:
        return True
    if variant.copy_bytes not in (16, 8, 4):
        return False
    if variant.copy_bytes % size or matrix.alignment % variant.copy_bytes:
        return False
    return matrix.pitch is None or matrix.pitch * size % variant.copy_bytes == 0


def _is_worth_splitting(problem: Problem, variant: Variant, split_k: int) -> bool:
    """Whether there are too few tiles for a GPU, and each part of K still has many steps."""
    m, n, k = problem.m, problem.n, problem.k
    if m is None or n is None or k is None:
        return False
    tiles = -(-m // variant.m) * -(-n // variant.n)
    return 0 < tiles * split_k <= _MANY_BLOCKS and k >= split_k * variant.k * _FEW_STEPS


class _MatrixLaunch(TiledLaunch):
    """The launch for operands that are matrices in memory."""

    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, arguments: Arguments
    ) -> None:
        bytes_ = MMA_SYNC.shared_bytes(problem, variant)
        super().__init__(b, problem, variant, shape_of(b, problem, arguments), bytes_)
        self.arguments = arguments

    def copies(self, kernel: Kernel) -> list[TileCopy]:
        at, shape, threads = kernel.coordinates, kernel.shape, self.variant.threads
        a, b = (
            MatrixCopy(self.b, tiles, ring, self._matrix(value, at), shape.k)
            for tiles, ring, value in zip(
                kernel.tiles, kernel.rings, (self.arguments.a, self.arguments.b), strict=True
            )
        )
        return [
            a.partition(at.thread, threads, at.row, shape.m),
            b.partition(at.thread, threads, at.column, shape.n),
        ]

    def output(self, coordinates: Coordinates) -> Output:
        target = self._matrix(self.arguments.c, coordinates)
        batch = self._batch(coordinates)
        return MatrixOutput(self.b, self.problem, target, batch, self.arguments.epilogue)

    def reduce(self, reduction: SplitKReduction) -> None:
        reduction.reduce_to(self.arguments)

    def _matrix(self, value: Value, coordinates: Coordinates) -> Buffer:
        batch = self._batch(coordinates)
        return Buffer(value, () if batch is None else (batch,))

    def _batch(self, coordinates: Coordinates) -> Number | None:
        return coordinates.batch if self.problem.batched else None


def shape_of(b: Builder, problem: Problem, arguments: Arguments) -> ProblemShape:
    first = int(problem.batched)

    def size(known: int | None, value: Value, dimension: int) -> Number:
        return b.dim(value, dimension) if known is None else known

    return ProblemShape(
        size(problem.m, arguments.c, first),
        size(problem.n, arguments.c, first + 1),
        size(problem.k, arguments.a, first + (not problem.a.transposed)),
        size(None if problem.batched else 1, arguments.c, 0),
    )


class MmaSync(MatmulFamily[Problem]):
    """See the module's docstring."""

    name = "mma.sync"
    mnemonic = "mma_sync"
    target = ANY_GPU
    variant_type = Variant
    kernel_type = _MatrixLaunch

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        return (
            are_types_known(problem)
            and is_tile_whole(problem, variant)
            and all(_can_copy(matrix, variant) for matrix in (problem.a, problem.b))
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """See `KernelFamily`. The best guess for large square matrices is first."""
        if not are_types_known(problem):
            return ()
        # The K extents have the bytes of 32 and of 64 elements of 16 bits.
        size = ELEMENT_BYTES[problem.a.element]
        k, twice = 64 // size, 128 // size
        copy_bytes = next(
            bytes_
            for bytes_ in (16, 8, 4, 1)
            if all(
                _can_copy(matrix, Variant(copy_bytes=bytes_)) for matrix in (problem.a, problem.b)
            )
        )
        # Large tiles have too few registers for 64-bit accumulators, second accumulators, or
        # copies by registers.
        is_heavy = size == 8 or has_second_accumulators(problem) or copy_bytes < LEAST_ASYNC_BYTES
        large = (
            Variant(128, 128, k, 2, 2, 4),
            Variant(128, 256, k, 2, 4, 3),
            Variant(256, 128, k, 4, 2, 3),
            Variant(128, 128, twice, 2, 2, 3),
        )
        tiles = (
            *(() if is_heavy else large),
            Variant(128, 128, k, 2, 4, 4),
            Variant(128, 64, k, 2, 2, 4),
            Variant(64, 128, k, 2, 2, 4),
            Variant(64, 64, twice, 2, 2, 4),
            Variant(64, 64, k, 2, 2, 4),
            Variant(32, 64, twice, 1, 4, 4),
            Variant(64, 32, twice, 2, 2, 4),
            Variant(32, 32, twice, 2, 2, 4),
            Variant(16, 64, twice, 1, 4, 4),
        )
        split = tuple(
            replace(tile, split_k=split_k)
            for tile in (*tiles[:1], Variant(64, 64, twice, 2, 2, 4), *tiles[-1:])
            for split_k in (2, 4, 8, 16)
            if _is_worth_splitting(problem, tile, split_k)
        )
        return tuple(
            variant
            for tile in (*tiles, *split)
            if self.can_implement(problem, variant := replace(tile, copy_bytes=copy_bytes))
        )

    def tile_clocks(self, problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
        """See `MatmulFamily`."""
        size = ELEMENT_BYTES[problem.a.element]
        bytes_of_k = k / variant.split_k * size
        multiplied = variant.m * variant.n / _BYTES_MULTIPLIED
        fetched = (variant.m + variant.n) / _BYTES_FETCHED
        again = 0 if variant.split_k == 1 else _START_CLOCKS
        mainloop = bytes_of_k * max(multiplied, fetched)
        return mainloop + variant.m * variant.n / 64, _START_CLOCKS + again

    def few_tiles(self, problem: Problem) -> FewTiles | None:
        """See `MatmulFamily`. It is for rows that 16 bytes are copied of at once."""
        for variant in self.variants(problem):
            if (variant.m, variant.n) == _SMALL_TILE and variant.copy_bytes == WIDEST_ACCESS:
                split = replace(variant, split_k=0)
                return FewTiles(split, H100.multiprocessors, 2 * LEAST_PART)
        return None

    def for_sizes(self, problem: Problem, variant: Variant, sizes: Sizes) -> Variant:
        """The variant with the number of parts of K that the program computes for the sizes."""
        m, n, k = sizes
        tiles = -(-m // variant.m) * -(-n // variant.n)
        parts = variant.split_k or parts_of_few_tiles(tiles, k, 2)
        return variant if parts == variant.split_k else replace(variant, split_k=parts)

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return bytes_of_tiles(problem if variant.split_k == 1 else partial_of(problem), variant)


MMA_SYNC = MmaSync()
