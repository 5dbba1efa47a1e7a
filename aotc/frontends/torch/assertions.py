"""Simplifies the assertions of a program's graph, which torch.export makes of `torch._check` and of
its assumptions about data-dependent sizes."""

from __future__ import annotations

import operator
import re
from typing import Any

_GREATEST = 2**63 - 1


def simplify_assertions(program: Any) -> None:
    """Removes assertions that always hold from the graph of a `torch.export.ExportedProgram`, in
    place, and rewrites the messages of the others in terms of sizes instead of nodes."""
    import torch

    assert_scalar = torch.ops.aten._assert_scalar.default
    for node in program.graph.find_nodes(op="call_function", target=assert_scalar):
        condition, message = node.args
        if _holds(torch, condition):
            program.graph.erase_node(node)
            if isinstance(condition, torch.fx.Node) and not condition.users:
                program.graph.erase_node(condition)
        else:
            node.args = (condition, _message(message))
    assert_metadata = torch.ops.aten._assert_tensor_metadata.default
    for node in program.graph.find_nodes(op="call_function", target=assert_metadata):
        if _is_of_type_alone(node):
            program.graph.erase_node(node)


def broadcast_selections(program: Any) -> None:
    """Broadcasts the inputs of `masked_select` to their masks. PyTorch assumes that it has at most
    as many results as its input has elements, and asserts that, but a larger mask may select more.
    """
    import torch

    call, aten = "call_function", torch.ops.aten
    for select in program.graph.find_nodes(op=call, target=aten.masked_select.default):
        x, mask = select.args
        if x.meta["val"].shape == mask.meta["val"].shape:
            continue
        with program.graph.inserting_before(select):
            both = program.graph.call_function(aten.broadcast_tensors.default, ([x, mask],))
            select.args = (program.graph.call_function(operator.getitem, (both, 0)), mask)
        for size in [one for one in select.users if one.target is aten.sym_size.int]:
            for bound in [one for one in size.users if one.target is operator.le]:
                for node in (*bound.users, bound):
                    program.graph.erase_node(node)
        size = select.meta["val"].shape[0]
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
            _forget_largest(size)


def _forget_largest(size: Any) -> None:
    """Drops the upper bound of a size's range, of which decompositions make an assertion again."""
    from torch.utils._sympy.numbers import int_oo
    from torch.utils._sympy.value_ranges import (
        ValueRanges,
    )

    ranges = size.node.shape_env.var_to_range
    ranges[size.node.expr] = ValueRanges(ranges[size.node.expr].lower, int_oo)


def _is_of_type_alone(node: Any) -> bool:
    """Whether an assertion checks neither sizes nor strides. torch.export inserts one before each
    `to`. It is redundant: a tensor has one element type, and the entry checks that of its
    arguments."""
    of_shape = [*node.args[1:3], node.kwargs.get("size"), node.kwargs.get("stride")]
    return all(one is None for one in of_shape)


def _holds(torch: Any, condition: Any) -> bool:
    """Whether a condition always holds: a size is at least 0, or at most a number that no size
    exceeds."""
    target = getattr(condition, "target", None)
    if target not in (operator.ge, operator.le):
        return condition is True
    value, bound = condition.args
    if not isinstance(bound, int):
        return False
    if target is operator.le:
        return bound >= _GREATEST
    return bound <= 0 and getattr(value, "target", None) is torch.ops.aten.sym_size.int


def _message(message: str) -> str:
    found = re.fullmatch(r"Runtime assertion failed for expression (.*) on node '.*'", message)
    if found is None:
        return message
    # SymPy prints a boolean that is used as a number as this Piecewise.
    expected = re.sub(r"Piecewise\(\(1, Eq\((u\d+), 1\)\), \(0, True\)\)", r"\1", found[1])
    return f"expected {expected}, where u0, u1, ... are numbers that depend on values"
