"""Scores that are multiplied by a tensor, as by the temperature of a head: Q is multiplied instead.

There are usually more scores than elements of Q, and kernels know constant factors alone. Q is
multiplied only where nothing else reads what is then another value, and where it is as exact.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.kernels.attention.elements import Element
from aotc.mlir import ir

# The limit of operations between Q and the scores, and behind them.
_MOST_STEPS = 64


class Factor(Struct, frozen=True, eq=False):
    """A tensor that scores are multiplied by, as the temperature of a head.

    `element`: its element, whose index depends on the batch alone. `multiplication`: the operation
    that multiplies a score. `position`: the number of its operand that is the score. `q`: an
    element of Q on its way to the first matmul, which has the factor's dimensions.
    """

    element: Element
    multiplication: Any
    position: int
    q: Element | None = None


def flows_into(value: Any, end: Any) -> bool:
    """Whether the operation `end` alone reads the value, possibly through operations of one result
    each that nothing else reads."""
    for _ in range(_MOST_STEPS):
        users = [use.owner.operation for use in value.uses if use.owner.name != "tensor.dim"]
        if len(users) != 1:
            return False
        (user,) = users
        if user == end:
            return True
        if len(user.results) != 1:
            return False
        value = user.results[0]
    return False


def may_be_multiplied(q: Any, multiplication: Any) -> bool:
    """Whether Q times the factor is as exact as scores times the factor. Numbers of 16 bits are
    rounded, so scores must be, too; and those of f16 might exceed its range, so Q must be divided
    by something that depends on the row, as by its norm."""
    element = str(q.type.element_type)
    if element == "f32":
        return True
    if element != str(multiplication.results[0].type):
        return False
    maker = ops.defining(q)
    if element != "f16":
        return True
    if maker is None or maker.name != "linalg.generic":
        return False
    last = ops.defining(ops.content(maker)[-1].operands[0])
    return last is not None and last.name == "arith.divf" and ops.defining(last.operands[1]) is None


def multiply_q(factor: Factor) -> bool:
    """Multiplies Q by the factor, instead of the scores. Returns False, without any change, if the
    factor cannot be computed in front of them."""
    multiplication, q = factor.multiplication, factor.q
    assert q is not None
    (use,) = (one for one in q.tensor.uses if one.owner.name != "tensor.dim")
    user = use.owner.operation
    needed = _made_behind(factor.element.tensor, user)
    if needed is None:
        return False
    for operation in needed:
        operation.move_before(user)
    with user.location, ir.InsertionPoint(user):
        user.operands[use.operand_number] = _product(q, factor.element)
    ops.replace(multiplication, [multiplication.operands[factor.position]])
    return True


def _made_behind(value: Any, place: Any) -> list[Any] | None:
    """The operations behind `place`, in order, that compute a value; None if they cannot be moved
    in front of it."""
    in_order = [operation.operation for operation in place.block.operations]
    behind = set(in_order[in_order.index(place) :])
    found: set[Any] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        maker = ops.defining(value)
        if maker is None or maker not in behind:
            if not _is_visible(value, place):
                return None
            continue
        if maker in found:
            continue
        if maker == place or not is_movable(maker, place):
            return None
        found.add(maker)
        pending += [
            one
            for inner in ops.walk(maker)
            for one in inner.operands
            if ops.is_made_outside(one, maker)
        ]
    return [operation for operation in in_order if operation in found]


def _is_visible(value: Any, place: Any) -> bool:
    """Whether the value is from the block of `place` or from one around it."""
    maker = ops.defining(value)
    block = value.owner if maker is None else maker.block
    return any(block == around.block for around in (place, *ops.ancestors(place)) if around.parent)


def _product(q: Element, factor: Element) -> Any:
    """Creates the product of a tensor and a factor at the insertion point."""
    type_ = q.tensor.type

    def multiplied(*values: Any) -> Any:
        wide = [_converted(one, ir.F32Type.get()) for one in values]
        return _converted(ops.binary("arith.mulf", *wide), type_.element_type)

    indices = [
        ir.AffineConstantExpr.get(0) if place == 0 else ir.AffineDimExpr.get(q.index.index(place))
        for place in factor.index
    ]
    maps = [ir.AffineMap.get_identity(type_.rank), ir.AffineMap.get(type_.rank, 0, indices)]
    sizes = ops.dynamic_sizes(q.tensor)
    return ops.create_elementwise([q.tensor, factor.tensor], type_, sizes, multiplied, maps)


def _converted(value: Any, type_: Any) -> Any:
    """A number as f32, or an f32 as a type no wider than it."""
    if value.type == type_:
        return value
    return ops.unary(
        "arith.truncf" if value.type == ir.F32Type.get() else "arith.extf", value, type_
    )


def is_movable(operation: Any, root: Any) -> bool:
    is_pure = operation.name.startswith(("linalg.", "tensor.", "arith."))
    return bool(is_pure and operation.block == root.block)
