"""Recognizes `linalg.generic` operations on buffers that are matmuls, as a `Problem` each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.access import accesses_no_element, reads_shape_only
from aotc.analysis.aliasing import Roots
from aotc.analysis.generics import maps_of
from aotc.kernels.matmul.fusion.collapsed import Groups, collapsed_type, known_factor
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.vectors import row_type
from aotc.mlir import ir, linalg

WIDENING = ("arith.extf", "arith.extsi")
# The element types of C that are their own accumulator type. Other floats accumulate in f32, and
# other integers in i32.
_WIDE = ("f64", "f32", "i32")


class Matmul(Struct):
    """A matmul in a module: the operation, its operands, and its problem.

    `fill`: the operation that fills C with zeros before the matmul, if no other operation uses C in
    between. `a_groups`, `c_groups`: the consecutive dimensions of A and of C that are collapsed to
    each dimension of the problem; None if nothing is collapsed. `has_rows`: A and C are vectors,
    which the problem has as matrices of one row. `others`: the operands that the operation reads
    besides A and B. `pad`: the operation that writes A as `source` with zeros around it, if the
    problem includes this padding.
    """

    operation: Any
    a: Any
    b: Any
    c: Any
    problem: Problem
    fill: Any | None
    has_rows: bool = False
    a_groups: Groups | None = None
    c_groups: Groups | None = None
    others: Sequence[Any] = ()
    pad: Any | None = None
    source: Any | None = None

    @property
    def least_rows(self) -> int:
        """The fewest rows that a C with elements has, by its known sizes: those of a batch of
        sequences are a multiple of the sequences' length."""
        if self.problem.m is not None or self.problem.batched or self.has_rows:
            return 1
        return known_factor(self.c, self.c_groups[0] if self.c_groups else [0])


def recognise_matmul(
    generic: Any, roots: Roots, *, allow_tf32: bool, allow_3xtf32: bool = False
) -> Matmul | None:
    """The matmul that the operation computes. None if it is no matmul, or has layouts that no
    kernel supports.

    `allow_tf32` and `allow_3xtf32`: see `Problem`. Operations with the flag `fast` allow tf32, too.
    """
    inputs, outputs = ops.operand_groups(generic)
    if len(inputs) != 2 or len(outputs) != 1 or generic.results:
        return None
    values = [*inputs, *outputs]
    if not all(isinstance(value.type, ir.MemRefType) for value in values) or not multiplies(
        generic
    ):
        return None
    roles = _roles(generic)
    if roles is None:
        return None
    a, b, c = (values[i] for i in roles.order)
    rows = [list(range(roles.outer)), [roles.outer]] if roles.outer > 1 else None
    right = matrix_of(b, roles.is_batched, roles.transposed[1])
    if roles.has_rows:
        left, result = (
            matrix_of_type(row_type(ir.MemRefType(one.type)), batched=roles.is_batched)
            for one in (a, c)
        )
    else:
        left = matrix_of(a, roles.is_batched, roles.transposed[0], rows)
        result = matrix_of(c, roles.is_batched, transposed=False, groups=rows)
    if left is None or right is None or result is None:
        return None
    fill = fill_of(generic, c, roots)
    problem = Problem(
        left,
        right,
        result,
        accumulator_of(result.element),
        adds=fill is None,
        batched=roles.is_batched,
        allow_tf32=allow_tf32 or _is_fast(generic),
        allow_3xtf32=allow_3xtf32,
    )
    return Matmul(generic, a, b, c, problem, fill, roles.has_rows, rows, rows)


def multiplies(generic: Any) -> bool:
    """Whether the body is c + a * b. The operands of the multiplication may be extended."""
    *body, end = ops.content(generic)
    names = [op.name for op in body if op.name not in WIDENING]
    if names not in (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"]):
        return False
    arguments = list(generic.regions[0].blocks[0].arguments)
    # The body of a sum of squares has two arguments.
    if len(end.operands) != 1 or len(arguments) != 3:
        return False
    multiply, add = (op for op in body if op.name not in WIDENING)
    first, second, sum_ = arguments
    factors = [unwidened(factor) for factor in multiply.operands]
    both = factors in ([first, second], [second, first])
    others = [value for value in add.operands if value != multiply.result]
    return bool(both and others == [sum_] and end.operands[0] == add.result)


def _is_fast(generic: Any) -> bool:
    """Whether all floating-point arithmetic of the body has the flag `fast`."""
    arithmetic = [op for op in ops.content(generic) if op.name in ("arith.mulf", "arith.addf")]
    flags = [str(op.attributes["fastmath"]) for op in arithmetic if "fastmath" in op.attributes]
    return bool(arithmetic) and flags == ["#arith.fastmath<fast>"] * len(arithmetic)


def unwidened(value: Any) -> Any:
    """The value before the extensions (`WIDENING`) of a factor."""
    while (owner := ops.defining(value)) is not None and owner.name in WIDENING:
        value = owner.operands[0]
    return value


class _Roles(Struct, frozen=True):
    """The roles of the operands. `order`: the indices of A, B and C among them. `transposed`:
    whether A and B are. `outer`: the number of dimensions that rows of A and C are collapsed from.
    `has_rows`: A and C are vectors."""

    is_batched: bool
    order: tuple[int, int, int]
    transposed: tuple[bool, bool]
    outer: int = 1
    has_rows: bool = False


def _roles(generic: Any) -> _Roles | None:
    """The roles, from linalg's contraction dimensions. (Its M is of operand 0, and N of operand
    1.)"""
    maps = maps_of(generic)
    dimensions = linalg.infer_contraction_dimensions(generic)
    if dimensions is None or not all(map_.is_projected_permutation for map_ in maps):
        return None
    batch, m, n, k = map(list, (dimensions.batch, dimensions.m, dimensions.n, dimensions.k))
    places = [[ir.AffineDimExpr(result).position for result in map_.results] for map_ in maps]
    if len([*batch, *m, *n, *k]) != maps[0].n_dims or len(k) != 1 or len(batch) > 1:
        return None
    if any(place[: len(batch)] != batch for place in places):
        return None
    *operands, result = (place[len(batch) :] for place in places)
    # B is the operand that has C's columns.
    right = 1 if n == result[-1:] else 0
    left = 1 - right
    rows, columns = (m, n) if right == 1 else (n, m)
    if not columns or columns != result[-1:] or operands[right] not in (k + columns, columns + k):
        return None
    is_transposed = operands[right] == columns + k
    order, is_batched = (left, right, 2), bool(batch)
    if not rows:
        return _Roles(is_batched, order, (False, is_transposed), has_rows=True)
    if result[:-1] != operands[left][:-1]:
        is_left_transposed = len(rows) == 1 and operands[left] == k + rows
        return _Roles(is_batched, order, (True, is_transposed)) if is_left_transposed else None
    if len(rows) > 1 and is_batched:
        return None
    return _Roles(is_batched, order, (False, is_transposed), len(rows))


def matrix_of(
    value: Any, batched: bool, transposed: bool, groups: Groups | None = None
) -> Matrix | None:
    """The matrix of a buffer after its dimensions are collapsed by `groups`; None if it is no
    matrix."""
    type_ = collapsed_type(value, groups) if groups else ir.MemRefType(value.type)
    return None if type_ is None else matrix_of_type(type_, batched=batched, transposed=transposed)


def matrix_of_type(type_: Any, *, batched: bool, transposed: bool = False) -> Matrix | None:
    """The matrix of a buffer's type, which has two dimensions, or three if `batched`. None for a
    layout that no kernel supports."""
    element = str(type_.element_type)
    strides, _ = type_.get_strides_and_offset()
    if (
        type_.rank != 2 + batched
        or element not in ELEMENT_BYTES
        or strides[-1] != 1
        or type_.memory_space is not None
    ):
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    pitch = None if strides[-2] == unknown else int(strides[-2])
    if pitch is not None and pitch <= 0:
        return None
    rows, columns = (
        None if type_.is_dynamic_dim(i) else int(type_.shape[i])
        for i in (type_.rank - 2, type_.rank - 1)
    )
    # The address of the first element is unknown here: `dispatch` checks it at run time.
    known = [int(stride) for stride in strides[:-1] if stride != unknown]
    alignment = math.gcd(16, *(stride * ELEMENT_BYTES[element] for stride in known))
    if 0 in known:
        alignment = ELEMENT_BYTES[element]  # TMA has no distance of 0
    return Matrix(str(type_), element, (rows, columns), pitch, alignment, transposed)


def accumulator_of(element: str) -> str:
    if element in _WIDE:
        return element
    return "i32" if element.startswith("i") else "f32"


def fill_of(generic: Any, c: Any, roots: Roots) -> Any | None:
    """The operation that fills C with zeros before the matmul, if no operation between them
    accesses C; None if there is none."""
    previous = _before(generic)
    while previous is not None:
        if c in list(previous.operands) and not reads_shape_only(previous):
            return previous if _is_zero_fill(previous) else None
        if not _is_harmless(previous, c, roots):
            return None
        previous = _before(previous)
    return None


def _is_harmless(operation: Any, c: Any, roots: Roots) -> bool:
    """Whether the operation, which does not have C as an operand, cannot access C."""
    if operation.name == "linalg.generic":
        # The body may load from buffers that are no operands of the operation.
        values = [value for one in ops.walk(operation) for value in one.operands]
        buffers = [value for value in values if isinstance(value.type, ir.MemRefType)]
        return not any(roots.may_overlap(value, c) for value in buffers)
    return accesses_no_element(operation) or operation.name == "memref.dealloc"


def _before(operation: Any) -> Any | None:
    found = None
    for other in operation.block:
        if other.operation == operation:
            return found
        found = other.operation
    return None


def _is_zero_fill(operation: Any) -> bool:
    if operation.name != "linalg.generic":
        return False
    inputs, outputs = ops.operand_groups(operation)
    *others, end = ops.content(operation)
    if (
        others
        or len(outputs) != 1
        or len(inputs) > 1
        or any(isinstance(value.type, ir.ShapedType) for value in inputs)
        or not maps_of(operation)[-1].is_permutation  # it fills only a part
    ):
        return False
    yielded = end.operands[0]
    if inputs and yielded == operation.regions[0].blocks[0].arguments[0]:
        yielded = inputs[0]
    value = ops.known_constant(yielded)
    if isinstance(value, ir.FloatAttr):
        return bool(ir.FloatAttr(value).value == 0.0)
    return isinstance(value, ir.IntegerAttr) and bool(ir.IntegerAttr(value).value == 0)
