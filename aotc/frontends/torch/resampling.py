"""Decompositions of PyTorch's adaptive pools, max pools with large windows, and image resizing.

One dimension after the other is reduced: each result comes from a window of elements along it. The
start and length of each window are computed on the device, so sizes may be symbolic.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from aotc.frontends.torch.resized_bytes import CUBIC, LINEAR, SMOOTH_CUBIC, resize_bytes

Tensor = Any


def resampling_decompositions(aten: Any, known: dict[Any, Any]) -> dict[Any, Any]:
    """`known` has other decompositions. Some of them are used where all sizes are known."""
    average = aten._adaptive_avg_pool2d.default
    interpolations = {
        aten.upsample_bilinear2d.vec: _linear,
        aten.upsample_trilinear3d.vec: _linear,
        aten.upsample_bicubic2d.vec: _cubic_of_four,
    }
    nearest = {
        getattr(aten, f"{name}{dims}d").vec: offset
        for name, offset in (("upsample_nearest", 0.0), ("_upsample_nearest_exact", 0.5))
        for dims in (1, 2, 3)
    }
    return {
        **{
            operator: functools.partial(_interpolated, taps, known[operator])
            for operator, taps in interpolations.items()
        },
        **{
            operator: functools.partial(_nearest, known.get(operator, _unknown_sizes), offset)
            for operator, offset in nearest.items()
        },
        aten.upsample_trilinear3d.default: _linear_of_each,
        average: functools.partial(_adaptive_average, known[average]),
        aten._adaptive_avg_pool3d.default: functools.partial(_adaptive_average, None),
        aten.max_pool2d.default: _maximum,
        aten.adaptive_max_pool2d.default: _adaptive_maximum,
        aten.adaptive_max_pool3d.default: _adaptive_maximum,
        aten._upsample_bilinear2d_aa.default: functools.partial(_resized, _triangle, 2),
        aten._upsample_bicubic2d_aa.default: functools.partial(_resized, _cubic, 4),
    }


def _windows(x: Tensor, dim: int, start: Tensor, width: int) -> Tensor:
    """Replaces a dimension by two: one for the windows, and one for their `width` elements from
    each of `start` on. After the end, the last element is repeated."""
    import torch

    places = (start.unsqueeze(1) + torch.arange(width)).clamp(max=x.shape[dim] - 1)
    chosen = x.index_select(dim, places.reshape(-1))
    return chosen.reshape(*x.shape[:dim], start.shape[0], width, *x.shape[dim + 1 :])


def _beside(table: Tensor, x: Tensor, dim: int) -> Tensor:
    """Reshapes a table of the dimensions from `dim` on so that it broadcasts over the dimensions
    after them."""
    return table.reshape(*table.shape, *[1] * (x.dim() - dim - table.dim()))


def _is_always(condition: Any) -> bool:
    """Whether a condition on sizes is statically known to hold. Does not add a guard."""
    from torch.fx.experimental.symbolic_shapes import (
        statically_known_true,
    )

    return bool(statically_known_true(condition))


# --- Adaptive pools -------------------------------------------------------------------------------


def _adaptive_windows(x: Tensor, dim: int, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the windows, their starts, their lengths, and a mask of their valid elements. Window
    i of k has the elements from floor(i * n / k) up to ceil((i + 1) * n / k)."""
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


def _are_equal_windows(x: Tensor, output_size: Sequence[int]) -> bool:
    """Whether all sizes are known and are multiples of the result's sizes, so that this is an
    ordinary pool."""
    return all(
        isinstance(size, int) and isinstance(count, int) and size % max(count, 1) == 0
        for size, count in zip(x.shape[-len(output_size) :], output_size, strict=True)
    )


def _adaptive_average(
    otherwise: Callable[..., Tensor] | None, x: Tensor, output_size: Sequence[int]
) -> Tensor:
    import torch

    if _are_equal_windows(x, output_size):
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
    """The maxima, and their linear indices in the pooled dimensions. Of equal maxima, the first
    counts."""
    import torch

    first = x.dim() - len(output_size)
    if _are_equal_windows(x, output_size):
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


# --- Max pools with large windows -----------------------------------------------------------------

# The factor by which a second pass must reduce the elements that are read to be worth it.
_LEAST_SAVING = 2.5


def _maximum(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Tensor:
    """Computes the maxima of rows, and then those of columns, if windows overlap so much that this
    is far less work."""
    import torch

    pool = torch.ops.aten.max_pool2d_with_indices.default
    sizes = [kernel_size, stride or kernel_size, padding, dilation]
    (high, wide), (down, across), (above, left), (apart, aside) = (
        tuple(one) * (2 // len(one)) for one in sizes
    )
    if high * wide < _LEAST_SAVING * (down * wide + high):
        # torch-mlir does not support a stride that is left out.
        return pool(x, (high, wide), (down, across), (above, left), (apart, aside), ceil_mode)[0]
    rows = pool(x, (1, wide), (1, across), (0, left), (1, aside), ceil_mode)[0]
    return pool(rows, (high, 1), (down, 1), (above, 0), (apart, 1), ceil_mode)[0]


# --- Antialiased resizing -------------------------------------------------------------------------


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Tensor) -> Tensor:
    """Keys' cubic kernel with a = -1/2."""
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
    """Weighted sums of the elements around the place of each result. The filter is a function of
    the distance, and is 0 beyond `taps` / 2. When the image is reduced, the distance is in units of
    the result's elements."""
    import torch

    if x.dtype == torch.uint8:
        of = LINEAR if filter_ is _triangle else SMOOTH_CUBIC
        scales = (scale_h, scale_w)
        return resize_bytes(x, output_size, align_corners, scales, of=of, antialias=True)
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
        # An element with weight 0 may be infinite.
        products = torch.where(_beside(weights != 0, windows, dim), windows, 0.0)
        resized = (products * _beside(weights, windows, dim)).sum(dim + 1)
    return resized.to(x.dtype)


# --- Interpolation --------------------------------------------------------------------------------


def _nearest(
    otherwise: Callable[..., Tensor],
    offset: float,
    x: Tensor,
    output_size: Sequence[Any] | None,
    scale_factors: Sequence[float] | None,
) -> Tensor:
    """The nearest element for each result. Elements that are repeated a whole number of times need
    no places, and `otherwise` computes those of types of 16 bits, whose channels are the last
    dimension in memory."""
    import torch
    from torch._prims_common import suggest_memory_format

    whole: Any = torch.sym_int
    sizes = x.shape[2:]
    scales: Sequence[float | None] = scale_factors or [None] * len(sizes)
    counts = output_size or [
        size * int(scale) if scale == int(scale) else whole(size * scale)
        for size, scale in zip(sizes, scale_factors or (), strict=True)
    ]
    # PyTorch computes places of images in f32, and others in the type of the elements.
    is_image = len(sizes) == 2
    is_double = x.dtype == torch.float64 and not is_image
    is_rounded = offset == 0 and not is_double
    times = [
        _times(*given, is_rounded=is_rounded) for given in zip(sizes, counts, scales, strict=True)
    ]
    if None not in times:
        is_short = x.dtype in (torch.float16, torch.bfloat16)
        return otherwise(x, output_size, scale_factors) if is_short else _repeated(x, times)
    places: list[Tensor | None] = [None, None]
    for i, (size, count, scale) in enumerate(zip(sizes, counts, scales, strict=True)):
        place = (
            nearest_places(size, count, scale, offset)
            if is_image
            else _chosen_places(size, count, scale, offset, is_double=is_double)
        )
        places.append(place.reshape(-1, *[1] * (len(sizes) - 1 - i)))
    chosen = torch.ops.aten._unsafe_index(x, places)
    return chosen.contiguous(memory_format=suggest_memory_format(x))


def _repeated(x: Tensor, times: Sequence[Any]) -> Tensor:
    sizes = x.shape[2:]
    apart = [number for size in sizes for number in (size, 1)]
    made = [number for pair in zip(sizes, times, strict=True) for number in pair]
    result = [size * count for size, count in zip(sizes, times, strict=True)]
    outer = x.shape[:2]
    return x.reshape(*outer, *apart).expand(*outer, *made).reshape(*outer, *result)


def _times(size: Any, count: Any, scale: float | None, *, is_rounded: bool) -> int | None:
    """How often each element is repeated along a dimension; None for other factors. If the step of
    PyTorch is rounded to f32 and becomes less, the first repetition of some elements is that of the
    element before them."""
    if scale is None:
        is_known = isinstance(size, int) and isinstance(count, int) and size > 0
        if not is_known or count < size or count % size != 0:
            return None
        times = count // size
    elif scale >= 1 and scale == int(scale):
        times = int(scale)
    else:
        return None
    (step,) = struct.unpack("f", struct.pack("f", 1 / times))
    return times if not is_rounded or Fraction(step) * times >= 1 else None


def nearest_places(size: Any, count: Any, scale: float | None, offset: float) -> Tensor:
    """The index of the input element for each of `count` results: (i + `offset`) times the step,
    rounded down, as PyTorch has it for images and for gradients."""
    import torch

    number = torch.full((), size, dtype=torch.float32)
    step = 1 / scale if scale else number / torch.full((), count, dtype=torch.float32)
    return ((torch.arange(count).float() + offset) * step).long().clamp(max=size - 1)


def _chosen_places(
    size: Any, count: Any, scale: float | None, offset: float, *, is_double: bool
) -> Tensor:
    """The same for sequences and volumes. PyTorch's step is f32 or f64, `offset` is subtracted by a
    fused operation and added again, and the sum is rounded to f32 before it is rounded down."""
    import torch

    type_ = torch.float64 if is_double else torch.float32
    above, below = (1, scale) if scale else (size, count)
    step = torch.full((), above, dtype=torch.float64) / torch.full((), below, dtype=torch.float64)
    steps = (torch.arange(count).double() + offset) * step.to(type_).double() - offset
    places = steps.clamp(min=0).to(type_) + offset
    return places.float().long().clamp(max=size - 1)


def _linear_of_each(
    x: Tensor, output_size: Sequence[int], align_corners: bool, *scales: float | None
) -> Tensor:
    given = scales if any(scales) else None
    return _interpolated(_linear, _unknown_sizes, x, output_size, align_corners, given)


def _unknown_sizes(*_: Any) -> Any:
    return NotImplemented


def _interpolated(
    taps: Callable[[Tensor], tuple[Tensor, Sequence[Tensor]]],
    otherwise: Callable[..., Tensor],
    x: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scale_factors: Sequence[float | None] | None,
) -> Tensor:
    """Resizes one dimension after the other. PyTorch's decomposition gathers all neighbours of each
    result instead. Here, results that share a row interpolate it once, and then whole rows are
    added.

    `taps` takes fractional indices, and returns the first element that contributes to each result
    and the weights of the elements from there on. A single weight is that of the second of two
    elements. `otherwise` is PyTorch's decomposition, for sizes that are not known.
    """
    import torch
    from torch._prims_common import suggest_memory_format

    sizes = [*x.shape[2:], *(output_size or ())]
    is_known = all(isinstance(size, int) and size > 0 for size in sizes)
    is_of_bytes = x.dtype == torch.uint8 and x.dim() == 4
    if not (x.dtype.is_floating_point or is_of_bytes) or not is_known:
        return otherwise(x, output_size, align_corners, scale_factors)
    given: Sequence[float | None] = scale_factors or [None] * (x.dim() - 2)
    counts = output_size or [
        int(size * (scale or 1)) for size, scale in zip(x.shape[2:], given, strict=True)
    ]
    if is_of_bytes:
        of = LINEAR if taps is _linear else CUBIC
        return resize_bytes(x, counts, align_corners, given, of=of, antialias=False)
    type_ = torch.float64 if x.dtype == torch.float64 else torch.float32
    resized = x.to(type_)
    ratios = {dim: count / x.shape[dim] for dim, count in enumerate(counts, 2)}
    for dim in resize_order(ratios):
        size, count, scale = x.shape[dim], counts[dim - 2], given[dim - 2]
        places = torch.arange(count).to(type_)
        if align_corners:
            places = places * ((size - 1) / (count - 1) if count > 1 else 0)
        else:
            places = (places + 0.5) * (1 / scale if scale else size / count) - 0.5
        start, weights = taps(places)
        elements = [
            resized.index_select(dim, (start + number).clamp(0, size - 1))
            for number in range(max(2, len(weights)))
        ]
        resized = _combined(elements, [_beside(one, resized, dim) for one in weights])
    # Programs view the result under other shapes, which depends on its strides.
    return resized.to(x.dtype, memory_format=suggest_memory_format(x))


# The time of an element that is interpolated along the last dimension, where its neighbours are
# gathered, to that along others, which add whole rows.
_GATHERED = 8


def resize_order(ratios: dict[int, float]) -> list[int]:
    """The dimensions in the order in which they are resized. The one that is reduced most comes
    first. The last dimension is before or behind all others, whichever takes less time."""
    *others, last = sorted(ratios)
    others.sort(key=lambda dim: (ratios[dim], dim if ratios[dim] < 1 else -dim))
    # The times of both orders for an element of the image.
    ratio = math.prod(ratios[dim] for dim in others)
    behind = ratio + _GATHERED * ratio * ratios[last]
    before = _GATHERED * ratios[last] + ratio * ratios[last]
    return [*others, last] if behind < before else [last, *others]


def _combined(elements: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The weighted sum. A single weight is that of the second of two elements."""
    if len(weights) == 1:
        first, second = elements
        return first + (second - first) * weights[0]
    products = [element * weight for element, weight in zip(elements, weights, strict=True)]
    return functools.reduce(lambda left, right: left + right, products)


def _linear(places: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    places = places.clamp(min=0)
    start = places.long()
    return start, [(places - start).clamp(0, 1)]


def _cubic_of_four(places: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    """Keys' cubic kernel with a = -3/4, for four elements."""
    a = -0.75
    start = places.floor()
    t = (places - start).clamp(0, 1)

    def near(distance: Tensor) -> Tensor:
        return ((a + 2) * distance - (a + 3)) * distance * distance + 1

    def far(distance: Tensor) -> Tensor:
        return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a

    return start.long() - 1, [far(t + 1), near(t), near(1 - t), far(2 - t)]
