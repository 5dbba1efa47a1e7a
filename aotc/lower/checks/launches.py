"""Checks launches, and the sizes that kernels are compiled for, against the limits of GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc.analysis.extents import LaunchSizes, Sizes
from aotc.analysis.gpu_modules import launched_kernel
from aotc.chips import (
    FIRST_WITH_CLUSTERS,
    MAX_BLOCK,
    MAX_BLOCK_THREADS,
    MAX_CLUSTER,
    MAX_GRID,
)
from aotc.input.source import Source
from aotc.lower.checks.operations import Operations
from aotc.lower.checks.reach import runs_in_every_call
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import BuildRequest, Chip
from aotc.warnings import BuildWarning

LAUNCHES = ("gpu.launch", "gpu.launch_func")
_BLOCK_ATTRIBUTES = ("known_block_size", "nvvm.maxntid", "nvvm.reqntid")
_CLUSTER_ATTRIBUTES = ("known_cluster_size", "nvvm.cluster_dim")
_AXES = "xyz"


def check_launches(
    source: Source, operations: Operations, request: BuildRequest
) -> list[BuildWarning]:
    """Warnings for block, grid and cluster sizes that no GPU supports, or that differ from those
    that a kernel is compiled for."""
    kernels = operations.kernels()
    found = []
    for launch in operations.named(*LAUNCHES):
        sizes = LaunchSizes.of(launch)
        problems = [
            *_block_problems(sizes.block),
            *_grid_problems(sizes.grid),
            *_cluster_problems(sizes.cluster, sizes.grid),
            *_chip_problems(sizes.cluster, request.chips),
        ]
        if launch.name == "gpu.launch_func":
            kernel = kernels.get(launched_kernel(launch))
            problems += _mismatches(sizes, kernel) if kernel is not None else []
        # Only an execution that reaches the launch would fail.
        is_sure = bool(problems) and runs_in_every_call(launch)
        found += [
            BuildWarning.at(source, *problem(launch.location), is_sure=is_sure)
            for problem in problems
        ]
    for function in operations.named("gpu.func", "llvm.func", "func.func"):
        found += [
            BuildWarning.at(source, *problem(function.location))
            for problem in _attribute_problems(function)
        ]
    return found


class _Problem(Struct, frozen=True):
    name: str
    message: str

    def __call__(self, location: Any) -> tuple[str, Any, str]:
        return self.name, location, self.message


def _block_problems(block: Sizes) -> Iterator[_Problem]:
    yield from _axis_problems("block-size", "a block", block, MAX_BLOCK, "threads")
    known = [size for size in block if size is not None and size > 0]
    if math.prod(known) > MAX_BLOCK_THREADS and all(
        size <= limit for size, limit in zip(known, MAX_BLOCK, strict=False)
    ):
        shape = " x ".join("?" if size is None else str(size) for size in block)
        least = "" if None not in block else " at least"
        yield _Problem(
            "block-size",
            f"a block of {shape} threads has{least} {math.prod(known)}: GPUs take "
            f"{MAX_BLOCK_THREADS}",
        )


def _grid_problems(grid: Sizes) -> Iterator[_Problem]:
    yield from _axis_problems("grid-size", "a grid", grid, MAX_GRID, "blocks")


def _axis_problems(
    name: str, what: str, sizes: Sizes, limits: Sequence[int], unit: str
) -> Iterator[_Problem]:
    for axis, size, limit in zip(_AXES, sizes, limits, strict=False):
        if size is not None and not 0 < size <= limit:
            yield _Problem(name, f"{what} has {size} {unit} along {axis}: GPUs take 1 to {limit}")


def _cluster_problems(cluster: Sizes, grid: Sizes) -> Iterator[_Problem]:
    for axis, size in zip(_AXES, cluster, strict=False):
        if size is not None and size < 1:
            yield _Problem("cluster-size", f"a cluster has {size} blocks along {axis}")
            return
    known = math.prod(size for size in cluster if size is not None)
    if known > MAX_CLUSTER:
        yield _Problem("cluster-size", f"a cluster has {known} blocks: GPUs take {MAX_CLUSTER}")
    for axis, size, blocks in zip(_AXES, cluster, grid, strict=False):
        if size is not None and blocks is not None and blocks > 0 and blocks % size != 0:
            yield _Problem(
                "cluster-size",
                f"{blocks} blocks along {axis} are not whole clusters of {size}",
            )


def _chip_problems(cluster: Sizes, chips: Sequence[Chip]) -> Iterator[_Problem]:
    lacking = [chip.name for chip in chips if chip.capability < FIRST_WITH_CLUSTERS]
    if lacking and any(size is not None and size > 1 for size in cluster):
        yield _Problem(
            "cluster-size",
            f"clusters need sm_{FIRST_WITH_CLUSTERS} or later: {', '.join(lacking)} lacks them",
        )


def _stated_sizes(function: Any, names: Sequence[str]) -> Iterator[tuple[str, Sizes]]:
    """Yields the sizes that a kernel's attributes state."""
    for name in names:
        if name in function.attributes:
            attribute = function.attributes[name]
            if isinstance(attribute, ir.DenseI32ArrayAttr):
                yield name, tuple(int(size) for size in attribute)


def _attribute_problems(function: Any) -> Iterator[_Problem]:
    for name, sizes in _stated_sizes(function, _BLOCK_ATTRIBUTES):
        for problem in _block_problems(sizes):
            yield _Problem(problem.name, f"{name}: {problem.message}")
    for name, sizes in _stated_sizes(function, _CLUSTER_ATTRIBUTES):
        for problem in _cluster_problems(sizes, ()):
            yield _Problem(problem.name, f"{name}: {problem.message}")


def _mismatches(sizes: LaunchSizes, kernel: Any) -> list[_Problem]:
    """Problems of a launch whose sizes differ from those that the kernel was compiled for: its ids
    would be wrong."""
    problems = []
    for name, asked, attributes in (
        ("block-size", sizes.block, ("known_block_size", "nvvm.reqntid")),
        ("grid-size", sizes.grid, ("known_grid_size",)),
    ):
        for attribute, stated in _stated_sizes(kernel, attributes):
            differs = any(
                a is not None and p is not None and a != p
                for a, p in zip(asked, stated, strict=False)
            )
            if differs:
                problems.append(
                    _Problem(
                        name,
                        f"'{symbol_of(kernel)}' is launched with {_shape(asked)}, and its "
                        f"{attribute} says {_shape(stated)}",
                    )
                )
    return problems


def _shape(sizes: Sizes) -> str:
    return " x ".join("?" if size is None else str(size) for size in sizes)
