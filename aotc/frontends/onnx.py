"""ONNX (`.onnx`), by torch-mlir's importer.

Weights in files of their own are found beside the model, where ONNX has them. What the importer
knows is in torch-mlir's `TorchOnnxToTorch`; shapes are inferred by onnx before.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotc.errors import InputError
from aotc.frontends.registry import Frontend
from aotc.frontends.torch_mlir import make_entry

_HINT = "pip install 'aotc[onnx]'"
# From the operations of ONNX to linalg on tensors. What is legal stays whole until the second
# pipeline, which has a shorter form of it.
_PIPELINE = (
    "func.func(convert-torch-onnx-to-torch),"
    "torch-onnx-to-torch-backend-pipeline"
    "{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline"
)


def _load(path: Path, options: Mapping[str, str]) -> Any:
    import onnx  # type: ignore[import-not-found, unused-ignore]
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped, unused-ignore]

    try:
        model = onnx.load(path)
        onnx.checker.check_model(path)
    except (OSError, DecodeError, onnx.checker.ValidationError) as error:
        raise InputError(f"onnx cannot load '{path}': {error}") from None
    # A model of more than 2 GiB is refused there: what the file says of shapes must do.
    with contextlib.suppress(ValueError):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return _import(model, options.get("entry", path.name.split(".")[0]))


def _import(model: Any, name: str) -> Any:
    """The model as an `ir.Module` with one entry: linalg on tensors."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer
    from torch_mlir.passmanager import PassManager

    context = ir.Context()
    context.emit_error_diagnostics = False
    torch_dialect.register_dialect(context)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in weights]
    try:
        info = onnx_importer.ModelInfo(model, config=onnx_importer.Config())
        module = info.create_module(context=context)
        onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
        with context:
            PassManager.parse(f"builtin.module({_PIPELINE})").run(module.operation)
    except (onnx_importer.OnnxImportError, ir.MLIRError) as error:
        raise InputError(f"torch-mlir cannot lower this model: {_reason(error)}") from error
    return make_entry(module, name, inputs)


def _reason(error: Exception) -> str:
    """What was refused: the first line of what MLIR says has the operation's name."""
    found = re.search(r'onnx\.\w+|"?torch\.[\w.]+', str(error))
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"{found[0]}: {first}" if found and found[0] not in first else first


def _missing() -> str | None:
    return None if all(map(importlib.util.find_spec, ("onnx", "torch_mlir"))) else _HINT


FRONTEND = Frontend(
    "onnx",
    (".onnx",),
    _load,
    "models of ONNX",
    {"entry": "the entry's name (default: the file's)"},
    _missing,
)
