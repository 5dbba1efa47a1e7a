"""The layouts of Q, K, V and O: tensors or buffers of several ranks as the matrices of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.mlir import ir

ALIGNMENT = 16  # bytes; the program checks addresses at run time


class Form(Struct, frozen=True):
    """The roles of the dimensions of Q, K, V or O: up to two of the batch, rows and columns.

    With `heads`, each row has that many adjacent heads. The rest of the batch, if it is not 1, is a
    dimension in front of the rows or, with `has_rows_first`, behind them. `has_head_dimension`: the
    heads are a separate dimension, in front of the columns of a head.
    """

    heads: int = 0
    has_head_dimension: bool = False
    has_rows_first: bool = False

    @staticmethod
    def of(numbers: Sequence[int]) -> Form:
        heads, *others = numbers
        return Form(heads, *map(bool, others))

    @property
    def numbers(self) -> tuple[int, int, int]:
        return self.heads, int(self.has_head_dimension), int(self.has_rows_first)

    def row_dimension(self, rank: int) -> int:
        return 0 if self.has_rows_first else rank - 2 - self.has_head_dimension

    def batch_dimension(self, rank: int) -> int:
        """The last dimension of the batch; that of the rows if there is none."""
        if self.has_rows_first:
            return 1
        return max(self.row_dimension(rank) - 1, 0)


class Layout(Struct, frozen=True):
    """The layout of Q, K, V or O, with dimensions as in `form`.

    `batch`: the number of matrices, including heads. `columns`: the columns of a head. `strides`:
    the strides of matrices and of rows in elements, None for unknown ones. `has_one_row`: matrices
    have one row, which is no dimension of the type.
    """

    type: Any
    form: Form
    batch: int | None
    rows: int | None
    columns: int | None
    strides: tuple[int | None, int | None] | None
    has_one_row: bool = False

    @staticmethod
    def of(type_: Any, form: Form, *, has_one_row: bool = False) -> Layout:
        sizes, heads = sizes_of(type_), form.heads
        if has_one_row:
            *outer, columns = sizes
            batch = _product(outer)
            return Layout(type_, Form(), batch, 1, columns, None, has_one_row=True)
        if not heads:
            *outer, rows, columns = sizes
            return Layout(type_, form, _product(outer), rows, columns, None)
        *outer, wide = sizes
        columns = None if wide is None else wide // heads
        if form.has_head_dimension:
            *outer, _ = outer
            columns = wide
        rows = outer.pop(form.row_dimension(len(sizes)))
        return Layout(type_, form, _product([*outer, heads]), rows, columns, _strides(type_, form))

    @property
    def heads(self) -> int:
        return self.form.heads

    @property
    def matrix(self) -> Matrix:
        element = str(self.type.element_type)
        batch, columns = self.batch, self.columns
        if self.heads:
            batch = None if batch is None else batch // self.heads
            columns = None if columns is None else columns * self.heads
        pitch, layout = columns, ""
        if self.strides is not None:
            pitch = self.strides[1]
            words = ", ".join("?" if one is None else str(one) for one in self.strides)
            layout = f", strided<[{words}, 1], offset: ?>"
        sizes = "x".join("?" if size is None else str(size) for size in (batch, self.rows, columns))
        known = [size for size in (columns, *(self.strides or ())) if size is not None]
        bytes_ = ELEMENT_BYTES.get(element, 1)
        return Matrix(
            type=f"memref<{sizes}x{element}{layout}>",
            element=element,
            sizes=(self.rows, columns),
            pitch=pitch,
            alignment=math.gcd(ALIGNMENT, *(size * bytes_ for size in known)),
        )

    def view(self, b: Builder, buffer: Value) -> tuple[Value, list[Number]]:
        """The view of a buffer of the type as `matrix`. Also returns those of its offset and
        strides that are dynamic, in elements, which have to be multiples of 16 bytes."""
        matrix = b.type(self.matrix.type)
        if matrix == self.type:
            return buffer, []
        if self.strides is not None:
            return self._reinterpret(b, buffer)
        if self.has_one_row:
            return self._with_row(b, buffer, matrix), []
        if self.type.rank == 2:
            rows = [b.dim(buffer, 0)] if self.rows is None else []
            shape = ir.DenseI64ArrayAttr.get(matrix.shape)
            attributes = {"reassociation": "[[0, 1], [2]]", "static_output_shape": shape}
            return b.op("memref.expand_shape", [buffer, *rows], matrix, **attributes), []
        if self.type.rank == 4:
            groups = "[[0], [1], [2, 3]]" if self.form.has_head_dimension else "[[0, 1], [2], [3]]"
            return b.op("memref.collapse_shape", [buffer], matrix, reassociation=groups), []
        return b.op("memref.cast", [buffer], matrix), []

    def _with_row(self, b: Builder, buffer: Value, matrix: Any) -> Value:
        """The view with one batch dimension, and a dimension of size 1 for the row."""
        if self.type.rank > 2:
            element = self.type.element_type
            unknown = ir.ShapedType.get_dynamic_size()
            shape = [unknown if one is None else one for one in (self.batch, self.columns)]
            flat = ir.MemRefType.get(shape, element)
            buffer = b.op("memref.collapse_shape", [buffer], flat, reassociation="[[0, 1], [2]]")
        batch = [b.dim(buffer, 0)] if self.batch is None else []
        sizes = ir.DenseI64ArrayAttr.get(matrix.shape)
        attributes = {"reassociation": "[[0, 1], [2]]", "static_output_shape": sizes}
        return b.op("memref.expand_shape", [buffer, *batch], matrix, **attributes)

    def _reinterpret(self, b: Builder, buffer: Value) -> tuple[Value, list[Number]]:
        base, offset, sizes, strides = b.metadata(buffer)
        rows, outer = (
            one(len(sizes)) for one in (self.form.row_dimension, self.form.batch_dimension)
        )
        # For a single matrix, the stride between matrices is arbitrary.
        dynamic = strides[outer], strides[rows]
        distances: list[Number] = [
            stride if known is None else known
            for stride, known in zip(dynamic, self.strides or (None, None), strict=True)
        ]
        batch = sizes[outer] if self.batch is None else self.batch // self.heads
        count = sizes[rows] if self.rows is None else self.rows
        shape = [batch, count, (self.columns or 0) * self.heads]
        view = b.reinterpret_cast(base, offset, shape, [*distances, 1], self.matrix.type)
        return view, [offset, *(one for one in distances if not isinstance(one, int))]


def sizes_of(type_: Any) -> list[int | None]:
    return [None if type_.is_dynamic_dim(i) else int(type_.shape[i]) for i in range(type_.rank)]


def _product(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _strides(type_: Any, form: Form) -> tuple[int | None, int | None] | None:
    """The strides of matrices and of rows. None for a tensor, and for the default layout."""
    if not isinstance(type_, ir.MemRefType):
        return None
    rows, outer = form.row_dimension(type_.rank), form.batch_dimension(type_.rank)
    if type_.affine_map == ir.AffineMap.get_identity(type_.rank) and outer < rows:
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = [None if one == unknown else int(one) for one in type_.get_strides_and_offset()[0]]
    return strides[outer], strides[rows]
