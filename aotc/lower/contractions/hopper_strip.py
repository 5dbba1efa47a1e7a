"""Products of which a few columns are left over when all tiles of a kernel of `hopper` are full.

5000 columns are 26 tiles of 192, and 8. Those 8 would cost as much as a tile that is full, for each
row of tiles; made by one pass over A (`skinny`) they cost as much as reading A.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.lower.contractions import hopper, skinny
from aotc.lower.contractions.hopper_cost import H200
from aotc.lower.contractions.hopper_variants import Variant
from aotc.lower.contractions.problem import ELEMENT_BYTES, Finish, Matrix, Problem

NAME = hopper.NAME
_MOST_COLUMNS = 8  # that `skinny` makes
# Bytes that a multiprocessor's part of memory brings in a clock, where all read.
_BYTES_A_CLOCK = 18
_MULTIPROCESSORS = 132
# What is expected to gain less is not worth a second kernel.
_GAIN = 0.97


class Strip(Struct, frozen=True):
    """`tiles` make the first `columns` of C, `rest` the others; `whole` would make all."""

    tiles: Variant
    rest: skinny.Variant
    columns: int
    whole: Variant

    @property
    def m(self) -> int:
        return self.tiles.m

    @property
    def n(self) -> int:
        return self.tiles.n


def strip(problem: Problem, able: Sequence[Variant], best: Variant) -> Strip | None:
    """What is expected to be faster than `best`, if anything is."""
    m, n, k = problem.m, problem.n, problem.k
    if not (m and n and k) or problem.batched or not _are_whole(problem):
        return None
    most = _GAIN * hopper.clocks(problem, best, m, n, k)
    found: tuple[float, Strip] | None = None
    for variant in able:
        width = variant.m * variant.down if variant.swaps else variant.n * variant.across
        columns = n // width * width
        if not 0 < n - columns <= _MOST_COLUMNS:
            continue
        rest = next(iter(skinny.variants(_rest_of(problem, columns))), None)
        if rest is None or not hopper.can_take(_first_of(problem, columns), variant):
            continue
        size = ELEMENT_BYTES[problem.a.element]
        clocks = hopper.clocks(problem, variant, m, columns, k) + H200.launch
        clocks += m * k * size / _MULTIPROCESSORS / _BYTES_A_CLOCK
        if clocks < (most if found is None else found[0]):
            found = clocks, Strip(variant, rest, columns, best)
    return None if found is None else found[1]


def variants(problem: Problem) -> tuple[Variant, ...]:
    return hopper.variants(problem)


def function(problem: Problem, strip: Strip, name: str, finish: Finish | None = None) -> str:
    """`func.func @name(%a, %b, %c)`, which launches both kernels."""
    # What is made of a sum may depend on its column.
    if finish is not None:
        return hopper.function(problem, strip.whole, name, finish)
    first, rest = _first_of(problem, strip.columns), _rest_of(problem, strip.columns)
    parts = [(first, hopper.function(first, strip.tiles, "part"))]
    parts.append((rest, skinny.function(rest, strip.rest, "part")))
    lines: list[str] = []
    for number, (part, text) in enumerate(parts):
        offset = 0 if number == 0 else strip.columns
        lines += _views(problem, part, offset, number)
        *_, body = text.strip().split("{\n", 1)
        body = body.rsplit("return", 1)[0]
        body = re.sub(r"%([bc])(?!\w)", rf"%\g<1>_part{number}", body)
        lines += ["  scf.execute_region {", body.rstrip(), "    scf.yield", "  }"]
    arguments = f"%a: {problem.a.type}, %b: {problem.b.type}, %c: {problem.c.type}"
    text = "\n".join(lines)
    return f"func.func @{name}({arguments}) {{\n{text}\n  return\n}}"


def _are_whole(problem: Problem) -> bool:
    """Whether B and C lie one row behind the other."""
    return all(matrix.type == _type(matrix, matrix.sizes) for matrix in (problem.b, problem.c))


def _type(matrix: Matrix, sizes: tuple[Any, Any], offset: int | None = None) -> str:
    layout = "" if offset is None else f", strided<[{matrix.pitch}, 1], offset: {offset}>"
    return f"memref<{sizes[0]}x{sizes[1]}x{matrix.element}{layout}>"


def _first_of(problem: Problem, columns: int) -> Problem:
    b, c = (_part(matrix, 0, columns) for matrix in (problem.b, problem.c))
    return replace(problem, b=b, c=c)


def _rest_of(problem: Problem, columns: int) -> Problem:
    count = (problem.n or 0) - columns
    b, c = (_part(matrix, columns, count) for matrix in (problem.b, problem.c))
    return replace(problem, b=b, c=c)


def _part(matrix: Matrix, first: int, count: int) -> Matrix:
    """Of C's columns: rows of a matrix that is transposed."""
    rows, columns = matrix.sizes
    assert matrix.pitch is not None
    offset = first * matrix.pitch if matrix.transposed else first
    sizes = (count, columns) if matrix.transposed else (rows, count)
    bytes_ = offset * ELEMENT_BYTES[matrix.element]
    alignment = min(matrix.alignment, bytes_ & -bytes_) if bytes_ else matrix.alignment
    return replace(matrix, type=_type(matrix, sizes, offset), sizes=sizes, alignment=alignment)


def _views(problem: Problem, part: Problem, first: int, number: int) -> list[str]:
    lines = []
    pairs = (("b", problem.b, part.b), ("c", problem.c, part.c))
    for name, whole, view in pairs:
        place = f"{first}, 0" if whole.transposed else f"0, {first}"
        sizes = ", ".join(map(str, view.sizes))
        lines.append(
            f"  %{name}_part{number} = memref.subview %{name}[{place}] [{sizes}] [1, 1] "
            f": {whole.type} to {view.type}"
        )
    return lines
