"""Models in the formats of front ends: of one layer, and whole ones with random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


def write(path: Path) -> Path:
    """Makes the model that the file is named after, there."""
    _MODELS[path.name].write(path)
    return path


def needs(name: str) -> tuple[str, ...]:
    """The packages that the model is made by."""
    return _MODELS[name].needs


def _relu(path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [values[0]], [values[1]]
    )
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)


def _linear(path: Path) -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(module, (torch.zeros(4, 16),)), path)


def _resnet50(path: Path) -> None:
    import torch
    import torchvision  # type: ignore[import-not-found, import-untyped, unused-ignore]

    _export(torchvision.models.resnet50(), (torch.zeros(1, 3, 224, 224),), path)


def _swin_t(path: Path) -> None:
    import torch
    import torchvision

    _export(torchvision.models.swin_t(), (torch.zeros(1, 3, 224, 224),), path)


def _bert(path: Path) -> None:
    import torch
    import transformers  # type: ignore[import-not-found, import-untyped, unused-ignore]

    config = transformers.BertConfig(num_hidden_layers=4, return_dict=False)
    _export(transformers.BertModel(config), (torch.zeros(1, 128, dtype=torch.long),), path)


def _llama(path: Path) -> None:
    import torch
    import transformers

    config = transformers.LlamaConfig(
        num_hidden_layers=4,
        hidden_size=1024,
        intermediate_size=2816,
        num_attention_heads=16,
        num_key_value_heads=8,
        use_cache=False,
        return_dict=False,
    )
    # Without them transformers adds them up (cumsum), which has no lowering.
    given = {
        "attention_mask": torch.full((1, 1, 128, 128), -torch.inf).triu(1),
        "position_ids": torch.arange(128)[None],
    }
    tokens = torch.zeros(1, 128, dtype=torch.long)
    _export(transformers.LlamaModel(config), (tokens,), path, **given)


def _export(module: Any, inputs: tuple[Any, ...], path: Path, **given: Any) -> None:
    import torch

    torch.export.save(torch.export.export(module.eval(), inputs, given), path)


class _Model(NamedTuple):
    """What writes the file, and the packages that it needs."""

    write: Callable[[Path], None]
    needs: tuple[str, ...]


_MODELS = {
    "relu.onnx": _Model(_relu, ("onnx",)),
    "linear.pt2": _Model(_linear, ("torch",)),
    "resnet50.pt2": _Model(_resnet50, ("torch", "torchvision")),
    "swin_t.pt2": _Model(_swin_t, ("torch", "torchvision")),
    "bert.pt2": _Model(_bert, ("torch", "transformers")),
    "llama.pt2": _Model(_llama, ("torch", "transformers")),
}
