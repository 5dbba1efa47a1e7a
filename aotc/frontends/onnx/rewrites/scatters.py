"""Rewrites of ScatterElements, ScatterND and TensorScatter."""

from __future__ import annotations

import math

from aotc.frontends.onnx.elements import INT64
from aotc.frontends.onnx.nodes import Node, known_input
from aotc.frontends.onnx.rewrites.body import Body, Rewrite

# The most pairs of elements that are compared.
_MOST_PAIRS = 1 << 22


def _scatter(node: Node) -> str | None:
    given, updates = known_input(node, 0), known_input(node, 2)
    if not given or updates is None or 0 in given or 0 in updates:
        return None
    axis = node.attribute("axis", 0) % len(given)
    if math.prod(updates) * given[axis] > _MOST_PAIRS:
        return None
    body = Body(node.opset)
    values = "x", body.wrapped("indices", body.integer(given[axis])), "updates"
    return body.end(y=_scattered(node, body, values, given, updates, axis))


def _scatter_of_old_opsets(node: Node) -> str | None:
    """torch-mlir crashes for a negative axis of Scatter."""
    axis, shape = node.attribute("axis", 0), node.shape(0)
    if axis >= 0 or not shape:
        return None
    body = Body(node.opset)
    return body.end(y=body("Scatter", "x", "indices", "updates", axis=axis % len(shape)))


def _scatter_rows(node: Node) -> str | None:
    """Lowers ScatterND: the remaining dimensions are collapsed into rows."""
    given, places, updates = (known_input(node, index) for index in range(3))
    if not given or not places or updates is None or 0 in (*given, *places, *updates):
        return None
    depth = places[-1]
    count, rows, width = (math.prod(one) for one in (places[:-1], given[:depth], given[depth:]))
    if count * rows * width > _MOST_PAIRS:
        return None
    body = Body(node.opset)
    indices = body.wrapped("indices", body.ints(given[:depth]))
    strides = [math.prod(given[axis + 1 : depth]) for axis in range(depth)]
    terms = body("Mul", body.reshape(indices, [count, depth]), body.ints(strides))
    flat = body.reshape(body.reduce("ReduceSum", terms, [1]), [count, 1])
    flat = body("Expand", flat, body.ints([count, width]))
    values = body.reshape("x", [rows, width]), flat, body.reshape("updates", [count, width])
    made = _scattered(node, body, values, (rows, width), (count, width), 0)
    return body.end(y=body.reshape(made, given))


def checked_rows(node: Node) -> str | None:
    """The indices of ScatterND, checked. torch-mlir only checks indices into a single dimension."""
    places = node.shape(1)
    if not places or not places[-1] or 0 in places:
        return None
    body = Body(node.opset)
    body.wrapped("indices", body.part(body("Shape", "x"), 0, places[-1], 0))
    return body.end(y="indices")


def _scattered(
    node: Node,
    body: Body,
    values: tuple[str, str, str],
    given: tuple[int, ...],
    updates: tuple[int, ...],
    axis: int,
) -> str:
    """The tensor in which each element finds the updates that are written to it, along an axis and
    in order. `values` are the tensor, the indices along the axis (64-bit integers within bounds)
    and the updates."""
    data, places, written = values
    size, count = given[axis], updates[axis]
    rank, element = len(given), node.element(0)
    reduction = node.attribute("reduction", "none")
    value = data
    for place in range(rank):
        if place != axis:
            value = body.part(value, 0, updates[place], place)
    # [..., updates, places]: the axis is moved to the end.
    order = [*(place for place in range(rank) if place != axis), axis]
    back = [order.index(place) for place in range(rank)]
    places = body("Transpose", places, perm=order)
    update = body("Transpose", written, perm=order)
    own = body("Transpose", value, perm=order)
    hits = body("Equal", body.unsqueeze(places, -2), body.ints(range(size), [size, 1]))
    if reduction == "none":
        numbers = body("Where", hits, body.ints(range(count)), body.integer(-1))
        last = body.reduce("ReduceMax", numbers, [rank])
        found = body("GatherElements", update, body.clamp(last, 0, count - 1), axis=rank - 1)
        made = body("Where", body("Less", last, body.integer(0)), own, found)
    else:
        wide = body.unsqueeze(update, -2)
        operator, combined, neutral = {
            "add": ("ReduceSum", "Add", None),
            "mul": ("ReduceProd", "Mul", None),
            "max": ("ReduceMax", "Max", "own"),
            "min": ("ReduceMin", "Min", "own"),
        }[reduction]
        if neutral:
            other = body.unsqueeze(own, -1)
        else:
            other = body.cast(body.numbers(0.0 if reduction == "add" else 1.0), element)
        terms = body("Where", hits, wide, other)
        made = body(combined, own, body.reduce(operator, terms, [rank]))
    made = body("Transpose", made, perm=back)
    # Elements outside the extent of the updates are kept.
    for place in reversed(range(rank)):
        if place != axis and updates[place] < given[place]:
            rest = data
            for other_place in range(place):
                if other_place != axis:
                    rest = body.part(rest, 0, updates[other_place], other_place)
            rest = body.part(rest, updates[place], given[place], place)
            made = body("Concat", made, rest, axis=place)
    return made


def _tensor_scatter(node: Node) -> str | None:
    given, update = known_input(node, 0), known_input(node, 1)
    if given is None or update is None or 0 in given or 0 in update:
        return None
    axis = node.attribute("axis", -2) % len(given)
    body = Body(node.opset)
    size, length, batch = given[axis], update[axis], given[0]
    if axis == 0 or length > size:
        return None
    starts = (
        body.reshape(body.cast("start", INT64), [batch, 1])
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


SCATTER_REWRITES = (
    Rewrite("Scatter", "(x, indices, updates) => (y)", _scatter_of_old_opsets),
    Rewrite("ScatterElements", "(x, indices, updates) => (y)", _scatter, is_last=True),
    Rewrite("ScatterND", "(x, indices, updates) => (y)", _scatter_rows, is_last=True),
    Rewrite("TensorScatter", "(x, update, start) => (y)", _tensor_scatter, is_last=True),
)
