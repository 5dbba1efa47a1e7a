"""Gives tensors of rank 0 a dimension of size 1 where an operator has a parameter for dimensions.

PyTorch accepts dimension 0 of a tensor that has none. torch-mlir's passes reject that, or crash.
"""

from __future__ import annotations

import operator
from typing import Any

_DIMENSIONS = ("dim", "dims")
# Operators that insert a dimension, or name all of an operand's, of which there are none.
_LEFT_OUT = ("aten::unsqueeze", "aten::unsqueeze_copy", "aten::permute", "aten::permute_copy")


def add_dimensions(program: Any) -> None:
    """Replaces such operands by views of shape (1,), and the results by views of the original
    shapes. Changes the graph of a `torch.export.ExportedProgram` in place."""
    import torch

    for node in list(program.graph.nodes):
        if isinstance(node.target, torch._ops.OpOverload) and _is_concerned(node):
            _rewrite(torch, node)


def _is_concerned(node: Any) -> bool:
    schema = node.target._schema
    has_dimensions = any(one.name in _DIMENSIONS for one in schema.arguments)
    is_of_tensor = str(schema.arguments[0].type) == "Tensor" if schema.arguments else False
    if not (has_dimensions and is_of_tensor and node.args) or schema.name in _LEFT_OUT:
        return False
    return bool(node.args[0].meta["val"].dim() == 0)


def _rewrite(torch: Any, node: Any) -> None:
    graph, view = node.graph, torch.ops.aten.view.default
    names = [one.name for one in node.target._schema.arguments]

    def with_dimension(name: str, value: Any) -> Any:
        # A number that an operator takes as a tensor stays one.
        if name == "value" or not isinstance(value, torch.fx.Node):
            return value
        tensor = value.meta.get("val")
        if not isinstance(tensor, torch.Tensor) or tensor.dim():
            return value
        return _call(graph, view, (value, [1]), value.meta, tensor.reshape(1))

    with graph.inserting_before(node):
        node.args = tuple(map(with_dimension, names, node.args))
        node.kwargs = {name: with_dimension(name, value) for name, value in node.kwargs.items()}
    before = node.meta["val"]
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda one: one.meta["val"])
    _set_value(node, node.target(*args, **kwargs))
    if isinstance(before, torch.Tensor):
        _view_as(graph, view, node, before)
        return
    for user in list(node.users):
        if user.target is operator.getitem:
            number = user.args[1]
            _set_value(user, node.meta["val"][number])
            _view_as(graph, view, user, before[number])


def _view_as(graph: Any, view: Any, node: Any, before: Any) -> None:
    """Replaces the uses of a result by a view of the shape that it had."""
    if node.meta["val"].shape == before.shape:
        return
    with graph.inserting_after(node):
        viewed = _call(graph, view, (node, list(before.shape)), node.meta, before)
    node.replace_all_uses_with(viewed, delete_user_cb=lambda user: user is not viewed)
    # The signature refers to results by the names of their nodes.
    name = node.name
    node._rename(f"{name}_of_row")
    viewed._rename(name)


def _call(graph: Any, target: Any, arguments: Any, meta: Any, value: Any) -> Any:
    node = graph.call_function(target, arguments)
    node.meta = dict(meta)
    _set_value(node, value)
    return node


def _set_value(node: Any, value: Any) -> None:
    # `tensor_meta` also has the sizes, and the importer reads it first.
    node.meta = {**node.meta, "tensor_meta": None, "val": value}
