"""Models of PyTorch, small: each with inputs, and how far from eager PyTorch it may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")
nn = torch.nn
functional = torch.nn.functional


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(20, 30), nn.Linear(30, 10)

    def forward(self, x: Any) -> Any:
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)])
        self.layers = nn.ModuleList([nn.Linear(400, 120), nn.Linear(120, 84)])
        self.last = nn.Linear(84, 10)

    def forward(self, x: Any) -> Any:
        for convolution in self.convolutions:
            x = functional.max_pool2d(torch.relu(convolution(x)), 2)
        x = torch.flatten(x, 1)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.last(x)


class Residual(nn.Module):
    """The parts of a ResNet: a strided convolution, norms of batches, blocks with a short cut."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.same = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.same_norm = nn.BatchNorm2d(channels)
        self.down = nn.Conv2d(channels, 2 * channels, 3, 2, 1, bias=False)
        self.down_norm = nn.BatchNorm2d(2 * channels)
        self.short = nn.Conv2d(channels, 2 * channels, 1, 2, bias=False)
        self.last = nn.Linear(2 * channels, 10)

    def forward(self, x: Any) -> Any:
        x = functional.max_pool2d(torch.relu(self.norm(self.first(x))), 3, 2, 1)
        x = torch.relu(self.same_norm(self.same(x)) + x)
        x = torch.relu(self.down_norm(self.down(x)) + self.short(x))
        return self.last(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class Block(nn.Module):
    """A transformer's: attention that looks back, layer norms, a gelu."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = [
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.queries(self.before(x)).split(width, dim=2)
        ]
        attended = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Embedded(nn.Module):
    def __init__(self, blocks: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList([Block(32, 2) for _ in range(blocks)])

    def forward(self, words: Any) -> Any:
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        return x


class Product(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a @ b


@dataclass(frozen=True)
class Model:
    """`inputs` for a batch of that size; `tolerance` absolute, of results around 1."""

    make: Callable[[], Any]
    inputs: Callable[[int], tuple[Any, ...]]
    tolerance: float = 1e-5


MODELS = {
    "product": Model(Product, lambda n: (torch.randn(n, 33, 17), torch.randn(n, 17, 9))),
    "mlp": Model(Mlp, lambda n: (torch.randn(n, 20),)),
    "lenet": Model(LeNet, lambda n: (torch.randn(n, 1, 28, 28),)),
    "residual": Model(Residual, lambda n: (torch.randn(n, 3, 32, 32),)),
    "block": Model(Block, lambda n: (torch.randn(n, 9, 64),)),
    "embedded": Model(Embedded, lambda n: (torch.randint(0, 50, (n, 7)),)),
}


def made(name: str, batch: int) -> tuple[Any, tuple[Any, ...]]:
    """A model with random weights, and random inputs for it."""
    torch.manual_seed(batch)
    model = MODELS[name].make().eval()
    return model, MODELS[name].inputs(batch)
