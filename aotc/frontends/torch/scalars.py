"""Converts integer scalars to the dtype of the integer tensors that they are combined with, as
PyTorch does.

With a tensor of uint8, -3 is 253 and 300 is 44, in comparisons, remainders, quotients and bounds.
torch-mlir uses the number without a conversion. Sums and products are the same either way.
"""

from __future__ import annotations

from typing import Any

_NAMES = (
    *("lt", "le", "gt", "ge", "eq", "ne"),
    *("remainder", "fmod", "floor_divide", "div", "clamp", "clamp_min", "clamp_max"),
)


def wrap_scalars(program: Any) -> None:
    """Converts the scalars in the graph of a `torch.export.ExportedProgram`, in place."""
    for node in program.graph.nodes:
        packet = str(getattr(node.target, "overloadpacket", ""))
        type_ = _computed_in(node) if packet.removeprefix("aten.") in _NAMES else None
        if type_ is not None:
            node.args = tuple(_wrapped(value, type_) for value in node.args)
            node.kwargs = {name: _wrapped(value, type_) for name, value in node.kwargs.items()}


def _computed_in(node: Any) -> Any | None:
    """The integer dtype that an operator computes in, or None if it is not an integer dtype."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    values = [one.meta.get("val") for one in node.all_input_nodes]
    made = node.meta.get("val")
    if not all(isinstance(value, torch.Tensor) for value in (*values, made)):
        return None
    (first, *others) = values
    type_ = first.dtype
    for other in others:
        type_ = torch.promote_types(type_, other.dtype)
    is_of_integers = not type_.is_floating_point and not type_.is_complex and type_ != torch.bool
    return type_ if is_of_integers and made.dtype in (type_, torch.bool) else None


def _wrapped(value: Any, type_: Any) -> Any:
    import torch

    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return torch.tensor(value).to(type_).item() if is_integer else value
