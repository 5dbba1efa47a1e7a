"""The models by name: what makes each, with which inputs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

# One module for each package that the models come from.
_GROUPS = ("others", "vision", "detection", "language", "speech", "diffusion", "estimators")


@dataclass(frozen=True)
class Variant:
    """A build of a model: what it is exported to, and whether for sizes of any batch and length."""

    format: str = "torch"
    any_size: bool = False


VARIANTS = {
    "one": Variant(),
    "any": Variant(any_size=True),
    "onnx": Variant("onnx"),
    "onnx_any": Variant("onnx", any_size=True),
}


@dataclass(frozen=True)
class Case:
    """A module, and its inputs by the names that `forward` has for them: a function of the batch
    and, for sequences, of the length. `sizes` are those to build with. `widen` is what the copy in
    f64 needs, where PyTorch has not all of its operators for that. `exporters` has one for each
    format: a function of the module, the inputs, the dimensions to leave open (or None), and a
    folder. It gives the build of the export as a function of options, and torch.export's program,
    if there is one."""

    module: Any
    inputs: Callable[[int, int], dict[str, Any]]
    sizes: tuple[int, int] = (2, 12)
    widen: Callable[[Any], Any] = lambda module: None
    exporters: Mapping[str, Callable[[Any, dict[str, Any], Any, Path], tuple[Any, Any]]] = field(
        default_factory=lambda: {"torch": _to_torch, "onnx": _to_onnx}
    )


def _to_torch(module: Any, inputs: dict[str, Any], shapes: Any, _: Path) -> tuple[Any, Any]:
    import torch

    import aotc.torch

    program = torch.export.export(module, (), inputs, dynamic_shapes=shapes)
    return partial(aotc.torch.build, program, (), name="model"), program


def _to_onnx(module: Any, inputs: dict[str, Any], shapes: Any, folder: Path) -> tuple[Any, Any]:
    import torch

    import aotc

    path = folder / "model.onnx"
    options = {"kwargs": inputs, "dynamic_shapes": shapes, "dynamo": True, "verbose": False}
    made = torch.onnx.export(module, (), path, **options)
    return partial(aotc.build, path), made.exported_program


@dataclass(frozen=True)
class Model:
    """`packages` are what `make` imports beside PyTorch; `formats` are what it is exported to."""

    name: str
    packages: tuple[str, ...]
    make: Callable[[], Case]
    formats: tuple[str, ...] = ("torch", "onnx")


MODELS: dict[str, Model] = {}


def model(*packages: str, **options: Any) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Adds the function's model to `MODELS`, by the function's name."""

    def add(make: Callable[[], Case]) -> Callable[[], Case]:
        name = make.__name__.strip("_")
        MODELS[name] = Model(name, packages, make, **options)
        return make

    return add


def load() -> dict[str, Model]:
    """All models, by name, in the order of their modules."""
    for group in _GROUPS:
        importlib.import_module(f"frontends.zoo.{group}")
    return MODELS


def made(make: Callable[[], Case]) -> Case:
    """The model with random weights, the same in every process.

    Parameters that begin as one number, as zeros and ones do, become random, too: a layer that
    multiplies by 0 would hide all before it.
    """
    import torch

    torch.manual_seed(0)
    case = make()
    case.module.eval()
    generator = torch.Generator().manual_seed(1)

    def noise(like: Any) -> Any:
        return torch.randn(like.shape, generator=generator).to(like.dtype)

    with torch.no_grad():
        for parameter in case.module.parameters():
            is_float = parameter.is_floating_point() and parameter.numel()
            if is_float and bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(0.1 * noise(parameter))
        for name, buffer in case.module.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.2 * noise(buffer))
            elif name.endswith("running_var"):
                buffer.copy_(1 + 0.5 * noise(buffer).sigmoid())
    return case


# --- Inputs ---------------------------------------------------------------------------------------


def _generator(*words: int) -> Any:
    import torch

    seed = 0
    for word in words:
        seed = 1000 * seed + word
    return torch.Generator().manual_seed(seed % 2**31)


def normal(*shape: int) -> Any:
    import torch

    return torch.randn(*shape, generator=_generator(*shape))


def uniform(*shape: int) -> Any:
    import torch

    return torch.rand(*shape, generator=_generator(*shape))


def words(count: int, *shape: int) -> Any:
    """Numbers below `count`."""
    import torch

    return torch.randint(0, count, shape, generator=_generator(count, *shape))


def images(side: int, name: str = "x", channels: int = 3) -> Callable[[int, int], dict[str, Any]]:
    return lambda batch, _: {name: normal(batch, channels, side, side)}


def mask(batch: int, length: int) -> Any:
    """Ones, then zeros for padding: rows of several lengths, the first one whole."""
    import torch

    lengths = torch.tensor([max(1, length - 3 * (row % 3)) for row in range(batch)])
    return (torch.arange(length)[None] < lengths[:, None]).long()


def tokens(
    count: int, names: Sequence[str] = ("input_ids", "attention_mask")
) -> Callable[[int, int], dict[str, Any]]:
    """Of transformers: words, and, where a second name is given, their mask."""

    def inputs(batch: int, length: int) -> dict[str, Any]:
        values = (words(count, batch, length), mask(batch, length))
        return dict(zip(names, values, strict=False))

    return inputs
