"""Products of f64 on Hopper's tensor cores, whose instructions of 16 rows have twice the rate.

The kernel is that of `tensor_cores`, with others of its tiles: PTX has the instructions for later
chips too, but makes them of those of 8 rows there.
"""

from __future__ import annotations

from msgspec.structs import replace

from aotc.lower.contractions import tensor_cores
from aotc.lower.contractions.problem import Finish, Problem
from aotc.lower.contractions.tensor_core_tiles import Variant

NAME = "mma.sync of 16 rows"
# Of a multiprocessor: products that it adds in a clock; clocks until the first tile is there, and
# that each block takes besides its products.
_PRODUCTS = 128
_START_CLOCKS, _BLOCK_CLOCKS = 3000, 1500


def clocks(problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
    """What a tile takes of a multiprocessor, about, and what a launch takes besides."""
    products = k / variant.splits * variant.m * variant.n / _PRODUCTS
    again = 0 if variant.splits == 1 else _START_CLOCKS
    return products + _BLOCK_CLOCKS, _START_CLOCKS + again


def can_take(problem: Problem, variant: Variant) -> bool:
    return problem.a.element == "f64" and tensor_cores.can_take(problem, variant)


def variants(problem: Problem) -> tuple[Variant, ...]:
    """Those that are worth a try, the best guess for large squares first."""
    if problem.a.element != "f64":
        return ()
    tiles = (
        Variant(128, 128, 8, 2, 4, 4, instruction_k=4),
        Variant(64, 128, 16, 2, 4, 4, instruction_k=8),
        Variant(128, 64, 16, 4, 2, 4, instruction_k=8),
        Variant(64, 64, 16, 2, 2, 4, instruction_k=8),
        Variant(32, 64, 16, 2, 2, 4, instruction_k=8),
        Variant(64, 32, 16, 2, 2, 4, instruction_k=8),
    )
    # Rows of f64 begin at multiples of 8 bytes.
    widths = (replace(tile, copy_bytes=bytes_) for tile in tiles for bytes_ in (16, 8))
    able: dict[tuple[int, int], Variant] = {}
    for variant in widths:
        if can_take(problem, variant):
            able.setdefault((variant.m, variant.n), variant)
    return tuple(able.values())


def function(problem: Problem, variant: Variant, name: str, finish: Finish | None = None) -> str:
    """The text of a function that takes A, B and C, and launches the kernel."""
    return tensor_cores.function(problem, variant, name, finish)
