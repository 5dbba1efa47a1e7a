"""Layers as people stack them: of images, sequences and vectors of numbers.

A layer takes what it is to be from a generator of its own and from what it is given, so that it
still fits where layers before it are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

nn, functional = torch.nn, torch.nn.functional


@dataclass(frozen=True)
class Shape:
    """What goes between layers, behind the batch: an "image" of channels, height and width, a
    "sequence" of `sizes[0]` times numbers, or a "vector". If `is_any`, the image has any height and
    width, or the sequence any length, up to those in `sizes`."""

    kind: str
    sizes: tuple[int, ...]
    is_any: bool = False

    @property
    def numbers(self) -> int:
        return self.sizes[0] if self.kind == "image" else self.sizes[-1]


# A layer's function on tensors, which may be a module, and the shape behind it; None where the
# layer does not fit.
Made = tuple[Any, Shape] | None
Make = Callable[[random.Random, Shape], Made]
LAYERS: dict[str, dict[str, Make]] = {"image": {}, "sequence": {}, "vector": {}}


def layer(*kinds: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        for kind in kinds:
            LAYERS[kind][make.__name__] = make
        return make

    return add


class Does(nn.Module):
    """A function of modules and a tensor, as a module."""

    def __init__(self, function: Any, *parts: Any) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x: Any) -> Any:
        return self.function(*self.parts, x)


def with_numbers(shape: Shape, numbers: int) -> Shape:
    sizes = shape.sizes
    changed = (numbers, *sizes[1:]) if shape.kind == "image" else (*sizes[:-1], numbers)
    return replace(shape, sizes=changed)


def image(shape: Shape, channels: int, height: int, width: int) -> Shape:
    """The image that a layer makes of one."""
    return replace(shape, sizes=(channels, height, width))


def divisor(rng: random.Random, number: int) -> int:
    return rng.choice([i for i in range(1, number + 1) if number % i == 0])


ACTIVATIONS = (
    *(nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.LeakyReLU, nn.ELU, nn.Softplus),
    *(nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.ReLU6, nn.SELU, nn.Softsign),
)


@layer("image", "sequence", "vector")
def activation(rng: random.Random, shape: Shape) -> Made:
    return rng.choice(ACTIVATIONS)(), shape


@layer("image", "sequence", "vector")
def dropout(rng: random.Random, shape: Shape) -> Made:
    return nn.Dropout(0.3), shape


@layer("image", "sequence", "vector")
def joined(rng: random.Random, shape: Shape) -> Made:
    axis = 1 if shape.kind == "image" else -1
    if shape.numbers > 64:
        return None
    function = Does(lambda x: torch.cat([x, torch.relu(x)], axis))
    return function, with_numbers(shape, 2 * shape.numbers)


@layer("image", "sequence", "vector")
def gate(rng: random.Random, shape: Shape) -> Made:
    axis = 1 if shape.kind == "image" else -1
    if shape.numbers % 2:
        return None
    how = rng.randrange(3)

    def halves(x: Any) -> Any:
        one, other = x.chunk(2, axis)
        return one * torch.sigmoid(other)

    def other_halves(x: Any) -> Any:
        one, other = x.split(shape.numbers // 2, axis)
        return torch.maximum(one, other)

    function = (nn.GLU(axis), Does(halves), Does(other_halves))[how]
    return function, with_numbers(shape, shape.numbers // 2)


@layer("image", "sequence", "vector")
def arithmetic(rng: random.Random, shape: Shape) -> Made:
    functions = (
        lambda x: x * 0.5 + 1,
        lambda x: x.clamp(-1, 1),
        lambda x: x.abs().sqrt(),
        lambda x: x * torch.sigmoid(x),
        lambda x: torch.where(x > 0, x, x * 0.1),
        lambda x: x - x.mean(-1, keepdim=True),
        lambda x: x.pow(2).clamp(max=10),
        lambda x: x / (1 + x.abs()),
    )
    return Does(rng.choice(functions)), shape


@layer("image")
def convolution(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    kernel, stride = rng.choice((1, 3, 3, 5)), rng.choice((1, 1, 2))
    dilation = rng.choice((1, 1, 2)) if kernel > 1 else 1
    padding = rng.choice((0, dilation * (kernel // 2)))
    groups = rng.choice((1, 1, divisor(rng, channels)))
    outputs = groups * rng.randint(1, max(1, 16 // groups))
    made = nn.Conv2d(
        channels, outputs, kernel, stride, padding, dilation, groups, bias=rng.random() < 0.7
    )
    sizes = [(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for n in (height, width)]
    if min(sizes) < 2 or min(height, width) + 2 * padding <= dilation * (kernel - 1):
        return None
    return made, image(shape, outputs, *sizes)


@layer("image")
def transposed_convolution(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    if max(height, width) > 12:
        return None
    outputs = rng.randint(1, 8)
    return nn.ConvTranspose2d(channels, outputs, 2, 2), image(shape, outputs, 2 * height, 2 * width)


@layer("image")
def residual_convolution(rng: random.Random, shape: Shape) -> Made:
    channels = shape.sizes[0]
    one, norm = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
    return Does(lambda one, norm, x: torch.relu(norm(one(x)) + x), one, norm), shape


@layer("image")
def image_norm(rng: random.Random, shape: Shape) -> Made:
    channels = shape.sizes[0]
    norms = (
        lambda: nn.BatchNorm2d(channels),
        lambda: nn.GroupNorm(divisor(rng, channels), channels),
        lambda: nn.InstanceNorm2d(channels, affine=True),
        lambda: nn.LayerNorm(shape.sizes),
    )
    return rng.choice(norms[:3] if shape.is_any else norms)(), shape


@layer("image")
def channels_last_norm(rng: random.Random, shape: Shape) -> Made:
    norm = nn.LayerNorm(shape.sizes[0])
    return Does(lambda norm, x: norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), norm), shape


@layer("image")
def pooling(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    if min(height, width) < 4:
        return None
    pools = (
        (nn.MaxPool2d(2), 2, 0),
        (nn.AvgPool2d(2), 2, 0),
        (nn.MaxPool2d(3, 2, 1), 3, 1),
        (nn.AvgPool2d(3, 2, 1), 3, 1),
    )
    made, kernel, padding = rng.choice(pools)
    sizes = [(n + 2 * padding - kernel) // 2 + 1 for n in (height, width)]
    return made, image(shape, channels, *sizes)


@layer("image")
def adaptive_pooling(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    if height % 2 or width % 2:
        return None
    return nn.AdaptiveAvgPool2d(2), Shape("image", (channels, 2, 2))


@layer("image")
def shuffle(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    if channels % 4 == 0 and max(height, width) <= 12:
        return nn.PixelShuffle(2), image(shape, channels // 4, 2 * height, 2 * width)
    if height % 2 == width % 2 == 0 and channels <= 16:
        return nn.PixelUnshuffle(2), image(shape, 4 * channels, height // 2, width // 2)
    return None


@layer("image")
def upsampling(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    if max(height, width) > 12:
        return None
    mode = rng.choice(("nearest", "bilinear"))
    return nn.Upsample(scale_factor=2, mode=mode), image(shape, channels, 2 * height, 2 * width)


@layer("image")
def squeeze_and_excitation(rng: random.Random, shape: Shape) -> Made:
    channels = shape.sizes[0]
    one, other = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def function(one: Any, other: Any, x: Any) -> Any:
        pooled = functional.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(other(torch.relu(one(pooled))))

    return Does(function, one, other), shape


@layer("image")
def padding(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    made = rng.choice((nn.ZeroPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d))(1)
    return made, image(shape, channels, height + 2, width + 2)


@layer("image")
def turned(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    return Does(lambda x: x.transpose(2, 3)), image(shape, channels, width, height)


@layer("image")
def tokens(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    return Does(lambda x: x.flatten(2).transpose(1, 2)), Shape(
        "sequence", (height * width, channels), shape.is_any
    )


@layer("image")
def flat(rng: random.Random, shape: Shape) -> Made:
    channels, height, width = shape.sizes
    if shape.is_any or channels * height * width > 4096:
        return None
    return nn.Flatten(), Shape("vector", (channels * height * width,))


@layer("image")
def global_pooling(rng: random.Random, shape: Shape) -> Made:
    functions = (
        lambda x: x.mean((2, 3)),
        lambda x: functional.adaptive_avg_pool2d(x, 1).flatten(1),
    )
    return Does(rng.choice(functions)), Shape("vector", (shape.sizes[0],))


@layer("sequence", "vector")
def linear(rng: random.Random, shape: Shape) -> Made:
    outputs = rng.choice((8, 12, 16, 32, 33))
    made = nn.Linear(shape.numbers, outputs, bias=rng.random() < 0.8)
    return made, with_numbers(shape, outputs)


@layer("sequence", "vector")
def perceptron(rng: random.Random, shape: Shape) -> Made:
    width = shape.numbers
    layers = nn.Linear(width, 2 * width), rng.choice(ACTIVATIONS)(), nn.Linear(2 * width, width)
    if width > 128:
        return None
    return Does(lambda up, act, down, x: x + down(act(up(x))), *layers), shape


@layer("sequence", "vector")
def norm(rng: random.Random, shape: Shape) -> Made:
    return rng.choice((nn.LayerNorm, nn.RMSNorm))(shape.numbers), shape


@layer("sequence", "vector")
def softmax(rng: random.Random, shape: Shape) -> Made:
    return rng.choice((nn.Softmax(-1), nn.LogSoftmax(-1), nn.Softmin(-1))), shape


@layer("vector")
def vector_norm(rng: random.Random, shape: Shape) -> Made:
    return nn.BatchNorm1d(shape.numbers), shape


@layer("vector")
def image_of_vector(rng: random.Random, shape: Shape) -> Made:
    channels = divisor(rng, shape.numbers)
    if channels * 16 > 512 or channels < 2:
        return None
    made = nn.Linear(shape.numbers, channels * 16)
    return Does(lambda made, x: made(x).view(-1, channels, 4, 4), made), Shape(
        "image", (channels, 4, 4)
    )


@layer("vector")
def sequence_of_vector(rng: random.Random, shape: Shape) -> Made:
    length = divisor(rng, shape.numbers)
    if length in (1, shape.numbers):
        return None
    width = shape.numbers // length
    return Does(lambda x: x.reshape(x.shape[0], length, width)), Shape("sequence", (length, width))


def heads_of(rng: random.Random, width: int) -> int:
    return rng.choice([i for i in (1, 2, 4) if width % i == 0])


@layer("sequence")
def attention(rng: random.Random, shape: Shape) -> Made:
    width = shape.numbers
    heads, is_causal = heads_of(rng, width), rng.random() < 0.4
    if width > 64:
        return None

    def function(project: Any, out: Any, x: Any) -> Any:
        batch, length, _ = x.shape
        parts = project(x).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=is_causal)
        return x + out(y.transpose(1, 2).reshape(batch, length, width))

    return Does(function, nn.Linear(width, 3 * width), nn.Linear(width, width)), shape


@layer("sequence")
def plain_attention(rng: random.Random, shape: Shape) -> Made:
    """By its operations, with a mask made of the length."""
    width = shape.numbers
    if width > 64:
        return None

    def function(query: Any, key: Any, x: Any) -> Any:
        length = x.shape[1]
        scores = query(x) @ key(x).transpose(1, 2) / width**0.5
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ x

    return Does(function, nn.Linear(width, width), nn.Linear(width, width)), shape


@layer("sequence")
def multi_head_attention(rng: random.Random, shape: Shape) -> Made:
    width = shape.numbers
    if width > 64:
        return None
    made = nn.MultiheadAttention(width, heads_of(rng, width), batch_first=True)
    return Does(lambda made, x: made(x, x, x, need_weights=False)[0], made), shape


@layer("sequence")
def encoder(rng: random.Random, shape: Shape) -> Made:
    width = shape.numbers
    if width > 64:
        return None
    made = nn.TransformerEncoderLayer(
        width, heads_of(rng, width), 2 * width, batch_first=True, norm_first=rng.random() < 0.5
    )
    return made, shape


@layer("sequence")
def positions(rng: random.Random, shape: Shape) -> Made:
    table = nn.Embedding(64, shape.numbers)
    if shape.sizes[0] > 64:
        return None
    functions = (
        lambda table, x: x + table(torch.arange(x.shape[1])),
        lambda table, x: x + table.weight[: x.shape[1]],
    )
    return Does(rng.choice(functions), table), shape


class Sinusoids(nn.Module):
    """Positions of a table that is no parameter and is not saved with the weights."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        angles = torch.arange(64.0)[:, None] / 10 ** torch.linspace(0, 2, numbers)
        self.register_buffer("table", torch.sin(angles), persistent=False)

    def forward(self, x: Any) -> Any:
        return x + self.table[: x.shape[1]]


@layer("sequence")
def sinusoids(rng: random.Random, shape: Shape) -> Made:
    if shape.sizes[0] > 64:
        return None
    return Sinusoids(shape.numbers), shape


class Rotary(nn.Module):
    """Attention of fewer heads of keys than of queries, turned by positions, of the tokens that a
    mask made of positions lets through."""

    def __init__(self, width: int, heads: int, mask: Any) -> None:
        super().__init__()
        self.heads, self.mask, self.size = heads, mask, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_and_value = nn.Linear(width, 2 * self.size, bias=False)
        frequencies = 10.0 ** -torch.linspace(0, 2, self.size // 2)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def turned(self, x: Any) -> Any:
        angles = torch.arange(x.shape[2])[:, None] * self.frequencies
        one, other = x.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        query = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        key, value = (
            self.key_and_value(x).view(batch, length, 1, 2 * self.size).transpose(1, 2).chunk(2, -1)
        )
        position = torch.arange(length)
        mask = self.mask(position[:, None], position[None, :])
        y = functional.scaled_dot_product_attention(
            self.turned(query), self.turned(key), value, attn_mask=mask, enable_gqa=True
        )
        return x + y.transpose(1, 2).reshape(batch, length, width)


@layer("sequence")
def rotary_attention(rng: random.Random, shape: Shape) -> Made:
    width = shape.numbers
    if width > 64 or width % 4:
        return None
    masks = (
        lambda i, j: j <= i,
        lambda i, j: (j <= i) & (i - j < 3),
        lambda i, j: torch.where(j <= i, 0.0, -1e9),
        lambda i, j: -(i - j).abs() * 0.25,
    )
    return Rotary(width, rng.choice((1, 2)), rng.choice(masks)), shape


@layer("sequence")
def recurrence(rng: random.Random, shape: Shape) -> Made:
    if shape.is_any or shape.sizes[0] > 8:
        return None  # torch.export fixes the length
    outputs = rng.choice((4, 8))
    made = rng.choice((nn.GRU, nn.LSTM, nn.RNN))(shape.numbers, outputs, batch_first=True)
    return Does(lambda made, x: made(x)[0], made), with_numbers(shape, outputs)


@layer("sequence")
def sequence_convolution(rng: random.Random, shape: Shape) -> Made:
    outputs, kernel = rng.choice((4, 8, 16)), rng.choice((1, 3, 5))
    made = nn.Conv1d(shape.numbers, outputs, kernel, padding=kernel // 2)
    return Does(lambda made, x: made(x.transpose(1, 2)).transpose(1, 2), made), with_numbers(
        shape, outputs
    )


@layer("sequence")
def merged(rng: random.Random, shape: Shape) -> Made:
    """Batch and sequence as one dimension, and back."""
    made = nn.Linear(shape.numbers, shape.numbers)
    width = shape.numbers
    functions = (
        lambda made, x: made(x.reshape(-1, width)).view(x.shape[0], x.shape[1], width),
        lambda made, x: made(x.flatten(0, 1)).view(x.shape[0], -1, width),
        lambda made, x: made(x.flatten(0, 1)).unflatten(0, (x.shape[0], x.shape[1])),
    )
    return Does(rng.choice(functions), made), shape


@layer("sequence")
def mixed(rng: random.Random, shape: Shape) -> Made:
    functions = (
        lambda x: x.flip(1),
        lambda x: x.roll(1, 1),
        lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
        lambda x: x * x.softmax(1),
        lambda x: x - x.amax(1, keepdim=True),
        lambda x: torch.cat([x[:, :1], x], 1)[:, 1:],
        lambda x: torch.einsum("bsd,btd->bst", x, x) @ x,
        lambda x: x.masked_fill(x > 1, 1.0),
    )
    return Does(rng.choice(functions)), shape


@layer("sequence")
def class_token(rng: random.Random, shape: Shape) -> Made:
    if shape.is_any:
        return None
    token = nn.Embedding(1, shape.numbers)
    return Does(
        lambda token, x: torch.cat([token.weight.expand(x.shape[0], 1, -1), x], 1), token
    ), Shape("sequence", (shape.sizes[0] + 1, shape.numbers))


@layer("sequence")
def image_of_sequence(rng: random.Random, shape: Shape) -> Made:
    length, width = shape.sizes
    height = divisor(rng, length)
    if shape.is_any or height in (1, length):
        return None
    return Does(
        lambda x: x.transpose(1, 2).reshape(x.shape[0], width, height, length // height)
    ), Shape("image", (width, height, length // height))


@layer("sequence")
def one_of_sequence(rng: random.Random, shape: Shape) -> Made:
    functions = (
        lambda x: x[:, 0],
        lambda x: x[:, -1],
        lambda x: x.mean(1),
        lambda x: x.amax(1),
        lambda x: x.select(1, 0),
    )
    return Does(rng.choice(functions)), Shape("vector", (shape.numbers,))
