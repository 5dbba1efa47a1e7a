"""Rewrites of DequantizeLinear and QuantizeLinear along an axis, and of quantized matmuls and
convolutions that torch-mlir does not lower."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, INT32, UINT8
from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, constant

# The largest difference of two 8-bit integers, and the first integer from which f32 does not
# represent all integers.
_MOST_OF_8_BITS, _FIRST_WITHOUT_FLOAT = 255, 1 << 24
# The first opset that has Round, and the first one with scales along an axis.
_FIRST_ROUND, _FIRST_WITH_AXES = 11, 13
# The attributes of convolutions.
_CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
# The largest sums, in steps of the result, that are computed as f32.
_MOST_STEPS = 1 << 18


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
    """torch-mlir supports only 8 bits and a single scale."""
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
    return "\n".join([*lines, *_saturated(element)])


def _saturated(element: int) -> list[str]:
    """Lines that define `y`: the floats `moved`, clamped to the range of the integer type and
    converted."""
    limits = np.iinfo(_numpy_type(element))
    return [
        f"least = Constant <value: tensor = float {{{limits.min}}}> ()",
        f"most = Constant <value: tensor = float {{{limits.max}}}> ()",
        "above = Max (moved, least)",
        "inside = Min (above, most)",
        f"y = Cast <to: int = {element}> (inside)",
    ]


def _quantized_matmul(node: Node) -> str | None:
    """torch-mlir supports zero points only for 2-D operands, and a single scale for each."""
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
            *_rounded(node.opset, element),
        ]
    )


def _rounded(opset: int, element: int) -> list[str]:
    """Lines that add the zero point to the rounded `scaled`, and saturate."""
    if opset < _FIRST_ROUND:
        return [
            "one = Constant <value: tensor = float {1.0}> ()",
            "y = QuantizeLinear (scaled, one, y_zero)",
        ]
    return [
        "rounded = Round (scaled)",
        f"zero = Cast <to: int = {FLOAT}> (y_zero)",
        "moved = Add (rounded, zero)",
        *_saturated(element),
    ]


def _integer_matmul(node: Node) -> str | None:
    """torch-mlir supports a single zero point for A, and one for each column of B."""
    zeros = [node.shape(index) if node.has(index) else () for index in (2, 3)]
    ranks = [len(zero) for zero in zeros if zero is not None]
    is_own = zeros[0] in ((), (1,)) and max(ranks) < 2
    if is_own or len(ranks) < len(zeros):
        return None
    body = Body(node.opset)
    a, b = body.cast("a", INT32), body.cast("b", INT32)
    if node.has(2):
        zero = body.cast("a_zero", INT32)
        a = body("Sub", a, body.reshape(zero, [-1, 1]) if ranks[0] == 1 else zero)
    if node.has(3):
        b = body("Sub", b, body.cast("b_zero", INT32))
    return body.end(y=body("MatMul", a, b))


def _quantized_convolution(node: Node) -> str | None:
    """torch-mlir ignores per-channel scales for the bias, does not lower 1-D convolutions, and
    crashes for groups of signed bytes and for a bias with the scale of one channel."""
    shape = node.shape(0)
    if shape is None:
        return None
    body = Body(node.opset)
    if _has_small_sums(node):
        return _convolution_of_floats(node, body)
    sums = _integer_sums(node, body, ("x", 0), ("w", 3), ("x_zero", 2), ("w_zero", 5))
    if sums is None:
        return None
    channels = [1, -1] + [1] * (len(shape) - 2)
    total = body("Add", sums, body.reshape("bias", channels)) if node.has(8) else sums
    factor = body("Div", body("Mul", "x_scale", "w_scale"), "y_scale")
    scaled = body("Mul", body.cast(total, FLOAT), body.reshape(factor, channels))
    if node.opset < _FIRST_ROUND:
        return body.end(y=body("QuantizeLinear", scaled, body.numbers(1.0), "y_zero"))
    moved = body("Add", body("Round", scaled), body.cast("y_zero", FLOAT))
    limits = np.iinfo(_numpy_type(node.element(7)))
    inside = body("Max", moved, body.numbers(float(limits.min)))
    inside = body("Min", inside, body.numbers(float(limits.max)))
    return body.end(y=body.cast(inside, node.element(7)))


def _has_small_sums(node: Node) -> bool:
    """Whether the weights and scales of a QLinearConv are constants for which the sums, in steps of
    the result, are so small that rounding them to f32 moves a result by less than 2^-6 steps."""
    sizes, scales = known_input(node, 3), [node.constant(index) for index in (1, 4, 6)]
    if sizes is None or any(scale is None for scale in scales):
        return False
    if node.opset < _FIRST_WITH_AXES or any(
        one not in node.constants for one in node.proto.input[2:]
    ):
        return False
    x, w, y = (np.abs(scale.astype(np.float64)).max() for scale in scales)
    return bool(math.prod(sizes[1:]) * _MOST_OF_8_BITS**2 * x * w < _MOST_STEPS * y)


def _convolution_of_floats(node: Node, body: Body) -> str:
    """Later passes multiply the bytes, and combine the scales."""
    along = {} if node.shape(4) in ((), (1,)) else {"axis": 0}
    filters = body("DequantizeLinear", "w", "w_scale", "w_zero", **along)
    operands = [body("DequantizeLinear", "x", "x_scale", "x_zero"), filters]
    if node.has(8):
        scale = body("Mul", "x_scale", "w_scale")
        operands.append(body("Mul", body.cast("bias", FLOAT), scale))
    y = body("Conv", *operands, **node.given(*_CONVOLUTION))
    return body.end(y=body("QuantizeLinear", y, "y_scale", "y_zero"))


def _integer_convolution(node: Node) -> str | None:
    """torch-mlir does not support its padding."""
    body = Body(node.opset)
    sums = _integer_sums(node, body, ("x", 0), ("w", 1), ("x_zero", 2), ("w_zero", 3))
    return None if sums is None else body.end(y=sums)


def _integer_sums(node: Node, body: Body, *inputs: tuple[str, int]) -> str | None:
    """A convolution of 8-bit integers with 32-bit results. `inputs` are the names and indices of
    the image, the weights, and their zero points. The sums are exact, because the float type has
    enough bits."""
    (x, place), (w, weights), (x_zero, of_x), (w_zero, of_w) = inputs
    shape, element = node.shape(place), _exact(node, weights, of_w)
    if shape is None or element is None:
        return None
    # The differences are computed as integers, so that the convolution can be recognized as one of
    # integers.
    image, filters = body.cast(x, INT32), body.cast(w, INT32)
    if node.has(of_x):
        image = body("Sub", image, body.reshape(body.cast(x_zero, INT32), []))
    if node.has(of_w):
        along = [-1] + [1] * (len(shape) - 1)
        filters = body("Sub", filters, body.reshape(body.cast(w_zero, INT32), along))
    image, filters = body.cast(image, element), body.cast(filters, element)
    return body.cast(body("Conv", image, filters, **node.given(*_CONVOLUTION)), INT32)


def _exact(node: Node, weights: int, zero: int) -> int | None:
    """The float type that represents every sum of products exactly, for known weights or for any
    weights of this shape. None if the shape is not known."""
    sizes, values = known_input(node, weights), node.constant(weights)
    zeros = node.constant(zero) if node.has(zero) else np.zeros((), np.int8)
    if sizes is None:
        return None
    most = math.prod(sizes[1:]) * _MOST_OF_8_BITS
    if values is not None and zeros is not None:
        filters = values.reshape(sizes[0], -1).astype(np.int64)
        most = np.abs(filters - zeros.reshape(-1, 1)).sum(1).max(initial=0)
    return FLOAT if most * _MOST_OF_8_BITS < _FIRST_WITHOUT_FLOAT else DOUBLE


def _column(name: str, shape: Any, element: int, is_column: bool) -> list[str]:
    """Lines that define a value of an element type. It is a column if it has an element for each
    row."""
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
    Rewrite("MatMulInteger", "(a, b, a_zero, b_zero) => (y)", _integer_matmul),
    Rewrite("QuantizeLinear", "(x, y_scale, y_zero_point) => (y)", _quantize),
)
