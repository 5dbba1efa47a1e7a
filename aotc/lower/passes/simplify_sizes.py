"""Sizes and broadcasts that are found out when the program runs, although they are known before.

PyTorch's programs for a batch of any size part a dimension by a division that undoes a product, and
ask wherever they broadcast whether the batch is 1. Both come out as what was there before: then
equal sizes are one value, and a tensor that is broadcast to its own size is that tensor.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import body_of, maps_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.size_products import ONE, Product, product_of, size_of
from aotc.mlir import ir

_EQ = 0


class SimplifySizes(OwnPass, frozen=True):
    """Runs on tensors, where equal operations are one (`cse`)."""

    name = "aotc-simplify-sizes"
    needs = ("aotc-expand-reshapes",)
    reason: str = "sizes and broadcasts that are known come out as what was there before"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for division in ops.find(lowering.module.operation, "arith.divsi"):
                _undo_product(division)
            for generic in ops.find(lowering.module.operation, "linalg.generic"):
                _drop_broadcast(generic)


def _undo_product(division: Any) -> None:
    """(x * n) / n is x."""
    dividend, divisor = ops.defining(division.operands[0]), ops.known_index(division.operands[1])
    if dividend is None or dividend.name != "affine.apply" or not divisor or divisor < 0:
        return
    map_ = ir.AffineMapAttr(dividend.attributes["map"]).value
    (product,) = map_.results
    quotient = ir.AffineExpr.get_floor_div(product, divisor)
    if ir.AffineExpr.get_mul(quotient, divisor) != product:
        return  # it has a remainder
    operands = list(dividend.operands)
    divided = ir.AffineMap.get(map_.n_dims, map_.n_symbols, [quotient])
    (quotient,) = divided.results  # of the class that it has become
    if isinstance(quotient, ir.AffineDimExpr):
        found = operands[quotient.position]
    elif isinstance(quotient, ir.AffineSymbolExpr):
        found = operands[map_.n_dims + quotient.position]
    else:
        with division.location, ir.InsertionPoint(division):
            attributes = {"map": ir.AffineMapAttr.get(divided)}
            found = ops.create("affine.apply", operands, [ops.index()], attributes).result
    division.results[0].replace_all_uses_with(found)
    ops.erase(division)


def _drop_broadcast(generic: Any) -> None:
    """Where each element of a new tensor is the one at its own place in another of the same
    sizes, that takes its place."""
    inputs, outputs = ops.operand_groups(generic)
    if inputs or len(outputs) != 1 or not isinstance(outputs[0].type, ir.RankedTensorType):
        return
    out = outputs[0]
    (map_,) = maps_of(generic)
    if map_ != ir.AffineMap.get_identity(map_.n_dims):
        return
    read = ops.defining(body_of(generic)[-1].operands[0])
    if read is None or read.name != "tensor.extract":
        return
    source, *indices = read.operands
    if source.type != out.type or not ops.is_made_outside(source, generic):
        return
    for dimension, index in enumerate(indices):
        size = size_of(out, dimension)
        if size != size_of(source, dimension):
            return
        if not _counts(index, dimension, size):
            return
    generic.results[0].replace_all_uses_with(source)
    ops.erase(generic)


def _counts(index: Any, dimension: int, size: Product) -> bool:
    """Whether it is the loop's index along the dimension, of which it is perhaps asked whether its
    size is 1: then 0, which is the same."""
    owner = ops.defining(index)
    if owner is not None and owner.name == "arith.select":
        condition, zero, other = owner.operands
        if ops.known_index(zero) != 0 or not _is_one(condition, size):
            return False
        owner = ops.defining(other)
    if owner is None or owner.name != "linalg.index":
        return False
    return bool(ir.IntegerAttr(owner.attributes["dim"]).value == dimension)


def _is_one(condition: Any, size: Product) -> bool:
    """Whether it asks if the size is 1."""
    owner = ops.defining(condition)
    if owner is None or owner.name != "arith.cmpi":
        return False
    if ir.IntegerAttr(owner.attributes["predicate"]).value != _EQ:
        return False
    values = [product_of(operand) for operand in owner.operands]
    return size in values and ONE in values
