"""The front end for ONNX models (`.onnx`), built on torch-mlir's importer.

External weights are read from files beside the model, as ONNX defines. Operators are lowered by
torch-mlir's `TorchOnnxToTorch`; onnx infers shapes before.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotc.errors import InputError
from aotc.frontends.registry import Frontend

_HINT = "pip install 'aotc[onnx]'"


def _load(path: Path, options: Mapping[str, str]) -> Any:
    import onnx  # type: ignore[import-not-found, unused-ignore]
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped, unused-ignore]

    # These modules load NumPy, which files of other front ends do not need.
    from aotc.frontends.onnx.checks import PROBLEMS, check_weights
    from aotc.frontends.onnx.held import put_held, take_held
    from aotc.frontends.onnx.packed_weights import pack_narrow_weights
    from aotc.frontends.onnx.preparation import bound_steps, infer, take_weights
    from aotc.frontends.onnx.schemas import check_nodes
    from aotc.frontends.onnx.versions import newer

    try:
        model = onnx.load(path)
        open_values = _without_shape(model)
        if open_values:
            _check_without_shapes(model, open_values)
            _infer_outputs(model)
        else:
            onnx.checker.check_model(path)
    except (
        OSError,
        ValueError,
        DecodeError,
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
    ) as error:
        raise InputError(f"onnx cannot load '{path}': {error}") from None
    _check_opset(model)
    name = options.get("entry", path.name.split(".")[0])
    check_weights(model)
    patterns = [word for word in options.get("replaceable", "").split(",") if word]
    held = take_held(model, patterns)
    weights = take_weights(model)
    # onnx's inference needs memory without end for some large steps.
    bound_steps(model)
    check_nodes(infer(model, strict=False))
    pack_narrow_weights(model, weights)
    weights |= take_weights(model)
    original = copy.deepcopy(model)
    try:
        module = _imported(model, weights, name)
    except InputError as error:
        # A model that was refused for its own opset must not be converted to one that gives it
        # another meaning.
        converted = None if error.message.startswith(PROBLEMS) else newer(original)
        if converted is None:
            raise
        module = _imported(converted, weights, name)
    return put_held(module, held) if held else module


def _without_shape(model: Any) -> list[Any]:
    """The model's inputs and results that are tensors without a declared shape."""
    return [
        value
        for value in (*model.graph.input, *model.graph.output)
        if value.type.WhichOneof("value") in (None, "tensor_type")
        and not value.type.tensor_type.HasField("shape")
    ]


def _check_without_shapes(model: Any, open_values: list[Any]) -> None:
    """onnx's check of a model. It requires a type of each of the `open_values`, and ONNX Runtime
    does not: they have one during the check."""
    import onnx

    elements = [value.type.tensor_type.elem_type for value in open_values]
    for value, element in zip(open_values, elements, strict=True):
        value.type.tensor_type.shape.SetInParent()
        value.type.tensor_type.elem_type = element or onnx.TensorProto.FLOAT
    onnx.checker.check_model(model)
    for value, element in zip(open_values, elements, strict=True):
        value.type.tensor_type.ClearField("shape")
        value.type.tensor_type.elem_type = element


def _check_opset(model: Any) -> None:
    """Raises InputError for a model of an opset that onnx does not know: its operators may have
    another meaning there."""
    import onnx

    from aotc.frontends.onnx.nodes import opset_of

    opset, newest = opset_of(model), onnx.defs.onnx_opset_version()
    if opset > newest:
        raise InputError(
            f"The model is of opset {opset}, and onnx {onnx.__version__} knows those up to "
            f"{newest}.",
            hint="Install a newer onnx, or convert the model with onnx.version_converter.",
        )


def _infer_outputs(model: Any) -> None:
    """Gives the model's results without a declared shape the types that onnx infers. onnx requires
    a type, and ONNX Runtime does not. Sizes are inferred later."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    types = {value.name: value.type for value in inferred.graph.output}
    for value in model.graph.output:
        if not value.type.tensor_type.HasField("shape"):
            value.type.CopyFrom(types[value.name])
            for size in value.type.tensor_type.shape.dim:
                size.Clear()


def _imported(model: Any, weights: Mapping[str, bytes], name: str) -> Any:
    """Imports a model. If a node is refused for which ONNX defines a function body, the import is
    repeated with the body."""
    from aotc.frontends.onnx.checks import check_model
    from aotc.frontends.onnx.importer import import_model, refused_kinds
    from aotc.frontends.onnx.nodes import opset_of
    from aotc.frontends.onnx.preparation import prepare, put_weights

    expanded: set[str] = set()
    while True:
        # `prepare` changes the model in place, and the import changes the model with the weights.
        prepared = prepare(copy.deepcopy(model), expanded)
        try:
            check_model(prepared)
            tried = copy.deepcopy(prepared)
            put_weights(tried, weights)
            return import_model(tried, name)
        except InputError as error:
            refused = error
        more = refused_kinds(prepared) - expanded
        if not more:
            raise InputError(f"{refused.message}\n  (opset {opset_of(model)})")
        expanded |= more


def _beside(path: Path) -> list[Path]:
    """The files that have the model's external weights."""
    # The key of an entry of external data (onnx.proto, TensorProto.external_data). This check
    # avoids the import of onnx, which takes a fifth of a second.
    if b"location" not in path.read_bytes():
        return []
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
    {
        "entry": "the entry's name (default: the file's)",
        "replaceable": "the names of initializers to replace, with commas (default: --replaceable)",
    },
    _missing,
    _beside,
)
