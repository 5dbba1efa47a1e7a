"""GEMM on Hopper (sm_90a) by TMA and wgmma: legality checks and variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from aotc.builder import FLOAT8
from aotc.kernels.family import SM_90A
from aotc.kernels.hopper.cta import SHARED_BYTES
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.hopper.tma import is_aligned
from aotc.kernels.matmul.family import MatmulFamily, least_clocks, named_tile
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma.cluster_split_k import can_split, exchanged_bytes
from aotc.kernels.matmul.wgmma.grid_split_k import can_slice
from aotc.kernels.matmul.wgmma.kernel import (
    Kernel,
    epilogue_bytes,
    operands,
    shared_bytes,
    stage_bytes,
)
from aotc.kernels.matmul.wgmma.transpose_of_c_store import can_store_transpose
from aotc.kernels.matmul.wgmma.variants import (
    MOST_PROMOTED,
    Variant,
    accumulators_of,
    has_fragments,
    shapes,
)
from aotc.request import Chip

# The largest number of accumulators per thread for which there are registers, by the number of
# consumers; and the same if fragments of A take registers, too.
_MOST_ACCUMULATORS = {1: 128, 2: 192, 3: 96}
_MOST_ACCUMULATORS_BESIDE_FRAGMENTS = {1: 128, 2: 128, 3: 64}
# The largest number of pipeline stages; and that of the largest tiles, measured to be best.
_MOST_STAGES, _MOST_OF_LARGEST = 8, 3
_GROUP = 16


def _are_types_known(problem: Problem) -> bool:
    a, b, c = problem.a, problem.b, problem.c
    if a.element == b.element == "i8":
        is_known = problem.accumulator == "i32" and c.element == "i32"
    elif a.element == b.element == "f32":
        is_known = problem.allow_tf32 and problem.accumulator == c.element == "f32"
    else:
        is_same = a.element == b.element and a.element in ("f16", "bf16")
        is_known = (
            (is_same or (a.element in FLOAT8 and b.element in FLOAT8))
            and problem.accumulator == "f32"
            and c.element in ("f16", "bf16", "f32")
        )
    # wgmma reads elements of other sizes than 16 bits from shared memory only if they are K-major.
    # (The left operand may be in registers.)
    return is_known and (ELEMENT_BYTES[a.element] == 2 or not a.transposed)


def _can_transpose(problem: Problem, variant: Variant) -> bool:
    if ELEMENT_BYTES[problem.a.element] == 2:
        return not variant.transposes_c or can_store_transpose(problem)
    return variant.transposes_c == has_fragments(problem) and (
        not variant.transposes_c or _has_room_for_fragments(variant)
    )


def _with_stages(problem: Problem, shape: Variant) -> Variant:
    """The variant with as many stages as fit shared memory."""
    room = SHARED_BYTES - epilogue_bytes(shape)
    blocks = shape.cluster * shape.cluster_split_k
    is_largest = (shape.n, shape.m, blocks, shape.transposes_c) == (256, 128, 1, False)
    most = _MOST_OF_LARGEST if is_largest else _MOST_STAGES
    return replace(shape, stages=min(room // stage_bytes(problem, shape), most))


def _has_room_for_fragments(variant: Variant) -> bool:
    """Whether there are enough registers for fragments of A."""
    if variant.promotes:
        return (
            accumulators_of(variant) + 16 * (variant.m_blocks - 1)
            <= MOST_PROMOTED[variant.consumers]
        )
    return accumulators_of(variant) <= _MOST_ACCUMULATORS_BESIDE_FRAGMENTS[variant.consumers]


def _is_possible(variant: Variant) -> bool:
    most = MOST_PROMOTED if variant.promotes else _MOST_ACCUMULATORS
    return (
        variant.n in range(16, 257, 16)
        and variant.consumers in most
        and variant.m_blocks >= 1
        and variant.m <= 256
        and accumulators_of(variant) <= most[variant.consumers]
        and variant.n % (16 * variant.parts) == 0
        and (variant.promotes or variant.parts == 1)
        and variant.stages >= 2
        and variant.group >= 1
        and variant.buffers in (1, 2)
        and variant.blocks >= variant.cluster
        and (variant.down, variant.across) in ((1, 1), (2, 1), (1, 2), (2, 2))
        and (variant.consumers == 2 or not variant.ping_pong)
    )


class Wgmma(MatmulFamily[Problem]):
    """See the module's docstring."""

    name = "wgmma"
    mnemonic = "wgmma"
    target = SM_90A
    variant_type = Variant
    kernel_type = Kernel

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        return (
            _are_types_known(problem)
            and problem.k != 0
            and is_aligned(problem.a)
            and is_aligned(problem.b)
            and _is_possible(variant)
            and _can_transpose(problem, variant)
            and can_split(problem, variant)
            and can_slice(problem, variant)
            and shared_bytes(problem, variant) <= SHARED_BYTES
            and exchanged_bytes(variant) <= variant.stages * stage_bytes(problem, variant)
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """The candidates, the best one for large problems first."""
        return self.variants_of(problem, shapes(problem))

    def variants_of(self, problem: Problem, given: Sequence[Variant]) -> tuple[Variant, ...]:
        """The variants of the shapes `given`, with as many stages as fit shared memory."""
        found = []
        for shape in given:
            shape = replace(shape, group=_GROUP // shape.down)
            both = (_with_stages(problem, replace(shape, buffers=buffers)) for buffers in (2, 1))
            found.append(max(both, key=lambda one: one.stages))
        return tuple(variant for variant in found if self.can_implement(problem, variant))

    def expected_clocks(
        self,
        problem: Problem,
        variant: Variant,
        sizes: tuple[int, int, int],
        chip: Chip,
        *,
        at_most: bool = False,
    ) -> float:
        pitches = (matrix.pitch or 0 for matrix in (problem.a, problem.b))
        given = cost.Sizes(*sizes, *pitches)
        clocks = float(cost.clocks(*operands(problem, variant), variant, given))
        return max(clocks, least_clocks(problem, sizes, chip)) if at_most else clocks

    def runtime_choice(self, problem: Problem) -> tuple[MatmulFamily[Problem], Any]:
        from aotc.kernels.matmul.wgmma.dispatch_table import WGMMA_TABLE

        return WGMMA_TABLE, WGMMA_TABLE.table(problem, self.legal_variants(problem))

    def tile_name(self, problem: Problem, variant: Variant) -> str:
        k = SWIZZLE_BYTES // ELEMENT_BYTES[problem.a.element]
        tile = named_tile(
            *(variant.m, variant.n, k, variant.stages),
            cluster=variant.cluster,
            clustersplitk=variant.cluster_split_k,
            gridsplitk=variant.grid_split_k,
        )
        if variant.ping_pong:
            tile += "_pingpong"
        if variant.small_m:
            tile += f"_m{variant.small_m}"
        return f"{tile}_transposed" if variant.transposes_c else tile

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return shared_bytes(problem, variant)


WGMMA = Wgmma()
