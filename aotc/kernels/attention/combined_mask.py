"""Combines the masks of an attention to one tensor: several masks are added.

For example, the window attention of Swin adds a bias that depends on the head, and a mask that
depends on the window.
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
# Usually a window and a head.
_MOST_PARTS_OF_BATCH = 2


class Replacement(Struct, frozen=True, eq=False):
    """The replacement of scores by `value`, of type `type`, where the element of `condition` (a
    tensor of i1) is true or, with `is_kept_where_true`, where it is false."""

    condition: Element
    value: float
    type: Any
    is_kept_where_true: bool

    @property
    def is_representable(self) -> bool:
        """Whether kernels can represent the value. In their mask, which is f32, 0 means that the
        score is kept. So the value must not be 0 after rounding to the type, nor infinite in f32
        only."""
        rounded = ir.FloatAttr.get(self.type, self.value).value
        read = ir.FloatAttr.get(ir.Type.parse(_ELEMENT), rounded).value
        return bool(read != 0) and math.isinf(read) == math.isinf(rounded)


class CombinedMask(Struct, frozen=True):
    """The tensor that is added to scores: its type, and its index in terms of batch, query and key.
    With `replacements`, it has the values that replace scores, and 0 where scores are kept. The
    first of `replacements` is applied last."""

    masks: tuple[Element, ...]
    type: Any
    places: Index
    replacements: tuple[Replacement, ...] = ()

    @staticmethod
    def of(
        masks: tuple[Element, ...], replacements: tuple[Replacement, ...] = ()
    ) -> CombinedMask | None:
        """The combination of the masks. Its type is None if there are none. Returns None in these
        cases: several masks of unknown sizes; masks that depend on the batch in so many ways that
        the sum would be larger than the scores; both masks and replacements; a value for which
        `is_representable` is False."""
        read = (*masks, *(one.condition for one in replacements))
        if not read:
            return CombinedMask(masks, None, ())
        if (masks and replacements) or not all(one.is_representable for one in replacements):
            return None
        element = replacements[0].type if replacements else ir.Type.parse(_ELEMENT)
        if len(read) == 1:
            type_ = read[0].tensor.type
            if replacements:
                type_ = ir.RankedTensorType.get(type_.shape, element)
            return CombinedMask(masks, type_, read[0].index, replacements)
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
        return CombinedMask(masks, type_, places, replacements)

    @property
    def read(self) -> list[Any]:
        """The tensors that it is computed from."""
        return [one.tensor for one in (*self.masks, *(one.condition for one in self.replacements))]

    def build(self) -> Any:
        """Creates the tensor at the insertion point."""
        if len(self.masks) == 1:
            return self.masks[0].tensor
        conditions = [one.condition for one in self.replacements]
        maps = [self._map(one) for one in (*self.masks, *conditions)]
        if len(maps) == 1:
            maps = [ir.AffineMap.get_identity(self.type.rank)]
        # Only a single mask may have unknown sizes.
        sizes = [] if self.type.has_static_shape else ops.dynamic_sizes(self.read[0])
        compute = self._replacement if self.replacements else _sum
        return ops.create_elementwise(self.read, self.type, sizes, compute, maps)

    def _replacement(self, *conditions: Any) -> Any:
        """Computes 0, or the value that replaces a score, at the insertion point."""
        element = self.type.element_type
        found = ops.constant(element, 0.0)
        for one, condition in zip(reversed(self.replacements), reversed(conditions), strict=True):
            value = ops.constant(element, one.value)
            either = (found, value) if one.is_kept_where_true else (value, found)
            found = ops.create("arith.select", [condition, *either], [element]).result
        return found

    def _map(self, mask: Element) -> Any:
        """The indexing map of a mask, in terms of the loops of the sum."""
        results = [
            ir.AffineConstantExpr.get(0)
            if place == 0
            else ir.AffineDimExpr.get(self.places.index(place))
            for place in mask.index
        ]
        return ir.AffineMap.get(self.type.rank, 0, results)


def _sum(*values: Any) -> Any:
    """The sum in f32, so that the sum of 16-bit masks is not rounded before it is added to the
    scores."""
    type_ = ir.Type.parse(_ELEMENT)
    first, *others = (
        one if one.type == type_ else ops.unary("arith.extf", one, type_) for one in values
    )
    for one in others:
        first = ops.binary("arith.addf", first, one)
    return first
