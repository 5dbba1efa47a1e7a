"""Comparison of what a launch requests with a GPU's limits: shared memory, threads, clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from aotc.analysis.extents import LaunchSizes
from aotc.analysis.shared_memory import static_bytes
from aotc.chips import FIRST_WITH_CLUSTERS, LIMITS, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_CLUSTER


def excesses(launch: Any, *capabilities: int) -> Iterator[str]:
    """The requests of a gpu.launch that exceed the limits of one of these compute capabilities.

    The launch is one that aotc wrote: its blocks, clusters and shared memory are constants. Each
    result is a phrase for a message."""
    sizes = LaunchSizes.of(launch)
    if not capabilities:
        return
    if sizes.dynamic_shared_bytes is None or None in sizes.block:
        yield "sizes that are no constants"
        return
    shared = sizes.dynamic_shared_bytes + static_bytes(launch)
    for capability in capabilities:
        yield from _excesses(sizes, shared, capability)


def _excesses(sizes: LaunchSizes, shared: int, capability: int) -> Iterator[str]:
    has = LIMITS[capability]
    if shared > has.block_shared:
        yield f"{shared} bytes of shared memory: sm_{capability} has {has.block_shared}"
    block = [size for size in sizes.block if size is not None]
    threads = math.prod(block)
    if threads > MAX_BLOCK_THREADS or any(
        size > most for size, most in zip(block, MAX_BLOCK, strict=True)
    ):
        yield f"blocks of {threads} threads: GPUs take {MAX_BLOCK_THREADS}"
    cluster = math.prod(size or 0 for size in sizes.cluster)
    if cluster > MAX_CLUSTER or (cluster > 1 and capability < FIRST_WITH_CLUSTERS):
        yield f"clusters of {cluster} blocks on sm_{capability}"
