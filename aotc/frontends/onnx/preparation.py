"""A model of ONNX as torch-mlir takes it: of operators that it has right, with shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aotc.errors import InputError
from aotc.frontends.onnx.checks import check_model
from aotc.frontends.onnx.nodes import walk
from aotc.frontends.onnx.rewrites import (
    bind_defaults,
    expand_functions,
    has_functions,
    label_nodes,
    rewrite,
)

# Weights of more bytes are set aside while the model is looked at: each step copies the model.
_LARGE = 1 << 20
# Of Slice. onnx counts in 32 bits what some larger ones leave.
_LARGEST_STEP = 1 << 31


def prepare(model: Any) -> Any:
    """The model of operators that torch-mlir has right, with the types of values. Raises InputError
    for others."""
    _use_one_domain(model)
    label_nodes(model)
    _bound_steps(model)
    model = _infer(_expand(model))
    _bound_steps(model)
    model = _infer(rewrite(model))
    check_model(model)
    return model


def _expand(model: Any) -> Any:
    """The model without calls of functions, with the types that it was given: functions are chosen
    by types that onnx infers of their calls, where it takes sizes that it does not know for 0."""
    if not has_functions(model):
        return model
    bind_defaults(model)
    expanded = expand_functions(_infer(model))
    for name in ("output", "value_info"):
        expanded.graph.ClearField(name)
        getattr(expanded.graph, name).extend(getattr(model.graph, name))
    return expanded


def take_weights(model: Any) -> dict[str, bytes]:
    """Takes the data of large weights out of the model, by name."""
    weights = {}
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > _LARGE:
            weights[tensor.name] = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = tensor.EXTERNAL
    return weights


def put_weights(model: Any, weights: Mapping[str, bytes]) -> None:
    """Puts into a model what `take_weights` took out of the one that it was made of."""
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.raw_data = weights[tensor.name]
            tensor.ClearField("data_location")


def _use_one_domain(model: Any) -> None:
    """ONNX's own domain has two names."""
    for named in (*model.opset_import, *(node.proto for node in walk(model))):
        if named.domain == "ai.onnx":
            named.domain = ""


def _bound_steps(model: Any) -> None:
    """Gives the steps of Slice that are larger than the dimension its size, with the same result,
    or, where that is not known, the largest step: with larger ones, onnx and torch-mlir compute
    sums and opposites that wrap."""
    from onnx import numpy_helper

    for node in list(walk(model)):
        steps = node.constant(4) if node.operator == "Slice" else None
        shape = node.shape(0)
        axes = node.constant(3) if node.has(3) else range(len(shape or ()))
        if steps is None or axes is None or len(axes) != len(steps):
            continue
        sizes = [shape[axis] if shape else None for axis in axes]
        limits = [_LARGEST_STEP if size is None else max(1, size) for size in sizes]
        bounded = np.clip(steps.astype(np.int64), -np.array(limits), np.array(limits))
        if (bounded == steps).all():
            continue
        name = f"{node.proto.output[0]}_aotc_steps_{len(model.graph.initializer)}"
        model.graph.initializer.append(numpy_helper.from_array(bounded, name))
        node.proto.input[4] = name


def _infer(model: Any) -> Any:
    """The model with the shapes that onnx infers."""
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    # The others are what C++'s library throws: for attributes that are no number of anything.
    except (onnx.shape_inference.InferenceError, ValueError, IndexError, RuntimeError) as error:
        raise InputError(f"The shapes of this model do not fit: {str(error).strip()}") from None
