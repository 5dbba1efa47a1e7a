"""Refuses models for which torch-mlir would compute another result than ONNX defines, or would
crash."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Set
from typing import Any

import numpy as np
from msgspec import Struct

from aotc.errors import InputError
from aotc.frontends.onnx.elements import (
    FLOAT8E4M3FN,
    FLOAT8E5M2,
)
from aotc.frontends.onnx.nodes import Node, sizes, walk
from aotc.frontends.onnx.rewrites.runtime_values import REDUCTIONS
from aotc.frontends.onnx.rewrites.sampling import is_rounded_up

# The exclusive limit of a tensor's bytes: addresses have 47 bits.
_MOST_BYTES = 1 << 47
# The first line of the message that lists unsupported nodes.
PROBLEMS = "This model cannot be lowered:"
# The most problems that one message lists.
_MOST_PROBLEMS = 20
_LARGEST_SCALE = 1 << 31
# Element types that have a lowering, by their names in `TensorProto.DataType`.
_ELEMENTS = frozenset(
    "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FLOAT16 BFLOAT16 FLOAT DOUBLE "
    "FLOAT8E4M3FN FLOAT8E5M2".split()
)
# The activations of recurrent operators that have a lowering.
_ACTIVATIONS = frozenset(("Relu", "Sigmoid", "Tanh"))
_F8 = (FLOAT8E4M3FN, FLOAT8E5M2)
# torch-mlir identifies operators by their names and ignores the domain. These are the operators of
# com.microsoft that it means.
_MICROSOFT = frozenset(
    "FusedMatMul GroupQueryAttention QLinearAdd QLinearAveragePool QLinearConcat "
    "QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid RotaryEmbedding "
    "SimplifiedLayerNormalization SkipSimplifiedLayerNormalization".split()
)


class Refusal(Struct, frozen=True):
    """Refuses nodes of an operator for which `applies` is true, with the reason."""

    operator: str
    applies: Callable[[Node], Any]
    reason: str


def _has_other_lengths(node: Node) -> bool:
    """Whether some sequences of the batch may be shorter than others."""
    shape, lengths = node.shape(0), node.constant(4)
    steps = shape[node.attribute("layout", 0)] if shape else None
    return node.has(4) and (lengths is None or steps is None or bool((lengths != steps).any()))


def _has_other_activations(node: Node) -> bool:
    """Whether the node has activations that torch-mlir would replace by others."""
    names = node.attribute("activations", None) or ()
    return any(
        (name.decode() if isinstance(name, bytes) else name) not in _ACTIVATIONS for name in names
    )


def _has_several_ranks(node: Node) -> bool:
    """Whether a result of an If has another rank in one branch than in the other."""
    branches = [node.attribute(name) for name in ("then_branch", "else_branch")]
    for pair in zip(*(branch.output for branch in branches), strict=True):
        known = [sizes(value.type.tensor_type) for value in pair]
        if len({len(one) for one in known if one is not None}) > 1:
            return True
    return False


def _has_any_size(node: Node) -> bool:
    return None in (node.shape(0) or (None,))


def _has_any_channels(node: Node) -> bool:
    return (node.shape(0) or (None, None))[1] is None


def _has_indices(node: Node) -> bool:
    return len(node.proto.output) > 1 and node.proto.output[1] != ""


def _has_any_place(node: Node) -> bool:
    """Whether the size of a spatial dimension is not known."""
    return None in (node.shape(0) or (None, None, None))[2:]


def _is_uneven(node: Node) -> bool:
    """Whether a scale of Resize gives a fractional size, which would move the corners."""
    if node.attribute("coordinate_transformation_mode") != "align_corners" or not node.has(2):
        return False
    scales, shape = node.constant(2), node.shape(0)
    if scales is not None and not scales.size:
        return False  # opset 11 requires the input, also beside sizes
    if scales is None or shape is None or None in shape:
        return True
    axes = node.attribute("axes", range(len(shape)))
    return any(float(by * shape[axis]) % 1 for by, axis in zip(scales, axes, strict=False))


def _has_no_scale(node: Node) -> bool:
    """Whether a scale of Resize is not positive or is too large."""
    scales = node.constant(2)
    return scales is not None and not bool(((scales > 0) & (scales < _LARGEST_SCALE)).all())


def _is_reflected_twice(node: Node) -> bool:
    pads, shape = node.constant(1), node.shape(0)
    # Before opset 11, the pads are an attribute.
    pads = node.attribute("pads") if pads is None else pads
    if node.attribute("mode", "constant") != "reflect" or pads is None or shape is None:
        return False
    axes = node.constant(3) if node.has(3) else range(len(shape))
    if axes is None or len(pads) != 2 * len(axes):
        return False
    known = [shape[axis] for axis in axes] * 2
    return any(size is not None and pad >= size for pad, size in zip(pads, known, strict=True))


def _has_unknown_end(node: Node) -> bool:
    """Whether a step may be negative while its start may be past the end. torch-mlir begins one
    element too late then."""
    steps, starts, shape = node.constant(4), node.constant(1), node.shape(0)
    if not node.has(4) or (steps is not None and (steps > 0).all()):
        return False
    axes = node.constant(3) if node.has(3) else range(len(shape or ()))
    if steps is None or starts is None or shape is None or axes is None:
        return True
    return any(
        step < 0 and shape[axis] is None and start != -1
        for start, step, axis in zip(starts, steps, axes, strict=False)
    )


def _is_beyond(node: Node) -> bool:
    """Whether a constant index of ScatterND is out of bounds."""
    indices, shape = node.constant(1), node.shape(0)
    if indices is None or shape is None:
        return False
    return any(
        size is not None and bool(((places < -size) | (places >= size)).any())
        for size, places in zip(shape, np.moveaxis(indices, -1, 0), strict=False)
    )


def _is_of_scalars(node: Node) -> bool:
    return not re.search(r"[A-Za-z.]", node.attribute("equation"))


def _is_narrowed(node: Node) -> bool:
    """Whether the result has 8-bit floats, which aotc supports only as inputs."""
    tensor = node.tensor(node.proto.output[0])
    return tensor is not None and tensor.elem_type in _F8


def _is_given(index: int) -> Callable[[Node], bool]:
    return lambda node: node.has(index)


def _is_computed(index: int) -> Callable[[Node], bool]:
    """Whether an input is known only at run time."""
    return lambda node: node.has(index) and node.constant(index) is None


def _has_any_length(index: int) -> Callable[[Node], bool]:
    """Whether the number of elements of a 1-D input is not known."""
    return lambda node: node.has(index) and node.shape(index) == (None,)


def _is_set(*names: str) -> Callable[[Node], bool]:
    """Whether one of these attributes is neither 0 nor empty."""
    return lambda node: any(np.any(node.attribute(name, 0)) for name in names)


def _is(name: str, value: Any, default: Any = None) -> Callable[[Node], bool]:
    return lambda node: node.attribute(name, default) == value


def _both(*conditions: Callable[[Node], bool]) -> Callable[[Node], bool]:
    return lambda node: all(condition(node) for condition in conditions)


def _is_padded_by_size(node: Node) -> bool:
    """Whether the padding depends on a size that is not known. That is so only with strides."""
    strides = node.attribute("strides", ())
    is_same = node.attribute("auto_pad", "NOTSET").startswith("SAME")
    return is_same and any(stride > 1 for stride in strides) and _has_any_place(node)


def _is_padded_unevenly(node: Node) -> bool:
    """Whether the padding at the end of a dimension may differ from that at its start."""
    pads = list(node.attribute("pads", ()))
    half = len(pads) // 2
    is_same = node.attribute("auto_pad", "NOTSET").startswith("SAME")
    return is_same or pads[:half] != pads[half:]


REFUSALS = (
    *(
        Refusal(
            name,
            _both(_is_set("select_last_index"), _has_any_size),
            "select_last_index with sizes that are known at run time alone has no lowering",
        )
        for name in ("ArgMax", "ArgMin")
    ),
    Refusal(
        "AveragePool",
        _both(_is_set("ceil_mode"), _has_any_place),
        "ceil_mode with sizes that are known at run time alone has no lowering",
    ),
    *(
        Refusal(
            name,
            _is_padded_by_size,
            "auto_pad with strides and sizes that are known at run time alone has no lowering",
        )
        for name in ("AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool")
    ),
    Refusal(
        "MaxPool",
        _both(_has_indices, _has_any_size),
        "indices of sizes that are known at run time alone have no lowering",
    ),
    Refusal(
        "MaxPool",
        _both(_is_padded_unevenly, _has_any_place),
        "other padding at the end, of sizes that are known at run time alone, has no lowering",
    ),
    *(
        Refusal(name, _is_narrowed, "conversions to elements of 8-bit floats have no lowering")
        for name in ("Cast", "CastLike", "QuantizeLinear")
    ),
    Refusal(
        "CenterCropPad",
        lambda node: _has_any_size(node) or _is_computed(1)(node),
        "sizes that are known at run time alone have no lowering",
    ),
    *(
        Refusal(
            name,
            _both(_is("mode", "CRD"), _has_any_channels),
            "mode 'CRD' with a number of channels that is known at run time alone has no lowering",
        )
        for name in ("DepthToSpace", "SpaceToDepth")
    ),
    Refusal("Det", lambda node: True, "determinants have no lowering that exchanges rows"),
    Refusal("Einsum", _is_of_scalars, "equations without a dimension have no lowering"),
    Refusal("LSTM", _is_given(7), "peepholes (the input P) have no lowering"),
    *(
        Refusal(name, applies, reason)
        for name in ("GRU", "LSTM", "RNN")
        for applies, reason in (
            (_has_other_lengths, "sequences of several lengths have no lowering"),
            (
                _has_other_activations,
                "activations other than Sigmoid, Tanh and Relu have no lowering",
            ),
            (
                _is_set("activation_alpha", "activation_beta", "clip"),
                "clip, activation_alpha and activation_beta have no lowering",
            ),
        )
    ),
    Refusal("If", _has_several_ranks, "its branches have results of several ranks"),
    *(
        Refusal(name, _has_any_size, "sizes that are known at run time alone have no lowering")
        for name in ("GRU", "RNN", "TfIdfVectorizer")
    ),
    *(
        Refusal(
            name,
            _both(_is_given(2), _has_any_size),
            "weights with sizes that are known at run time alone have no lowering",
        )
        for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    ),
    Refusal("Pad", _is_reflected_twice, "mode 'reflect' pads by more than there is to reflect"),
    Refusal("Pad", _is("mode", "wrap"), "mode 'wrap' has no lowering"),
    *(
        Refusal(name, _is_computed(1), "axes that are known at run time alone have no lowering")
        for name in REDUCTIONS
    ),
    Refusal(
        "Resize",
        lambda node: node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch",
        "keep_aspect_ratio_policy other than 'stretch' has no lowering",
    ),
    Refusal(
        "Resize", _has_no_scale, "scales that are not positive, or beyond 2^31, have no lowering"
    ),
    Refusal(
        "Resize",
        is_rounded_up,
        "scales whose size is not that of onnx's inference have no lowering; give it the sizes",
    ),
    Refusal("Resize", _is_uneven, "align_corners with scales that do not divide has no lowering"),
    *(
        Refusal(
            name,
            _has_any_length(index),
            "sizes whose number is known at run time alone have no lowering",
        )
        for name, index in (
            ("ConstantOfShape", 0),
            ("Expand", 1),
            ("Pad", 1),
            ("Reshape", 1),
            ("Resize", 2),
            ("Resize", 3),
            ("Slice", 1),
            ("Squeeze", 1),
            ("Tile", 1),
            ("Unsqueeze", 1),
        )
    ),
    Refusal("Scan", lambda node: node.opset < 9, "the batch of opset 8 has no lowering"),
    Refusal("ScatterND", _is_beyond, "an index is out of bounds"),
    Refusal("Slice", _has_unknown_end, "a negative step from an unknown start has no lowering"),
    Refusal("Split", _is_computed(1), "sizes that are known at run time alone have no lowering"),
    Refusal("Unique", lambda node: True, "results whose number is not declared have no lowering"),
)


def check_model(model: Any) -> None:
    """Raises InputError with all problems of a model that has no lowering."""
    problems = list(dict.fromkeys(_problems(model)))
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        tail = [f"and {more} more"] if more > 0 else []
        text = "\n  ".join([*problems[:_MOST_PROBLEMS], *tail])
        raise InputError(f"{PROBLEMS}\n  {text}")


def check_weights(model: Any) -> None:
    """Raises InputError for tensors whose data does not have the size of their shapes. onnx does
    not check this for external weights and constants."""
    for tensor in _tensors(model.graph):
        _check_data(tensor)
    for function in model.functions:
        for tensor in _tensors(function):
            _check_data(tensor)


def _tensors(graph: Any) -> Iterator[Any]:
    """The constant tensors of a graph or of a function, including those of nested graphs. A
    function has only those of its nodes."""
    yield from getattr(graph, "initializer", ())
    for attribute in (one for node in graph.node for one in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for nested in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            yield from _tensors(nested)


def _check_data(tensor: Any) -> None:
    from onnx import helper, numpy_helper

    element = _element_name(tensor.data_type)
    if element not in _ELEMENTS:
        return
    what = f"The data of the tensor '{tensor.name}'" if tensor.name else "The data of a constant"
    if tensor.HasField("raw_data"):
        itemsize = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        expected = math.prod((itemsize, *tensor.dims))
        if len(tensor.raw_data) != expected:
            raise InputError(
                f"{what} has {len(tensor.raw_data)} bytes: {element.lower()} of the shape "
                f"{list(tensor.dims)} has {expected}."
            )
    elif tensor.data_location != tensor.EXTERNAL:
        try:
            numpy_helper.to_array(tensor)
        except ValueError as error:
            raise InputError(
                f"{what} does not fit its shape {list(tensor.dims)}: {error}."
            ) from None


def has_problems(node: Node, model: Any) -> bool:
    """Whether `check_model` would refuse a node of the model."""
    ends = {value.name for value in (*model.graph.input, *model.graph.output)}
    return any(True for _ in _problems_of(node, ends))


def _problems(model: Any) -> Iterator[str]:
    ends = {value.name: value.type for value in (*model.graph.input, *model.graph.output)}
    named: set[str] = set()
    for node in walk(model):
        named.update(node.proto.input, node.proto.output)
        for problem in _problems_of(node, ends.keys()):
            yield f"{node.proto.name}: {problem}"
    for name in ends.keys() - named:
        yield from _problems_of_value(Node(None, 0, ends, {}), name, ends.keys())


def _problems_of(node: Node, ends: Set[str]) -> Iterator[str]:
    """Yields the problems of a node. `ends` are the names of the model's inputs and results."""
    if node.proto.domain not in ("", "ai.onnx") and not (
        node.proto.domain == "com.microsoft" and node.operator in _MICROSOFT
    ):
        yield f"operators of the domain '{node.proto.domain}' have no lowering"
        return
    for name in dict.fromkeys((*node.proto.input, *node.proto.output)):
        if name:
            yield from _problems_of_value(node, name, ends)
    for attribute in node.proto.attribute:
        if attribute.type in (attribute.TYPE_PROTO, attribute.SPARSE_TENSOR):
            yield f"its attribute '{attribute.name}' has no lowering"
    for refusal in REFUSALS:
        if refusal.operator == node.operator and refusal.applies(node):
            yield refusal.reason


def _element_name(number: int) -> str:
    """ONNX's name of an element type. An unknown type is described by its number."""
    from onnx import TensorProto

    try:
        return str(TensorProto.DataType.Name(number))
    except ValueError:
        return f"the unknown type {number}"


def _problems_of_value(node: Node, name: str, ends: Set[str]) -> Iterator[str]:
    from onnx import helper

    tensor = node.tensor(name)
    if name not in node.types:
        yield f"nothing is known of '{name}': neither its element type nor its rank"
    if tensor is None:
        if name in ends:
            yield f"'{name}' is not a tensor, and the model's inputs and results must be"
        return
    element = _element_name(tensor.elem_type)
    if element not in _ELEMENTS:
        yield f"'{name}' has elements of {element.lower()}, which have no lowering"
        return
    known = sizes(tensor)
    if known is None:
        yield f"the rank of '{name}' is not known before the run"
        return
    negative = [size for size in known if size is not None and size < 0]
    if negative:
        yield f"'{name}' would have the size {negative[0]}"
        return
    itemsize = helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    count = math.prod((itemsize, *(1 if size is None else size for size in known)))
    if count >= _MOST_BYTES:
        yield f"'{name}' has {count} bytes, and an address has 47 bits"
