"""What the families without tensor cores share: types, operands, launches and epilogues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    EpilogueBuilder,
    Matrix,
    Place,
    Problem,
)
from aotc.numbers import Number, Value, compare, maximum

_TYPES = ("f64", "f32", "f16", "bf16", "i32", "i16", "i8")


def sum_type(problem: Problem) -> str:
    """The type of the kernels' accumulators: wider than what the problem says if that is narrow.
    They are rounded once, at the end."""
    narrow = {"f16": "f32", "bf16": "f32", "i16": "i32", "i8": "i32"}
    return narrow.get(problem.accumulator, problem.accumulator)


def has_known_types(problem: Problem) -> bool:
    """Whether elements become the accumulator's type without loss."""
    accumulator = problem.accumulator
    elements = [problem.a.element, problem.b.element]
    if problem.adds:
        elements.append(problem.c.element)
    if problem.a.unsigned or problem.b.unsigned:
        return False
    return accumulator in _TYPES and all(
        element in _TYPES
        and (element[0] == "i") == (accumulator[0] == "i")
        and (element == accumulator or ELEMENT_BYTES[element] < ELEMENT_BYTES[accumulator])
        for element in elements
    )


# Batch, row and column of an element of C.
Coordinate = tuple[Number, Number, Number]


class Operands:
    """The buffers of a problem, and its sizes: ints where they are known."""

    def __init__(self, b: Builder, problem: Problem, arguments: Arguments) -> None:
        self.problem = problem
        self.a, self.b, self.c = map(Buffer, (arguments.a, arguments.b, arguments.c))

        def size(buffer: Buffer, matrix: Matrix, axis: int) -> Number:
            known = matrix.sizes[axis]
            return b.dim(buffer.value, axis + problem.batched) if known is None else known

        self.m, self.n = size(self.c, problem.c, 0), size(self.c, problem.c, 1)
        self.k = size(self.a, problem.a, 0 if problem.a.transposed else 1)
        self.batches: Number = b.dim(self.c.value, 0) if problem.batched else 1

    def at(self, batch: Number, row: Number, column: Number) -> list[Number]:
        """The indices of an element of a buffer."""
        return [batch, row, column] if self.problem.batched else [row, column]


class Block(Struct, frozen=True):
    """A thread block that is being built: its id, the id of the thread, and the dynamic shared
    memory, None if there is none."""

    index: Number
    thread: Number
    shared: Value | None


@contextmanager
def launch(
    b: Builder,
    blocks: Number,
    threads: int,
    shared_bytes: int = 0,
    *,
    overlaps_previous: bool = False,
    waits_later: bool = False,
    role: str = "",
) -> Iterator[Block]:
    """A kernel of `blocks` thread blocks along x. A grid cannot be empty: if it has to be, it is of
    one block, which does nothing.

    With `overlaps_previous`, blocks may start before the previous kernel of the stream has ended,
    for which they wait (programmatic dependent launch, from sm_90 on): at once, or, with
    `waits_later`, where they call `wait_for_previous`, before which they read constants alone. The
    next kernel may start when all blocks have waited.
    """
    is_known = isinstance(blocks, int) and blocks > 0
    blocks_or_one = blocks if is_known else maximum(blocks, 1)
    with b.launch(blocks_or_one, threads, shared_bytes, role=role) as grid:
        if overlaps_previous and not waits_later:
            wait_for_previous(b)
        shared = b.shared_memory() if shared_bytes else None
        with b.where(is_known or compare("ult", grid.block, blocks)):
            yield Block(grid.block, grid.thread, shared)


def wait_for_previous(b: Builder) -> None:
    """Waits for the end of the previous kernel of the stream, and lets the next one start. Not in
    the other order: an LSTM, many of whose kernels then wait on the multiprocessors at once, took
    2.5 times as long as without programmatic dependent launch."""
    for action in ("wait", "launch_dependents"):
        b.op("nvvm.griddepcontrol", kind=f"#nvvm<grid_dep_action {action}>")


def elements_of_c(
    b: Builder,
    operands: Operands,
    epilogue: EpilogueBuilder | None,
    accumulators: Sequence[Value],
    first: Coordinate,
    *,
    is_aligned: bool = False,
) -> Sequence[Value]:
    """What is stored for the accumulators of neighbours in a row, of which the first is at `first`;
    all are inside of C. `is_aligned`: its column is a multiple of their number."""
    problem = operands.problem
    batch, row, column = first
    columns = [column + number for number in range(len(accumulators))]
    if problem.adds:
        accumulators = [
            _added_to_c(b, operands, accumulator, (batch, row, own))
            for accumulator, own in zip(accumulators, columns, strict=True)
        ]
    sums = [b.convert(one, problem.accumulator) for one in accumulators]
    if epilogue is None:
        return [b.convert(one, problem.c.element) for one in sums]
    outer = b.value(batch) if problem.batched else None
    place = Place(outer, b.value(row), b.values(columns), is_aligned)
    return epilogue(b, sums, place)


def _added_to_c(b: Builder, operands: Operands, accumulator: Value, at: Coordinate) -> Value:
    old = b.load(operands.c, operands.at(*at))
    return b.add(b.convert(old, accumulator.type), accumulator)
