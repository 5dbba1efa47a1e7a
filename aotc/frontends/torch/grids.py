"""`torch.nn.functional.grid_sample` of images and of volumes. PyTorch's decomposition of it, which
has no volumes, leaves indices that are not known to be in bounds."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

Tensor = Any

# PyTorch's enumerators of the interpolation mode, and of the padding mode.
_LINEAR, _NEAREST = 0, 1
_BORDER, _REFLECTION = 1, 2


def grid_decompositions(aten: Any, known: dict[Any, Any]) -> dict[Any, Any]:
    """`known` has PyTorch's decompositions, which sample images cubically."""
    images = aten.grid_sampler_2d.default

    def sample_images(x: Tensor, grid: Tensor, mode: int, *options: Any) -> Any:
        sample = _sample if mode in (_LINEAR, _NEAREST) else known[images]
        return sample(x, grid, mode, *options)

    return {images: sample_images, aten.grid_sampler_3d.default: _sample}


def _sample(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Any:
    """Each grid point has two or three coordinates from -1 to 1. The first is along the last
    dimension of `x`."""
    sizes = x.shape[2:]
    places = []
    for dim, size in enumerate(sizes):
        place = _place(grid[..., -1 - dim], size, align_corners)
        # What PyTorch's kernels for images and volumes make of NaN.
        nowhere = 0 if len(sizes) == 2 else size - 1
        places.append(_padded(place, size, padding, align_corners, nowhere))
    if mode == _NEAREST:
        return _taken(x, [place.round() for place in places], 1)
    if mode != _LINEAR:
        return NotImplemented
    floors = [place.floor() for place in places]
    shares = [place - floor for place, floor in zip(places, floors, strict=True)]
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weight: Any = 1
        for upper, share in zip(corner, shares, strict=True):
            weight = weight * (share if upper else 1 - share)
        at = [one + upper for one, upper in zip(floors, corner, strict=True)]
        total = total + _taken(x, at, weight.unsqueeze(1))
    return total


def _place(number: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Converts a coordinate to an index. -1 and 1 are the centers of the first and last element if
    `align_corners`, and otherwise their outer edges."""
    if align_corners:
        return (number + 1) / 2 * (size - 1)
    return ((number + 1) * size - 1) / 2


def _padded(place: Tensor, size: Any, padding: int, align_corners: bool, nowhere: Any) -> Tensor:
    """Moves an index into the volume according to `padding`. NaN becomes `nowhere`."""
    import torch

    if padding == _REFLECTION:
        first, span = (0.0, size - 1) if align_corners else (-0.5, size)
        place = _reflected(place, first, span) if span != 0 else place * 0
    if padding in (_BORDER, _REFLECTION):
        inside = place.clamp(min=0).clamp(max=size - 1)
        place = torch.where(place.isnan(), nowhere, inside)
    return place


def _reflected(place: Tensor, first: float, span: Any) -> Tensor:
    """Reflects at `first` and at `first + span`, as often as necessary."""
    import torch

    distance = (place - first).abs()
    turns = (distance / span).floor()
    rest = distance - turns * span
    return torch.where(turns.remainder(2) == 0, rest, span - rest) + first


def _taken(x: Tensor, places: Sequence[Tensor], weight: Any) -> Tensor:
    """The elements of `x` at integral indices, times `weight`, and zeros outside the volume,
    because the weights of infinite or NaN indices are NaN."""
    import torch

    sizes = x.shape[2:]
    is_inside = functools.reduce(
        operator.and_,
        [(place >= 0) & (place < size) for place, size in zip(places, sizes, strict=True)],
    )
    number: Any = 0
    for place, size in zip(places, sizes, strict=True):
        # The bounds, which hold, spare a check of each index.
        index = torch.where(is_inside, place, 0).to(torch.int64).clamp(0, size - 1)
        number = number * size + index
    count, channels = x.shape[:2]
    chosen = number.reshape(count, 1, -1).expand(count, channels, math.prod(number.shape[1:]))
    values = x.flatten(2).gather(2, chosen).reshape(count, channels, *number.shape[1:])
    return torch.where(is_inside.unsqueeze(1), values * weight, 0)
