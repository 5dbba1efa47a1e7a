"""The masks of attention → one tensor that is added to the scores: of several, their sum.

A window's attention, as of Swin, adds a bias that depends on the head, and a mask that depends on
the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.kernels.attention.elements import Element, Index, Place
from aotc.kernels.attention.operands import BATCH, KEY, QUERY
from aotc.mlir import ir

_ELEMENT = "f32"
# A window and a head, as a rule.
_MOST_PARTS_OF_BATCH = 2


class MaskSum(Struct, frozen=True):
    """What is added to scores: the type of its tensor, and its index, in terms of batch, query and
    key."""

    masks: tuple[Element, ...]
    type: Any
    places: Index

    @staticmethod
    def of(masks: tuple[Element, ...]) -> MaskSum | None:
        """None for several masks of unknown sizes, or that depend on the batch in too many ways for
        a sum that is no larger than the scores; without masks, one of no type."""
        if not masks:
            return MaskSum(masks, None, ())
        if len(masks) == 1:
            return MaskSum(masks, masks[0].tensor.type, masks[0].index)
        sizes: dict[Place, int] = {}
        for mask in masks:
            if not mask.tensor.type.has_static_shape:
                return None
            sizes |= zip(mask.index, mask.tensor.type.shape, strict=True)
        batch = sorted((one for one in sizes if isinstance(one, tuple)), key=str)
        if len(batch) > _MOST_PARTS_OF_BATCH or (batch and BATCH in sizes):
            return None
        places = tuple(one for one in (*batch, BATCH, QUERY, KEY) if one in sizes)
        element = ir.Type.parse(_ELEMENT)
        return MaskSum(
            masks, ir.RankedTensorType.get([sizes[one] for one in places], element), places
        )

    def build(self) -> Any:
        """The tensor, at the insertion point."""
        if len(self.masks) == 1:
            return self.masks[0].tensor
        inputs = [mask.tensor for mask in self.masks]
        rank, empty = self.type.rank, ops.create("tensor.empty", [], [self.type]).result
        maps = [*map(self._map, self.masks), ir.AffineMap.get_identity(rank)]
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        generic = ops.create(
            "linalg.generic",
            [*inputs, empty],
            [self.type],
            {
                "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
                "iterator_types": ir.ArrayAttr.get([parallel] * rank),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
            },
            regions=1,
        )
        elements = [one.type.element_type for one in (*inputs, empty)]
        block = generic.regions[0].blocks.append(*elements)
        with ir.InsertionPoint(block):
            ops.create("linalg.yield", [_sum(list(block.arguments)[:-1])])
        return generic.result

    def _map(self, mask: Element) -> Any:
        """Of the sum's loops, those along which a mask has elements."""
        results = [
            ir.AffineConstantExpr.get(0)
            if place == 0
            else ir.AffineDimExpr.get(self.places.index(place))
            for place in mask.index
        ]
        return ir.AffineMap.get(self.type.rank, 0, results)


def _sum(values: Sequence[Any]) -> Any:
    """In f32: what masks of 16 bits make is not rounded before it is added to the scores."""
    type_ = ir.Type.parse(_ELEMENT)
    first, *others = (
        one if one.type == type_ else ops.unary("arith.extf", one, type_) for one in values
    )
    for one in others:
        first = ops.binary("arith.addf", first, one)
    return first
