"""Decides whether one matmul is faster than several with the same A, whose B are concatenated. It
saves launches, and the idle time of multiprocessors at the end of each kernel."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.chips import gpu_of
from aotc.kernels.launches import chips_of
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.chosen import Choice
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.tuned import SMALL, sizes_at
from aotc.request import BuildRequest, Chip

# The launch of an elementwise kernel, in clocks. It is the launch of `wgmma`'s cost model.
_LAUNCH = 1700
# The launch of a memory-bound kernel, until memory is busy, in clocks. On an H200, the two matmuls
# of a gated linear unit of one row, with 2 x 14336 x 4096 weights of 4 bits, are 2 us faster as one
# matmul that is followed by an elementwise kernel.
_MEMORY_LAUNCH = 2500
# The largest fraction of the separate matmuls' expected clocks that the fused matmul may take, for
# arithmetic-bound kernels. Their tiles fill the rounds less well than the model expects, and the
# blocks of the next kernel start while the last ones of the previous kernel run. On an H200, Q, K
# and V of 1024 x 768 x 768 in f32 were expected at 0.94, and a layer of T5-base or BERT-base took
# 20 us more with them fused, about 0.2 of their time.
_MOST_OF_ARITHMETIC = 0.8
# The memory traffic of a multiprocessor of an H200, in bytes per clock.
_BYTES = 18


class HorizontalFusion(Struct, frozen=True):
    """Matmuls that can be fused: `parts` are their problems, and `whole` is the problem of the
    fused matmul. `epilogues`: the parts with a fused epilogue, which the fused matmul would need
    a further kernel for."""

    whole: Problem
    parts: tuple[Problem, ...]
    epilogues: tuple[Problem, ...]


def is_faster(fusion: HorizontalFusion, request: BuildRequest) -> bool:
    """Whether the fused matmul is expected to be faster on all chips of the build."""
    chips = chips_of(request)
    if not chips:
        return False
    flags = {"allow_tf32": request.allow_tf32, "allow_3xtf32": request.allow_3xtf32}
    whole, *parts = (replace(problem, **flags) for problem in (fusion.whole, *fusion.parts))
    return all(_is_faster_on(chip, whole, parts, fusion.epilogues) for chip in chips)


def _is_faster_on(
    chip: Chip, whole: Problem, parts: Sequence[Problem], epilogues: Sequence[Problem]
) -> bool:
    choices = [choose(problem, [chip])[:1] for problem in (whole, *parts)]
    if not all(choices):
        return False
    (best, *_) = chosen = [choice for (choice,) in choices]
    one, *several = _clocks(chosen, chip)
    one += sum(_epilogue_clocks(problem, chip) for problem in epilogues)
    most = _MOST_OF_ARITHMETIC if best.family.is_arithmetic_bound else 1
    return one < most * sum(several)


def _clocks(choices: Sequence[Choice], chip: Chip) -> list[float]:
    """The expected clocks of each choice. Kernels without a cost model are memory-bound. Fused or
    not, they read the same amount of memory, so only their launches are counted."""
    if not all(choice.family.has_cost_model for choice in choices):
        return [_MEMORY_LAUNCH] * len(choices)
    return [
        choice.family.expected_clocks(choice.problem, choice.variant, choice.sizes, chip)
        for choice in choices
    ]


def _epilogue_clocks(problem: Problem, chip: Chip) -> float:
    """The clocks of an elementwise kernel that replaces an epilogue, and of writing and reading the
    result in between."""
    m, n, _ = sizes_at(problem, SMALL)
    moved = 2 * m * n * ELEMENT_BYTES[problem.a.element]
    return _LAUNCH + moved / (gpu_of(chip.capability).multiprocessors * _BYTES)
