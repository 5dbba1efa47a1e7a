"""Rewrites of Resize, GridSample and RoiAlign: for each element of the result, they compute its
coordinates in the input and the weights of its neighbours. Resize is separable, and is computed
along each axis separately.

Coordinates are computed in f64, because a rounding error may change which neighbour is selected.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from aotc.frontends.onnx.elements import BFLOAT16, DOUBLE, FLOAT, FLOAT16, INT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, Size

# The most neighbours that contribute to an element. Antialiasing uses many.
_MOST_TAPS = 64
# Transformations of coordinates, and modes of rounding, that repeat each element if a dimension
# grows by a whole factor.
_REPEATS = {
    ("asymmetric", "floor"),
    *product(
        ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
        ("round_prefer_floor", "round_prefer_ceil"),
    ),
}


def _resize(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made or node.opset < 11:
        return None
    if is_rounded_up(node):
        return None
    rank = len(given)
    axes = [axis % rank for axis in node.attribute("axes", range(rank))]
    body = Body(node.opset)
    mode = node.attribute("mode", "nearest")
    scales = _scales(node, body, given, made, axes)
    value = "x"
    element = node.element(0)
    is_float = mode != "nearest"
    if is_float and element != DOUBLE:
        value = body.cast(value, FLOAT)
    compute = element if element == DOUBLE else FLOAT
    one = body.numbers(1.0, DOUBLE)
    outsides = []
    for place, axis in enumerate(axes):
        scale = scales[place]
        if scale is None:
            continue
        at = _coordinate(node, body, given[axis], made[axis], scale, place, len(axes))
        if node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
            zero, last = body.numbers(0.0, DOUBLE), body.numbers(given[axis] - 1.0, DOUBLE)
            outside = body("Or", body("Less", at, zero), body("Greater", at, last))
            shape = [1] * rank
            shape[axis] = made[axis]
            outsides.append(body.reshape(outside, shape))
        if mode == "nearest":
            index = _nearest(node, body, at, given[axis])
            value = body("Gather", value, index, axis=axis)
            continue
        antialias = node.attribute("antialias", 0)
        shrink = body("Min", scale, one) if antialias else one
        taps = _taps(node, given[axis], made[axis], mode, bool(antialias))
        if taps is None:
            return None
        value = _interpolated(node, body, value, at, shrink, taps, axis, given, made, compute)
    if outsides:
        outside = outsides[0]
        for other in outsides[1:]:
            outside = body("Or", outside, other)
        filler = body.numbers(node.attribute("extrapolation_value", 0.0), compute)
        if not is_float:
            filler = body.cast(filler, element)
        value = body("Where", outside, filler, value)
    return body.end(y=body.cast(value, element) if is_float else value)


def is_rounded_up(node: Node) -> bool:
    """Whether onnx infers a size for a scale of Resize that is less than the one at run time, which
    is a product of floats of 32 bits."""
    scales, shape = node.constant(2), node.shape(0)
    if scales is None or shape is None:
        return False
    axes = node.attribute("axes", range(len(shape)))
    sizes = [(scale, shape[axis]) for scale, axis in zip(scales, axes, strict=False)]
    return any(
        size is not None and int(np.float32(scale) * np.float32(size)) > int(float(scale) * size)
        for scale, size in sizes
    )


def _scales(
    node: Node, body: Body, given: tuple[int, ...], made: tuple[int, ...], axes: list[int]
) -> list[str | None]:
    """The scale of each axis as an f64 scalar. None if the axis is not changed."""
    is_cropped = node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    if node.has(2) and known_input(node, 2) != (0,):
        constant = node.constant(2)
        scales = body.cast("scales", DOUBLE)
        return [
            None
            if not is_cropped
            and constant is not None
            and constant[place] == 1
            and given[axis] == made[axis]
            else body.reshape(body("Gather", scales, body.ints([place])), [])
            for place, axis in enumerate(axes)
        ]
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    ratios = [made[axis] / given[axis] for axis in axes]
    if policy == "stretch":
        return [
            None if made[axis] == given[axis] and not is_cropped else body.numbers(ratio, DOUBLE)
            for axis, ratio in zip(axes, ratios, strict=True)
        ]
    asked = body.cast("sizes", DOUBLE)
    own = body.numbers([float(given[axis]) for axis in axes], DOUBLE)
    operator = "ReduceMin" if policy == "not_larger" else "ReduceMax"
    return [body(operator, body("Div", asked, own), keepdims=0)] * len(axes)


def _coordinate(
    node: Node, body: Body, size: int, made: int, scale: str, place: int, count: int
) -> str:
    """The coordinates of the result's elements along an axis of the input."""
    mode = node.attribute("coordinate_transformation_mode", "half_pixel")
    steps = body.numbers([float(step) for step in range(made)], DOUBLE)
    half, one = body.numbers(0.5, DOUBLE), body.numbers(1.0, DOUBLE)
    zero = body.numbers(0.0, DOUBLE)
    # The size of the result before it is rounded down.
    wide = body("Mul", scale, body.numbers(float(size), DOUBLE))
    last = body.numbers(size - 1.0, DOUBLE)
    if mode == "asymmetric":
        return body("Div", steps, scale)
    if mode == "align_corners":
        span = body("Sub", wide, one)
        is_one = body("Equal", span, zero)
        safe = body("Where", is_one, one, span)
        moved = body("Div", body("Mul", steps, last), safe)
        return body("Where", is_one, zero, moved)
    if mode == "tf_crop_and_resize":
        region = body.cast("roi", DOUBLE)
        start, end = (
            body.reshape(body("Gather", region, body.ints([index])), [])
            for index in (place, place + count)
        )
        if made == 1:
            middle = body("Mul", body("Mul", half, body("Add", start, end)), last)
            return body("Add", body("Mul", steps, zero), middle)
        factor = body("Div", body("Mul", body("Sub", end, start), last), body("Sub", wide, one))
        return body("Add", body("Mul", start, last), body("Mul", steps, factor))
    centre = body("Sub", body("Div", body("Add", steps, half), scale), half)
    if mode == "pytorch_half_pixel":
        # The result has at most one element before its size is rounded.
        is_one = body("LessOrEqual", wide, one)
        none = body("Mul", steps, zero)
        return body("Where", is_one, none, centre)
    if mode == "half_pixel_symmetric":
        # The ratio of the actual width to the unrounded one.
        kept = body("Div", body.numbers(float(made), DOUBLE), wide)
        offset = body("Mul", body.numbers(size / 2, DOUBLE), body("Sub", one, kept))
        return body("Add", offset, centre)
    return centre


def _repeated(node: Node) -> str | None:
    """Nearest elements that are repeated a whole number of times along each dimension: no places of
    elements are computed. The channels of types of 16 bits are the last dimension in memory, which
    this would prevent."""
    given, made = known_input(node, 0), known_result(node)
    is_nearest = node.attribute("mode", "nearest") == "nearest" and node.opset >= 11
    if given is None or made is None or 0 in (*given, *made) or not is_nearest:
        return None
    times = _times(node, given, made)
    if times is None or node.element(0) in (FLOAT16, BFLOAT16):
        return None
    body = Body(node.opset)
    apart = [number for size in given for number in (size, 1)]
    wide = [number for pair in zip(given, times, strict=True) for number in pair]
    repeated = body("Expand", body.reshape("x", apart), body.ints(wide))
    return body.end(y=body.reshape(repeated, list(made)))


def _times(node: Node, given: tuple[int, ...], made: tuple[int, ...]) -> list[int] | None:
    """How often elements are repeated along each dimension; None if not each one is repeated as
    often, or if the ratios of the sizes are not the scales."""
    modes = (
        node.attribute("coordinate_transformation_mode", "half_pixel"),
        node.attribute("nearest_mode", "round_prefer_floor"),
    )
    times = [count // size for size, count in zip(given, made, strict=True)]
    are_whole = all(a * b == c for a, b, c in zip(given, times, made, strict=True))
    if modes not in _REPEATS or not are_whole:
        return None
    if not node.has(2) or known_input(node, 2) == (0,):
        is_stretched = node.attribute("keep_aspect_ratio_policy", "stretch") == "stretch"
        return times if is_stretched else None
    axes = [axis % len(given) for axis in node.attribute("axes", range(len(given)))]
    scales = node.constant(2)
    are_scales = scales is not None and [times[axis] for axis in axes] == list(scales)
    return times if are_scales else None


def _nearest(node: Node, body: Body, at: str, size: int) -> str:
    mode = node.attribute("nearest_mode", "round_prefer_floor")
    half = body.numbers(0.5, DOUBLE)
    rounded = {
        "round_prefer_floor": lambda: body("Ceil", body("Sub", at, half)),
        "round_prefer_ceil": lambda: body("Floor", body("Add", at, half)),
        "floor": lambda: body("Floor", at),
        "ceil": lambda: body("Ceil", at),
    }[mode]()
    return _inside(body, body.cast(rounded, INT64), size)


def _inside(body: Body, index: str, size: Size) -> str:
    last = body("Sub", size, body.integer(1)) if isinstance(size, str) else size - 1
    return body.clamp(index, 0, last)


def _taps(node: Node, size: int, made: int, mode: str, antialias: bool) -> range | None:
    """The offsets of the neighbours from the element before the coordinate. None if there are too
    many."""
    reach = 2 if mode == "cubic" else 1
    if not antialias or made >= size:
        return range(1 - reach, reach + 1)
    # The support grows as the scale decreases. One more is added for its rounding.
    wide = int(reach * (size + 1) / made) + 2
    return range(1 - wide, wide + 1) if 2 * wide <= _MOST_TAPS else None


def _interpolated(
    node: Node,
    body: Body,
    value: str,
    at: str,
    shrink: str,
    taps: range,
    axis: int,
    given: tuple[int, ...],
    made: tuple[int, ...],
    compute: int,
) -> str:
    """The weighted sum of neighbours along an axis."""
    mode = node.attribute("mode", "nearest")
    size = given[axis]
    before = body("Floor", at)
    shape = [1] * len(given)
    shape[axis] = made[axis]
    zero, one = body.numbers(0.0, DOUBLE), body.numbers(1.0, DOUBLE)
    last = body.numbers(size - 1.0, DOUBLE)
    weights, indices = [], []
    for tap in taps:
        index = body("Add", before, body.numbers(float(tap), DOUBLE))
        distance = body("Abs", body("Mul", body("Sub", at, index), shrink))
        weight = _cubic(node, body, distance) if mode == "cubic" else _linear(body, distance)
        if node.attribute("exclude_outside", 0):
            is_in = body(
                "And", body("GreaterOrEqual", index, zero), body("LessOrEqual", index, last)
            )
            weight = body("Where", is_in, weight, zero)
        weights.append(weight)
        indices.append(_inside(body, body.cast(index, INT64), size))
    if node.attribute("exclude_outside", 0) or node.attribute("antialias", 0):
        total = weights[0]
        for weight in weights[1:]:
            total = body("Add", total, weight)
        safe = body("Where", body("Equal", total, zero), one, total)
        weights = [body("Div", weight, safe) for weight in weights]
    result = ""
    for weight, index in zip(weights, indices, strict=True):
        factor = body.reshape(body.cast(weight, compute), shape)
        term = body("Mul", body("Gather", value, index, axis=axis), factor)
        result = body("Add", result, term) if result else term
    return result


def _linear(body: Body, distance: str) -> str:
    return body("Max", body("Sub", body.numbers(1.0, DOUBLE), distance), body.numbers(0.0, DOUBLE))


def _cubic(node: Node, body: Body, distance: str) -> str:
    return cubic(body, distance, node.attribute("cubic_coeff_a", -0.75))


def cubic(body: Body, distance: str, factor: float) -> str:
    """The weights of cubic interpolation, for distances up to 2."""

    def number(value: float) -> str:
        return body.numbers(value, DOUBLE)

    def polynomial(*factors: float) -> str:
        value = number(factors[0])
        for one in factors[1:]:
            value = body("Add", body("Mul", value, distance), number(one))
        return value

    near = polynomial(factor + 2, -(factor + 3), 0, 1)
    far = polynomial(factor, -5 * factor, 8 * factor, -4 * factor)
    outer = body("Where", body("Less", distance, number(2.0)), far, number(0.0))
    return body("Where", body("LessOrEqual", distance, number(1.0)), near, outer)


def _grid_sample(node: Node) -> str | None:
    known, of_grid = node.shape(0), node.shape(1)
    if known is None or of_grid is None or 0 in known or 0 in of_grid:
        return None
    body = Body(node.opset)
    given = body.sizes("x", known)
    grid = body.sizes("grid", [known[0], *of_grid[1:]])
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        node.attribute("mode", "linear"), node.attribute("mode", "linear")
    )
    element = node.element(0)
    compute = element if element == DOUBLE else FLOAT
    spatial, batch, channels = given[2:], given[0], given[1]
    count = len(spatial)
    number = body.product(grid[1:-1])
    places = body.reshape(body.cast("grid", DOUBLE), [batch, number, count])
    # The last coordinate of the grid is that of the first spatial axis.
    ats = [
        _unnormalized(node, body, body.part(places, count - 1 - axis, count - axis, 2), size)
        for axis, size in enumerate(spatial)
    ]
    ats = [body.reshape(at, [batch, number]) for at in ats]
    value = body.reshape("x", [batch, channels, body.product(spatial)])
    if mode != "nearest":
        value = body.cast(value, compute)
    neighbours = [
        _neighbours(node, body, mode, at, size) for at, size in zip(ats, spatial, strict=True)
    ]
    result = ""
    for taken in product(*neighbours):
        index, weight, is_in = "", "", ""
        for size, (place, own_weight, own_in) in zip(spatial, taken, strict=True):
            index = body("Add", body("Mul", index, body.whole(size)), place) if index else place
            if own_weight:
                weight = body("Mul", weight, own_weight) if weight else own_weight
            if own_in:
                is_in = body("And", is_in, own_in) if is_in else own_in
        index = body(
            "Expand", body.reshape(index, [batch, 1, number]), body.shape([batch, channels, number])
        )
        term = body("GatherElements", value, index, axis=2)
        if is_in:
            none = body.numbers(0.0, compute)
            if mode == "nearest":
                none = body.cast(none, element)
            term = body("Where", body.reshape(is_in, [batch, 1, number]), term, none)
        if weight:
            term = body("Mul", term, body.reshape(body.cast(weight, compute), [batch, 1, number]))
        result = body("Add", result, term) if result else term
    result = body.reshape(result, [batch, channels, *grid[1:-1]])
    return body.end(y=result if mode == "nearest" else body.cast(result, element))


def _unnormalized(node: Node, body: Body, place: str, size: Size) -> str:
    """Converts a coordinate from -1 to 1 to one in elements."""
    one = body("Add", place, body.numbers(1.0, DOUBLE))
    if node.attribute("align_corners", 0):
        half = body("Mul", body.number(size, -1.0), body.numbers(0.5, DOUBLE))
        return body("Mul", one, half)
    wide = body("Mul", one, body.number(size))
    return body("Mul", body("Sub", wide, body.numbers(1.0, DOUBLE)), body.numbers(0.5, DOUBLE))


def _neighbours(
    node: Node, body: Body, mode: str, at: str, size: Size
) -> list[tuple[str, str, str]]:
    """The neighbours along an axis: their indices, weights, and whether they are in the input. The
    last is empty if they always are."""
    padding = node.attribute("padding_mode", "zeros")
    # For cubic interpolation, each neighbour is moved into the input separately.
    if padding != "zeros" and mode != "cubic":
        at = _padded(node, body, at, size)
    if mode == "nearest":
        return [(*_placed(node, body, body("Round", at), size, ""),)]
    before = body("Floor", at)
    found = []
    for tap in (-1, 0, 1, 2) if mode == "cubic" else (0, 1):
        index = body("Add", before, body.numbers(float(tap), DOUBLE))
        distance = body("Abs", body("Sub", at, index))
        weight = cubic(body, distance, -0.75) if mode == "cubic" else _linear(body, distance)
        found.append(_placed(node, body, index, size, weight))
    return found


def _placed(node: Node, body: Body, index: str, size: Size, weight: str) -> tuple[str, str, str]:
    is_in = ""
    if node.attribute("padding_mode", "zeros") == "zeros":
        zero, last = body.numbers(0.0, DOUBLE), body.number(size, -1.0)
        is_in = body("And", body("GreaterOrEqual", index, zero), body("LessOrEqual", index, last))
    else:
        index = _padded(node, body, index, size)
    # NaN has no integer value.
    limit = body.number(size)
    low = body("Max", index, body.numbers(-1.0, DOUBLE))
    bounded = body("Min", low, limit)
    safe = body("Where", body("IsNaN", index), body.numbers(0.0, DOUBLE), bounded)
    return _inside(body, body.cast(safe, INT64), size), weight, is_in


def _padded(node: Node, body: Body, at: str, size: Size) -> str:
    """Moves a coordinate outside of the input into it."""
    zero, last = body.numbers(0.0, DOUBLE), body.number(size, -1.0)
    if node.attribute("padding_mode", "zeros") == "border":
        return body("Min", body("Max", at, zero), last)
    low, less = (0.0, -1.0) if node.attribute("align_corners", 0) else (-0.5, 0.0)
    # The reflections of a single element are clamped to it.
    span = body("Max", body.number(size, less), body.numbers(1.0, DOUBLE))
    period = body("Mul", span, body.numbers(2.0, DOUBLE))
    moved = body("Sub", at, body.numbers(low, DOUBLE))
    turns = body("Floor", body("Div", moved, period))
    inside = body("Sub", moved, body("Mul", turns, period))
    back = body("Min", inside, body("Sub", period, inside))
    return body("Add", back, body.numbers(low, DOUBLE))


def _aligned(node: Node) -> str | None:
    """Lowers RoiAlign to means of samples, which are matmuls with the weights of rows and of
    columns."""
    given, made = known_input(node, 0), known_result(node)
    ratio = node.attribute("sampling_ratio", 0)
    if given is None or made is None or 0 in given or 0 in made or ratio < 1:
        return None
    if node.attribute("mode", "avg") != "avg":
        return None
    body = Body(node.opset)
    element = node.element(0)
    compute = DOUBLE if element == DOUBLE else FLOAT
    regions, channels, height, width = made
    mode = node.attribute(
        "coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel"
    )
    scale = body.numbers(float(node.attribute("spatial_scale", 1.0)), compute)
    rois = body("Mul", body.cast("rois", compute), scale)
    if mode == "half_pixel":
        rois = body("Sub", rois, body.numbers(0.5, compute))
    weights = []
    for start, size, count in ((1, given[2], height), (0, given[3], width)):
        first = body.part(rois, start, start + 1, 1)
        span = body("Sub", body.part(rois, start + 2, start + 3, 1), first)
        if mode != "half_pixel":
            span = body("Max", span, body.numbers(1.0, compute))
        steps = body.numbers(
            [[(place + 0.5) / (count * ratio) for place in range(count * ratio)]], compute
        )
        at = body("Add", first, body("Mul", span, steps))
        below = body("Less", at, body.numbers(-1.0, compute))
        above = body("Greater", at, body.numbers(float(size), compute))
        zero = body.numbers(0.0, compute)
        inside = body("Min", body("Max", at, zero), body.numbers(size - 1.0, compute))
        rows = body.numbers([[[float(place) for place in range(size)]]], compute)
        wide = body.reshape(inside, [regions, count * ratio, 1])
        distance = body("Abs", body("Sub", wide, rows))
        weight = body("Max", body("Sub", body.numbers(1.0, compute), distance), zero)
        outside = body.reshape(body("Or", below, above), [regions, count * ratio, 1])
        weights.append(body("Where", outside, zero, weight))
    chosen = body("Gather", body.cast("x", compute), "batches", axis=0)
    rows = body.reshape(weights[0], [regions, 1, height * ratio, given[2]])
    columns = body("Transpose", weights[1], perm=[0, 2, 1])
    columns = body.reshape(columns, [regions, 1, given[3], width * ratio])
    samples = body("MatMul", body("MatMul", rows, chosen), columns)
    samples = body.reshape(samples, [regions, channels, height, ratio, width, ratio])
    return body.end(y=body.cast(body.reduce("ReduceMean", samples, [3, 5]), element))


def _upsample(node: Node) -> str | None:
    """torch-mlir aligns the corners of linear interpolation. Resize is of a newer opset, to which
    the model is then converted."""
    return None if node.attribute("mode", "nearest") == "nearest" else "y = Resize (i0)"


SAMPLING_REWRITES = (
    Rewrite("GridSample", "(x, grid) => (y)", _grid_sample),
    Rewrite("RoiAlign", "(x, rois, batches) => (y)", _aligned, is_last=True),
    Rewrite("Upsample", "(***) => (y)", _upsample),
    Rewrite("Resize", "(x, roi, scales, sizes) => (y)", _repeated),
    Rewrite("Resize", "(x, roi, scales, sizes) => (y)", _resize, is_last=True),
)
