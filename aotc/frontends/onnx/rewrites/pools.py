"""Rewrites of pools with ceil_mode, of the indices of MaxPool, and of its large windows."""

from __future__ import annotations

import math

import numpy as np

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, INT8, UINT8
from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite
from aotc.frontends.onnx.rewrites.convolutions import pads_of

# The attribute of a MaxPool whose indices are in torch-mlir's convention.
_OWN = "aotc_own_indices"
# The factor by which a second pass must reduce the elements that are read to be worth it.
_LEAST_SAVING = 2.5


def _average_pool(node: Node) -> str | None:
    """Averages with windows that end after the padding. torch-mlir divides some of them by a wrong
    count. Here the mean of a complete window is multiplied by its size and divided by the number of
    elements that count."""
    given = node.shape(0)
    is_same = node.attribute("auto_pad", "NOTSET").startswith("SAME")
    if is_same or given is None:
        return None
    if not node.attribute("ceil_mode", 0):
        return _padded_average_pool(node)
    spatial = tuple(size for size in given[2:] if size)
    if len(spatial) != len(given) - 2:
        return None
    kernel, strides, dilations, pads = _window(node, spatial)
    half = len(kernel)
    behind, factor = [], np.ones([1] * (half + 2))
    for i, size in enumerate(spatial):
        room = size + pads[i] + pads[half + i] - dilations[i] * (kernel[i] - 1) - 1
        starts = np.arange(-(-room // strides[i]) + 1) * strides[i] - pads[i]
        # No window begins after the image.
        starts = starts[starts < size]
        taps = starts[:, None] + dilations[i] * np.arange(kernel[i])
        behind.append(max(int(taps.max()) + 1 - size, 0))
        first, end = 0, size
        if node.attribute("count_include_pad", 0):
            first, end = -pads[i], size + pads[half + i]
        counted = ((taps >= first) & (taps < end)).sum(axis=1)
        factor = factor * (kernel[i] / counted).reshape(
            [-1 if axis == i + 2 else 1 for axis in range(half + 2)]
        )
    body = Body(node.opset)
    compute = DOUBLE if node.element(0) == DOUBLE else FLOAT
    widths = body.ints([0, 0, *pads[:half], 0, 0, *behind])
    padded = body("Pad", body.cast("x", compute), widths)
    whole = body("AveragePool", padded, kernel_shape=kernel, strides=strides, **_dilated(dilations))
    mean = body("Mul", whole, body.numbers(factor, compute))
    return body.end(y=body.cast(mean, node.element(0)))


def _padded_average_pool(node: Node) -> str | None:
    """Averages with dilations, and with padding that counts and is wider behind the image. For
    torch-mlir such windows end before the padding does. The zeros are part of the image here."""
    pads = node.attribute("pads", ())
    half = len(pads) // 2
    is_padded_behind = any(one > other for one, other in zip(pads[half:], pads, strict=False))
    is_dilated = max(node.attribute("dilations", [1])) > 1
    if not (node.attribute("count_include_pad", 0) and is_padded_behind and is_dilated):
        return None
    body = Body(node.opset)
    padded = body.pad("x", [0, 0, *pads[:half], 0, 0, *pads[half:]])
    given = node.given("kernel_shape", "strides", "dilations")
    return body.end(y=body("AveragePool", padded, **given))


def _ended_average_pool(node: Node) -> str | None:
    """Lowers an AveragePool for which onnx counts a window that begins after the image."""
    return _average_pool(node) if _has_window_behind(node) else None


def _ended_pool(node: Node) -> str | None:
    """Lowers MaxPool and LpPool with ceil_mode to ones that are padded up to the end of the last
    window. torch-mlir supports this for MaxPool, but onnx counts a window that begins after the
    image."""
    given = known_input(node, 0)
    if given is None or not node.attribute("ceil_mode", 0):
        return None
    if node.operator == "MaxPool" and not _has_window_behind(node):
        return None
    kernel, strides, dilations, pads = _window(node, given[2:])
    half = len(kernel)
    for i, size in enumerate(given[2:]):
        wide = dilations[i] * (kernel[i] - 1) + 1
        count = _count(size + pads[i] + pads[half + i] - wide, strides[i], size + pads[i])
        pads[half + i] = max((count - 1) * strides[i] + wide - size - pads[i], 0)
    kept = {
        name: value
        for name in ("p", "storage_order")
        if (value := node.attribute(name, None)) is not None
    }
    body = Body(node.opset)
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, **kept}
    made = body.several(
        len(node.proto.output), node.operator, "x", **attributes, **_dilated(dilations)
    )
    return body.end(**{f"y{number}": value for number, value in enumerate(made)})


def _has_window_behind(node: Node) -> bool:
    """Whether the formula for ceil_mode alone would count a window that begins after the image and
    its padding."""
    given = known_input(node, 0)
    is_same = node.attribute("auto_pad", "NOTSET").startswith("SAME")
    if given is None or is_same or not node.attribute("ceil_mode", 0):
        return False
    kernel, strides, dilations, pads = _window(node, given[2:])
    rooms = [
        size + pads[i] + pads[len(kernel) + i] - dilations[i] * (kernel[i] - 1) - 1
        for i, size in enumerate(given[2:])
    ]
    return any(
        _count(room, stride, size + begin) <= -(-room // stride)
        for room, stride, size, begin in zip(rooms, strides, given[2:], pads, strict=False)
    )


def _count(room: int, stride: int, end: int) -> int:
    """The number of windows that begin before `end`."""
    return min(-(-room // stride) + 1, -(-end // stride))


def _max_pool(node: Node) -> str | None:
    """ONNX's indices are linear over the whole input tensor, without padding. torch-mlir's are
    linear within one image, or within the padded image if the padding of its ends differs."""
    given = known_input(node, 0)
    results = node.proto.output
    if len(results) < 2 or not results[1] or node.attribute(_OWN) or given is None or 0 in given:
        return None
    kernel, strides, dilations, pads = _window(node, given[2:])
    spatial, half = given[2:], len(kernel)
    is_uneven = pads[:half] != pads[half:]
    sizes = [
        size + (pads[i] + pads[half + i] if is_uneven else 0) for i, size in enumerate(spatial)
    ]
    body = Body(node.opset)
    attributes = {"ceil_mode": 1} if node.attribute("ceil_mode", 0) else {}
    value, own = body.several(
        2,
        "MaxPool",
        "x",
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        **{_OWN: 1},
        **attributes,
        **_dilated(dilations),
    )
    plane = math.prod(spatial)
    whole = ""
    before = ""
    for axis in range(half):
        # The index along an axis together with those of the axes before it. Older opsets have no
        # Mod.
        place = found = body("Div", own, body.integer(math.prod(sizes[axis + 1 :])))
        if before:
            place = body("Sub", found, body("Mul", before, body.integer(sizes[axis])))
        before = found
        if is_uneven:
            place = body("Sub", place, body.integer(pads[axis]))
        is_column_major = node.attribute("storage_order", 0)
        inner = spatial[:axis] if is_column_major else spatial[axis + 1 :]
        term = body("Mul", place, body.integer(math.prod(inner)))
        whole = body("Add", whole, term) if whole else term
    ones = [1] * half
    for count, stride, shape in (
        (given[1], plane, [1, given[1], *ones]),
        (given[0], given[1] * plane, [given[0], 1, *ones]),
    ):
        whole = body("Add", whole, body.ints([stride * i for i in range(count)], shape))
    return body.end(y=value, indices=whole)


def _dilated(dilations: list[int]) -> dict[str, list[int]]:
    """The attribute `dilations`, unless all are 1: older opsets do not have it."""
    return {} if set(dilations) <= {1} else {"dilations": dilations}


def _window(
    node: Node, spatial: tuple[int, ...]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """The sizes of the kernel, the strides, the dilations, and the padding: at the starts, then at
    the ends."""
    kernel = list(node.attribute("kernel_shape"))
    strides = list(node.attribute("strides", [1] * len(kernel)))
    dilations = list(node.attribute("dilations", [1] * len(kernel)))
    return kernel, strides, dilations, list(pads_of(node, spatial, kernel, strides, dilations))


def _pool_of_bytes(node: Node) -> str | None:
    """A pool of floats, in which later passes find bytes. torch-mlir would widen them to 32 bits.
    The scale is 1, so that nothing is rounded."""
    if node.element(0) not in (INT8, UINT8) or len(node.proto.output) > 1:
        return None
    attributes = node.given("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
    body = Body(node.opset)
    one, zero = body.numbers(1.0), body.cast(body.integer(0), node.element(0))
    pooled = body("MaxPool", body("DequantizeLinear", "x", one, zero), **attributes)
    return body.end(y=body("QuantizeLinear", pooled, one, zero))


def _separated_pool(node: Node) -> str | None:
    """Computes the maxima of rows, and then those of columns, if windows overlap so much that this
    is far less work."""
    given, results = node.shape(0), node.proto.output
    is_plain = node.attribute("auto_pad", "NOTSET") == "NOTSET" and not node.attribute(
        "ceil_mode", 0
    )
    if given is None or len(given) != 4 or not is_plain or any(results[1:]):
        return None
    kernel, strides, dilations, pads = _window(node, ())
    high, wide = kernel
    if node.element(0) not in (FLOAT, DOUBLE):
        return None
    if high * wide < _LEAST_SAVING * (strides[0] * wide + high):
        return None
    body = Body(node.opset)
    value = "x"
    for axis in (1, 0):
        attributes = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0]}
        attributes["kernel_shape"][axis] = kernel[axis]
        attributes["strides"][axis] = strides[axis]
        attributes["pads"][axis::2] = pads[axis::2]
        apart = [1, 1]
        apart[axis] = dilations[axis]
        value = body("MaxPool", value, **attributes, **_dilated(apart))
    return body.end(y=value)


EARLY_POOL_REWRITES = (Rewrite("MaxPool", "(x) => (y)", _pool_of_bytes),)

POOL_REWRITES = (
    Rewrite("AveragePool", "(x) => (y)", _average_pool),
    Rewrite("MaxPool", "(x) => (y, indices)", _max_pool),
    Rewrite("MaxPool", "(x) => (y)", _separated_pool),
)

# Rewrites of nodes for which onnx infers wrong sizes.
SIZED_POOL_REWRITES = (
    Rewrite("AveragePool", "(x) => (y)", _ended_average_pool),
    Rewrite("LpPool", "(x) => (...)", _ended_pool),
    Rewrite("MaxPool", "(x) => (...)", _ended_pool),
)
