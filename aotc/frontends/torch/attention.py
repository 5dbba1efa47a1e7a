"""Decomposes attention into matmuls and softmax, in a form that has kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Tensor = Any


def attention_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
        aten.scaled_dot_product_attention.default: _attention_of_any_batch,
    }


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns (output, weights). The output has the strides of the operator's result, because
    programs view it under other shapes: its dimensions are in the order of the query's strides.
    PyTorch's own decomposition always puts the batch after the sequence."""
    import torch

    output, weights = torch.ops.aten._scaled_dot_product_attention_math.default(
        query,
        key,
        value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    order = _order_of(query.stride())
    back = [order.index(dim) for dim in range(4)]
    return output.permute(order).contiguous().permute(back), weights


def _attention_of_any_batch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *args: Any,
    **named: Any,
) -> Tensor:
    """Attention whose batch has more than two dimensions is one of two: all but the last of them
    are merged. The kernels have two."""
    import torch

    # PyTorch's own decomposition, and not this one again.
    attention = functools.partial(
        torch.ops.aten.scaled_dot_product_attention.default._op_dk,
        torch._C.DispatchKey.CompositeImplicitAutograd,
    )
    outer = query.shape[:-3]
    tensors = [query, key, value]
    if query.dim() < 5 or any(one.shape[:-3] != outer for one in tensors):
        return attention(query, key, value, attn_mask, *args, **named)
    if attn_mask is not None and attn_mask.dim() > 3:
        attn_mask = attn_mask.expand(*outer, *attn_mask.shape[-3:]).flatten(0, -4)
    if attn_mask is not None and attn_mask.dim() < 2:
        attn_mask = attn_mask.unsqueeze(0)
    merged = [one.flatten(0, -4) for one in tensors]
    found = attention(*merged, attn_mask, *args, **named)
    return found.unflatten(0, outer)


def _order_of(strides: Sequence[Any]) -> tuple[int, ...]:
    """The dimensions of an attention's query, each of which is known to have at least the stride of
    the next one. If no order is known, the heads come after the sequence: (0, 2, 1, 3)."""
    from torch.fx.experimental.symbolic_shapes import (
        statically_known_true,
    )

    for order in ((0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)):
        if all(statically_known_true(strides[a] >= strides[b]) for a, b in pairwise(order)):
            return order
    return (0, 2, 1, 3)
