"""Decomposes views with symbolic sizes into flattened and unflattened dimensions.

torch-mlir supports at most one dynamic dimension in a view, and assumes that one of two is 1.
torch.export has the sizes as symbolic expressions, which show which dimensions become which.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct


class _Group(Struct, frozen=True):
    """Dimensions before and after a view that have the same elements. Each pair is a half-open
    range."""

    before: tuple[int, int]
    after: tuple[int, int]


def decompose_views(program: Any) -> None:
    """Replaces views from or to symbolic sizes by `aten.flatten` and `aten.unflatten`. Changes the
    graph of a `torch.export.ExportedProgram` in place."""
    import torch

    aten = torch.ops.aten
    targets = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
    views = [
        node
        for node in program.graph.nodes
        if node.op == "call_function" and node.target in targets
    ]
    _put_known_sizes(program, views)
    for node in views:
        before, after = list(node.args[0].meta["val"].shape), _sizes_after(node)
        if all(isinstance(size, int) for size in (*before, *after)):
            continue
        with program.graph.inserting_before(node):
            value = _decomposed(torch, node, _groups(before, after))
        node.replace_all_uses_with(value)
        program.graph.erase_node(node)
        # The signature refers to results by the names of their nodes.
        value.name = node.name


def _put_known_sizes(program: Any, views: Sequence[Any]) -> None:
    """Puts numbers in the place of the expressions that views give numbers for: of `(s + -s % 8)`
    elements in chunks of 8, torch.export takes the 8 for an expression. torch-mlir would derive
    some of the numbers again, and fail where the types of a value differ."""
    import torch

    known = {
        _expression(size): after
        for view in views
        for size, after in zip(view.meta["val"].shape, _sizes_after(view), strict=True)
        if isinstance(after, int) and not isinstance(size, int)
    }
    for node in program.graph.nodes if known else ():
        value = node.meta.get("val")
        if node.op == "call_function" and isinstance(value, torch.Tensor):
            before = list(value.shape)
            sizes = [known.get(_expression(size), size) for size in before]
            if any(one is not other for one, other in zip(sizes, before, strict=True)):
                node.meta |= {"tensor_meta": None, "val": value.new_empty(sizes)}


def make_views(program: Any) -> None:
    """Replaces `aten.as_strided` by a view where it is one: all elements, in order. PyTorch's own
    decompositions produce these."""
    import torch

    for node in program.graph.find_nodes(
        op="call_function", target=torch.ops.aten.as_strided.default
    ):
        before, after = node.args[0].meta["val"], node.meta["val"]
        if (
            _same(before.storage_offset(), after.storage_offset())
            and _same(math.prod(before.shape), math.prod(after.shape))
            and _is_contiguous(before)
            and _is_contiguous(after)
        ):
            node.target, node.args = torch.ops.aten.view.default, node.args[:2]


def _is_contiguous(value: Any) -> bool:
    distance = 1
    for size, stride in reversed(list(zip(value.shape, value.stride(), strict=True))):
        if not _same(size, 1) and not _same(stride, distance):
            return False
        distance = distance * size
    return True


def _sizes_after(view: Any) -> list[Any]:
    """The sizes of a view's result: the argument where it is a number, because torch.export may
    know less."""
    return [
        asked if isinstance(asked, int) and asked != -1 else size
        for asked, size in zip(view.args[1], view.meta["val"].shape, strict=True)
    ]


def _decomposed(torch: Any, view: Any, groups: Sequence[_Group]) -> Any:
    aten = torch.ops.aten
    value, asked = view.args
    before, after = list(value.meta["val"].shape), _sizes_after(view)
    shape = [math.prod(before[slice(*group.before)]) for group in groups]
    # From the last dimension to the first, so that the indices of the others stay valid.
    for number, group in reversed(list(enumerate(groups))):
        first, end = group.before
        if end - first > 1:
            sizes = [*before[:first], *shape[number:]]
            value = _call(view, aten.flatten.using_ints, (value, first, end - 1), sizes)
    for number, group in reversed(list(enumerate(groups))):
        first, end = group.after
        if end - first > 1:
            parts = _parts(torch, value, number, asked[first:end], after[first:end])
            sizes = [*shape[:number], *after[first:]]
            value = _call(view, aten.unflatten.int, (value, number, parts), sizes)
    # If nothing was changed, the view is to the same sizes.
    return value if value is not view.args[0] else _call(view, aten.alias.default, (value,), after)


def _parts(
    torch: Any, value: Any, dimension: int, asked: Sequence[Any], sizes: Sequence[Any]
) -> list[Any]:
    """The sizes that a dimension is split into, as arguments of `aten.unflatten`. Known sizes are
    numbers. If another size is symbolic, -1 is replaced by an argument, too."""
    parts = [
        size if isinstance(size, int) else part for part, size in zip(asked, sizes, strict=True)
    ]
    if -1 not in parts or all(isinstance(part, int) for part in parts):
        return parts
    place = parts.index(-1)
    found = _size_as_argument(torch, value, sizes[place])
    if found is None:
        found = _quotient(torch, value, dimension, [*parts[:place], *parts[place + 1 :]])
    parts[place] = found
    return parts


def _size_as_argument(torch: Any, value: Any, size: Any) -> Any:
    """A node for a size that is also the size of an input's dimension; otherwise None."""
    graph = value.graph
    for place in graph.find_nodes(op="placeholder"):
        for dimension, other in enumerate(getattr(place.meta.get("val"), "shape", ())):
            if _same(size, other):
                node = graph.call_function(torch.ops.aten.sym_size.int, (place, dimension))
                node.meta["val"] = other
                return node
    return None


def _quotient(torch: Any, value: Any, dimension: int, others: Sequence[Any]) -> Any:
    """A node for a part of a dimension: its size divided by the other parts."""
    graph, whole = value.graph, value.meta["val"].shape[dimension]
    node = graph.call_function(torch.ops.aten.sym_size.int, (value, dimension))
    node.meta["val"] = whole
    for other in others:
        node = graph.call_function(operator.floordiv, (node, other))
        whole = whole // getattr(other, "meta", {}).get("val", other)
        node.meta["val"] = whole
    return node


def _call(view: Any, target: Any, arguments: tuple[Any, ...], sizes: Sequence[Any]) -> Any:
    """A call node with a result of these sizes."""
    node = view.graph.call_function(target, arguments)
    # `tensor_meta` also has the sizes, and the importer reads it first.
    node.meta = {**view.meta, "tensor_meta": None, "val": view.meta["val"].new_empty(sizes)}
    return node


def _groups(before: Sequence[Any], after: Sequence[Any]) -> list[_Group]:
    """Partitions the dimensions before and after the view into the smallest groups of equal size.
    Equal trailing dimensions form their own groups; the rest must match because the totals do."""
    tail = 0
    while tail < min(len(before), len(after)) - 1 and _same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    cuts = [(0, 0)]
    ends = (len(before) - tail, len(after) - tail)
    for i in range(1, ends[0]):
        for j in range(cuts[-1][1] + 1, ends[1]):
            if _same(math.prod(before[cuts[-1][0] : i]), math.prod(after[cuts[-1][1] : j])):
                cuts.append((i, j))
                break
    cuts += [(ends[0] + i, ends[1] + i) for i in range(tail + 1)]
    return [_Group((i, next_i), (j, next_j)) for (i, j), (next_i, next_j) in pairwise(cuts)]


def _same(one: Any, other: Any) -> bool:
    """Whether two sizes are the same expression. (`==` would add a guard.)"""
    return bool(_expression(one) == _expression(other))


def _expression(size: Any) -> Any:
    return size if isinstance(size, int) else size.node.expr
