"""Decomposes a batch norm in evaluation mode into one multiplication and one addition for each
element."""

from __future__ import annotations

from typing import Any

Tensor = Any


def normalization_decompositions(aten: Any) -> dict[Any, Any]:
    return {aten._native_batch_norm_legit_no_training.default: _batch_norm}


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """x * scale + shift, as PyTorch computes it on a CPU.

    Scale and shift have an element for each channel, and are constants of the build. PyTorch's
    decomposition subtracts the mean and multiplies by the reciprocal of the deviation first, so
    that a convolution's epilogue would read four vectors instead of two.
    """
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch._prims_common import (  # type: ignore[import-not-found, unused-ignore]
        get_computation_dtype,
    )

    type_ = get_computation_dtype(x.dtype)
    scale = torch.rsqrt(running_var.to(type_) + eps)
    if weight is not None:
        scale = scale * weight.to(type_)
    shift = -running_mean.to(type_) * scale
    if bias is not None:
        shift = shift + bias.to(type_)
    along = (-1, *(1 for _ in range(x.dim() - 2)))
    normal = x.to(type_) * scale.reshape(along) + shift.reshape(along)
    none = x.new_zeros((0,))
    return normal.to(x.dtype), none, none
