"""Lowers ONNX models to linalg on tensors, by torch-mlir."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.onnx.bitcasts import count_bitcasts, lower_bitcasts
from aotc.frontends.onnx.checks import has_problems
from aotc.frontends.onnx.expands import lower_expands, note_sizes
from aotc.frontends.onnx.functions import has_body, kind_of
from aotc.frontends.onnx.loops import lower_loops, note_rows
from aotc.frontends.onnx.nodes import Node, walk
from aotc.frontends.onnx.rewrites.apply import has_last_rewrite
from aotc.frontends.onnx.sizes import check_batches, check_repeats, check_sizes
from aotc.frontends.torch_mlir.divisions import check_divisors
from aotc.frontends.torch_mlir.entry import check_dialects, make_entry
from aotc.frontends.torch_mlir.integers import keep_integers
from aotc.frontends.torch_mlir.nans import propagate_nans
from aotc.frontends.torch_mlir.passes import (
    QUANTIZED_FUSION,
    VERIFICATION,
    run_passes,
    without_passes,
)
from aotc.frontends.torch_mlir.reads import check_reads
from aotc.frontends.torch_mlir.shifts import bound_shifts
from aotc.frontends.torch_mlir.widening import widen_elements

_CANNOT = "torch-mlir cannot lower this model: "
# The most nodes that are lowered separately to find the one that cannot be lowered.
_MOST_TRIED = 30

# The pipelines from ONNX's operators to linalg on tensors. The backend-legal operators are kept
# until the second pipeline, which lowers them to a shorter form.
_TO_TORCH = "func.func(convert-torch-onnx-to-torch)"
_PIPELINE = (
    "torch-onnx-to-torch-backend-pipeline"
    "{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline"
)


def import_model(model: Any, name: str) -> Any:
    """Imports a model as an `ir.Module` of linalg on tensors, with one entry. Messages refer to
    nodes by their names."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    note_sizes(model)
    note_rows(model)
    bitcasts = count_bitcasts(model)
    try:
        module = _lower(model)
    except InputError as error:
        if "onnx." in error.message:
            raise
        raise _of_one_node(model) or error from None
    lower_bitcasts(module.operation, bitcasts)
    check_sizes(module.operation)
    check_batches(module.operation)
    check_repeats(module.operation)
    propagate_nans(module)
    bound_shifts(module)
    check_divisors(module)
    check_reads(module)
    return make_entry(
        module,
        name,
        [value.name for value in inputs],
        unsigned_arguments=_unsigned(inputs),
        unsigned_results=_unsigned(model.graph.output),
    )


def _unsigned(values: Sequence[Any]) -> list[int]:
    """The indices of tensors of unsigned integers."""
    from onnx import TensorProto

    types = TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64
    return [i for i, value in enumerate(values) if value.type.tensor_type.elem_type in types]


def _lower(model: Any) -> Any:
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer

    context = ir.Context()
    context.emit_error_diagnostics = False
    torch_dialect.register_dialect(context)
    try:
        info = onnx_importer.ModelInfo(model, config=onnx_importer.Config())
        module = info.create_module(context=context)
        with warnings.catch_warnings():
            # Optional results that a node omits have no type, for which a warning would be printed.
            warnings.simplefilter("ignore")
            onnx_importer.NodeImporter.define_function(
                info.main_graph, module.operation
            ).import_all()
    except (onnx_importer.OnnxImportError, ir.MLIRError) as error:
        raise InputError(_CANNOT + _reason(error)) from error
    lower_expands(module)
    lower_loops(module)
    explained = lambda error: _CANNOT + _reason(error)  # noqa: E731
    module = run_passes(module, _TO_TORCH, explained)
    keep_integers(module)
    widen_elements(module)
    left_out = [QUANTIZED_FUSION]
    # The verification also refuses `arith.select` of tensors, which a branch of given values
    # becomes.
    if ops.find(module.operation, "torch.prim.If"):
        left_out.append(VERIFICATION)
    with module.context:
        pipeline = without_passes(_PIPELINE, *left_out)
    module = run_passes(module, pipeline, explained)
    with module.context:
        check_dialects(module.operation)
    return module


def refused_kinds(model: Any) -> set[str]:
    """The kinds of nodes that are refused, and for which there is a body or a rewrite."""
    found = set()
    tried: set[str] = set()
    for node in walk(model):
        kind = kind_of(node)
        if kind in found or kind in tried or len(tried) == _MOST_TRIED:
            continue
        if not has_body(node) and not has_last_rewrite(node):
            continue
        if has_problems(node, model):
            found.add(kind)
            continue
        tried.add(kind)
        alone = _alone(node, model)
        if alone is not None and _error_of(alone) is not None:
            found.add(kind)
    return found


def _error_of(model: Any) -> InputError | None:
    try:
        _lower(model)
    except InputError as error:
        return error
    return None


def _of_one_node(model: Any) -> InputError | None:
    """The error for the first node that cannot be lowered separately, or None."""
    tried: set[tuple[str, str]] = set()
    for node in walk(model):
        alone = _alone(node, model)
        kind = (kind_of(node), str([*map(node.shape, range(len(node.proto.input)))]))
        if alone is None or len(tried) == _MOST_TRIED or kind in tried:
            continue
        tried.add(kind)
        error = _error_of(alone)
        if error is not None:
            reason = error.message.removeprefix(_CANNOT)
            return InputError(f"{_CANNOT}{node.proto.name}: {reason}")
    return None


def _alone(node: Node, model: Any) -> Any:
    """A model with only this node. None if the node has nested graphs."""
    from onnx import AttributeProto, TensorProto, helper

    # onnx's inliner leaves an empty graph in attributes that are no graphs.
    of_graphs = AttributeProto.GRAPH, AttributeProto.GRAPHS
    if any(attribute.type in of_graphs for attribute in node.proto.attribute):
        return None
    read, made = (
        [helper.make_value_info(name, node.types[name]) for name in dict.fromkeys(names) if name]
        for names in (node.proto.input, node.proto.output)
    )
    constants = []
    for value in read:
        if value.name in node.constants:
            constants.append(TensorProto())
            constants[-1].CopyFrom(node.constants[value.name])
            constants[-1].name = value.name
    graph = helper.make_graph([node.proto], "alone", read, made, constants)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _reason(error: Exception) -> str:
    """The reason of a refusal: ONNX's operator, and MLIR's first diagnostic."""
    found = [_said(diagnostic) for diagnostic in getattr(error, "error_diagnostics", ())]
    # Some diagnostics have no location, but are caused by an operation that has one.
    placed = [text for text in found if text.startswith("onnx.")]
    said = [*placed, *found, str(error) or type(error).__name__][0]
    # What could not be legalized, or was not valid, is not the model's operator; often it is a
    # constant.
    what = "torch-mlir has no lowering for it with these types and attributes"
    unclear = r"^(onnx\.\S+: )?.*(?:failed to legalize |!torch\.|' op ).*"
    return re.sub(unclear, rf"\1{what}", said, flags=re.DOTALL)


def _said(diagnostic: Any) -> str:
    # The printed operation follows the message.
    message = str(diagnostic.message).partition(": %")[0]
    place = re.fullmatch(r'loc\("(onnx\..*)"\)', str(diagnostic.location))
    return f"{place[1]}: {message}" if place else message
