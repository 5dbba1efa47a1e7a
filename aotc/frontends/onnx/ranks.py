"""Shapes of values that the model does not declare, and that ONNX does not infer: of loop-carried
values, because a loop may change sizes, and of results whose sizes are computed. Models of
PyTorch's exporter do not declare the former, those of tf2onnx not the latter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from aotc.frontends.onnx.nodes import Node, walk

# The numbers of arguments and of results of a Loop's body that precede the loop-carried values.
_ARGUMENTS, _RESULTS = 2, 1
# The number of the input that has the sizes of an operator's result.
_SIZES = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}


def give_computed_ranks(model: Any, infer: Callable[[Any], Any]) -> None:
    """Declares the ranks of results whose sizes are computed: the number of the sizes. onnx gives
    such a result no rank if it cannot follow the computation."""
    placed = [one for one in _placed(model.graph) if one[1].op_type in _SIZES]
    is_changed = any(
        proto.output and not _is_declared(graph, proto.output[0]) for graph, proto in placed
    )
    while is_changed:
        nodes = [node for node in walk(infer(model)) if node.operator in _SIZES]
        is_changed = False
        for (graph, proto), node in zip(placed, nodes, strict=True):
            tensor, rank = node.tensor(proto.output[0]), _computed_rank(node)
            # Without an element type, the result would get a type that is wrong.
            if rank is None or tensor is None or tensor.HasField("shape"):
                continue
            _put(graph, proto.output[0], tensor.elem_type, [0] * rank)
            is_changed = True


def _computed_rank(node: Node) -> int | None:
    """The rank of the first result, if it follows from the number of its sizes."""
    listed = node.shape(_SIZES[node.operator])
    if listed is None or len(listed) != 1 or listed[0] is None:
        return None
    given = node.shape(0)
    if node.operator != "Expand":
        return listed[0]
    return None if given is None else max(listed[0], len(given))


def give_ranks(model: Any, infer: Callable[[Any], Any]) -> None:
    """Declares the shapes of loop-carried values, which are those before the first iteration. A
    size that an iteration changes is declared as unknown."""
    # Shapes that the model declares are kept.
    unknown = [
        (number, graph, proto, place, is_open, is_undeclared)
        for number, (graph, proto) in enumerate(
            one for one in _placed(model.graph) if _is_loop(one[1])
        )
        for place, value in enumerate(_body(proto).input[_ARGUMENTS:])
        if value.type.HasField("tensor_type")
        for is_open in [not _has_shape(value)]
        for is_undeclared in [not _is_declared(graph, proto.output[place])]
        if is_open or is_undeclared
    ]
    # Each round gives a rank, or takes sizes back.
    is_changed = bool(unknown)
    while is_changed:
        # Bodies may have names of other bodies: a loop is known by its number.
        loops = [node for node in walk(infer(model)) if _is_loop(node.proto)]
        is_changed = False
        for number, graph, proto, place, is_open, is_undeclared in unknown:
            argument = _body(proto).input[_ARGUMENTS + place]
            if is_open:
                before = _dims(loops[number].types.get(proto.input[_ARGUMENTS + place]))
                after = _dims(_body(loops[number].proto).output[_RESULTS + place].type)
                is_changed |= _agree(argument, before, after)
            if is_undeclared:
                is_changed |= _declare(graph, proto.output[place], argument)


def _agree(argument: Any, before: list[int] | None, after: list[int] | None) -> bool:
    """Declares the sizes of a body's argument that hold before and after an iteration. Returns
    whether this changes the declaration."""
    if before is None:
        return False
    own = _dims(argument.type)
    sizes = before if own is None else own
    if own is not None and after is not None and len(after) == len(sizes):
        sizes = [a if a == b else 0 for a, b in zip(sizes, after, strict=True)]
    if sizes == own:
        return False
    _write(argument, sizes)
    return True


def _declare(graph: Any, name: str, argument: Any) -> bool:
    """Declares a loop's result with the sizes of the corresponding argument of its body."""
    sizes = _dims(argument.type)
    if sizes is None or not name:
        return False
    return _put(graph, name, argument.type.tensor_type.elem_type, sizes)


def _put(graph: Any, name: str, element: int, sizes: list[int]) -> bool:
    """Declares the type of a value of a graph. Returns whether this changes the declaration."""
    # The result of a graph is declared as one, and onnx reads no other declaration of it.
    known = [one for one in (*graph.output, *graph.value_info) if one.name == name]
    value = known[0] if known else graph.value_info.add(name=name)
    if _dims(value.type) == sizes:
        return False
    value.type.tensor_type.elem_type = element
    _write(value, sizes)
    return True


def _write(value: Any, sizes: list[int]) -> None:
    """Declares the sizes of a value; 0 is an unknown size."""
    shape = value.type.tensor_type.shape
    shape.Clear()
    value.type.tensor_type.shape.SetInParent()
    for size in sizes:
        dimension = shape.dim.add()
        if size:
            dimension.dim_value = size


def _placed(graph: Any) -> Iterator[tuple[Any, Any]]:
    """Each node in the order of `walk`, with the graph that it is in."""
    for proto in graph.node:
        yield graph, proto
        for attribute in proto.attribute:
            for nested in (attribute.g, *attribute.graphs):
                yield from _placed(nested)


def _is_loop(proto: Any) -> bool:
    return bool(proto.op_type == "Loop" and not proto.domain)


def _body(proto: Any) -> Any:
    return next(one.g for one in proto.attribute if one.name == "body")


def _dims(type_: Any) -> list[int] | None:
    """The sizes of a tensor, 0 for an unknown size; None if the rank is unknown."""
    if type_ is None or not type_.tensor_type.HasField("shape"):
        return None
    return [one.dim_value for one in type_.tensor_type.shape.dim]


def _has_shape(value: Any) -> bool:
    return bool(value.type.tensor_type.HasField("shape"))


def _is_declared(graph: Any, name: str) -> bool:
    return any(one.name == name and _has_shape(one) for one in (*graph.output, *graph.value_info))
