"""Random networks: by a seed, of at most 20 layers, with inputs for several sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from frontends.networks.layers import LAYERS, Shape

MOST_LAYERS = 20
# Numbers between layers that are worth their time.
_MOST_NUMBERS = 1 << 14
_WORDS = 30


@dataclass(frozen=True)
class Network:
    """`sizes` are "one" (a batch of 1), "batch" (any) or "both" (any batch and any sequence).
    `layers` are seeds: of what each layer is."""

    seed: int
    sizes: str
    start: str
    layers: tuple[int, ...]


def generate(seed: int) -> Network:
    rng = random.Random(seed)
    sizes = ("one", "batch", "both")[seed % 3]
    start = rng.choice(("image", "sequence", "words", "vector"))
    if sizes == "both":
        start = rng.choice(("sequence", "words"))
    count = rng.choice((rng.randint(1, 6), rng.randint(1, MOST_LAYERS)))
    return Network(seed, sizes, start, tuple(rng.randrange(2**31) for _ in range(count)))


class Stack(torch.nn.Module):
    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def made(network: Network) -> tuple[Any, Shape, list[str]]:
    """The module, the shape of its input, and what its layers are called."""
    torch.manual_seed(network.seed)
    is_any = network.sizes == "both"
    starts = {
        "image": Shape("image", (4, 8, 8)),
        "sequence": Shape("sequence", (6, 16), is_any),
        "words": Shape("sequence", (6, 16), is_any),
        "vector": Shape("vector", (24,)),
    }
    shape = first = starts[network.start]
    layers: list[Any] = []
    names = []
    if network.start == "words":
        layers.append(torch.nn.Embedding(_WORDS, 16))
        names.append("words")
    for seed in network.layers:
        name, layer, shape = _layer(random.Random(seed), shape)
        layers.append(layer)
        names.append(name)
    module = Stack(layers).eval()
    # As after training: norms of batches that have met some.
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0, 0.2)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2)
    return module, first, names


def _layer(rng: random.Random, shape: Shape) -> tuple[str, Any, Shape]:
    """One that fits."""
    while True:
        name, make = rng.choice(list(LAYERS[shape.kind].items()))
        found = make(rng, shape)
        if found is None:
            continue
        numbers = 1
        for size in found[1].sizes:
            numbers *= size
        if numbers <= _MOST_NUMBERS:
            return name, *found


def inputs_of(network: Network, shape: Shape) -> Iterator[Any]:
    """The inputs: the first are what the module is exported with."""
    sizes = {"one": [(1, 6)], "batch": [(3, 6), (1, 6), (5, 6)], "both": [(3, 7), (1, 5), (4, 1)]}
    generator = torch.Generator().manual_seed(network.seed)
    for batch, length in sizes[network.sizes]:
        if network.start == "words":
            yield torch.randint(0, _WORDS, (batch, length), generator=generator)
            continue
        rest = (length, *shape.sizes[1:]) if shape.kind == "sequence" else shape.sizes
        yield torch.randn(batch, *rest, generator=generator)


def dynamic_shapes(network: Network) -> Any:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=64)
    return {
        "one": None,
        "batch": ({0: batch},),
        "both": ({0: batch, 1: length},),
    }[network.sizes]


def smaller(network: Network) -> Iterator[Network]:
    """Without some of its layers; most first."""
    count = len(network.layers)
    for size in (count // 2, count // 4, 1):
        for first in range(0, count, size) if size else ():
            left = network.layers[:first] + network.layers[first + size :]
            yield replace(network, layers=left)
