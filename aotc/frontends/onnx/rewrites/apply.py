"""Applies rewrites: replaces operators that torch-mlir lowers wrongly or not at all by other
operators.

The body of a rewrite is written in ONNX's text format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from aotc.errors import InputError
from aotc.frontends.onnx.functions import all_nodes, kind_of, unknown_operator
from aotc.frontends.onnx.nodes import Node, opset_of, walk
from aotc.frontends.onnx.rewrites.arithmetic import ARITHMETIC_REWRITES
from aotc.frontends.onnx.rewrites.bitcasts import BITCAST_REWRITES
from aotc.frontends.onnx.rewrites.body import Rewrite
from aotc.frontends.onnx.rewrites.convolutions import CONVOLUTION_REWRITES
from aotc.frontends.onnx.rewrites.fourier import FOURIER_REWRITES
from aotc.frontends.onnx.rewrites.implied_values import ImpliedValue
from aotc.frontends.onnx.rewrites.movement import MOVEMENT_REWRITES
from aotc.frontends.onnx.rewrites.narrow_types import QUANTIZED_REWRITES
from aotc.frontends.onnx.rewrites.normalizations import NORMALIZATION_REWRITES
from aotc.frontends.onnx.rewrites.optimizers import OPTIMIZER_REWRITES
from aotc.frontends.onnx.rewrites.pools import POOL_REWRITES
from aotc.frontends.onnx.rewrites.quantization import QUANTIZATION_REWRITES
from aotc.frontends.onnx.rewrites.recurrences import RECURRENCE_REWRITES
from aotc.frontends.onnx.rewrites.runtime_values import RUNTIME_REWRITES
from aotc.frontends.onnx.rewrites.sampling import SAMPLING_REWRITES
from aotc.frontends.onnx.rewrites.scans import SCAN_REWRITES
from aotc.frontends.onnx.rewrites.scatters import SCATTER_REWRITES
from aotc.frontends.onnx.rewrites.selections import SELECTION_REWRITES

_DOMAIN = "aotc"


def label_nodes(model: Any) -> None:
    """Gives each node the name that messages use: its operator and its own name. torch-mlir makes
    the locations of operations of it."""
    for part in (model.graph, *model.functions):
        for proto in list(all_nodes(part.node)):
            domain = f"{proto.domain}." if proto.domain else ""
            name = f" '{proto.name}'" if proto.name else ""
            proto.name = f"onnx.{domain}{proto.op_type}{name}"


def expand_functions(model: Any) -> Any:
    """The model with its own functions inlined."""
    from onnx import helper, inliner

    _unify_opsets(model)
    model.graph.value_info.add(name="")
    model.graph.value_info.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )
    chosen = [(function.domain, function.name) for function in model.functions]
    return _labelled(inliner.inline_selected_functions(model, chosen, False, True), model)


def _unify_opsets(model: Any) -> None:
    """Sets the opset of each function to that of the model, which onnx's inliner requires. The
    versions of the function's operators are the same in both opsets, because onnx does not load
    other models."""
    for function in model.functions:
        for own in function.opset_import:
            if own.domain in ("", "ai.onnx"):
                own.version = opset_of(model)


def rewrite(
    model: Any,
    rewrites: Sequence[Rewrite] | None = None,
    kinds: Set[str] = frozenset(),
    most: int | None = None,
) -> Any:
    """Returns the model with operators rewritten that torch-mlir lowers wrongly, and nodes of the
    `kinds`, which it refuses. At most the first `most` nodes are rewritten."""
    functions: list[Any] = []
    for node, one in list(_rewritable(model, REWRITES if rewrites is None else rewrites)):
        if one.is_last and kind_of(node) not in kinds:
            continue
        if most is not None and len(functions) == most:
            break
        text = None if node.proto.domain == _DOMAIN else one.body(node)
        if text is not None:
            name = f"{node.operator}_{len(functions)}"
            functions.append(_function(model, node, name, one.signed(node), text))
            node.proto.op_type, node.proto.domain = name, _DOMAIN
            del node.proto.attribute[:]
    return _inlined(model, functions) if functions else model


def check_values(model: Any, values: Sequence[ImpliedValue]) -> Any:
    """Returns the model with checks of the run-time values that determine sizes, before the nodes
    that read them. It is the same object if there are none."""
    from onnx import helper

    functions: list[Any] = []
    calls: dict[str, list[Any]] = {}
    for node in walk(model):
        for one in values:
            text = one.body(node) if one.applies(node) else None
            if text is None:
                continue
            name = f"Check{node.operator}_{len(functions)}"
            functions.append(_function(model, node, name, f"({one.inputs}) => (y)", text))
            checked = f"{node.proto.output[0]}_{name}"
            call = helper.make_node(
                name, list(node.proto.input), [checked], node.proto.name, domain=_DOMAIN
            )
            node.proto.input[one.index] = checked
            calls.setdefault(node.proto.output[0], []).append(call)
    if not functions:
        return model
    _insert(model.graph, calls)
    return _inlined(model, functions)


def _insert(graph: Any, calls: Mapping[str, list[Any]]) -> None:
    """Inserts nodes before the node that defines the result under which they are listed."""
    protos = []
    for proto in graph.node:
        protos += [*calls.get(proto.output[0] if proto.output else "", ()), proto]
        for attribute in proto.attribute:
            for nested in (attribute.g, *attribute.graphs):
                _insert(nested, calls)
    copies = [type(proto).FromString(proto.SerializeToString()) for proto in protos]
    del graph.node[:]
    graph.node.extend(copies)


def _function(model: Any, node: Node, name: str, signature: str, text: str) -> Any:
    """The function that replaces a node. Raises InputError if it uses an operator that the model's
    opset does not have; the front end then converts the model to a newer opset."""
    from onnx import parser

    opset = opset_of(model)
    imports = f'<domain: "{_DOMAIN}", opset_import: ["" : {opset}]>'
    function = parser.parse_function(f"{imports}\n{name} {signature} {{\n{text}\n}}")
    unknown = unknown_operator(function, opset)
    if unknown is not None:
        raise InputError(
            f"{node.proto.name} of opset {opset} is computed by {unknown} of a newer opset. "
            "Convert the model with onnx.version_converter."
        )
    return function


def _inlined(model: Any, functions: list[Any]) -> Any:
    """The model with these functions of aotc's inlined."""
    from onnx import helper, inliner

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
    """Names the nodes that were inlined from a function after its call. They have no names, and are
    before the node that defines the results of the call."""
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
    *POOL_REWRITES,
    *QUANTIZATION_REWRITES,
    *RECURRENCE_REWRITES,
    *SCATTER_REWRITES,
)

_LAST = frozenset((one.domain, one.operator) for one in REWRITES if one.is_last)


def has_last_rewrite(node: Node) -> bool:
    """Whether there is a rewrite for nodes of this operator that torch-mlir refuses."""
    return (node.proto.domain, node.operator) in _LAST
