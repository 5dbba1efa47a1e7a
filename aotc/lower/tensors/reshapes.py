"""Reshapes to sizes that a tensor says → dimensions that are put together and parted.

PyTorch's programs of sizes that are not known have a `tensor.reshape` for each `view`. Sizes are
compared as products of what is not known of them (`Product`); then all that follows sees which
dimensions became which. Where the sizes do not tell, the operation stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_SLT, _EQ = 2, 0


class Product(Struct, frozen=True):
    """A number times values, each as often as it is a factor."""

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
        """None for a division that does not come out even."""
        values, divisors = Counter(dict(self.values)), Counter(dict(other.values))
        if not other.number or self.number % other.number or divisors - values:
            return None
        return Product.of(self.number // other.number, values - divisors)


_ONE = Product(1)


class _Size(Struct, frozen=True):
    """Of a tensor along a dimension: never negative."""

    tensor: Any
    dimension: int


def expand_reshapes(module: Any) -> None:
    """Changes `module`, on tensors, in place."""
    with module.context:
        for select in ops.find(module.operation, "arith.select"):
            _settle(select)
        for reshape in ops.find(module.operation, "tensor.reshape"):
            _expand(reshape)


def _settle(select: Any) -> None:
    """A choice that sizes, which are not negative, have made before."""
    condition, one, other = select.operands
    holds = _holds(condition)
    if holds is not None:
        select.results[0].replace_all_uses_with(one if holds else other)
        select.erase()


def _holds(condition: Any) -> bool | None:
    """Whether sizes are negative: no. None for other questions."""
    owner = ops.defining(condition)
    if owner is None or owner.name != "arith.cmpi" or ops.known_index(owner.operands[1]) != 0:
        return None
    if ir.IntegerAttr(owner.attributes["predicate"]).value != _SLT:
        return None
    product = product_of(owner.operands[0])
    are_sizes = all(isinstance(value, _Size) for value, _ in product.values)
    return False if are_sizes and product.number >= 0 else None


def product_of(value: Any) -> Product:
    """What a number is a product of; of itself, if of nothing else."""
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
    if owner is not None and owner.name == "tensor.dim":
        dimension = ops.known_index(owner.operands[1])
        if dimension is not None:
            return size_of(owner.operands[0], dimension)
    return Product(1, ((value, 1),))


def size_of(tensor: Any, dimension: int) -> Product:
    """Of a tensor along a dimension: equal for sizes that are known to be."""
    if not tensor.type.is_dynamic_dim(dimension):
        return Product(int(tensor.type.get_dim_size(dimension)))
    owner = ops.defining(tensor)
    while owner is not None and owner.name.startswith("linalg."):
        # It writes into the last ones of its operands.
        tensor = owner.operands[list(owner.results).index(tensor) - len(owner.results)]
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
        groups = ir.ArrayAttr(owner.attributes["reassociation"])
        found = _ONE
        for place in ir.ArrayAttr(groups[dimension]):
            found = found.times(size_of(owner.operands[0], ir.IntegerAttr(place).value))
        return found
    if owner is not None and owner.name == "tensor.reshape":
        asked = _asked(owner)
        if asked is not None:
            return product_of(asked[dimension])
    return Product(1, ((_Size(tensor, dimension), 1),))


def _asked(reshape: Any) -> list[Any] | None:
    """The sizes that a reshape is to give."""
    maker = ops.defining(reshape.operands[1])
    if maker is None or maker.name != "tensor.from_elements":
        return None
    return list(maker.operands)


def _expand(reshape: Any) -> None:
    source, result = reshape.operands[0], reshape.results[0]
    asked = _asked(reshape)
    if asked is None or not isinstance(source.type, ir.RankedTensorType):
        return
    before = [size_of(source, i) for i in range(source.type.rank)]
    after = [
        product_of(size) if result.type.is_dynamic_dim(i) else Product(result.type.get_dim_size(i))
        for i, size in enumerate(asked)
    ]
    pairs = _pairs(before, after)
    if pairs is None:
        return
    with reshape.location, ir.InsertionPoint(reshape):
        value = _cast(source, _shape(before))
        together = [_total([before[i] for i in ones]) for ones, _ in pairs]
        if any(len(ones) > 1 for ones, _ in pairs):
            groups = [ones for ones, _ in pairs]
            value = _reshaped("tensor.collapse_shape", value, _shape(together), groups, [])
        if any(len(others) > 1 for _, others in pairs):
            sizes = [
                size if size.type == ops.index() else _index(size)
                for size, product in zip(asked, after, strict=True)
                if product.values
            ]
            groups = [others for _, others in pairs]
            value = _reshaped("tensor.expand_shape", value, _shape(after), groups, sizes)
        value = _cast(value, list(result.type.shape))
    result.replace_all_uses_with(value)
    reshape.erase()


def _pairs(
    before: Sequence[Product], after: Sequence[Product]
) -> list[tuple[list[int], list[int]]] | None:
    """The dimensions that have the same elements before and after, as few as can be together; None
    where that is not known."""
    if not before or not after or any(not one.number for one in (*before, *after)):
        return None
    found = []
    i = j = 0
    while i < len(before) and j < len(after):
        ones, others = [i], [j]
        left, right = before[i], after[j]
        i, j = i + 1, j + 1
        while left != right:
            if right.divided_by(left) is not None and i < len(before):
                left = left.times(before[i])
                ones.append(i)
                i += 1
            elif left.divided_by(right) is not None and j < len(after):
                right = right.times(after[j])
                others.append(j)
                j += 1
            else:
                return None
        found.append((ones, others))
    # What is left has one element.
    rest = (list(range(i, len(before))), list(range(j, len(after))))
    if _total([before[k] for k in rest[0]]) != _ONE or _total([after[k] for k in rest[1]]) != _ONE:
        return None
    found[-1] = (found[-1][0] + rest[0], found[-1][1] + rest[1])
    return found


def _total(products: Sequence[Product]) -> Product:
    total = _ONE
    for product in products:
        total = total.times(product)
    return total


def _shape(sizes: Sequence[Product]) -> list[int]:
    dynamic = ir.ShapedType.get_dynamic_size()
    return [dynamic if size.values else size.number for size in sizes]


def _cast(tensor: Any, shape: Sequence[int]) -> Any:
    type_ = ir.RankedTensorType.get(shape, tensor.type.element_type)
    if type_ == tensor.type:
        return tensor
    return ops.create("tensor.cast", [tensor], [type_]).result


def _index(value: Any) -> Any:
    return ops.create("arith.index_cast", [value], [ops.index()]).result


def _reshaped(
    name: str, tensor: Any, shape: Sequence[int], groups: Sequence[Sequence[int]], sizes: list[Any]
) -> Any:
    number = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(number, i) for i in group]) for group in groups]
    )
    attributes = {"reassociation": reassociation}
    if name == "tensor.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(shape))
    type_ = ir.RankedTensorType.get(shape, tensor.type.element_type)
    return ops.create(name, [tensor, *sizes], [type_], attributes).result
