"""Contractions that are matmuls, although their operands are not matrices in memory.

Each loop of such a contraction belongs to M (it moves in A and C), to N (B and C), to a batch (all
three) or to K (A and B only). The offset of an operand's element is the sum of the loops' indices
times their strides. So the address of an element of A is the offset of its row plus that of its k:
a convolution multiplies its weights by windows that overlap in memory, and copies nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msgspec import Struct

from aotc.kernels.matmul.problem import LIKELY_SIZE, Problem

# The dimensions of an operand that a loop moves along, each with its step per iteration.
Moves = tuple[tuple[int, int], ...]


class Loop(Struct, frozen=True):
    """A loop, and how it moves in A, B and C. Its `size`, None if unknown, is that of dimension
    `source[1]` of operand `source[0]`."""

    size: int | None
    source: tuple[str, int]
    a: Moves = ()
    b: Moves = ()
    c: Moves = ()


class Padding(Struct, frozen=True):
    """A is an image with zeros around it: the image's type, its sizes and strides (None: not
    known), and how many zeros are in front of it along each dimension."""

    type: str
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    low: tuple[int, ...]


class ImplicitGemm(Problem, frozen=True, kw_only=True):
    """C = A · B, or C += A · B, of operands of any rank: `a`, `b` and `c` have their types, and
    their sizes as matrices.

    `batch`, `rows` (M), `columns` (N) and `k_loops` (K) are the loops by role, the slowest first.
    `strides` are those of A, B and C, in elements, None for unknown ones. With `padding`, kernels
    are given the image in place of A.
    """

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    k_loops: tuple[Loop, ...]
    strides: tuple[tuple[int | None, ...], ...]
    padding: Padding | None = None

    @property
    def likely_batch(self) -> int:
        return likely_count(self.batch)

    @property
    def operation(self) -> str:
        """See `Problem`. Operands of any rank have no layout that two letters name."""
        return "_".join(("implicit_gemm", *self._elements()))


def known_count(loops: Sequence[Loop]) -> int | None:
    sizes = [loop.size for loop in loops]
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None


def likely_count(loops: Sequence[Loop]) -> int:
    """The number of iterations of the loops, with a guess for unknown sizes."""
    return prod(LIKELY_SIZE if loop.size is None else loop.size for loop in loops)
