"""Checks the run-time values that determine the sizes of a node's result, if the model declares
these sizes.

torch-mlir relies on the declared sizes. Here the values are compared with them when the entry is
called. If the sizes determine the values, the node gets the values as constants.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from itertools import combinations

from msgspec import Struct

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, FLOATS, INT64
from aotc.frontends.onnx.nodes import Node, known_input, known_result, result_sizes
from aotc.frontends.onnx.rewrites.body import Body
from aotc.frontends.onnx.rewrites.operand_sizes import (
    sizes_of_elements,
    sizes_of_parts,
    sizes_of_rows,
    sizes_of_sequences,
)
from aotc.frontends.onnx.rewrites.runtime_values import checked_pads, checked_starts
from aotc.frontends.onnx.rewrites.scatters import checked_rows

# The most sets of axes that give the same sizes.
_MOST_CHOICES = 64
# The relative rounding error of a product of two floats.
_ROUNDING = 1e-6


class ImpliedValue(Struct, frozen=True):
    """A check of an operator's input. `inputs` are the names of all its inputs, and `body` returns
    the text of a function of these for a node, or None if nothing is checked. The result `y`
    replaces the input `index`."""

    operator: str
    inputs: str
    index: int
    body: Callable[[Node], str | None]
    # The indices of further inputs on which the sizes depend.
    others: tuple[int, ...] = ()

    def applies(self, node: Node) -> bool:
        """Whether one of the inputs is known only at run time."""
        return (
            node.operator == self.operator
            and not node.proto.domain
            and node.has(self.index)
            and any(node.constant(place) is None for place in (self.index, *self.others))
        )


def _implied(body: Body, node: Node, index: int, name: str, values: list[int | None]) -> str | None:
    """The text that compares an input with the values that the sizes imply. Some values may be
    unknown (None)."""
    shape = known_input(node, index)
    if shape is None or math.prod(shape) != len(values):
        return None
    known = [value for value in values if value is not None]
    if not known:
        return None
    given = body.reshape(body.cast(name, INT64), [len(values)])
    if len(known) < len(values):
        places = [place for place, value in enumerate(values) if value is not None]
        given = body("Gather", given, body.ints(places))
    is_equal = body("Equal", given, body.ints(known))
    body.expect(is_equal, f"the input '{name}' does not lead to the sizes of the result")
    if len(known) < len(values):
        return body.end(y=name)
    made = body.ints(known) if shape else body.integer(known[0])
    return body.end(y=body.cast(made, node.element(index)))


def _shape_of_reshape(node: Node) -> str | None:
    given, made, count = known_input(node, 0), known_result(node), known_input(node, 1)
    if given is None or made is None or count != (len(made),) or not made:
        return None
    body = Body(node.opset)
    fits = body("Equal", "shape", body.ints(made))
    fits = body("Or", fits, body("Equal", "shape", body.integer(-1)))
    if not node.attribute("allowzero", 0):
        # A size of 0 means the size of the input.
        kept = [
            int(given[: place + 1][-1] == made[place]) if place < len(given) else 0
            for place in range(len(made))
        ]
        is_kept = body("Equal", body.ints(kept), body.integer(1))
        fits = body("Or", fits, body("And", body("Equal", "shape", body.integer(0)), is_kept))
    body.expect(fits, "the input 'shape' does not lead to the sizes of the result")
    return body.end(y="shape" if 0 in made else body.ints(made))


def _shape_of_constant(node: Node) -> str | None:
    made = result_sizes(node)
    return _implied(Body(node.opset), node, 0, "shape", list(made)) if made else None


def _sizes_of_resize(node: Node) -> str | None:
    some = result_sizes(node)
    if some is None:
        return None
    rank = len(some)
    axes = [axis % rank for axis in node.attribute("axes", range(rank))]
    body = Body(node.opset)
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return _implied(body, node, 3, "sizes", [some[axis] for axis in axes])
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None:
        return None
    if known_input(node, 3) != (len(axes),) or 0 in given:
        return None
    own = body.numbers([float(given[axis]) for axis in axes], DOUBLE)
    ratios = body("Div", body.cast("sizes", DOUBLE), own)
    operator = "ReduceMin" if policy == "not_larger" else "ReduceMax"
    scale = body(operator, ratios, keepdims=0)
    declared = body.numbers([float(made[axis]) for axis in axes], DOUBLE)
    error = body("Abs", body("Sub", body("Mul", scale, own), declared))
    limit = body.numbers([0.5 + _ROUNDING * made[axis] for axis in axes], DOUBLE)
    body.expect(
        body("LessOrEqual", error, limit),
        "the input 'sizes' does not lead to the sizes of the result",
    )
    return body.end(y="sizes")


def _scales_of_resize(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None or node.has(3):
        return None
    rank = len(given)
    axes = [axis % rank for axis in node.attribute("axes", range(rank))]
    if known_input(node, 2) != (len(axes),):
        return None
    body = Body(node.opset)
    declared = body.ints([made[axis] for axis in axes])

    def scaled(element: int) -> str:
        own = body.numbers([float(given[axis]) for axis in axes], element)
        return body("Floor", body("Mul", body.cast("scales", element), own))

    # The product may be computed in f32.
    fits = _is_one_of(body, declared, map(scaled, (FLOAT, DOUBLE)))
    body.expect(fits, "the input 'scales' does not lead to the sizes of the result")
    return body.end(y="scales")


def _is_one_of(body: Body, declared: str, computed: Iterable[str]) -> str:
    """Whether the declared sizes equal those of one of the computations."""
    same = [body("Equal", body.cast(sizes, INT64), declared) for sizes in computed]
    return functools.reduce(functools.partial(body, "Or"), same)


def _k_of_top_k(node: Node) -> str | None:
    made = result_sizes(node)
    if not made:
        return None
    axis = node.attribute("axis", -1) % len(made)
    body = Body(node.opset)
    if made[axis] is not None:
        return _implied(body, node, 1, "k", [made[axis]])
    size = body("Gather", body("Shape", "x"), body.ints([axis]))
    is_less = body("LessOrEqual", body.cast("k", INT64), size)
    is_number = body("GreaterOrEqual", body.cast("k", INT64), body.integer(0))
    body.expect(body("And", is_less, is_number), "the input 'k' is beyond the size of the axis")
    return body.end(y="k")


def _axes_of_unsqueeze(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None:
        return None
    return _chosen_axes(node, longer=made, shorter=given)


def _axes_of_squeeze(node: Node) -> str | None:
    given, made = known_input(node, 0), known_result(node)
    if given is None or made is None:
        return None
    return _chosen_axes(node, longer=given, shorter=made)


def _chosen_axes(node: Node, longer: tuple[int, ...], shorter: tuple[int, ...]) -> str | None:
    """Checks that the axes have size 1 and that removing them from `longer` gives `shorter`. The
    result is the same for each such choice."""
    rank, number = len(longer), len(longer) - len(shorter)
    if known_input(node, 1) != (number,) or not number:
        return None
    choices = [
        axes
        for axes in combinations(range(rank), number)
        if all(longer[axis] == 1 for axis in axes)
        and tuple(size for axis, size in enumerate(longer) if axis not in axes) == shorter
    ]
    if not 1 <= len(choices) <= _MOST_CHOICES:
        return None
    body = Body(node.opset)
    is_negative = body("Less", "axes", body.integer(0))
    places = body("Where", is_negative, body("Add", "axes", body.integer(rank)), "axes")
    hits = body("Equal", body.ints(range(rank), [rank, 1]), places)
    mask = body.reduce("ReduceSum", body.cast(hits, INT64), [1])
    rows = [int(axis in axes) for axes in choices for axis in range(rank)]
    same = body("Equal", body.ints(rows, [len(choices), rank]), mask)
    fits = body.reduce("ReduceMin", body.cast(same, INT64), [1])
    is_one = body("Equal", body.reduce("ReduceMax", fits, [0]), body.integer(1))
    body.expect(is_one, "the input 'axes' does not lead to the sizes of the result")
    return body.end(y=body.ints(choices[0]))


def _limit_of_range(node: Node) -> str | None:
    made = known_result(node)
    if made is None:
        return None
    body = Body(node.opset)
    declared = body.integer(made[0])

    def counted(element: int) -> str:
        start, limit, delta = (body.cast(name, element) for name in ("start", "limit", "delta"))
        count = body("Ceil", body("Div", body("Sub", limit, start), delta))
        return body("Max", count, body.numbers(0.0, element))

    # The quotient may be computed in f32.
    elements = (FLOAT, DOUBLE) if node.element(0) in FLOATS else (DOUBLE,)
    fits = _is_one_of(body, declared, map(counted, elements))
    body.expect(fits, "start, limit and delta do not lead to the size of the result")
    return body.end(y="limit")


def _size_of_window(node: Node) -> str | None:
    made = known_result(node)
    return None if made is None else _implied(Body(node.opset), node, 0, "size", [made[0]])


def _shape_of_crop(node: Node) -> str | None:
    made = known_result(node)
    if made is None:
        return None
    axes = [axis % len(made) for axis in node.attribute("axes", range(len(made)))]
    return _implied(Body(node.opset), node, 1, "shape", [made[axis] for axis in axes])


EARLY_VALUES = (
    *(
        ImpliedValue(name, "size", 0, _size_of_window)
        for name in ("BlackmanWindow", "HammingWindow", "HannWindow")
    ),
    ImpliedValue("CenterCropPad", "x, shape", 1, _shape_of_crop),
)
IMPLIED_VALUES = (
    ImpliedValue("ConstantOfShape", "shape", 0, _shape_of_constant),
    ImpliedValue("Pad", "x, pads, value, axes", 1, checked_pads),
    ImpliedValue("Range", "start, limit, delta", 1, _limit_of_range, (0, 2)),
    ImpliedValue("Reshape", "x, shape", 1, _shape_of_reshape),
    ImpliedValue("Resize", "x, roi, scales, sizes", 2, _scales_of_resize),
    ImpliedValue("Resize", "x, roi, scales, sizes", 3, _sizes_of_resize),
    ImpliedValue("ReverseSequence", "x, lengths", 0, sizes_of_sequences, (1,)),
    *(
        ImpliedValue(name, "x, indices, updates", 0, sizes_of_elements, (1, 2))
        for name in ("Scatter", "ScatterElements")
    ),
    ImpliedValue("ScatterND", "x, indices, updates", 0, sizes_of_rows, (1, 2)),
    ImpliedValue("ScatterND", "x, indices, updates", 1, checked_rows),
    ImpliedValue("Slice", "x, starts, ends, axes, steps", 1, checked_starts, (2,)),
    ImpliedValue("Split", "x, parts", 0, sizes_of_parts),
    ImpliedValue("Squeeze", "x, axes", 1, _axes_of_squeeze),
    ImpliedValue("TopK", "x, k", 1, _k_of_top_k),
    ImpliedValue("Unsqueeze", "x, axes", 1, _axes_of_unsqueeze),
)
