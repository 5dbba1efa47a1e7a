"""Copies B of an implicit GEMM to a layout that the kernel for the CPU device reads in place.

If several blocks compute rows of C, each would pack the same B. In the copy, the columns of an
image are contiguous for each k. Elements that are reached both by a step along K and by a step
along an image's rows are stored once: for a convolution without strides, the copy has an image for
each horizontal tap, but none for vertical taps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare
from aotc.kernels.cpu.vectors import VECTOR_BYTES, VECTOR_STRIDES, Vectors
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.implicit_gemm.cpu.image import image_of
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of, size_of
from aotc.kernels.matmul.implicit_gemm.problem import (
    ImplicitGemm,
    Loop,
    Moves,
    known_count,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Matrix
from aotc.mlir import ir

# With fewer than _LEAST_ROWS rows, or at most ROWS_OF_BLOCK rows and enough columns, one block
# computes all rows, and packs its columns while they are in a cache.
_LEAST_ROWS, ROWS_OF_BLOCK, _ENOUGH_COLUMNS = 96, 192, 576
# The limit of the copy of an image, in bytes.
MOST_BYTES = 2**24
# Operations whose regions are executed at most once.
_CONDITIONS = ("scf.if", "scf.execute_region")


class Copy(Struct, frozen=True):
    """The copy of B, which `problem` reads: a plane for each index of `outer` and of `channel`. A
    plane has an image for each index of `inner`, with the rows of `row`, of `width` columns.

    `image` and `pitch` are the sizes of an image and of a plane in elements, with padding.
    """

    problem: ImplicitGemm
    outer: tuple[Loop, ...]
    channel: Loop
    inner: tuple[Loop, ...]
    row: Loop
    column: Loop
    image: int
    pitch: int

    @property
    def width(self) -> int:
        return _size(self.column)

    def allocate(self, b: Builder, arguments: Arguments) -> AbstractContextManager[Value]:
        """Allocates the copy: see `allocated`."""
        unknown = [size_of(b, arguments, loop) for loop in self.outer if loop.size is None]
        return allocated(b, unknown, self.problem.b.type)


@contextmanager
def allocated(b: Builder, unknown: Sequence[Number], type_: str) -> Iterator[Value]:
    """A temporary of type `type_` with the dynamic sizes `unknown`. If there are none, it is
    allocated and freed outside of the conditions around the current host code, where it shares
    memory with other temporaries."""
    around = None if unknown else _outermost_condition(ir.InsertionPoint.current.block)
    before = nullcontext() if around is None else ir.InsertionPoint(around)
    with before:
        memref = b.alloc(unknown, type_)
    yield memref
    after = nullcontext() if around is None else ir.InsertionPoint.after(around)
    with after:
        b.op("memref.dealloc", [memref])


def copy_of(problem: ImplicitGemm) -> Copy | None:
    """The copy of the problem's B; None if it is not possible, or not worth its time."""
    if not _is_worth_it(problem):
        return None
    *images, line, column = problem.columns
    shared = [loop for loop in problem.k_loops if loop.b == line.b][:1]
    apart = [loop for loop in problem.k_loops if loop not in shared]
    if not apart or None in [loop.size for loop in (line, column, *problem.k_loops)]:
        return None
    (channel, *inner), outer = apart, (*problem.batch, *images)
    height = _size(line) + sum(_size(loop) - 1 for loop in shared)
    row = replace(line, size=height)
    element = computed_in(problem)
    vector = VECTOR_BYTES // ELEMENT_BYTES[element]
    # Vectors of columns begin at cache lines, except for vertical taps without strides. The odd
    # number of cache lines puts consecutive k into different sets.
    image = (-(-height * _size(column) // vector) | 1) * vector
    # One vector of padding, as rows are stored as whole vectors.
    pitch = prod(_size(loop) for loop in inner) * image + vector
    if pitch * _size(channel) * ELEMENT_BYTES[element] > MOST_BYTES:
        return None

    last = len(outer) + 1
    moves: dict[Loop, Moves] = {loop: ((number, 1),) for number, loop in enumerate(outer)}
    moves[channel] = ((last - 1, 1),)
    for number, loop in enumerate(inner):
        moves[loop] = ((last, prod(map(_size, inner[number + 1 :])) * image),)
    moves |= {line: ((last, _size(column)),), column: ((last, 1),)}
    moves |= dict.fromkeys(shared, moves[line])

    seen = problem_of_copy(problem, [*(loop.size for loop in outer), channel.size, pitch], moves)
    if image_of(seen) is None:
        return None
    return Copy(seen, outer, channel, tuple(inner), row, column, image, pitch)


def _is_worth_it(problem: ImplicitGemm) -> bool:
    rows, columns = problem.m, known_count(problem.columns)
    if len(problem.columns) < 2 or rows is None or rows < _LEAST_ROWS:
        return False
    if image_of(problem) is not None:
        return False
    return rows > ROWS_OF_BLOCK or (columns is not None and columns < _ENOUGH_COLUMNS)


def _outermost_condition(block: Any) -> Any:
    found = None
    while block.owner.name in _CONDITIONS:
        found = block.owner
        block = found.operation.block
    return found


def _size(loop: Loop) -> int:
    assert loop.size is not None
    return loop.size


def problem_of_copy(
    problem: ImplicitGemm, sizes: Sequence[int | None], moves: Mapping[Loop, Moves]
) -> ImplicitGemm:
    """The problem whose B is a contiguous copy of these sizes, of the type that is computed in.
    `moves`: those of each loop in the copy, which may be the source of their sizes."""

    def copied(loops: Sequence[Loop]) -> tuple[Loop, ...]:
        return tuple(_copied(loop, moves[loop]) for loop in loops)

    element = computed_in(problem)
    shape = "".join(f"{'?' if size is None else size}x" for size in sizes)
    inner = [sizes[i + 1 :] for i in range(len(sizes))]
    strides = tuple(
        None if None in rest else prod(size for size in rest if size is not None) for rest in inner
    )
    return replace(
        problem,
        b=Matrix(f"memref<{shape}{element}>", element, problem.b.sizes, None, VECTOR_BYTES),
        batch=copied(problem.batch),
        columns=copied(problem.columns),
        k_loops=copied(problem.k_loops),
        strides=(problem.strides[0], strides, problem.strides[2]),
    )


def _copied(loop: Loop, moves: Moves) -> Loop:
    source = ("b", moves[0][0]) if loop.source[0] == "b" else loop.source
    return replace(loop, b=moves, source=source)


class CopyKernel(Vectors):
    """Copies B; `build` inserts the kernel. A block copies a plane."""

    def __init__(self, b: Builder, problem: ImplicitGemm, copy: Copy) -> None:
        super().__init__(b, computed_in(problem))
        self.problem, self.copy = problem, copy

    def build(self, arguments: Arguments, memref: Value) -> None:
        """Fills the copy. In host code."""
        b, copy = self.b, self.copy
        # The layouts of B, with the loops of the copy in the roles of a matmul.
        of_copy = replace(
            self.problem,
            batch=copy.outer,
            rows=(copy.channel,),
            columns=(copy.row, copy.column),
            k_loops=copy.inner,
        )
        source = Operand(b, of_copy, arguments, "b")
        count = count_of(b, arguments, copy.outer)
        flat = Buffer(self._flat(memref, count))
        channels = _size(copy.channel)
        # A launch of no blocks is an error.
        with b.where(compare("ne", count, 0)), b.launch([channels, 1, count], 1, role="copy") as of:
            x, _, image = of.block_ids
            first = source.batch.offset(image) + source.m.offset(x)
            self._copy_plane(source, first, flat, (image * channels + x) * copy.pitch)

    def _flat(self, memref: Value, count: Number) -> Value:
        extent = count * (_size(self.copy.channel) * self.copy.pitch)
        type_ = f"memref<?x{self.type}, strided<[1], offset: ?>>"
        return self.b.reinterpret_cast(memref, self.b.value(0), [self.b.value(extent)], [1], type_)

    def _copy_plane(self, source: Operand, first: Number, target: Buffer, start: Number) -> None:
        b, copy = self.b, self.copy
        rows = _size(copy.row)
        with b.loop(0, prod(_size(loop) for loop in copy.inner)) as inner:
            of_inner = first + source.k.offset(inner.index)
            with b.loop(0, rows) as row:
                at = of_inner + source.n.offset(row.index * copy.width)
                to = start + inner.index * copy.image + row.index * copy.width
                self._copy_row(source, at, target, to)

    def _copy_row(self, source: Operand, at: Number, target: Buffer, to: Number) -> None:
        """Copies a row. It stores whole vectors; the next row overwrites the values past the last
        column."""
        b, width, stride = self.b, self.copy.width, source.n.modes[-1].stride
        if not isinstance(stride, int) or stride not in VECTOR_STRIDES:
            with b.loop(0, width) as j:
                value = self.load(source.buffer, [at + j.index * stride])
                self.store(value, target, [to + j.index])
            return
        whole = width - width % self.width
        with b.loop(0, whole, self.width) as j:
            vector = self.load_strided(source.buffer, at + j.index * stride, stride)
            self.store(vector, target, [to + j.index])
        if whole < width:
            masks = self.masks_of(width - whole, stride)
            vector = self.load_strided(source.buffer, at + whole * stride, stride, masks)
            self.store(vector, target, [to + whole])
