"""Decomposes padding by negative amounts into slices, because torch-mlir does not support negative
amounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Tensor = Any


def pad_decompositions(aten: Any) -> dict[Any, Any]:
    return {aten.constant_pad_nd.default: _pad}


def _pad(x: Tensor, pads: Sequence[Any], value: float = 0) -> Tensor:
    """Returns NotImplemented unless some amount is known to be negative. `pads` has the amounts
    before and after the last dimension, then those of the dimension before it, and so on."""
    import torch

    if not any(isinstance(pad, int) and pad < 0 for pad in pads):
        return NotImplemented
    kept = x
    for number, (before, behind) in enumerate(zip(pads[::2], pads[1::2], strict=True), start=1):
        first, lost = (max(0, -pad) if isinstance(pad, int) else 0 for pad in (before, behind))
        if first or lost:
            kept = kept.narrow(-number, first, x.shape[-number] - first - lost)
    rest = [max(0, pad) if isinstance(pad, int) else pad for pad in pads]
    is_padded = any(not isinstance(pad, int) or pad > 0 for pad in rest)
    return torch.constant_pad_nd(kept, rest, value) if is_padded else kept.clone()
