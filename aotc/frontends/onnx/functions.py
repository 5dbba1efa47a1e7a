"""Replaces operators by the function bodies that ONNX defines for them.

onnx's own inliner does not support bodies that depend on the types of optional inputs, and fails an
assertion for some others. Here each body is inlined node by node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from aotc.frontends.onnx.nodes import Node, walk

# The prefix of names in inlined bodies and branches. A number follows it.
PREFIX = "aotc_"
# The deepest nesting of functions.
_DEEPEST = 8
# Operators that are always replaced by their body, because torch-mlir lowers them wrongly or not at
# all.
EXPANDED = frozenset(
    "AffineGrid Attention Bernoulli BlackmanWindow CausalConvWithState CenterCropPad "
    "DynamicQuantizeLinear FlexAttention HammingWindow HannWindow LinearAttention "
    "MeanVarianceNormalization RMSNormalization RotaryEmbedding SwiGLU Swish".split()
)


def kind_of(node: Node) -> str:
    """A key for nodes of which either all or none are replaced: operator, element types and
    attributes."""
    attributes = sorted(str(attribute) for attribute in node.proto.attribute)
    elements = [node.element(index) for index in range(len(node.proto.input))]
    return f"{node.proto.domain} {node.operator} {elements} {attributes}"


def has_body(node: Node) -> bool:
    """Whether ONNX defines a function body for the operator of a node."""
    schema = _schema(node)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def bind_defaults(model: Any) -> None:
    """Adds the default values of attributes to the nodes that are always replaced by a body. onnx
    ignores these defaults when it infers the types of a body."""
    for node in walk(model):
        schema = _schema(node) if node.operator in EXPANDED else None
        if schema is None:
            continue
        given = {attribute.name for attribute in node.proto.attribute}
        for name, attribute in schema.attributes.items():
            if name not in given and attribute.default_value.name:
                node.proto.attribute.append(attribute.default_value)


def expand(model: Any, is_chosen: Callable[[Node], bool], infer: Callable[[Any], Any]) -> Any:
    """Returns the model with the chosen nodes replaced by their bodies, recursively. It is the same
    object if there are none. `infer` returns a model with the types of its values; the given model
    must have these."""
    is_changed, number = False, first_number(model)
    for _ in range(_DEEPEST):
        if is_changed:
            model = infer(model)
        bodies = {}
        for node in walk(model):
            if has_body(node) and is_chosen(node):
                body = body_of(node)
                if body is not None:
                    bodies[_key(node.proto)] = node, body
        if not bodies:
            break
        is_changed = True
        number = _replace(model.graph, bodies, number)
        for opset in {one.domain: one for _, body in bodies.values() for one in body.opset_import}:
            if opset and opset not in {one.domain for one in model.opset_import}:
                model.opset_import.add(domain=opset, version=1)
    return model


def first_number(model: Any) -> int:
    """The first number N such that no name of a value in the model begins with `PREFIX` and N or a
    larger number."""
    names = (name for node in walk(model) for name in (*node.proto.output, *node.proto.input))
    found = [re.match(rf"{PREFIX}(\d+)_", name) for name in names]
    return 1 + max((int(one[1]) for one in found if one), default=-1)


def _key(proto: Any) -> tuple[str, ...]:
    """The identity of a node in a graph: its operator and results."""
    return (proto.op_type, *proto.output)


def _schema(node: Node) -> Any:
    from onnx import defs

    version = node.opset if not node.proto.domain else 1
    try:
        return defs.get_schema(node.operator, version, node.proto.domain)
    except defs.SchemaError:
        return None


def body_of(node: Node) -> Any:
    """The body of a node as a FunctionProto. None if there is none for its types, or if each uses
    operators that the model's opset does not have."""
    import onnx

    schema = _schema(node)
    versions = [*schema.function_opset_versions, *schema.context_dependent_function_opset_versions]
    types = [
        node.types[name].SerializeToString() if name in node.types else b""
        for name in node.proto.input
    ]
    for version in sorted(set(versions), reverse=True):
        if version > node.opset and not node.proto.domain:
            continue
        if version in schema.function_opset_versions:
            text = schema.get_function_with_opset_version(version)
        else:
            text = schema.get_context_dependent_function_with_opset_version(
                version, node.proto.SerializeToString(), types
            )
        if not text:
            continue
        body = onnx.FunctionProto()
        body.ParseFromString(text)
        bind(body, node, schema)
        if unknown_operator(body, node.opset) is None:
            return body
    return None


def unknown_operator(body: Any, opset: int) -> str | None:
    """The first operator of a body that the opset does not have. None if it has all of them."""
    unknown = (proto for proto in all_nodes(body.node) if not _is_known(proto, opset))
    return next((str(proto.op_type) for proto in unknown), None)


def _is_known(proto: Any, opset: int) -> bool:
    """Whether the opset has the operator of a node with its attributes and number of inputs. In
    another opset than that of the body, attributes may be inputs."""
    from onnx import defs

    if proto.domain:
        return True
    try:
        schema = defs.get_schema(proto.op_type, opset, "")
    except defs.SchemaError:
        return False
    # Attributes with aotc's prefix are notes for later steps.
    names = {attribute.name for attribute in proto.attribute}
    given = {name for name in names if not name.startswith(PREFIX)}
    needed = {name for name, attribute in schema.attributes.items() if attribute.required}
    return (
        needed <= given <= set(schema.attributes)
        and schema.min_input <= len(proto.input) <= schema.max_input
    )


def bind(body: Any, node: Node, schema: Any) -> None:
    """Replaces references to attributes in a body by the attributes of the call, or their
    defaults."""
    values = {attribute.name: attribute for attribute in node.proto.attribute}
    for name, attribute in schema.attributes.items():
        if name not in values and attribute.default_value.name:
            values[name] = attribute.default_value
    for proto in all_nodes(body.node):
        bound = []
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in values:
                    copy = type(attribute)()
                    copy.CopyFrom(values[attribute.ref_attr_name])
                    copy.name = attribute.name
                    bound.append(copy)
            else:
                bound.append(attribute)
        kept = [type(one).FromString(one.SerializeToString()) for one in bound]
        del proto.attribute[:]
        proto.attribute.extend(kept)


def all_nodes(protos: Iterable[Any]) -> Iterator[Any]:
    """The nodes and those of their nested graphs."""
    for proto in protos:
        yield proto
        for attribute in proto.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from all_nodes(graph.node)


def _replace(graph: Any, bodies: Mapping[tuple[str, ...], tuple[Node, Any]], number: int) -> int:
    """Inlines bodies in a graph and its nested graphs. Returns the next number for a prefix."""
    protos = []
    for proto in graph.node:
        found = bodies.get(_key(proto))
        if found is None:
            for attribute in proto.attribute:
                for nested in (attribute.g, *attribute.graphs):
                    number = _replace(nested, bodies, number)
            protos.append(proto)
        else:
            protos += inlined(found[1], proto, f"{PREFIX}{number}_")
            number += 1
    copies = [type(proto).FromString(proto.SerializeToString()) for proto in protos]
    del graph.node[:]
    graph.node.extend(copies)
    return number


def inlined(body: Any, call: Any, prefix: str) -> list[Any]:
    """The nodes of a body, with its parameters replaced by the values of a call. They get the name
    of the call."""
    from onnx import helper

    names = {"": ""}
    given = [*call.input, *[""] * (len(body.input) - len(call.input))]
    names.update(zip(body.input, given, strict=False))
    copied = []
    for inner, outer in zip(body.output, call.output, strict=False):
        if not outer:
            continue
        if inner in names:
            # A result that is also an input or another result needs a node of its own.
            copied.append(helper.make_node("Identity", [names[inner]], [outer], call.name))
        else:
            names[inner] = outer
    nodes = [type(one).FromString(one.SerializeToString()) for one in body.node]
    _rename(nodes, names, prefix, call.name)
    return [*nodes, *copied]


def _rename(nodes: Iterable[Any], names: dict[str, str], prefix: str, label: str) -> None:
    for proto in nodes:
        proto.name = label
        for place, name in enumerate(proto.input):
            proto.input[place] = names.setdefault(name, prefix + name)
        for attribute in proto.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                for value in (*graph.input, *graph.initializer):
                    value.name = names.setdefault(value.name, prefix + value.name)
                _rename(graph.node, names, prefix, label)
                for value in (*graph.output, *graph.value_info):
                    value.name = names.setdefault(value.name, prefix + value.name)
        for place, name in enumerate(proto.output):
            proto.output[place] = names.setdefault(name, prefix + name)
