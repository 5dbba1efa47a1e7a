"""Contractions that are matmuls, although their operands are not matrices in memory.

Each loop of such a contraction belongs to M (it indexes A and C), to N (B and C), to the batch (all
three) or to K (A and B only). The offset of an operand's element is the sum of the loops' indices
times their strides. The address of an element of A is thus the offset of its row plus the offset of
its k. A convolution multiplies its weights by windows that overlap in memory, without any copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from aotc.kernels.matmul.problem import LIKELY_SIZE, Problem

# The dimensions of an operand that a loop moves along, each with its step per iteration.
Moves = tuple[tuple[int, int], ...]


class Loop(Struct, frozen=True):
    """A loop, and the dimensions of A, B and C that it moves along. Its number of iterations,
    `size` (None if unknown), is the size of dimension `source[1]` of operand `source[0]`."""

    size: int | None
    source: tuple[str, int]
    a: Moves = ()
    b: Moves = ()
    c: Moves = ()


class Padding(Struct, frozen=True):
    """The image that an operand is padded from, "a" or "b": its type, its sizes and strides (None:
    unknown), and `low`, the number of zeros in front of it along each dimension."""

    operand: str
    type: str
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    low: tuple[int, ...]


class ImplicitGemm(Problem, frozen=True, kw_only=True):
    """C = A · B, or C += A · B, of operands of any rank. `a`, `b` and `c` have the types of the
    operands, and their sizes as matrices.

    `batch`, `rows` (M), `columns` (N) and `k_loops` (K) are the loops by role, the slowest first.
    `strides` are those of A, B and C, in elements, None for unknown ones. With `padding`, kernels
    read the image in place of the operand. `is_near`: offsets along K are known to fit 32 bits.
    """

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    k_loops: tuple[Loop, ...]
    strides: tuple[tuple[int | None, ...], ...]
    padding: Padding | None = None
    is_near: bool = True

    @property
    def has_matrices(self) -> bool:
        return False

    @property
    def padded_operand(self) -> str | None:
        return None if self.padding is None else self.padding.operand

    @property
    def offset_type(self) -> str:
        """The type of the entries in a kernel's table of offsets along K."""
        return "i32" if self.is_near else "i64"

    @property
    def offset_bytes(self) -> int:
        return 4 if self.is_near else 8

    def without_padding(self, operand: str) -> ImplicitGemm:
        return replace(self, padding=None) if self.padded_operand == operand else self

    @property
    def likely_batch(self) -> int:
        return likely_count(self.batch)

    @property
    def operation(self) -> str:
        """See `Problem`. The name has no layout, as operands may have any rank."""
        return "_".join(("implicit_gemm", *self._elements()))


def step_of(strides: Sequence[int | None], moves: Moves) -> int | None:
    """The distance in elements that a loop with these moves goes in an operand with these strides;
    None if a stride is unknown."""
    total = 0
    for dimension, factor in moves:
        stride = strides[dimension]
        if stride is None:
            return None
        total += stride * factor
    return total


def loop_step(problem: ImplicitGemm, loop: Loop, name: str) -> int | None:
    """The stride of a loop in an operand, in elements; None if it is unknown."""
    return step_of(problem.strides["abc".index(name)], getattr(loop, name))


def known_count(loops: Sequence[Loop]) -> int | None:
    sizes = [loop.size for loop in loops]
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None


def likely_count(loops: Sequence[Loop], unknown: int = LIKELY_SIZE) -> int:
    """The number of iterations of the loops together, with `unknown` for unknown sizes."""
    return prod(unknown if loop.size is None else loop.size for loop in loops)
