"""Sizes that torch.export has one symbol for → one value in the entry, and a check.

The importer keeps no symbols: each argument's size would be asked for by itself, and wherever two
meet, the program would find out whether they are the same, or one is to be broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops


class Place(Struct, frozen=True):
    """A dimension of an entry's argument."""

    argument: int
    dimension: int


def shared_sizes(program: Any) -> list[list[Place]]:
    """Of the inputs of a `torch.export.ExportedProgram`, in their order: the dimensions that have
    one symbol for their sizes, two and more for each."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    places: dict[str, list[Place]] = {}
    for argument, name in enumerate(program.graph_signature.user_inputs):
        shape = getattr(nodes[name].meta.get("val"), "shape", ()) if name in nodes else ()
        for dimension, size in enumerate(shape):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if getattr(expression, "is_Symbol", False):
                places.setdefault(str(expression), []).append(Place(argument, dimension))
    return [found for found in places.values() if len(found) > 1]


def unify_sizes(module: Any, shared: Sequence[Sequence[Place]], names: Sequence[str]) -> None:
    """Changes a module of torch-mlir's with one entry, whose arguments have these names, in place:
    what asks for one of the sizes is given the first one, which the others are held against."""
    from torch_mlir import ir  # type: ignore[import-not-found, unused-ignore]

    (function,) = (one for one in ops.find(module.operation, "func.func") if one.regions[0].blocks)
    block = function.regions[0].blocks[0]
    if len(block.arguments) != len(names):
        return
    asked = ops.find(function, "tensor.dim")
    with module.context, function.location, ir.InsertionPoint.at_block_begin(block):
        for first, *others in shared:
            size = _size(ir, block, first)
            _give(ir, asked, block, first, size)
            for other in others:
                _expect(ir, size, _size(ir, block, other), _message(names, first, other))
                _give(ir, asked, block, other, size)


def _message(names: Sequence[str], first: Place, other: Place) -> str:
    return (
        f"'{names[other.argument]}' has another size in dimension {other.dimension} than "
        f"'{names[first.argument]}' in dimension {first.dimension}"
    )


def _size(ir: Any, block: Any, place: Place) -> Any:
    index = ir.IndexType.get()
    number = ir.IntegerAttr.get(index, place.dimension)
    attributes = {"value": number}
    dimension = ir.Operation.create("arith.constant", results=[index], attributes=attributes)
    operands = [block.arguments[place.argument], dimension.result]
    return ir.Operation.create("tensor.dim", results=[index], operands=operands).result


def _expect(ir: Any, size: Any, other: Any, message: str) -> None:
    """That they are equal."""
    is_equal = ir.Operation.create(
        "arith.cmpi",
        results=[ir.IntegerType.get_signless(1)],
        operands=[size, other],
        attributes={"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)},
    ).result
    attributes = {"msg": ir.StringAttr.get(message)}
    ir.Operation.create("cf.assert", operands=[is_equal], attributes=attributes)


def _give(ir: Any, asked: Sequence[Any], block: Any, place: Place, size: Any) -> None:
    """To the users of what asks for the place's size."""
    for dim in asked:
        tensor, dimension = dim.operands
        maker = getattr(dimension.owner, "operation", None)
        if tensor != block.arguments[place.argument] or maker is None:
            continue
        if maker.name == "arith.constant":
            number = ir.IntegerAttr(maker.attributes["value"]).value
            if number == place.dimension:
                dim.results[0].replace_all_uses_with(size)
