"""Kernels → cubins of a chip, read: what a block takes of a multiprocessor, and how many fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chips.kernels import Kernel
from helpers.command import build_here

from aotc import ops
from aotc.analysis.extents import LaunchSizes
from aotc.images.image import DeviceKernel
from aotc.input.entries import functions_of
from aotc.inspect import inspect
from aotc.inspect.occupancy import limits_of, occupancy
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.request import Chip


def text_of(kernels: Sequence[Kernel]) -> str:
    """A module with a function for each, `k0` and so on."""
    return "\n".join(kernel.function(f"k{number}") for number, kernel in enumerate(kernels))


def refused(
    kernels: Sequence[Kernel], chips: Sequence[Chip], folder: Path
) -> tuple[Counter[str], list[str]]:
    """Builds the kernels for the chips: how many cubins' kernels were read of each chip, and which
    of them it would refuse: of shared memory, static and dynamic, registers times threads, or
    threads there is not enough for one block."""
    text = text_of(kernels)
    dynamic = _dynamic_bytes(text)
    source = folder / "kernels.mlir"
    source.write_text(text)
    names = ",".join(chip.name for chip in chips)
    options = ("--emit", "cubin", "--no-cpu-kernels", "-Wno-shared-memory", "--no-cache")
    build_here(source, *options, "--chip", names, "-o", f"{folder}/")
    counts: Counter[str] = Counter()
    problems = []
    for file in sorted(folder.glob("*.cubin")):
        (image,) = inspect(file).images
        for kernel in image.kernels:
            function = kernel.name.split("_")[0]
            counts[image.chip] += 1
            if why := refusal(kernel, Chip(image.chip), dynamic[function]):
                name = kernels[int(function[1:])].name
                problems.append(f"{image.chip}: {name}: {kernel.name} {why}")
    return counts, problems


def refusal(kernel: DeviceKernel, chip: Chip, dynamic: int) -> str | None:
    """Why the chip refuses blocks of the kernel, with so many bytes of dynamic shared memory."""
    threads, registers, static = kernel.max_threads, kernel.registers, kernel.shared_bytes
    if threads is None or registers is None or static is None:
        return "says not what it takes"
    found = occupancy(
        limits_of(chip),
        threads=threads,
        registers=registers,
        shared_bytes=static + dynamic,
        barriers=kernel.barriers or 0,
    )
    if found.blocks:
        return None
    return f"of {threads} threads, {registers} registers each, {static} and {dynamic} bytes"


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
