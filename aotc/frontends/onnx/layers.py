"""Operators of networks that torch-mlir has not, or only in part: recurrences that run backward,
convolutions whose samples move, sums of overlapping blocks, and steps of optimizers.
"""

from __future__ import annotations

import math
from itertools import product

from aotc.frontends.onnx.bodies import Body, Rewrite
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.runtime_values import known_input, known_result

_FLOAT, _INT64, _DOUBLE = 1, 7, 11
# Copies of a body's part, at most: one for each place of a kernel.
_MOST = 128
# The rank of a matrix.
_MATRIX = 2
# The opset in which the axes of Squeeze and Unsqueeze are an input first.
_FIRST_AXES_INPUT = 13
# Pairs of elements that are compared, at most.
_MOST_PAIRS = 1 << 22
_DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}


def _factorizations(number: int, count: int) -> list[tuple[int, ...]]:
    """The ways to write a number as a product of so many."""
    if count == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in range(1, number + 1)
        if number % first == 0
        for rest in _factorizations(number // first, count - 1)
    ]


def _column_to_image(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made:
        return None
    body = Body(node.opset)
    image, rank = made[2:], len(made) - 2
    pads = list(node.attribute("pads", [0] * (2 * rank)))
    strides = list(node.attribute("strides", [1] * rank))
    dilations = list(node.attribute("dilations", [1] * rank))
    fitting = []
    for block in _factorizations(given[1] // made[1], rank):
        grid = [
            (image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i]
            + 1
            for i in range(rank)
        ]
        if min(grid) > 0 and math.prod(grid) == given[2]:
            fitting.append((block, grid))
    constant = node.constant(2)
    if constant is not None:
        fitting = [one for one in fitting if one[0] == tuple(constant)]
    if len(fitting) != 1 or math.prod(fitting[0][0]) > _MOST:
        return None
    ((block, grid),) = fitting
    for name, sizes in (("image_shape", image), ("block_shape", block)):
        is_equal = body("Equal", body.cast(name, _INT64), body.ints(sizes))
        body.expect(is_equal, f"{name} does not lead to the sizes of the result")
    columns = body.reshape("x", [made[0], made[1], math.prod(block), *grid])
    element = node.element(0)
    none = body.cast(body.numbers(0.0), element)
    result = ""
    for number, offsets in enumerate(product(*map(range, block))):
        term = body("Squeeze", body.part(columns, number, number + 1, 2), body.ints([2]))
        for i, offset in enumerate(offsets):
            places = [place + pads[i] - offset * dilations[i] for place in range(image[i])]
            is_in = [
                int(place % strides[i] == 0 and 0 <= place // strides[i] < grid[i])
                for place in places
            ]
            indices = [
                place // strides[i] if fits else 0
                for place, fits in zip(places, is_in, strict=True)
            ]
            shape = [1] * (rank + 2)
            shape[i + 2] = image[i]
            term = body("Gather", term, body.ints(indices), axis=i + 2)
            mask = body.cast(body.ints(is_in, shape), 9)
            term = body("Where", mask, term, none)
        result = body("Add", result, term) if result else term
    return body.end(y=result)


def _deformed(node: Node) -> str | None:
    given, weights, made = known_input(node, 0), known_input(node, 1), known_result(node)
    if given is None or weights is None or made is None or len(given) != 4:
        return None
    if 0 in (*given, *weights, *made) or weights[2] * weights[3] > _MOST:
        return None
    body = Body(node.opset)
    element = node.element(0)
    compute = _DOUBLE if element == _DOUBLE else _FLOAT
    batch, channels, height, width = given
    rows, columns = made[2:]
    kernel = weights[2:]
    number = kernel[0] * kernel[1]
    strides = node.attribute("strides", [1, 1])
    dilations = node.attribute("dilations", [1, 1])
    pads = node.attribute("pads", [0, 0, 0, 0])
    groups = node.attribute("offset_group", 1)
    value = body.reshape(body.cast("x", compute), [batch, channels, height * width])
    offsets = body.reshape(body.cast("offset", compute), [batch, groups, number, 2, rows * columns])
    mask = ""
    if node.has(4):
        mask = body.reshape(body.cast("mask", compute), [batch, groups, number, rows * columns])
    owners = body.ints([channel // (channels // groups) for channel in range(channels)])
    filters = body.cast("w", compute)
    result = ""
    for at, (i, j) in enumerate(product(range(kernel[0]), range(kernel[1]))):
        own = body("Squeeze", body.part(offsets, at, at + 1, 2), body.ints([2]))
        starts = [
            [
                float(place * strides[0] - pads[0] + i * dilations[0])
                for place in range(rows)
                for _ in range(columns)
            ],
            [
                float(place * strides[1] - pads[1] + j * dilations[1])
                for _ in range(rows)
                for place in range(columns)
            ],
        ]
        coordinates = [
            body(
                "Add",
                body("Squeeze", body.part(own, axis, axis + 1, 2), body.ints([2])),
                body.numbers(starts[axis], compute),
            )
            for axis in (0, 1)
        ]
        sampled = _bilinear(body, value, coordinates, (height, width), owners, compute)
        if mask:
            own_mask = body("Squeeze", body.part(mask, at, at + 1, 2), body.ints([2]))
            sampled = body("Mul", sampled, body("Gather", own_mask, owners, axis=1))
        sampled = body.reshape(sampled, [batch, channels, rows, columns])
        filter_ = body.part(body.part(filters, i, i + 1, 2), j, j + 1, 3)
        term = body("Conv", sampled, filter_, group=node.attribute("group", 1), kernel_shape=[1, 1])
        result = body("Add", result, term) if result else term
    if node.has(3):
        bias = body.reshape(body.cast("bias", compute), [1, made[1], 1, 1])
        result = body("Add", result, bias)
    return body.end(y=body.cast(result, element))


def _bilinear(
    body: Body, value: str, at: list[str], sizes: tuple[int, int], owners: str, compute: int
) -> str:
    """Samples [batch, channels, number] at places [batch, groups, number] in two dimensions, where
    what is outside is 0. `owners`: the group of each channel."""
    zero, one = body.numbers(0.0, compute), body.numbers(1.0, compute)
    befores = [body("Floor", place) for place in at]
    result = ""
    for taken in product((0.0, 1.0), repeat=2):
        weight = index = is_in = ""
        for tap, place, before, size in zip(taken, at, befores, sizes, strict=True):
            there = body("Add", before, body.numbers(tap, compute))
            own = body("Sub", one, body("Abs", body("Sub", place, there)))
            weight = body("Mul", weight, own) if weight else own
            last = body.numbers(size - 1.0, compute)
            inside = body(
                "And", body("GreaterOrEqual", there, zero), body("LessOrEqual", there, last)
            )
            is_in = body("And", is_in, inside) if is_in else inside
            safe = body.cast(body("Where", inside, there, zero), _INT64)
            index = body("Add", body("Mul", index, body.integer(size)), safe) if index else safe
        index = body("Gather", index, owners, axis=1)
        weight = body("Where", is_in, weight, zero)
        term = body("GatherElements", value, index, axis=2)
        term = body("Mul", term, body("Gather", weight, owners, axis=1))
        term = body("Where", body("Gather", is_in, owners, axis=1), term, zero)
        result = body("Add", result, term) if result else term
    return result


def _backward(node: Node) -> str | None:
    """A recurrence of each direction is one that runs forward, of the steps in reverse order."""
    direction = node.attribute("direction", "forward")
    shape = known_input(node, 0)
    if direction == "forward" or shape is None:
        return None
    body = Body(node.opset)
    layout = node.attribute("layout", 0)
    if layout or (node.has(4) and node.constant(4) is None):
        return None
    parts = []
    for place, one in enumerate(
        ["forward", "reverse"] if direction == "bidirectional" else ["reverse"]
    ):
        parts.append(_directed(node, body, place, one == "reverse", direction == "bidirectional"))
    results = {}
    for place, axis in enumerate((1, 0, 0)[: 3 if node.operator == "LSTM" else 2]):
        found = [part[place] for part in parts]
        results[("y", "y_h", "y_c")[place]] = (
            body("Concat", *found, axis=axis) if len(found) > 1 else found[0]
        )
    return body.end(**results)


def _directed(
    node: Node, body: Body, place: int, is_reversed: bool, is_part: bool
) -> tuple[str, ...]:
    def part(index: int, name: str) -> str:
        if not node.has(index):
            return '""'
        return body.part(name, place, place + 1, 0) if is_part else name

    def turned(value: str) -> str:
        steps = [body.ints([one]) for one in (-1, -(1 << 31), 0, -1)]
        return body("Slice", value, *steps)

    names = ["w", "r", "b", "lengths", "h", "c", "p"]
    given = [turned("x") if is_reversed else "x"]
    last = max(index for index in range(len(node.proto.input)) if node.has(index))
    for index in range(1, last + 1):
        given.append(
            ("lengths" if node.has(4) else '""') if index == 4 else part(index, names[index - 1])
        )
    attributes = {"hidden_size": node.attribute("hidden_size", 0)}
    if node.operator == "GRU":
        attributes["linear_before_reset"] = node.attribute("linear_before_reset", 0)
    if node.operator == "LSTM" and node.attribute("input_forget", 0):
        attributes["input_forget"] = 1
    activations = node.attribute("activations", None)
    count = len(_DEFAULTS[node.operator])
    if activations is not None:
        own = [one.decode() if isinstance(one, bytes) else one for one in activations]
        own = own[place * count : (place + 1) * count]
        if own != _DEFAULTS[node.operator]:
            attributes["activations"] = own
    count = 3 if node.operator == "LSTM" else 2
    made = body.several(count, node.operator, *given, **attributes)
    return (turned(made[0]) if is_reversed else made[0], *made[1:])


def _vector_product(node: Node) -> str | None:
    """torch-mlir has no products of a vector and a batch of matrices."""
    left, right = node.shape(0), node.shape(1)
    if left is None or right is None or node.opset < _FIRST_AXES_INPUT:
        return None
    ranks = len(left), len(right)
    if min(ranks) != 1 or max(ranks) <= _MATRIX:
        return None
    body = Body(node.opset)
    one, other, axis = "a", "b", -2
    if len(left) == 1:
        one = body("Unsqueeze", "a", body.ints([0]))
    else:
        other, axis = body("Unsqueeze", "b", body.ints([1])), -1
    made = body("MatMul", one, other)
    return body.end(y=body("Squeeze", made, body.ints([axis])))


def _range(node: Node) -> str | None:
    """Of floats of 16 bits, in f32."""
    made = known_result(node)
    if made is None or node.element(0) not in (10, 16):
        return None
    body = Body(node.opset)
    start, limit, delta = (body.cast(name, _FLOAT) for name in ("start", "limit", "delta"))
    count = body("Ceil", body("Div", body("Sub", limit, start), delta))
    size = body("Max", count, body.numbers(0.0))
    body.expect(
        body("Equal", size, body.numbers(float(made[0]))),
        "the limits do not lead to the result's size",
    )
    steps = body.numbers([float(step) for step in range(made[0])])
    return body.end(y=body.cast(body("Add", start, body("Mul", steps, delta)), node.element(0)))


def _tensor_scatter(node: Node) -> str | None:
    given, update = known_input(node, 0), known_input(node, 1)
    if given is None or update is None or 0 in given or 0 in update:
        return None
    axis = node.attribute("axis", -2) % len(given)
    body = Body(node.opset)
    size, length, batch = given[axis], update[axis], given[0]
    if axis == 0:
        return None
    starts = (
        body.reshape(body.cast("start", _INT64), [batch, 1])
        if node.has(2)
        else body.ints([0], [1, 1])
    )
    places = body("Sub", body.ints(range(size), [1, size]), starts)
    if node.attribute("mode", "linear") == "circular":
        places = body("Mod", places, body.integer(size))
    else:
        last = body("Add", starts, body.integer(length))
        fits = body(
            "And",
            body("GreaterOrEqual", starts, body.integer(0)),
            body("LessOrEqual", last, body.integer(size)),
        )
        body.expect(fits, "what is written reaches beyond the tensor")
    is_in = body(
        "And",
        body("GreaterOrEqual", places, body.integer(0)),
        body("Less", places, body.integer(length)),
    )
    safe = body("Where", is_in, places, body.integer(0))
    shape = [1] * len(given)
    shape[0], shape[axis] = batch, size
    safe = body("Expand", body.reshape(safe, shape), body.ints(given))
    is_in = body("Expand", body.reshape(is_in, shape), body.ints([batch, *shape[1:]]))
    moved = body("GatherElements", "update", safe, axis=axis)
    return body.end(y=body("Where", is_in, moved, "x"))


def _norm_pool(node: Node) -> str | None:
    """A root of sums, which convolutions of ones add up."""
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made or node.attribute("ceil_mode", 0):
        return None
    kernel = list(node.attribute("kernel_shape"))
    rank = len(kernel)
    strides = list(node.attribute("strides", [1] * rank))
    dilations = list(node.attribute("dilations", [1] * rank))
    pads = _pads(node, given[2:], kernel, strides, dilations)
    body = Body(node.opset)
    compute = _DOUBLE if node.element(0) == _DOUBLE else _FLOAT
    p = node.attribute("p", 2)
    powers = body("Abs", body.cast("x", compute))
    if p != 1:
        powers = body("Pow", powers, body.numbers(float(p), compute))
    ones = body("Expand", body.numbers(1.0, compute), body.ints([given[1], 1, *kernel]))
    sums = body(
        "Conv",
        powers,
        ones,
        group=given[1],
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
    )
    if p != 1:
        sums = body("Pow", sums, body.numbers(1 / p, compute))
    return body.end(y=body.cast(sums, node.element(0)))


def _pads(
    node: Node, given: tuple[int, ...], kernel: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    """The padding of a convolution of known sizes: the begins, and the ends."""
    mode = node.attribute("auto_pad", "NOTSET")
    rank = len(kernel)
    if mode == "NOTSET":
        return list(node.attribute("pads", [0] * (2 * rank)))
    if mode == "VALID":
        return [0] * (2 * rank)
    begins, ends = [], []
    for size, wide, stride, dilation in zip(given, kernel, strides, dilations, strict=True):
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + (wide - 1) * dilation + 1 - size)
        less, more = total // 2, total - total // 2
        begins.append(less if mode == "SAME_UPPER" else more)
        ends.append(more if mode == "SAME_UPPER" else less)
    return [*begins, *ends]


def _grouped_transpose(node: Node) -> str | None:
    """A convolution for each group."""
    given, weights = node.shape(0), node.shape(1)
    groups = node.attribute("group", 1)
    if groups == 1 or given is None or weights is None:
        return None
    channels, filters = given[1], weights[1]
    if channels is None or filters is None or groups > _MOST:
        return None
    body = Body(node.opset)
    attributes = {
        name: found if isinstance(found, (int, str)) else list(found)
        for name in (
            "auto_pad",
            "dilations",
            "kernel_shape",
            "output_padding",
            "output_shape",
            "pads",
            "strides",
        )
        if (found := node.attribute(name)) is not None
    }
    parts = []
    each = channels // groups
    for group in range(groups):
        values = [
            body.part("x", group * each, (group + 1) * each, 1),
            body.part("w", group * each, (group + 1) * each, 0),
        ]
        if node.has(2):
            values.append(body.part("b", group * filters, (group + 1) * filters, 0))
        parts.append(body("ConvTranspose", *values, **attributes))
    return body.end(y=body("Concat", *parts, axis=1))


def _max_unpool(node: Node) -> str | None:
    """Each element of the result is the last of the input's that goes there."""
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made:
        return None
    number, wide = math.prod(given), math.prod(made)
    body = Body(node.opset)
    places = body.reshape(body.cast("indices", _INT64), [number])
    if node.has(2):
        is_equal = body("Equal", "output_shape", body.ints(made))
        body.expect(is_equal, "output_shape does not lead to the sizes of the result")
        # The indices are those of the result that the attributes alone would lead to.
        inferred = [
            (size - 1) * stride + kernel
            for size, stride, kernel in zip(
                given[2:],
                node.attribute("strides", [1] * (len(given) - 2)),
                node.attribute("kernel_shape"),
                strict=True,
            )
        ]
        pads = node.attribute("pads", [0] * (2 * len(inferred)))
        half = len(inferred)
        inferred = [size - pads[i] - pads[half + i] for i, size in enumerate(inferred)]
        strides_in, strides_out, sizes = [], [], [*given[:2], *inferred]
        for axis in range(len(sizes)):
            strides_in.append(math.prod(sizes[axis + 1 :]))
            strides_out.append(math.prod(made[axis + 1 :]))
        moved = ""
        for size, inner, outer in zip(sizes, strides_in, strides_out, strict=True):
            own = body("Mod", body("Div", places, body.integer(inner)), body.integer(size))
            term = body("Mul", own, body.integer(outer))
            moved = body("Add", moved, term) if moved else term
        places = moved
    if number * wide > _MOST_PAIRS:
        return None
    hits = body("Equal", body.reshape(places, [1, number]), body.ints(range(wide), [wide, 1]))
    numbers = body("Where", hits, body.ints(range(number), [1, number]), body.integer(-1))
    last = body.reduce("ReduceMax", numbers, [1])
    found = body("Gather", body.reshape("x", [number]), body.clamp(last, 0, number - 1))
    zero = body.cast(body.numbers(0.0), node.element(0))
    value = body("Where", body("Less", last, body.integer(0)), zero, found)
    return body.end(y=body.reshape(value, made))


def _scatter(node: Node) -> str | None:
    given, updates = known_input(node, 0), known_input(node, 2)
    if not given or updates is None or 0 in given or 0 in updates:
        return None
    axis = node.attribute("axis", 0) % len(given)
    if math.prod(updates) * given[axis] > _MOST_PAIRS:
        return None
    body = Body(node.opset)
    values = "x", "indices", "updates"
    return body.end(y=_scattered(node, body, values, given, updates, axis))


def _scatter_rows(node: Node) -> str | None:
    """Of ScatterND: rows of what is left of the dimensions."""
    given, places, updates = (known_input(node, index) for index in range(3))
    if not given or not places or updates is None or 0 in (*given, *places, *updates):
        return None
    depth = places[-1]
    count, rows, width = (math.prod(one) for one in (places[:-1], given[:depth], given[depth:]))
    if count * rows * width > _MOST_PAIRS:
        return None
    body = Body(node.opset)
    sizes = body.ints(given[:depth])
    indices = body.cast("indices", _INT64)
    wrapped = body("Add", indices, sizes)
    indices = body("Where", body("Less", indices, body.integer(0)), wrapped, indices)
    strides = [math.prod(given[axis + 1 : depth]) for axis in range(depth)]
    terms = body("Mul", body.reshape(indices, [count, depth]), body.ints(strides))
    flat = body.reshape(body.reduce("ReduceSum", terms, [1]), [count, 1])
    flat = body("Expand", flat, body.ints([count, width]))
    values = body.reshape("x", [rows, width]), flat, body.reshape("updates", [count, width])
    made = _scattered(node, body, values, (rows, width), (count, width), 0)
    return body.end(y=body.reshape(made, given))


def _scattered(
    node: Node,
    body: Body,
    values: tuple[str, str, str],
    given: tuple[int, ...],
    updates: tuple[int, ...],
    axis: int,
) -> str:
    """A tensor, in which each element looks for the updates that go there: in order, along an axis.
    `values`: the tensor, the places along the axis and the updates."""
    data, indices, written = values
    size, count = given[axis], updates[axis]
    rank, element = len(given), node.element(0)
    reduction = node.attribute("reduction", "none")
    value = data
    for place in range(rank):
        if place != axis:
            value = body.part(value, 0, updates[place], place)
    places = body.cast(indices, _INT64)
    is_negative = body("Less", places, body.integer(0))
    places = body("Where", is_negative, body("Add", places, body.integer(size)), places)
    # [..., updates, places]: the axis is moved to the end.
    order = [*(place for place in range(rank) if place != axis), axis]
    back = [order.index(place) for place in range(rank)]
    places = body("Transpose", places, perm=order)
    update = body("Transpose", written, perm=order)
    own = body("Transpose", value, perm=order)
    hits = body(
        "Equal", body("Unsqueeze", places, body.ints([-2])), body.ints(range(size), [size, 1])
    )
    if reduction == "none":
        numbers = body("Where", hits, body.ints(range(count)), body.integer(-1))
        last = body.reduce("ReduceMax", numbers, [rank])
        found = body("GatherElements", update, body.clamp(last, 0, count - 1), axis=rank - 1)
        made = body("Where", body("Less", last, body.integer(0)), own, found)
    else:
        wide = body("Unsqueeze", update, body.ints([-2]))
        operator, combined, neutral = {
            "add": ("ReduceSum", "Add", None),
            "mul": ("ReduceProd", "Mul", None),
            "max": ("ReduceMax", "Max", "own"),
            "min": ("ReduceMin", "Min", "own"),
        }[reduction]
        if neutral:
            other = body("Unsqueeze", own, body.ints([-1]))
        else:
            other = body.cast(body.numbers(0.0 if reduction == "add" else 1.0), element)
        terms = body("Where", hits, wide, other)
        made = body(combined, own, body.reduce(operator, terms, [rank]))
    made = body("Transpose", made, perm=back)
    # What no update has coordinates for stays.
    for place in reversed(range(rank)):
        if place != axis and updates[place] < given[place]:
            rest = data
            for other_place in range(place):
                if other_place != axis:
                    rest = body.part(rest, 0, updates[other_place], other_place)
            rest = body.part(rest, updates[place], given[place], place)
            made = body("Concat", made, rest, axis=place)
    return made


def _aligned(node: Node) -> str | None:
    """Means of samples, which are products with the weights of rows and of columns."""
    given, made = known_input(node, 0), known_result(node)
    ratio = node.attribute("sampling_ratio", 0)
    if given is None or made is None or 0 in given or 0 in made or ratio < 1:
        return None
    if node.attribute("mode", "avg") != "avg":
        return None
    body = Body(node.opset)
    element = node.element(0)
    compute = _DOUBLE if element == _DOUBLE else _FLOAT
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


LAYER_REWRITES = (
    Rewrite("ConvTranspose", "(x, w, b) => (y)", _grouped_transpose, is_last=True),
    Rewrite("LpPool", "(x) => (y)", _norm_pool, is_last=True),
    Rewrite("MaxUnpool", "(x, indices, output_shape) => (y)", _max_unpool, is_last=True),
    Rewrite("RoiAlign", "(x, rois, batches) => (y)", _aligned, is_last=True),
    Rewrite("ScatterElements", "(x, indices, updates) => (y)", _scatter, is_last=True),
    Rewrite("ScatterND", "(x, indices, updates) => (y)", _scatter_rows, is_last=True),
    Rewrite("Col2Im", "(x, image_shape, block_shape) => (y)", _column_to_image, is_last=True),
    Rewrite("DeformConv", "(x, w, offset, bias, mask) => (y)", _deformed, is_last=True),
    Rewrite("GRU", "(x, w, r, b, lengths, h) => (y, y_h)", _backward, is_last=True),
    Rewrite("LSTM", "(x, w, r, b, lengths, h, c, p) => (y, y_h, y_c)", _backward, is_last=True),
    Rewrite("MatMul", "(a, b) => (y)", _vector_product, is_last=True),
    Rewrite("RNN", "(x, w, r, b, lengths, h) => (y, y_h)", _backward, is_last=True),
    Rewrite("Range", "(start, limit, delta) => (y)", _range, is_last=True),
    Rewrite("TensorScatter", "(x, update, start) => (y)", _tensor_scatter, is_last=True),
)
