"""Initializers that programs may replace. During the import they are inputs of the graph, so that
nothing is folded from their values. Afterwards they are named constants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from aotc import ops
from aotc.attributes import NAME_ATTRIBUTE
from aotc.frontends.onnx.nodes import walk
from aotc.frontends.torch_mlir.entry import entry_of
from aotc.input.blobs import named_resource

# Operators whose tensor inputs are sizes, bounds and factors, which must be constants.
_OF_NUMBERS = ("Clip", "Pad", "Resize", "Upsample")


def take_held(model: Any, patterns: Sequence[str]) -> dict[str, bytes]:
    """Makes inputs of the initializers whose names match one of the patterns, and returns their
    data by name. Initializers that may be sizes, axes or factors are left: single numbers, and
    integers wider than 8 bits."""
    from onnx import TensorProto as T  # type: ignore[import-not-found, unused-ignore]
    from onnx import helper, numpy_helper

    graph = model.graph
    types = (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT8, T.UINT8)
    numbers = {
        name for node in walk(model) if node.operator in _OF_NUMBERS for name in node.proto.input
    }
    held = {}
    inputs = {value.name for value in graph.input}
    kept = []
    for tensor in graph.initializer:
        is_named = any(fnmatchcase(tensor.name, pattern) for pattern in patterns)
        is_weight = tensor.data_type in types and math.prod(tensor.dims) > 1
        if not is_named or not is_weight or tensor.name in numbers:
            kept.append(tensor)
            continue
        held[tensor.name] = numpy_helper.to_array(tensor).tobytes()
        if tensor.name not in inputs:
            type_ = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            graph.input.append(type_)
    if held:
        copies = [type(one).FromString(one.SerializeToString()) for one in kept]
        del graph.initializer[:]
        graph.initializer.extend(copies)
    return held


def put_held(module: Any, held: Mapping[str, bytes]) -> Any:
    """Replaces the arguments that `take_held` made by constants in the imported module."""
    from torch_mlir import ir

    with module.context, ir.Location.unknown():
        function = entry_of(module)
        block = function.regions[0].blocks[0]
        attributes = [ir.DictAttr(one) for one in ir.ArrayAttr(function.attributes["arg_attrs"])]
        names = [str(ir.StringAttr(one[NAME_ATTRIBUTE]).value) for one in attributes]
        for number, name in reversed(list(enumerate(names))):
            if name not in held:
                continue
            argument = block.arguments[number]
            value = ir.DenseResourceElementsAttr.get_from_buffer(
                held[name], named_resource(name), argument.type
            )
            with ir.InsertionPoint.at_block_begin(block):
                constant = ops.constant_from(value)
            argument.replace_all_uses_with(constant)
            block.erase_argument(number)
        inputs = [argument.type for argument in block.arguments]
        ops.set_function_type(function, inputs, ops.function_type(function).results)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [one for one, name in zip(attributes, names, strict=True) if name not in held]
        )
    return module
