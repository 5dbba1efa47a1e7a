"""Contractions whose operands are no matrices in memory, but are products of matrices for all that.

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

from aotc.kernels.indices import Index, IndexWriter
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.kernels.writer import Buffer

# Dimensions of an operand along which an index moves, each with how many elements of it at once.
Moves = tuple[tuple[int, int], ...]
# What a number of 32 bits without sign may count.
_SHORT = 2**31
# Of a batch, mostly.
_LIKELY_SIZE = 8


class Loop(Struct, frozen=True):
    """`size` is that of dimension `source[1]` of operand `source[0]`: None if it is not known."""

    size: int | None
    source: tuple[str, int]
    a: Moves = ()
    b: Moves = ()
    c: Moves = ()


class Gathered(Problem, frozen=True, kw_only=True):
    """C = A · B, or C += A · B, of operands of any rank: `a`, `b` and `c` say their types, and what
    sizes they have as matrices. Loops of a role stand with the slowest first. `strides` are those
    of A, B and C, in elements, None for what is not known.
    """

    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    depth: tuple[Loop, ...]
    strides: tuple[tuple[int | None, ...], ...]


class Digit(Struct, frozen=True):
    """A part of a number: it counts to `size`, each step is `step` elements."""

    size: Index
    step: Index


class Operand:
    """A buffer of `problem` as a row of elements, `%a`, `%b` or `%c`: made in host code."""

    def __init__(self, w: IndexWriter, problem: Gathered, name: str) -> None:
        number = "abc".index(name)
        matrix: Matrix = (problem.a, problem.b, problem.c)[number]
        strides = problem.strides[number]
        rank = len(strides)
        found = w.name()
        types = ", ".join([f"memref<{matrix.element}>", *["index"] * (1 + 2 * rank)])
        w.line(
            f"{found}:{2 + 2 * rank} = memref.extract_strided_metadata %{name} "
            f": {matrix.type} -> {types}"
        )
        self._strides: list[Index] = [
            f"{found}#{2 + rank + i}" if stride is None else stride
            for i, stride in enumerate(strides)
        ]
        self._w, self._name = w, name
        sizes = self._sizes(problem)
        self.batch, self.rows, self.columns, self.depth = (
            self._digits(loops, sizes)
            for loops in (problem.batch, problem.rows, problem.columns, problem.depth)
        )
        extent: Index = 1
        for digit in (*self.batch, *self.rows, *self.columns, *self.depth):
            extent = w.add(extent, w.multiply(w.subtract(digit.size, 1), digit.step))
        type_ = f"memref<?x{matrix.element}, strided<[1], offset: ?>>"
        flat = w.value(
            f"memref.reinterpret_cast %{name} to offset: [{found}#1], sizes: "
            f"[{w.index(extent)}], strides: [1] : {matrix.type} to {type_}"
        )
        self.buffer = Buffer(flat, type_, matrix.element)

    def _sizes(self, problem: Gathered) -> dict[Loop, Index]:
        loops = (*problem.batch, *problem.rows, *problem.columns, *problem.depth)
        return {loop: size_of(self._w, problem, loop) for loop in loops}

    def _digits(self, loops: Sequence[Loop], sizes: dict[Loop, Index]) -> list[Digit]:
        """Loops that follow each other in memory as they do in the role are one digit."""
        w = self._w
        found: list[Digit] = []
        for loop in loops:
            step: Index = 0
            for dimension, factor in getattr(loop, self._name):
                step = w.add(step, w.multiply(self._strides[dimension], factor))
            digit = Digit(sizes[loop], step)
            if found and found[-1].step == w.multiply(digit.size, digit.step):
                digit = Digit(w.multiply(found.pop().size, digit.size), digit.step)
            found.append(digit)
        return found


def size_of(w: IndexWriter, problem: Gathered, loop: Loop) -> Index:
    if loop.size is not None:
        return loop.size
    name, dimension = loop.source
    matrix = {"a": problem.a, "b": problem.b, "c": problem.c}[name]
    return w.value(f"memref.dim %{name}, {w.constant(dimension)} : {matrix.type}")


def count_of(w: IndexWriter, problem: Gathered, loops: Sequence[Loop]) -> Index:
    """How many turns loops have together."""
    count: Index = 1
    for loop in loops:
        count = w.multiply(count, size_of(w, problem, loop))
    return count


def known_count(loops: Sequence[Loop]) -> int | None:
    sizes = [loop.size for loop in loops]
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None


def likely_count(loops: Sequence[Loop]) -> int:
    """The same, of sizes that are not known a guess."""
    return prod(_LIKELY_SIZE if loop.size is None else loop.size for loop in loops)


def offset(w: IndexWriter, number: Index, digits: Sequence[Digit]) -> Index:
    """Where a number of a role leads to, in elements."""
    if not digits:
        return 0
    is_short = _is_short(digits)
    total: Index = 0
    for digit in reversed(digits[1:]):
        quotient, rest = _divide(w, number, digit.size, is_short)
        total = w.add(total, w.multiply(rest, digit.step))
        number = quotient
    return w.add(total, w.multiply(number, digits[0].step))


def _is_short(digits: Sequence[Digit]) -> bool:
    sizes = [digit.size for digit in digits]
    known = [size for size in sizes if isinstance(size, int)]
    return len(known) == len(sizes) and prod(known) < _SHORT


def _divide(w: IndexWriter, number: Index, by: Index, is_short: bool) -> tuple[Index, Index]:
    """Quotient and remainder: in 32 bits where that is enough, which is far faster."""
    if (isinstance(number, int) and isinstance(by, int)) or not is_short:
        return w.divide(number, by), w.remainder(number, by)
    if by == 1:
        return number, 0
    short = w.value(f"arith.index_cast {w.index(number)} : index to i32")
    divisor = w.constant(by, "i32")
    found = []
    for operation in ("divui", "remui"):
        part = w.value(f"arith.{operation} {short}, {divisor} : i32")
        found.append(w.value(f"arith.index_castui {part} : i32 to index"))
    return found[0], found[1]
