"""Converts contractions whose loops can be collapsed to matmuls of matrix views.

Contiguous dimensions of a buffer are one dimension of a view. For example, a linear layer of a
batch of sequences is the matmul of a matrix with one row for each element of all sequences. Matmuls
have the fastest kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import Number
from aotc.kernels.matmul.fusion.collapsed import Groups, collapse
from aotc.kernels.matmul.implicit_gemm.problem import (
    ImplicitGemm,
    Loop,
    known_count,
    loop_step,
)
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.recognition import Matmul, matrix_of
from aotc.mlir import ir


class _Role(Struct, frozen=True):
    """Several loops as one dimension, and its strides in A, B and C (`steps`), in elements; None
    for an unknown one."""

    loops: tuple[Loop, ...]
    steps: dict[str, int | None]

    def known_step(self, name: str) -> int:
        step = self.steps[name]
        assert step is not None
        return step


def flattened(matmul: Matmul) -> Matmul | None:
    """The matmul with its operands as matrix views, which are inserted before the operation; None
    if an operand has no view that is a matrix."""
    problem = matmul.problem
    assert isinstance(problem, ImplicitGemm)
    values = {"a": matmul.a, "b": matmul.b, "c": matmul.c}
    dense = "".join(name for name, value in values.items() if _is_dense(value))
    roles = _roles(problem, dense)
    if roles is None:
        return None
    batch, rows, columns, k = roles
    transposed_a = _is_transposed(rows, k, "a")
    transposed_b = _is_transposed(k, columns, "b")
    if transposed_a is None or transposed_b is None or columns.steps["c"] != 1:
        return None
    down, across = _apart(matmul, dense) or ((rows,), (columns,))
    front = (batch,) if batch else ()
    shapes = {
        "a": (k, rows) if transposed_a else (*down, k),
        "b": (columns, k) if transposed_b else (k, columns),
        "c": (*down, *across),
    }
    for name, shape in shapes.items():
        steps = [role.steps[name] for role in (*front, *shape)]
        if any(step is not None and step <= 0 for step in steps):
            return None
        is_known = None not in steps and all(map(_has_known_inner, (*front, *shape)))
        if not is_known and _groups_in(values[name], name, (*front, *shape)) is None:
            return None
    views = {name: _view(matmul, values, name, (*front, *shape)) for name, shape in shapes.items()}
    is_batched = batch is not None
    a_groups = None if transposed_a else _groups(front, down, (k,))
    c_groups = _groups(front, down, across)
    matrices = (
        matrix_of(views["a"], is_batched, transposed_a, a_groups),
        matrix_of(views["b"], is_batched, transposed_b),
        matrix_of(views["c"], is_batched, transposed=False, groups=c_groups),
    )
    left, right, result = matrices
    if left is None or right is None or result is None:
        return None
    plain = Problem(
        *(left, right, result, problem.accumulator),
        adds=problem.adds,
        batched=is_batched,
        allow_tf32=problem.allow_tf32,
        allow_3xtf32=problem.allow_3xtf32,
    )
    return replace(
        matmul,
        a=views["a"],
        b=views["b"],
        c=views["c"],
        problem=plain,
        a_groups=a_groups,
        c_groups=c_groups,
    )


def _groups(*parts: Sequence[_Role]) -> Groups:
    """The groups of consecutive dimensions that belong to each part. Empty parts are left out."""
    found = []
    first = 0
    for part in filter(None, parts):
        found.append(list(range(first, first + len(part))))
        first += len(part)
    return found


def _is_dense(value: Any) -> bool:
    """Whether the dimensions of a buffer are contiguous, whatever their sizes."""
    type_ = ir.MemRefType(value.type)
    return bool(type_.affine_map == ir.AffineMap.get_identity(type_.rank))


def _has_known_inner(role: _Role) -> bool:
    return known_count(role.loops[1:]) is not None


def _groups_in(value: Any, name: str, shape: Sequence[_Role]) -> Groups | None:
    """The dimensions of a dense buffer that belong to each role; None if they are not all of its
    dimensions, in order."""
    groups = []
    for role in shape:
        moves = [getattr(loop, name) for loop in role.loops]
        if any(len(one) != 1 or one[0][1] != 1 for one in moves):
            return None
        groups.append([dimension for ((dimension, _),) in moves])
    in_order = [dimension for group in groups for dimension in group]
    is_whole = in_order == list(range(ir.MemRefType(value.type).rank))
    return groups if is_whole and _is_dense(value) else None


def _apart(matmul: Matmul, dense: str) -> tuple[tuple[_Role, ...], tuple[_Role, ...]] | None:
    """Separate roles for each loop of the rows and of the columns, if C has exactly these
    dimensions. C then remains the same buffer, so that fusion finds its consumers."""
    problem = matmul.problem
    assert isinstance(problem, ImplicitGemm)
    front, rows, columns = (
        [one_role(problem, (loop,), names, dense) for loop in loops]
        for loops, names in (
            (problem.batch, "abc"),
            (problem.rows, "ac"),
            (problem.columns, "bc"),
        )
    )
    shape = [role for role in (*front, *rows, *columns) if role is not None]
    type_ = ir.MemRefType(matmul.c.type)
    if len(front) > 1 or not len(front) + len(rows) + len(columns) == len(shape) == type_.rank:
        return None
    sizes = [None if type_.is_dynamic_dim(i) else int(type_.shape[i]) for i in range(type_.rank)]
    lies_so = [known_count(role.loops) for role in shape] == sizes
    if not lies_so or tuple(role.steps["c"] for role in shape) != problem.strides[2]:
        return None
    down = tuple(role for role in rows if role is not None)
    return down, tuple(role for role in columns if role is not None)


def _roles(problem: ImplicitGemm, dense: str) -> tuple[_Role | None, _Role, _Role, _Role] | None:
    """The roles of the batch, if there is one, of rows, of columns and of K. `dense`: see
    `one_role`."""
    batch = one_role(problem, problem.batch, "abc", dense) if problem.batch else None
    rows = one_role(problem, problem.rows, "ac", dense)
    columns = one_role(problem, problem.columns, "bc", dense)
    k = one_role(problem, problem.k_loops, "ab", dense)
    if rows is None or columns is None or k is None or (problem.batch and batch is None):
        return None
    return batch, rows, columns, k


def one_role(
    problem: ImplicitGemm, loops: Sequence[Loop], names: str, dense: str = ""
) -> _Role | None:
    """The loops as one dimension of the operands `names`; None if they are not contiguous in each
    of these. `dense`: the operands whose dimensions are contiguous, whatever their sizes. Only
    roles of these have unknown strides."""
    steps = {}
    for name in names:
        distances = [loop_step(problem, loop, name) for loop in loops]
        if None in distances and name not in dense:
            return None
        for number, (outer, inner) in enumerate(pairwise(loops)):
            size, far, near = inner.size, distances[number], distances[number + 1]
            if size is None or far is None or near is None:
                are_one = name in dense and _are_adjacent(problem, name, outer, inner)
            else:
                are_one = far == near * size
            if not are_one:
                return None
        steps[name] = distances[-1]
    return _Role(tuple(loops), steps)


def _are_adjacent(problem: ImplicitGemm, name: str, outer: Loop, inner: Loop) -> bool:
    """Whether two loops move along a dimension and the one behind it, element by element, and the
    inner one along the whole dimension: no other loop does, as that of a window."""
    first, second = getattr(outer, name), getattr(inner, name)
    if not len(first) == len(second) == 1 or second[0] != (first[0][0] + 1, 1) or first[0][1] != 1:
        return False
    every = (*problem.batch, *problem.rows, *problem.columns, *problem.k_loops)
    dimensions = [dimension for loop in every for dimension, _ in getattr(loop, name)]
    return dimensions.count(second[0][0]) == 1


def _is_transposed(first: _Role, second: _Role, name: str) -> bool | None:
    """Whether the first of two dimensions is the contiguous one; None if neither is."""
    if second.steps[name] == 1:
        return False
    return True if first.steps[name] == 1 else None


def _view(matmul: Matmul, values: dict[str, Any], name: str, shape: Sequence[_Role]) -> Any:
    """A view of the buffer with the dimensions of `shape`, or the buffer itself if it has them."""
    value = values[name]
    sizes = [known_count(role.loops) for role in shape]
    steps = [step for role in shape if (step := role.steps[name]) is not None]
    b = Builder()
    with ir.InsertionPoint(matmul.operation), matmul.operation.location:
        if len(steps) < len(shape) or not all(map(_has_known_inner, shape)):
            groups = _groups_in(value, name, shape)
            assert groups is not None
            return collapse(value, groups)
        if _view_type(value, sizes, steps) == value.type:
            return value
        return view(b, value, [_size(b, role, values) for role in shape], steps)


def view(b: Builder, value: Any, sizes: Sequence[Number], steps: Sequence[int]) -> Any:
    """A view of the buffer with the given sizes and strides, in elements."""
    type_ = _view_type(value, [one if isinstance(one, int) else None for one in sizes], steps)
    _, offset = ir.MemRefType(value.type).get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    begin = b.strides(value)[0] if offset == unknown else offset
    return b.reinterpret_cast(value, begin, sizes, steps, type_)


def _view_type(value: Any, sizes: Sequence[int | None], steps: Sequence[int]) -> Any:
    type_ = ir.MemRefType(value.type)
    _, offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    shown = "?" if offset == unknown else str(offset)
    layout = (
        ""
        if _is_plain(sizes, steps) and offset == 0
        else (f", strided<[{', '.join(map(str, steps))}], offset: {shown}>")
    )
    words = "x".join("?" if size is None else str(size) for size in sizes)
    return ir.Type.parse(f"memref<{words}x{type_.element_type}{layout}>")


def _is_plain(sizes: Sequence[int | None], steps: Sequence[int]) -> bool:
    """Whether the layout is contiguous."""
    run: int | None = 1
    for size, step in zip(reversed(sizes), reversed(steps), strict=True):
        if step != run:
            return False
        run = None if size is None else run * size
    return True


def _size(b: Builder, role: _Role, values: dict[str, Any]) -> Number:
    outer, *inner = role.loops
    known, times = known_count(role.loops), known_count(inner)
    if known is not None:
        return known
    assert times is not None
    name, dimension = outer.source
    size: Number = b.value(b.dim(values[name], dimension) * times)
    return size
