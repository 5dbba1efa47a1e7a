"""The bounds of loops and the sizes of launches, where they are constants."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.values import evaluate, evaluate_map
from aotc.mlir import ir

Sizes = tuple[int | None, ...]
# The lower bound, the upper bound (exclusive) and the step.
Bounds = tuple[int | None, int | None, int | None]


class LaunchSizes(Struct, frozen=True):
    """The sizes that a launch requests, along x, y and z; None where a size is not a constant.
    `cluster` is empty if the launch has no clusters."""

    grid: Sizes
    block: Sizes
    cluster: Sizes
    dynamic_shared_bytes: int | None

    @staticmethod
    def of(launch: Any) -> LaunchSizes:
        # Groups: async dependencies, grid, block and cluster with one for each axis, shared memory.
        numbers = [
            tuple(evaluate(value) for value in group) for group in ops.operand_groups(launch)[1:11]
        ]
        flat = [group[0] if group else None for group in numbers]
        has_clusters = len(numbers[6]) > 0
        return LaunchSizes(
            grid=tuple(flat[:3]),
            block=tuple(flat[3:6]),
            cluster=tuple(flat[6:9]) if has_clusters else (),
            dynamic_shared_bytes=flat[9] if numbers[9] else 0,
        )


def bounds_of(loop: Any) -> list[Bounds] | None:
    """The bounds of the variables of a loop or a launch; None for any other operation."""
    if loop.name == "gpu.launch":
        sizes = LaunchSizes.of(loop)
        return [(0, size, 1) for size in (*sizes.grid, *sizes.block)]
    if loop.name == "scf.for":
        low, high, step = (evaluate(value) for value in list(loop.operands)[:3])
        return [(low, high, step)]
    if loop.name == "affine.for":
        return [_affine_bounds(loop)]
    if loop.name == "scf.parallel":
        lows, highs, steps = ops.operand_groups(loop)[:3]
        return [
            (evaluate(low), evaluate(high), evaluate(step))
            for low, high, step in zip(lows, highs, steps, strict=True)
        ]
    return None


def is_empty(bounds: Bounds) -> bool:
    """Whether the bounds are known to contain no iteration."""
    low, high, _ = bounds
    return low is not None and high is not None and high <= low


def _affine_bounds(loop: Any) -> Bounds:
    lower, upper, _ = ops.operand_groups(loop)
    lows = evaluate_map(loop.attributes["lowerBoundMap"].value, lower)
    highs = evaluate_map(loop.attributes["upperBoundMap"].value, upper)
    # Of several lower bounds the greatest counts, of several upper bounds the least.
    low = None if None in lows else max(n for n in lows if n is not None)
    high = None if None in highs else min(n for n in highs if n is not None)
    return low, high, int(ir.IntegerAttr(loop.attributes["step"]).value)
