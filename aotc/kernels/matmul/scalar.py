"""Utilities of the families without tensor cores: types, operands, launches and epilogues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare, maximum
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    EpilogueBuilder,
    Matrix,
    Place,
    Problem,
)

_TYPES = ("f64", "f32", "f16", "bf16", "i32", "i16", "i8")


def accumulator_type_of(problem: Problem) -> str:
    """The type of the kernels' accumulators. Narrow accumulator types of a problem are widened; the
    result is rounded once, at the end."""
    narrow = {"f16": "f32", "bf16": "f32", "i16": "i32", "i8": "i32"}
    return narrow.get(problem.accumulator, problem.accumulator)


def has_known_types(problem: Problem) -> bool:
    """Whether the kernels support the element types, and convert them to the accumulator type
    without loss."""
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


# The batch, row and column of an element of C.
Coordinate = tuple[Number, Number, Number]


class Operands:
    """The buffers of a problem, and its sizes, which are ints if they are known."""

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
    """The thread block of a kernel that is being built: the block id, the thread id, and the
    dynamic shared memory (None if there is none)."""

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
    """Launches a kernel of `blocks` thread blocks along x. A grid cannot be empty: for 0 blocks,
    the grid is one block, which does nothing.

    With `overlaps_previous`, blocks may start before the previous kernel of the stream has ended
    (programmatic dependent launch, from sm_90 on). They wait for its end at once or, with
    `waits_later`, where the body calls `wait_for_previous`; before that, they may read constants
    only. The next kernel may start when all blocks have waited.
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
    """Waits for the end of the previous kernel of the stream, and then lets the next one start. In
    the other order, many kernels occupy the multiprocessors while they wait: an LSTM then took 2.5
    times as long as without programmatic dependent launch."""
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
    """The values to store for the accumulators of consecutive elements of a row of C, which are in
    bounds. `first`: the coordinates of the first one. `is_aligned`: its column is a multiple of the
    number of elements."""
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
