"""Convolutions that skip products with padding, if most of their products are such.

With a dilation as large as the image, as in DeepLab's pyramid for small images, all taps but the
middle one are in the padding at every position: the 3x3 filter is a 1x1 filter. With a dilation
almost as large, they are inside the image at few positions. Then each tap becomes a convolution of
its own, of the part of the image that it reaches, and the result is their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

Tensor = Any
# The largest share of products with elements of the image for which the convolution is split into
# taps.
_MOST_LIVE = 0.6
# The same share along one dimension, which is then split into taps.
_MOST_LIVE_ALONG = 0.75
# The size in bytes of a float whose partial sums are as exact as those of one convolution.
_WIDE = 4


def without_dead_taps(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """The convolution with only the part of the filter that some position needs, or the sum of
    convolutions with single taps. Returns NotImplemented if neither is less work, or if sizes are
    not known."""
    import torch

    rank = x.dim() - 2
    numbers = [*x.shape[2:], *weight.shape[2:], *stride, *padding, *dilation]
    if rank < 1 or not all(isinstance(number, int) for number in numbers):
        return NotImplemented
    strides, pads, apart = (list(one) * (rank // len(one)) for one in (stride, padding, dilation))
    for axis in range(rank):
        size, taps = x.shape[2 + axis], weight.shape[2 + axis]
        places = _places(size, taps, strides[axis], pads[axis], apart[axis])
        live = [
            tap
            for tap in range(taps)
            if any(0 <= place + tap * apart[axis] - pads[axis] < size for place in places)
        ]
        if not live:
            continue
        first, count = live[0], live[-1] - live[0] + 1
        pad = pads[axis] - first * apart[axis]
        # The padding is the same on both sides.
        if pad >= 0 and places == _places(size, count, strides[axis], pad, apart[axis]):
            weight, pads[axis] = weight.narrow(2 + axis, first, count), pad
    # Narrow floats would be rounded after each tap; one convolution rounds once.
    is_rounded = x.is_floating_point() and x.dtype.itemsize < _WIDE
    # Without a dilation, the image has only two rows or columns, and one kernel is faster than
    # several.
    if max(apart) > 1 and groups == 1 and not x.is_complex() and not is_rounded:
        found = _by_taps(x, weight, bias, strides, pads, apart)
        if found is not NotImplemented:
            return found
    if list(weight.shape[2:]) == numbers[rank : 2 * rank]:
        return NotImplemented
    return torch.ops.aten.convolution.default(
        x, weight, bias, strides, pads, apart, False, [0] * rank, groups
    )


def _places(size: int, taps: int, stride: int, pad: int, apart: int) -> range:
    """The position of the first tap for each result, counted from the start of the padding."""
    end = size + 2 * pad - apart * (taps - 1)
    return range(0, max(end, 0), stride)


def _by_taps(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    pads: Sequence[int],
    apart: Sequence[int],
) -> Any:
    """The sum of convolutions with single taps, each over the positions where its tap is inside the
    image. Returns NotImplemented if most taps are inside at most positions, in total or along each
    dimension."""
    import torch

    rank = x.dim() - 2
    counts: list[int] = []
    # For each dimension and tap, the range of positions at which the tap is inside the image.
    inside: list[list[tuple[int, int]]] = []
    for axis in range(rank):
        size, taps = x.shape[2 + axis], weight.shape[2 + axis]
        counts.append(len(_places(size, taps, strides[axis], pads[axis], apart[axis])))
        reached = [tap * apart[axis] - pads[axis] for tap in range(taps)]
        inside.append(
            [
                (
                    min(max(0, -(first // strides[axis])), counts[axis]),
                    max(0, min(counts[axis], (size - 1 - first) // strides[axis] + 1)),
                )
                for first in reached
            ]
        )
    if 0 in counts:
        return NotImplemented
    live = [
        sum(max(stop - start, 0) for start, stop in own) / (len(own) * count)
        for own, count in zip(inside, counts, strict=True)
    ]
    if prod(live) > _MOST_LIVE or min(live) > _MOST_LIVE_ALONG:
        return NotImplemented
    # The taps along each dimension to split into: single taps, or None for all taps together.
    choices: list[list[int | None]] = [
        [tap for tap, (start, stop) in enumerate(own) if start < stop]
        if share <= _MOST_LIVE_ALONG
        else [None]
        for own, share in zip(inside, live, strict=True)
    ]
    total = None
    for taps_of_part in product(*choices):
        read, filter_, own_pads, around = x, weight, list(pads), []
        for axis, tap in enumerate(taps_of_part):
            if tap is None:
                around.append((0, 0))
                continue
            start, stop = inside[axis][tap]
            first = start * strides[axis] + tap * apart[axis] - pads[axis]
            read = read.narrow(2 + axis, first, (stop - start - 1) * strides[axis] + 1)
            filter_, own_pads[axis] = filter_.narrow(2 + axis, tap, 1), 0
            around.append((start, counts[axis] - stop))
        made = torch.ops.aten.convolution.default(
            read, filter_, None, strides, own_pads, apart, False, [0] * rank, 1
        )
        if any(sum(both) for both in around):
            before_and_after = [number for both in reversed(around) for number in both]
            made = torch.ops.aten.constant_pad_nd.default(made, before_and_after, 0)
        total = made if total is None else total + made
    if total is None:
        return NotImplemented
    return total if bias is None else total + bias.reshape([-1] + [1] * rank)
