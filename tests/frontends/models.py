"""Models of PyTorch, in three sizes: each with inputs, the same in every process.

Needs PyTorch alone: the bundle of bundle.py carries this file to the machine with a GPU, which
makes the models again rather than to receive them. So nothing here depends on PyTorch's own ways
to initialize a layer, which change between releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

nn = torch.nn
functional = torch.nn.functional


class Product(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a @ b


class Mlp(nn.Module):
    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, width), nn.Linear(width, classes)

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


class ConvolutionAndNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Any) -> Any:
        return self.norm(self.convolution(x))


class Residual(nn.Module):
    """Two convolutions beside a short cut, which has one of its own where sizes change."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = ConvolutionAndNorm(inputs, outputs, 3, stride)
        self.second = ConvolutionAndNorm(outputs, outputs, 3, 1)
        self.short = None if stride == 1 else ConvolutionAndNorm(inputs, outputs, 1, stride)

    def forward(self, x: Any) -> Any:
        short = x if self.short is None else self.short(x)
        return torch.relu(self.second(torch.relu(self.first(x))) + short)


class ResNet18(nn.Module):
    """He et al., «Deep Residual Learning for Image Recognition» (2015), table 1: 18 layers, of 64
    channels at first."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.first = ConvolutionAndNorm(3, channels, 7, 2)
        widths = [channels, *(channels << stage for stage in range(4) for _ in range(2))]
        self.blocks = nn.ModuleList(map(Residual, widths, widths[1:]))
        self.last = nn.Linear(widths[-1], classes)

    def forward(self, x: Any) -> Any:
        x = functional.max_pool2d(torch.relu(self.first(x)), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return self.last(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class Block(nn.Module):
    """A transformer's, as GPT-2 has it: norms before, attention that looks back, a gelu by tanh."""

    def __init__(self, width: int, heads: int) -> None:
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
        return x + self.down(functional.gelu(self.up(self.between(x)), approximate="tanh"))


class Embedded(nn.Module):
    """Words and their positions, then blocks in a loop."""

    def __init__(self, words: int, positions: int, width: int, heads: int, blocks: int = 4) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)

    def forward(self, words: Any) -> Any:
        x = self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class GatedBlock(nn.Module):
    """A transformer's with layers of their own for Q, K and V, fewer heads of K and V, and a gated
    linear unit, as Llama has it."""

    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.depth = width // heads
        self.queries = nn.Linear(width, width, bias=False)
        self.keys, self.values = (
            nn.Linear(width, key_heads * self.depth, bias=False) for _ in range(2)
        )
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        layers = self.queries, self.keys, self.values
        parts = [layer(x).view(batch, length, -1, self.depth).transpose(1, 2) for layer in layers]
        attended = functional.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.silu(self.gate(x)) * self.up(x))


@dataclass(frozen=True)
class Model:
    """`shapes` are those of its inputs for a batch of 1, their first size being the batch's. They
    are of random normal numbers, or, where `words` says how many there are, of words."""

    make: Callable[[], Any]
    shapes: tuple[tuple[int, ...], ...]
    words: int | None = None


def _product(rows: int, inner: int, columns: int) -> Model:
    return Model(Product, ((1, rows, inner), (1, inner, columns)))


def _mlp(inputs: int, width: int, classes: int) -> Model:
    return Model(lambda: Mlp(inputs, width, classes), ((1, inputs),))


def _lenet() -> Model:
    return Model(LeNet, ((1, 1, 28, 28),))


def _resnet18(channels: int, classes: int, pixels: int) -> Model:
    return Model(lambda: ResNet18(channels, classes), ((1, 3, pixels, pixels),))


def _block(width: int, heads: int, length: int) -> Model:
    return Model(lambda: Block(width, heads), ((1, length, width),))


def _gated(width: int, heads: int, key_heads: int, length: int) -> Model:
    return Model(lambda: GatedBlock(width, heads, key_heads), ((1, length, width),))


def _embedded(words: int, positions: int, width: int, heads: int, length: int) -> Model:
    return Model(lambda: Embedded(words, positions, width, heads), ((1, length),), words)


# What aotc builds in a second or so, and a CPU runs in milliseconds.
SMALL = {
    "product": _product(33, 17, 9),
    "mlp": _mlp(20, 30, 10),
    "lenet": _lenet(),
    "resnet18": _resnet18(4, 10, 32),
    "block": _block(64, 4, 9),
    "gated": _gated(64, 4, 2, 9),
    "embedded": _embedded(50, 16, 32, 2, 7),
}

# ResNet-18, and parts of GPT-2 (small), as they are.
FULL = {
    "product": _product(1024, 1024, 1024),
    "mlp": _mlp(1024, 4096, 1000),
    "lenet": _lenet(),
    "resnet18": _resnet18(64, 1000, 224),
    "block": _block(768, 12, 1024),
    "gated": _gated(768, 12, 4, 128),
    "embedded": _embedded(50257, 1024, 768, 12, 1024),
}

# As wide and deep as FULL, with inputs for a CPU: small images, few tokens.
WIDE = {
    "mlp": FULL["mlp"],
    "resnet18": _resnet18(64, 1000, 32),
    "block": _block(768, 12, 16),
    "embedded": _embedded(50257, 1024, 768, 12, 4),
}

SIZES = {"small": SMALL, "wide": WIDE, "full": FULL}
LEVELS = 16


def made(model: Model, dtype: Any = torch.float32) -> Any:
    """The module, with random weights of that type. Each tensor has 16 different numbers, of few
    bits: what compresses well is quickly carried to another machine."""
    module = model.make().eval()
    numbers = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                middle, spread = _distribution(name, tensor.shape)
                level = torch.randint(LEVELS, tensor.shape, generator=numbers)
                tensor.copy_(middle + spread * (2 * level - (LEVELS - 1)) / LEVELS)
    return module.to(dtype)


def _distribution(name: str, shape: Any) -> tuple[float, float]:
    """Mean and largest distance from it, a power of two: such that values neither grow nor vanish
    on their way through the layers, and that no weight could be left out."""
    kind = name.split(".")[-1]
    if kind in ("bias", "running_mean"):
        return 0.0, 0.125
    if len(shape) == 1:
        return 1.0, 0.5
    if kind == "weight" and name.startswith(("words", "positions")):
        return 0.0, 1.0
    # Uniform numbers up to 1 have squares of 1/3; a relu halves those of what comes out of a
    # convolution.
    square = (6 if len(shape) == 4 else 3) / shape[1:].numel()
    return 0.0, 2.0 ** round(math.log2(square) / 2)


def inputs_of(model: Model, batch: int, dtype: Any = torch.float32) -> tuple[Any, ...]:
    numbers = torch.Generator().manual_seed(batch)
    shapes = [(batch, *shape[1:]) for shape in model.shapes]
    if model.words is not None:
        return tuple(torch.randint(model.words, shape, generator=numbers) for shape in shapes)
    return tuple(torch.randn(shape, generator=numbers).to(dtype) for shape in shapes)


def expected(module: Any, inputs: tuple[Any, ...]) -> Any:
    """What the module gives in f64, with the weights and inputs that it has."""
    with torch.no_grad():
        doubles = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
        weights = {
            name: tensor.double() if tensor.is_floating_point() else tensor
            for name, tensor in module.state_dict().items()
        }
        return torch.func.functional_call(module, weights, tuple(doubles))
