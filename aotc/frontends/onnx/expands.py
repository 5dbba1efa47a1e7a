"""Lowers ONNX's Expand to torch-mlir's broadcast, with the sizes that ONNX defines.

torch-mlir's own lowering of an unknown size assumes that it is not 1. If it is 1 at run time, it
would not be broadcast, and a size that does not fit would not be refused.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.frontends.onnx.nodes import Node, sizes, walk
from aotc.frontends.onnx.rewrites.body import EXPECTED
from aotc.frontends.torch_mlir.dialect import (
    converted,
    create,
    element_of,
    integer,
    load_casts,
    reinterpreted,
)

# The attribute of a node that has, for each dimension of its result, the size or one of the codes
# below.
_SIZES = "aotc_sizes"
# The input's size. (torch-mlir uses the same code.)
_KEPT = -1
# The input's size, if the shape has the same size or 1.
_ALIKE = -2
# The size in the shape, or the input's size if that is 1.
_ASKED = -3
# PyTorch's numbers of the 16-bit integer types.
_SHORT = {"si16": 2, "ui16": 27}
_LONG = {"si64", "ui64"}
_MESSAGE = "the sizes of the input and of the shape do not fit"


def note_sizes(model: Any) -> None:
    """Adds an attribute to the nodes that `lower_expands` will replace: what is known of the sizes
    of their results."""
    from onnx import helper

    for node in list(walk(model)):
        if node.operator == "Expand" and not node.proto.domain and _is_open(node):
            rank = len(node.tensor(node.proto.output[0]).shape.dim)
            noted = [_noted(node, place - rank) for place in range(rank)]
            node.proto.attribute.append(helper.make_attribute(_SIZES, noted))


def _is_open(node: Node) -> bool:
    """Whether the types do not determine which dimensions are broadcast."""
    shape, result = node.shape(0), node.tensor(node.proto.output[0])
    if shape is None or result is None or not sizes(result):
        return False
    return node.constant(1) is None or None in shape


def _noted(node: Node, place: int) -> int:
    """The size or code for a dimension of the result. `place` is negative, counted from the last
    dimension."""
    given, made = (node.tensor(one[0]).shape.dim for one in (node.proto.input, node.proto.output))
    asked, (count,) = node.constant(1), node.shape(1) or (None,)
    if count is not None and place < -count:
        return _KEPT
    if asked is not None:
        return _KEPT if asked[place] == 1 else int(asked[place])
    name = given[place].dim_param if place >= -len(given) else ""
    return _ALIKE if name and name == made[place].dim_param else _ASKED


def lower_expands(module: Any) -> None:
    """Lowers the imported operators of nodes with this attribute, casts to 16-bit integers and
    between 64-bit integers, and checks of expected values."""
    with module.context:
        for operation in ops.find(module.operation, "torch.operator"):
            if f"torch.onnx.{_SIZES}" in operation.attributes:
                _Expand(operation).lower()
            elif _is_short_cast(operation):
                _lower_short_cast(operation)
            elif _is_sign_cast(operation):
                _lower_sign_cast(operation)
            elif f"torch.onnx.{EXPECTED}" in operation.attributes:
                _lower_expected(operation)


def _is_short_cast(operation: Any) -> bool:
    """Whether an operator is a Cast to 16-bit integers. torch-mlir supports this only for PyTorch's
    operators."""
    is_cast = str(operation.attributes["name"]).strip('"') == "onnx.Cast"
    return is_cast and element_of(operation.results[0]) in _SHORT


def _is_sign_cast(operation: Any) -> bool:
    """Whether an operator is a Cast between signed and unsigned 64-bit integers, which keeps the
    bits. torch-mlir does not support this."""
    is_cast = str(operation.attributes["name"]).strip('"') == "onnx.Cast"
    values = (*operation.operands, *operation.results)
    return is_cast and {element_of(value) for value in values} == _LONG


def _lower_sign_cast(cast: Any) -> None:
    from torch_mlir import ir

    result = cast.results[0]
    load_casts(cast.context)
    with cast.location, ir.InsertionPoint(cast):
        made = reinterpreted(cast.operands[0], result.type)
    result.replace_all_uses_with(made)
    ops.erase(cast)


def _lower_short_cast(cast: Any) -> None:
    from torch_mlir import ir

    result = cast.results[0]
    with cast.location, ir.InsertionPoint(cast):
        made = converted(cast.operands[0], _SHORT[str(element_of(result))], result.type)
    result.replace_all_uses_with(made)
    ops.erase(cast)


def _lower_expected(identity: Any) -> None:
    from torch_mlir import ir

    (value,) = identity.operands
    with identity.location, ir.InsertionPoint(identity):
        is_one = create("aten.eq.int", "bool", create("aten.item", "int", value), integer(1))
        message = {"message": identity.attributes[f"torch.onnx.{EXPECTED}"]}
        ir.Operation.create("torch.runtime.assert", [], [is_one], message)
    ops.replace(identity, [value])


class _Expand:
    """An Expand of a tensor to the sizes in a 1-D tensor."""

    def __init__(self, expand: Any) -> None:
        self._expand = expand
        self._tensor, self._shape = expand.operands
        self._given, self._made, (self._count,) = (
            _sizes_of(value) for value in (self._tensor, expand.results[0], self._shape)
        )

    def lower(self) -> None:
        from torch_mlir import ir

        noted = ir.ArrayAttr(self._expand.attributes[f"torch.onnx.{_SIZES}"])
        result = self._expand.results[0]
        with self._expand.location, ir.InsertionPoint(self._expand):
            asked = [
                self._size(place - len(noted), ir.IntegerAttr(one).value)
                for place, one in enumerate(noted)
            ]
            listed = create("prim.ListConstruct", "list<int>", *asked)
            made = create("aten.broadcast_to", result.type, self._tensor, listed)
        result.replace_all_uses_with(made)
        ops.erase(self._expand)

    def _size(self, place: int, noted: int) -> Any:
        """The size that is passed to torch-mlir's operator."""
        if noted >= _KEPT:
            return integer(noted)
        size = self._asked(place)
        if noted == _ALIKE:
            _expect(size, self._own(place))
            return integer(_KEPT)
        known = self._made[place]
        if known is None:
            return size
        _expect(size, integer(known))
        return integer(known)

    def _asked(self, place: int) -> Any:
        """The size in the shape, or the tensor's size if that is 1."""
        index = integer(self._count + place)
        selected = create("aten.select.int", "vtensor<[],si64>", self._shape, integer(0), index)
        asked = create("aten.item", "int", selected)
        if place < -len(self._given) or self._given[place] == 1:
            return asked
        is_one = create("aten.eq.int", "bool", asked, integer(1))
        more = create("aten.sub.int", "int", self._own(place), integer(1))
        added = create("aten.mul.int", "int", more, create("aten.Int.bool", "int", is_one))
        return create("aten.add.int", "int", asked, added)

    def _own(self, place: int) -> Any:
        """The tensor's size."""
        return create("aten.size.int", "int", self._tensor, integer(len(self._given) + place))


def _sizes_of(value: Any) -> list[Any]:
    """The sizes in the type of a tensor of torch-mlir's; None for a size that is not known."""
    found = re.search(r"<\[([^\]]*)\]", str(value.type))
    listed = found[1].split(",") if found and found[1] else []
    return [None if one == "?" else int(one) for one in listed]


def _expect(one: Any, other: Any) -> None:
    """Asserts that two sizes are equal."""
    from torch_mlir import ir

    is_equal = create("aten.eq.int", "bool", one, other)
    message = {"message": ir.StringAttr.get(_MESSAGE)}
    ir.Operation.create("torch.runtime.assert", [], [is_equal], message)
