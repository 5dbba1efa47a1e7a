"""Operators that torch-mlir lowers wrongly, or not at all, in terms of others.

Some are functions that ONNX itself defines; the bodies of the others are written here, in ONNX's
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from aotc.frontends.onnx.functions import kind_of
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.rewrites.arithmetic import ARITHMETIC_REWRITES
from aotc.frontends.onnx.rewrites.bitcasts import BITCAST_REWRITES
from aotc.frontends.onnx.rewrites.body import Rewrite
from aotc.frontends.onnx.rewrites.convolutions import CONVOLUTION_REWRITES
from aotc.frontends.onnx.rewrites.fourier import FOURIER_REWRITES
from aotc.frontends.onnx.rewrites.movement import MOVEMENT_REWRITES
from aotc.frontends.onnx.rewrites.narrow_types import QUANTIZED_REWRITES
from aotc.frontends.onnx.rewrites.normalizations import NORMALIZATION_REWRITES
from aotc.frontends.onnx.rewrites.optimizers import OPTIMIZER_REWRITES
from aotc.frontends.onnx.rewrites.quantization import QUANTIZATION_REWRITES
from aotc.frontends.onnx.rewrites.recurrences import RECURRENCE_REWRITES
from aotc.frontends.onnx.rewrites.runtime_values import RUNTIME_REWRITES
from aotc.frontends.onnx.rewrites.sampling import SAMPLING_REWRITES
from aotc.frontends.onnx.rewrites.scans import SCAN_REWRITES
from aotc.frontends.onnx.rewrites.scatters import SCATTER_REWRITES
from aotc.frontends.onnx.rewrites.selections import SELECTION_REWRITES

_DOMAIN = "aotc"


def label_nodes(model: Any) -> None:
    """Calls each node as messages do, by its operator and name. It is what torch-mlir makes the
    locations of operations of."""
    for node in list(walk(model)):
        domain = f"{node.proto.domain}." if node.proto.domain else ""
        name = f" '{node.proto.name}'" if node.proto.name else ""
        node.proto.name = f"onnx.{domain}{node.operator}{name}"


def expand_functions(model: Any) -> Any:
    """The model with its own functions in the place of their calls."""
    from onnx import helper, inliner

    model.graph.value_info.add(name="")
    model.graph.value_info.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )
    chosen = [(function.domain, function.name) for function in model.functions]
    return _labelled(inliner.inline_selected_functions(model, chosen, False, True), model)


def rewrite(
    model: Any, rewrites: Sequence[Rewrite] | None = None, kinds: Set[str] = frozenset()
) -> Any:
    """The model with others in the place of operators that torch-mlir has wrong, or of nodes of
    these kinds, which it has not."""
    from onnx import helper, inliner, parser

    opset = f'<domain: "{_DOMAIN}", opset_import: ["" : {opset_of(model)}]>'
    functions: list[Any] = []
    for node, one in list(_rewritable(model, REWRITES if rewrites is None else rewrites)):
        if one.is_last and kind_of(node) not in kinds:
            continue
        text = None if node.proto.domain == _DOMAIN else one.body(node)
        if text is not None:
            name = f"{node.operator}_{len(functions)}"
            body = f"{opset}\n{name} {one.signed(node)} {{\n{text}\n}}"
            functions.append(parser.parse_function(body))
            node.proto.op_type, node.proto.domain = name, _DOMAIN
            del node.proto.attribute[:]
    if not functions:
        return model
    model.functions.extend(functions)
    if all(one.domain != _DOMAIN for one in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    chosen = [(_DOMAIN, function.name) for function in functions]
    return _labelled(inliner.inline_selected_functions(model, chosen), model)


def _rewritable(model: Any, rewrites: Sequence[Rewrite]) -> Iterator[tuple[Node, Rewrite]]:
    for node in walk(model):
        for one in rewrites:
            if one.operator == node.operator and node.proto.domain == one.domain:
                yield node, one


def _labelled(model: Any, before: Any) -> Any:
    """The model, in which the nodes of a function are called as its call was: they have no names,
    and stand before what makes the results of the call."""
    labels = {name: node.proto.name for node in walk(before) for name in node.proto.output if name}
    label = ""
    for node in reversed(list(walk(model))):
        if node.proto.name:
            continue
        found = [labels[name] for name in node.proto.output if name in labels]
        label = found[0] if found else label
        node.proto.name = label
    return model


REWRITES = (
    *RUNTIME_REWRITES,
    *QUANTIZED_REWRITES,
    *SAMPLING_REWRITES,
    *SCAN_REWRITES,
    *FOURIER_REWRITES,
    *SELECTION_REWRITES,
    *BITCAST_REWRITES,
    *ARITHMETIC_REWRITES,
    *CONVOLUTION_REWRITES,
    *MOVEMENT_REWRITES,
    *NORMALIZATION_REWRITES,
    *OPTIMIZER_REWRITES,
    *QUANTIZATION_REWRITES,
    *RECURRENCE_REWRITES,
    *SCATTER_REWRITES,
)

_LAST = frozenset((one.domain, one.operator) for one in REWRITES if one.is_last)


def has_last_rewrite(node: Node) -> bool:
    """Whether there is a body for nodes of the operator that torch-mlir refuses."""
    return (node.proto.domain, node.operator) in _LAST
