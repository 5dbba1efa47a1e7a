"""Transposed convolutions → a convolution for each phase of the result.

With a stride of s, every s-th place of the result, from r on, depends on every s-th tap alone. As
one convolution of an input with zeros in between, as torch-mlir has it, all taps are multiplied.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

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
    rank = x.dim() - 2
    numbers = [*stride, *padding, *dilation, *output_padding]
    if (
        not transposed
        or rank < 1
        or max(stride) == 1
        or max(dilation) > 1
        or x.is_complex()
        or not all(isinstance(number, int) for number in (*numbers, *weight.shape))
    ):
        return NotImplemented
    given = zip(*(_each(one, rank) for one in (stride, padding, output_padding)), strict=True)
    axes = [
        _Axis(size=x.shape[2 + i], taps=weight.shape[2 + i], stride=s, padding=p, more=o)
        for i, (s, p, o) in enumerate(given)
    ]
    if any(axis.places <= 0 for axis in axes):
        return NotImplemented
    inputs, each = weight.shape[:2]
    kernel = weight.reshape(groups, inputs // groups, each, *weight.shape[2:]).transpose(1, 2)
    kernel = kernel.reshape(groups * each, inputs // groups, *weight.shape[2:])
    phases = [
        _phase(x, kernel, axes, remainders, groups)
        for remainders in itertools.product(*(range(axis.stride) for axis in axes))
    ]
    return _joined(phases, axes, bias)


class _Axis(Struct, frozen=True):
    """A spatial dimension: its size, how many taps the weight has along it, and the arguments."""

    size: Any
    taps: int
    stride: int
    padding: int
    more: int

    @property
    def _own(self) -> int:
        """The size of the result, less `stride` for each place of the input but the last."""
        return self.taps - 2 * self.padding + self.more

    @property
    def places(self) -> int:
        """How many more places a phase has than the input, and one."""
        return -(-self._own // self.stride)

    @property
    def excess(self) -> int:
        """How much longer all phases together are than the result."""
        return self.places * self.stride - self._own

    def window(self, remainder: int) -> tuple[list[int], int, int]:
        """The taps of the phase, the last one first; how many zeros are in front of its input, and
        behind it: fewer than none where the input is cut."""
        first, tap = divmod(remainder + self.padding, self.stride)
        taps = list(range(tap, self.taps, self.stride))
        return taps[::-1], len(taps) - 1 - first, self.places - 1 + first


def _each(numbers: Sequence[int], rank: int) -> list[int]:
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def _phase(
    x: Tensor, kernel: Tensor, axes: Sequence[_Axis], remainders: Sequence[int], groups: int
) -> Tensor:
    """The places whose distance from the first one has these remainders."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    pads: list[int] = []
    shape = [x.shape[0], kernel.shape[0]]
    for dimension, (axis, remainder) in enumerate(zip(axes, remainders, strict=True)):
        taps, before, behind = axis.window(remainder)
        taken = [kernel.narrow(2 + dimension, tap, 1) for tap in taps]
        kernel = torch.cat(taken, 2 + dimension) if taken else kernel.narrow(2 + dimension, 0, 0)
        pads = [before, behind, *pads]
        shape.append(axis.size - 1 + axis.places)
    if kernel.numel() == 0:
        return x.new_zeros(shape)
    padded = torch.constant_pad_nd(x, pads) if any(pads) else x
    ones, zeros = [1] * len(axes), [0] * len(axes)
    return torch.ops.aten.convolution.default(
        padded, kernel, None, ones, zeros, ones, False, zeros, groups
    )


def _joined(phases: Sequence[Tensor], axes: Sequence[_Axis], bias: Tensor | None) -> Tensor:
    """The places of all phases in their order."""
    import torch

    rank = len(axes)
    strides = [axis.stride for axis in axes]
    batch, channels, *sizes = phases[0].shape
    # [phases, batch, channels, places ...] → [batch, channels, places, stride, places, stride ...]
    stacked = torch.stack(list(phases)).reshape([*strides, batch, channels, *sizes])
    order = [rank, rank + 1]
    for i in range(rank):
        order += [rank + 2 + i, i]
    whole = stacked.permute(order).reshape(
        [batch, channels, *(size * stride for size, stride in zip(sizes, strides, strict=True))]
    )
    for dimension, axis in enumerate(axes):
        if axis.excess:
            length = whole.shape[2 + dimension] - axis.excess
            whole = whole.narrow(2 + dimension, 0, length)
    return whole if bias is None else whole + bias.reshape([-1] + [1] * rank)
