"""Models written in PyTorch alone, as people write them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from frontends.zoo.catalogue import Case, images, model, normal, words

nn, functional = torch.nn, torch.nn.functional


class Dlrm(nn.Module):
    """Naumov et al., «Deep Learning Recommendation Model» (2019): bags of numbers of each kind, and
    the products of every two vectors."""

    def __init__(self, counts: tuple[int, ...] = (50, 30, 20), width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(n, width, mode="sum") for n in counts])
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        vectors = len(counts) + 1
        pairs = vectors * (vectors - 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 32), nn.ReLU(), nn.Linear(32, 1))
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1))

    def forward(self, dense: Any, sparse: Any) -> Any:
        x = self.bottom(dense)
        bags = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        vectors = torch.stack([x, *bags], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.top(torch.cat([x, pairs], 1)))


@model()
def dlrm() -> Case:
    return Case(
        Dlrm(), lambda batch, _: {"dense": normal(batch, 13), "sparse": words(20, batch, 3, 4)}
    )


class Tagger(nn.Module):
    def __init__(self, layer: Any, tags: int = 7) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.layer = layer(16, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(48, tags)

    def forward(self, tokens: Any) -> Any:
        hidden, _ = self.layer(self.words(tokens))
        return functional.log_softmax(self.tags(hidden), -1)


def _tokens(batch: int, length: int) -> dict[str, Any]:
    return {"tokens": words(40, batch, length)}


@model()
def lstm_tagger() -> Case:
    return Case(Tagger(nn.LSTM), _tokens, (2, 8))


@model()
def gru_tagger() -> Case:
    return Case(Tagger(nn.GRU), _tokens, (2, 8))


class WaveNet(nn.Module):
    """Gated convolutions over the past, each twice as far."""

    def __init__(self, width: int = 16, layers: int = 5) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.dilated = nn.ModuleList(
            [nn.Conv1d(width, 2 * width, 2, dilation=1 << i) for i in range(layers)]
        )
        self.mixing = nn.ModuleList([nn.Conv1d(width, 2 * width, 1) for _ in range(layers)])
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU())
        self.classes = nn.Conv1d(width, 32, 1)

    def forward(self, samples: Any) -> Any:
        x, skipped = self.first(samples), 0
        for dilated, mixing in zip(self.dilated, self.mixing, strict=True):
            past = functional.pad(x, (dilated.dilation[0], 0))
            value, gate = dilated(past).chunk(2, 1)
            residual, skip = mixing(torch.tanh(value) * torch.sigmoid(gate)).chunk(2, 1)
            x, skipped = x + residual, skipped + skip
        return self.classes(self.last(skipped))


@model()
def wavenet() -> Case:
    return Case(WaveNet(), lambda batch, length: {"samples": normal(batch, 1, 4 * length)})


class PointNet(nn.Module):
    """Qi et al. (2017): a layer for each point, and the maximum over them."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        widths = (3, 16, 32, 64)
        self.points = nn.Sequential(
            *(
                nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
                for a, b in pairwise(widths)
            )
        )
        self.turn = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 9))
        self.classes = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.last = nn.Linear(32, classes)

    def forward(self, points: Any) -> Any:
        seen = self.points(points).max(2).values
        turn = self.turn(seen).view(-1, 3, 3) + torch.eye(3, device=points.device)
        turned = torch.bmm(turn, points)
        features = torch.max(self.points(turned), 2)[0]
        return functional.log_softmax(self.last(self.classes(features)), 1)


@model()
def pointnet() -> Case:
    return Case(PointNet(), lambda batch, length: {"points": normal(batch, 3, 4 * length)})


class GraphConvolution(nn.Module):
    """Kipf and Welling (2017): the mean over neighbors, by index_add and scatter_add."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    @staticmethod
    def _spread(x: Any, edges: Any) -> Any:
        source, target = edges
        ones = torch.ones_like(source, dtype=x.dtype)
        degrees = torch.ones(x.shape[0], dtype=x.dtype).scatter_add(0, target, ones)
        scale = degrees.rsqrt()
        messages = x[source] * (scale[source] * scale[target])[:, None]
        return torch.zeros_like(x).index_add(0, target, messages) + x / degrees[:, None]

    def forward(self, x: Any, edges: Any) -> Any:
        x = torch.relu(self._spread(self.first(x), edges))
        return functional.log_softmax(self._spread(self.second(x), edges), 1)


@model()
def graph_convolution() -> Case:
    def inputs(batch: int, length: int) -> dict[str, Any]:
        nodes = 10 * batch
        return {"x": normal(nodes, 8), "edges": words(nodes, 2, 4 * length)}

    return Case(GraphConvolution(), inputs)


class UNet(nn.Module):
    """Ronneberger et al. (2015)."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 32)) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [self._double(a, b) for a, b in zip((3, *widths), widths, strict=False)]
        )
        pairs = list(zip(widths[::-1], widths[-2::-1], strict=False))
        self.up = nn.ModuleList([nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs])
        self.merge = nn.ModuleList([self._double(a, b) for a, b in pairs])
        self.last = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def _double(inputs: int, outputs: int) -> Any:
        layers: list[Any] = []
        for width in (inputs, outputs):
            layers += [nn.Conv2d(width, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        kept = []
        for number, down in enumerate(self.down):
            x = down(functional.max_pool2d(x, 2) if number else x)
            kept.append(x)
        for up, merge, skip in zip(self.up, self.merge, kept[-2::-1], strict=True):
            x = merge(torch.cat([up(x), skip], 1))
        return self.last(x)


@model()
def unet() -> Case:
    return Case(UNet(), images(32))


class Nerf(nn.Module):
    """Mildenhall et al. (2020): colors along rays, of sines of positions."""

    def __init__(self, frequencies: int = 6, width: int = 64) -> None:
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(frequencies))
        self.layers = nn.ModuleList(
            [nn.Linear(3 + 6 * frequencies, width)]
            + [nn.Linear(width, width) for _ in range(2)]
            + [nn.Linear(width + 3 + 6 * frequencies, width)]
        )
        self.density, self.color = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, origins: Any, directions: Any, depths: Any) -> Any:
        points = origins[:, None] + directions[:, None] * depths[..., None]
        angles = (points[..., None] * self.frequencies).flatten(-2)
        encoded = torch.cat([points, angles.sin(), angles.cos()], -1)
        x = encoded
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        x = torch.relu(self.layers[-1](torch.cat([x, encoded], -1)))
        steps = torch.diff(depths, dim=-1, append=depths[:, -1:] + 0.1)
        opacity = 1 - torch.exp(-functional.softplus(self.density(x))[..., 0] * steps)
        light = torch.cumprod(1 - opacity + 1e-10, -1)
        before = torch.cat([torch.ones_like(light[:, :1]), light[:, :-1]], -1)
        weights = (opacity * before)[..., None]
        return (weights * torch.sigmoid(self.color(x))).sum(1)


@model()
def nerf() -> Case:
    def inputs(batch: int, length: int) -> dict[str, Any]:
        depths = torch.linspace(0.5, 2, length).expand(batch, length).contiguous()
        return {"origins": normal(batch, 3), "directions": normal(batch, 3), "depths": depths}

    return Case(Nerf(), inputs)


class SpectralConvolution(nn.Module):
    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weights = nn.Parameter(torch.randn(2, width, width, modes, modes, 2) / width)

    def forward(self, x: Any) -> Any:
        height, width = x.shape[-2:]
        found = torch.fft.rfft2(x)
        weights = torch.view_as_complex(self.weights)
        out = torch.zeros_like(found)
        low, modes = slice(None, self.modes), self.modes
        out[:, :, low, low] = torch.einsum(
            "bixy,ioxy->boxy", found[:, :, :modes, :modes], weights[0]
        )
        out[:, :, -modes:, low] = torch.einsum(
            "bixy,ioxy->boxy", found[:, :, -modes:, :modes], weights[1]
        )
        return torch.fft.irfft2(out, s=(height, width))


class Fno(nn.Module):
    """Li et al., «Fourier Neural Operator» (2021), in two dimensions."""

    def __init__(self, width: int = 8, modes: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 1)
        self.spectral = nn.ModuleList([SpectralConvolution(width, modes) for _ in range(layers)])
        self.local = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(layers)])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            x = functional.gelu(spectral(x) + local(x))
        return self.last(x)


@model()
def fno() -> Case:
    return Case(Fno(), images(16))


class Autoencoder(nn.Module):
    """Convolutions with strides, and transposed ones back; the loss too."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU()
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 3, 2, 1, output_padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x: Any) -> Any:
        y = self.decoder(self.encoder(x))
        return y, functional.mse_loss(y, x)


@model()
def autoencoder() -> Case:
    return Case(Autoencoder(), images(28, channels=1))


@model()
def dcgan() -> Case:
    widths = (32, 16, 8)
    layers: list[Any] = [nn.ConvTranspose2d(20, widths[0], 4, bias=False)]
    for a, b in pairwise(widths):
        layers += [nn.BatchNorm2d(a), nn.ReLU(), nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False)]
    layers += [nn.BatchNorm2d(widths[-1]), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()]
    return Case(nn.Sequential(*layers), lambda batch, _: {"input": normal(batch, 20, 1, 1)})


class Translator(nn.Module):
    """`nn.Transformer`, with the mask that its own function makes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, width), nn.Embedding(64, width)
        self.layers = nn.Transformer(width, 4, 2, 2, 64, batch_first=True)
        self.last = nn.Linear(width, 40)

    def forward(self, source: Any, target: Any) -> Any:
        pairs = [self.words(x) + self.places(torch.arange(x.shape[1])) for x in (source, target)]
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.last(self.layers(*pairs, tgt_mask=causal, tgt_is_causal=True))


@model()
def transformer() -> Case:
    def inputs(batch: int, length: int) -> dict[str, Any]:
        return {"source": words(40, batch, length), "target": words(40, batch, length - 2)}

    return Case(Translator(), inputs)


class Experts(nn.Module):
    """A mixture of experts: the best two of four for each token, by sorting and by index_add."""

    def __init__(self, width: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 32) / 4)
        self.down = nn.Parameter(torch.randn(experts, 32, width) / 4)

    def forward(self, x: Any) -> Any:
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(torch.softmax(self.router(rows), -1), 2)
        expert, order = torch.sort(chosen.reshape(-1), stable=True)
        mine = torch.bmm(rows[order // 2].unsqueeze(1), self.up[expert])
        mine = torch.bmm(functional.silu(mine), self.down[expert]).squeeze(1)
        mine = mine * weights.reshape(-1)[order][:, None]
        return torch.zeros_like(rows).index_add(0, order // 2, mine).reshape(x.shape)


@model()
def experts() -> Case:
    return Case(Experts(), lambda batch, length: {"x": normal(batch, length, 16)})
