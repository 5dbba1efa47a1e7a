"""A block of a product with few rows or columns in numbers, which follow from a `Variant`."""

from __future__ import annotations

from msgspec import Struct

from aotc.chips import (
    WARP,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.scalar import (
    sum_type,
)


class Variant(Struct, frozen=True):
    """A block's part: `small` rows of the small matrix (a block for each so many), of the large one

    - if it is K-major: `rows` rows for each `warps_along` of its `warps`, which share K;
    - if it is not: `lanes` accesses side by side; the other lanes, and all warps, share K.

    `load_bytes`: the bytes of an access to the large matrix, a power of two up to 16. `unroll`: how
    many accesses a thread begins before it uses the first. `split_k`: so many blocks share K.
    `is_right`: the small matrix is B. `uses_pdl`: programmatic dependent launch (from sm_90 on):
    the kernel may start while the one before it runs, and waits for that one itself.
    """

    small: int
    warps: int
    load_bytes: int
    unroll: int
    rows: int = 1
    warps_along: int = 1
    lanes: int = WARP
    split_k: int = 1
    is_right: bool = False
    uses_pdl: bool = False


class Operand(Struct, frozen=True):
    """A or B. `extent`: its rows or columns of C, None if unknown. `is_k_major`: K is
    contiguous."""

    matrix: Matrix
    extent: int | None
    is_k_major: bool


def operands_of(problem: Problem, is_right: bool) -> tuple[Operand, Operand]:
    """The small operand and the large one."""
    a = Operand(problem.a, problem.m, not problem.a.transposed)
    b = Operand(problem.b, problem.n, problem.b.transposed)
    return (b, a) if is_right else (a, b)


class Shape:
    """What a block and a thread have, in numbers."""

    def __init__(self, problem: Problem, variant: Variant) -> None:
        self.type = sum_type(problem)
        self.small, self.large = operands_of(problem, variant.is_right)
        self.width = max(1, variant.load_bytes // ELEMENT_BYTES[self.large.matrix.element])
        self.threads = variant.warps * WARP
        if self.large.is_k_major:
            # A thread has accesses to `rows` rows, at the same k.
            self.lanes_along, self.warps_along = WARP, variant.warps_along
            self.per_thread = variant.rows
            self.strip = variant.rows * (variant.warps // variant.warps_along)
        else:
            # A thread has accesses to one row after the other, at the same columns.
            self.lanes_along, self.warps_along = WARP // variant.lanes, variant.warps
            self.per_thread = self.width
            self.strip = self.width * variant.lanes
        accumulators = variant.small * self.per_thread
        # About what a thread needs: accumulators, what it has loaded and converted, factors,
        # addresses.
        at_once = variant.unroll * (variant.rows if self.large.is_k_major else 1)
        words = ELEMENT_BYTES[self.type] // 4
        self.registers = (accumulators + at_once * self.width) * words + variant.small + 22
        # Sums of warps: of each that shares outputs, of each row of `small`, of the strip.
        self.shared = (self.warps_along, variant.small, self.strip)
        self.shared_bytes = self.warps_along * variant.small * self.strip * ELEMENT_BYTES[self.type]

        # Of K, what the block's threads load before they use any of it; whether all of them do.
        first = self.lanes_along * self.warps_along * variant.unroll
        first *= self.width if self.large.is_k_major else 1
        extent, has_whole_k = self.large.extent, variant.split_k == 1 and first <= (problem.k or 0)
        is_whole = self.large.is_k_major or (extent or self.width + 1) % self.width == 0
        self.has_whole_start = has_whole_k and is_whole
