"""The last step of the ladder for every shape: with tiles of several sizes, and the choice."""

from __future__ import annotations

from ladder.blocks import Tile
from ladder.expressions import Array, Scalar, ceildiv
from ladder.generics import Parameters, generic
from ladder.steps import PADDING, async_copies

# How many blocks it takes to keep a GPU busy: an H100's and H200's multiprocessors, less a few.
ENOUGH_BLOCKS = 120

_ELEMENT_BYTES = {"f32": 4, "f64": 8}
_WORKGROUP_BYTES = 48 * 1024


def tile_for(m: int, n: int, k: int, element: str) -> Tile:
    """As much for each thread as its registers hold, 255 of 4 bytes."""
    large = m * n > 128 * 128 and element == "f32"
    thread_m, warp_n = (16, 64) if large else (8, 32)
    stages = 3 if element == "f32" else 2
    blocks_at_once = 2 if thread_m * 8 * _ELEMENT_BYTES[element] <= 256 else 1
    return Tile(m, n, k, thread_m, 8, blocks_at_once, 64, warp_n, stages)


def is_possible(parameters: Parameters) -> bool:
    """Whether the tiles of A and B fit into workgroup memory, and the threads can share them. Tiles
    of 256 rows pay where a thread has room for 16 of them."""
    tile, bytes_ = tile_for(**parameters), _ELEMENT_BYTES[parameters["element"]]
    elements = tile.stages * tile.k * (tile.m + PADDING + tile.n)
    fits = elements * bytes_ <= _WORKGROUP_BYTES and tile.can_be_shared(16 // bytes_)
    return fits and (tile.m < 256 or tile.thread_m == 16)


@generic(m=(256, 128, 64), n=(128, 64), k=(8,), element=("f32", "f64"), where=is_possible)
def gemm(name: str, a: Array, b: Array, c: Array, *, m: int, n: int, k: int, element: str) -> None:
    """C = A · B by blocks of m x n elements."""
    async_copies(name, tile_for(m, n, k, element), a, b, c)


def has_enough_blocks(m: Scalar, n: Scalar, k: Scalar, parameters: Parameters) -> Scalar:
    """Whether tiles of this size are at least ENOUGH_BLOCKS."""
    blocks = ceildiv(m, parameters["m"]) * ceildiv(n, parameters["n"])
    return Scalar.index(ENOUGH_BLOCKS - 1) < blocks
