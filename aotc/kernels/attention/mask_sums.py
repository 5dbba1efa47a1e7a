"""The masks of attention → one tensor that is added to the scores: of several, their sum.

A window's attention, as of Swin, adds a bias that depends on the head, and a mask that depends on
the window.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.kernels.attention.elements import Element, Index, Place
from aotc.kernels.attention.operands import BATCH, KEY, QUERY
from aotc.mlir import ir

_ELEMENT = "f32"
# A window and a head, as a rule.
_MOST_PARTS_OF_BATCH = 2


class Hidden(Struct, frozen=True, eq=False):
    """Scores of the type `type` that `value` replaces: where the element of `condition`, a
    tensor of i1, is true, or with `is_seen` where it is false."""

    condition: Element
    value: float
    type: Any
    is_seen: bool

    @property
    def is_told_apart(self) -> bool:
        """Whether kernels, for which it is f32, and 0 where scores stay, see what the value is:
        none that is 0 once it is rounded to the type, or infinite in f32 alone."""
        rounded = ir.FloatAttr.get(self.type, self.value).value
        read = ir.FloatAttr.get(ir.Type.parse(_ELEMENT), rounded).value
        return bool(read != 0) and math.isinf(read) == math.isinf(rounded)


class MaskSum(Struct, frozen=True):
    """What is added to scores: the type of its tensor, and its index, in terms of batch, query and
    key. With `hidden`, the first of which comes last, it has what replaces scores, and 0 where they
    stay."""

    masks: tuple[Element, ...]
    type: Any
    places: Index
    hidden: tuple[Hidden, ...] = ()

    @staticmethod
    def of(masks: tuple[Element, ...], hidden: tuple[Hidden, ...] = ()) -> MaskSum | None:
        """None for several masks of unknown sizes, or that depend on the batch in too many ways for
        a sum that is no larger than the scores, for masks and hidden scores, and for values that
        are not told apart; without any, one of no type."""
        read = (*masks, *(one.condition for one in hidden))
        if not read:
            return MaskSum(masks, None, ())
        if (masks and hidden) or not all(one.is_told_apart for one in hidden):
            return None
        element = hidden[0].type if hidden else ir.Type.parse(_ELEMENT)
        if len(read) == 1:
            type_ = read[0].tensor.type
            if hidden:
                type_ = ir.RankedTensorType.get(type_.shape, element)
            return MaskSum(masks, type_, read[0].index, hidden)
        sizes: dict[Place, int] = {}
        for mask in read:
            if not mask.tensor.type.has_static_shape:
                return None
            sizes |= zip(mask.index, mask.tensor.type.shape, strict=True)
        batch = sorted((one for one in sizes if isinstance(one, tuple)), key=str)
        if len(batch) > _MOST_PARTS_OF_BATCH or (batch and BATCH in sizes):
            return None
        places = tuple(one for one in (*batch, BATCH, QUERY, KEY) if one in sizes)
        type_ = ir.RankedTensorType.get([sizes[one] for one in places], element)
        return MaskSum(masks, type_, places, hidden)

    @property
    def read(self) -> list[Any]:
        """The tensors that it is made of."""
        return [one.tensor for one in (*self.masks, *(one.condition for one in self.hidden))]

    def build(self) -> Any:
        """The tensor, at the insertion point."""
        if len(self.masks) == 1:
            return self.masks[0].tensor
        conditions = [one.condition for one in self.hidden]
        maps = [self._map(one) for one in (*self.masks, *conditions)]
        if len(maps) == 1:
            maps = [ir.AffineMap.get_identity(self.type.rank)]
        # Only one mask alone has unknown sizes.
        sizes = [] if self.type.has_static_shape else ops.dynamic_sizes(self.read[0])
        compute = self._replacement if self.hidden else _sum
        return ops.create_elementwise(self.read, self.type, sizes, compute, maps)

    def _replacement(self, *conditions: Any) -> Any:
        """0, or what replaces a score, at the insertion point."""
        element = self.type.element_type
        found = ops.constant(element, 0.0)
        for one, condition in zip(reversed(self.hidden), reversed(conditions), strict=True):
            value = ops.constant(element, one.value)
            either = (found, value) if one.is_seen else (value, found)
            found = ops.create("arith.select", [condition, *either], [element]).result
        return found

    def _map(self, mask: Element) -> Any:
        """Of the sum's loops, those along which a mask has elements."""
        results = [
            ir.AffineConstantExpr.get(0)
            if place == 0
            else ir.AffineDimExpr.get(self.places.index(place))
            for place in mask.index
        ]
        return ir.AffineMap.get(self.type.rank, 0, results)


def _sum(*values: Any) -> Any:
    """In f32: what masks of 16 bits make is not rounded before it is added to the scores."""
    type_ = ir.Type.parse(_ELEMENT)
    first, *others = (
        one if one.type == type_ else ops.unary("arith.extf", one, type_) for one in values
    )
    for one in others:
        first = ops.binary("arith.addf", first, one)
    return first
