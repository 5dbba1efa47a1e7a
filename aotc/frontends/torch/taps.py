"""Convolutions without the taps that read nothing but padding.

With a dilation as large as the image, as in DeepLab's pyramid of small images, the taps beside the
middle one are outside of it at each place: a 3x3 filter is a 1x1 one then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Tensor = Any


def without_dead_taps(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """The convolution with the part of the filter that some place of the result needs;
    NotImplemented where that is all of it, or sizes are not known."""
    import torch  # type: ignore[import-not-found, unused-ignore]

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
    if list(weight.shape[2:]) == numbers[rank : 2 * rank]:
        return NotImplemented
    return torch.ops.aten.convolution.default(
        x, weight, bias, strides, pads, apart, False, [0] * rank, groups
    )


def _places(size: int, taps: int, stride: int, pad: int, apart: int) -> range:
    """Where the first tap is at each place of the result, from the padding's begin on."""
    end = size + 2 * pad - apart * (taps - 1)
    return range(0, max(end, 0), stride)
