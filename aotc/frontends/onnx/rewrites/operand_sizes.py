"""Checks that sizes of a node's inputs are equal, where torch-mlir reads one input at the places of
another one without a check."""

from __future__ import annotations

from collections.abc import Iterable

from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body

# An input and one of its dimensions.
Place = tuple[int, int]


def _expect_equal(
    node: Node, names: str, pairs: Iterable[tuple[Place, Place]], message: str
) -> str | None:
    """The text that compares pairs of sizes, of which one is not known or both differ. `names` are
    those of all inputs."""
    body, inputs = Body(node.opset), names.split(", ")

    def size(place: Place) -> str:
        of, dimension = place
        return body("Gather", body("Shape", inputs[of]), body.integer(dimension))

    is_checked = False
    for one, other in pairs:
        known = [(node.shape(of) or ())[dimension] for of, dimension in (one, other)]
        if None in known or known[0] != known[1]:
            body.expect(body("Equal", size(one), size(other)), message)
            is_checked = True
    return body.end(y=inputs[0]) if is_checked else None


def sizes_of_elements(node: Node) -> str | None:
    """Each index of ScatterElements has an update."""
    ranks = {len(node.shape(index) or ()) for index in (1, 2)}
    if len(ranks) != 1:
        return None
    pairs = [((1, axis), (2, axis)) for axis in range(*ranks)]
    return _expect_equal(
        node, "x, indices, updates", pairs, "the indices and the updates have different sizes"
    )


def sizes_of_rows(node: Node) -> str | None:
    """Each index of ScatterND has an update, which is a slice of the tensor."""
    given, places, updates = (node.shape(index) for index in range(3))
    if not given or not places or updates is None or not (depth := places[-1]):
        return None
    count, width = len(places) - 1, len(given) - depth
    if width < 0 or len(updates) != count + width:
        return None
    pairs = [((1, axis), (2, axis)) for axis in range(count)]
    pairs += [((0, depth + axis), (2, count + axis)) for axis in range(width)]
    return _expect_equal(
        node, "x, indices, updates", pairs, "the updates do not have the sizes of what they replace"
    )


def sizes_of_sequences(node: Node) -> str | None:
    """ReverseSequence has a length for each batch."""
    if node.shape(0) is None or node.shape(1) is None:
        return None
    pairs = [((0, node.attribute("batch_axis", 1)), (1, 0))]
    return _expect_equal(node, "x, lengths", pairs, "there is not one length for each batch")


def sizes_of_parts(node: Node) -> str | None:
    """The parts of Split are the whole."""
    given = node.shape(0)
    sizes = node.constant(1) if node.has(1) else node.attribute("split")
    axis = node.attribute("axis", 0)
    if given is None or sizes is None or given[axis] is not None:
        return None
    body = Body(node.opset)
    axis %= len(given)
    size = body("Gather", body("Shape", "x"), body.integer(axis))
    body.expect(
        body("Equal", size, body.integer(sum(map(int, sizes)))),
        "the parts do not have the size of the whole",
    )
    return body.end(y="x")
