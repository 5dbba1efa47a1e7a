"""Small models in the formats of front ends."""

from __future__ import annotations

from pathlib import Path

# What writes a file with that ending.
NEEDS = {".onnx": "onnx", ".pt2": "torch"}


def write(path: Path) -> Path:
    """Makes the model that the file is named after, there."""
    _MODELS[path.name](path)
    return path


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
    import torch  # type: ignore[import-not-found, unused-ignore]

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(module, (torch.zeros(4, 16),)), path)


_MODELS = {"relu.onnx": _relu, "linear.pt2": _linear}
