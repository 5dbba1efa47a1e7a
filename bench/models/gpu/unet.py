"""A UNet of Stable Diffusion's shape: residual blocks with a time, and attention to a text."""

from __future__ import annotations

import importlib
from typing import Any

torch = importlib.import_module("torch")
nn, functional = torch.nn, torch.nn.functional

WIDTHS, TIME, TEXT, HEADS, SIDE, WORDS = (320, 640, 1280), 1280, 768, 8, 64, 77


class Residual(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.GroupNorm(32, inputs), nn.GroupNorm(32, outputs)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Any, time: Any) -> Any:
        y = self.first(functional.silu(self.first_norm(x)))
        y = y + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(functional.silu(self.second_norm(y)))


class Attention(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def __init__(self, width: int, source: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (
            nn.Linear(size, width, bias=False) for size in (width, source, source)
        )
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, source: Any) -> Any:
        q, k, v = (
            layer(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer, y in ((self.q, x), (self.k, source), (self.v, source))
        )
        attended = functional.scaled_dot_product_attention(q, k, v)
        return self.out(attended.transpose(1, 2).flatten(2))


class Transformer(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.into, self.out = (nn.Conv2d(width, width, 1) for _ in range(2))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.attention, self.cross = Attention(width, width), Attention(width, TEXT)
        self.wide, self.narrow = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, image: Any, text: Any) -> Any:
        height = image.shape[2]
        x = self.into(self.norm(image)).flatten(2).transpose(1, 2)
        y = self.norms[0](x)
        x = x + self.attention(y, y)
        x = x + self.cross(self.norms[1](x), text)
        value, gate = self.wide(self.norms[2](x)).chunk(2, -1)
        x = x + self.narrow(value * functional.gelu(gate))
        return image + self.out(x.transpose(1, 2).unflatten(2, (height, -1)))


class UNet(nn.Module):  # type: ignore[misc, unused-ignore, name-defined]
    """One residual block and one transformer for each size, down and up again."""

    def __init__(self) -> None:
        super().__init__()
        ins, outs = (WIDTHS[0], *WIDTHS[:-1]), WIDTHS
        self.time = nn.Sequential(nn.Linear(WIDTHS[0], TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.first = nn.Conv2d(4, WIDTHS[0], 3, padding=1)
        self.down = nn.ModuleList([Residual(a, b) for a, b in zip(ins, outs, strict=True)])
        self.seen_down = nn.ModuleList([Transformer(b) for b in outs])
        self.smaller = nn.ModuleList([nn.Conv2d(b, b, 3, 2, 1) for b in outs[:-1]])
        self.up = nn.ModuleList([Residual(2 * b, a) for a, b in zip(ins, outs, strict=True)])
        self.seen_up = nn.ModuleList([Transformer(a) for a in ins])
        self.larger = nn.ModuleList([nn.Conv2d(a, a, 3, padding=1) for a in ins[1:]])
        self.norm = nn.GroupNorm(32, WIDTHS[0])
        self.last = nn.Conv2d(WIDTHS[0], 4, 3, padding=1)

    def forward(self, image: Any, time: Any, text: Any) -> Any:
        time, x, seen = self.time(time), self.first(image), []
        for level, (block, look) in enumerate(zip(self.down, self.seen_down, strict=True)):
            x = look(block(x, time), text)
            seen.append(x)
            if level < len(self.smaller):
                x = self.smaller[level](x)
        for level in reversed(range(len(WIDTHS))):
            x = self.up[level](torch.cat((x, seen[level]), 1), time)
            x = self.seen_up[level](x, text)
            if level:
                x = self.larger[level - 1](functional.interpolate(x, scale_factor=2.0))
        return self.last(functional.silu(self.norm(x)))
