"""Chooses the kernels of an implicit GEMM on GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.chosen import HOPPER, Choice, best_for, own_variant, without_alignment
from aotc.kernels.matmul.depthwise.problem import Depthwise
from aotc.kernels.matmul.depthwise.simt import DEPTHWISE_SIMT
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.implicit_gemm.direct import IMPLICIT_DIRECT
from aotc.kernels.matmul.implicit_gemm.mma_sync import IMPLICIT_MMA_SYNC
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.simt import IMPLICIT_SIMT
from aotc.kernels.matmul.implicit_gemm.wgmma import IMPLICIT_WGMMA
from aotc.kernels.matmul.implicit_gemm.wgmma_table import IMPLICIT_WGMMA_TABLE
from aotc.kernels.matmul.tuned import SMALL, TINY, sizes_at
from aotc.request import Chip

IMPLICIT_OF_ANY_GPU: tuple[MatmulFamily[Any], ...] = (
    *(IMPLICIT_DIRECT, IMPLICIT_MMA_SYNC, IMPLICIT_SIMT),
)
_OF_HOPPER: tuple[MatmulFamily[Any], ...] = (IMPLICIT_WGMMA_TABLE, IMPLICIT_WGMMA)


def choose_implicit_gemm(problem: ImplicitGemm, chips: Sequence[Chip]) -> tuple[Choice, ...]:
    """The kernels of an implicit GEMM: one for the operands' known alignment, and one for any
    address. In front of them is one for Hopper, if it is expected to be faster there, and one for C
    of few tiles, if the size of an image is unknown. A depthwise convolution has one kernel."""
    if isinstance(problem, Depthwise):
        problem = without_alignment(problem)
        able = DEPTHWISE_SIMT.legal_variants(problem)
        return tuple(Choice(DEPTHWISE_SIMT, one, problem, ANY_GPU) for one in able[:1])
    found = []
    problem = problem.without_padding("b")
    padded = problem.without_padding("a")
    for one in dict.fromkeys((padded, without_alignment(padded))):
        for family in IMPLICIT_OF_ANY_GPU:
            if able := family.legal_variants(one):
                found.append(Choice(family, best_for(family, one, able, [HOPPER]), one, ANY_GPU))
                break
    own = _on_hopper(problem) or _on_hopper(padded)
    if found and own is not None and HOPPER in map(own_variant, chips):
        sizes = sizes_at(problem, SMALL)
        clocks = [
            one.family.expected_clocks(one.problem, one.variant, sizes, HOPPER)
            for one in (own, found[0])
        ]
        if clocks[0] < clocks[1]:
            found.insert(0, own)
    if not problem.is_near:
        found = [*_of_few_image_tiles(found), *found]
    return tuple(found)


def _of_few_image_tiles(choices: Sequence[Choice]) -> list[Choice]:
    """The kernel for C of few tiles that copies most at once, in front of these for any GPU, the
    last of which is for any address."""
    several = [
        replace(one, variant=few.variant, most_tiles=few.most_tiles, unknown=TINY)
        for one in reversed(choices)
        if one.target == ANY_GPU and (few := one.family.few_tiles(one.problem)) is not None
    ]
    return sorted(several, key=lambda one: -one.variant.copy_bytes)[:1]


def _on_hopper(problem: ImplicitGemm) -> Choice | None:
    for family in _OF_HOPPER:
        if able := family.legal_variants(problem):
            best = best_for(family, problem, able, [HOPPER])
            return Choice(family, best, problem, HOPPER.name)
    return None
