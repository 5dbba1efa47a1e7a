"""Sizes of tensors as products of SSA values: equal sizes have equal products.

See "Sizes that are not known at build time" in docs/architecture.md for the other representations.
Products hold in any function, need no facts, and can be divided to find a reshape's groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.same_sizes import same_sized_operand
from aotc.mlir import ir

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")


class Product(Struct, frozen=True):
    """A number times values, each with its exponent."""

    number: int
    values: tuple[tuple[Any, int], ...] = ()

    @staticmethod
    def of(number: int, values: Counter[Any]) -> Product:
        return Product(number, tuple((one, count) for one, count in values.items() if count))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Product)
            and self.number == other.number
            and dict(self.values) == dict(other.values)
        )

    def __hash__(self) -> int:
        return hash((self.number, frozenset(self.values)))

    def times(self, other: Product) -> Product:
        return Product.of(
            self.number * other.number, Counter(dict(self.values)) + Counter(dict(other.values))
        )

    def divided_by(self, other: Product) -> Product | None:
        """The quotient; None for a division with a remainder."""
        values, divisors = Counter(dict(self.values)), Counter(dict(other.values))
        if not other.number or self.number % other.number or divisors - values:
            return None
        return Product.of(self.number // other.number, values - divisors)


ONE = Product(1)


class Size(Struct, frozen=True):
    """The size of a tensor along a dimension, never negative."""

    tensor: Any
    dimension: int


def product_of(value: Any) -> Product:
    """The factors of a number. A number that is not computed by a product is its own factor."""
    known = ops.known_index(value)
    if known is not None:
        return Product(known)
    owner = ops.defining(value)
    if owner is not None and owner.name in _CASTS:
        return product_of(owner.operands[0])
    if owner is not None and owner.name == "arith.muli":
        left, right = map(product_of, owner.operands)
        return left.times(right)
    if owner is not None and owner.name == "arith.divsi":
        left, right = map(product_of, owner.operands)
        quotient = left.divided_by(right)
        if quotient is not None:
            return quotient
    if owner is not None and owner.name == "affine.apply":
        applied = _applied(owner)
        if applied is not None:
            return applied
    if owner is not None and owner.name == "tensor.dim":
        dimension = ops.known_dimension(owner)
        if dimension is not None:
            return size_of(owner.operands[0], dimension)
    return Product(1, ((value, 1),))


def _applied(apply: Any) -> Product | None:
    """The product that an `affine.apply` of operands and constants computes; None for others."""
    map_ = ir.AffineMapAttr(apply.attributes["map"]).value
    (result,) = map_.results
    return _product_of_expression(result, list(apply.operands), map_.n_dims)


def _product_of_expression(
    expression: Any, operands: Sequence[Any], dimensions: int
) -> Product | None:
    """The product of an affine expression, whose symbols are the operands after `dimensions`."""
    if isinstance(expression, ir.AffineConstantExpr):
        return Product(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        return product_of(operands[expression.position])
    if isinstance(expression, ir.AffineSymbolExpr):
        return product_of(operands[dimensions + expression.position])
    if not isinstance(expression, ir.AffineMulExpr):
        return None
    sides = (expression.lhs, expression.rhs)
    left, right = (_product_of_expression(one, operands, dimensions) for one in sides)
    return None if left is None or right is None else left.times(right)


def size_of(tensor: Any, dimension: int) -> Product:
    """The size of a tensor along a dimension. Sizes that are known to be equal have equal
    products."""
    if not isinstance(tensor.type, ir.RankedTensorType):
        return Product(1, ((Size(tensor, dimension), 1),))
    tensor = _origin(tensor, dimension)
    if not tensor.type.is_dynamic_dim(dimension):
        return Product(int(tensor.type.get_dim_size(dimension)))
    owner = ops.defining(tensor)
    number = [i for i in range(tensor.type.rank) if tensor.type.is_dynamic_dim(i)].index(dimension)
    if owner is not None and owner.name == "tensor.empty":
        return product_of(owner.operands[number])
    if owner is not None and owner.name == "tensor.expand_shape":
        return product_of(owner.operands[1 + number])
    if owner is not None and owner.name == "tensor.extract_slice":
        source, _, sizes, _ = ops.operand_groups(owner)
        if source[0].type.rank == tensor.type.rank:
            return product_of(sizes[number])
    if owner is not None and owner.name == "tensor.collapse_shape":
        found = ONE
        for place in ops.groups_of(owner)[dimension]:
            found = found.times(size_of(owner.operands[0], place))
        return found
    if owner is not None and owner.name == "tensor.reshape":
        asked = requested_sizes(owner)
        if asked is not None:
            return product_of(asked[dimension])
    return Product(1, ((Size(tensor, dimension), 1),))


def _origin(tensor: Any, dimension: int) -> Any:
    """The tensor that the sizes of this one come from, or one on the way whose size is static."""
    while tensor.type.is_dynamic_dim(dimension):
        owner = ops.defining(tensor)
        if owner is None:
            break
        like = same_sized_operand(owner, list(owner.results).index(tensor))
        if like is None:
            break
        tensor = like
    return tensor


def requested_sizes(reshape: Any) -> list[Any] | None:
    """The sizes in the shape operand of a reshape; None if they are not known as scalars."""
    producer = ops.defining(reshape.operands[1])
    if producer is None or producer.name != "tensor.from_elements":
        return None
    return list(producer.operands)
