"""Recognizes `linalg.generic` operations on buffers that are contractions, as an `ImplicitGemm`.

They are convolutions with any strides and dilations, and matmuls with several dimensions for rows,
columns, K or the batch, in any order in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.generics import maps_of
from aotc.kernels.matmul.implicit_gemm.problem import (
    ImplicitGemm,
    Loop,
    Moves,
    known_count,
    step_of,
)
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.kernels.matmul.recognition import Matmul, accumulator_of, fill_of, multiplies
from aotc.mlir import ir

_WIDEST_ACCESS = 16  # bytes
# The largest stride along M or N for which threads are assigned along it rather than along K.
_NEAR = 4
_TOO_FAR = 2**31
_NAMES = "abc"


class _Operand(Struct, frozen=True):
    """A buffer, its strides in elements (None: unknown), known divisors of these, and the moves of
    each loop in it. `is_contiguous`: its elements are, in the order of its dimensions."""

    value: Any
    strides: tuple[int | None, ...]
    divisors: tuple[int, ...]
    is_contiguous: bool
    moves: tuple[Moves, ...]

    def step(self, loop: int) -> int | None:
        """The stride of the loop in elements; 0 if it does not move in the operand."""
        return step_of(self.strides, self.moves[loop])

    def divisor(self, loop: int) -> int:
        """A known divisor of the loop's stride."""
        return math.gcd(*(self.divisors[at] * factor for at, factor in self.moves[loop]))


def recognise_implicit_gemm(
    generic: Any, roots: Roots, *, allow_tf32: bool, needs_near: bool = True
) -> Matmul | None:
    """The contraction that the operation computes. None if it is no contraction, or kernels do not
    support its operands. `needs_near`: offsets along K must be known to fit 32 bits, which makes
    the tables of the kernels for GPUs small."""
    inputs, outputs = ops.operand_groups(generic)
    values = [*inputs, *outputs]
    if len(inputs) != 2 or len(outputs) != 1 or generic.results:
        return None
    if not all(isinstance(value.type, ir.MemRefType) for value in values):
        return None
    if not multiplies(generic):
        return None
    count = len(ir.ArrayAttr(generic.attributes["iterator_types"]))
    operands = []
    for value, map_ in zip(values, maps_of(generic), strict=True):
        operand = _operand(value, map_, count)
        if operand is None:
            return None
        operands.append(operand)
    return _product(generic, operands, count, roots, allow_tf32=allow_tf32, needs_near=needs_near)


def _operand(value: Any, map_: Any, count: int) -> _Operand | None:
    type_ = ir.MemRefType(value.type)
    if str(type_.element_type) not in ELEMENT_BYTES or type_.memory_space is not None:
        return None
    moves: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for dimension, result in enumerate(map_.results):
        factors = _factors(result)
        if factors is None:
            return None
        for loop, factor in factors.items():
            moves[loop].append((dimension, factor))
    found, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = tuple(None if stride == unknown else int(stride) for stride in found)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
    is_contiguous = bool(type_.layout == identity)
    # An unknown stride of a contiguous buffer is a multiple of the known sizes behind it.
    sizes = [1 if type_.is_dynamic_dim(at) else int(type_.shape[at]) for at in range(type_.rank)]
    divisors = tuple(
        (math.prod(sizes[at + 1 :]) if is_contiguous else 1) if stride is None else stride
        for at, stride in enumerate(strides)
    )
    return _Operand(value, strides, divisors, is_contiguous, tuple(map(tuple, moves)))


def _factors(expression: Any) -> dict[int, int] | None:
    """The factor of each loop, if the expression is a sum of loop indices times positive constants;
    otherwise None."""
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position: 1}
    if isinstance(expression, ir.AffineConstantExpr):
        return {} if expression.value == 0 else None
    if isinstance(expression, ir.AffineMulExpr):
        factor, inner = expression.rhs, _factors(expression.lhs)
        if not isinstance(factor, ir.AffineConstantExpr) or inner is None or factor.value <= 0:
            return None
        return {loop: number * factor.value for loop, number in inner.items()}
    if isinstance(expression, ir.AffineAddExpr):
        left, right = _factors(expression.lhs), _factors(expression.rhs)
        if left is None or right is None:
            return None
        return left | {loop: left.get(loop, 0) + number for loop, number in right.items()}
    return None


def _product(
    generic: Any,
    operands: Sequence[_Operand],
    count: int,
    roots: Roots,
    *,
    allow_tf32: bool,
    needs_near: bool,
) -> Matmul | None:
    one, other, result = operands
    roles = _roles(operands, count)
    if roles is None:
        return None
    if _is_right(result, roles):
        one, other = other, one
        roles = roles[0], roles[2], roles[1], roles[3]
    batch, rows, columns, k_loops = roles
    if not rows or not columns or not k_loops:
        return None
    a, b, c = one, other, result
    loops = _loops((a, b, c), count)
    if loops is None:
        return None
    is_near = _is_near(a, loops, k_loops) and _is_near(b, loops, k_loops)
    if needs_near and not is_near:
        return None
    ordered = [
        [loops[loop] for loop in _ordered(operand, _turning(loops, role))]
        for operand, role in ((c, batch), (c, rows), (c, columns), (a, k_loops))
    ]
    m, n, k = (known_count(role) for role in ordered[1:])
    steps = {_NAMES[i]: operand for i, operand in enumerate((a, b, c))}
    numbers = {loop: number for number, loop in loops.items()}

    def matrix(name: str, sizes: tuple[int | None, int | None], outer: int) -> Matrix:
        operand, inner = steps[name], 3
        by_tile = [operand.step(numbers[ordered[i][-1]]) for i in (outer, inner)]
        is_along = by_tile[1] != 1 or (by_tile[0] is not None and by_tile[0] <= _NEAR)
        if name == "c":
            is_along, inner = False, 2
        role = ordered[outer if is_along else inner]
        alignment = _alignment(operand, loops, [numbers[loop] for loop in role])
        transposed = is_along if name == "a" else name == "b" and not is_along
        type_ = ir.MemRefType(operand.value.type)
        return Matrix(str(type_), str(type_.element_type), sizes, 0, alignment, transposed)

    left, right, made = matrix("a", (m, k), 1), matrix("b", (k, n), 2), matrix("c", (m, n), 1)
    left, right = (_as_it_lies(one) for one in (left, right))
    fill = fill_of(generic, c.value, roots)
    problem = ImplicitGemm(
        left,
        right,
        made,
        accumulator_of(made.element),
        adds=fill is None,
        batched=False,
        allow_tf32=allow_tf32,
        batch=tuple(ordered[0]),
        rows=tuple(ordered[1]),
        columns=tuple(ordered[2]),
        k_loops=tuple(ordered[3]),
        strides=tuple(operand.strides for operand in (a, b, c)),
        is_near=is_near,
    )
    return Matmul(generic, a.value, b.value, c.value, problem, fill)


def _as_it_lies(matrix: Matrix) -> Matrix:
    rows, columns = matrix.sizes
    sizes = (columns, rows) if matrix.transposed else (rows, columns)
    return Matrix(
        matrix.type, matrix.element, sizes, matrix.pitch, matrix.alignment, matrix.transposed
    )


_Roles = tuple[list[int], list[int], list[int], list[int]]


def _roles(operands: Sequence[_Operand], count: int) -> _Roles | None:
    """The loops of the batch, of rows, of columns and of K, if the first operand is A."""
    roles: _Roles = ([], [], [], [])
    places = {(True, True, True): 0, (True, False, True): 1, (False, True, True): 2}
    places[True, True, False] = 3
    for loop in range(count):
        role = places.get(tuple(bool(operand.moves[loop]) for operand in operands))  # type: ignore[arg-type]
        if role is None:
            return None
        roles[role].append(loop)
    return roles


def _is_right(result: _Operand, roles: _Roles) -> bool:
    """Whether the first operand is B: its loops are the ones that are contiguous in C."""
    _, of_one, of_other, _ = roles
    ones = [result.step(loop) for loop in of_one]
    others = [result.step(loop) for loop in of_other]
    return 1 in ones and 1 not in others


def _loops(operands: Sequence[_Operand], count: int) -> dict[int, Loop] | None:
    """Each loop by its number. None if no operand has a dimension whose size is a loop's number of
    iterations."""
    found = {}
    for number in range(count):
        sources = []
        for name, operand in zip(_NAMES, operands, strict=True):
            type_ = operand.value.type
            for dimension in range(type_.rank):
                movers = [loop for loop in range(count) if _moves(operand, loop, dimension)]
                if movers == [number] and (dimension, 1) in operand.moves[number]:
                    is_known = not type_.is_dynamic_dim(dimension)
                    size = int(type_.shape[dimension]) if is_known else None
                    sources.append((size, (name, dimension)))
        if not sources:
            return None
        # An unknown size is that of C, if possible: a kernel may read another image than the padded
        # one, whose sizes may differ.
        size, source = min(sources, key=lambda one: (one[0] is None, one[1][0] != "c"))
        found[number] = Loop(size, source, *(operand.moves[number] for operand in operands))
    return found


def _moves(operand: _Operand, loop: int, dimension: int) -> bool:
    return any(along == dimension for along, _ in operand.moves[loop])


def _turning(loops: dict[int, Loop], role: Sequence[int]) -> list[int]:
    """The role's loops with more than one iteration; at least one, if it has any."""
    return [loop for loop in role if loops[loop].size != 1] or list(role[:1])


def _is_near(operand: _Operand, loops: dict[int, Loop], k_loops: Sequence[int]) -> bool:
    """Whether the offsets along K are known to fit 32 bits."""
    total = 0
    for number in k_loops:
        size, step = loops[number].size, operand.step(number)
        if size is None or step is None:
            return False
        total += size * step
    return total < _TOO_FAR


def _ordered(operand: _Operand, loops: Sequence[int]) -> list[int]:
    """The loops by their strides in the operand, the slowest first; in their own order if a stride
    is unknown, unless the operand is contiguous."""
    steps = {loop: operand.step(loop) for loop in loops}
    if None in steps.values() and not operand.is_contiguous:
        return list(loops)

    def order(loop: int) -> tuple[float, int]:
        # Of a contiguous buffer, unknown strides are those of the first dimensions.
        step, first = steps[loop], min((at for at, _ in operand.moves[loop]), default=0)
        return (-math.inf, first) if step is None else (-step, 0)

    return sorted(loops, key=order)


def _alignment(operand: _Operand, loops: dict[int, Loop], role: Sequence[int]) -> int:
    """The alignment in bytes of each run of contiguous elements along the role's last loop; an
    element's size if they are not contiguous."""
    size = ELEMENT_BYTES[str(operand.value.type.element_type)]
    steps = {number: operand.step(number) for number in loops if loops[number].size != 1}
    *outer, last = role
    if steps.get(last, 1) != 1:
        return size
    others = [operand.divisor(number) for number in steps if number not in role]
    # Loops that are contiguous with the inner ones extend the run.
    run = loops[last].size
    is_one = True
    for number in reversed(outer):
        is_one = is_one and run is not None and steps[number] == run
        extent = loops[number].size
        if is_one and run is not None:
            run = None if extent is None else run * extent
        else:
            others.append(operand.divisor(number))
    if run is None:
        return size
    return math.gcd(_WIDEST_ACCESS, run * size, *(step * size for step in others))
