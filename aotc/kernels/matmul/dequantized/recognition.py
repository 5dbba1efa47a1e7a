"""`linalg.generic` on buffers, a vector times weights that it computes → a `Product`."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.generics import body_of, maps_of
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.recognition import fill_of, unwidened
from aotc.mlir import ir

CHUNK = 16  # bytes of packed weights that a thread reads at once
_VECTOR_ELEMENTS = ("f16", "bf16", "f32")
_MOST_IN_A_BYTE = 8


class Product(Struct, frozen=True, eq=False):
    """y = W · x, where an element of W is computed from the elements of several buffers.

    `places`: the loops of each input's dimensions. `sizes`: of each loop. `row`: the loop of y, and
    `digits` those that it sums over, which are the digits of K, the slowest first; `inner` of them,
    the last ones, count the weights of a byte. `vector`, `packed`: the numbers of the inputs that
    are x and the packed weights. `fill`: what fills y with zeros before.
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
    """None for what the kernel does not take."""
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
    if len(out) != 1 or str(outputs[0].type.element_type) != "f32":
        return None
    reduced = set(range(maps[0].n_dims)) - set(out)
    vector = next((i for i, one in enumerate(places) if set(one) == reduced), None)
    if vector is None or str(inputs[vector].type.element_type) not in _VECTOR_ELEMENTS:
        return None
    digits = places[vector]
    found = [
        i
        for i, one in enumerate(places)
        if str(inputs[i].type.element_type) == "i8"
        and len(one) > 1
        and one == (*out, *digits[: len(one) - 1])
    ]
    if len(found) != 1:
        return None
    (packed,) = found
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
        row=out[0],
        digits=digits,
        inner=len(digits) - (len(places[packed]) - 1),
        vector=vector,
        packed=packed,
        fill=fill_of(generic, outputs[0], roots),
    )
    return product if _can_take(product) else None


def _is_contiguous(type_: Any) -> bool:
    return bool(
        isinstance(type_, ir.MemRefType)
        and type_.has_static_shape
        and type_.memory_space is None
        and type_.affine_map == ir.AffineMap.get_identity(type_.rank)
        and str(type_.element_type) in ELEMENT_BYTES
    )


def _can_take(product: Product) -> bool:
    last = product.sizes[product.outer_digits[-1]]
    if last % CHUNK or product.in_a_byte > _MOST_IN_A_BYTE:
        return False
    for number, places in enumerate(product.places):
        is_other = number not in (product.vector, product.packed)
        # Neighbours in a row of packed weights have the same of all others.
        if is_other and product.outer_digits[-1] in places:
            return False
    return _has_body(product)


def _has_body(product: Product) -> bool:
    """Whether the body is y + a * b, a of x alone, b of all others, in arithmetic alone."""
    *body, end = body_of(product.operation)
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
                *product.outer_digits,
            ):
                return False
        elif not operation.name.startswith(("arith.", "math.")) or operation.regions:
            return False
    return all(
        not ops.is_made_outside(value, product.operation) or _is_number(value)
        for operation in body
        for value in operation.operands
    )


def _is_number(value: Any) -> bool:
    constant = ops.defining(value)
    return constant is not None and constant.name == "arith.constant"
