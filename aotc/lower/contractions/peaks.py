"""What GPUs can at most: multiply-adds of a multiprocessor in a clock, by the type of A and B.

Each architecture is told by one of its GPUs, its largest for data centers or workstations, without
sparsity, sums in f32 (of f64 in f64, of i8 in i32). `teraflops` are as NVIDIA prints them; with
the number of multiprocessors and the clock they give the multiply-adds (A100: 312e12 / 2 / 108 /
1.41e9 = 1024). Sources: NVIDIA's whitepapers of the A100, H100 (the H200's are the same), Ada and
RTX Blackwell GPUs, and the data sheets of A40, L40S and HGX B200.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from aotc.lower.contractions.problem import Problem
from aotc.request import Chip


class Peak(Struct, frozen=True):
    """Of a type: multiply-adds of a multiprocessor in a clock, and all of them in a second, as
    10^12 operations, of which a multiply-add is two."""

    multiply_adds: int
    teraflops: float


class Gpu(Struct, frozen=True):
    """A GPU that stands for its architecture."""

    name: str
    multiprocessors: int
    peaks: Mapping[str, Peak]


# By compute capability. "tf32": of f32 where that may be rounded.
_GPUS = {
    80: Gpu(
        "A100",
        108,
        {
            "f16": Peak(1024, 312),
            "tf32": Peak(512, 156),
            "f32": Peak(64, 19.5),
            "f64": Peak(64, 19.5),
            "i8": Peak(2048, 624),
        },
    ),
    86: Gpu(
        "A40",
        84,
        {
            "f16": Peak(512, 149.7),
            "tf32": Peak(256, 74.8),
            "f32": Peak(128, 37.4),
            "f64": Peak(2, 0.585),
            "i8": Peak(1024, 299.3),
        },
    ),
    89: Gpu(
        "L40S",
        142,
        {
            "f16": Peak(512, 362),
            "tf32": Peak(256, 183),
            "f32": Peak(128, 91.6),
            "f64": Peak(2, 1.43),
            "i8": Peak(1024, 733),
            "f8": Peak(1024, 733),
        },
    ),
    90: Gpu(
        "H100 SXM",
        132,
        {
            "f16": Peak(2048, 989),
            "tf32": Peak(1024, 494),
            "f32": Peak(128, 67),
            "f64": Peak(128, 67),
            "i8": Peak(4096, 1979),
            "f8": Peak(4096, 1979),
        },
    ),
    100: Gpu(
        "B200",
        148,
        {
            "f16": Peak(4096, 2250),
            "tf32": Peak(2048, 1100),
            "f32": Peak(128, 75),
            "f64": Peak(64, 37),
            "i8": Peak(8192, 4500),
            "f8": Peak(8192, 4500),
        },
    ),
    120: Gpu(
        "RTX PRO 6000",
        188,
        {
            "f16": Peak(512, 503.8),
            "tf32": Peak(256, 251.9),
            "f32": Peak(128, 126),
            "f64": Peak(2, 1.97),
            "i8": Peak(1024, 1007),
            "f8": Peak(1024, 1007),
        },
    ),
}
# (What the units of i32 can is about what those of f32 can.)
_KINDS = {"bf16": "f16", "f8E4M3FN": "f8", "f8E5M2": "f8", "i32": "f32"}


def gpu_of(chip: Chip) -> Gpu:
    """The GPU that stands for a chip: of its capability, or of the next below that is here."""
    below = [capability for capability in _GPUS if capability <= chip.capability]
    return _GPUS[max(below, default=min(_GPUS))]


def kind_of(problem: Problem) -> str:
    """What the peaks call the problem's type."""
    element = problem.a.element
    if element == "f32" and problem.allow_tf32:
        return "tf32"
    return _KINDS.get(element, element)


def peak_of(problem: Problem, chip: Chip) -> Peak:
    """The most that the chip can of the problem's type. Before there is f8 it is f16 that
    multiplies it."""
    peaks = gpu_of(chip).peaks
    kind = kind_of(problem)
    return peaks[kind] if kind in peaks else peaks["f16"]
