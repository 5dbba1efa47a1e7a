"""Chooses the kernels of an attention, with the GPUs that each is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder.numbers import Number, ceil_divide, maximum
from aotc.kernels.attention.cpu.family import CPU_ATTENTION
from aotc.kernels.attention.decode.family import DECODE, DECODE_ON_HOPPER
from aotc.kernels.attention.family import AttentionFamily
from aotc.kernels.attention.mma_sync.family import MMA_SYNC
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.attention.simt.family import SIMT, SIMT_ON_HOPPER
from aotc.kernels.attention.wgmma.family import WGMMA
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.module_names import LEAST_CAPABILITY
from aotc.request import Chip, unique

_Aligned = TypeVar("_Aligned", Matrix, Mask)
# In order of preference: of the families for the same GPUs, the first one that supports a problem
# is chosen.
FAMILIES: tuple[AttentionFamily, ...] = (
    *(WGMMA, SIMT_ON_HOPPER, MMA_SYNC, SIMT),
    *(DECODE_ON_HOPPER, DECODE),
)

# With fewer queries, the CPU's matrix-vector kernels are faster, as they pack nothing.
LEAST_CPU_QUERIES = 6


class Choice(Struct, frozen=True):
    """Kernels of a family for `problem`, whose alignments they require. If there are several
    variants, the program launches the one of least `cost` at run time."""

    family: AttentionFamily
    problem: Attention
    variants: tuple[Any, ...]

    def __str__(self) -> str:
        tiles = " or ".join(f"{one.m}x{one.keys}" for one in self.variants)
        target = self.family.target
        where = {ANY_GPU: "GPUs", CPU: "the CPU"}.get(target, target)
        return f"{self.family.name} with tiles of {tiles} on {where}"

    def cost(self, variant: Any, rows: Number, batch: Number) -> Number:
        """The cost of the variant for a batch of matrices of `rows` rows of Q.

        Tiles that take the same time are computed in waves. With causality, tiles take half of that
        time on average, and the cost is at least that of the longest tile.
        """
        family = self.family
        tiles = ceil_divide(rows, variant.m) * batch
        if self.problem.causal:
            waves = maximum(tiles, 2 * family.concurrent_tiles)
        else:
            waves = ceil_divide(tiles, family.concurrent_tiles)
        return waves * family.tile_cost(self.problem, variant)


def choose(problem: Attention, chips: Sequence[Chip], *, one_variant: bool = False) -> list[Choice]:
    """The kernels for a problem in a build for these chips, the best one first. The list is empty
    if no kernel supports it. `one_variant`: one kernel is chosen for all sizes and addresses."""
    if one_variant and all(chip.capability >= LEAST_CAPABILITY for chip in chips):
        choices = _for_any_gpu(_unaligned_problem(problem))
        return [replace(choice, variants=choice.variants[:1]) for choice in choices]
    found = []
    others = list(chips)
    for family in _families(problem):
        if family.target == ANY_GPU:
            continue
        own = [chip for chip in others if chip.capability == Chip(family.target).capability]
        if own and (choice := _choice(family, problem)) is not None:
            found.append(choice)
            others = [chip for chip in others if chip not in own]
    if any(chip.capability < LEAST_CAPABILITY for chip in chips):
        return found
    # Chips with their own kernel use the one for any GPU only for unaligned matrices.
    for one in unique(([problem] if others else []) + [_unaligned_problem(problem)]):
        found += _for_any_gpu(one)
    return found


def choose_for_cpu(problem: Attention) -> Choice | None:
    """The kernel of the CPU device; None if it does not support the problem."""
    if problem.group:
        return None
    unaligned = _unaligned_problem(problem)
    variants = CPU_ATTENTION.variants(unaligned)
    if not variants or (problem.q.sizes[0] or LEAST_CPU_QUERIES) < LEAST_CPU_QUERIES:
        return None
    return Choice(CPU_ATTENTION, unaligned, variants)


def _for_any_gpu(problem: Attention) -> list[Choice]:
    families = (family for family in _families(problem) if family.target == ANY_GPU)
    general = (_choice(family, problem) for family in families)
    return [choice for choice in general if choice is not None][:1]


def _families(problem: Attention) -> list[AttentionFamily]:
    return [family for family in FAMILIES if family.takes_one_row == bool(problem.group)]


def _choice(family: AttentionFamily, problem: Attention) -> Choice | None:
    choice = Choice(family, problem, family.variants(problem))
    if not choice.variants:
        return None
    rows, batch = problem.q.sizes[0], problem.batch
    if rows is None or batch is None:
        return choice
    best = min(choice.variants, key=lambda one: choice.cost(one, rows, batch))
    return replace(choice, variants=(best,))


def _unaligned_problem(problem: Attention) -> Attention:
    """The problem with matrices that are aligned to their elements only."""
    q, k, v, o = (_unaligned(one) for one in (problem.q, problem.k, problem.v, problem.o))
    mask = None if problem.mask is None else _unaligned(problem.mask)
    return replace(problem, q=q, k=k, v=v, o=o, mask=mask)


def _unaligned(matrix: _Aligned) -> _Aligned:
    return replace(matrix, alignment=ELEMENT_BYTES.get(matrix.element, 1))
