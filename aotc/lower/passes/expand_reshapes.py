"""`aotc-expand-reshapes`: `tensor.reshape`, whose shape is a tensor → `tensor.collapse_shape` and
`tensor.expand_shape`.

PyTorch programs with dynamic sizes have a `tensor.reshape` for each `view`. Sizes are compared as
products of unknown sizes (`size_products`), so that later passes see which dimensions are collapsed
and expanded. If this does not determine the groups of dimensions, the operation stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.size_products import (
    ONE,
    Product,
    Size,
    product_of,
    requested_sizes,
    size_of,
)
from aotc.mlir import ir

_SLT, _EQ = 2, 0


class ExpandReshapes(OwnPass, frozen=True):
    name = "aotc-expand-reshapes"
    reason: str = "equal sizes are one value, so that the dimensions a view collapses are known"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for select in ops.find(lowering.module.operation, "arith.select"):
                _fold_select(select)
            for reshape in ops.find(lowering.module.operation, "tensor.reshape"):
                _expand(reshape)


def _fold_select(select: Any) -> None:
    """Folds a select whose condition is that a product of sizes is negative; sizes never are."""
    condition, one, other = select.operands
    holds = _holds(condition)
    if holds is not None:
        ops.replace(select, [one if holds else other])


def _holds(condition: Any) -> bool | None:
    """False if the condition is that a product of sizes is negative; None for other conditions."""
    owner = ops.defining(condition)
    if owner is None or owner.name != "arith.cmpi" or ops.known_index(owner.operands[1]) != 0:
        return None
    if ir.IntegerAttr(owner.attributes["predicate"]).value != _SLT:
        return None
    product = product_of(owner.operands[0])
    are_sizes = all(isinstance(value, Size) for value, _ in product.values)
    return False if are_sizes and product.number >= 0 else None


def _expand(reshape: Any) -> None:
    source, result = reshape.operands[0], reshape.results[0]
    asked = requested_sizes(reshape)
    types = (source.type, result.type)
    if asked is None or not all(isinstance(one, ir.RankedTensorType) for one in types):
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
        collapsed = [_total([before[i] for i in ones]) for ones, _ in pairs]
        if any(len(ones) > 1 for ones, _ in pairs):
            groups = [ones for ones, _ in pairs]
            value = _reshaped("tensor.collapse_shape", value, _shape(collapsed), groups, [])
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
    ops.erase(reshape)


def _pairs(
    before: Sequence[Product], after: Sequence[Product]
) -> list[tuple[list[int], list[int]]] | None:
    """The smallest groups of dimensions that have the same number of elements before and after the
    reshape; None if the sizes do not determine them."""
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
    # The remaining dimensions must have one element.
    rest = (list(range(i, len(before))), list(range(j, len(after))))
    if _total([before[k] for k in rest[0]]) != ONE or _total([after[k] for k in rest[1]]) != ONE:
        return None
    found[-1] = (found[-1][0] + rest[0], found[-1][1] + rest[1])
    return found


def _total(products: Sequence[Product]) -> Product:
    total = ONE
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
    return ops.unary("tensor.cast", tensor, type_)


def _index(value: Any) -> Any:
    return ops.unary("arith.index_cast", value, ops.index())


def _reshaped(
    name: str, tensor: Any, shape: Sequence[int], groups: Sequence[Sequence[int]], sizes: list[Any]
) -> Any:
    attributes = {"reassociation": ops.reassociation(groups)}
    if name == "tensor.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(shape))
    type_ = ir.RankedTensorType.get(shape, tensor.type.element_type)
    return ops.create(name, [tensor, *sizes], [type_], attributes).result
