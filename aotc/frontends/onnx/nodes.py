"""Nodes of an ONNX model, with the types and constants among the values that they read and
define."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

# The numeric attributes of Constant, and their element types.
_CONSTANTS = {
    "value": None,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}


class Node(Struct, frozen=True):
    """A node (`proto`) with the types of the values that are visible in its graph and the enclosing
    ones, and the constants among them, by name."""

    proto: Any
    opset: int
    types: Mapping[str, Any]
    constants: Mapping[str, Any]

    @property
    def operator(self) -> str:
        return str(self.proto.op_type)

    def has(self, index: int) -> bool:
        """Whether the node has this input. Optional inputs may be omitted."""
        return len(self.proto.input) > index and self.proto.input[index] != ""

    def tensor(self, name: str) -> Any:
        """The type of a value that is a tensor. None for other values, and if the type is not
        known."""
        type_ = self.types.get(name)
        return None if type_ is None or not type_.HasField("tensor_type") else type_.tensor_type

    def element(self, index: int) -> int:
        """The element type of an input: a value of `TensorProto.DataType`, 0 if unknown."""
        tensor = self.tensor(self.proto.input[index]) if self.has(index) else None
        return 0 if tensor is None else int(tensor.elem_type)

    def shape(self, index: int) -> tuple[int | None, ...] | None:
        """The sizes of an input, with None for an unknown size. None if the rank is not known."""
        tensor = self.tensor(self.proto.input[index]) if self.has(index) else None
        return None if tensor is None else sizes(tensor)

    def constant(self, index: int) -> Any:
        """The value of an input as a NumPy array. None if it is not a constant, or is stored
        separately."""
        from onnx import numpy_helper

        found = self.constants.get(self.proto.input[index]) if self.has(index) else None
        if found is None or found.data_location == found.EXTERNAL:
            return None
        return numpy_helper.to_array(found)

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute. A string is decoded."""
        from onnx import helper

        for attribute in self.proto.attribute:
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these attributes that the node has."""
        found = {name: self.attribute(name) for name in names}
        return {
            name: value if isinstance(value, int | float | str) else list(value)
            for name, value in found.items()
            if value is not None
        }


def sizes(tensor: Any) -> tuple[int | None, ...] | None:
    """The sizes in the type of a tensor, with None for an unknown size. None if the rank is not
    known."""
    if not tensor.HasField("shape"):
        return None
    return tuple(
        dimension.dim_value if dimension.HasField("dim_value") else None
        for dimension in tensor.shape.dim
    )


def walk(model: Any) -> Iterator[Node]:
    """Yields every node of the model in order. The nodes of nested graphs follow the node that has
    them."""
    return _walk(model.graph, opset_of(model), {}, {})


def opset_of(model: Any) -> int:
    """The version of ONNX's default operator set that the model imports, or 0."""
    versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    return max(versions, default=0)


def _walk(
    graph: Any, opset: int, types: Mapping[str, Any], constants: Mapping[str, Any]
) -> Iterator[Node]:
    # onnx also lists the results of a nested graph in its value_info, without their sizes.
    declared = (*graph.value_info, *graph.input, *graph.output)
    weights = {tensor.name: tensor for tensor in graph.initializer}
    types = {
        **types,
        **{name: _type_of(tensor) for name, tensor in weights.items()},
        **{value.name: value.type for value in declared},
    }
    constants = {**constants, **weights}
    for proto in graph.node:
        yield Node(proto, opset, types, constants)
        constant = constant_of(proto)
        if constant is not None:
            constants[proto.output[0]] = constant
        for attribute in proto.attribute:
            for nested in (attribute.g, *attribute.graphs):
                yield from _walk(nested, opset, types, constants)


def constant_of(proto: Any) -> Any:
    """The tensor of a Constant node. None for other nodes, and for values that are not numeric."""
    if proto.op_type == "Constant" and not proto.domain:
        for attribute in proto.attribute:
            if attribute.name in _CONSTANTS:
                return _tensor_of(attribute)
    return None


def _tensor_of(attribute: Any) -> Any:
    """The value of a Constant node's attribute as a TensorProto."""
    from onnx import helper, numpy_helper

    if attribute.name == "value":
        return attribute.t
    return numpy_helper.from_array(
        np.array(helper.get_attribute_value(attribute), _CONSTANTS[attribute.name])
    )


def _type_of(tensor: Any) -> Any:
    from onnx import helper

    return helper.make_tensor_type_proto(tensor.data_type, tensor.dims)


def known_result(node: Node, index: int = 0) -> tuple[int, ...] | None:
    """The sizes of a result, if all are known."""
    tensor = node.tensor(node.proto.output[index])
    found = None if tensor is None else sizes(tensor)
    if found is None or None in found:
        return None
    return tuple(size for size in found if size is not None)


def result_sizes(node: Node) -> tuple[int | None, ...] | None:
    """The sizes of the first result, with None for an unknown size. None if the rank is not
    known."""
    tensor = node.tensor(node.proto.output[0])
    return None if tensor is None else sizes(tensor)


def known_input(node: Node, index: int) -> tuple[int, ...] | None:
    """The sizes of an input, if all are known."""
    found = node.shape(index)
    if found is None or None in found:
        return None
    return tuple(size for size in found if size is not None)
