"""Decompositions of PyTorch's gradient operators that occur in training steps, and that torch-mlir
does not support or lowers wrongly."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aotc.frontends.torch.constants import constant
from aotc.frontends.torch.resampling import nearest_places

Tensor = Any


def gradient_decompositions(aten: Any) -> dict[Any, Any]:
    linear = {
        aten.upsample_linear1d_backward.default: aten.upsample_linear1d.default,
        aten.upsample_bilinear2d_backward.default: aten.upsample_bilinear2d.default,
        aten.upsample_bicubic2d_backward.default: aten.upsample_bicubic2d.default,
        aten.upsample_trilinear3d_backward.default: aten.upsample_trilinear3d.default,
        aten._upsample_bilinear2d_aa_backward.default: aten._upsample_bilinear2d_aa.default,
        aten._upsample_bicubic2d_aa_backward.default: aten._upsample_bicubic2d_aa.default,
    }
    nearest = {
        aten.upsample_nearest1d_backward.default: 0.0,
        aten.upsample_nearest2d_backward.default: 0.0,
        aten.upsample_nearest3d_backward.default: 0.0,
        aten._upsample_nearest_exact1d_backward.default: 0.5,
        aten._upsample_nearest_exact2d_backward.default: 0.5,
        aten._upsample_nearest_exact3d_backward.default: 0.5,
    }
    return {
        **{name: functools.partial(_interpolated, forward) for name, forward in linear.items()},
        **{name: functools.partial(_nearest, offset) for name, offset in nearest.items()},
        aten.avg_pool2d_backward.default: functools.partial(_average, 2),
        aten.avg_pool3d_backward.default: functools.partial(_average, 3),
        aten._adaptive_avg_pool2d_backward.default: functools.partial(_adaptive_average, 2),
        aten._adaptive_avg_pool3d_backward.default: functools.partial(_adaptive_average, 3),
        aten.max_pool3d_with_indices_backward.default: _maximum_of_volumes,
        aten.adaptive_max_pool2d_backward.default: functools.partial(_maximum, 2),
        aten.adaptive_max_pool3d_backward.default: functools.partial(_maximum, 3),
        aten.unfold_backward.default: _unfold,
        aten.convolution_backward.default: _convolution,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention,
    }


# --- Resizing and pools ---------------------------------------------------------------------------


def _by_windows(gradient: Tensor, first: int, sizes: Sequence[int], forward: Any) -> Tensor:
    """The gradient of a separable linear function of the dimensions from `first` on, whose input
    sizes are `sizes`.

    The gradient of an input element is the weighted sum of the gradients of the results that it
    contributes to. Only these are read, because others may be NaN. `forward(axis, identity)`
    applies the function along one dimension to the rows of a matrix. Returns NotImplemented if a
    size is not known.
    """
    import torch
    from torch.utils._python_dispatch import (
        _disable_current_modes,
    )

    if not all(isinstance(size, int) for size in (*sizes, *gradient.shape[first:])):
        return NotImplemented
    type_ = torch.float64 if gradient.dtype == torch.float64 else torch.float32
    found = gradient.to(type_)
    for dim, size in enumerate(sizes, first):
        with _disable_current_modes():
            matrix = forward(dim - first, torch.eye(size, dtype=type_)).numpy()
        width = np.count_nonzero(matrix, axis=1).max()
        places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :width]
        chosen = found.index_select(dim, constant(places.flatten(), torch.int64))
        windows = chosen.reshape(*found.shape[:dim], *places.shape, *found.shape[dim + 1 :])
        weights = constant(np.take_along_axis(matrix, places, 1), type_)
        weights = weights.reshape(*places.shape, *[1] * (found.dim() - dim - 1))
        found = (torch.where(weights != 0, windows, 0.0) * weights).sum(dim + 1)
    return found.to(gradient.dtype).contiguous()


def _interpolated(
    forward: Any,
    gradient: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    align_corners: bool,
    *scales: float | None,
) -> Tensor:
    rank = len(output_size)
    given = [*scales, *[None] * (rank - len(scales))]

    # One forward function serves all dimensions, because all are resized in the same way.
    others = [1] * (rank - 1)

    def along(axis: int, identity: Tensor) -> Tensor:
        rows = identity.reshape(-1, 1, *others, identity.shape[1])
        sizes, own = [*others, output_size[axis]], [*[None] * (rank - 1), given[axis]]
        return forward(rows, sizes, align_corners, *own).flatten(1)

    return _by_windows(gradient, 2, input_size[2:], along)


def _nearest(
    offset: float,
    gradient: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    *scales: float | None,
) -> Tensor:
    """`offset`: see `nearest_places`."""
    given = [*scales, *[None] * (len(output_size) - len(scales))]
    found = gradient
    for dim, (count, scale) in enumerate(zip(output_size, given, strict=True), 2):
        size = input_size[dim]
        places = nearest_places(size, count, scale, offset)
        shape = [*found.shape[:dim], size, *found.shape[dim + 1 :]]
        found = found.new_zeros(shape).index_add(dim, places, found)
    return found


def _average(
    rank: int,
    gradient: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    import torch

    sizes, steps, pads = (
        tuple(one) * (rank // len(one)) for one in (kernel_size, stride or kernel_size, padding)
    )

    def along(axis: int, identity: Tensor) -> Tensor:
        window, step, pad = (1, sizes[axis]), (1, steps[axis]), (0, pads[axis])
        divisor = 1 if divisor_override else None
        rows = identity.reshape(-1, 1, 1, identity.shape[1])
        pool = torch.nn.functional.avg_pool2d
        return pool(rows, window, step, pad, ceil_mode, count_include_pad, divisor).flatten(1)

    found = _by_windows(gradient, x.dim() - rank, x.shape[-rank:], along)
    return found / divisor_override if divisor_override and found is not NotImplemented else found


def _adaptive_average(rank: int, gradient: Tensor, x: Tensor) -> Tensor:
    import torch

    def along(axis: int, identity: Tensor) -> Tensor:
        count = gradient.shape[x.dim() - rank + axis]
        return torch.nn.functional.adaptive_avg_pool1d(identity, count)

    return _by_windows(gradient, x.dim() - rank, x.shape[-rank:], along)


def _maximum(rank: int, gradient: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """`indices` are the linear indices of the maxima in the last `rank` dimensions of `x`."""
    zeros = x.new_zeros([*x.shape[:-rank], math.prod(x.shape[-rank:])])
    found = zeros.scatter_add(-1, indices.flatten(-rank), gradient.flatten(-rank))
    return found.reshape(x.shape)


def _maximum_of_volumes(gradient: Tensor, x: Tensor, *windows: Any) -> Tensor:
    *_, indices = windows
    return _maximum(3, gradient, x, indices)


def _unfold(gradient: Tensor, input_size: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """An element that is in several windows gets the sum of their gradients."""
    import torch

    if not input_size:
        return gradient.reshape(())
    dim = dim % len(input_size)
    places = torch.arange(gradient.shape[dim]).unsqueeze(1) * step + torch.arange(size)
    windows = gradient.movedim(-1, dim + 1).flatten(dim, dim + 1)
    return gradient.new_zeros(input_size).index_add(dim, places.flatten(), windows)


# --- Convolutions and attention -------------------------------------------------------------------


def _convolution(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """The gradients of a transposed convolution (which itself is the gradient of a convolution with
    respect to its input), and of a grouped convolution. Returns NotImplemented for others."""
    import torch

    aten = torch.ops.aten
    no_padding = [0] * len(output_padding)
    own = (stride, padding, dilation, False, no_padding, groups)
    of_x = of_weight = of_bias = None
    if transposed:
        if any(more >= step for more, step in zip(output_padding, stride, strict=True)):
            return NotImplemented
        image, of_result = gradient, x
        if output_mask[0]:
            of_x = aten.convolution.default(gradient, weight, None, *own)
    else:
        if groups == 1:
            return NotImplemented
        image, of_result = x, gradient
        if output_mask[0]:
            # The number of elements at the end of the image that are in no window.
            rest = [
                size + 2 * pad - apart * (taps - 1) - 1 - step * (count - 1)
                for size, pad, apart, taps, step, count in zip(
                    *(x.shape[2:], padding, dilation, weight.shape[2:], stride, gradient.shape[2:]),
                    strict=True,
                )
            ]
            of_x = aten.convolution.default(
                gradient, weight, None, stride, padding, dilation, True, rest, groups
            )
    if output_mask[1]:
        # The weight's gradient is the convolution of the image with the gradient. For each channel
        # of a group, it sums over all batches, which become the channels of the groups.
        batches, channels, *sizes = image.shape
        split = image.reshape(batches, groups, channels // groups, *sizes).transpose(0, 2)
        moved = split.reshape(channels // groups, groups * batches, *sizes)
        swapped = (dilation, padding, stride, False, no_padding, groups)
        of_weight = aten.convolution.default(moved, of_result.transpose(0, 1), None, *swapped)
        for dim, size in enumerate(weight.shape[2:], 2):
            of_weight = of_weight.narrow(dim, 0, size)
        of_weight = of_weight.transpose(0, 1).contiguous()
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, gradient.dim())])
    return of_x, of_weight, of_bias


def _attention(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """Recomputes the softmax weights. The results have the strides of the operator's results, with
    the heads after the sequence."""
    import torch

    group = query.shape[1] // key.shape[1]
    if dropout_p:
        return NotImplemented
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide: Callable[[Tensor], Tensor] = (
        (lambda one: one) if query.dtype == torch.float64 else (lambda one: one.float())
    )
    q, of_out = wide(query), wide(gradient)
    k, v = (wide(one).repeat_interleave(group, 1) for one in (key, value))
    scores = q @ k.transpose(-1, -2) * factor
    if is_causal:
        rows, keys = scores.shape[-2:]
        seen = torch.arange(rows).unsqueeze(1) >= torch.arange(keys)
        scores = torch.where(seen, scores, -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = torch._safe_softmax(scores, -1)
    of_weights = of_out @ v.transpose(-1, -2)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * factor
    found = (of_scores @ k, of_scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ of_out)
    return tuple(
        one.reshape(*like.shape[:2], -1, *like.shape[2:])
        .sum(2)
        .to(like.dtype)
        .transpose(1, 2)
        .contiguous()
        .transpose(1, 2)
        for one, like in zip(found, (query, key, value), strict=True)
    )
