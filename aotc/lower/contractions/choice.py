"""Which kernels a product of matrices gets, for which GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.lower.contractions import blocked, hopper, simt, skinny, tensor_cores
from aotc.lower.contractions.problem import ELEMENT_BYTES, Finish, Matrix, Problem
from aotc.lower.kernels.outlining import ANY_GPU, CPU
from aotc.lower.placement_names import LEAST_CAPABILITY
from aotc.request import Chip

_HOPPER = Chip("sm_90a")
# Of an H100 and H200; an A100 has 108.
_MULTIPROCESSORS = 132
# Of matrices whose sizes are not known: with fewer tiles than this, multiprocessors have none, and
# smaller ones are taken, that suit this size.
_MANY_TILES = 100
_SMALL = 1024
# So few rows or columns of C are made by one pass over the other matrix.
_FEW = 8
# Below so many multiply-adds a loop, which takes in what comes after the product, is as fast.
_LEAST_WORK = 64 * 64 * 64


class Choice(Struct, frozen=True):
    """A kernel for `problem`, whose matrices are aligned as that says: a family's variant, and what
    it is launched on, a chip or ANY_GPU. Fewer tiles than `least_tiles` are for the next choice."""

    family: Any
    variant: Any
    problem: Problem
    target: str
    least_tiles: int = 0

    def write(self, name: str, finish: Finish | None = None) -> str:
        """The host function that launches the kernel, as text."""
        return str(self.family.function(self.problem, self.variant, name, finish))

    def __str__(self) -> str:
        where = {ANY_GPU: "GPUs", CPU: "the CPU"}.get(self.target, self.target)
        if self.family is skinny:
            return f"{self.family.NAME} on {where}"
        return f"{self.family.NAME} with tiles of {self.variant.m}x{self.variant.n} on {where}"


def choose(problem: Problem, chips: Sequence[Chip]) -> list[Choice]:
    """The kernels for a problem, the best one first; the last one takes matrices at any address.
    None at all where loops are as good, or no kernel is right."""
    if problem.m and problem.n and problem.k and problem.m * problem.n * problem.k < _LEAST_WORK:
        return []
    if any(chip.capability < LEAST_CAPABILITY for chip in chips):
        return []
    families = [tensor_cores, simt]
    found = []
    of_hopper = [chip.capability == _HOPPER.capability for chip in chips]
    few = min(size for size in (problem.m, problem.n, _FEW + 1) if size is not None)
    if few <= _FEW:
        families.insert(0, skinny)
        of_hopper = []
    if any(of_hopper):
        found += _best(problem, [hopper], _HOPPER.name)
    if not found or not all(of_hopper):
        found += _best(problem, families, ANY_GPU)
    anywhere = _best(_anywhere(problem), families, ANY_GPU)[:1]
    return [*found, *(replace(choice, least_tiles=0) for choice in anywhere)] if anywhere else []


def choose_for_cpu(problem: Problem) -> Choice | None:
    """The kernel for the CPU device, of matrices at any address; None where loops must do."""
    problem = _anywhere(problem)
    able = [one for one in blocked.variants(problem) if blocked.can_take(problem, one)]
    return Choice(blocked, able[0], problem, CPU) if able else None


def _best(problem: Problem, families: Sequence[Any], target: str) -> list[Choice]:
    """The variant of the first family that can take the problem that is expected to be fastest. Of
    sizes that are not known, one for large matrices, and one for smaller ones."""
    is_known = bool(problem.m and problem.n and problem.k)
    for family in families:
        able = [one for one in family.variants(problem) if family.can_take(problem, one)]
        if not able:
            continue
        large = Choice(family, able[0], problem, target)
        if family is skinny:  # as fast as memory, all of them
            return [large]
        small = Choice(family, _best_for(family, problem, able, _SMALL), problem, target)
        return [small] if is_known else [replace(large, least_tiles=_MANY_TILES), small]
    return []


def _best_for(family: Any, problem: Problem, able: Sequence[Any], size: int) -> Any:
    """The variant that is expected to be fastest where every size that is not known is this."""
    sizes = [one or size for one in (problem.m, problem.n, problem.k)]
    return min(able, key=lambda one: _clocks(family, problem, one, *sizes))


def _clocks(family: Any, problem: Problem, variant: Any, m: int, n: int, k: int) -> float:
    """How long a multiprocessor is expected to be busy."""
    tiles = -(-m // variant.m) * -(-n // variant.n) * getattr(variant, "splits", 1)
    each, once = family.clocks(problem, variant, k)
    return float(-(-tiles // _MULTIPROCESSORS) * each + once)


def _anywhere(problem: Problem) -> Problem:
    """The same, of matrices of which no address is known."""
    return replace(
        problem, a=_unaligned(problem.a), b=_unaligned(problem.b), c=_unaligned(problem.c)
    )


def _unaligned(matrix: Matrix) -> Matrix:
    return replace(matrix, alignment=ELEMENT_BYTES[matrix.element])
