"""Decomposes padding into slices: that by negative amounts, because torch-mlir does not support
negative amounts, and that by copies of the edges, for which PyTorch gathers each element by its
index, a dimension at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

Tensor = Any


def pad_decompositions(aten: Any, known: dict[Any, Any]) -> dict[Any, Any]:
    """`known` has PyTorch's decompositions, which pad by amounts that are computed or negative."""
    made = {aten.constant_pad_nd.default: _pad}
    for kind, edges in (("reflection", _mirrored), ("replication", _repeated)):
        for rank in (1, 2, 3):
            operator = getattr(aten, f"{kind}_pad{rank}d").default
            made[operator] = functools.partial(_pad_by_edges, edges, known[operator])
    return made


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


def _pad_by_edges(
    edges: Callable[[Tensor, int, int, int], tuple[Tensor, Tensor]],
    pads_otherwise: Callable[[Tensor, Sequence[Any]], Tensor],
    x: Tensor,
    padding: Sequence[Any],
) -> Tensor:
    """Pads each dimension by `edges` of the tensor, a dimension, and the amounts, if all amounts
    are known and not negative."""
    import torch

    if not all(isinstance(pad, int) and pad >= 0 for pad in padding):
        return pads_otherwise(x, padding)
    for number, amounts in enumerate(zip(padding[::2], padding[1::2], strict=True), start=1):
        if any(amounts):
            before, behind = edges(x, -number, *amounts)
            parts = zip((amounts[0], 1, amounts[1]), (before, x, behind), strict=True)
            x = torch.cat([part for amount, part in parts if amount > 0], -number)
    return x


def _mirrored(x: Tensor, dimension: int, before: int, behind: int) -> tuple[Tensor, Tensor]:
    first = x.narrow(dimension, 1, before)
    last = x.narrow(dimension, x.shape[dimension] - 1 - behind, behind)
    return first.flip(dimension), last.flip(dimension)


def _repeated(x: Tensor, dimension: int, before: int, behind: int) -> tuple[Tensor, Tensor]:
    sizes = [-1] * x.dim()
    sizes[dimension] = before
    first = x.narrow(dimension, 0, 1).expand(sizes)
    sizes[dimension] = behind
    return first, x.narrow(dimension, x.shape[dimension] - 1, 1).expand(sizes)
