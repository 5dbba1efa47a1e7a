"""Decomposes norms: a batch norm in evaluation mode into one multiplication and one addition for
each element, and the variance of short rows, as of a layer norm, into sums of f32.

torch-mlir computes variances in f64, whose rate is 1/64 of that of f32 on most GPUs. Sums of f32
are as exact as those of PyTorch's own layer norm. Long rows are left to torch-mlir, as the error of
a sum grows with the number of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Tensor = Any
# The most elements of a row whose variance is computed in f32.
_MOST_IN_F32 = 1 << 14


def normalization_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
        aten.native_layer_norm.default: _layer_norm,
        aten.var.correction: _variance,
        aten.var_mean.correction: _variance_and_mean,
    }


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    import torch

    axes = list(range(x.dim() - len(shape), x.dim()))
    if not _is_short(x, axes):
        return _wide_layer_norm(x, shape, weight, bias, eps)
    difference, mean = _difference(x, axes)
    deviation = torch.rsqrt((difference * difference).mean(axes, keepdim=True) + eps)
    normal = difference * deviation
    if weight is not None:
        normal = normal * weight.float()
    if bias is not None:
        normal = normal + bias.float()
    return normal.to(x.dtype), mean.to(x.dtype), deviation.to(x.dtype)


def _wide_layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    """torch-mlir divides by the length of a row in the type of the elements, which 16 bits may not
    represent."""
    import torch

    if x.dtype not in (torch.float16, torch.bfloat16):
        return NotImplemented
    wide = [None if one is None else one.float() for one in (weight, bias)]
    results = torch.ops.aten.native_layer_norm.default(x.float(), shape, *wide, eps)
    return tuple(result.to(x.dtype) for result in results)


def _variance(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Any:
    both = _variance_and_mean(x, dim, correction=correction, keepdim=keepdim)
    return both if both is NotImplemented else both[0]


def _variance_and_mean(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Any:
    axes = sorted({axis % x.dim() for axis in dim} if dim and x.dim() else range(x.dim()))
    if not _is_short(x, axes):
        return _unbiased(x, axes, 1 if correction is None else correction, keepdim=keepdim)
    difference, mean = _difference(x, axes)
    count = math.prod(x.shape[axis] for axis in axes) - (1 if correction is None else correction)
    if count <= 0:
        return NotImplemented
    variance = (difference * difference).sum(axes, keepdim=keepdim) / count
    return variance.to(x.dtype), (mean if keepdim else mean.squeeze(axes)).to(x.dtype)


def _unbiased(x: Tensor, axes: Sequence[int], correction: float, *, keepdim: bool) -> Any:
    """The variance of rows of a number of elements that is not known. torch-mlir divides by a
    negative number if there are fewer than `correction`."""
    import torch

    count = math.prod(x.shape[axis] for axis in axes)
    if not correction or isinstance(count, int):
        return NotImplemented
    both = torch.ops.aten.var_mean.correction
    # The count may be too large for a float of 16 bits.
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    variance, mean = both(wide, axes, correction=0, keepdim=keepdim)
    larger: Any = torch.sym_max
    variance = variance * count / larger(count - correction, 0)
    return variance.to(x.dtype), mean.to(x.dtype)


def _is_short(x: Tensor, axes: Sequence[int]) -> bool:
    """Whether the rows are floats no wider than f32, of a known number that is not too large."""
    import torch

    sizes = [x.shape[axis] for axis in axes]
    return (
        x.dtype in (torch.float32, torch.float16, torch.bfloat16)
        and all(isinstance(size, int) for size in sizes)
        and 0 < math.prod(sizes) <= _MOST_IN_F32
    )


def _difference(x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The difference from the mean along the axes, and the mean, in f32."""
    wide = x.float()
    mean = wide.mean(axes, keepdim=True)
    return wide - mean, mean


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
    import torch
    from torch._prims_common import (
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
