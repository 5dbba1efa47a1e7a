"""Kernels → cubins of a chip, read: what a block takes of a multiprocessor, and how many fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chips.kernels import Kernel, capabilities_of
from helpers.command import build_here

from aotc import ops
from aotc.input.entries import functions_of
from aotc.inspect import inspect
from aotc.inspect.occupancy import limits_of, occupancy
from aotc.lower.checks.extents import LaunchSizes
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import Chip


def text_of(kernels: Sequence[Kernel]) -> str:
    """A module with a function for each, `k0` and so on."""
    return "\n".join(kernel.function(f"k{number}") for number, kernel in enumerate(kernels))


def refused(kernels: Sequence[Kernel], chip: Chip, folder: Path) -> tuple[int, list[str]]:
    """How many kernels were read of those that may be launched on the chip, and which of them it
    would refuse: of shared memory, static and dynamic, registers times threads, or threads there is
    not enough for one block."""
    able = [kernel for kernel in kernels if chip.capability in capabilities_of(kernel)]
    return refused_of(able, chip, folder)


def refused_of(kernels: Sequence[Kernel], chip: Chip, folder: Path) -> tuple[int, list[str]]:
    """The same of all these kernels."""
    if not kernels:
        return 0, []
    text = text_of(kernels)
    dynamic = _dynamic_bytes(text)
    source = folder / f"kernels.{chip.name}.mlir"
    source.write_text(text)
    cubin = folder / f"kernels.{chip.name}.cubin"
    options = ("--emit", "cubin", "--no-cpu-kernels", "-Wno-shared-memory")
    build_here(source, *options, "--chip", chip.name, "-o", cubin)
    (image,) = inspect(cubin).images
    problems = []
    for kernel in image.kernels:
        function = kernel.name.split("_")[0]
        name = kernels[int(function[1:])].name
        if None in (kernel.max_threads, kernel.registers, kernel.shared_bytes):
            problems.append(f"{name}: {kernel.name} says not what it takes")
            continue
        found = occupancy(
            limits_of(chip),
            threads=kernel.max_threads,
            registers=kernel.registers,
            shared_bytes=kernel.shared_bytes + dynamic[function],
            barriers=kernel.barriers or 0,
        )
        if found.blocks == 0:
            problems.append(
                f"{name}: {kernel.name} of {kernel.max_threads} threads, {kernel.registers} "
                f"registers each, {kernel.shared_bytes} and {dynamic[function]} bytes"
            )
    return len(image.kernels), problems


def _dynamic_bytes(text: str) -> dict[str, int]:
    """Function → the most dynamic shared memory that one of its launches asks for."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return {
            symbol_of(function): max(
                LaunchSizes.of(launch).dynamic_shared_bytes or 0
                for launch in ops.find(function, "gpu.launch")
            )
            for function in functions_of(module)
        }
