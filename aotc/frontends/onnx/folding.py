"""Folds the computations of a model on constants and known sizes: sizes, axes and conditions.

Only small results of integers and booleans are folded here. The build folds the rest.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from aotc.frontends.onnx.elements import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)
from aotc.frontends.onnx.functions import PREFIX, first_number
from aotc.frontends.onnx.nodes import Node, constant_of, opset_of, sizes
from aotc.frontends.onnx.rewrites.body import EXPECTED

# Operators for which onnx's reference evaluator is right on integers and booleans.
_FOLDED = frozenset(
    "Abs Add And Cast CastLike Concat ConstantOfShape Div Equal Expand Flatten Gather Greater "
    "GreaterOrEqual Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Range ReduceMax ReduceMin "
    "ReduceProd ReduceSum Reshape Shape Size Slice Squeeze Sub Tile Transpose Unsqueeze Where "
    "Xor".split()
)
# The most elements of a result that is folded.
_MOST = 1 << 12
# Integers of at least 8 bits, and booleans.
_INTEGERS = frozenset((UINT8, INT8, UINT16, INT16, INT32, INT64, BOOL, UINT32, UINT64))


def fold(model: Any) -> bool:
    """Replaces nodes by constants, and each If with a constant condition by the branch that is
    taken. Returns whether anything changed."""
    prefixes = (f"{PREFIX}{number}_" for number in itertools.count(first_number(model)))
    return _fold_graph(model.graph, opset_of(model), {}, {}, prefixes)


def _fold_graph(
    graph: Any,
    opset: int,
    types: Mapping[str, Any],
    values: Mapping[str, Any],
    prefixes: Iterator[str],
) -> bool:
    """Folds a graph. `types` and `values` are those of the enclosing graphs. No name of the model
    begins with one of the `prefixes`."""
    from onnx import helper, numpy_helper

    own = _own_names(graph)
    values = {name: value for name, value in values.items() if name not in own}
    types = {
        **{name: type_ for name, type_ in types.items() if name not in own},
        **{one.name: one.type for one in (*graph.input, *graph.output, *graph.value_info)},
    }
    known = dict(values)
    for tensor in graph.initializer:
        most = _MOST if tensor.data_type in _INTEGERS else 1
        if tensor.data_location != tensor.EXTERNAL and np.prod(tensor.dims) <= most:
            known[tensor.name] = numpy_helper.to_array(tensor)
    kept: list[Any] = []
    local = _brought(graph, values)
    known.update(local)
    waiting = [*_constants(local), *graph.node]
    is_changed, is_nested = bool(local), False
    while waiting:
        proto = waiting.pop(0)
        branch = _branch(proto, known)
        if branch is not None:
            is_changed = True
            branch = _renamed(branch, next(prefixes))
            types.update((one.name, one.type) for one in branch.value_info)
            waiting = [*_taken(branch, proto), *waiting]
            continue
        parts = _parts(proto, known)
        if parts is not None:
            is_changed = True
            waiting = [*_constants(parts), *waiting]
            continue
        found = _value(proto, opset, types, known)
        if found is None:
            for name in proto.output:
                known.pop(name, None)
            for attribute in proto.attribute:
                for nested in (attribute.g, *attribute.graphs):
                    is_nested |= _fold_graph(nested, opset, types, known, prefixes)
        else:
            known[proto.output[0]] = found
            if proto.op_type != "Constant":
                is_changed = True
                tensor = numpy_helper.from_array(found, proto.output[0])
                made = helper.make_node("Constant", [], proto.output, proto.name, value=tensor)
                proto = made
        kept.append(proto)
    if is_changed:
        copies = [type(proto).FromString(proto.SerializeToString()) for proto in kept]
        del graph.node[:]
        graph.node.extend(copies)
    return is_changed or is_nested


def _brought(graph: Any, outer: Mapping[str, Any]) -> dict[str, Any]:
    """Copies constants of the enclosing graphs that nodes of this graph read, and renames their
    uses, because onnx only sees the values of a graph itself. Returns the constants by their new
    names."""
    brought = {}
    for proto in graph.node:
        for place, name in enumerate(proto.input):
            if name in outer and outer[name].dtype.kind in "iub":
                own = f"{name}_in_{graph.name or 'graph'}"
                brought[own] = outer[name]
                proto.input[place] = own
    return brought


def _parts(proto: Any, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """The results of a Split of a constant, by name. None for other nodes."""
    if proto.op_type != "Split" or proto.domain or any(one not in known for one in proto.input):
        return None
    value = known[proto.input[0]]
    axis = next((one.i for one in proto.attribute if one.name == "axis"), 0)
    if value.dtype.kind not in "iub":
        return None
    count = len(proto.output)
    size = -(-value.shape[axis] // count)
    sizes_ = known[proto.input[1]] if len(proto.input) > 1 else [size] * count
    parts = np.split(value, np.cumsum(sizes_)[:-1], axis)
    return dict(zip(proto.output, parts, strict=True))


def _constants(values: Mapping[str, Any]) -> list[Any]:
    from onnx import helper, numpy_helper

    return [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))
        for name, value in values.items()
    ]


def _branch(proto: Any, known: Mapping[str, Any]) -> Any:
    """The graph that an If with a known condition runs. None for other nodes."""
    if proto.op_type != "If" or proto.domain or proto.input[0] not in known:
        return None
    name = "then_branch" if bool(known[proto.input[0]].reshape(-1)[0]) else "else_branch"
    return next(one.g for one in proto.attribute if one.name == name)


def _own_names(graph: Any) -> set[str]:
    """The names of the values that a graph itself defines."""
    given = (value.name for value in (*graph.input, *graph.initializer))
    return {*given, *(name for proto in graph.node for name in proto.output)} - {""}


def _renamed(branch: Any, prefix: str) -> Any:
    """A copy of a branch whose own values have a prefix. Two branches may use the same names, and
    the enclosing graph may not."""
    branch = type(branch).FromString(branch.SerializeToString())
    _rename(branch, {name: prefix + name for name in _own_names(branch)})
    return branch


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Renames values in a graph and its nested graphs. A nested graph may shadow a name."""
    for value in (*graph.initializer, *graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for proto in graph.node:
        proto.input[:] = [names.get(name, name) for name in proto.input]
        proto.output[:] = [names.get(name, name) for name in proto.output]
        for attribute in proto.attribute:
            for nested in (attribute.g, *attribute.graphs):
                hidden = _own_names(nested)
                _rename(nested, {name: names[name] for name in names if name not in hidden})


def _taken(branch: Any, call: Any) -> list[Any]:
    """The nodes of a branch, which define the results of the If."""
    from onnx import helper

    nodes = []
    for tensor in branch.initializer:
        nodes.append(helper.make_node("Constant", [], [tensor.name], call.name, value=tensor))
    nodes += [type(one).FromString(one.SerializeToString()) for one in branch.node]
    nodes += [
        helper.make_node("Identity", [value.name], [name], call.name)
        for value, name in zip(branch.output, call.output, strict=False)
        if name
    ]
    return nodes


def _value(
    proto: Any, opset: int, types: Mapping[str, Any], known: Mapping[str, Any]
) -> np.ndarray[Any, Any] | None:
    """The value of a node with one result, if it is a small constant of integers."""
    if proto.domain or len(proto.output) != 1:
        return None
    if any(one.name == EXPECTED for one in proto.attribute):
        return None
    node = Node(proto, opset, types, {})
    if proto.op_type == "Constant":
        return _constant(node)
    if proto.op_type in ("Shape", "Size"):
        return _size(node)
    if proto.op_type not in _FOLDED or not proto.input:
        return None
    if any(name and name not in known for name in proto.input):
        return None
    made = types.get(proto.output[0])
    if made is not None and made.tensor_type.elem_type not in _INTEGERS:
        return None
    if proto.op_type == "ConstantOfShape" and np.prod(known[proto.input[0]]) > _MOST:
        return None
    if proto.op_type in ("Expand", "Tile") and np.prod(known[proto.input[1]]) > _MOST:
        return None
    given = {name: known[name] for name in proto.input if name}
    if proto.op_type in ("Div", "Mod") and any((value <= 0).any() for value in given.values()):
        return None
    return _evaluated(proto, opset, given)


def _constant(node: Node) -> np.ndarray[Any, Any] | None:
    from onnx import numpy_helper

    tensor = constant_of(node.proto)
    if tensor is None or tensor.data_type == STRING or np.prod(tensor.dims) > _MOST:
        return None
    if tensor.data_location == tensor.EXTERNAL:
        return None
    return np.asarray(numpy_helper.to_array(tensor))


def _size(node: Node) -> np.ndarray[Any, Any] | None:
    tensor = node.tensor(node.proto.input[0])
    known = None if tensor is None else sizes(tensor)
    if known is None:
        return None
    if node.operator == "Shape":
        known = known[slice(node.attribute("start", 0), node.attribute("end"))]
    if None in known:
        return None
    shape = np.array(known, np.int64)
    return shape if node.operator == "Shape" else np.array(np.prod(shape), np.int64)


def _evaluated(proto: Any, opset: int, given: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """The result of onnx's reference evaluator. None if it is not a small tensor of integers, or if
    the evaluation fails."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in given.items()
    ]
    result = helper.make_tensor_value_info(proto.output[0], TensorProto.UNDEFINED, None)
    graph = helper.make_graph([proto], "constant", inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (value,) = ReferenceEvaluator(model).run(None, dict(given))
    except Exception:  # of many types; the node is not folded
        return None
    value = np.asarray(value)
    return value if value.dtype.kind in "iub" and value.size <= _MOST else None
