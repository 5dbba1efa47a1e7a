"""Transposed convolutions with a stride → one convolution for all phases of the result.

With a stride of s, every s-th place of the result depends on every s-th tap alone. So it is a
convolution with s times as many channels along each dimension, and an s-th of the taps, whose
results are interleaved, and cut by the padding. As a convolution of an input with zeros in between,
as torch-mlir has it, all taps are multiplied at each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Tensor = Any


def transposed_decompositions(aten: Any) -> dict[Any, Any]:
    return {aten.convolution.default: _convolution}


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]

    rank = x.dim() - 2
    numbers = [*stride, *padding, *dilation, *output_padding]
    if (
        not transposed
        or rank < 1
        or (max(stride) == 1 and not any(_is_one(size) for size in x.shape[2:]))
        or max(dilation) > 1
        or x.is_complex()
        or not all(isinstance(number, int) for number in (*numbers, *weight.shape))
    ):
        return NotImplemented
    strides, pads, more = (_each(one, rank) for one in (stride, padding, output_padding))
    taps = list(weight.shape[2:])
    # With one place, no two taps meet, whatever the stride is: each is a phase.
    strides = [
        max(k, 1) if _is_one(size) else s
        for k, size, s in zip(taps, x.shape[2:], strides, strict=True)
    ]
    # Of each phase; behind the last tap there are zeros.
    own = [
        -(-(k + max(0, m - p)) // s) for k, m, p, s in zip(taps, more, pads, strides, strict=True)
    ]
    kernel = _kernel(weight, strides, own, groups)
    ones = [1] * rank
    less = [count - 1 for count in own]
    made = torch.ops.aten.convolution.default(
        x, kernel, None, ones, less, ones, False, [0] * rank, groups
    )
    whole = _interleaved(made, strides, groups)
    for axis in range(rank):
        length = (x.shape[2 + axis] - 1) * strides[axis]
        length = length + taps[axis] + more[axis] - 2 * pads[axis]
        whole = whole.narrow(2 + axis, pads[axis], length)
    return whole if bias is None else whole + bias.reshape([-1] + [1] * rank)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _each(numbers: Sequence[int], rank: int) -> list[int]:
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def _kernel(weight: Tensor, strides: list[int], own: list[int], groups: int) -> Tensor:
    """[inputs, outputs of a group, taps ...] → [groups x phases x outputs, inputs of a group, taps
    of a phase, the last one first, ...]."""
    import torch

    rank = len(strides)
    inputs, each, *taps = weight.shape
    ends = [s * count - k for s, count, k in zip(strides, own, taps, strict=True)]
    if any(ends):
        weight = torch.constant_pad_nd(weight, [pad for end in reversed(ends) for pad in (0, end)])
    parted = weight.reshape(
        [groups, inputs // groups, each]
        + [number for pair in zip(own, strides, strict=True) for number in pair]
    )
    phases, counts = range(4, 3 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    kernel = parted.permute([0, *phases, 2, 1, *counts])
    channels = groups * each
    for s in strides:
        channels *= s
    return kernel.reshape([channels, inputs // groups, *own]).flip(list(range(2, 2 + rank)))


def _interleaved(made: Tensor, strides: list[int], groups: int) -> Tensor:
    """[batch, groups x phases x outputs, places ...] → [batch, groups x outputs, places x phases
    ...]."""
    rank = len(strides)
    batch, channels, *places = made.shape
    each = channels // groups
    for s in strides:
        each //= s
    parted = made.reshape([batch, groups, *strides, each, *places])
    order = [0, 1, 2 + rank]
    for axis in range(rank):
        order += [3 + rank + axis, 2 + axis]
    sizes = [size * s for size, s in zip(places, strides, strict=True)]
    return parted.permute(order).reshape([batch, groups * each, *sizes])
