"""A kernel that is chosen for a matmul, and which variant of a family is best for a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.kernels.family import ANY_GPU, CPU
from aotc.kernels.matmul.family import MatmulFamily, least_clocks
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    EpilogueOperand,
    Matrix,
    Problem,
)
from aotc.kernels.matmul.tuned import SMALL, Entry, Sizes, sizes_at
from aotc.request import Chip

HOPPER = Chip("sm_90a")

_P = TypeVar("_P", bound=Problem)
_Buffer = TypeVar("_Buffer", Matrix, EpilogueOperand)


class Choice(Struct, frozen=True):
    """A kernel for `problem`, whose alignments it requires: a variant of a family. `target` is the
    chip that it is launched on, ANY_GPU or CPU.

    The kernel is used if C has at least `least_tiles` tiles and, unless `rows` is None, from
    `rows[0]` to `rows[1]` rows, and if K is at least `least_k`. Unless `most_tiles` is 0, C also
    must have at most so many tiles, or no more rows than one of them. With `shares_rows`, it and
    the next choice, and one for many tiles before it, are kernels of a family among which C's rows
    are divided (see `waves`). The next choice is tried otherwise.

    `entry`: the measurement that found it fastest, if any. `unknown`: the value that the cost model
    assumes for unknown sizes. `capabilities`: the compute capabilities that it is launched on, if
    some GPUs lack the shared memory; empty for all of them.
    """

    family: MatmulFamily[Any]
    variant: Any
    problem: Problem
    target: str
    least_tiles: int = 0
    entry: Entry | None = None
    rows: tuple[int, int] | None = None
    unknown: int = SMALL
    most_tiles: int = 0
    shares_rows: bool = False
    least_k: int = 0
    capabilities: tuple[int, ...] = ()

    @property
    def sizes(self) -> Sizes:
        """M, N and K that the kernel is chosen for. Unknown sizes are `unknown`."""
        m, n, k = sizes_at(self.problem, self.unknown)
        return (self.rows[1] if self.rows else m), n, k

    def expected_fraction(self, chip: Chip, unknown: int | None = None) -> float | None:
        """The fraction of the chip's peak that the cost model expects; None if there is no model.
        The sizes are `self.sizes`, or, if `unknown` is given, those with every unknown size set to
        it."""
        sizes = self.sizes if unknown is None else sizes_at(self.problem, unknown)
        if not self.family.has_cost_model or not self.problem.has_matrices:
            return None
        least = least_clocks(self.problem, sizes, chip)
        if not least:
            return None
        clocks = self.family.expected_clocks(self.problem, self.variant, sizes, chip, at_most=True)
        return least / clocks

    def build(self, b: Builder, arguments: Arguments) -> None:
        """Inserts the host code and the launch of the kernel at the insertion point."""
        self.family.build(b, self.problem, self.variant, arguments)

    def function(self, name: str) -> str:
        """The MLIR text of a host function that launches the kernel."""
        return self.family.function(self.problem, self.variant, name)

    @property
    def reads_without_padding(self) -> bool:
        """Whether the kernel reads the image without its padding, and pads it itself."""
        return self.problem.padded_operand is not None

    @property
    def packs_large_operands(self) -> bool:
        """Whether the kernel packs operands that other kernels read in place, which pays off for
        large matrices only."""
        return self.family.packs_operands and self.family.is_for_large

    def __str__(self) -> str:
        where = {ANY_GPU: "GPUs", CPU: "the CPU"}.get(self.target, self.target)
        if self.capabilities:
            where = ", ".join(f"sm_{capability}" for capability in self.capabilities)
        return f"{self.family.describe(self.variant)} on {where}"


def own_variant(chip: Chip) -> Chip:
    """sm_90a for sm_90, as Hopper's own kernels need its architecture-specific features; otherwise
    the chip itself."""
    return HOPPER if chip.capability == HOPPER.capability else chip


def best_for(
    family: MatmulFamily[Any], problem: Problem, able: Sequence[Any], chips: Sequence[Chip]
) -> Any:
    """The variant that is expected to be fastest if every unknown size is SMALL. For several chips,
    it is the one with the smallest sum of slowdowns relative to each chip's fastest variant."""
    sizes = sizes_at(problem, SMALL)
    slower = [0.0] * len(able)
    for chip in chips:
        clocks = [family.expected_clocks(problem, one, sizes, chip) for one in able]
        slower = [sum_ + one / min(clocks) for sum_, one in zip(slower, clocks, strict=True)]
    return able[slower.index(min(slower))]


def without_alignment(problem: _P) -> _P:
    """The problem, with matrices and epilogue operands aligned to their elements only."""
    a, b, c = (_unaligned(matrix) for matrix in (problem.a, problem.b, problem.c))
    epilogue_operands = tuple(_unaligned(operand) for operand in problem.epilogue_operands)
    return replace(problem, a=a, b=b, c=c, epilogue_operands=epilogue_operands)


def _unaligned(buffer: _Buffer) -> _Buffer:
    return replace(buffer, alignment=ELEMENT_BYTES.get(buffer.element or "", 1))
