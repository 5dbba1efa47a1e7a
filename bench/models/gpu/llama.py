"""Layers of Llama 3 8B's sizes: a step of decoding over caches, and the prefill of a prompt."""

from __future__ import annotations

import importlib
from typing import Any

torch = importlib.import_module("torch")
nn, functional = torch.nn, torch.nn.functional

HIDDEN, WIDE, HEADS, KV_HEADS, DIM = 4096, 14336, 32, 8, 128
LAYERS, VOCABULARY, CACHED, PROMPT = 2, 32000, 4096, 2048


def _turned(x: Any) -> Any:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    return x * cos + _turned(x) * sin


class Norm(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    """RMSNorm, in f32 as transformers has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x: Any) -> Any:
        wide = x.float() if x.dtype == torch.float16 else x
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * scaled.to(x.dtype)


class Attention(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    """With `batch`, over caches of as many sequences, which a call changes."""

    def __init__(self, batch: int | None) -> None:
        super().__init__()
        self.q = nn.Linear(HIDDEN, HEADS * DIM, bias=False)
        self.k = nn.Linear(HIDDEN, KV_HEADS * DIM, bias=False)
        self.v = nn.Linear(HIDDEN, KV_HEADS * DIM, bias=False)
        self.out = nn.Linear(HEADS * DIM, HIDDEN, bias=False)
        self.caches = batch is not None
        if batch is not None:
            for name in ("keys", "values"):
                # To be filled. (Gigabytes, which take no memory before.)
                self.register_buffer(name, torch.empty(batch, KV_HEADS, CACHED, DIM))

    def forward(self, x: Any, at: Any, cos: Any, sin: Any, mask: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            layer(x).view(batch, length, -1, DIM).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
        if self.caches:
            self.keys.index_copy_(2, at, k)
            self.values.index_copy_(2, at, v)
            k, v = self.keys, self.values
        attended = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        return self.out(attended.transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def __init__(self, batch: int | None) -> None:
        super().__init__()
        self.norm, self.norm_wide = Norm(), Norm()
        self.attention = Attention(batch)
        self.gate = nn.Linear(HIDDEN, WIDE, bias=False)
        self.up = nn.Linear(HIDDEN, WIDE, bias=False)
        self.down = nn.Linear(WIDE, HIDDEN, bias=False)

    def forward(self, x: Any, *position: Any) -> Any:
        x = x + self.attention(self.norm(x), *position)
        wide = self.norm_wide(x)
        return x + self.down(functional.silu(self.gate(wide)) * self.up(wide))


class Llama(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    """Logits of the last token. Without `batch`, of prompts without a cache."""

    def __init__(self, batch: int | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([Layer(batch) for _ in range(LAYERS)])
        self.norm = Norm()
        self.words = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.caches = batch is not None
        # By the host, also where the module is made on a GPU: every machine has the same ones.
        with torch.device("cpu"):
            places = torch.arange(CACHED)
            rates = 500000.0 ** (-torch.arange(0, DIM, 2) / DIM)
            angles = torch.outer(places.float(), rates).repeat(1, 2)
            tables = {"cos": angles.cos(), "sin": angles.sin(), "places": places}
        for name, table in tables.items():
            self.register_buffer(name, table)

    def forward(self, tokens: Any, at: Any = None) -> Any:
        x = self.embedding(tokens)
        if self.caches:
            position = at, self.cos[at], self.sin[at], (self.places <= at).view(1, 1, 1, -1)
        else:
            length = tokens.shape[1]
            position = None, self.cos[:length], self.sin[:length], None
        for layer in self.layers:
            x = layer(x, *position)
        return self.words(self.norm(x[:, -1]))
