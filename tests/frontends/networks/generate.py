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
# The largest height and width of an image of any.
_MOST = 12
# Batches, heights and widths of the inputs.
_IMAGES = {
    "open": [(3, 10, 12), (1, 9, 8), (2, 12, 12)],
    "fours": [(3, 12, 8), (1, 8, 12), (2, 8, 8)],
    "square": [(3, 12, 12), (1, 9, 9), (2, 8, 8)],
}


@dataclass(frozen=True)
class Network:
    """`sizes` are "one" (a batch of 1), "batch" (any), "both" (any batch and any sequence), or for
    images of any batch "open" (any height and width), "fours" (multiples of 4) or "square" (the
    same for both). `start` is what the input is; a "pair" are two images of the same sizes, and
    "two" are images with sizes of their own. `layers` are seeds: of what each layer is."""

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
    elif sizes == "batch" and start == "image":
        sizes = rng.choice(("batch", "open", "fours", "square"))
        if sizes != "batch":
            start = rng.choice(("image", "pair", "two"))
    count = rng.choice((rng.randint(1, 6), rng.randint(1, MOST_LAYERS)))
    return Network(seed, sizes, start, tuple(rng.randrange(2**31) for _ in range(count)))


class Stack(torch.nn.Module):
    def __init__(self, layers: list[Any], *, is_pair: bool) -> None:
        super().__init__()
        self.is_pair = is_pair
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: Any, y: Any = None) -> Any:
        if y is not None:
            if self.is_pair:
                x = torch.cat([x, y], 1)
            else:
                x = x + torch.nn.functional.interpolate(y, x.shape[2:])
        for layer in self.layers:
            x = layer(x)
        return x


def made(network: Network) -> tuple[Any, Shape, list[str]]:
    """The module, the shape of its input, and what its layers are called."""
    torch.manual_seed(network.seed)
    is_any = network.sizes not in ("one", "batch")
    image = Shape("image", (4, _MOST, _MOST) if is_any else (4, 8, 8), is_any)
    starts = {
        "image": image,
        "pair": replace(image, sizes=(8, _MOST, _MOST)),
        "two": image,
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
    module = Stack(layers, is_pair=network.start == "pair").eval()
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


def inputs_of(network: Network, shape: Shape) -> Iterator[tuple[Any, ...]]:
    """The inputs: the first are what the module is exported with."""
    generator = torch.Generator().manual_seed(network.seed)
    if network.sizes in _IMAGES:
        for batch, *sizes in _IMAGES[network.sizes]:
            x = torch.randn(batch, 4, *sizes, generator=generator)
            other = sizes if network.start == "pair" else sizes[::-1]
            y = torch.randn(batch, 4, *other, generator=generator)
            yield (x,) if network.start == "image" else (x, y)
        return
    sizes = {"one": [(1, 6)], "batch": [(3, 6), (1, 6), (5, 6)], "both": [(3, 7), (1, 5), (4, 1)]}
    for batch, length in sizes[network.sizes]:
        if network.start == "words":
            yield (torch.randint(0, _WORDS, (batch, length), generator=generator),)
            continue
        rest = (length, *shape.sizes[1:]) if shape.kind == "sequence" else shape.sizes
        yield (torch.randn(batch, *rest, generator=generator),)


def dynamic_shapes(network: Network) -> Any:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=64)
    names = {"open": ("h", "w"), "fours": ("h", "w"), "square": ("h", "h")}
    if network.sizes not in names:
        return {
            "one": None,
            "batch": ({0: batch}, None),
            "both": ({0: batch, 1: length}, None),
        }[network.sizes]
    factor, least = (4, 2) if network.sizes == "fours" else (1, 8)

    def image(ending: str) -> dict[int, Any]:
        height, width = (
            factor * torch.export.Dim(f"{name}{ending}", min=least, max=64)
            for name in names[network.sizes]
        )
        return {0: batch, 2: height, 3: width}

    other = {"image": None, "pair": image(""), "two": image("y")}[network.start]
    return image(""), other


def smaller(network: Network) -> Iterator[Network]:
    """Without some of its layers; most first."""
    count = len(network.layers)
    for size in (count // 2, count // 4, 1):
        for first in range(0, count, size) if size else ():
            left = network.layers[:first] + network.layers[first + size :]
            yield replace(network, layers=left)
