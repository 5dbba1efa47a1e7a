"""`aotc-simplify-sizes`: simplifies sizes and broadcasts that are computed at run time but are
known.

PyTorch programs with a dynamic batch split a dimension by a division that undoes a multiplication.
For each broadcast, they test whether the batch is 1. This pass replaces the quotient by the
original size. Then equal sizes are one value, and a broadcast operand is read at a loop's index or
at 0. A tensor that is broadcast to its own size is replaced by that tensor.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import maps_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.lower.tensors.known_sizes import fold_known_sizes
from aotc.lower.tensors.size_polynomials import Facts, Polynomial
from aotc.lower.tensors.size_values import Sizes
from aotc.mlir import ir

_ONE = Polynomial.number(1)


class SimplifySizes(OwnPass, frozen=True):
    """Runs on tensors after `cse`, so that equal operations are one."""

    name = "aotc-simplify-sizes"
    needs = ("aotc-expand-reshapes",)
    reason: str = "divisions that undo a product of sizes, and known broadcasts, are simplified"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            fold_known_sizes(lowering.module.operation)
            for division in ops.find(lowering.module.operation, "arith.divsi"):
                _undo_product(division)
            for function in ops.find(lowering.module.operation, "func.func"):
                if not ops.is_declaration(function):
                    _simplify_broadcasts(function)


def _undo_product(division: Any) -> None:
    """Folds (x * n) / n to x."""
    dividend, divisor = ops.defining(division.operands[0]), ops.known_index(division.operands[1])
    if dividend is None or dividend.name != "affine.apply" or not divisor or divisor < 0:
        return
    map_ = ir.AffineMapAttr(dividend.attributes["map"]).value
    (product,) = map_.results
    quotient = ir.AffineExpr.get_floor_div(product, divisor)
    if ir.AffineExpr.get_mul(quotient, divisor) != product:
        return  # the division has a remainder
    operands = list(dividend.operands)
    divided = ir.AffineMap.get(map_.n_dims, map_.n_symbols, [quotient])
    (quotient,) = divided.results  # as an object of its new class
    if isinstance(quotient, ir.AffineDimExpr):
        found = operands[quotient.position]
    elif isinstance(quotient, ir.AffineSymbolExpr):
        found = operands[map_.n_dims + quotient.position]
    else:
        with division.location, ir.InsertionPoint(division):
            attributes = {"map": ir.AffineMapAttr.get(divided)}
            found = ops.create("affine.apply", operands, [ops.index()], attributes).result
    ops.replace(division, [found])


def _simplify_broadcasts(function: Any) -> None:
    """Simplifies broadcasts, using the equalities of sizes that the function asserts."""
    facts = Facts()
    sizes, entry = Sizes(function, facts), function.regions[0].blocks[0]
    replaced = []
    for operation in ops.walk(function):
        if operation.name == "cf.assert" and operation.block == entry:
            for comparison in sizes.comparisons(operation.operands[0]) or ():
                facts.learn(*comparison)
        for result in operation.results:
            if isinstance(result.type, ir.RankedTensorType):
                sizes.all_of(result)
        if operation.name == "linalg.generic" and _simplify_broadcast(operation, sizes):
            replaced.append(operation)
    # The facts refer to values, so the operations must exist until all are simplified.
    for generic in replaced:
        ops.erase(generic)


def _simplify_broadcast(generic: Any, sizes: Sizes) -> bool:
    """Replaces `tensor.extract` in the body of an elementwise operation by an operand of the
    operation.

    The extract reads at the indices of loops along dimensions of the same sizes, or at 0 along
    dimensions of size 1. Other passes understand operands. If each element is read at its own
    place, the source tensor replaces the result. Returns False if the operation has another form.
    """
    inputs, outputs = ops.operand_groups(generic)
    if inputs or len(outputs) != 1 or not isinstance(outputs[0].type, ir.RankedTensorType):
        return False
    out = outputs[0]
    (map_,) = maps_of(generic)
    identity = ir.AffineMap.get_identity(map_.n_dims)
    producer, read = ops.defining(out), ops.defining(ops.content(generic)[-1].operands[0])
    if map_ != identity or read is None or read.name != "tensor.extract":
        return False
    source, *indices = read.operands
    if not ops.is_made_outside(source, generic):
        return False
    extents = sizes.all_of(out)
    places = [
        _place(index, i, sizes.of(source, i), extents, sizes) for i, index in enumerate(indices)
    ]
    if any(one is None for one in places):
        return False
    is_same = source.type == out.type and places == list(map_.results)
    if is_same:
        found = source
    elif producer is not None and producer.name == "tensor.empty":
        with generic.location, ir.InsertionPoint(generic):
            map_to_source = ir.AffineMap.get(map_.n_dims, 0, places)
            found = create_broadcast(source, out.type, map_to_source, list(producer.operands))
    else:
        return False
    generic.results[0].replace_all_uses_with(found)
    return True


def _place(
    index: Any, dimension: int, size: Polynomial, extents: list[Polynomial], sizes: Sizes
) -> Any:
    """The affine expression for an index into the source: a loop's dimension or the constant 0;
    None for other indices.

    `dimension` and `size` are those of the source; `extents` are the sizes of the loops.
    """
    if ops.known_index(index) == 0 and size == _ONE:
        is_own = dimension < len(extents) and extents[dimension] == _ONE
        return ir.AffineDimExpr.get(dimension) if is_own else ir.AffineConstantExpr.get(0)
    loop = _loop_of(index, size, sizes)
    if loop is None or extents[loop] != size:
        return None
    return ir.AffineDimExpr.get(loop)


def _loop_of(index: Any, size: Polynomial, sizes: Sizes) -> int | None:
    """The loop whose index `index` is. The index may be `size == 1 ? 0 : loop index`, which is the
    same."""
    owner = ops.defining(index)
    if owner is not None and owner.name == "arith.select":
        condition, zero, other = owner.operands
        if ops.known_index(zero) != 0 or not _is_one(condition, size, sizes):
            return None
        owner = ops.defining(other)
    if owner is None or owner.name != "linalg.index":
        return None
    return int(ir.IntegerAttr(owner.attributes["dim"]).value)


def _is_one(condition: Any, size: Polynomial, sizes: Sizes) -> bool:
    """Whether the condition is that the size is 1."""
    asked = sizes.comparisons(condition)
    return asked in ([("eq", size, _ONE)], [("eq", _ONE, size)])
