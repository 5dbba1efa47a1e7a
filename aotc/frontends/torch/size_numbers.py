"""Replaces arithmetic on sizes by operators that torch-mlir's importer supports.

PyTorch's decompositions of operators on tensors of symbolic size compute with symbolic numbers:
`sym_float(size)`, `aten.sub.Tensor(size - 1, tensor)`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

# Maps the operators that combine conditions to the arithmetic on 0 and 1 whose result is not 0.
_OF_CONDITIONS = {operator.or_: operator.add, operator.and_: operator.mul}


def import_size_numbers(program: Any) -> None:
    """Replaces them in the graph of a `torch.export.ExportedProgram`, in place."""
    import torch

    functions, scalar = _functions(), torch.ops.aten._local_scalar_dense.default
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is scalar and isinstance(node.meta["val"], torch.SymBool):
            node.target = torch.ops.aten.Bool.Tensor
        elif node.target in (torch.sym_ite, torch.sym_not):
            _choose(program.graph, node)
        elif node.target in _OF_CONDITIONS and isinstance(node.meta["val"], torch.SymBool):
            _combine(program.graph, node)
        elif node.target in functions:
            of_integers, of_floats = functions[node.target]
            is_integer = isinstance(node.meta["val"], torch.SymInt)
            node.target = of_integers if is_integer else of_floats
        elif isinstance(node.target, torch._ops.OpOverload):
            _make_tensors(program.graph, node)


def _functions() -> dict[Callable[..., Any], tuple[Any, Any]]:
    """Maps Python's functions of numbers to the equal operators of TorchScript: the one whose
    result is an integer, and the one whose result is a float."""
    import torch

    aten, prim = torch.ops.aten, torch.ops.prim
    powers = (aten.pow.int_to_int, aten.pow.float)
    return {
        torch.sym_float: (None, aten.Float.Scalar),
        torch.sym_int: (aten.Int.Scalar, None),
        math.trunc: (aten.Int.Scalar, None),
        math.ceil: (aten.ceil.Scalar, None),
        math.floor: (aten.floor.float, None),
        torch.sym_max: (prim.max.int, prim.max.float),
        torch.sym_min: (prim.min.int, prim.min.float),
        operator.pow: powers,
        pow: powers,
        torch.sym_sqrt: (None, aten.sqrt.float),  # strict export converts math.sqrt to this
    }


def _choose(graph: Any, node: Any) -> None:
    """Replaces `sym_ite` of two integers (as `torch._check` of a condition on values produces it)
    and `sym_not` by arithmetic on the condition as an integer."""
    import torch

    value = node.meta["val"]

    def call(function: Any, *values: Any, val: Any = value) -> Any:
        with graph.inserting_before(node):
            made = graph.call_function(function, values)
        made.meta = {**node.meta, "val": val}
        return made

    condition, *numbers = node.args
    if not numbers:
        choose: Any = torch.sym_ite
        integer = call(torch.ops.aten.Int.bool, condition, val=choose(value, 1, 0))
        found = call(operator.eq, integer, 0)
    elif isinstance(value, torch.SymInt):
        one, other = numbers
        found = call(torch.ops.aten.Int.bool, condition)
        if (one, other) != (1, 0):
            found = call(operator.mul, found, call(operator.sub, one, other))
            found = call(operator.add, found, other)
    else:
        return
    node.replace_all_uses_with(found)
    graph.erase_node(node)


def _combine(graph: Any, node: Any) -> None:
    """Replaces `or` and `and` of two conditions by arithmetic on them as integers."""
    import torch

    to_integer: Any = torch.sym_ite
    with graph.inserting_before(node):
        made = []
        for condition in node.args:
            integer = graph.call_function(torch.ops.aten.Int.bool, (condition,))
            value = condition.meta["val"] if isinstance(condition, torch.fx.Node) else condition
            integer.meta = {**node.meta, "val": to_integer(value, 1, 0)}
            made.append(integer)
        combine = _OF_CONDITIONS[node.target]
        number = graph.call_function(combine, tuple(made))
        number.meta = {**node.meta, "val": combine(*(one.meta["val"] for one in made))}
    node.target, node.args = operator.ne, (number, 0)


def _make_tensors(graph: Any, node: Any) -> None:
    """Replaces a number by a tensor of rank 0 where the operator's schema has a tensor."""
    import torch

    for i, (given, expected) in enumerate(
        zip(node.args, node.target._schema.arguments, strict=False)
    ):
        value = getattr(given, "meta", {}).get("val")
        if not isinstance(value, torch.SymInt | torch.SymFloat) or str(expected.type) != "Tensor":
            continue
        type_ = _type_beside(node, value)
        with graph.inserting_before(node):
            tensor = graph.call_function(
                torch.ops.aten.full.default,
                ([], given),
                {"dtype": type_, "device": torch.device("cpu")},
            )
        with node.meta["val"].fake_mode:
            tensor.meta = {"val": torch.empty((), dtype=type_)}
        if "stack_trace" in node.meta:
            tensor.meta["stack_trace"] = node.meta["stack_trace"]
        node.update_arg(i, tensor)


def _type_beside(node: Any, value: Any) -> Any:
    """The dtype of a number according to PyTorch's type promotion with the operator's tensors."""
    import torch

    number = 1 if isinstance(value, torch.SymInt) else 1.0
    tensors = (one.meta.get("val") for one in node.all_input_nodes)
    others = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
    # In type promotion, a number has lower priority than a tensor that has dimensions.
    return torch.result_type(torch.empty((1,), dtype=others[0].dtype), number) if others else None
