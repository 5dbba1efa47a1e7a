"""Refuses nodes that ONNX's definition of their operator does not allow and that onnx's own check
accepts: element types, the words of attributes, the lengths of those of windows, and axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from aotc.errors import InputError
from aotc.frontends.onnx.elements import (
    BOOL,
    FLOATS,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)
from aotc.frontends.onnx.nodes import Node, walk

_INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
# An operator with one type of a kind has the same meaning for all of the kind: older opsets lack
# bf16, or some widths of integers. Other types are of a kind of their own.
_KINDS: dict[int | str, str] = {
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(_INTEGERS, "int"),
    BOOL: "bool",
}
# The domains of onnx's own operators, whose attributes are checked. Functions have others.
_DOMAINS = ("", "ai.onnx", "ai.onnx.preview.training")
_RECURRENT = frozenset(("forward", "reverse", "bidirectional"))
_SCATTERED = frozenset(("none", "add", "mul", "max", "min"))
_MEAN = frozenset(("none", "mean", "sum"))
_DEPTH = frozenset(("DCR", "CRD"))
_AUTO_PAD = frozenset(("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
# (operator, attribute) → its words. onnx has them only as text for people.
_WORDS = {
    **{(operator, "direction"): _RECURRENT for operator in ("GRU", "LSTM", "RNN")},
    **{(operator, "mode"): _DEPTH for operator in ("DepthToSpace", "SpaceToDepth")},
    **{(operator, "reduction"): _SCATTERED for operator in ("ScatterElements", "ScatterND")},
    ("NegativeLogLikelihoodLoss", "reduction"): _MEAN,
    ("SoftmaxCrossEntropyLoss", "reduction"): _MEAN,
    ("Momentum", "mode"): frozenset(("standard", "nesterov")),
    ("BitShift", "direction"): frozenset(("LEFT", "RIGHT")),
    ("Gelu", "approximate"): frozenset(("none", "tanh")),
    # Those of opset 20 and those before.
    ("GridSample", "mode"): frozenset(("linear", "nearest", "cubic", "bilinear", "bicubic")),
    ("GridSample", "padding_mode"): frozenset(("zeros", "border", "reflection")),
    ("Pad", "mode"): frozenset(("constant", "reflect", "edge", "wrap")),
    ("Resize", "coordinate_transformation_mode"): frozenset(
        (
            "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
            "tf_crop_and_resize tf_half_pixel_for_nn"
        ).split()
    ),
    ("Resize", "mode"): frozenset(("nearest", "linear", "cubic")),
    ("Resize", "nearest_mode"): frozenset(
        ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    ("RoiAlign", "coordinate_transformation_mode"): frozenset(("half_pixel", "output_half_pixel")),
    ("RoiAlign", "mode"): frozenset(("avg", "max")),
    ("TensorScatter", "mode"): frozenset(("linear", "circular")),
    ("Upsample", "mode"): frozenset(("nearest", "linear", "bilinear")),
}
# Attributes that are 0 or 1. onnx and torch-mlir read other values differently.
_FLAGS = frozenset(
    (
        "align_corners allowzero antialias ceil_mode center_point_box count_include_pad "
        "exclude_outside exclusive fmod inverse keepdims largest layout linear_before_reset "
        "onesided periodic reverse select_last_index sorted transA transB training_mode upper"
    ).split()
)
# The attributes of windows, and their length for each spatial dimension.
_WINDOWS = {"dilations": 1, "kernel_shape": 1, "pads": 2, "strides": 1}
# Operators whose axes are not those of their first input.
_OTHER_AXES = frozenset(
    "ConcatFromSequence Flatten OneHot SequenceInsert SplitToSequence Unsqueeze".split()
)
_QUANTIZED = frozenset(("DequantizeLinear", "QuantizeLinear"))
# Operators whose indices have the rank of their first input.
_ELEMENTWISE_INDICES = frozenset(("GatherElements", "Scatter", "ScatterElements"))


def check_nodes(model: Any) -> None:
    """Raises InputError for the first node that is not valid. The model has inferred types."""
    for node in walk(model):
        problem = next(_problems(node), None)
        if problem is not None:
            name = node.proto.name or (node.proto.output[0] if node.proto.output else "")
            label = f"onnx.{node.operator} ('{name}')" if name else f"onnx.{node.operator}"
            raise InputError(f"{label}: {problem} (opset {node.opset}).")


def _problems(node: Node) -> Iterator[str]:
    from onnx import defs

    if node.proto.domain in _DOMAINS:
        yield from _problems_of_words(node)
    if node.proto.domain not in ("", "ai.onnx"):
        return
    try:
        schema = defs.get_schema(node.operator, node.opset)
    except defs.SchemaError:
        return
    yield from _problems_of_types(node, schema)
    shape = node.shape(0)
    if shape is None:
        return
    for name in ("group", "offset_group"):
        count, channels = node.attribute(name, 1), shape[1] if len(shape) > 1 else None
        if count < 1 or (channels is not None and channels % count):
            yield f"its attribute {name} is {count}, which does not divide {channels} channels"
    if "kernel_shape" in schema.attributes and len(shape) > 2:
        yield from _problems_of_windows(node, len(shape) - 2)
    yield from _problems_of_axes(node, schema, len(shape))
    indices = node.shape(1)
    if node.operator not in _ELEMENTWISE_INDICES or indices is None:
        return
    if len(indices) != len(shape):
        yield f"its first input has {len(shape)} dimensions, and its indices have {len(indices)}"


def _problems_of_words(node: Node) -> Iterator[str]:
    for name in (attribute.name for attribute in node.proto.attribute):
        known = _AUTO_PAD if name == "auto_pad" else _WORDS.get((node.operator, name))
        value = node.attribute(name)
        if known is not None and value not in known:
            yield f"its attribute {name} is '{value}' and must be one of {', '.join(sorted(known))}"
        if name in _FLAGS and value not in (0, 1):
            yield f"its attribute {name} is {value} and must be 0 or 1"


def _problems_of_types(node: Node, schema: Any) -> Iterator[str]:
    bound: dict[str, tuple[str, int]] = {}
    allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    for name, parameter in zip(node.proto.input, _parameters(schema, node), strict=False):
        tensor = node.tensor(name)
        if tensor is None or not tensor.elem_type:
            continue
        variable, element = parameter.type_str, tensor.elem_type
        types = allowed.get(variable, [variable])
        if _kind(element) not in {_kind(_element_of(one)) for one in types}:
            yield f"its input '{name}' has elements of {_word(element)}, which it does not take"
        first = bound.setdefault(variable, (name, element))
        if variable in allowed and parameter.is_homogeneous and first[1] != element:
            yield (
                f"its inputs '{first[0]}' of {_word(first[1])} and '{name}' of {_word(element)} "
                "must have one element type"
            )


def _parameters(schema: Any, node: Node) -> Iterator[Any]:
    """The formal parameter of each input: the last one may be of any number of them."""
    for number in range(len(node.proto.input)):
        if schema.inputs:
            yield schema.inputs[min(number, len(schema.inputs) - 1)]


def _element_of(text: str) -> int | str:
    """The element type of `tensor(float)`; other types are returned as they are."""
    from onnx import TensorProto

    numbers: Mapping[str, int] = dict(TensorProto.DataType.items())
    name = text.removeprefix("tensor(").removesuffix(")").upper()
    return numbers.get(name, text)


def _kind(element: int | str) -> int | str:
    return _KINDS.get(element, element)


def _word(element: int) -> str:
    from onnx import TensorProto

    known = element in TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(element)).lower() if known else f"the type {element}"


def _problems_of_windows(node: Node, spatial: int) -> Iterator[str]:
    for name, each in _WINDOWS.items():
        values = node.attribute(name)
        if values is not None and len(values) != each * spatial:
            yield (
                f"its attribute {name} has {len(values)} values, and {spatial} spatial dimensions "
                f"have {each * spatial}"
            )
        elif name != "pads" and min(values or (1,)) < 1:
            yield f"its attribute {name} has the value {min(values)}, which must be positive"


def _problems_of_axes(node: Node, schema: Any, rank: int) -> Iterator[str]:
    if node.operator in _OTHER_AXES:
        return
    if node.operator in _QUANTIZED and node.shape(1) in (None, (), (1,)):
        return  # one scale for the whole tensor: the axis is not read
    values = [node.attribute(name) for name in ("axis", "axes")]
    named = zip(range(len(node.proto.input)), schema.inputs, strict=False)
    values += [node.constant(number) for number, one in named if one.name in ("axis", "axes")]
    for value in values:
        axes = [] if value is None else np.asarray(value).reshape(-1).tolist()
        outside = [axis for axis in axes if not -rank <= axis < rank]
        if outside:
            yield f"its axis {outside[0]} is out of range for {rank} dimensions"
        elif len({axis % rank for axis in axes}) < len(axes):
            yield f"its axes {axes} name one dimension twice"
