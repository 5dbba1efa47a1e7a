"""A decoder-only language model of Llama's architecture, with random weights, for main.cpp.

python samples/llm/model.py OUT [--size small|8b] [--bits 16|8|4]

writes OUT/llm.pt2, a program that takes a token and its position and gives the logits of the next
token, and OUT/sizes.h. Its caches of keys and values are buffers that it changes: they are the
library's state. `--bits 8` and `--bits 4` quantize the layers' weights by groups of inputs.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Sizes:
    """`length`: tokens of a sequence. `group`: inputs that share a scale and a zero."""

    vocabulary: int
    hidden: int
    wide: int
    layers: int
    heads: int
    kv_heads: int
    length: int
    group: int
    dtype: torch.dtype

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


SIZES = {
    "small": Sizes(96, 64, 192, 2, 4, 2, 64, 32, torch.float32),
    "8b": Sizes(128256, 4096, 14336, 32, 32, 8, 4096, 128, torch.float16),
}


class Quantized(nn.Module):
    """A linear layer with weights of 8 or 4 bits: (q - zero) * scale, by groups of inputs."""

    def __init__(self, linear: nn.Linear, bits: int, group: int) -> None:
        super().__init__()
        self.bits, self.group, levels = bits, group, (1 << bits) - 1
        weight = linear.weight.detach().unflatten(-1, (-1, group)).float()
        least, most = weight.aminmax(dim=-1, keepdim=True)
        scale = (most - least).clamp(min=1e-6) / levels
        zero = (-least / scale).round()
        q = (weight / scale + zero).round().clamp(0, levels).to(torch.uint8).flatten(1)
        if bits == 4:
            # The first of two weights has the low half of a byte.
            q = q[:, ::2] | q[:, 1::2] << 4
        self.register_buffer("packed", q)
        self.register_buffer("scale", scale.to(linear.weight.dtype))
        self.register_buffer("zero", zero.to(linear.weight.dtype))
        self.register_buffer("shifts", torch.tensor([0, 4], dtype=torch.uint8))

    def forward(self, x: Tensor) -> Tensor:
        q = self.packed
        if self.bits == 4:
            q = (q.unsqueeze(-1) >> self.shifts) & 15
        q = q.reshape(self.scale.shape[0], -1, self.group).to(x.dtype)
        return functional.linear(x, ((q - self.zero) * self.scale).flatten(1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Attention(nn.Module):
    """Attention of one token over the cache, into which it writes its key and value."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.dim = sizes.heads, sizes.kv_heads, sizes.head_dim
        self.parts = [self.heads * self.dim, *[self.kv_heads * self.dim] * 2]
        self.qkv = nn.Linear(sizes.hidden, sum(self.parts), bias=False)
        self.out = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        cache = torch.zeros(1, self.kv_heads, sizes.length, self.dim, dtype=sizes.dtype)
        self.register_buffer("keys", cache)
        self.register_buffer("values", cache.clone())

    def forward(self, x: Tensor, at: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (part.view(1, -1, 1, self.dim) for part in self.qkv(x).split(self.parts, -1))
        self.keys.index_copy_(2, at, rotate(k, cos, sin))
        self.values.index_copy_(2, at, v)
        attended = functional.scaled_dot_product_attention(
            rotate(q, cos, sin), self.keys, self.values, attn_mask=mask, enable_gqa=True
        )
        return self.out(attended.view(1, -1))


class Layer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norm, self.norm_wide = nn.RMSNorm(sizes.hidden), nn.RMSNorm(sizes.hidden)
        self.attention = Attention(sizes)
        self.gate_up = nn.Linear(sizes.hidden, 2 * sizes.wide, bias=False)
        self.down = nn.Linear(sizes.wide, sizes.hidden, bias=False)

    def forward(self, x: Tensor, *position: Tensor) -> Tensor:
        x = x + self.attention(self.norm(x), *position)
        gate, up = self.gate_up(self.norm_wide(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.hidden)
        self.head = nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)
        frequencies = 500000.0 ** (-torch.arange(0, sizes.head_dim, 2) / sizes.head_dim)
        angles = torch.outer(torch.arange(sizes.length), frequencies)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, token: Tensor, at: Tensor) -> Tensor:
        """The logits of the token after `token`, which is the `at`-th one; both have one
        element."""
        seen = torch.arange(self.sizes.length) <= at
        mask = torch.where(seen, 0.0, -torch.inf).to(self.sizes.dtype).view(1, 1, 1, -1)
        x = self.embedding(token)
        for layer in self.layers:
            x = layer(x, at, self.cos[at], self.sin[at], mask)
        return self.head(self.norm(x)).float().view(-1)


def make(sizes: Sizes, bits: int = 16) -> Llama:
    """A model with the same random weights in each process."""
    torch.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(sizes.dtype)
    model = Llama(sizes).eval()
    torch.set_default_dtype(default)
    # Larger logits, so that a token is likely to be another one than the one before.
    model.head.weight.data *= 8
    if bits < 16:
        for layer in model.layers:
            for module, name in (
                *((layer.attention, name) for name in ("qkv", "out")),
                *((layer, name) for name in ("gate_up", "down")),
            ):
                quantized = Quantized(getattr(module, name), bits, sizes.group)
                setattr(module, name, quantized)
    return model


def export(model: Llama, out: Path) -> None:
    program = torch.export.export(model, (torch.tensor([1]), torch.tensor([0])))
    torch.export.save(program, out / "llm.pt2")
    (out / "sizes.h").write_text(
        "// Written by model.py.\n"
        f"constexpr int kVocabulary = {model.sizes.vocabulary};\n"
        f"constexpr int kLength = {model.sizes.length};\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--bits", type=int, choices=(16, 8, 4), default=16)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        export(make(SIZES[options.size], options.bits), options.out)


if __name__ == "__main__":
    main()
