"""The parameters of a small-M or small-N kernel, and the sizes of a block that follow from them."""

from __future__ import annotations

from msgspec import Struct

from aotc.chips import (
    WARP,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.scalar import (
    accumulator_type_of,
)


class Variant(Struct, frozen=True):
    """Parameters of a kernel. A block computes `small` rows of the small matrix. Of the large
    matrix, it computes

    - if that is K-major: `rows` rows for each group of `warps_along` of its `warps`, which share K;
    - otherwise: the columns of `lanes` adjacent accesses; the other lanes, and all warps, share K.

    `load_bytes`: the bytes of an access to the large matrix, a power of two up to 16. `unroll`: the
    number of accesses that a thread starts before it uses the first. `split_k`: the number of
    blocks that share K. `is_right`: the small matrix is B. `uses_pdl`: programmatic dependent
    launch (from sm_90 on): the kernel may start while the previous one runs, and waits for its end
    itself. `gates`: the number of gates that B's columns are, which a block has the same part of
    each of; 1 if they are none.
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
    gates: int = 1


class Operand(Struct, frozen=True):
    """A or B. `extent`: its extent along M or N, None if unknown. `is_k_major`: K is contiguous."""

    matrix: Matrix
    extent: int | None
    is_k_major: bool


def operands_of(problem: Problem, is_right: bool) -> tuple[Operand, Operand]:
    """The small operand and the large one."""
    a = Operand(problem.a, problem.m, not problem.a.transposed)
    b = Operand(problem.b, problem.n, problem.b.transposed)
    return (b, a) if is_right else (a, b)


class Shape:
    """The sizes of a block and of a thread."""

    def __init__(self, problem: Problem, variant: Variant) -> None:
        self.type = accumulator_type_of(problem)
        self.small, self.large = operands_of(problem, variant.is_right)
        self.width = max(1, variant.load_bytes // ELEMENT_BYTES[self.large.matrix.element])
        self.threads = variant.warps * WARP
        if self.large.is_k_major:
            # A thread reads `rows` rows, at the same k.
            self.lanes_along, self.warps_along = WARP, variant.warps_along
            self.per_thread = variant.rows
            self.strip = variant.rows * (variant.warps // variant.warps_along)
        else:
            # A thread reads one row after the other, at the same columns.
            self.lanes_along, self.warps_along = WARP // variant.lanes, variant.warps
            self.per_thread = self.width
            self.strip = self.width * variant.lanes
        accumulators = variant.small * self.per_thread
        # An estimate of a thread's registers: accumulators, loaded and converted elements, factors,
        # addresses.
        at_once = variant.unroll * (variant.rows if self.large.is_k_major else 1)
        words = ELEMENT_BYTES[self.type] // 4
        self.registers = (accumulators + at_once * self.width) * words + variant.small + 22
        # The accumulators of warps in shared memory: (warp among those that share outputs, row of
        # the small matrix, row or column of the strip of the large one).
        self.shared = (self.warps_along, variant.small, self.strip)
        self.shared_bytes = self.warps_along * variant.small * self.strip * ELEMENT_BYTES[self.type]

        # The part of K that the block's threads load before they use any of it, and whether all of
        # this part is in bounds.
        first = self.lanes_along * self.warps_along * variant.unroll
        first *= self.width if self.large.is_k_major else 1
        extent, has_whole_k = self.large.extent, variant.split_k == 1 and first <= (problem.k or 0)
        is_whole = self.large.is_k_major or (extent or self.width + 1) % self.width == 0
        self.has_whole_start = has_whole_k and is_whole
