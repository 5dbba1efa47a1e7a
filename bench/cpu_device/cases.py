"""What is measured: each case's variants, the C loops that they are compared with, the goals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.cpu_device.programs import HERE, ROOT, Array, Kernels, Loops
from bench.measure import Variant


@dataclass(frozen=True)
class Goal:
    """At most `limit` times the time of `to`, for `of`: names of variants."""

    of: str
    to: str
    limit: float


@dataclass(frozen=True)
class Case:
    """One computation. `references` are the variants in C that the others are compared with,
    `modules` those whose kernels it calls."""

    name: str
    title: str
    references: tuple[str, ...]
    goals: tuple[Goal, ...]
    modules: tuple[str, ...]
    variants: Callable[[Programs], list[Variant]]
    # What a call reads and writes, where it is more than caches hold: for the bandwidth.
    bytes_moved: int | None = None


@dataclass(frozen=True)
class Programs:
    """The libraries that the variants come from: modules by name, and C loops by what they are
    compiled for (`baseline`, `native`)."""

    kernels: Mapping[str, Kernels]
    loops: Mapping[str, Loops]


SOURCES = {
    "matmul": ROOT / "samples" / "matmul.mlir",
    "vector_add": ROOT / "samples" / "vector_add.mlir",
    "tiled_matmul": HERE / "kernels" / "tiled_matmul.mlir",
    "block_sums": HERE / "kernels" / "block_sums.mlir",
}


def _in_c(
    programs: Programs,
    name: str,
    function: str,
    arguments: Sequence[Array | int],
    prepare: Callable[[], None],
    check: Callable[[], str | None],
) -> list[Variant]:
    """A C loop compiled as kernels are, and for this processor."""
    return [
        Variant(f"{name}{suffix}", programs.loops[kind].call(function, *arguments), prepare, check)
        for kind, suffix in (("baseline", ""), ("native", ", native"))
    ]


def _differs(got: Array, expected: Array, rtol: float) -> str | None:
    """What is wrong with `got`; None where each element is within `rtol` of `expected`."""
    error = np.abs(got - expected) / np.abs(expected)
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    if error.flat[worst] <= rtol:
        return None
    return f"element {worst} is {got.flat[worst]}, not {expected.flat[worst]}"


# --- C += A * B --------------------------------------------------------------------------

MATMUL_N = 1024
# Sums of 1024 positive products, in any order.
MATMUL_RTOL = 1e-4


def _matmul(programs: Programs) -> list[Variant]:
    random = np.random.default_rng(seed=1)
    a, b = (random.random((MATMUL_N, MATMUL_N), dtype=np.float32) for _ in "AB")
    c = np.empty_like(a)
    expected = a.astype(np.float64) @ b.astype(np.float64)

    def clear() -> None:
        c.fill(0)

    def check() -> str | None:
        return _differs(c, expected, MATMUL_RTOL)

    def kernel(module: str, entry: str) -> Callable[[], None]:
        return programs.kernels[module].call(entry, a, b, c)

    variants = []
    for order in ("ijk", "ikj"):
        arguments = (a, b, c, MATMUL_N)
        variants += _in_c(
            programs, f"C, {','.join(order)}", f"matmul_{order}", arguments, clear, check
        )
    return [
        *variants,
        Variant("loops (forum)", kernel("matmul", "matmul"), clear, check),
        Variant("tiles of 16 x 16", kernel("tiled_matmul", "tiles_of_16"), clear, check),
        Variant("tiles of 32 x 32", kernel("tiled_matmul", "tiles_of_32"), clear, check),
    ]


# --- z = x + y ---------------------------------------------------------------------------

ADD_N = 2**26


def _vector_add(programs: Programs) -> list[Variant]:
    random = np.random.default_rng(seed=2)
    x, y = (random.random(ADD_N, dtype=np.float32) for _ in "xy")
    z = np.empty_like(x)
    # From the start: else the first variant alone would wait for the pages.
    z.fill(np.nan)
    poisoned = ADD_N // 2

    def poison() -> None:
        z[poisoned] = np.nan

    def check() -> str | None:
        # One addition of f32 has one right result; compared by parts, to keep memory low.
        step = 2**22
        for first in range(0, ADD_N, step):
            part = slice(first, first + step)
            if not np.array_equal(z[part], x[part] + y[part]):
                return f"in elements {first} to {first + step}"
        return None

    kernel = programs.kernels["vector_add"].call("vector_add", x, y, z)
    return [
        *_in_c(programs, "C", "vector_add", (x, y, z, ADD_N), poison, check),
        Variant("kernel", kernel, poison, check),
    ]


# --- Sums of 256 elements each -----------------------------------------------------------

SUM_WIDTH = 256
SUM_COUNT = 65536


def _block_sums(programs: Programs) -> list[Variant]:
    random = np.random.default_rng(seed=3)
    x = random.random(SUM_COUNT * SUM_WIDTH, dtype=np.float32)
    sums = np.empty(SUM_COUNT, np.float32)
    expected = x.reshape(SUM_COUNT, SUM_WIDTH).sum(axis=1, dtype=np.float64)

    def poison() -> None:
        sums.fill(np.nan)

    def check() -> str | None:
        return _differs(sums, expected, 1e-5)

    arguments = (x, sums, SUM_COUNT, SUM_WIDTH)
    kernels = programs.kernels["block_sums"]
    return [
        *_in_c(programs, "C, in order", "sums_in_order", arguments, poison, check),
        *_in_c(programs, "C, reordered", "sums_reordered", arguments, poison, check),
        *(
            Variant(entry.replace("_", " "), kernels.call(entry, x, sums), poison, check)
            for entry in ("by_halves", "by_shuffles", "by_first_warp", "by_all_reduce")
        ),
    ]


CASES = (
    Case(
        "matmul",
        f"C += A * B, f32, n = {MATMUL_N}",
        ("C, i,j,k", "C, i,k,j", "C, i,j,k, native", "C, i,k,j, native"),
        (
            Goal("loops (forum)", "C, i,j,k", 1.2),
            Goal("tiles of 16 x 16", "C, i,j,k", 4),
            Goal("tiles of 32 x 32", "C, i,j,k", 4),
            Goal("tiles of 16 x 16", "loops (forum)", 4),
            Goal("tiles of 32 x 32", "loops (forum)", 4),
        ),
        ("matmul", "tiled_matmul"),
        _matmul,
    ),
    Case(
        "vector_add",
        f"z = x + y, f32, n = 2^{ADD_N.bit_length() - 1}",
        ("C", "C, native"),
        (Goal("kernel", "C", 1.2),),
        ("vector_add",),
        _vector_add,
        bytes_moved=3 * 4 * ADD_N,
    ),
    Case(
        "block_sums",
        f"sums of {SUM_WIDTH} f32 by blocks of {SUM_WIDTH} threads, {SUM_COUNT} blocks",
        ("C, in order", "C, reordered", "C, in order, native", "C, reordered, native"),
        (),
        ("block_sums",),
        _block_sums,
        bytes_moved=4 * SUM_COUNT * (SUM_WIDTH + 1),
    ),
)
