"""Rewrites of operators that select elements by value, if the model declares how many there are:
TopK, Unique, Compress, NonZero and NonMaxSuppression. Each element is compared with all others, in
parallel."""

from __future__ import annotations

import math

from aotc.frontends.onnx.elements import BOOL, FLOATS, INT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

# The most elements that are compared with each other, and the most boxes, which are selected
# sequentially.
_MOST, _MOST_BOXES = 1024, 64


def _positions(body: Body, flags: str, size: int, count: int) -> str:
    """The indices of the ones in a vector of 0 and 1. Their number must be `count`."""
    row, column = body.ints(range(size), [1, size]), body.ints(range(size), [size, 1])
    before = body.cast(body("LessOrEqual", row, column), INT64)
    sums = body.reduce("ReduceSum", body("Mul", before, flags), [1])
    total = body.reduce("ReduceSum", flags, [0])
    body.expect(
        body("Equal", total, body.integer(count)), "their number is not that of the result's sizes"
    )
    wanted = body.ints(range(count), [count, 1])
    earlier = body.cast(body("LessOrEqual", body.reshape(sums, [1, size]), wanted), INT64)
    found = body.reduce("ReduceSum", earlier, [1])
    return body.clamp(found, 0, max(0, size - 1))


def _compress(node: Node) -> str | None:
    given, made, flags = known_input(node, 0), known_result(node), known_input(node, 1)
    if not given or made is None or flags is None or 0 in given or 0 in made or not flags[0]:
        return None
    body = Body(node.opset)
    axis, value = node.attribute("axis"), "x"
    if axis is None:
        axis, value = 0, body.reshape("x", [-1])
        given = (math.prod(given),)
    axis %= len(given)
    size = min(flags[0], given[axis])
    if size > _MOST:
        return None
    condition = body.part(body.cast("condition", INT64), 0, size, 0)
    places = _positions(body, condition, size, made[axis])
    return body.end(y=body("Gather", value, places, axis=axis))


def _non_zero(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if not given or made is None or 0 in given or 0 in made or math.prod(given) > _MOST:
        return None
    body = Body(node.opset)
    size = math.prod(given)
    flags = body.cast(body.cast(body.reshape("x", [-1]), BOOL), INT64)
    places = _positions(body, flags, size, made[1])
    return body.end(y=_unravelled(body, places, given, made[1]))


def _unravelled(body: Body, places: str, shape: tuple[int, ...], count: int) -> str:
    """Converts linear indices to a row of indices for each dimension."""
    rows, stride = [], math.prod(shape)
    for size in shape:
        stride //= size
        index = body("Div", places, body.integer(stride))
        index = body("Mod", index, body.integer(size))
        rows.append(body.reshape(index, [1, count]))
    return body("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]


def _is_before(body: Body, element: int, one: str, other: str, *, largest: bool) -> tuple[str, str]:
    """Whether one element comes before the other, and whether they are equal. NaN is greater than
    all numbers, and equal to NaN."""
    before = body("Greater" if largest else "Less", one, other)
    equal = body("Equal", one, other)
    if element in FLOATS:
        is_nan, other_nan = body("IsNaN", one), body("IsNaN", other)
        first, last = (is_nan, other_nan) if largest else (other_nan, is_nan)
        before = body("Or", before, body("And", first, body("Not", last)))
        equal = body("Or", equal, body("And", is_nan, other_nan))
    return before, equal


def _top_k(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if not given or made is None or 0 in made or node.opset < 10:
        return None
    axis = node.attribute("axis", -1) % len(given)
    size, count = given[axis], made[axis]
    if size > _MOST:
        return None
    body = Body(node.opset)
    rank = len(given)
    order = [*(place for place in range(rank) if place != axis), axis]
    back = [order.index(place) for place in range(rank)]
    value = body("Transpose", "x", perm=order)
    own = body.unsqueeze(value, -1)
    other = body.unsqueeze(value, -2)
    before, equal = _is_before(
        body, node.element(0), other, own, largest=bool(node.attribute("largest", 1))
    )
    earlier = body("Less", body.ints(range(size), [1, size]), body.ints(range(size), [size, 1]))
    before = body("Or", before, body("And", equal, earlier))
    ranks = body.reduce("ReduceSum", body.cast(before, INT64), [rank])
    ranks = body.unsqueeze(ranks, -2)
    hits = body.cast(body("Equal", ranks, body.ints(range(count), [count, 1])), INT64)
    indices = body.reduce("ReduceSum", body("Mul", hits, body.ints(range(size))), [rank])
    values = body("GatherElements", value, indices, axis=rank - 1)
    return body.end(
        y=body("Transpose", values, perm=back), indices=body("Transpose", indices, perm=back)
    )


def _unique(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if not given or made is None or 0 in given or 0 in made:
        return None
    body = Body(node.opset)
    axis = node.attribute("axis")
    if axis is None:
        rows, value, axis = math.prod(given), body.reshape("x", [-1]), 0
        width = 1
    else:
        axis %= len(given)
        rows, width, value = given[axis], math.prod(given) // given[axis], "x"
    count = made[axis]
    if rows * max(1, width) > _MOST:
        return None
    order = [axis, *(place for place in range(len(given)) if place != axis)]
    table = value if node.attribute("axis") is None else body("Transpose", value, perm=order)
    table = body.reshape(table, [rows, width])
    # [i, j, p]: whether row j is before row i at place p, provided that they are equal before p.
    own, other = body.reshape(table, [rows, 1, width]), body.reshape(table, [1, rows, width])
    before, equal = _is_before(body, node.element(0), other, own, largest=False)
    differs = body("Sub", body.integer(1), body.cast(equal, INT64))
    before_i = body.cast(before, INT64)
    earlier = body.cast(
        body("Less", body.ints(range(width), [1, width]), body.ints(range(width), [width, 1])),
        INT64,
    )
    # [i, j, p]: the places before p at which the rows differ.
    wide = body.reshape(differs, [rows, rows, 1, width])
    others = body.reduce("ReduceSum", body("Mul", wide, earlier), [3])
    is_first = body.cast(body("Equal", others, body.integer(0)), INT64)
    is_less = body.reduce("ReduceSum", body("Mul", is_first, before_i), [2])
    is_same = body.cast(
        body("Equal", body.reduce("ReduceSum", differs, [2]), body.integer(0)), INT64
    )
    sooner = body.cast(
        body("Less", body.ints(range(rows), [1, rows]), body.ints(range(rows), [rows, 1])), INT64
    )
    twins = body.reduce("ReduceSum", body("Mul", is_same, sooner), [1])
    # Whether a row is the first of its group of equal rows.
    leads = body.cast(body("Equal", twins, body.integer(0)), INT64)
    total = body.reduce("ReduceSum", leads, [0])
    body.expect(
        body("Equal", total, body.integer(count)), "their number is not that of the result's sizes"
    )
    if node.attribute("sorted", 1):
        ranks = body.reduce("ReduceSum", body("Mul", is_less, body.reshape(leads, [1, rows])), [1])
    else:
        # The index of the first row of each row's group. The groups whose first row is before it
        # are counted.
        places = body.ints(range(rows), [1, rows])
        mine = body("Mul", is_same, body.reshape(leads, [1, rows]))
        firsts = body.reduce("ReduceSum", body("Mul", mine, places), [1])
        fewer = body.cast(body("Less", places, body.reshape(firsts, [rows, 1])), INT64)
        ranks = body.reduce("ReduceSum", body("Mul", fewer, body.reshape(leads, [1, rows])), [1])
    hits = body.cast(
        body("Equal", body.reshape(ranks, [1, rows]), body.ints(range(count), [count, 1])), INT64
    )
    counts = body.reduce("ReduceSum", hits, [1])
    led = body("Mul", hits, body.reshape(leads, [1, rows]))
    indices = body.reduce("ReduceSum", body("Mul", led, body.ints(range(rows), [1, rows])), [1])
    return body.end(
        y=body("Gather", value, indices, axis=axis), indices=indices, inverse=ranks, counts=counts
    )


def _non_max_suppression(node: Node) -> str | None:
    boxes, scores, made = known_input(node, 0), known_input(node, 1), known_result(node)
    if boxes is None or scores is None or made is None or 0 in boxes or 0 in scores or 0 in made:
        return _above_threshold(node) if node.has(4) else None
    batch, classes, size = scores
    if size > _MOST_BOXES or batch * classes * size > _MOST:
        return None
    body = Body(node.opset)
    least = body.numbers(float("-inf"))
    corners = [
        body.reshape(body.part("boxes", place, place + 1, 2), [batch, 1, size])
        for place in range(4)
    ]
    if node.attribute("center_point_box", 0):
        half = body.numbers(0.5)
        x, y, width, height = corners
        sides = [
            (
                body("Sub", middle, body("Mul", wide, half)),
                body("Add", middle, body("Mul", wide, half)),
            )
            for middle, wide in ((y, height), (x, width))
        ]
    else:
        sides = [
            (body("Min", corners[i], corners[i + 2]), body("Max", corners[i], corners[i + 2]))
            for i in (0, 1)
        ]
    spans = [body("Sub", high, low) for low, high in sides]
    areas = body("Mul", *spans)
    # [batch, 1, i, j]: the area of the intersection of two boxes.
    common = ""
    for low, high in sides:
        lows = body(
            "Max", body.reshape(low, [batch, 1, size, 1]), body.reshape(low, [batch, 1, 1, size])
        )
        highs = body(
            "Min", body.reshape(high, [batch, 1, size, 1]), body.reshape(high, [batch, 1, 1, size])
        )
        span = body("Max", body("Sub", highs, lows), body.numbers(0.0))
        common = body("Mul", common, span) if common else span
    both = body(
        "Add", body.reshape(areas, [batch, 1, size, 1]), body.reshape(areas, [batch, 1, 1, size])
    )
    union = body("Sub", both, common)
    limit = body.reshape("iou", [1]) if node.has(3) else body.numbers([0.0])
    is_some = body("Greater", union, body.numbers(0.0))
    overlaps = body("And", is_some, body("Greater", body("Div", common, union), limit))
    overlaps = body.cast(overlaps, INT64)
    remaining = "scores"
    if node.has(4):
        passes = body("Greater", remaining, body.reshape("threshold", [1]))
        remaining = body("Where", passes, remaining, least)
    most = body.reshape("most", [1]) if node.has(2) else body.ints([0])
    places = body.ints(range(size))
    chosen, flags = [], []
    for step in range(size):
        best = body.reduce("ReduceMax", remaining, [2], keeps=True)
        is_valid = body("And", body("Greater", best, least), body("Less", body.ints([step]), most))
        is_best = body("Equal", remaining, best)
        candidates = body("Where", is_best, places, body.integer(size - 1))
        index = body.reduce("ReduceMin", candidates, [2], keeps=True)
        chosen.append(index)
        flags.append(body.cast(is_valid, INT64))
        hit = body.cast(body("Equal", places, index), INT64)
        near = body.reduce(
            "ReduceSum", body("Mul", overlaps, body.reshape(hit, [batch, classes, size, 1])), [2]
        )
        gone = body.cast(body("Add", near, hit), BOOL)
        remaining = body("Where", gone, least, remaining)
    total = batch * classes * size
    index = body.reshape(body("Concat", *chosen, axis=2) if size > 1 else chosen[0], [total])
    flag = body.reshape(body("Concat", *flags, axis=2) if size > 1 else flags[0], [total])
    at = _positions(body, flag, total, made[0])
    rows = _unravelled(body, at, (batch, classes, size), made[0])
    kinds = body.part(rows, 0, 2, 0)
    found = body.reshape(body("Gather", index, at), [1, made[0]])
    return body.end(y=body("Transpose", body("Concat", kinds, found, axis=0), perm=[1, 0]))


def _above_threshold(node: Node) -> str | None:
    """The rows above the threshold of what torch-mlir selects, whose lowering is for one class and
    expects that all scores are above it. They are the first ones: it selects the boxes by
    descending scores, and a box is not suppressed by one with a lower score."""
    body = Body(node.opset)
    given = ["boxes", "scores", "most" if node.has(2) else "", "iou" if node.has(3) else ""]
    attributes = {"center_point_box": node.attribute("center_point_box", 0)}
    found = body("NonMaxSuppression", *given, **attributes)
    places = body.reshape(body.part(found, 2, 3, 1), [-1])
    selected = body("Gather", body.reshape("scores", [-1]), places, axis=0)
    passes = body("Greater", selected, body.reshape("threshold", [1]))
    count = body.reduce("ReduceSum", body.cast(passes, INT64), [0], keeps=True)
    return body.end(y=body("Slice", found, body.ints([0]), count, body.ints([0])))


SELECTION_REWRITES = (
    Rewrite("Compress", "(x, condition) => (y)", _compress, is_last=True),
    Rewrite(
        "NonMaxSuppression", "(boxes, scores, most, iou, threshold) => (y)", _non_max_suppression
    ),
    Rewrite("NonZero", "(x) => (y)", _non_zero, is_last=True),
    Rewrite("TopK", "(x, k) => (y, indices)", _top_k, is_last=True),
    Rewrite("Unique", "(x) => (y, indices, inverse, counts)", _unique, is_last=True),
)
