"""PyTorch's bags of embeddings: sums, means and maxima of the rows of a table."""

from __future__ import annotations

from typing import Any

Tensor = Any

_SUM, _MEAN, _MAX = 0, 1, 2  # PyTorch's numbers


def bag_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten._embedding_bag.default: _embedding_bag,
        aten._embedding_bag_forward_only.default: _embedding_bag,
    }


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bag i has the indices from offset i on to the next one. Of no index, the result is 0.

    The other results are for gradients: the bag of each index, how many each has, and nothing of
    use.
    """
    import torch  # type: ignore[import-not-found, unused-ignore]

    del scale_grad_by_freq, sparse
    count = offsets.shape[0] - 1 if include_last_offset else offsets.shape[0]
    offsets = offsets[:count]
    positions = torch.arange(indices.shape[0], dtype=offsets.dtype)
    bags = (offsets.unsqueeze(0) <= positions.unsqueeze(1)).sum(1) - 1
    rows = weight.index_select(0, indices)
    is_there = indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices) != 0
    width = weight.shape[1]
    sizes = torch.zeros(count, dtype=torch.int64).index_add(0, bags, is_there.long())
    wide = rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows
    if per_sample_weights is not None:
        wide = wide * per_sample_weights.to(wide.dtype).unsqueeze(1)
    if mode == _MAX:
        start = wide.new_full((count, width), float("-inf"))
        wide = torch.where(is_there.unsqueeze(1), wide, float("-inf"))
        places = bags.unsqueeze(1).expand(-1, width)
        found = start.scatter_reduce(0, places, wide, "amax", include_self=True)
        found = torch.where(sizes.unsqueeze(1) == 0, 0.0, found)
    else:
        wide = torch.where(is_there.unsqueeze(1), wide, 0.0)
        found = wide.new_zeros((count, width)).index_add(0, bags, wide)
        if mode == _MEAN:
            found = found / sizes.clamp(min=1).unsqueeze(1)
    return found.to(weight.dtype), bags, sizes, torch.zeros_like(sizes)
