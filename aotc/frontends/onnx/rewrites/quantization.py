"""DequantizeLinear and QuantizeLinear along an axis, QLinearConv and QLinearMatMul."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, INT32, UINT8
from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, constant

# The largest difference of two integers of 8 bits, and the first integer that f32 may not have.
_MOST_OF_8_BITS, _FIRST_WITHOUT_FLOAT = 255, 1 << 24


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
        f"wide = Cast <to: int = {FLOAT}> (x)",
        f"scale_1d = Cast <to: int = {FLOAT}> (x_scale)",
        "scale = Reshape (scale_1d, along)",
    ]
    if node.has(2):
        lines += [
            f"zero_1d = Cast <to: int = {FLOAT}> (x_zero_point)",
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
    element = node.element(2) or node.attribute("output_dtype", 0) or UINT8
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
        f"rounded = Cast <to: int = {FLOAT}> (even)",
    ]
    if node.has(2):
        lines += [
            f"zero_1d = Cast <to: int = {FLOAT}> (y_zero_point)",
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
        lines += _column(f"{name}_scale", node.shape(scale), FLOAT, name == "a")
        lines += _column(f"{name}_zero", node.shape(scale + 1), INT32, name == "a")
        lines += [f"{name}_wide = Cast <to: int = {INT32}> ({name})"]
        lines += [f"{name}_moved = Sub ({name}_wide, {name}_zero_c)"]
    return "\n".join(
        [
            *lines,
            "sums = MatMul (a_moved, b_moved)",
            f"wide = Cast <to: int = {FLOAT}> (sums)",
            "scale = Mul (a_scale_c, b_scale_c)",
            f"y_scale_f = Cast <to: int = {FLOAT}> (y_scale)",
            "factor = Div (scale, y_scale_f)",
            "scaled = Mul (wide, factor)",
            "rounded = Round (scaled)",
            f"zero = Cast <to: int = {FLOAT}> (y_zero)",
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


def _integer_convolution(node: Node) -> str | None:
    """torch-mlir has no padding of it. The sums are exact in floats of enough bits."""
    shape, weights = node.shape(0), known_input(node, 1)
    if shape is None or weights is None:
        return None
    element = _exact(weights)
    body = Body(node.opset)
    attributes = {
        name: found if isinstance(found, (int, str)) else list(found)
        for name in ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
        if (found := node.attribute(name)) is not None
    }
    x, w = body.cast("x", element), body.cast("w", element)
    if node.has(2):
        x = body("Sub", x, body.reshape(body.cast("x_zero", element), []))
    if node.has(3):
        along = [-1] + [1] * (len(shape) - 1)
        w = body("Sub", w, body.reshape(body.cast("w_zero", element), along))
    return body.end(y=body.cast(body("Conv", x, w, **attributes), INT32))


def _exact(weights: tuple[int, ...]) -> int:
    """Floats that have every sum of products of 8-bit integers, for weights of these sizes."""
    most = math.prod(weights[1:]) * (_MOST_OF_8_BITS**2)
    return FLOAT if most < _FIRST_WITHOUT_FLOAT else DOUBLE


def _as_floats(*names: str) -> list[str]:
    return [f"{name}_f = Cast <to: int = {FLOAT}> ({name})" for name in names]


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


def _numpy_type(element: int) -> np.dtype[Any]:
    from onnx import helper

    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(element)
    return dtype


QUANTIZATION_REWRITES = (
    Rewrite("ConvInteger", "(x, w, x_zero, w_zero) => (y)", _integer_convolution, is_last=True),
    Rewrite("DequantizeLinear", "(x, x_scale, x_zero_point) => (y)", _dequantize),
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
)
