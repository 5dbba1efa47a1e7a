"""`aotc-sink-conversions`: a broadcast of converted matrices becomes a conversion of broadcast
matrices.

PyTorch's grouped-query attention converts K and V to f32 before it broadcasts them to the heads
that share them. The kernels take 16-bit tensors, and look for them behind conversions. Reshapes
between the conversion and the broadcast, which remain if sizes are dynamic, are applied to the
narrow tensor.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import RESHAPES, maps_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.mlir import ir


class SinkConversions(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-sink-conversions"
    reason: str = "matrices are broadcast in their narrow type, which attention kernels read"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for broadcast in ops.find(lowering.module.operation, "linalg.generic"):
                if not _broadcasts_matrices(broadcast):
                    continue
                conversion, reshapes = _producer_and_reshapes(broadcast.operands[0])
                if conversion is not None and _widens(conversion):
                    _sink(broadcast, conversion, reshapes)


def _producer_and_reshapes(value: Any) -> tuple[Any | None, list[Any]]:
    """The operation that produces a tensor, and the reshapes after it, in program order."""
    reshapes: list[Any] = []
    owner = ops.defining(value)
    while owner is not None and owner.name in RESHAPES:
        reshapes.insert(0, owner)
        owner = ops.defining(owner.operands[0])
    return owner, reshapes


def _broadcasts_matrices(generic: Any) -> bool:
    """Whether the operation broadcasts each matrix of its input."""
    inputs, outs = ops.operand_groups(generic)
    if len(inputs) != 1 or len(generic.results) != 1:
        return False
    producer = ops.defining(outs[0])
    if producer is None or producer.name != "tensor.empty" or not _is_tensor(inputs[0]):
        return False
    source, result = maps_of(generic)
    places = [str(place) for place in source.results]
    dimensions = [f"d{i}" for i in range(result.n_dims)]
    end, *others = reversed(ops.content(generic))
    return (
        not others
        and end.operands[0] == generic.regions[0].blocks[0].arguments[0]
        and result == ir.AffineMap.get_identity(result.n_dims)
        and 3 <= len(places) < result.n_dims
        and places[-2:] == dimensions[-2:]
        and sorted(set(places)) == sorted(places)
        and set(places) <= set(dimensions)
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.ShapedType)


def _widens(generic: Any) -> bool:
    """Whether the operation is an elementwise `arith.extf` of a tensor."""
    if generic.name != "linalg.generic" or len(generic.results) != 1:
        return False
    inputs, _ = ops.operand_groups(generic)
    identity = ir.AffineMap.get_identity(generic.results[0].type.rank)
    body = ops.content(generic)
    return (
        len(inputs) == 1
        and _is_tensor(inputs[0])
        and all(map_ == identity for map_ in maps_of(generic))
        and [one.name for one in body] == ["arith.extf", "linalg.yield"]
        and body[0].operands[0] == generic.regions[0].blocks[0].arguments[0]
        and body[1].operands[0] == body[0].results[0]
    )


def _sink(broadcast: Any, conversion: Any, reshapes: list[Any]) -> None:
    narrow, (wide,) = conversion.operands[0], list(broadcast.results)
    producer = ops.defining(broadcast.operands[1])
    assert producer is not None
    with broadcast.location, ir.InsertionPoint(broadcast):
        for reshape in reshapes:
            narrow = _reshaped(narrow, reshape)
        type_ = ir.RankedTensorType.get(wide.type.shape, narrow.type.element_type)
        narrow_broadcast = create_broadcast(
            narrow, type_, maps_of(broadcast)[0], list(producer.operands)
        )
        for collapse in [use.owner.operation for use in wide.uses]:
            if collapse.name == "tensor.collapse_shape":
                _convert(_reshaped(narrow_broadcast, collapse), collapse.results[0])
                ops.erase(collapse)
        if list(wide.uses):
            _convert(narrow_broadcast, wide)
    ops.erase(broadcast)


def _reshaped(tensor: Any, reshape: Any) -> Any:
    """Applies the reshape to another tensor with the same shape."""
    type_ = ir.RankedTensorType.get(reshape.results[0].type.shape, tensor.type.element_type)
    attributes = ops.attributes_of(reshape)
    operands = [tensor, *list(reshape.operands)[1:]]
    return ops.create(reshape.name, operands, [type_], attributes).result


def _convert(narrow: Any, wide: Any) -> None:
    """Replaces the wide tensor by a conversion of the narrow one."""
    identity = ir.AffineMap.get_identity(wide.type.rank)
    converted = create_broadcast(
        narrow, wide.type, identity, ops.dynamic_sizes(narrow), "arith.extf"
    )
    wide.replace_all_uses_with(converted)
