"""Chooses the kernels of a matmul, with the GPUs and the sizes that each is for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec.structs import replace

from aotc.chips import LIMITS, block_shared_of
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.chosen import HOPPER, Choice, best_for, own_variant, without_alignment
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.gates import Gates
from aotc.kernels.matmul.gemv.family import GEMV
from aotc.kernels.matmul.gemv.gated import GATED_GEMV, gated_variants
from aotc.kernels.matmul.implicit_gemm.choice import IMPLICIT_OF_ANY_GPU, choose_implicit_gemm
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.least_work import LEAST_WORK, is_worth_a_kernel
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.mma_sync.hopper_f64 import MMA_SYNC_F64
from aotc.kernels.matmul.operand_packing import (
    PACK_3XTF32,
    PACK_3XTF32_WGMMA,
    PACK_F8_AS_F16,
    PACK_K_MAJOR,
)
from aotc.kernels.matmul.problem import (
    Problem,
)
from aotc.kernels.matmul.simt.family import SIMT
from aotc.kernels.matmul.small_m import passes, small_m_kernels
from aotc.kernels.matmul.tcgen05 import TCGEN05
from aotc.kernels.matmul.tuned import LARGE, SMALL, TINY, Entry, Sizes, sizes_at, variant_of
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.module_names import LEAST_CAPABILITY
from aotc.request import Chip, unique

_OF_HOPPER: tuple[MatmulFamily[Any], ...] = (WGMMA, MMA_SYNC_F64, PACK_K_MAJOR, PACK_3XTF32_WGMMA)
_OF_ANY_GPU: tuple[MatmulFamily[Any], ...] = (
    *(PACK_3XTF32, MMA_SYNC, PACK_F8_AS_F16, SIMT),
    *IMPLICIT_OF_ANY_GPU,
)
# The families of matmuls on GPUs, by their names in tuning files.
FAMILIES = {
    family.name: family
    for family in (*_OF_HOPPER, *_OF_ANY_GPU, GEMV)
    if family.problem_type is Problem
}
_BLACKWELL = Chip("sm_100a")
# For unknown sizes: with fewer tiles than this, some multiprocessors have none. Smaller tiles,
# which are chosen for the size SMALL, are used then.
_MANY_TILES = 100
# The most rows (or columns) of C that one pass over the other matrix computes.
_MOST_SMALL = 8
# Limits for the candidates that tuning times: a candidate's expected time relative to its family's
# fastest, the number of candidates of the family that the cost model chooses, and the number for
# each other family. (The estimates of different families are hardly comparable.)
_FAR_SLOWER = 1.5
_MOST_CANDIDATES = 12
_MOST_OF_OTHERS = 3
# With fewer multiply-adds in a matrix-vector product, loops are as fast as a kernel.
_LEAST_OF_VECTORS = 64 * 64
# With fewer multiply-adds in each matmul of a batch, most of a tile of a GPU's kernels is unused.
_LEAST_OF_MANY = 32 * 32 * 32


def choose(
    problem: Problem,
    chips: Sequence[Chip],
    measured: Sequence[Entry] = (),
    *,
    untested: bool = False,
    one_variant: bool = False,
    capabilities: Sequence[int] = (),
) -> list[Choice]:
    """The kernels for a problem, the best one first. The last one supports matrices at any address.
    The list is empty if loops are as fast, or no kernel supports the problem.

    `measured`: the kernels that measurements found fastest for this problem; raises ValueError for
    a kernel that this version of aotc no longer has. `untested`: allows kernels that no GPU has run
    yet. `one_variant`: chooses one kernel, of small tiles, for all sizes and addresses.
    `capabilities`: the compute capabilities of all GPUs that run code for these chips; if empty,
    those of the chips themselves."""
    offered = tuple(capabilities) or unique(chip.capability for chip in chips)
    if one_variant:
        return _fit_shared_memory(_one_variant(problem, tuple(chips)), offered)
    if measured:
        return _fit_shared_memory(_fastest(problem, chips, measured, untested=untested), offered)
    return _fit_shared_memory(_fastest_by_model(problem, tuple(chips), untested=untested), offered)


@lru_cache(maxsize=256)
def _fastest_by_model(
    problem: Problem, chips: tuple[Chip, ...], *, untested: bool
) -> tuple[Choice, ...]:
    """The fastest kernels by the cost model. It is cached, as networks have many equal matmuls."""
    return _fastest(problem, chips, (), untested=untested)


def _fastest(
    problem: Problem, chips: Sequence[Chip], measured: Sequence[Entry], *, untested: bool
) -> tuple[Choice, ...]:
    """The fastest kernels, regardless of the chips' shared memory."""
    if not _is_worth_a_kernel(problem, chips):
        return ()
    if isinstance(problem, ImplicitGemm):
        return choose_implicit_gemm(problem, chips)
    found, others = [], []
    for chip in unique(own_variant(chip) for chip in chips):
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
        runtime_choice = best[0].family.runtime_choice(problem) if len(best) > 1 else None
        if runtime_choice is not None:
            family, variant = runtime_choice
            found.append(replace(best[0], family=family, variant=variant, least_tiles=0))
        elif own:
            found += _measured(problem, own, chip)
        else:
            found += best
        if not own and (not best or best[-1].packs_large_operands):
            others.append(chip)
    families = _families_of(problem)
    if others:
        found += [
            Choice(one.family, one.variant, one.problem, ANY_GPU, rows=one.rows)
            for one in (passes(problem) if others != [HOPPER] else [])
        ]
        found += _best(problem, families, ANY_GPU, others)
    any_address = _at_any_address(problem, families, others or chips)
    return (*found, *any_address) if any_address else ()


def _at_any_address(
    problem: Problem, families: Sequence[MatmulFamily[Any]], chips: Sequence[Chip]
) -> list[Choice]:
    """The kernels for matrices at any address, the last of which is for any sizes. Rows of unknown
    length are as likely as not to be unaligned: they have a kernel for C of few tiles, too."""
    families = [family for family in families if family.takes_any_address]
    found = _best(without_alignment(problem), families, ANY_GPU, chips)
    if _has_open_rows(problem):
        return _for_any_tile_count(found[-1:])
    if any(one.pitch is None for one in (problem.a, problem.b, problem.c)):
        few = [one for one in found[:-1] if one.most_tiles]
        return [*few, *_for_any_tile_count(found[:1])]
    return _for_any_tile_count(found[:1])


def _has_open_rows(problem: Problem) -> bool:
    """Whether C has a known number of rows of any length, as the channels of an image. As likely as
    not, the rows are not aligned, and C is small."""
    return problem.c.pitch is None and problem.m is not None and problem.n is None


def _is_worth_a_kernel(problem: Problem, chips: Sequence[Chip]) -> bool:
    """Whether the problem is large enough for a kernel to beat loops, and all chips can run
    kernels."""
    if problem.m and problem.n and problem.k:
        work = problem.m * problem.n * problem.k
        is_vector = 1 in (problem.m, problem.n) and work >= _LEAST_OF_VECTORS
        # Many small matmuls fill a GPU, too.
        has_many = work >= _LEAST_OF_MANY and problem.likely_batch * work >= LEAST_WORK
        # A convolution's windows overlap, so that its loads are from caches.
        summed = problem.k if problem.has_matrices else 1
        if not (is_worth_a_kernel(work, summed) or is_vector or has_many):
            return False
    return all(chip.capability >= LEAST_CAPABILITY for chip in chips)


@lru_cache(maxsize=256)
def _one_variant(problem: Problem, chips: tuple[Chip, ...]) -> tuple[Choice, ...]:
    """One kernel for all sizes, addresses and GPUs."""
    if not _is_worth_a_kernel(problem, chips):
        return ()
    if isinstance(problem, ImplicitGemm):
        return choose_implicit_gemm(problem, chips)[-1:]
    families = [family for family in _families_of(problem) if family.takes_any_address]
    return tuple(
        _for_any_tile_count(_best(without_alignment(problem), families, ANY_GPU, chips)[-1:])
    )


def _fit_shared_memory(choices: Sequence[Choice], offered: Sequence[int]) -> list[Choice]:
    """The choices, each limited to the GPUs whose shared memory suffices. `offered`: the compute
    capabilities of all GPUs. A choice that does not fit some of them is followed by the best one
    that does. The result is empty if some GPU would have no kernel for matrices at any address."""
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
        smaller = _fallback_that_fits(replace(choice, entry=None), others)
        if smaller is None and choice is choices[-1]:
            return []
        found += [smaller] if smaller else []
    return found


@lru_cache(maxsize=64)
def _fallback_that_fits(choice: Choice, capabilities: tuple[int, ...]) -> Choice | None:
    """The best replacement of `choice` whose shared memory fits all these GPUs; None if there is
    none. (It is cached for the same reason as `_fastest_by_model`.)"""
    room, problem = block_shared_of(capabilities), choice.problem
    for family in unique([choice.family, *_OF_ANY_GPU]):
        able = [
            one
            for one in family.legal_variants(problem)
            if family.shared_bytes(problem, one) <= room
        ]
        if able:
            best = able[0]
            if not choice.least_tiles:
                chips = [Chip(f"sm_{capability}") for capability in capabilities]
                best = best_for(family, problem, able, chips)
            return replace(choice, family=family, variant=best)
    return None


def _untested(problem: Problem, chip: Chip) -> list[Choice]:
    """The kernels for the chip that no GPU has run yet."""
    if chip.capability != _BLACKWELL.capability:
        return []
    return _best(problem, [TCGEN05], _BLACKWELL.name, [_BLACKWELL])


def _for_any_tile_count(choices: Sequence[Choice]) -> list[Choice]:
    """The choices, for any number of tiles of C."""
    return [replace(choice, least_tiles=0, most_tiles=0) for choice in choices]


def _families_of(problem: Problem, chip: Chip | None = None) -> list[MatmulFamily[Any]]:
    """The families for the chip, or for any GPU if it is None, the best one first."""
    smallest = min(size for size in (problem.m, problem.n, _MOST_SMALL + 1) if size is not None)
    if smallest <= _MOST_SMALL:
        return [GEMV, *_OF_ANY_GPU]
    return [*(_OF_HOPPER if chip == HOPPER else ()), *_OF_ANY_GPU]


def _small_m(problem: Problem, chip: Chip) -> list[Choice]:
    """The chip's small-M kernels for the problem."""
    return [
        Choice(one.family, one.variant, one.problem, chip.name, rows=one.rows)
        for one in (small_m_kernels(problem) if chip == HOPPER else [])
    ]


def _best_on(problem: Problem, chip: Chip) -> list[Choice]:
    """The best kernels of this chip's own families, if one supports the problem, followed by a
    kernel for any address, if a family supports those without packing."""
    families = [family for family in _families_of(problem, chip) if family in _OF_HOPPER]
    best = _best(problem, families, chip.name, [chip])
    uncopied = [family for family in families if not family.packs_operands]
    unaligned = _for_any_tile_count(
        _best(without_alignment(problem), uncopied, chip.name, [chip])[:1]
    )
    return [*best, *(choice for choice in unaligned if choice not in best)]


def _measured(problem: Problem, entries: Sequence[Entry], chip: Chip) -> list[Choice]:
    """The cost model's choices for one chip. At sizes with a measurement, the measured kernel
    replaces the choice."""
    found = []
    for choice in _best(problem, _families_of(problem, chip), chip.name, [chip]):
        for entry in entries:
            if entry.sizes == choice.sizes:
                family, variant = variant_of(entry, FAMILIES, problem)
                choice = replace(choice, family=family, variant=variant, entry=entry)
        found.append(choice)
    return found


def candidates(problem: Problem, chip: Chip, sizes: Sizes) -> list[Choice]:
    """The kernels for one chip that tuning times for a problem of these sizes: the one that would
    be chosen, and others that are not expected to be far slower. The list is empty if the program
    chooses the kernel by its sizes at run time: the fastest kernel at one size says little about
    others."""
    chip = own_variant(chip)
    if any(one.family.describe_choice(one.variant) for one in choose(problem, [chip])):
        return []
    chosen = _best(problem, _families_of(problem, chip), chip.name, [chip])
    first = next((one for one in chosen if one.sizes == sizes), None)
    if first is None:
        return []
    found = [replace(first, target=chip.name)]
    for family in _families_of(problem, chip):
        room = chip.limits.block_shared
        able = [
            one
            for one in family.legal_variants(problem)
            if family.shared_bytes(problem, one) <= room
        ]
        if family.has_cost_model:
            able = _not_far_slower(family, problem, able, sizes, chip)
        most = _MOST_CANDIDATES if family is first.family else _MOST_OF_OTHERS
        found += [replace(found[0], family=family, variant=one) for one in able[:most]]
    return list(unique(found))


def _not_far_slower(
    family: MatmulFamily[Any], problem: Problem, able: Sequence[Any], sizes: Sizes, chip: Chip
) -> list[Any]:
    """The variants that are not expected to be far slower than the family's fastest, which is
    first."""
    clocks = [family.expected_clocks(problem, one, sizes, chip) for one in able]
    order = sorted(range(len(able)), key=clocks.__getitem__)
    return [able[i] for i in order if clocks[i] <= _FAR_SLOWER * clocks[order[0]]]


def choose_gated(problem: Problem, gates: Gates, chips: Sequence[Chip]) -> list[Choice]:
    """The kernels for GPUs that combine the gates as well, in the order in which they are tried;
    empty if there is none. They are for the known alignment of A and B; other operands are read
    element by element."""
    any_address = without_alignment(problem)
    problem = replace(any_address, a=problem.a, b=problem.b)
    variants = gated_variants(problem, gates)
    found = [Choice(GATED_GEMV, variant, problem, ANY_GPU) for variant in variants]
    if HOPPER in map(own_variant, chips):
        own = [replace(one, variant=replace(one.variant, uses_pdl=True)) for one in found]
        found = [*(replace(one, target=HOPPER.name) for one in own), *found]
    return found


def _best(
    problem: Problem, families: Sequence[MatmulFamily[Any]], target: str, chips: Sequence[Chip]
) -> list[Choice]:
    """The choices of the first family that supports the problem: the variant that is expected to be
    fastest on the chips. For unknown sizes, they are a variant for large matrices, one for few
    tiles, if the family has one, and one for smaller matrices."""
    is_known = bool(problem.m and problem.n and problem.k)
    for family in families:
        able = family.legal_variants(problem)
        if not able:
            continue
        first = Choice(family, able[0], problem, target)
        if family.is_bandwidth_bound:
            return [first]
        small = Choice(family, best_for(family, problem, able, chips), problem, target)
        if is_known:
            return [small]
        large = replace(first, least_tiles=_MANY_TILES, unknown=LARGE)
        if large.packs_large_operands:
            # Small matrices are not worth a copy.
            rest = families[families.index(family) + 1 :]
            return [large, *_best(problem, rest, target, chips)]
        is_useful = _is_useful_if_large(large, small, chips)
        return [*([large] if is_useful else []), *_of_few_tiles(small), small]
    return []


def _is_useful_if_large(large: Choice, small: Choice, chips: Sequence[Chip]) -> bool:
    """Whether `large` is expected to be faster than `small` on one of the chips if every unknown
    size is LARGE. Few known rows or columns, which leave a part of its tile unused or C without
    many tiles, make it slower. If neither is known, it is always useful."""
    problem, family = large.problem, large.family
    if problem.m is None and problem.n is None:
        return True
    clocks = partial(family.expected_clocks, problem, sizes=sizes_at(problem, LARGE))
    return any(
        clocks(variant=large.variant, chip=chip) < clocks(variant=small.variant, chip=chip)
        for chip in chips
    )


def _of_few_tiles(small: Choice) -> list[Choice]:
    """The family's kernel for C of few tiles, as a choice before `small`, if it has one."""
    k, found = small.problem.k, small.family.few_tiles(small.problem)
    if found is None or (k is not None and k < found.least_k):
        return []
    variant, most, least_k = found
    if variant.split_k == 1 and variant.m * variant.n >= small.variant.m * small.variant.n:
        return []
    tiny = replace(small, variant=variant, unknown=TINY, most_tiles=most, least_k=least_k)
    shares_rows = small.family.wave_tiles(small.problem, variant, SMALL) is not None
    return [replace(tiny, shares_rows=shares_rows)]
