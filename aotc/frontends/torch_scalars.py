"""Integers beside tensors of floats → floats, where torch-mlir's folding of constants needs it.

It takes a negative one for an unsigned one (`torch.ones(3) * -1` became 1.8e19), and compares with
what it is not. The pass changes no value: PyTorch converts the number, too.
"""

from __future__ import annotations

from typing import Any

_COMPARISONS = frozenset(f"aten::{name}" for name in ("lt", "le", "gt", "ge", "eq", "ne"))


def make_scalars_float(program: Any) -> None:
    """Changes the graph of a `torch.export.ExportedProgram` in place."""
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or schema.name == "aten::pow":
            continue
        if not _is_of_floats(node):
            continue
        named = {argument.name: str(argument.type) for argument in schema.arguments}
        types, is_comparison = list(named.values()), schema.name in _COMPARISONS
        node.args = tuple(
            _converted(value, types[number], is_comparison)
            for number, value in enumerate(node.args)
        )
        node.kwargs = {
            name: _converted(value, named[name], is_comparison)
            for name, value in node.kwargs.items()
        }


def _is_of_floats(node: Any) -> bool:
    """Whether an operator's tensors are all of floats, but for a result of truths."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    values = [one.meta.get("val") for one in (*node.all_input_nodes, node)]
    types = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    if not types or len(types) != len(values):
        return False
    *given, made = types
    return any(one.is_floating_point for one in given) and (
        made.is_floating_point or made == torch.bool
    )


def _converted(value: Any, type_: str, is_any: bool) -> Any:
    """The argument of an operator: an integer as a float, if it is negative or `is_any`."""
    is_scalar = type_ in ("number", "Tensor", "Optional[number]")
    is_wanted = is_scalar and type(value) is int and (is_any or value < 0)
    return float(value) if is_wanted else value
