"""What kernels that exchange values have in common: their start, and who is in a group."""

from __future__ import annotations

from typing import Any

import numpy as np

WARP = 32
# Two warps and a part of one.
THREADS = 75
LINEAR = np.arange(THREADS)
LANE = LINEAR % WARP
FIRST = LINEAR - LANE

START = """
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %c32 = arith.constant 32 : i32
    %all = arith.constant -1 : i32
"""


def linear_id(result: str) -> str:
    """Text that gives `result` the thread's number in a block of three dimensions."""
    return f"""    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %sx = gpu.block_dim x
    %sy = gpu.block_dim y
    %y0 = arith.muli %tz, %sy : index
    %y1 = arith.addi %y0, %ty : index
    %x0 = arith.muli %y1, %sx : index
    {result} = arith.addi %x0, %tx : index"""


def kernel(name: str, arguments: str, body: str) -> str:
    return f"  gpu.func @{name}({arguments}) kernel {{{START}{body}\n    gpu.return\n  }}"


def mapping(name: str, element: str, to: str, body: str) -> str:
    """A kernel that makes %r, of type `to`, of %x."""
    return kernel(
        name,
        f"%in: memref<?x{element}>, %out: memref<?x{to}>",
        f"    %x = memref.load %in[%t] : memref<?x{element}>\n{body}\n"
        f"    memref.store %r, %out[%t] : memref<?x{to}>",
    )


def numbers(seed: int, bits: int = 64) -> np.ndarray[Any, Any]:
    half = 2 ** (bits - 1)
    return np.random.default_rng(seed).integers(-half, half, THREADS, np.int64)


def per_group(
    values: np.ndarray[Any, Any], groups: np.ndarray[Any, Any], reduce: Any
) -> np.ndarray[Any, Any]:
    """Of each thread, the reduction over those that have its group's number."""
    result = np.empty_like(values)
    for group in np.unique(groups):
        result[groups == group] = reduce(values[groups == group])
    return result
