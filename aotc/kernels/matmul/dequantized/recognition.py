"""Recognizes `linalg.generic` operations on buffers that multiply vectors by a matrix which their
body computes from packed weights, as a `Product`."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.constants import is_constant
from aotc.analysis.generics import maps_of
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem
from aotc.kernels.matmul.recognition import (
    Matmul,
    accumulator_of,
    fill_of,
    matrix_of_type,
    unwidened,
)
from aotc.kernels.matmul.vectors import row_type
from aotc.mlir import ir

CHUNK = 16  # the bytes of packed weights that a thread loads at once
_VECTOR_ELEMENTS = ("f16", "bf16", "f32")
FLOATS_OF_A_BYTE = ("f8E4M3FN", "f8E5M2")
_PACKED_ELEMENTS = ("i8", *FLOATS_OF_A_BYTE)
_MOST_IN_A_BYTE = 8
MOST_COLUMNS = 16  # the largest number of vectors: with more, it is a matmul


class Product(Struct, frozen=True, eq=False):
    """y = W · x, where an element of W is computed from the elements of several buffers.

    There may be up to `MOST_COLUMNS` vectors y and x; `column` is their loop, None for one vector.

    `places`: the loops of each input's dimensions. `sizes`: the number of iterations of each loop.
    `row`: the loop along y. `digits`: the reduction loops, which are the digits of K, the slowest
    first; the last `inner` of them count the weights of a byte. `vector` and `packed`: the indices
    of the inputs that are x and the packed weights. `fill`: the operation that fills y with zeros
    before.
    """

    operation: Any
    inputs: tuple[Any, ...]
    places: tuple[tuple[int, ...], ...]
    y: Any
    sizes: tuple[int, ...]
    row: int
    digits: tuple[int, ...]
    inner: int
    vector: int
    packed: int
    fill: Any | None
    column: int | None = None

    @property
    def columns(self) -> int:
        return 1 if self.column is None else self.sizes[self.column]

    @property
    def has_constant_weights(self) -> bool:
        """Whether all inputs that W is computed from are constant."""
        return all(is_constant(one) for i, one in enumerate(self.inputs) if i != self.vector)

    @property
    def outer_digits(self) -> tuple[int, ...]:
        return self.digits[: len(self.digits) - self.inner]

    @property
    def row_bytes(self) -> int:
        return math.prod(self.sizes[loop] for loop in self.outer_digits)

    @property
    def in_a_byte(self) -> int:
        return math.prod(self.sizes[loop] for loop in self.digits[len(self.outer_digits) :])


def recognise_product(generic: Any, roots: Roots) -> Product | None:
    """The product that the operation computes; None if kernels do not support it."""
    inputs, outputs = ops.operand_groups(generic)
    if generic.results or len(outputs) != 1 or len(inputs) < 2:
        return None
    values = [*inputs, *outputs]
    if not all(_is_contiguous(value.type) for value in values):
        return None
    maps = maps_of(generic)
    if not all(map_.is_projected_permutation for map_ in maps):
        return None
    *places, out = (tuple(ir.AffineDimExpr(one).position for one in map_.results) for map_ in maps)
    if len(out) not in (1, 2) or str(outputs[0].type.element_type) != "f32":
        return None
    *columns, row = out
    reduced = {*range(maps[0].n_dims)} - {row}
    vector = next((i for i, one in enumerate(places) if set(one) == reduced), None)
    if vector is None or str(inputs[vector].type.element_type) not in _VECTOR_ELEMENTS:
        return None
    if [*places[vector][: len(columns)]] != columns:
        return None
    digits = places[vector][len(columns) :]
    found = [
        i
        for i, one in enumerate(places)
        if str(inputs[i].type.element_type) in _PACKED_ELEMENTS
        and len(one) > 1
        and one == (row, *digits[: len(one) - 1])
    ]
    if not found:
        return None
    # Zero points of groups may be bytes, too.
    packed = max(found, key=lambda i: len(places[i]))
    if sum(len(places[i]) == len(places[packed]) for i in found) > 1:
        return None
    sizes = {
        loop: int(size)
        for value, one in zip(inputs, places, strict=True)
        for loop, size in zip(one, value.type.shape, strict=True)
    }
    product = Product(
        operation=generic,
        inputs=tuple(inputs),
        places=tuple(places),
        y=outputs[0],
        sizes=tuple(sizes[i] for i in range(maps[0].n_dims)),
        row=row,
        digits=digits,
        inner=len(digits) - (len(places[packed]) - 1),
        vector=vector,
        packed=packed,
        fill=fill_of(generic, outputs[0], roots),
        column=columns[0] if columns else None,
    )
    return product if _can_implement(product) else None


def _is_contiguous(type_: Any) -> bool:
    return bool(
        isinstance(type_, ir.MemRefType)
        and type_.has_static_shape
        and type_.memory_space is None
        and type_.affine_map == ir.AffineMap.get_identity(type_.rank)
        and str(type_.element_type) in ELEMENT_BYTES
    )


def _can_implement(product: Product) -> bool:
    last = product.sizes[product.outer_digits[-1]]
    if last % CHUNK or product.in_a_byte > _MOST_IN_A_BYTE or product.columns > MOST_COLUMNS:
        return False
    for number, places in enumerate(product.places):
        is_other = number not in (product.vector, product.packed)
        # Adjacent bytes of a row of packed weights share the elements of all other inputs.
        if is_other and {product.outer_digits[-1], product.column} & {*places}:
            return False
    return _has_body(product)


def matmul_of(product: Product) -> Matmul:
    """The product as a matmul, for the fusion of an epilogue: x is A, and the packed weights are
    B."""
    x, packed = (product.inputs[i] for i in (product.vector, product.packed))
    y = ir.MemRefType(product.y.type)
    has_rows = product.column is None
    sizes = (
        ([product.columns, product.row_bytes * product.in_a_byte], x.type.element_type),
        ([product.sizes[product.row], product.row_bytes], packed.type.element_type),
    )
    types = [ir.MemRefType.get(*one) for one in sizes] + [row_type(y) if has_rows else y]
    a, b, c = (matrix_of_type(type_, batched=False) for type_ in types)
    assert a is not None
    assert b is not None
    assert c is not None
    problem = Problem(a, b, c, accumulator_of(c.element), adds=product.fill is None)
    others = [
        one for i, one in enumerate(product.inputs) if i not in (product.vector, product.packed)
    ]
    return Matmul(
        product.operation, x, packed, product.y, problem, product.fill, has_rows, others=others
    )


def factor_of(product: Product, *, narrow: bool) -> Any:
    """The value in the body that is an element of W; with `narrow`, before it is extended."""
    *_, add, _ = ops.content(product.operation)
    y = product.operation.regions[0].blocks[0].arguments[-1]
    x = product.operation.regions[0].blocks[0].arguments[product.vector]
    multiply: Any = next(ops.defining(one) for one in add.operands if one != y)
    factor = next(one for one in multiply.operands if unwidened(one) != x)
    return unwidened(factor) if narrow else factor


def _has_body(product: Product) -> bool:
    """Whether the body is y + a * b in arithmetic operations, where a is computed only from x, and
    b from the other inputs."""
    *body, end = ops.content(product.operation)
    *arguments, y = product.operation.regions[0].blocks[0].arguments
    if not body or body[-1].name != "arith.addf" or end.operands[0] != body[-1].result:
        return False
    if y not in list(body[-1].operands) or len(list(y.uses)) != 1:
        return False
    multiply = next((ops.defining(one) for one in body[-1].operands if one != y), None)
    if multiply is None or multiply.name != "arith.mulf":
        return False
    x = arguments[product.vector]
    factors = [unwidened(factor) for factor in multiply.operands]
    if factors.count(x) != 1 or len(list(x.uses)) != 1:
        return False
    for operation in body:
        if operation.name == "linalg.index":
            if ir.IntegerAttr(operation.attributes["dim"]).value in (
                product.row,
                product.column,
                *product.outer_digits,
            ):
                return False
        elif not operation.name.startswith(("arith.", "math.")) or operation.regions:
            return False
    return all(
        not ops.is_made_outside(value, product.operation) or ops.is_constant(value)
        for operation in body
        for value in operation.operands
    )
