"""Which kernels a matmul gets, for which GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.chips import LIMITS, block_shared_of
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.cpu.streamed import CPU_STREAMED
from aotc.kernels.matmul.family import MatmulFamily, least_clocks
from aotc.kernels.matmul.gemv import GEMV
from aotc.kernels.matmul.implicit_gemm.cpu import IMPLICIT_CPU
from aotc.kernels.matmul.implicit_gemm.mma_sync import IMPLICIT_MMA_SYNC
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.implicit_gemm.simt import IMPLICIT_SIMT
from aotc.kernels.matmul.least_work import LEAST_WORK
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.mma_sync.hopper_f64 import MMA_SYNC_F64
from aotc.kernels.matmul.operand_packing import (
    PACK_K_MAJOR,
    PACK_F8_AS_F16,
    PACK_3XTF32,
    PACK_3XTF32_WGMMA,
)
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    EpilogueBuilder,
    EpilogueOperand,
    Matrix,
    Problem,
)
from aotc.kernels.matmul.simt.family import SIMT
from aotc.kernels.matmul.tcgen05 import TCGEN05
from aotc.kernels.matmul.tuned import LARGE, SMALL, TINY, Entry, Sizes, sizes_at, variant_of
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.small_m import small_m_kernels
from aotc.module_names import LEAST_CAPABILITY
from aotc.request import Chip, unique

_OF_HOPPER: tuple[MatmulFamily[Any], ...] = (WGMMA, MMA_SYNC_F64, PACK_K_MAJOR, PACK_3XTF32_WGMMA)
_OF_ANY_GPU: tuple[MatmulFamily[Any], ...] = (
    *(PACK_3XTF32, MMA_SYNC, PACK_F8_AS_F16, SIMT),
    *(IMPLICIT_MMA_SYNC, IMPLICIT_SIMT),
)
_OF_CPU: tuple[MatmulFamily[Any], ...] = (CPU_STREAMED, CPU_BLOCKED, IMPLICIT_CPU)
# By the names that files of what was measured have them: of products of matrices.
FAMILIES = {
    family.name: family
    for family in (*_OF_HOPPER, *_OF_ANY_GPU, GEMV)
    if family.problem_type is Problem
}
_HOPPER, _BLACKWELL = Chip("sm_90a"), Chip("sm_100a")
# Of matrices whose sizes are not known: with fewer tiles than this, multiprocessors have none, and
# smaller ones are taken, that suit the size SMALL.
_MANY_TILES = 100
# So few rows or columns of C are made by one pass over the other matrix.
_MOST_SMALL = 8
# What is timed: no kernel that is expected to take so many times as long as its family's fastest,
# and no more than so many of the family that the model chooses, and of each other one. (What
# families expect is hardly comparable.)
_FAR_SLOWER = 1.5
_MOST_CANDIDATES = 12
_MOST_OF_OTHERS = 3
# Below so many multiply-adds of a vector a loop is as fast, which has a thread for each element.
_LEAST_OF_VECTORS = 64 * 64

_P = TypeVar("_P", bound=Problem)
_Buffer = TypeVar("_Buffer", Matrix, EpilogueOperand)


class Choice(Struct, frozen=True):
    """A kernel for `problem`, whose matrices are aligned as that says: a family's variant, and what
    it is launched on, a chip or ANY_GPU. Fewer tiles than `least_tiles` are for the next choice,
    and so are more than `most_tiles` (0: any number), other numbers of rows than from the first of
    `rows` to the second, and a K of less than `least_k`. `entry` is what
    says that it is the fastest, where that was measured. `unknown`: what it takes sizes for that
    are not known. `capabilities`: the GPUs that it is launched on, where some of those that code is
    made for have not the shared memory; none stands for all of them."""

    family: MatmulFamily[Any]
    variant: Any
    problem: Problem
    target: str
    least_tiles: int = 0
    entry: Entry | None = None
    rows: tuple[int, int] | None = None
    unknown: int = SMALL
    most_tiles: int = 0
    least_k: int = 0
    capabilities: tuple[int, ...] = ()

    @property
    def sizes(self) -> Sizes:
        """The sizes that it is meant for."""
        m, n, k = sizes_at(self.problem, self.unknown)
        return (self.rows[1] if self.rows else m), n, k

    def expected_part(self, chip: Chip, unknown: int | None = None) -> float | None:
        """Of what the chip can at most, by the model; None for what has no model. At `sizes`, or
        where every size that is not known is `unknown`."""
        sizes = self.sizes if unknown is None else sizes_at(self.problem, unknown)
        if not self.family.has_cost_model or isinstance(self.problem, ImplicitGemm):
            return None
        least = least_clocks(self.problem, sizes, chip)
        if not least:
            return None
        clocks = self.family.expected_clocks(self.problem, self.variant, sizes, chip, at_most=True)
        return least / clocks

    def build(
        self, b: Builder, arguments: Arguments, epilogue: EpilogueBuilder | None = None
    ) -> None:
        """Inserts what launches the kernel."""
        self.family.build(b, self.problem, self.variant, arguments, epilogue)

    def function(self, name: str) -> str:
        """The host function that launches the kernel, as text."""
        return self.family.function(self.problem, self.variant, name)

    @property
    def is_of_copies(self) -> bool:
        """Whether it copies matrices that others take as they are: of large ones alone."""
        return self.family.packs_operands and self.family.is_for_large

    def __str__(self) -> str:
        where = {ANY_GPU: "GPUs", CPU: "the CPU"}.get(self.target, self.target)
        if self.capabilities:
            where = ", ".join(f"sm_{capability}" for capability in self.capabilities)
        return f"{self.family.describe(self.variant)} on {where}"


def choose(
    problem: Problem,
    chips: Sequence[Chip],
    measured: Sequence[Entry] = (),
    *,
    untested: bool = False,
    one_variant: bool = False,
    capabilities: Sequence[int] = (),
) -> list[Choice]:
    """The kernels for a problem, the best one first; the last one takes matrices at any address.
    None at all where loops are as good, or no kernel is right. `measured`: what was found fastest
    for this problem; raises ValueError for what this aotc has no more. `untested`: kernels may be
    taken that no GPU has run yet. `one_variant`: one kernel, of small tiles, is to do for all
    sizes and addresses. `capabilities`: all GPUs that run code for these chips; without that, the
    chips themselves."""
    offered = tuple(capabilities) or unique(chip.capability for chip in chips)
    if one_variant:
        return _fitting(_one_variant(problem, tuple(chips)), offered)
    if measured:
        return _fitting(_fastest(problem, chips, measured, untested=untested), offered)
    return _fitting(_fastest_by_model(problem, tuple(chips), untested=untested), offered)


@lru_cache(maxsize=256)
def _fastest_by_model(
    problem: Problem, chips: tuple[Chip, ...], *, untested: bool
) -> tuple[Choice, ...]:
    """Kept, for networks have many products of one size."""
    return _fastest(problem, chips, (), untested=untested)


def _fastest(
    problem: Problem, chips: Sequence[Chip], measured: Sequence[Entry], *, untested: bool
) -> tuple[Choice, ...]:
    """The kernels, whatever shared memory the chips have."""
    if not _is_worth_a_kernel(problem, chips):
        return ()
    if isinstance(problem, ImplicitGemm):
        return _choose_implicit_gemm(problem)
    found, others = [], []
    for chip in unique(_own_variant(chip) for chip in chips):
        if untested and (new := _untested(problem, chip)):
            found += new
            continue
        own = [entry for entry in measured if Chip(entry.chip).capability == chip.capability]
        small_m = _small_m(problem, chip)
        if own and any(one.rows is None for one in small_m):
            small_m = []
        found += small_m
        if small_m and small_m[0].rows is None:
            continue
        best = _best_on(problem, chip)
        chosen_when_known = best[0].family.chosen_when_known(problem) if len(best) > 1 else None
        if chosen_when_known is not None:
            family, variant = chosen_when_known
            found.append(replace(best[0], family=family, variant=variant, least_tiles=0))
        elif own:
            found += _measured(problem, own, chip)
        else:
            found += best
        if not own and (not best or best[-1].is_of_copies):
            others.append(chip)
    families = _families_of(problem)
    if others:
        found += _best(problem, families, ANY_GPU, others)
    for_any_address = [family for family in families if family.takes_any_address]
    anywhere = _best(_anywhere(problem), for_any_address, ANY_GPU, others or chips)[:1]
    return (*found, *_for_all(anywhere)) if anywhere else ()


def _is_worth_a_kernel(problem: Problem, chips: Sequence[Chip]) -> bool:
    """Whether it is not so small that loops are as good, and the chips can run kernels."""
    least = _LEAST_OF_VECTORS if 1 in (problem.m, problem.n) else LEAST_WORK
    if problem.m and problem.n and problem.k and problem.m * problem.n * problem.k < least:
        return False
    return all(chip.capability >= LEAST_CAPABILITY for chip in chips)


@lru_cache(maxsize=256)
def _one_variant(problem: Problem, chips: tuple[Chip, ...]) -> tuple[Choice, ...]:
    """One kernel for all sizes and addresses, on whatever GPU."""
    if not _is_worth_a_kernel(problem, chips):
        return ()
    if isinstance(problem, ImplicitGemm):
        return _choose_implicit_gemm(problem)[-1:]
    families = [family for family in _families_of(problem) if family.takes_any_address]
    return tuple(_for_all(_best(_anywhere(problem), families, ANY_GPU, chips)[-1:]))


def _fitting(choices: Sequence[Choice], offered: Sequence[int]) -> list[Choice]:
    """The choices, so that every GPU has the shared memory that its blocks need: behind one that
    some GPUs have no room for stands the best one that they have room for. None at all where some
    GPU would be left without a kernel for any address."""
    found = []
    for choice in choices:
        launched_on = offered if choice.target == ANY_GPU else [Chip(choice.target).capability]
        needed = choice.family.shared_bytes(choice.problem, choice.variant)
        able = tuple(one for one in launched_on if needed <= LIMITS[one].block_shared)
        others = tuple(one for one in launched_on if one not in able)
        if not others:
            found.append(choice)
            continue
        if able:
            found.append(replace(choice, capabilities=able))
        smaller = _smaller(replace(choice, entry=None), others)
        if smaller is None and choice is choices[-1]:
            return []
        found += [smaller] if smaller else []
    return found


@lru_cache(maxsize=64)
def _smaller(choice: Choice, capabilities: tuple[int, ...]) -> Choice | None:
    """In place of the choice, the best kernel that these GPUs have room for. Kept like those that
    are chosen of implicit GEMMs."""
    room, problem = block_shared_of(capabilities), choice.problem
    for family in unique([choice.family, *_OF_ANY_GPU]):
        able = [one for one in family.able(problem) if family.shared_bytes(problem, one) <= room]
        if able:
            best = able[0]
            if not choice.least_tiles:
                chips = [Chip(f"sm_{capability}") for capability in capabilities]
                best = _best_for(family, problem, able, chips)
            return replace(choice, family=family, variant=best)
    return None


def _untested(problem: Problem, chip: Chip) -> list[Choice]:
    """What no GPU has run yet."""
    if chip.capability != _BLACKWELL.capability:
        return []
    return _best(problem, [TCGEN05], _BLACKWELL.name, [_BLACKWELL])


def _for_all(choices: Sequence[Choice]) -> list[Choice]:
    """The same, for any number of tiles."""
    return [replace(choice, least_tiles=0) for choice in choices]


def _own_variant(chip: Chip) -> Chip:
    """Kernels for Hopper alone are for its own variant of the architecture."""
    return _HOPPER if chip.capability == _HOPPER.capability else chip


def _families_of(problem: Problem, chip: Chip | None = None) -> list[MatmulFamily[Any]]:
    """What can multiply on the chip, or on any GPU, the best one first."""
    smallest = min(size for size in (problem.m, problem.n, _MOST_SMALL + 1) if size is not None)
    if smallest <= _MOST_SMALL:
        return [GEMV, *_OF_ANY_GPU]
    return [*(_OF_HOPPER if chip == _HOPPER else ()), *_OF_ANY_GPU]


def _small_m(problem: Problem, chip: Chip) -> list[Choice]:
    """What few rows have kernels of their own for on the chip."""
    return [
        Choice(one.family, one.variant, one.problem, chip.name, rows=one.rows)
        for one in (small_m_kernels(problem) if chip == _HOPPER else [])
    ]


def _best_on(problem: Problem, chip: Chip) -> list[Choice]:
    """The best kernels of a family that is for this chip alone, if any of them is right, and one of
    them for any address, if it takes that without copies."""
    families = [family for family in _families_of(problem, chip) if family in _OF_HOPPER]
    best = _best(problem, families, chip.name, [chip])
    uncopied = [family for family in families if not family.packs_operands]
    unaligned = _for_all(_best(_anywhere(problem), uncopied, chip.name, [chip])[:1])
    return [*best, *(choice for choice in unaligned if choice not in best)]


def _measured(problem: Problem, entries: Sequence[Entry], chip: Chip) -> list[Choice]:
    """What the model says for one chip, but for those sizes that something was measured for."""
    found = []
    for choice in _best(problem, _families_of(problem, chip), chip.name, [chip]):
        for entry in entries:
            if entry.sizes == choice.sizes:
                family, variant = variant_of(entry, FAMILIES, problem)
                choice = replace(choice, family=family, variant=variant, entry=entry)
        found.append(choice)
    return found


def candidates(problem: Problem, chip: Chip, sizes: Sizes) -> list[Choice]:
    """The kernels for one chip that are worth being timed for a problem of these sizes: what would
    be chosen first, and others that are not expected to be far slower. None where the program
    chooses when it knows the sizes: what is fastest at one of them says little of others."""
    chip = _own_variant(chip)
    if any(one.family.describe_choice(one.variant) for one in choose(problem, [chip])):
        return []
    chosen = _best(problem, _families_of(problem, chip), chip.name, [chip])
    first = next((one for one in chosen if one.sizes == sizes), None)
    if first is None:
        return []
    found = [replace(first, target=chip.name)]
    for family in _families_of(problem, chip):
        room = chip.limits.block_shared
        able = [one for one in family.able(problem) if family.shared_bytes(problem, one) <= room]
        if family.has_cost_model:
            able = _not_far_slower(family, problem, able, sizes, chip)
        most = _MOST_CANDIDATES if family is first.family else _MOST_OF_OTHERS
        found += [replace(found[0], family=family, variant=one) for one in able[:most]]
    return list(unique(found))


def _not_far_slower(
    family: MatmulFamily[Any], problem: Problem, able: Sequence[Any], sizes: Sizes, chip: Chip
) -> list[Any]:
    """The variants that are not expected to be far slower than the family's fastest, that first."""
    clocks = [family.expected_clocks(problem, one, sizes, chip) for one in able]
    order = sorted(range(len(able)), key=clocks.__getitem__)
    return [able[i] for i in order if clocks[i] <= _FAR_SLOWER * clocks[order[0]]]


def _choose_implicit_gemm(problem: ImplicitGemm) -> tuple[Choice, ...]:
    """As they lie, and at any address."""
    found = []
    for one in dict.fromkeys((problem, _anywhere(problem))):
        for family in _OF_ANY_GPU:
            if able := family.able(one):
                found.append(Choice(family, _best_for(family, one, able, [_HOPPER]), one, ANY_GPU))
                break
    return tuple(found)


def choose_for_cpu(problem: Problem) -> Choice | None:
    """The kernel for the CPU device, of matrices at any address; None where loops must do."""
    problem = _anywhere(problem)
    for family in _OF_CPU:
        for variant in family.able(problem):
            return Choice(family, variant, problem, CPU)
    return None


def _best(
    problem: Problem, families: Sequence[MatmulFamily[Any]], target: str, chips: Sequence[Chip]
) -> list[Choice]:
    """The variant of the first family that can take the problem that is expected to be fastest on
    the chips. Of sizes that are not known, one for large matrices, one for smaller ones, and, where
    the family has such a one, one for few tiles."""
    is_known = bool(problem.m and problem.n and problem.k)
    for family in families:
        able = family.able(problem)
        if not able:
            continue
        first = Choice(family, able[0], problem, target)
        if family.is_bandwidth_bound:
            return [first]
        small = Choice(family, _best_for(family, problem, able, chips), problem, target)
        if is_known:
            return [small]
        large = replace(first, least_tiles=_MANY_TILES, unknown=LARGE)
        if large.is_of_copies:
            # What is small is not worth a copy.
            rest = families[families.index(family) + 1 :]
            return [large, *_best(problem, rest, target, chips)]
        return [large, *_of_few_tiles(small), small]
    return []


def _of_few_tiles(small: Choice) -> list[Choice]:
    """Of a family that has such a one, the kernel for where even smaller tiles are few."""
    depth, found = small.problem.k, small.family.few_tiles(small.problem)
    if found is None:
        return []
    variant, most, least_k = found
    if depth is not None and depth < least_k:
        return []
    tiny = replace(small, variant=variant, unknown=TINY, most_tiles=most, least_k=least_k)
    return [tiny]


def _best_for(
    family: MatmulFamily[Any], problem: Problem, able: Sequence[Any], chips: Sequence[Chip]
) -> Any:
    """The variant that is expected to be fastest where every size that is not known is SMALL. On
    several chips, the one that is the least slower than each chip's fastest, in all."""
    sizes = sizes_at(problem, SMALL)
    slower = [0.0] * len(able)
    for chip in chips:
        clocks = [family.expected_clocks(problem, one, sizes, chip) for one in able]
        slower = [sum_ + one / min(clocks) for sum_, one in zip(slower, clocks, strict=True)]
    return able[slower.index(min(slower))]


def _anywhere(problem: _P) -> _P:
    """The same, of matrices of which no address is known."""
    a, b, c = (_unaligned(matrix) for matrix in (problem.a, problem.b, problem.c))
    epilogue_operands = tuple(_unaligned(operand) for operand in problem.epilogue_operands)
    return replace(problem, a=a, b=b, c=c, epilogue_operands=epilogue_operands)


def _unaligned(buffer: _Buffer) -> _Buffer:
    return replace(buffer, alignment=ELEMENT_BYTES.get(buffer.element or "", 1))
