"""What a GPU can at most of a product's type: see `aotc.chips`."""

from __future__ import annotations

from aotc.chips import Peak, gpu_of
from aotc.kernels.matmul.problem import Problem
from aotc.request import Chip

# (What the units of i32 can is about what those of f32 can.)
_KINDS = {"bf16": "f16", "f8E4M3FN": "f8", "f8E5M2": "f8", "i32": "f32"}


def kind_of(problem: Problem) -> str:
    """What the peaks call the problem's type."""
    element = problem.a.element
    if element == "f32" and problem.allow_tf32:
        return "tf32"
    return _KINDS.get(element, element)


def peak_of(problem: Problem, chip: Chip) -> Peak:
    """The most that the chip can of the problem's type. Before there is f8 it is f16 that
    multiplies it."""
    peaks = gpu_of(chip.capability).peaks
    kind = kind_of(problem)
    return peaks[kind] if kind in peaks else peaks["f16"]
