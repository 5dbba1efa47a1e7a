"""Valid inputs to begin from: those of the samples and the tests, and small models."""

from __future__ import annotations

import ast
import io
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from helpers.command import REPOSITORY, SAMPLES

# A longer one takes longer to build, and its mutations hit less.
_LONGEST = 8000


@cache
def mlir_texts() -> tuple[str, ...]:
    """The samples, and what stands in tests as a text."""
    tests = [
        text for path in sorted((REPOSITORY / "tests").rglob("*.py")) for text in _modules(path)
    ]
    return tuple(dict.fromkeys([*sample_texts(), *tests]))


@cache
def sample_texts() -> tuple[str, ...]:
    """The samples alone, all of which build. That of attention takes some seconds, for its many
    kernels."""
    samples = sorted(SAMPLES.glob("*.mlir"))
    return tuple(path.read_text() for path in samples if path.stem != "attention")


def _modules(path: Path) -> Iterator[str]:
    """The constants of a Python file that look like whole modules."""
    tree = ast.parse(path.read_text())
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        text = node.value
        is_module = "func.func" in text or "gpu.module" in text
        if is_module and id(node) not in parts and "{{" not in text and len(text) < _LONGEST:
            yield text


@cache
def bytecodes() -> tuple[bytes, ...]:
    """The samples, in the form that mlir-opt writes."""
    from aotc import mlir
    from aotc.input.source import bytecode_of, parse_source

    codes = []
    for number, text in enumerate(sample_texts()):
        source = parse_source(f"{number}.mlir", text.encode(), mlir.make_context())
        codes.append(bytecode_of(source.module.operation))
    return tuple(codes)


@cache
def onnx_models() -> tuple[bytes, ...]:
    """The models of ONNX's node tests."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = node.collect_testcases(None)
    models = (case.model.SerializeToString() for case in cases)
    return tuple(model for model in models if len(model) < _LONGEST)


@cache
def torch_programs() -> tuple[bytes, ...]:
    """Small programs as torch.export saves them."""
    import torch

    class Rows(torch.nn.Module):
        def forward(self, x: Any, rows: Any) -> Any:
            return torch.softmax(x[rows].reshape(-1, 4) * 2, -1).sum(0, keepdim=True)

    class Views(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.flatten(1).view(x.shape[0], 2, -1).transpose(1, 2)
            return torch.cat([y, y.expand(-1, -1, 2) + 1], -1), y.amax()

    nn, batch = torch.nn, torch.export.Dim("batch", min=2, max=64)
    linear = nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.LayerNorm(3))
    image = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.MaxPool2d(2))
    programs: list[tuple[Any, tuple[Any, ...], Any]] = [
        (linear, (torch.ones(5, 4),), ({0: batch},)),
        (image, (torch.ones(2, 2, 6, 6),), None),
        (Rows(), (torch.ones(6, 4), torch.tensor([1, 2])), None),
        (Views(), (torch.ones(3, 2, 4),), ({0: batch},)),
    ]
    saved = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for module, inputs, shapes in programs:
            path = Path(folder) / "model.pt2"
            exported = torch.export.export(module.eval(), inputs, dynamic_shapes=shapes)
            torch.export.save(exported, path)
            saved.append(path.read_bytes())
    return tuple(saved)


@cache
def arrays() -> tuple[bytes, ...]:
    """Files of NumPy, in its three versions: what the program of `PROGRAM` takes, and others."""
    import numpy as np

    found = []
    for array in (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.asfortranarray(np.ones((3, 4), np.float32)),
        np.ones((3, 4), np.float64),
        np.zeros((0, 4), np.float32),
        np.float32(3.5),
        np.zeros((3, 4), ">f4"),
    ):
        for version in ((1, 0), (2, 0), (3, 0)):
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asanyarray(array), version)
            found.append(file.getvalue())
    return tuple(found)


# What reads arrays: it takes any rows of four numbers.
PROGRAM = """
func.func @double(%x: memref<?x4xf32>, %y: memref<?x4xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.add ins(%x, %x : memref<?x4xf32>, memref<?x4xf32>) outs(%y : memref<?x4xf32>)
  return
}
"""

PROJECTS = (
    """[defaults]
chips = ["sm_80", "sm_90"]
emit = "host-mlir"

[target.kernels]
inputs = ["*.mlir"]
out = "out/"
entries = ["double"]

[target.library]
inputs = "module.mlir"
emit = ["manifest", "header"]
prefix = "one_"
out = "out/"
""",
    """[target.one]
inputs = ["module.mlir"]
emit = "mlir"
chips = "sm_90"
out = "out/one.mlir"
optimization = 2
debug = true
memory = "explicit"
block = "32x8"
warnings = ["error", "no-stale-tuning"]
target = ["x86_64-linux-gnu.2.28"]
frontend_options = { entry = "main" }
""",
)
