"""Which kernels attention gets, for which GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from aotc.kernels.attention.family import Candidate, Family
from aotc.kernels.attention.mma_sync.menu import TENSOR_CORES
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.attention.simt.menu import SIMT, SIMT_ON_HOPPER
from aotc.kernels.attention.wgmma.menu import HOPPER
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.lower.placement_names import LEAST_CAPABILITY
from aotc.request import Chip, unique

_Aligned = TypeVar("_Aligned", Matrix, Mask)
# Of those for the same GPUs, the first one that takes a problem has it.
FAMILIES: tuple[Family, ...] = (HOPPER, SIMT_ON_HOPPER, TENSOR_CORES, SIMT)


class Choice(Struct, frozen=True):
    """Kernels of a family for `problem`, whose matrices are aligned as that says; of several, the
    program takes the one whose `cost` is the least."""

    family: Family
    problem: Attention
    candidates: tuple[Candidate, ...]

    @property
    def target(self) -> str:
        """What they are launched on."""
        return ANY_GPU if self.family.chip is None else self.family.chip.name

    def __str__(self) -> str:
        tiles = " or ".join(f"{one.variant.m}x{one.variant.keys}" for one in self.candidates)
        where = "GPUs" if self.family.chip is None else self.family.chip.name
        return f"{self.family.name} with tiles of {tiles} on {where}"


def choose(problem: Attention, chips: Sequence[Chip]) -> list[Choice]:
    """The kernels for a problem in a build for these chips, the best one first. None at all where
    no kernel takes it."""
    found = []
    others = list(chips)
    for family in FAMILIES:
        if family.chip is None:
            continue
        own = [chip for chip in others if chip.capability == family.chip.capability]
        if own and (choice := _choice(family, problem)) is not None:
            found.append(choice)
            others = [chip for chip in others if chip not in own]
    if any(chip.capability < LEAST_CAPABILITY for chip in chips):
        return found
    # What has a kernel of its own has none for matrices at other addresses.
    for one in unique(([problem] if others else []) + [_anywhere(problem)]):
        general = (_choice(family, one) for family in FAMILIES if family.chip is None)
        found += [choice for choice in general if choice is not None][:1]
    return found


def _choice(family: Family, problem: Attention) -> Choice | None:
    able = family.candidates(problem)
    rows, batch = problem.q.sizes[0], problem.batch
    if rows is not None and batch is not None and able:
        able = [min(able, key=lambda one: cost(family, one, rows, batch, causal=problem.causal))]
    return Choice(family, problem, tuple(able)) if able else None


def cost(family: Family, one: Candidate, rows: int, batch: int, *, causal: bool) -> int:
    """As `dispatch` computes it where sizes are not known: of equal tiles, so many turns; of
    causal ones, which take half of that on average, what the longest takes at least."""
    tiles = -(-rows // one.variant.m) * batch
    if causal:
        return int(max(tiles, 2 * family.at_once) * one.cost)
    return int(-(-tiles // family.at_once) * one.cost)


def _anywhere(problem: Attention) -> Attention:
    """The same, of matrices of which no address is known."""
    q, k, v, o = (_unaligned(one) for one in (problem.q, problem.k, problem.v, problem.o))
    mask = None if problem.mask is None else _unaligned(problem.mask)
    return replace(problem, q=q, k=k, v=v, o=o, mask=mask)


def _unaligned(matrix: _Aligned) -> _Aligned:
    return replace(matrix, alignment=ELEMENT_BYTES.get(matrix.element, 1))
