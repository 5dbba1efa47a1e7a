"""Contractions whose operands are no matrices in memory, but are matmuls for all that.

A loop of such a contraction is one of C's rows (it moves in A and C), of its columns (in B and C),
of a batch (in all three) or of the depth (in A and B alone). An operand's element is where each
loop's index has moved it: the sum of indices times distances. So the address of an element of A is
that of its row, and of its depth behind that: a convolution is a product of its weights and of
windows that lie over each other in memory, and nothing has to be copied for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msgspec import Struct

from aotc.kernels.matmul.problem import Problem

# Dimensions of an operand along which an index moves, each with how many elements of it at once.
Moves = tuple[tuple[int, int], ...]
# Of a batch, mostly.
_LIKELY_SIZE = 8


class Loop(Struct, frozen=True):
    """`size` is that of dimension `source[1]` of operand `source[0]`: None if it is not known."""

    size: int | None
    source: tuple[str, int]
    a: Moves = ()
    b: Moves = ()
    c: Moves = ()


class ImplicitGemm(Problem, frozen=True, kw_only=True):
    """C = A · B, or C += A · B, of operands of any rank: `a`, `b` and `c` say their types, and what
    sizes they have as matrices. Loops of a role stand with the slowest first. `strides` are those
    of A, B and C, in elements, None for what is not known.
    """

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    depth: tuple[Loop, ...]
    strides: tuple[tuple[int | None, ...], ...]

    @property
    def operation(self) -> str:
        """See `Problem`. Operands of any rank have no layout that two letters name."""
        return "_".join(("implicit_gemm", *self._elements()))


def known_count(loops: Sequence[Loop]) -> int | None:
    sizes = [loop.size for loop in loops]
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None


def likely_count(loops: Sequence[Loop]) -> int:
    """The same, of sizes that are not known a guess."""
    return prod(_LIKELY_SIZE if loop.size is None else loop.size for loop in loops)
