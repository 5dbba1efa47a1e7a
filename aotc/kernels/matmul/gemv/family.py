"""The family of small-M and small-N matmuls (GEMV)."""

from __future__ import annotations

from math import gcd

from aotc.builder import WIDEST_ACCESS
from aotc.chips import (
    H100,
    MAX_BLOCK_THREADS,
    MAX_THREAD_REGISTERS,
    REGISTERS,
    STATIC_SHARED_BYTES,
    WARP,
)
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.gemv.kernel import Kernel
from aotc.kernels.matmul.gemv.shape import Operand, Shape, Variant, operands_of
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.scalar import has_known_types

MOST_ROWS_OF_SMALL_M = 8  # rows or columns
_WIDEST_OF_BYTES = 8  # the widest load of 1-byte elements, which take many instructions
_MANY_ACCUMULATORS = 64
# Numbers of strips of a matrix that is not K-major, measured on an H200.
_FEW_STRIPS, _ENOUGH_STRIPS, _MANY_STRIPS = 120, 160, 2 * H100.multiprocessors


def _k_major_shapes(
    problem: Problem, small_rows: int, width: int
) -> list[tuple[int, int, int, int]]:
    """Candidates for one row, as (warps, warps along K, rows, unroll): as many loads at once as K
    has. (For more rows of the small matrix, two rows of the large one save loads and conversions of
    the small one.)"""
    if small_rows > 1:
        return []
    k = problem.k or 1 << 30
    step = WARP * width  # the elements along K that a warp loads at once
    along = next((warps for warps in (4, 2) if warps * step * 4 <= k), 1)
    return [(4, along, 1, 8 if 4 * step * 8 <= k else 4)]


def _other_shapes(large: Operand, small_rows: int, width: int) -> list[tuple[int, int, int, int]]:
    """Candidates, as (warps, lanes, unroll, split_k): the widest strips that leave enough of them
    for all multiprocessors, and fewer loads per thread of one row if there are many strips."""
    columns = (large.extent or 1 << 12) // width
    if small_rows > 1:
        # Sums of more lanes and warps that share K take longer, as there is one for each row.
        lanes = next((one for one in (WARP, 16, 8) if columns >= one * _MANY_STRIPS), 0)
        return [(warps, lanes, 8, 1) for warps in ((16, 8) if lanes else ())]
    lanes = 8 if columns >= 8 * _ENOUGH_STRIPS else 4 if columns >= 4 * _FEW_STRIPS else 2
    return [(16, lanes, 4 if columns > lanes * _MANY_STRIPS else 8, 1)]


class Gemv(MatmulFamily[Problem]):
    """Small-M and small-N matmuls, which read each element of the large matrix once."""

    name = "one pass over the large matrix"
    mnemonic = "gemv"
    target = ANY_GPU
    variant_type = Variant
    kernel_type = Kernel
    has_cost_model = False
    is_bandwidth_bound = True

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        if not has_known_types(problem):
            return False
        _, large = operands_of(problem, variant.is_right)
        width = variant.load_bytes // ELEMENT_BYTES[large.matrix.element]
        kernel = Shape(problem, variant)
        return (
            1 <= variant.warps <= MAX_BLOCK_THREADS // WARP
            and 0 < variant.load_bytes <= min(WIDEST_ACCESS, large.matrix.alignment)
            and width > 0
            and large.matrix.alignment % variant.load_bytes == 0
            and variant.lanes in (1, 2, 4, 8, 16, WARP)
            and variant.warps % variant.warps_along == 0
            and kernel.shared_bytes <= STATIC_SHARED_BYTES
            and kernel.registers <= min(MAX_THREAD_REGISTERS, REGISTERS // kernel.threads)
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """See `KernelFamily`. There are variants if the smaller of M and N is at most 16."""
        if not has_known_types(problem):
            return ()
        known = [size if size is not None else 1 << 30 for size in (problem.m, problem.n)]
        is_right = known[1] < known[0]
        small_rows = min(known)
        if small_rows > 16:
            return ()
        small_rows = max(small_rows, 1)
        _, large = operands_of(problem, is_right)
        element_bytes = ELEMENT_BYTES[large.matrix.element]
        widest = gcd(WIDEST_ACCESS, large.matrix.alignment)
        if large.is_k_major:
            shapes = (
                *_k_major_shapes(problem, small_rows, widest // element_bytes),
                *(
                    (4, 4, 2, 2),
                    (8, 1, 2, 2),
                    (8, 1, 4, 1),
                    (8, 1, 1, 4),
                    (8, 8, 1, 4),
                    (8, 2, 2, 2),
                ),
            )
            found = [
                Variant(small_rows, warps, widest, unroll, rows, along, is_right=is_right)
                for warps, along, rows, unroll in shapes
            ]
        else:
            # Narrower accesses, by more lanes, if a thread would have too many accumulators.
            if small_rows == 1 and element_bytes == 1:
                widest = min(widest, _WIDEST_OF_BYTES)
            while (
                widest > element_bytes and small_rows * widest // element_bytes > _MANY_ACCUMULATORS
            ):
                widest //= 2
            found = [
                Variant(
                    *(small_rows, warps, widest, unroll),
                    lanes=min(WARP, lanes * WIDEST_ACCESS // widest),
                    split_k=split_k,
                    is_right=is_right,
                )
                for warps, lanes, unroll, split_k in (
                    *_other_shapes(large, small_rows, widest // element_bytes),
                    *((16, 4, 8, 1), (16, 4, 4, 1), (16, 8, 8, 1), (16, 8, 4, 1), (16, 4, 16, 1)),
                    *((8, 8, 8, 4), (8, 16, 4, 8), (8, 4, 4, 1), (16, 2, 8, 1), (8, 8, 4, 1)),
                )
            ]
        able = (variant for variant in found if self.can_implement(problem, variant))
        return tuple(dict.fromkeys(able))

    def tile_name(self, problem: Problem, variant: Variant) -> str:
        tile = f"m{variant.small}_w{variant.warps}_b{variant.load_bytes}"
        return tile if variant.split_k == 1 else f"{tile}_splitk{variant.split_k}"

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        return Shape(problem, variant).shared_bytes


GEMV = Gemv()
