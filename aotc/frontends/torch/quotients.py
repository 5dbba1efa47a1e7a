"""Remainders and rounded quotients of floats, as exact as PyTorch's.

torch-mlir computes x - trunc(x / y) * y and floor(x / y), in the type of the operands. A quotient
that is rounded to an integer makes both wrong, and so does an infinite divisor.
"""

from __future__ import annotations

from typing import Any

Tensor = Any


def quotient_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.fmod.Tensor: _fmod,
        aten.fmod.Scalar: _fmod,
        aten.div.Tensor_mode: _divide,
        aten.div.Scalar_mode: _divide,
        aten.floor_divide.default: _floor_divide,
    }


def _fmod(x: Tensor, y: Any) -> Tensor:
    """The remainder with the sign of `x`, even if it is 0."""
    import torch

    type_ = torch.result_type(x, y)
    if not type_.is_floating_point:
        if isinstance(y, torch.Tensor):
            return NotImplemented
        return torch.fmod(x, torch.full_like(x, y, dtype=type_))
    # PyTorch rounds a number to the type, as it does not for a quotient.
    divisor = y if isinstance(y, torch.Tensor) else torch.full((), y, dtype=type_)
    a, b = _wide(x, divisor, type_)
    return torch.copysign(torch.remainder(a.abs(), b.abs()), a).to(type_)


def _divide(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`x` is a number in programs that divide one by a tensor."""
    import torch

    type_ = torch.result_type(x, y)
    if not isinstance(x, torch.Tensor) and not type_.is_floating_point:
        return torch.div(torch.full((), x, dtype=type_), y, rounding_mode=rounding_mode)
    # PyTorch truncates the rounded quotient of two tensors, as torch-mlir does.
    is_right = rounding_mode == "trunc" and isinstance(y, torch.Tensor)
    if rounding_mode is None or is_right or not type_.is_floating_point:
        return NotImplemented
    a, b = _wide(x, y, type_)
    if rounding_mode == "trunc":
        return torch.trunc(a / b).to(type_)
    # Without the remainder, the quotient is an integer, except for rounding.
    rest = torch.fmod(a, b)
    quotient = (a - rest) / b
    quotient = torch.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    floor = torch.floor(quotient)
    floor = torch.where(quotient - floor > 0.5, floor + 1, floor)
    return torch.where(b == 0, a / b, floor).to(type_)


def _floor_divide(x: Any, y: Any) -> Tensor:
    import torch

    return torch.div(x, y, rounding_mode="floor")


def _wide(x: Any, y: Any, type_: Any) -> tuple[Tensor, Tensor]:
    """The operands in f32 or f64, in which PyTorch computes, too."""
    import torch

    wide = torch.promote_types(type_, torch.float32)
    a, b = (
        one.to(wide) if isinstance(one, torch.Tensor) else torch.full((), one, dtype=wide)
        for one in (x, y)
    )
    return a, b
