"""What the programs of matrix_programs.py have in common: types, matrices, launches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from samples import F16_RTOL, F32_RTOL, Array, uniform

# Of 4 products, in one order or another.
F64_SUM_RTOL = 1e-15

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "si8": np.int8,
    "ui8": np.uint8,
    "i32": np.int32,
}
RTOLS = {"f16": F16_RTOL, "f32": F32_RTOL, "f64": F64_SUM_RTOL, "i32": 0.0}

# The launches of mma and ldmatrix: blocks of two warps each, every warp with its own data.
BLOCKS, BLOCK_SIZE = 3, 64
THREADS = BLOCKS * BLOCK_SIZE
WARPS = THREADS // 32

LAUNCH = f"""
  %one = arith.constant 1 : index
  %blocks = arith.constant {BLOCKS} : index
  %size = arith.constant {BLOCK_SIZE} : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one)"""
THREAD = """
    %c0 = arith.constant 0 : index
    %before = arith.muli %bx, %sx : index
    %i = arith.addi %before, %tx : index"""


def as_tf32(array: Array) -> Array:
    """f32 as tensor cores read them: without the last 13 bits."""
    return (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def random_matrix(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Positive reals, so that relative errors of sums say something; integers of all values."""
    if np.dtype(dtype) == np.int32:
        return generator.integers(-(2**20), 2**20, shape, np.int32)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return uniform(generator, shape, dtype, 0.25, 1)


def product(a: Array, b: Array, c: Array) -> Array:
    """A @ B + C of all warps, in f64 or exactly."""
    if np.issubdtype(c.dtype, np.integer):
        return a.astype(np.int64) @ b.astype(np.int64) + c
    if a.dtype == np.float32:
        a, b = as_tf32(a), as_tf32(b)
    a, b, c = (array.astype(np.float64) for array in (a, b, c))
    return a @ b + c
