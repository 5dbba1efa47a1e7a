"""Rewrites of decision tree ensembles (ai.onnx.ml) as gathers from arrays of nodes. Each step goes
from the current nodes to their children, for all trees and rows at once; a leaf is its own child.
There are as many steps as the deepest tree has levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.errors import InputError
from aotc.frontends.onnx.elements import BOOL, DOUBLE, FLOAT, INT64
from aotc.frontends.onnx.nodes import Node
from aotc.frontends.onnx.rewrites.body import Body, Rewrite
from aotc.frontends.onnx.rewrites.scores import DOMAIN, binary_scores, labels_of, transformed

_MODES = {
    "BRANCH_LEQ": "LessOrEqual",
    "BRANCH_LT": "Less",
    "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
    "BRANCH_NEQ": "Different",
    "LEAF": "",
}
# TreeEnsemble's numbers. BRANCH_MEMBER, which tests for membership in a set, has no lowering.
_NUMBERED_MODES = dict(
    enumerate(["LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "Different"])
)
_NUMBERED_SUMS = ("AVERAGE", "SUM", "MIN", "MAX")
_NUMBERED_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")
# The most nodes of all trees, and the most levels of a tree.
_MOST_NODES, _DEEPEST = 1 << 20, 64


class _Forest(Struct, frozen=True):
    """The nodes of all trees, by index in arrays.

    A node has a comparison (empty for a leaf), a feature and a value that are compared, the indices
    of its two children, and whether NaN goes to the first child. `roots` are the indices of the
    roots. `weights` has, for each leaf, the results that it contributes to, and its weights.
    """

    comparisons: list[str]
    features: list[int]
    values: list[float]
    children: tuple[list[int], list[int]]
    is_nan_true: list[int]
    roots: list[int]
    weights: dict[int, list[tuple[int, float]]]

    def has_trees(self, features: int | None, results: int) -> bool:
        """Whether all indices of nodes, features and results are in bounds."""
        count = len(self.comparisons)
        lists = self.features, self.values, *self.children, self.is_nan_true
        written = [result for added in self.weights.values() for result, _ in added]
        return (
            bool(self.roots)
            and all(len(one) == count for one in lists)
            and _are_within([*self.roots, *self.children[0], *self.children[1]], count)
            and _are_within(written, results)
            and (features is None or _are_within(self.features, features))
            and min(self.features) >= 0
        )

    def depth(self) -> int | None:
        """The number of levels of the deepest tree. None if there are too many, as in a cyclic
        graph."""
        level, depth = set(self.roots), 0
        while True:
            level = {place for place in level if self.comparisons[place]}
            if not level:
                return depth
            if depth == _DEEPEST:
                return None
            level = {side[place] for place in level for side in self.children}
            depth += 1


def _are_within(places: Sequence[int], count: int) -> bool:
    return all(0 <= place < count for place in places)


def _have_one_length(*lists: Sequence[Any]) -> bool:
    return len({len(one) for one in lists}) == 1


def _malformed(node: Node) -> InputError:
    return InputError(f"{node.proto.name}: its attributes describe no trees")


def _tensor(node: Node, name: str) -> list[Any]:
    """The numbers of an attribute, which may be a list, or a tensor with another name."""
    from onnx import numpy_helper

    listed = node.attribute(name)
    if listed is None:
        found = node.attribute(f"{name}_as_tensor")
        return [] if found is None else list(numpy_helper.to_array(found).reshape(-1).tolist())
    if hasattr(listed, "data_type"):
        return list(numpy_helper.to_array(listed).reshape(-1).tolist())
    return list(listed)


def _words(node: Node, name: str) -> list[str]:
    return [one.decode() if isinstance(one, bytes) else one for one in node.attribute(name, [])]


def _listed_forest(node: Node, kind: str) -> _Forest | None:
    """The trees of a TreeEnsembleClassifier (`class`) or TreeEnsembleRegressor (`target`)."""
    modes = _words(node, "nodes_modes")
    trees, own = node.attribute("nodes_treeids", []), node.attribute("nodes_nodeids", [])
    listed_sides = [
        node.attribute(name, []) for name in ("nodes_truenodeids", "nodes_falsenodeids")
    ]
    if not _have_one_length(modes, trees, own, *listed_sides):
        raise _malformed(node)
    places = {key: place for place, key in enumerate(zip(trees, own, strict=True))}
    roots: dict[int, int] = {}
    for place, tree in enumerate(trees):
        roots.setdefault(tree, place)
    if set(modes) - set(_MODES):
        return None
    # A child that does not exist has an index that is out of bounds.
    sides = [
        [
            place if mode == "LEAF" else places.get((trees[place], child), -1)
            for place, (mode, child) in enumerate(zip(modes, listed, strict=True))
        ]
        for listed in listed_sides
    ]
    leaves = [node.attribute(f"{kind}_{name}", []) for name in ("treeids", "nodeids", "ids")]
    added = _tensor(node, f"{kind}_weights")
    if len(places) < len(modes) or not _have_one_length(*leaves, added):
        raise _malformed(node)
    weights: dict[int, list[tuple[int, float]]] = {}
    for tree, one, result, weight in zip(*leaves, added, strict=True):
        if (tree, one) not in places:
            raise _malformed(node)
        weights.setdefault(places[tree, one], []).append((result, weight))
    missing = node.attribute("nodes_missing_value_tracks_true") or [0] * len(modes)
    features = node.attribute("nodes_featureids", [])
    if not _have_one_length(modes, features):
        raise _malformed(node)
    return _Forest(
        [_MODES[mode] for mode in modes],
        # The feature of a leaf may be any number, but is gathered, too.
        [one if mode != "LEAF" else 0 for mode, one in zip(modes, features, strict=True)],
        _tensor(node, "nodes_values"),
        (sides[0], sides[1]),
        [int(bool(one)) for one in missing],
        list(roots.values()),
        weights,
    )


def _numbered_forest(node: Node) -> _Forest | None:
    """The trees of a TreeEnsemble. The leaves follow the other nodes in the arrays."""
    modes = _tensor(node, "nodes_modes")
    if set(modes) - set(_NUMBERED_MODES):
        return None
    count = len(modes)
    results, weights = node.attribute("leaf_targetids", []), _tensor(node, "leaf_weights")
    leaves = range(count, count + len(results))
    if len(results) != len(weights):
        raise _malformed(node)
    sides = []
    for side in ("true", "false"):
        is_leaf = node.attribute(f"nodes_{side}leafs", [])
        children = node.attribute(f"nodes_{side}nodeids", [])
        if not _have_one_length(modes, is_leaf, children):
            raise _malformed(node)
        own = [child + count * bool(leaf) for child, leaf in zip(children, is_leaf, strict=True)]
        sides.append([*own, *leaves])
    # A tree with a single leaf has a node whose children are both that leaf.
    missing = node.attribute("nodes_missing_value_tracks_true") or [0] * count
    none = [0] * len(results)
    return _Forest(
        [*(_NUMBERED_MODES[mode] for mode in modes), *[""] * len(results)],
        [*node.attribute("nodes_featureids", []), *none],
        [*_tensor(node, "nodes_splits"), *none],
        (sides[0], sides[1]),
        [*(int(bool(one)) for one in missing), *none],
        list(node.attribute("tree_roots", [])),
        {
            place: [(result, weight)]
            for place, result, weight in zip(leaves, results, weights, strict=True)
        },
    )


def _sums(
    body: Body, node: Node, forest: _Forest, count: int, aggregate: str, offsets: Sequence[float]
) -> str | None:
    """The results of a forest for each row: [rows, count]."""
    shape = node.shape(0)
    if shape is None or len(shape) != 2 or len(forest.values) > _MOST_NODES:
        return None
    if not forest.has_trees(shape[1], count) or len(offsets) not in (0, 1, count):
        raise _malformed(node)
    depth = forest.depth()
    if depth is None or aggregate not in _NUMBERED_SUMS:
        return None
    if aggregate in ("MIN", "MAX") and count > 1:
        return None
    compute = DOUBLE if node.element(0) == DOUBLE else FLOAT
    x = body.cast("x", compute)
    # Zeros for each row. The number of rows may be unknown, and the elements may be anything.
    first = body.part(x, 0, 1, 1)
    zeros = body.cast(body("Less", first, first), INT64)
    at = body("Add", zeros, body.ints(forest.roots, [1, len(forest.roots)]))
    for _ in range(depth):
        at = _children(body, forest, x, at, compute)
    table = [[0.0] * count for _ in forest.values]
    for place, added in forest.weights.items():
        for result, weight in added:
            table[place][result] += weight
    found = body("Gather", body.numbers(table, compute), at, axis=0)
    operator = {"MIN": "ReduceMin", "MAX": "ReduceMax"}.get(aggregate, "ReduceSum")
    made = body.reduce(operator, found, [1])
    if aggregate == "AVERAGE":
        made = body("Div", made, body.numbers(float(len(forest.roots)), compute))
    if offsets:
        made = body("Add", made, body.numbers([list(offsets)], compute))
    return body.cast(made, FLOAT)


def _children(body: Body, forest: _Forest, x: str, at: str, compute: int) -> str:
    """The children of the nodes `at` [rows, trees]."""

    def own(values: list[int]) -> str:
        return body("Gather", body.ints(values), at, axis=0)

    value = body("GatherElements", x, own(forest.features), axis=1)
    limit = body("Gather", body.numbers(forest.values, compute), at, axis=0)
    used = sorted(set(forest.comparisons) - {""})
    is_true = ""
    for operator in used:
        if operator == "Different":
            # NaN differs from every value.
            fits = body("Not", body("Equal", value, limit))
        else:
            fits = body(operator, value, limit)
        if len(used) > 1:
            mask = own([int(one == operator) for one in forest.comparisons])
            fits = body("And", fits, body.cast(mask, BOOL))
        is_true = body("Or", is_true, fits) if is_true else fits
    if any(forest.is_nan_true):
        tracks = body.cast(own(forest.is_nan_true), BOOL)
        is_true = body("Or", is_true, body("And", body("IsNaN", value), tracks))
    # One gather from a table of pairs takes less time than two gathers and a selection.
    pairs = [child for pair in zip(*forest.children[::-1], strict=True) for child in pair]
    place = body("Add", body("Mul", at, body.ints([2])), body.cast(is_true, INT64))
    return body("Gather", body.ints(pairs), place, axis=0)


def _regressor(node: Node) -> str | None:
    forest = _listed_forest(node, "target")
    if forest is None or node.attribute("post_transform", "NONE") != "NONE":
        return None
    body = Body(node.opset)
    count = node.attribute("n_targets", 1)
    offsets = _tensor(node, "base_values")
    made = _sums(body, node, forest, count, node.attribute("aggregate_function", "SUM"), offsets)
    return None if made is None else body.end(y=made)


def _ensemble(node: Node) -> str | None:
    forest = _numbered_forest(node)
    transform = node.attribute("post_transform", 0)
    sums = node.attribute("aggregate_function", 1)
    if forest is None or not _are_within([transform], len(_NUMBERED_TRANSFORMS)):
        return None
    if not _are_within([sums], len(_NUMBERED_SUMS)):
        return None
    body = Body(node.opset)
    count = node.attribute("n_targets", 1)
    made = _sums(body, node, forest, count, _NUMBERED_SUMS[sums], [])
    if made is None:
        return None
    made = transformed(body, made, _NUMBERED_TRANSFORMS[transform])
    return None if made is None else body.end(y=body.cast(made, node.element(0)))


def _classifier(node: Node) -> str | None:
    forest, classes = _listed_forest(node, "class"), node.attribute("classlabels_int64s")
    if forest is None or not classes or len(classes) == 1:
        return None
    body = Body(node.opset)
    ids = set(node.attribute("class_ids", []))
    transform = node.attribute("post_transform", "NONE")
    is_binary = len(ids) == 1
    if is_binary and (len(classes) != 2 or (ids != {0} and ids != {1})):
        return None
    offsets = _tensor(node, "base_values")
    if is_binary:
        # There is one score, whichever class it is listed for. The other is 1 minus it, or its
        # negation.
        rows = {place: [(0, one) for _, one in added] for place, added in forest.weights.items()}
        forest = _Forest(
            forest.comparisons,
            forest.features,
            forest.values,
            forest.children,
            forest.is_nan_true,
            forest.roots,
            rows,
        )
        if len(offsets) > 1:
            return None
    count = 1 if is_binary else len(classes)
    scores = _sums(body, node, forest, count, "SUM", offsets)
    if scores is None:
        return None
    if is_binary:
        scores = binary_scores(body, scores, is_opposite=transform not in ("NONE", "PROBIT"))
    made = transformed(body, scores, transform)
    if made is None:
        return None
    return body.end(y=labels_of(body, made, classes), scores=made)


TREE_REWRITES = (
    Rewrite("TreeEnsemble", "(x) => (y)", _ensemble, DOMAIN),
    Rewrite("TreeEnsembleClassifier", "(x) => (y, scores)", _classifier, DOMAIN),
    Rewrite("TreeEnsembleRegressor", "(x) => (y)", _regressor, DOMAIN),
)
