"""Lowers `fold` (col2im), which adds up overlapping windows, without a scatter.

PyTorch's own decomposition adds windows to the image by `index_put`, with an index of 64 bits for
each element. Here, each element of the image adds up the elements of the windows that contain it.
With a stride of s, tap i of window l is at position s * l + i. With i = s * a + r, this is place
l + a of phase r: a phase is the sum of its taps, each of which is shifted by a, and the phases are
interleaved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

Tensor = Any
# The most images that are added up.
_MOST_SHIFTS = 16
# The size in bytes of a float whose partial sums are not rounded further.
_WIDE = 4


def fold_decompositions(aten: Any, table: dict[Any, Any]) -> dict[Any, Any]:
    """`table`: decompositions by operator; its own remains for images whose size is not known, and
    for windows that overlap many others."""
    other = table[aten.col2im.default]

    def fold(x: Tensor, *sizes: Sequence[int]) -> Tensor:
        is_known = all(isinstance(number, int) for numbers in sizes for number in numbers)
        _, kernel, dilation, _, stride = sizes
        if not is_known or math.prod(_shifts(kernel, dilation, stride)) > _MOST_SHIFTS:
            return other(x, *sizes)
        return _fold(x, *sizes)

    return {aten.col2im.default: fold}


def _shifts(
    kernel_size: Sequence[int], dilation: Sequence[int], stride: Sequence[int]
) -> list[int]:
    """The number of shifts along each dimension."""
    return [
        -(-taps * apart // step)
        for taps, apart, step in zip(kernel_size, dilation, stride, strict=True)
    ]


def _fold(
    x: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    import torch

    if x.dim() == 2:
        whole = _fold(x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride)
        return whole.squeeze(0)
    batch, rows, _ = x.shape
    channels = rows // math.prod(kernel_size)
    counts = [
        (size + 2 * pad - apart * (taps - 1) - 1) // step + 1
        for size, pad, apart, taps, step in zip(
            output_size, padding, dilation, kernel_size, stride, strict=True
        )
    ]
    # Zeros between dilated taps are taps, too.
    windows = x.reshape(batch, channels, kernel_size[0], 1, kernel_size[1], 1, *counts)
    if max(dilation) > 1:
        between = (0, dilation[1] - 1, 0, 0, 0, dilation[0] - 1)
        windows = torch.nn.functional.pad(windows, (0, 0, 0, 0, *between))
    all_taps = [taps * apart for taps, apart in zip(kernel_size, dilation, strict=True)]
    windows = windows.reshape(batch, channels, *all_taps, *counts)
    # The taps along each dimension as shifts and phases; there are zeros behind the last one.
    shifts = _shifts(kernel_size, dilation, stride)
    missing = [
        shift * step - taps for shift, step, taps in zip(shifts, stride, all_taps, strict=True)
    ]
    if any(missing):
        windows = torch.nn.functional.pad(windows, (0, 0, 0, 0, 0, missing[1], 0, missing[0]))
    windows = windows.reshape(batch, channels, shifts[0], stride[0], shifts[1], stride[1], *counts)
    # The places of a phase that are in the image or in the padding in front of it.
    places = [
        max(-(-(pad + size) // step), count + shift - 1)
        for pad, size, step, count, shift in zip(
            padding, output_size, stride, counts, shifts, strict=True
        )
    ]
    is_narrow = x.is_floating_point() and x.element_size() < _WIDE
    total: Any = None
    for down, along in product(*map(range, shifts)):
        tap = windows[:, :, down, :, along]
        tap = tap.float() if is_narrow else tap
        ends = [places[i] - counts[i] - shift for i, shift in enumerate((down, along))]
        moved = torch.nn.functional.pad(tap, (along, ends[1], down, ends[0]))
        total = moved if total is None else total + moved
    image = total.permute(0, 1, 4, 2, 5, 3).reshape(
        batch, channels, places[0] * stride[0], places[1] * stride[1]
    )
    for axis, (pad, size) in enumerate(zip(padding, output_size, strict=True)):
        image = image.narrow(2 + axis, pad, size)
    return image.to(x.dtype)
