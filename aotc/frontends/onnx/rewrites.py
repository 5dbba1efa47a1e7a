"""Operators that torch-mlir lowers wrongly, or not at all, in terms of others.

Some are functions that ONNX itself defines; the bodies of the others are written here, in ONNX's
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np

from aotc.frontends.onnx.bitcasts import BITCAST_REWRITES
from aotc.frontends.onnx.bodies import Rewrite, constant, scalar
from aotc.frontends.onnx.fourier import FOURIER_REWRITES
from aotc.frontends.onnx.functions import kind_of
from aotc.frontends.onnx.layers import LAYER_REWRITES
from aotc.frontends.onnx.narrow_types import QUANTIZED_REWRITES
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.optimizers import OPTIMIZER_REWRITES
from aotc.frontends.onnx.runtime_values import RUNTIME_REWRITES, slice_by_indices
from aotc.frontends.onnx.sampling import SAMPLING_REWRITES
from aotc.frontends.onnx.scans import SCAN_REWRITES
from aotc.frontends.onnx.selections import SELECTION_REWRITES

_DOMAIN = "aotc"
# `TensorProto.UINT8`
_UINT8 = 2


def label_nodes(model: Any) -> None:
    """Calls each node as messages do, by its operator and name. It is what torch-mlir makes the
    locations of operations of."""
    for node in list(walk(model)):
        domain = f"{node.proto.domain}." if node.proto.domain else ""
        name = f" '{node.proto.name}'" if node.proto.name else ""
        node.proto.name = f"onnx.{domain}{node.operator}{name}"


def expand_functions(model: Any) -> Any:
    """The model with its own functions in the place of their calls."""
    from onnx import helper, inliner

    model.graph.value_info.add(name="")
    model.graph.value_info.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )
    chosen = [(function.domain, function.name) for function in model.functions]
    return _labelled(inliner.inline_selected_functions(model, chosen, False, True), model)


def rewrite(
    model: Any, rewrites: Sequence[Rewrite] | None = None, kinds: Set[str] = frozenset()
) -> Any:
    """The model with others in the place of operators that torch-mlir has wrong, or of nodes of
    these kinds, which it has not."""
    from onnx import helper, inliner, parser

    opset = f'<domain: "{_DOMAIN}", opset_import: ["" : {opset_of(model)}]>'
    functions: list[Any] = []
    for node, one in list(_rewritable(model, REWRITES if rewrites is None else rewrites)):
        if one.is_last and kind_of(node) not in kinds:
            continue
        text = None if node.proto.domain == _DOMAIN else one.body(node)
        if text is not None:
            name = f"{node.operator}_{len(functions)}"
            body = f"{opset}\n{name} {one.signed(node)} {{\n{text}\n}}"
            functions.append(parser.parse_function(body))
            node.proto.op_type, node.proto.domain = name, _DOMAIN
            del node.proto.attribute[:]
    if not functions:
        return model
    model.functions.extend(functions)
    if all(one.domain != _DOMAIN for one in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    chosen = [(_DOMAIN, function.name) for function in functions]
    return _labelled(inliner.inline_selected_functions(model, chosen), model)


def _rewritable(model: Any, rewrites: Sequence[Rewrite]) -> Iterator[tuple[Node, Rewrite]]:
    for node in walk(model):
        for one in rewrites:
            if one.operator == node.operator and node.proto.domain == one.domain:
                yield node, one


def _labelled(model: Any, before: Any) -> Any:
    """The model, in which the nodes of a function are called as its call was: they have no names,
    and stand before what makes the results of the call."""
    labels = {name: node.proto.name for node in walk(before) for name in node.proto.output if name}
    label = ""
    for node in reversed(list(walk(model))):
        if node.proto.name:
            continue
        found = [labels[name] for name in node.proto.output if name in labels]
        label = found[0] if found else label
        node.proto.name = label
    return model


def _dequantize(node: Node) -> str | None:
    """Scales along an axis."""
    shape, scales = node.shape(0), node.shape(1)
    if shape is None or scales is None or len(scales) != 1 or len(shape) < 1:
        return None
    if node.attribute("block_size", 0):
        return None
    axis = node.attribute("axis", 1) % len(shape)
    element = node.attribute("output_dtype", 0) or node.element(1)
    lines = [
        constant("along", [-1 if i == axis else 1 for i in range(len(shape))]),
        "wide = Cast <to: int = 1> (x)",
        "scale_1d = Cast <to: int = 1> (x_scale)",
        "scale = Reshape (scale_1d, along)",
    ]
    if node.has(2):
        lines += [
            "zero_1d = Cast <to: int = 1> (x_zero_point)",
            "zero = Reshape (zero_1d, along)",
            "moved = Sub (wide, zero)",
        ]
    else:
        lines += ["moved = Identity (wide)"]
    return "\n".join(
        [*lines, "scaled = Mul (moved, scale)", f"y = Cast <to: int = {element}> (scaled)"]
    )


def _quantize(node: Node) -> str | None:
    """torch-mlir has 8 bits, and one scale."""
    shape, scales = node.shape(0), node.shape(1)
    element = node.element(2) or node.attribute("output_dtype", 0) or _UINT8
    type_ = _numpy_type(element)
    if shape is None or scales is None or len(scales) > 1 or type_.kind not in "iu":
        return None
    if node.attribute("block_size", 0) or (type_.itemsize == 1 and scales in ((), (1,))):
        return None
    along = [1] * len(shape)
    if shape and scales not in ((), (1,)):
        along[node.attribute("axis", 1) % len(shape)] = -1
    lines = [
        constant("along", along),
        f"wide = Cast <to: int = {node.element(1)}> (x)",
        "scale = Reshape (y_scale, along)",
        "scaled = Div (wide, scale)",
        "even = Round (scaled)",
        "rounded = Cast <to: int = 1> (even)",
    ]
    if node.has(2):
        lines += [
            "zero_1d = Cast <to: int = 1> (y_zero_point)",
            "zero = Reshape (zero_1d, along)",
            "moved = Add (rounded, zero)",
        ]
    else:
        lines += ["moved = Identity (rounded)"]
    return "\n".join([*lines, *_saturated("moved", element)])


def _saturated(name: str, element: int) -> list[str]:
    """What makes `y` of floats: integers of a type, in whose range they are first brought."""
    limits = np.iinfo(_numpy_type(element))
    return [
        f"least = Constant <value: tensor = float {{{limits.min}}}> ()",
        f"most = Constant <value: tensor = float {{{limits.max}}}> ()",
        f"above = Max ({name}, least)",
        "inside = Min (above, most)",
        f"y = Cast <to: int = {element}> (inside)",
    ]


def _quantized_matmul(node: Node) -> str | None:
    """torch-mlir has the zero points of matrices alone, and one scale for each."""
    scales = [node.shape(index) for index in (1, 4)]
    ranks = [len(node.shape(index) or ()) for index in (0, 3)]
    if ranks == [2, 2] and all(scale in ((), (1,)) for scale in scales):
        return None
    element = node.element(7)
    lines = []
    for name, scale in (("a", 1), ("b", 4)):
        lines += _column(f"{name}_scale", node.shape(scale), 1, name == "a")
        lines += _column(f"{name}_zero", node.shape(scale + 1), 6, name == "a")
        lines += [f"{name}_wide = Cast <to: int = 6> ({name})"]
        lines += [f"{name}_moved = Sub ({name}_wide, {name}_zero_c)"]
    return "\n".join(
        [
            *lines,
            "sums = MatMul (a_moved, b_moved)",
            "wide = Cast <to: int = 1> (sums)",
            "scale = Mul (a_scale_c, b_scale_c)",
            "y_scale_f = Cast <to: int = 1> (y_scale)",
            "factor = Div (scale, y_scale_f)",
            "scaled = Mul (wide, factor)",
            "rounded = Round (scaled)",
            "zero = Cast <to: int = 1> (y_zero)",
            "moved = Add (rounded, zero)",
            *_saturated("moved", element),
        ]
    )


def _quantized_convolution(node: Node) -> str | None:
    """torch-mlir forgets the scales of channels for the bias."""
    scales, shape = node.shape(4), node.shape(0)
    if not node.has(8) or scales in ((), (1,)):
        return None
    if shape is None or scales is None:
        return None
    rank = len(shape)
    options = [f'auto_pad: string = "{node.attribute("auto_pad", "NOTSET")}"']
    options.append(f"group: int = {node.attribute('group', 1)}")
    for name in ("dilations", "kernel_shape", "pads", "strides"):
        if numbers := list(node.attribute(name, ())):
            options.append(f"{name}: ints = [{', '.join(map(str, numbers))}]")
    return "\n".join(
        [
            constant("filters", [-1] + [1] * (rank - 1)),
            constant("channels", [1, -1] + [1] * (rank - 2)),
            *_as_floats("x", "x_zero"),
            "x_moved = Sub (x_f, x_zero_f)",
            *_as_floats("w", "w_zero"),
            "w_zero_c = Reshape (w_zero_f, filters)",
            "w_moved = Sub (w_f, w_zero_c)",
            f"sums = Conv <{', '.join(options)}> (x_moved, w_moved)",
            *_as_floats("bias"),
            "bias_c = Reshape (bias_f, channels)",
            "total = Add (sums, bias_c)",
            "scale = Mul (x_scale, w_scale)",
            "factor = Div (scale, y_scale)",
            "factor_c = Reshape (factor, channels)",
            "scaled = Mul (total, factor_c)",
            "rounded = Round (scaled)",
            *_as_floats("y_zero"),
            "moved = Add (rounded, y_zero_f)",
            *_saturated("moved", node.element(7)),
        ]
    )


def _as_floats(*names: str) -> list[str]:
    return [f"{name}_f = Cast <to: int = 1> ({name})" for name in names]


def _column(name: str, shape: Any, element: int, is_column: bool) -> list[str]:
    """A value of an element type, that is a column where it has one number for each row."""
    cast = f"Cast <to: int = {element}> ({name})"
    if not (is_column and shape is not None and len(shape) == 1 and shape[0] != 1):
        return [f"{name}_c = {cast}"]
    return [
        f"{name}_r = {cast}",
        constant(f"{name}_s", [-1, 1]),
        f"{name}_c = Reshape ({name}_r, {name}_s)",
    ]


def _reduced(name: str, operator: str, value: str, axes: Sequence[int], opset: int) -> list[str]:
    """A reduction along axes, which were an attribute before they became an input."""
    if opset < 18:
        listed = ", ".join(map(str, axes))
        return [f"{name} = {operator} <axes: ints = [{listed}], keepdims: int = 1> ({value})"]
    return [
        constant(f"{name}_axes", axes),
        f"{name} = {operator} <keepdims: int = 1> ({value}, {name}_axes)",
    ]


def _instance_normalization(node: Node) -> str | None:
    """torch-mlir divides by another number of elements where it does not know the sizes."""
    shape = node.shape(0)
    if shape is None or None not in shape:
        return None
    axes = range(2, len(shape))
    epsilon = node.attribute("epsilon", 1e-5)
    return "\n".join(
        [
            *_reduced("mean", "ReduceMean", "x", axes, node.opset),
            "moved = Sub (x, mean)",
            "square = Mul (moved, moved)",
            *_reduced("variance", "ReduceMean", "square", axes, node.opset),
            scalar("epsilon", epsilon, node.element(0)),
            "above = Add (variance, epsilon)",
            "deviation = Sqrt (above)",
            "normal = Div (moved, deviation)",
            constant("along", [-1, *(1 for axis in axes)]),
            "scale_c = Reshape (scale, along)",
            "bias_c = Reshape (bias, along)",
            "scaled = Mul (normal, scale_c)",
            "y = Add (scaled, bias_c)",
        ]
    )


def _lp_normalization(node: Node) -> str:
    """A vector of zeros stays one."""
    axis = node.attribute("axis", -1)
    return "\n".join(
        [
            *_reduced("norm", f"ReduceL{node.attribute('p', 2)}", "x", [axis], node.opset),
            scalar("zero", 0, node.element(0)),
            scalar("one", 1, node.element(0)),
            "is_zero = Equal (norm, zero)",
            "divisor = Where (is_zero, one, norm)",
            "y = Div (x, divisor)",
        ]
    )


def _reversed_slice(node: Node) -> str | None:
    """A start past the end is moved to the last element, where the step is negative."""
    steps, starts, ends, shape = node.constant(4), node.constant(1), node.constant(2), node.shape(0)
    axes = node.constant(3) if node.has(3) else ()
    if axes is None or (
        node.has(4) and (steps is None or (steps.min() < 0 and (starts is None or ends is None)))
    ):
        return slice_by_indices(node)
    if steps is None or starts is None or ends is None or shape is None or steps.min() > 0:
        return None
    axes = range(len(steps)) if not node.has(3) else node.constant(3)
    if axes is None:
        return None
    first, last = [], []
    for start, end, step, axis in zip(starts, ends, steps, axes, strict=True):
        size = shape[axis]
        if size is None:
            # The last element, wherever it is.
            start = -1 if step < 0 and start >= np.iinfo(np.int32).max else start
        elif step < 0:
            start, end, _ = slice(int(start), int(end), int(step)).indices(size)
            end = end if end >= 0 else -size - 1
        first.append(int(start))
        last.append(int(end))
    return "\n".join(
        [
            constant("first", first),
            constant("last", last),
            constant("along", list(axes)),
            constant("by", list(steps)),
            "y = Slice (x, first, last, along, by)",
        ]
    )


def _range(node: Node) -> str | None:
    """torch-mlir has no tensor for limits that no step leads to."""
    if all(node.constant(index) is not None for index in range(3)):
        return None
    return "\n".join(
        [
            scalar("zero", 0, node.element(0)),
            "is_up = Less (start, limit)",
            "steps_up = Less (zero, delta)",
            "is_down = Less (limit, start)",
            "steps_down = Less (delta, zero)",
            "goes_up = And (is_up, steps_up)",
            "goes_down = And (is_down, steps_down)",
            "goes = Or (goes_up, goes_down)",
            "end = Where (goes, limit, start)",
            "y = Range (start, end, delta)",
        ]
    )


def _weighted_loss(node: Node) -> str | None:
    """torch-mlir divides by another sum of weights."""
    if not node.has(2) or node.attribute("reduction", "mean") != "mean":
        return None
    ignored = node.attribute("ignore_index")
    ignore = "" if ignored is None else f", ignore_index: int = {ignored}"
    return "\n".join(
        [
            "log_prob = LogSoftmax <axis: int = 1> (scores)",
            'loss = NegativeLogLikelihoodLoss <reduction: string = "mean"'
            f"{ignore}> (log_prob, labels, weights)",
        ]
    )


def _space_to_depth(node: Node) -> str | None:
    """torch-mlir has the order of channels of mode DCR."""
    shape, block = node.shape(0), node.attribute("blocksize")
    if node.attribute("mode", "DCR") == "DCR" or shape is None or shape[1] is None:
        return None
    channels, places = shape[1], block * block
    order = [place * channels + channel for channel in range(channels) for place in range(places)]
    return "\n".join(
        [
            f"other = SpaceToDepth <blocksize: int = {block}> (x)",
            constant("order", order),
            "y = Gather <axis: int = 1> (other, order)",
        ]
    )


def _numpy_type(element: int) -> np.dtype[Any]:
    from onnx import helper

    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(element)
    return dtype


REWRITES = (
    *RUNTIME_REWRITES,
    *QUANTIZED_REWRITES,
    *SAMPLING_REWRITES,
    *SCAN_REWRITES,
    *FOURIER_REWRITES,
    *SELECTION_REWRITES,
    *BITCAST_REWRITES,
    *LAYER_REWRITES,
    *OPTIMIZER_REWRITES,
    Rewrite("DequantizeLinear", "(x, x_scale, x_zero_point) => (y)", _dequantize),
    Rewrite("InstanceNormalization", "(x, scale, bias) => (y)", _instance_normalization),
    Rewrite("LpNormalization", "(x) => (y)", _lp_normalization),
    Rewrite(
        "QLinearConv",
        "(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias) => (y)",
        _quantized_convolution,
    ),
    Rewrite(
        "QLinearMatMul",
        "(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero) => (y)",
        _quantized_matmul,
    ),
    Rewrite("QuantizeLinear", "(x, y_scale, y_zero_point) => (y)", _quantize),
    Rewrite("Range", "(start, limit, delta) => (y)", _range),
    Rewrite(
        "SoftmaxCrossEntropyLoss", "(scores, labels, weights) => (loss, log_prob)", _weighted_loss
    ),
    Rewrite("SpaceToDepth", "(x) => (y)", _space_to_depth),
    Rewrite("Slice", "(x, starts, ends, axes, steps) => (y)", _reversed_slice),
)

_LAST = frozenset((one.domain, one.operator) for one in REWRITES if one.is_last)


def has_last_rewrite(node: Node) -> bool:
    """Whether there is a body for nodes of the operator that torch-mlir refuses."""
    return (node.proto.domain, node.operator) in _LAST
