"""Rewrites of convolutions and pooling: Col2Im, depthwise 3-D Conv, ConvTranspose, DeformConv,
LpPool and MaxUnpool."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from aotc.frontends.onnx.elements import BOOL, DOUBLE, FLOAT, INT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

# The most copies of a part of a body, which is repeated for each position in a kernel.
_MOST_PARTS = 128


# The most pairs of elements that are compared.
_MOST_PAIRS = 1 << 22


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
    if not fitting or sum(math.prod(block) for block, _ in fitting) > _MOST_PARTS:
        return None
    is_equal = body("Equal", body.cast("image_shape", INT64), body.ints(image))
    body.expect(is_equal, "image_shape does not lead to the sizes of the result")
    result = known = ""
    for block, grid in fitting:
        value = _overlapped(node, body, made, block, grid)
        same = body("Equal", body.cast("block_shape", INT64), body.ints(block))
        least = body("ReduceMin", body.cast(same, INT64), keepdims=0)
        is_this = body("Equal", least, body.integer(1))
        result = body("Where", is_this, value, result) if result else value
        known = body("Or", known, is_this) if known else is_this
    body.expect(known, "block_shape does not lead to the sizes of the result")
    return body.end(y=result)


def _overlapped(
    node: Node, body: Body, made: tuple[int, ...], block: tuple[int, ...], grid: list[int]
) -> str:
    """The sum of blocks that are placed on a grid of the image."""
    image, rank = made[2:], len(made) - 2
    pads = list(node.attribute("pads", [0] * (2 * rank)))
    strides = list(node.attribute("strides", [1] * rank))
    dilations = list(node.attribute("dilations", [1] * rank))
    columns = body.reshape("x", [made[0], made[1], math.prod(block), *grid])
    element = node.element(0)
    none = body.cast(body.numbers(0.0), element)
    result = ""
    for number, offsets in enumerate(product(*map(range, block))):
        term = body.squeeze(body.part(columns, number, number + 1, 2), 2)
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
            mask = body.cast(body.ints(is_in, shape), BOOL)
            term = body("Where", mask, term, none)
        result = body("Add", result, term) if result else term
    return result


def _factorizations(number: int, count: int) -> list[tuple[int, ...]]:
    """All ways to write a number as a product of `count` factors."""
    if count == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in range(1, number + 1)
        if number % first == 0
        for rest in _factorizations(number // first, count - 1)
    ]


def _deformed(node: Node) -> str | None:
    given, weights, made = known_input(node, 0), known_input(node, 1), known_result(node)
    if given is None or weights is None or made is None or len(given) != 4:
        return None
    if 0 in (*given, *weights, *made) or weights[2] * weights[3] > _MOST_PARTS:
        return None
    body = Body(node.opset)
    element = node.element(0)
    compute = DOUBLE if element == DOUBLE else FLOAT
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
        own = body.squeeze(body.part(offsets, at, at + 1, 2), 2)
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
                body.squeeze(body.part(own, axis, axis + 1, 2), 2),
                body.numbers(starts[axis], compute),
            )
            for axis in (0, 1)
        ]
        sampled = _bilinear(body, value, coordinates, (height, width), owners, compute)
        if mask:
            own_mask = body.squeeze(body.part(mask, at, at + 1, 2), 2)
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
    """Samples `value` [batch, channels, height * width] at coordinates [batch, groups, number], two
    of them for each sample. Elements outside are 0. `owners` has the group of each channel."""
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
            safe = body.cast(body("Where", inside, there, zero), INT64)
            index = body("Add", body("Mul", index, body.integer(size)), safe) if index else safe
        index = body("Gather", index, owners, axis=1)
        weight = body("Where", is_in, weight, zero)
        term = body("GatherElements", value, index, axis=2)
        term = body("Mul", term, body("Gather", weight, owners, axis=1))
        term = body("Where", body("Gather", is_in, owners, axis=1), term, zero)
        result = body("Add", result, term) if result else term
    return result


def _by_depth(node: Node) -> str | None:
    """A depthwise 3-D convolution as the sum over the depth taps of 2-D convolutions. torch-mlir
    lowers depthwise convolutions only in 2-D."""
    given, weights, made = known_input(node, 0), known_input(node, 1), known_result(node)
    if given is None or weights is None or made is None or 0 in given or 0 in made:
        return None
    groups, kernel = node.attribute("group", 1), list(weights[2:])
    if len(kernel) != 3 or groups == 1 or weights[1] != 1:
        return None
    strides, dilations = (list(node.attribute(name, [1] * 3)) for name in ("strides", "dilations"))
    pads = pads_of(node, given[2:], kernel, strides, dilations)
    body, element = Body(node.opset), node.element(0)
    compute = DOUBLE if element == DOUBLE else FLOAT
    widths = body.ints([0, 0, pads[0], 0, 0, 0, 0, pads[3], 0, 0])
    padded = body("Pad", body.cast("x", compute), widths)
    total = ""
    for tap in range(kernel[0]):
        first = tap * dilations[0]
        reached = [first], [first + (made[2] - 1) * strides[0] + 1], [2], [strides[0]]
        images = body("Slice", padded, *map(body.ints, reached))
        images = body("Transpose", images, perm=[0, 2, 1, 3, 4])
        images = body.reshape(images, [given[0] * made[2], given[1], *given[3:]])
        filters = body.squeeze(body.part(body.cast("w", compute), tap, tap + 1, 2), 2)
        term = body(
            "Conv",
            images,
            filters,
            group=groups,
            strides=strides[1:],
            dilations=dilations[1:],
            pads=[*pads[1:3], *pads[4:]],
        )
        total = body("Add", total, term) if total else term
    volumes = body.reshape(total, [made[0], made[2], made[1], *made[3:]])
    volumes = body.cast(body("Transpose", volumes, perm=[0, 2, 1, 3, 4]), element)
    if node.has(2):
        volumes = body("Add", volumes, body.reshape("b", [1, -1, 1, 1, 1]))
    return body.end(y=volumes)


def _transpose(node: Node) -> str | None:
    """Lowers transposed convolutions without padding, which is cut off the result. If there is
    none, a grouped one is lowered to one for each group."""
    return _padded_transpose(node) or _grouped_transpose(node)


def _padded_transpose(node: Node) -> str | None:
    given, weights = known_input(node, 0), known_input(node, 1)
    if given is None or weights is None or 0 in given or 0 in weights:
        return None
    rank = len(given) - 2
    mode = node.attribute("auto_pad", "NOTSET")
    strides = list(node.attribute("strides", [1] * rank))
    dilations = list(node.attribute("dilations", [1] * rank))
    extra = list(node.attribute("output_padding", [0] * rank))
    full = [
        strides[i] * (given[i + 2] - 1) + extra[i] + (weights[i + 2] - 1) * dilations[i] + 1
        for i in range(rank)
    ]
    asked = list(node.attribute("output_shape", ()))[-rank:]
    if not asked and not mode.startswith("SAME"):
        pads = list(node.attribute("pads", [0] * (2 * rank)))
        if mode == "VALID" or not any(pads):
            return None
        begins, ends = pads[:rank], pads[rank:]
    else:
        sizes = asked or [given[i + 2] * strides[i] for i in range(rank)]
        totals = [whole - size for whole, size in zip(full, sizes, strict=True)]
        # After the last element that the windows reach, there is only the bias.
        extra = [more + max(0, -total) for more, total in zip(extra, totals, strict=True)]
        full = [whole + max(0, -total) for whole, total in zip(full, totals, strict=True)]
        if any(more >= max(*pair) for more, *pair in zip(extra, strides, dilations, strict=True)):
            return None
        totals = [max(0, total) for total in totals]
        halves = [total // 2 for total in totals]
        rests = [total - half for total, half in zip(totals, halves, strict=True)]
        begins, ends = (halves, rests) if mode == "SAME_UPPER" else (rests, halves)
    body = Body(node.opset)
    attributes = {"strides": strides, "dilations": dilations, "output_padding": extra}
    made = _by_groups(node, body, {**attributes, "kernel_shape": list(weights[2:])})
    if made is None:
        return None
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        made = body.part(made, begin, full[i] - end, i + 2)
    return body.end(y=made)


def _grouped_transpose(node: Node) -> str | None:
    """A ConvTranspose for each group."""
    if node.attribute("group", 1) == 1:
        return None
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
    body = Body(node.opset)
    made = _by_groups(node, body, attributes)
    return None if made is None else body.end(y=made)


def _sized_transpose(node: Node) -> str | None:
    """Lowers a ConvTranspose with an output_shape, or whose auto_pad requires more elements than
    the windows reach."""
    weights = known_input(node, 1)
    if weights is None:
        return None
    rank = len(weights) - 2
    strides, dilations = (node.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    windows = zip(strides, dilations, weights[2:], strict=True)
    is_short = any(stride > dilation * (wide - 1) + 1 for stride, dilation, wide in windows)
    is_same = node.attribute("auto_pad", "NOTSET").startswith("SAME")
    is_sized = node.attribute("output_shape", None) or (is_same and is_short)
    return _padded_transpose(node) if is_sized else None


def _by_groups(node: Node, body: Body, attributes: dict[str, Any]) -> str | None:
    """A ConvTranspose with these attributes for each group, concatenated."""
    given, weights = node.shape(0), node.shape(1)
    groups = node.attribute("group", 1)
    if groups == 1:
        return body("ConvTranspose", "x", "w", *(["b"] if node.has(2) else []), **attributes)
    if given is None or weights is None or groups > _MOST_PARTS:
        return None
    channels, filters = given[1], weights[1]
    if channels is None or filters is None:
        return None
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
    return body("Concat", *parts, axis=1)


def _norm_pool(node: Node) -> str | None:
    """Lowers LpPool to a root of sums, which are convolutions with ones."""
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made or node.attribute("ceil_mode", 0):
        return None
    kernel = list(node.attribute("kernel_shape"))
    rank = len(kernel)
    strides = list(node.attribute("strides", [1] * rank))
    dilations = list(node.attribute("dilations", [1] * rank))
    pads = pads_of(node, given[2:], kernel, strides, dilations)
    body = Body(node.opset)
    compute = DOUBLE if node.element(0) == DOUBLE else FLOAT
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


def pads_of(
    node: Node, given: tuple[int, ...], kernel: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    """The padding of a convolution with known sizes: that at the starts, then that at the ends."""
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


def _max_unpool(node: Node) -> str | None:
    """Each element of the result is the last element of the input that is assigned to it."""
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or 0 in given or 0 in made:
        return None
    number, wide = math.prod(given), math.prod(made)
    body = Body(node.opset)
    places = body.reshape(body.cast("indices", INT64), [number])
    if not node.has(2):
        places = body.within(places, body.integer(wide))
    else:
        is_equal = body("Equal", "output_shape", body.ints(made))
        body.expect(is_equal, "output_shape does not lead to the sizes of the result")
        # The indices refer to the output shape that the attributes alone imply.
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
        moved, places = "", body.within(places, body.integer(math.prod(sizes)))
        for axis, (size, inner, outer) in enumerate(
            zip(sizes, strides_in, strides_out, strict=True)
        ):
            own = body("Mod", body("Div", places, body.integer(inner)), body.integer(size))
            if size > made[axis]:
                own = body.within(own, body.integer(made[axis]))
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


CONVOLUTION_REWRITES = (
    Rewrite("Col2Im", "(x, image_shape, block_shape) => (y)", _column_to_image, is_last=True),
    Rewrite("Conv", "(x, w, b) => (y)", _by_depth),
    Rewrite("ConvTranspose", "(x, w, b) => (y)", _transpose, is_last=True),
    Rewrite("DeformConv", "(x, w, offset, bias, mask) => (y)", _deformed, is_last=True),
    Rewrite("LpPool", "(x) => (y)", _norm_pool, is_last=True),
    Rewrite("MaxUnpool", "(x, indices, output_shape) => (y)", _max_unpool, is_last=True),
)

# Rewrites of nodes for which onnx infers wrong sizes.
SIZED_CONVOLUTION_REWRITES = (Rewrite("ConvTranspose", "(x, w, b) => (y)", _sized_transpose),)
