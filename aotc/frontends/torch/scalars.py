"""Converts the operands of operators on integers to the dtype that PyTorch computes them in.

With a tensor of uint8, -3 is 253 and 300 is 44, in comparisons, remainders, quotients and bounds,
be it a number or a tensor of rank 0. torch-mlir uses a number without a conversion, and compares
tensors of two dtypes by the signedness of one. Sums and products are the same either way.
"""

from __future__ import annotations

from typing import Any

_NAMES = (
    *("lt", "le", "gt", "ge", "eq", "ne", "maximum", "minimum"),
    *("remainder", "fmod", "floor_divide", "div", "clamp", "clamp_min", "clamp_max"),
)


def wrap_operands(program: Any) -> None:
    """Changes the graph of a `torch.export.ExportedProgram`, in place."""
    for node in list(program.graph.nodes):
        packet = str(getattr(node.target, "overloadpacket", ""))
        type_ = _computed_in(node) if packet.removeprefix("aten.") in _NAMES else None
        if type_ is not None:
            with program.graph.inserting_before(node):
                node.args = tuple(_wrapped(value, type_) for value in node.args)
                node.kwargs = {name: _wrapped(node.kwargs[name], type_) for name in node.kwargs}


def _computed_in(node: Any) -> Any | None:
    """The integer dtype that an operator computes in, or None if it is not an integer dtype."""
    import torch
    from torch._prims_common import (
        ELEMENTWISE_TYPE_PROMOTION_KIND as KIND,
    )
    from torch._prims_common import elementwise_dtypes

    values = [one.meta.get("val") for one in node.all_input_nodes]
    made = node.meta.get("val")
    if not all(isinstance(value, torch.Tensor) for value in (*values, made)):
        return None
    given = (*node.args, *node.kwargs.values())
    numbers = [one for one in given if isinstance(one, bool | int | float)]
    _, type_ = elementwise_dtypes(*values, *numbers, type_promotion_kind=KIND.DEFAULT)
    is_of_integers = not type_.is_floating_point and not type_.is_complex and type_ != torch.bool
    return type_ if is_of_integers and made.dtype in (type_, torch.bool) else None


def _wrapped(value: Any, type_: Any) -> Any:
    import torch

    if isinstance(value, torch.fx.Node):
        return value if value.meta["val"].dtype == type_ else _converted(value, type_)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return torch.tensor(value).to(type_).item() if is_integer else value


def _converted(node: Any, type_: Any) -> Any:
    import torch

    convert = torch.ops.aten._to_copy.default
    made = node.graph.call_function(convert, (node,), {"dtype": type_})
    made.meta = {**node.meta, "tensor_meta": None, "val": node.meta["val"].to(type_)}
    return made
