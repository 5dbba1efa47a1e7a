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
from aotc.frontends.passes import run_passes
from aotc.frontends.registry import Frontend
from aotc.frontends.torch_mlir import make_entry

_HINT = "pip install 'aotc[onnx]'"
# The operations' version that the importer covers best.
_OPSET = 17
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
    except (OSError, ValueError, DecodeError, onnx.checker.ValidationError) as error:
        raise InputError(f"onnx cannot load '{path}': {error}") from None
    # A model of more than 2 GiB is refused there: what the file says of shapes must do.
    with contextlib.suppress(ValueError):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    name = options.get("entry", path.name.split(".")[0])
    try:
        return _import(model, name)
    except InputError:
        newer = _newer(model)
        if newer is None:
            raise
        return _import(newer, name)


def _newer(model: Any) -> Any:
    """A model of old operations with the ones that torch-mlir knows best; None if it has those, or
    onnx cannot convert it."""
    import onnx.version_converter  # type: ignore[import-not-found, unused-ignore]

    versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    if all(version >= _OPSET for version in versions):
        return None
    try:
        return onnx.shape_inference.infer_shapes(
            onnx.version_converter.convert_version(model, _OPSET), data_prop=True
        )
    except Exception:  # of many kinds: the model stays as it is
        return None


def _import(model: Any, name: str) -> Any:
    """The model as an `ir.Module` with one entry: linalg on tensors."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer

    context = ir.Context()
    context.emit_error_diagnostics = False
    torch_dialect.register_dialect(context)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in weights]
    try:
        info = onnx_importer.ModelInfo(model, config=onnx_importer.Config())
        module = info.create_module(context=context)
        onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
    except (onnx_importer.OnnxImportError, ir.MLIRError) as error:
        raise InputError(_reason(error)) from error
    module = run_passes(module, _PIPELINE, _reason)
    return make_entry(module, name, inputs)


def _reason(error: Exception) -> str:
    """What was refused: ONNX's operation, and the first that MLIR says."""
    text = str(error) or type(error).__name__
    operation = re.search(r"onnx\.\w+", text)
    lines = [line for line in text.splitlines() if not line.endswith("pass pipeline:")]
    # Behind the message is the whole operation; before it a place, of which ONNX has none.
    first = re.sub(r'^error: "[^"]*": ', "", lines[0]).partition(": %")[0]
    named = f"{operation[0]}: {first}" if operation and operation[0] not in first else first
    return f"torch-mlir cannot lower this model: {named}"


def _beside(path: Path) -> list[Path]:
    """The files that have the model's weights, where it has them not itself."""
    import onnx  # type: ignore[import-not-found, unused-ignore]

    model = onnx.load(path, load_external_data=False)
    places = [
        entry.value
        for tensor in onnx.external_data_helper._get_all_tensors(model)
        if onnx.external_data_helper.uses_external_data(tensor)
        for entry in tensor.external_data
        if entry.key == "location"
    ]
    return [path.parent / place for place in dict.fromkeys(places)]


def _missing() -> str | None:
    return None if all(map(importlib.util.find_spec, ("onnx", "torch_mlir"))) else _HINT


FRONTEND = Frontend(
    "onnx",
    (".onnx",),
    _load,
    "models of ONNX",
    {"entry": "the entry's name (default: the file's)"},
    _missing,
    _beside,
)
