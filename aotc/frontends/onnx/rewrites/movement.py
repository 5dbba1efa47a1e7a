"""Rewrites of DepthToSpace and SpaceToDepth with mode CRD, Slice with negative steps, and Reshape
with several unknown sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from aotc.frontends.onnx.nodes import Node, known_result, result_sizes
from aotc.frontends.onnx.rewrites.body import Body, Rewrite, constant
from aotc.frontends.onnx.rewrites.runtime_values import slice_by_indices


def _space_to_depth(node: Node) -> str | None:
    """torch-mlir always uses the channel order of mode DCR."""
    if (split := _split_channels(node)) is None:
        return None
    block, channels, places = split
    order = [place * channels + channel for channel in range(channels) for place in range(places)]
    return "\n".join(
        [
            f"other = SpaceToDepth <blocksize: int = {block}> (x)",
            constant("order", order),
            "y = Gather <axis: int = 1> (other, order)",
        ]
    )


def _depth_to_space(node: Node) -> str | None:
    """torch-mlir splits the channels as in mode DCR, even in CRD. That is right only if the result
    has as many channels as a block has rows."""
    if (split := _split_channels(node)) is None:
        return None
    block, depth, places = split
    channels = depth // places
    order = [channel * places + place for place in range(places) for channel in range(channels)]
    return "\n".join(
        [
            constant("order", order),
            "other = Gather <axis: int = 1> (x, order)",
            f"y = DepthToSpace <blocksize: int = {block}> (other)",
        ]
    )


def _split_channels(node: Node) -> tuple[int, int, int] | None:
    """The rows of a block, the number of the input's channels, and the number of elements of a
    block, for a node with mode CRD. None for other nodes."""
    shape, block = node.shape(0), node.attribute("blocksize")
    if node.attribute("mode", "DCR") == "DCR" or shape is None or shape[1] is None:
        return None
    return block, shape[1], block * block


def _reversed_slice(node: Node) -> str | None:
    """If the step is negative, a start past the end is moved to the last element."""
    if node.shape(1) == (0,):
        return "y = Identity (x)"
    steps, starts, ends, shape = node.constant(4), node.constant(1), node.constant(2), node.shape(0)
    axes = node.constant(3) if node.has(3) else ()
    if axes is None or (
        node.has(4) and (steps is None or ((steps < 0).any() and (starts is None or ends is None)))
    ):
        return slice_by_indices(node)
    if steps is None or starts is None or ends is None or shape is None or (steps > 0).all():
        return None
    axes = range(len(steps)) if not node.has(3) else node.constant(3)
    if axes is None:
        return None
    first, last = [], []
    for start, end, step, axis in zip(starts, ends, steps, axes, strict=True):
        size = shape[axis]
        if size is None:
            # The last element, whose index is not known.
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


def _reshape(node: Node) -> str | None:
    made = known_result(node)
    if node.attribute("allowzero", 0) and made is not None and 0 in made:
        return _reshape_to_none(node, made)
    return _reshape_in_steps(node)


def _reshape_to_none(node: Node, made: Sequence[int]) -> str:
    """Lowers a Reshape to no elements. torch-mlir divides by a size of 0 in the shape, and does not
    copy sizes."""
    body = Body(node.opset)
    body.expect(
        body("Equal", body("Size", "x"), body.integer(0)),
        "the input 'shape' does not lead to the sizes of the result",
    )
    nothing = body.cast(body.numbers(0.0), node.element(0))
    return body.end(y=body("Expand", nothing, body.ints(made)))


def _reshape_in_steps(node: Node) -> str | None:
    """Collapses unknown sizes that are not copied into one first, because torch-mlir assumes that
    one of two is 1. If -1 stands for one of the input's sizes, that size is copied."""
    given, shape, asked = node.shape(0), node.constant(1), _asked(node)
    if given is None or asked.count(-1) != 1:
        return None
    copied = next(place for place, size in enumerate(asked) if size)
    unknown = [place for place in range(copied, len(given)) if given[place] is None]
    if not unknown or 0 in asked[copied:]:
        return None
    body = Body(node.opset)
    first, last = unknown[0], unknown[-1]
    before, behind = (
        [size for size in part if size is not None]
        for part in (given[copied:first], given[last + 1 :])
    )
    if copied == first == last and asked[first] == -1:
        if shape is None or not copied or math.prod(behind) != math.prod(asked[first + 1 :]):
            return None
        return body.end(y=body.reshape("x", [*[0] * (first + 1), *asked[first + 1 :]]))
    merged = [*[0] * copied, *before, -1, *behind]
    if first == last or merged == asked:
        return None
    made = body.reshape(body.reshape("x", merged), asked)
    if shape is None:
        place = body.ints([asked.index(-1)])
        own, size = (body("Gather", one, place) for one in ("shape", body("Shape", made)))
        fits = body("Or", body("Equal", own, size), body("Less", own, body.integer(1)))
        body.expect(fits, "the input 'shape' does not lead to the sizes of the result")
    return body.end(y=made)


def _asked(node: Node) -> list[int]:
    """The sizes of a Reshape. If they are values of the call, these are the known sizes of the
    result, with -1 for the others. Empty if a known size is 0, which would copy a size."""
    shape, made = node.constant(1), result_sizes(node)
    if shape is not None:
        return [int(size) for size in shape]
    if made is None or 0 in made:
        return []
    return [-1 if size is None else size for size in made]


def _split_by_attribute(node: Node) -> str | None:
    """The sizes of the parts were an attribute before opset 13, which torch-mlir does not read."""
    sizes = node.attribute("split")
    if sizes is None or node.opset >= 13:
        return None
    body, axis = Body(node.opset), node.attribute("axis", 0)
    ends = list(itertools.accumulate(sizes))
    parts = [body.part("x", end - size, end, axis) for size, end in zip(sizes, ends, strict=True)]
    return body.end(**{f"y{number}": part for number, part in enumerate(parts)})


MOVEMENT_REWRITES = (
    Rewrite("Split", "(x) => (...)", _split_by_attribute),
    Rewrite("Reshape", "(x, shape) => (y)", _reshape),
    Rewrite("DepthToSpace", "(x) => (y)", _depth_to_space),
    Rewrite("SpaceToDepth", "(x) => (y)", _space_to_depth),
    Rewrite("Slice", "(x, starts, ends, axes, steps) => (y)", _reversed_slice),
)
