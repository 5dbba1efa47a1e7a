"""How Q, K, V and O lie: tensors or buffers of several ranks → matrices, as a kernel takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter, Matrix
from aotc.mlir import ir

ALIGNMENT = 16  # bytes; of addresses it is asked when they are known


class Lying(Struct, frozen=True):
    """`heads` and `apart`: see `recognise.Operand`. `batch` and `columns` are those of heads;
    `strides` of matrices and of rows, None for one that is not known."""

    type: Any
    heads: int
    apart: bool
    batch: int | None
    rows: int | None
    columns: int | None
    strides: tuple[int | None, int | None] | None

    @staticmethod
    def of(type_: Any, heads: int, apart: bool) -> Lying:
        sizes = sizes_of(type_)
        if not heads:
            *outer, rows, columns = sizes
            return Lying(type_, 0, False, _product(outer), rows, columns, None)
        if apart:
            *outer, rows, _, columns = sizes
        else:
            *outer, rows, wide = sizes
            columns = None if wide is None else wide // heads
        batch = _product([*outer, heads])
        return Lying(type_, heads, apart, batch, rows, columns, _strides(type_, len(outer)))

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

    def write(self, e: Emitter, given: str, name: str) -> list[str]:
        """Gives `given`, a buffer of the type, the name and type of the matrix. What has to be at a
        multiple of 16 bytes, in elements: its offset and strides."""
        matrix = self.matrix
        if self.strides is not None:
            return self._reinterpret(e, given, name, matrix)
        groups = "[[0], [1], [2, 3]]" if self.apart else "[[0, 1], [2], [3]]"
        if self.type.rank == 2:
            rows = str(self.rows)
            if self.rows is None:
                rows = e.value(f"memref.dim {given}, {e.constant(0)} : {self.type}")
            line = (
                f"memref.expand_shape {given} [[0, 1], [2]] output_shape [1, {rows}, "
                f"{self.columns}] : {self.type} into {matrix.type}"
            )
        elif self.type.rank == 4:
            line = f"memref.collapse_shape {given} {groups} : {self.type} into {matrix.type}"
        else:
            line = f"memref.cast {given} : {self.type} to {matrix.type}"
        e.line(f"{name} = {line}")
        return []

    def _reinterpret(self, e: Emitter, given: str, name: str, matrix: Matrix) -> list[str]:
        rank = int(self.type.rank)
        names = [e.name() for _ in range(2 + 2 * rank)]
        element = f"memref<{matrix.element}>"
        types = ", ".join([element, *["index"] * (1 + 2 * rank)])
        e.line(
            f"{', '.join(names)} = memref.extract_strided_metadata {given} : {self.type} -> {types}"
        )
        rows = rank - (3 if self.apart else 2)
        strides = names[2 + rank :]
        row = strides[rows]
        # The first and only matrix is at any distance from another.
        outer = strides[rows - 1] if rows else row
        known = self.strides or (None, None)
        distances = [
            dynamic if static is None else str(static)
            for dynamic, static in zip((outer, row), known, strict=True)
        ]
        batch = names[2] if self.batch is None else self.batch // self.heads
        count = names[2 + rows] if self.rows is None else self.rows
        columns = (self.columns or 0) * self.heads
        e.line(
            f"{name} = memref.reinterpret_cast {names[0]} to offset: [{names[1]}], "
            f"sizes: [{batch}, {count}, {columns}], strides: [{', '.join(distances)}, 1] "
            f": {element} to {matrix.type}"
        )
        dynamic = [one for one in distances if one.startswith("%")]
        return [names[1], *dynamic]


def sizes_of(type_: Any) -> list[int | None]:
    return [None if type_.is_dynamic_dim(i) else int(type_.shape[i]) for i in range(type_.rank)]


def _product(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _strides(type_: Any, outer: int) -> tuple[int | None, int | None] | None:
    """None for a tensor, and where all lies as it would without strides."""
    if not isinstance(type_, ir.MemRefType):
        return None
    if type_.affine_map == ir.AffineMap.get_identity(type_.rank) and outer:
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = [None if one == unknown else int(one) for one in type_.get_strides_and_offset()[0]]
    return (strides[outer - 1] if outer else strides[outer]), strides[outer]
