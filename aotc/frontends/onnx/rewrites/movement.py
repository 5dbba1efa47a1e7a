"""SpaceToDepth of mode CRD, and Slice with negative steps."""

from __future__ import annotations

import numpy as np

from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Rewrite, constant
from aotc.frontends.onnx.rewrites.runtime_values import slice_by_indices


def _space_to_depth(node: Node) -> str | None:
    """torch-mlir has the order of channels of mode DCR."""
    shape, block = node.shape(0), node.attribute("blocksize")
    if node.attribute("mode", "DCR") == "DCR" or shape is None or shape[1] is None:
        return None
    channels, places = shape[1], block * block
    order = [place * channels + channel for channel in range(channels) for place in range(places)]
    return "\n".join(
        [
            f"other = SpaceToDepth <blocksize: int = {block}> (x)",
            constant("order", order),
            "y = Gather <axis: int = 1> (other, order)",
        ]
    )


def _reversed_slice(node: Node) -> str | None:
    """A start past the end is moved to the last element, where the step is negative."""
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
            # The last element, wherever it is.
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


MOVEMENT_REWRITES = (
    Rewrite("SpaceToDepth", "(x) => (y)", _space_to_depth),
    Rewrite("Slice", "(x, starts, ends, axes, steps) => (y)", _reversed_slice),
)
