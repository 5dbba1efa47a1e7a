"""What threads get of each other, computed in NumPy: trees over warps, shuffles, ballots.

Arrays have a row for each block and a column for each thread, by its linear id. Everything is
exact: sums are trees over the lanes (1 beside 0, then 2 beside 0, ...), rounded at each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from samples import Array

WARP = 32

Combine = Callable[[Array, Array], Array]

DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
INTEGERS = [name for name in DTYPES if name.startswith("i")]
FLOATS = [name for name in DTYPES if not name.startswith("i")]


def _as_unsigned(function: Any) -> Combine:
    def combine(left: Array, right: Array) -> Array:
        unsigned = f"u{left.dtype.itemsize}"
        result: Array = function(left.view(unsigned), right.view(unsigned)).view(left.dtype)
        return result

    return combine


def _quiet(function: Any) -> Combine:
    """Without warnings of overflow, or of NaN."""

    def combine(left: Array, right: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            result: Array = function(left, right)
        return result

    return combine


INTEGER_OPERATIONS: dict[str, Combine] = {
    "add": _quiet(np.add),
    "mul": _quiet(np.multiply),
    "minui": _as_unsigned(np.minimum),
    "minsi": np.minimum,
    "maxui": _as_unsigned(np.maximum),
    "maxsi": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
# Of one bit: sums wrap, and the signed number with the bit set is -1.
BIT_OPERATIONS: dict[str, Combine] = {
    "add": np.logical_xor,
    "mul": np.logical_and,
    "minui": np.logical_and,
    "minsi": np.logical_or,
    "maxui": np.logical_or,
    "maxsi": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
FLOAT_OPERATIONS: dict[str, Combine] = {
    "add": np.add,
    "mul": np.multiply,
    "minnumf": _quiet(np.fmin),
    "maxnumf": _quiet(np.fmax),
    "minimumf": _quiet(np.minimum),
    "maximumf": _quiet(np.maximum),
}


def operations_of(element: str) -> dict[str, Combine]:
    """What a reduction of this type can be."""
    if element == "i1":
        return BIT_OPERATIONS
    return INTEGER_OPERATIONS if element in INTEGERS else FLOAT_OPERATIONS


def random_values(generator: np.random.Generator, shape: tuple[int, ...], element: str) -> Array:
    """Integers of all values; positive floats around 1, whose sums and products are rounded."""
    dtype = DTYPES[element]
    if element == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if element in INTEGERS:
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return generator.uniform(0.5, 1.5, shape).astype(dtype)


def tree(values: Array, combine: Combine) -> Array:
    """The combination along the last axis, of neighbours first."""
    while values.shape[-1] > 1:
        whole = values.shape[-1] // 2 * 2
        pairs = combine(values[..., 0:whole:2], values[..., 1:whole:2])
        values = np.concatenate([pairs, values[..., whole:]], axis=-1)
    return values[..., 0]


def warps_of(values: Array) -> list[Array]:
    """The columns of each warp; the last may have less than 32."""
    return [values[:, first : first + WARP] for first in range(0, values.shape[1], WARP)]


def subgroup_reduce(values: Array, combine: Combine, size: int = WARP, stride: int = 1) -> Array:
    """What each thread gets: its cluster's tree."""
    result = np.empty_like(values)
    for first in range(0, values.shape[1], WARP):
        lanes = np.arange(min(WARP, values.shape[1] - first))
        clusters = lanes & ~(stride * (size - 1))
        for cluster in np.unique(clusters):
            members = first + lanes[clusters == cluster]
            result[:, members] = tree(values[:, members], combine)[:, None]
    return result


def all_reduce(values: Array, combine: Combine) -> Array:
    """What each thread gets: the tree of the warps' trees."""
    warps = np.stack([tree(warp, combine) for warp in warps_of(values)], axis=-1)
    return np.broadcast_to(tree(warps, combine)[:, None], values.shape)


def shuffle_source(mode: str, offset: int, width: int, threads: int) -> tuple[Array, Array]:
    """The linear id that each thread reads, and whether there is one.

    Where there is none it is the thread's own. The block must have whole warps.
    """
    linear = np.arange(threads)
    lane, first = linear % WARP, linear // WARP * WARP
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset}.get(
        mode, np.full_like(lane, offset)
    )
    valid = (source >= 0) & (source < width) & (lane < width)
    return np.where(valid, first + source, linear), valid


def rotate_source(offset: int, width: int, threads: int) -> tuple[Array, Array]:
    """As `shuffle_source`: the first `width` lanes turn by `offset`."""
    linear = np.arange(threads)
    lane, first = linear % WARP, linear // WARP * WARP
    valid = lane < width
    return np.where(valid, first + (lane + offset) % width, linear), valid


def ballot(conditions: Array) -> Array:
    """What each thread gets: the conditions of its warp as the bits of a number."""
    result = np.empty(conditions.shape, np.int64)
    for first in range(0, conditions.shape[1], WARP):
        warp = conditions[:, first : first + WARP]
        bits = (warp.astype(np.int64) << np.arange(warp.shape[1])).sum(1)
        result[:, first : first + WARP] = bits[:, None]
    return result
