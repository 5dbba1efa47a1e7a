"""What families without tensor cores share: types, sizes, how a sum becomes an element of C."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.kernels.indices import Index
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Finish,
    Matrix,
    Place,
    Problem,
    convert,
)
from aotc.kernels.writer import Buffer, Writer

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


def finished(
    writer: Writer,
    operands: Operands,
    finish: Finish | None,
    totals: Sequence[str],
    at: tuple[Index, Index, Index],
    *,
    is_whole: bool = False,
) -> Sequence[str]:
    """What is stored for sums, of which the first is at a batch, a row and a column; all are inside
    of C. `is_whole`: the column is a multiple of how many they are."""
    problem, type_ = operands.problem, sum_type(operands.problem)
    batch, row, column = at
    columns = [writer.add(column, number) for number in range(len(totals))]
    if problem.adds:
        totals = [
            _added(writer, operands, total, (batch, row, place))
            for total, place in zip(totals, columns, strict=True)
        ]
    rounded = [convert(writer, total, type_, problem.accumulator) for total in totals]
    if finish:
        front = writer.index(batch) if problem.batched else None
        places = [writer.index(place) for place in columns]
        return finish(writer, rounded, Place(front, writer.index(row), places, is_whole))
    return [convert(writer, total, problem.accumulator, problem.c.element) for total in rounded]


def _added(writer: Writer, operands: Operands, total: str, at: tuple[Index, Index, Index]) -> str:
    """A sum, and what C has there."""
    type_ = sum_type(operands.problem)
    [old] = writer.load(operands.c, operands.at(*at))
    return writer.sum(convert(writer, old, operands.c.element, type_), total, type_)
