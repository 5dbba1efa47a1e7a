"""The peak throughput of a GPU for a matmul's element type: see `aotc.chips`."""

from __future__ import annotations

from aotc.chips import Peak, gpu_of
from aotc.kernels.matmul.problem import Problem
from aotc.request import Chip

# The names in the table of peaks of element types that have none of their own. (The throughput of
# i32 is about that of f32.)
_KINDS = {"bf16": "f16", "f8E4M3FN": "f8", "f8E5M2": "f8", "i32": "f32"}


def kind_of(problem: Problem) -> str:
    """The name of the problem's type in the table of peaks."""
    element = problem.a.element
    if element == "f32" and problem.allow_tf32:
        return "tf32"
    return _KINDS.get(element, element)


def peak_of(problem: Problem, chip: Chip) -> Peak:
    """The chip's peak for the problem's type. Chips without f8 multiply it as f16."""
    peaks = gpu_of(chip.capability).peaks
    kind = kind_of(problem)
    return peaks[kind] if kind in peaks else peaks["f16"]
