"""Lowers transposed convolutions with a stride to one convolution for all phases of the result.

With a stride of s, every s-th element of the result depends only on every s-th tap. So the result
is a convolution with s times as many channels along each dimension and 1/s of the taps; its phases
are interleaved, and the padding is cut off. torch-mlir's lowering, a convolution of an input with
zeros inserted, multiplies all taps at each position instead. If many elements would be cut off,
each phase is a group of a grouped convolution, with its own part of the input. A transposed
convolution of a single position is a matmul.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aotc.frontends.torch.taps import without_dead_taps

Tensor = Any
# The most elements that one convolution may compute for each element of the result.
_MOST_COMPUTED = 1.1


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
    import torch

    if not transposed:
        if weight.dim() == 5 and groups > 1 and weight.shape[1] == 1:
            return _by_depth(x, weight, bias, stride, padding, dilation, groups)
        return without_dead_taps(x, weight, bias, stride, padding, dilation, groups)
    rank = x.dim() - 2
    numbers = [*stride, *padding, *dilation, *output_padding]
    if (
        rank < 1
        or x.is_complex()
        or not all(isinstance(number, int) for number in (*numbers, *weight.shape))
    ):
        return NotImplemented
    if groups > 1 and max(stride) > 1 and max(dilation) > 1:
        weight, dilation = _spread(weight, _each(dilation, rank)), [1] * rank
    if groups > 1 and max(stride) == 1 and not any(output_padding):
        return _of_stride_one(x, weight, bias, _each(padding, rank), _each(dilation, rank), groups)
    if (max(stride) == 1 and not any(_is_one(size) for size in x.shape[2:])) or max(dilation) > 1:
        return NotImplemented
    strides, pads, more = (_each(one, rank) for one in (stride, padding, output_padding))
    taps = list(weight.shape[2:])
    # A matrix-vector product would read rows along the inputs, for which the phases below have the
    # layout.
    is_vector = _is_one(x.shape[0])
    if groups == 1 and not (any(more) or is_vector) and all(map(_is_one, x.shape[2:])):
        whole = _of_one_place(x, weight, pads)
        return whole if bias is None else whole + bias.reshape([-1] + [1] * rank)
    # With a single position no two taps contribute to one element, whatever the stride: each tap is
    # a phase.
    strides = [
        max(k, 1) if _is_one(size) else s
        for k, size, s in zip(taps, x.shape[2:], strides, strict=True)
    ]
    # The number of taps of each phase. After the last tap there are zeros.
    own = [
        -(-(k + max(0, m - p)) // s) for k, m, p, s in zip(taps, more, pads, strides, strict=True)
    ]
    kernel = _kernel(weight, strides, own, groups)
    lengths = [
        (size - 1) * s + k + m - 2 * p
        for size, s, k, m, p in zip(x.shape[2:], strides, taps, more, pads, strict=True)
    ]
    if groups == 1 and _are_phases_worth_it(list(x.shape[2:]), own, strides, lengths):
        whole = _by_phases(x, kernel, strides, own, pads, lengths)
        return whole if bias is None else whole + bias.reshape([-1] + [1] * rank)
    ones = [1] * rank
    less = [count - 1 for count in own]
    made = torch.ops.aten.convolution.default(
        x, kernel, None, ones, less, ones, False, [0] * rank, groups
    )
    whole = _interleaved(made, strides, groups)
    for axis in range(rank):
        # Sizes that are not known do not show that a slice has all elements.
        if pads[axis] or own[axis] * strides[axis] != taps[axis] + more[axis]:
            whole = whole.narrow(2 + axis, pads[axis], lengths[axis])
    return whole if bias is None else whole + bias.reshape([-1] + [1] * rank)


def _of_stride_one(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    pads: list[int],
    apart: list[int],
    groups: int,
) -> Any:
    """A convolution with the taps reversed. torch-mlir does not lower a transposed convolution with
    one channel per group. Returns NotImplemented if elements at the border would have to be cut
    off."""
    import torch

    rank, taps = len(pads), list(weight.shape[2:])
    added = [d * (k - 1) - p for d, k, p in zip(apart, taps, pads, strict=True)]
    if min(added) < 0:
        return NotImplemented
    ones = [1] * rank
    kernel = _kernel(weight, ones, taps, groups)
    return torch.ops.aten.convolution.default(
        x, kernel, bias, ones, added, apart, False, [0] * rank, groups
    )


def _spread(weight: Tensor, apart: list[int]) -> Tensor:
    """The weight of an equal convolution without dilation: there are zeros between the taps."""
    import torch

    for dim, d in enumerate(apart, 2):
        behind = [0, 0] * (weight.dim() - dim - 1) + [0, d - 1]
        wide = torch.constant_pad_nd(weight.unsqueeze(dim + 1), behind).flatten(dim, dim + 1)
        weight = wide.narrow(dim, 0, d * (weight.shape[dim] - 1) + 1)
    return weight


def _of_one_place(x: Tensor, weight: Tensor, pads: list[int]) -> Tensor:
    """The transposed convolution of a single position, as a matmul. Its columns are in the order of
    the weight's channels and taps."""
    batch, inputs = x.shape[:2]
    made = x.reshape([batch, inputs]).mm(weight.reshape([inputs, -1]))
    whole = made.reshape([batch, *weight.shape[1:]])
    for axis, pad in enumerate(pads):
        whole = whole.narrow(2 + axis, pad, weight.shape[2 + axis] - 2 * pad)
    return whole


def _by_depth(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """A depthwise 3-D convolution as the sum over the depth taps of 2-D convolutions. torch-mlir
    lowers depthwise convolutions only in 2-D."""
    import torch

    strides, pads, apart = (_each(one, 3) for one in (stride, padding, dilation))
    # Sums in narrow floats would be rounded after each tap.
    kind = torch.float32 if x.dtype.itemsize < torch.float32.itemsize else x.dtype
    weight = weight.to(kind)
    padded = torch.nn.functional.pad(x.to(kind), (0, 0, 0, 0, pads[0], pads[0]))
    taps = weight.shape[2]
    count = (padded.shape[2] - apart[0] * (taps - 1) - 1) // strides[0] + 1
    found: Any = None
    for tap in range(taps):
        first = tap * apart[0]
        reached = padded[:, :, first : first + (count - 1) * strides[0] + 1 : strides[0]]
        images = reached.transpose(1, 2).flatten(0, 1)
        made = torch.nn.functional.conv2d(
            images, weight[:, :, tap], None, strides[1:], pads[1:], apart[1:], groups
        )
        found = made if found is None else found + made
    volumes = found.unflatten(0, (x.shape[0], count)).transpose(1, 2).to(x.dtype)
    return volumes if bias is None else volumes + bias.reshape(-1, 1, 1, 1)


def _are_phases_worth_it(
    places: list[Any], own: list[int], strides: list[int], lengths: list[Any]
) -> bool:
    """Whether one convolution would compute many elements that are cut off, as for small images,
    and all phases have the same number of elements."""
    if not all(isinstance(number, int) for number in (*places, *lengths)):
        return False
    if any(length <= 0 or length % s for length, s in zip(lengths, strides, strict=True)):
        return False
    computed = math.prod(size + count - 1 for size, count in zip(places, own, strict=True))
    needed = math.prod(length // s for length, s in zip(lengths, strides, strict=True))
    return bool(math.prod(places) > 1 and computed > _MOST_COMPUTED * needed)


def _by_phases(
    x: Tensor,
    kernel: Tensor,
    strides: list[int],
    own: list[int],
    pads: list[int],
    lengths: list[int],
) -> Tensor:
    """The result without bias, as a grouped convolution. Each group is a phase, and reads the part
    of the input that it needs."""
    import torch

    rank = len(strides)
    phases = kernel.reshape([*strides, -1, *kernel.shape[1:]])
    padded = torch.constant_pad_nd(x, [own[a] - 1 for a in reversed(range(rank)) for _ in "01"])
    parts = [padded]
    for axis, (s, pad, length) in enumerate(zip(strides, pads, lengths, strict=True)):
        # Element i of the result is number `(i + pad) // s` of the phase `(i + pad) % s`.
        first = pad % s
        phases = _rolled(phases, axis, first)
        size = length // s + own[axis] - 1
        starts = [(i + pad) // s for i in range(s)]
        parts = [part.narrow(2 + axis, start, size) for part in parts for start in starts]
    groups = len(parts)
    made = torch.ops.aten.convolution.default(
        torch.cat(parts, 1),
        phases.reshape(kernel.shape),
        None,
        [1] * rank,
        [0] * rank,
        [1] * rank,
        False,
        [0] * rank,
        groups,
    )
    return _interleaved(made, strides, 1)


def _rolled(phases: Tensor, axis: int, first: int) -> Tensor:
    """The phases, rotated so that `first` is the first one. Two phases are flipped, which is folded
    at build time."""
    import torch

    count = phases.shape[axis]
    if first == 0 or count == 2:
        return phases.flip([axis]) if first else phases
    return torch.cat(
        [phases.narrow(axis, first, count - first), phases.narrow(axis, 0, first)], axis
    )


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _each(numbers: Sequence[int], rank: int) -> list[int]:
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


def _kernel(weight: Tensor, strides: list[int], own: list[int], groups: int) -> Tensor:
    """[inputs, outputs of a group, taps ...] → [groups x phases x outputs, inputs of a group,
    reversed taps of a phase ...]."""
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
