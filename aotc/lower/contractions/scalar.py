"""What families without tensor cores share: types, sizes, how a sum becomes an element of C."""

from __future__ import annotations

from aotc.lower.contractions.indices import Index
from aotc.lower.contractions.problem import ELEMENT_BYTES, Finish, Matrix, Problem, convert
from aotc.lower.contractions.writer import Buffer, Writer

_TYPES = ("f64", "f32", "f16", "bf16", "i32", "i8")


def sum_type(problem: Problem) -> str:
    """What products are added as: narrow accumulators are wider until the end, rounded once."""
    narrow = {"f16": "f32", "bf16": "f32", "i8": "i32"}
    return narrow.get(problem.accumulator, problem.accumulator)


def has_known_types(problem: Problem) -> bool:
    """Whether elements become the accumulator's type without loss."""
    accumulator = problem.accumulator
    elements = [problem.a.element, problem.b.element]
    if problem.adds:
        elements.append(problem.c.element)
    return accumulator in _TYPES and all(
        element in _TYPES
        and (element[0] == "i") == (accumulator[0] == "i")
        and (element == accumulator or ELEMENT_BYTES[element] < ELEMENT_BYTES[accumulator])
        for element in elements
    )


class Operands:
    """The buffers of a function, and their sizes: numbers where they are known."""

    def __init__(self, writer: Writer, problem: Problem) -> None:
        self.problem = problem
        matrices = (("%a", problem.a), ("%b", problem.b), ("%c", problem.c))
        self.a, self.b, self.c = (
            Buffer(name, matrix.type, matrix.element) for name, matrix in matrices
        )

        def size(buffer: Buffer, matrix: Matrix, axis: int) -> Index:
            known = matrix.sizes[axis]
            if known is not None:
                return known
            return writer.dim(buffer.name, buffer.type, axis + problem.batched)

        self.m, self.n = size(self.c, problem.c, 0), size(self.c, problem.c, 1)
        self.k = size(self.a, problem.a, 0 if problem.a.transposed else 1)
        self.batches: Index = writer.dim("%c", problem.c.type, 0) if problem.batched else 1

    def at(self, batch: Index, row: Index, column: Index) -> list[Index]:
        """The indices of an element, as it lies."""
        return [batch, row, column] if self.problem.batched else [row, column]

    @property
    def signature(self) -> str:
        return f"%a: {self.a.type}, %b: {self.b.type}, %c: {self.c.type}"


def finished(
    writer: Writer,
    operands: Operands,
    finish: Finish | None,
    total: str,
    at: tuple[Index, Index, Index],
) -> str:
    """What is stored for a sum, at a batch, a row and a column inside of C."""
    problem, type_ = operands.problem, sum_type(operands.problem)
    if problem.adds:
        [old] = writer.load(operands.c, operands.at(*at))
        total = writer.sum(convert(writer, old, problem.c.element, type_), total, type_)
    rounded = convert(writer, total, type_, problem.accumulator)
    if finish:
        return finish(writer, rounded, writer.index(at[1]), writer.index(at[2]))
    return convert(writer, rounded, problem.accumulator, problem.c.element)
