"""PyTorch's adaptive pools, and its resizing of images with antialiasing.

Each result is made of a window of elements along one dimension after the other. Where windows
begin, and how many elements each has, is computed on the device, so that sizes may be unknown.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

Tensor = Any


def resampling_decompositions(aten: Any, known: dict[Any, Any]) -> dict[Any, Any]:
    """`known`: other decompositions, which are used where all sizes are known."""
    average = aten._adaptive_avg_pool2d.default
    return {
        average: functools.partial(_adaptive_average, known[average]),
        aten._adaptive_avg_pool3d.default: functools.partial(_adaptive_average, None),
        aten.adaptive_max_pool2d.default: _adaptive_maximum,
        aten.adaptive_max_pool3d.default: _adaptive_maximum,
        aten._upsample_bilinear2d_aa.default: functools.partial(_resized, _triangle, 2),
        aten._upsample_bicubic2d_aa.default: functools.partial(_resized, _cubic, 4),
    }


def _windows(x: Tensor, dim: int, start: Tensor, width: int) -> Tensor:
    """`width` elements from each of `start` on: the dimension becomes two. Behind the end, the last
    element is repeated."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    places = (start.unsqueeze(1) + torch.arange(width)).clamp(max=x.shape[dim] - 1)
    chosen = x.index_select(dim, places.reshape(-1))
    return chosen.reshape(*x.shape[:dim], start.shape[0], width, *x.shape[dim + 1 :])


def _beside(table: Tensor, x: Tensor, dim: int) -> Tensor:
    """A row or a table of the dimensions from `dim` on, with ones for those behind."""
    return table.reshape(*table.shape, *[1] * (x.dim() - dim - table.dim()))


def _is_always(condition: Any) -> bool:
    """Whether a condition on sizes is known to hold, without a guard that says so."""
    from torch.fx.experimental.symbolic_shapes import (  # type: ignore[import-not-found, unused-ignore]
        statically_known_true,
    )

    return bool(statically_known_true(condition))


# --- Adaptive pools -------------------------------------------------------------------------------


def _adaptive_windows(x: Tensor, dim: int, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The windows, where each begins, how long it is, and which elements of them it has. Window i
    of k has the elements from i * n / k, rounded down, to (i + 1) * n / k, rounded up."""
    import torch

    size = x.shape[dim]
    if _is_always(count == 1):
        is_there = torch.ones((1, size), dtype=torch.bool)
        return x.unsqueeze(dim), torch.zeros(1).long(), torch.full((1,), size), is_there
    numbers = torch.arange(count)
    start = torch.div(numbers * size, count, rounding_mode="trunc")
    end = torch.div((numbers + 1) * size + (count - 1), count, rounding_mode="trunc")
    width = size // count + 2
    is_there = torch.arange(width) < (end - start).unsqueeze(1)
    return _windows(x, dim, start, width), start, end - start, is_there


def _adaptive_average(
    otherwise: Callable[..., Tensor] | None, x: Tensor, output_size: Sequence[int]
) -> Tensor:
    import torch

    if all(isinstance(size, int) for size in (*x.shape, *output_size)):
        return NotImplemented if otherwise is None else otherwise(x, output_size)
    averages = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    for dim, count in enumerate(output_size, x.dim() - len(output_size)):
        if _is_always(count == x.shape[dim]):
            continue
        windows, _, lengths, is_there = _adaptive_windows(averages, dim, count)
        chosen = torch.where(_beside(is_there, windows, dim), windows, 0.0)
        averages = chosen.sum(dim + 1) / _beside(lengths, averages, dim)
    return averages.to(x.dtype)


def _adaptive_maximum(x: Tensor, output_size: Sequence[int]) -> Any:
    """The maxima, and their places among the elements of all pooled dimensions: the first of equal
    ones."""
    import torch

    first = x.dim() - len(output_size)
    if all(
        isinstance(size, int) and isinstance(count, int) and size % max(count, 1) == 0
        for size, count in zip(x.shape[first:], output_size, strict=True)
    ):
        return NotImplemented
    places: Any = None
    maxima, stride = x, 1
    for dim in reversed(range(first, x.dim())):
        windows, start, _, is_there = _adaptive_windows(maxima, dim, output_size[dim - first])
        chosen = torch.where(_beside(is_there, windows, dim), windows, -math.inf)
        maxima = chosen.amax(dim + 1)
        place = chosen.argmax(dim + 1) + _beside(start, maxima, dim)
        places = place if places is None else places.gather(dim, place) + place * stride
        stride = stride * x.shape[dim]
    return maxima, places


# --- Antialiased resizing -------------------------------------------------------------------------


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Tensor) -> Tensor:
    """Keys' function with a = -1/2."""
    import torch

    x = x.abs()
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((x - 5) * x + 8) * x * -0.5 + 2
    return torch.where(x < 1, inner, torch.where(x < 2, outer, 0.0))


def _resized(
    filter_: Callable[[Tensor], Tensor],
    taps: int,
    x: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> Tensor:
    """Weighted sums of the elements around each result's place, by a function of the distance that
    is 0 beyond `taps` / 2. Where the image becomes smaller, distances are counted in results."""
    import torch

    if not x.dtype.is_floating_point:
        return NotImplemented
    largest: Any = torch.sym_max
    type_ = torch.float64 if x.dtype == torch.float64 else torch.float32
    resized = x.to(type_)
    for dim, count, given in zip((2, 3), output_size, (scale_h, scale_w), strict=True):
        size = x.shape[dim]
        if align_corners:
            above, below = size - 1, largest(count - 1, 1)
        else:
            above, below = (1.0, given) if given else (size, count)
        scale = torch.full((), above, dtype=type_) / torch.full((), below, dtype=type_)
        wide = scale.clamp(min=1)
        center = (torch.arange(count).to(type_) + 0.5) * scale
        start = (center - wide * (taps / 2) + 0.5).long().clamp(min=0)
        end = (center + wide * (taps / 2) + 0.5).long().clamp(max=size)
        width = taps * (int(above / below) if given else above // below) + taps + 2
        places = start.unsqueeze(1) + torch.arange(width)
        weights = filter_((places.to(type_) - center.unsqueeze(1) + 0.5) / wide)
        weights = torch.where(places < end.unsqueeze(1), weights, 0.0)
        weights = weights / weights.sum(1, keepdim=True)
        windows = _windows(resized, dim, start, width)
        # A place without weight may have an element that is infinite.
        products = torch.where(_beside(weights != 0, windows, dim), windows, 0.0)
        resized = (products * _beside(weights, windows, dim)).sum(dim + 1)
    return resized.to(x.dtype)
