"""Whether one matmul is faster than several with the same rows: what it saves are launches, and
multiprocessors that are idle behind each kernel's last tiles."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.chips import gpu_of
from aotc.kernels.launches import chips_of
from aotc.kernels.matmul.choice import Choice, choose
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.tuned import SMALL, sizes_at
from aotc.request import BuildRequest, Chip

# Of an elementwise kernel, in clocks; the launch that the cost model of `wgmma` has.
_LAUNCH = 1700
# Of a kernel that memory bounds, until memory is busy. On an H200, the two matmuls of a gated
# linear unit of one row, 2 x 14336 x 4096 weights of 4 bits, are 2 us faster as one, with a kernel
# behind it.
_MEMORY_LAUNCH = 2500
# What the one may take of the others' expected clocks, where arithmetic bounds the kernels: their
# tiles fill rounds less well than the model expects, and the next kernel's blocks start beside the
# last ones. On an H200, Q, K and V of 1024 x 768 x 768 in f32 were expected at 0.94, and a layer of
# T5-base or BERT-base took 20 us more with them as one, about 0.2 of their time.
_MOST_OF_ARITHMETIC = 0.8
# Of a multiprocessor of an H200, in a clock, from and to memory.
_BYTES = 18


class Join(Struct, frozen=True):
    """Matmuls that can be one: `parts` are their problems, and `whole` is that of the one.
    `epilogues` are those of which a kernel may compute what follows, while the one's cannot."""

    whole: Problem
    parts: tuple[Problem, ...]
    epilogues: tuple[Problem, ...]


def is_faster(join: Join, request: BuildRequest) -> bool:
    """Whether the one is expected to be faster on all chips."""
    chips = chips_of(request)
    if not chips:
        return False
    flags = {"allow_tf32": request.allow_tf32, "allow_3xtf32": request.allow_3xtf32}
    whole, *parts = (replace(problem, **flags) for problem in (join.whole, *join.parts))
    return all(_is_faster_on(chip, whole, parts, join.epilogues) for chip in chips)


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
    """The expected clocks of each. Kernels without a model are bounded by memory, and read as much
    together as alone."""
    if not all(choice.family.has_cost_model for choice in choices):
        return [_MEMORY_LAUNCH] * len(choices)
    return [
        choice.family.expected_clocks(choice.problem, choice.variant, choice.sizes, chip)
        for choice in choices
    ]


def _epilogue_clocks(problem: Problem, chip: Chip) -> float:
    """Those of a kernel in place of an epilogue, for which the result is written and read."""
    m, n, _ = sizes_at(problem, SMALL)
    moved = 2 * m * n * ELEMENT_BYTES[problem.a.element]
    return _LAUNCH + moved / (gpu_of(chip.capability).multiprocessors * _BYTES)
