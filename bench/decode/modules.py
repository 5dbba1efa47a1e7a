"""The modules that are measured, of Llama 3 8B's sizes: also there where aotc is not."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

torch = importlib.import_module("torch")

GROUP = 128
HEADS, KV_HEADS, COLUMNS = 32, 8, 128
# Outputs and inputs of a layer's products, and those of the words.
PRODUCTS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096))
QUANTIZED = ((4096, 4096), (28672, 4096), (4096, 14336))
# Vectors that one product has.
FEW = (28672, 4096, 8)
TOKENS = (1024, 4096, 32768)


class Dense(torch.nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def forward(self, x: Any, w: Any) -> Any:
        return torch.nn.functional.linear(x, w)


class Int8(torch.nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def forward(self, x: Any, w: Any, scale: Any) -> Any:
        groups = w.view(w.shape[0], -1, GROUP).to(x.dtype) * scale
        return torch.nn.functional.linear(x, groups.view(w.shape))


class Int4(torch.nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    """Two weights in a byte, the first one in its low half."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shifts", torch.tensor([0, 4], dtype=torch.uint8))

    def forward(self, x: Any, w: Any, zero: Any, scale: Any) -> Any:
        halves = (w.unsqueeze(-1) >> self.shifts) & 15
        groups = (halves.reshape(w.shape[0], -1, GROUP).to(x.dtype) - zero) * scale
        return torch.nn.functional.linear(x, groups.view(w.shape[0], -1))


class Attention(torch.nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, attn_mask=mask, enable_gqa=True)


class Case(NamedTuple):
    """`inputs` makes new ones on a device. `peer` has them, too, and may be another module: weights
    in f16 for quantized ones, which PyTorch has no product of."""

    module: Callable[[], Any]
    inputs: Callable[[str], tuple[Any, ...]]
    peer: Callable[[str], tuple[Any, tuple[Any, ...]]] | None = None


def _half(device: str, *shape: int) -> Any:
    return torch.randn(shape, device=device).half()


def _dense(outputs: int, inputs: int, device: str) -> tuple[Any, ...]:
    return _half(device, 1, inputs), _half(device, outputs, inputs)


def _dense_peer(
    outputs: int, inputs: int, device: str, rows: int = 1
) -> tuple[Any, tuple[Any, ...]]:
    _, w = _dense(outputs, inputs, device)
    return Dense(), (_half(device, rows, inputs), w)


def _int8(outputs: int, inputs: int, device: str, rows: int = 1) -> tuple[Any, ...]:
    w = torch.randint(-128, 128, (outputs, inputs), device=device).to(torch.int8)
    return _half(device, rows, inputs), w, _half(device, outputs, inputs // GROUP, 1) * 0.02


def _int4(outputs: int, inputs: int, device: str, rows: int = 1) -> tuple[Any, ...]:
    w = torch.randint(0, 256, (outputs, inputs // 2), device=device, dtype=torch.uint8)
    groups = (outputs, inputs // GROUP, 1)
    zero = torch.randint(0, 16, groups, device=device).half()
    return _half(device, rows, inputs), w, zero, _half(device, *groups) * 0.02


def _attention(tokens: int, device: str) -> tuple[Any, ...]:
    k, v = (_half(device, 1, KV_HEADS, tokens, COLUMNS) for _ in range(2))
    return _half(device, 1, HEADS, 1, COLUMNS), k, v, _half(device, 1, 1, 1, tokens)


CASES: dict[str, Case] = {
    **{f"f16_{n}x{k}": Case(Dense, partial(_dense, n, k)) for n, k in PRODUCTS},
    **{
        f"{kind.__name__.lower()}_{n}x{k}": Case(
            kind, partial(inputs, n, k), partial(_dense_peer, n, k)
        )
        for kind, inputs in ((Int8, _int8), (Int4, _int4))
        for n, k in QUANTIZED
    },
    **{
        f"{kind.__name__.lower()}_{FEW[0]}x{FEW[1]}_of_{FEW[2]}": Case(
            kind,
            partial(inputs, *FEW[:2], rows=FEW[2]),
            partial(_dense_peer, *FEW[:2], rows=FEW[2]),
        )
        for kind, inputs in ((Int8, _int8), (Int4, _int4))
    },
    **{f"attention_{tokens}": Case(Attention, partial(_attention, tokens)) for tokens in TOKENS},
}
