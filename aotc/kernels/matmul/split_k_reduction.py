"""Sums of parts of K → C: the second kernel of a product whose K several blocks share.

The first one stores the sums of each part; this one adds them in the order of K.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from aotc.kernels.indices import Index
from aotc.kernels.matmul.mma_sync.store import add_sums, results_of
from aotc.kernels.matmul.mma_sync.tiles import CHUNK_BYTES, Sizes
from aotc.kernels.matmul.mma_sync.writer import Writer
from aotc.kernels.matmul.problem import Finish, Matrix, Place, Problem, convert
from aotc.kernels.matmul.scalar import sum_type

# The buffer of sums: parts, those of a batch one after the other, of rows and columns.
SUMS = "%sums"
_THREADS = 256
# How many parts a thread reads at once, where it is not known how many there are.
_AT_ONCE = 4


def partial_of(problem: Problem) -> Problem:
    """The product whose C are sums of parts of K. Its rows begin at multiples of 16 bytes."""
    type_ = sum_type(problem)
    sums = Matrix(f"memref<?x?x?x{type_}>", type_, (problem.m, problem.n), None, CHUNK_BYTES)
    return replace(problem, c=sums, accumulator=type_, adds=False)


def allocate_parts(w: Writer, problem: Problem, splits: Index, sizes: Sizes) -> Index:
    """Makes the buffer, and says how many parts it has."""
    pitch = w.multiply(w.divide_up(sizes.n, 4), 4)
    parts = w.multiply(sizes.batches, splits)
    rooms = ", ".join(w.index(size) for size in (parts, sizes.m, pitch))
    w.line(f"{SUMS} = memref.alloc({rooms}) : {partial_of(problem).c.type}")
    return parts


def add_parts(
    w: Writer, problem: Problem, splits: Index, sizes: Sizes, finish: Finish | None
) -> None:
    """Launches the kernel, and gives the buffer back: a thread for each element of C, a block for a
    part of a row."""
    partial, c = partial_of(problem), problem.c
    across = w.divide_up(sizes.n, _THREADS)
    blocks = w.multiply(w.multiply(sizes.batches, sizes.m), across)
    with launch(w, blocks, _THREADS, 0):
        rows, across = w.index(sizes.m), w.index(across)
        line = w.value(f"arith.divui %bx, {across} : index")
        first = w.multiply(w.value(f"arith.remui %bx, {across} : index"), _THREADS)
        column = w.index(w.add(first, "%tx"))
        batch = w.value(f"arith.divui {line}, {rows} : index")
        row = w.value(f"arith.remui {line}, {rows} : index")
        with w.where(w.is_less(column, sizes.n)):
            total = _total(w, partial, splits, w.multiply(batch, splits), (row, column))
            at = w.at(*((batch,) if problem.batched else ()), row, column)
            if problem.adds:
                before = w.value(f"memref.load %c{at} : {c.type}")
                before = convert(w, before, c.element, partial.accumulator)
                total = add_sums(w, before, total, partial.accumulator)
            place = Place(batch if problem.batched else None, row, [column])
            [value] = results_of(w, problem, [total], place, finish)
            w.line(f"memref.store {value}, %c{at} : {c.type}")
    w.line(f"memref.dealloc {SUMS} : {partial.c.type}")


def _total(w: Writer, partial: Problem, splits: Index, first: Index, place: tuple[str, str]) -> str:
    """The sum of the parts from `first` on, in their order."""

    def part(number: Index) -> str:
        return w.value(f"memref.load {SUMS}{w.at(w.add(first, number), *place)} : {partial.c.type}")

    def with_some(step: str, total: str) -> list[str]:
        # Read at once: each alone would wait for memory. Behind the last one, that one again.
        begin = w.add(w.multiply(step, _AT_ONCE), 1)
        numbers = [w.add(begin, number) for number in range(_AT_ONCE)]
        read = [part(w.least(number, w.subtract(splits, 1))) for number in numbers]
        for number, one in zip(numbers, read, strict=True):
            more, is_one = add_sums(w, total, one, type_), w.is_less(number, splits)
            total = w.value(f"arith.select {is_one}, {more}, {total} : {type_}")
        return [total]

    type_ = partial.accumulator
    if isinstance(splits, int):
        total = part(0)
        for number in range(1, splits):
            total = add_sums(w, total, part(number), type_)
        return total
    steps = w.divide_up(w.subtract(splits, 1), _AT_ONCE)
    [total] = w.loop(steps, [(type_, part(0))], with_some)
    return total


@contextmanager
def launch(w: Writer, blocks: Index, threads: int, shared: int) -> Iterator[None]:
    """The body of a launch, which is none where there are no blocks: the runtime refuses those."""
    with w.where(w.is_less(0, blocks)):
        grid, one, block = w.index(blocks), w.index(1), w.index(threads)
        bytes_ = w.constant(shared, "i32")
        w.line(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {grid}, %gy = {one}, %gz = {one})")
        w.line(f"    threads(%tx, %ty, %tz) in (%sx = {block}, %sy = {one}, %sz = {one})")
        w.open(f"    dynamic_shared_memory_size {bytes_} {{")
        yield
        w.line("gpu.terminator")
        w.close()
