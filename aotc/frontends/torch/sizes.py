"""Sizes that torch.export has symbols for → values in the entry, and assertions of how they relate.

The importer keeps no symbols: each argument's size would be asked for by itself, and wherever two
meet, the program would find out whether they are the same, or one is to be broadcast.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.torch.guards import Conditions

_EQ, _SLE = 0, 3
# PyTorch takes no size for 0 or 1 unless it is told to, and says so by a least size of 2. Its
# operators are the same for these; a branch of the user's code on a size of 1 is not seen.
_LEAST_OF_ANY = 2


class Place(Struct, frozen=True):
    """A dimension of an entry's argument, and torch.export's expression of its size."""

    argument: int
    dimension: int
    expression: Any


def places_of(program: Any) -> list[Place]:
    """Those of the inputs of a `torch.export.ExportedProgram` whose sizes are not known."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    return [
        Place(argument, dimension, size.node.expr)
        for argument, name in enumerate(program.graph_signature.user_inputs)
        if name in nodes
        for dimension, size in enumerate(getattr(nodes[name].meta.get("val"), "shape", ()))
        if not isinstance(size, int)
    ]


def unify_sizes(module: Any, program: Any, conditions: Sequence[Any]) -> None:
    """Changes a module of torch-mlir's with one entry in place: what asks for one of several sizes
    with one symbol is given the first, and assertions tell what the program expects of them:
    `conditions` too, which are expressions of the symbols."""
    from torch_mlir import ir  # type: ignore[import-not-found, unused-ignore]

    (function,) = (one for one in ops.find(module.operation, "func.func") if one.regions[0].blocks)
    block = function.regions[0].blocks[0]
    inputs = program.graph_signature.user_inputs
    if len(block.arguments) != len(inputs):
        raise InputError(f"torch-mlir made {len(block.arguments)} arguments of {len(inputs)}.")
    asked = ops.find(function, "tensor.dim")
    places = places_of(program)
    with module.context, function.location, ir.InsertionPoint.at_block_begin(block):
        symbols = {**_numbers(program, block), **dict(_symbols(block, places))}
        for place in places:
            expected = _value(place.expression, symbols)
            if expected is None:
                continue
            size = _size(block, place)
            if size != expected:
                _expect(ir, _EQ, expected, size)
            if place.expression.is_Symbol:
                _give(ir, asked, block, place, expected)
        for symbol, least, greatest in _ranges(program):
            value = symbols.get(symbol)
            if value is not None and least is not None:
                _expect(ir, _SLE, ops.constant_index(least), value)
            if value is not None and greatest is not None:
                _expect(ir, _SLE, value, ops.constant_index(greatest))
        writer = Conditions(symbols)
        names = _names(program, places)
        # Others are of inputs that have one value, or of values that are computed.
        asked_of = set(symbols).union(*(place.expression.free_symbols for place in places))
        for condition in dict.fromkeys(conditions):
            if not condition.free_symbols <= asked_of:
                continue
            _assert(ir, writer.value(condition), f": PyTorch expected {condition.subs(names)}")


def _names(program: Any, places: Sequence[Place]) -> dict[Any, Any]:
    """What messages call the symbols: sizes of arguments."""
    import sympy  # type: ignore[import-not-found, import-untyped, unused-ignore]

    inputs = program.graph_signature.user_inputs
    return {
        place.expression: sympy.Symbol(f"{inputs[place.argument]}.shape[{place.dimension}]")
        for place in reversed(places)
        if place.expression.is_Symbol
    }


def _numbers(program: Any, block: Any) -> dict[Any, Any]:
    """The symbols of inputs that are whole numbers, and what they are."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    found = {}
    for argument, name in zip(block.arguments, program.graph_signature.user_inputs, strict=True):
        number = getattr(nodes[name].meta.get("val"), "node", None) if name in nodes else None
        if number is not None and number.expr.is_Symbol and str(argument.type) == "i64":
            found[number.expr] = ops.unary("arith.index_cast", argument, ops.index())
    return found


def _symbols(block: Any, places: Sequence[Place]) -> Iterator[tuple[Any, Any]]:
    """Symbols, and what they are: by the first size that is one, else by a multiple of one, to
    which a number may be added."""
    found: set[Any] = set()
    for place in sorted(places, key=lambda one: not one.expression.is_Symbol):
        unknown = place.expression.free_symbols
        if len(unknown) != 1 or unknown <= found:
            continue
        (symbol,) = unknown
        rest = place.expression.subs(symbol, 0)
        factor = place.expression.subs(symbol, 1) - rest
        is_linear = (place.expression - factor * symbol - rest).expand() == 0
        if not (is_linear and factor.is_Integer and rest.is_Integer and factor > 0):
            continue
        found.add(symbol)
        size = _size(block, place)
        if rest != 0:
            size = ops.index_op("arith.subi", size, ops.constant_index(int(rest)))
        if factor != 1:
            size = ops.index_op("arith.divsi", size, ops.constant_index(int(factor)))
        yield symbol, size


def _ranges(program: Any) -> Iterator[tuple[Any, int | None, int | None]]:
    """What torch.export assumed of symbols: the least and the greatest size, where there is one."""
    for symbol, values in program.range_constraints.items():
        least, greatest = (
            int(bound) if getattr(bound, "is_Integer", isinstance(bound, int)) else None
            for bound in (values.lower, values.upper)
        )
        yield symbol, None if least is None or least <= _LEAST_OF_ANY else least, greatest


def _value(expression: Any, symbols: dict[Any, Any]) -> Any:
    """The value of torch.export's expression; None where it is not made of sums and products of
    the symbols."""
    if expression.is_Integer:
        return ops.constant_index(int(expression))
    if expression.is_Symbol:
        return symbols.get(expression)
    name = {"Add": "arith.addi", "Mul": "arith.muli"}.get(type(expression).__name__)
    values = [_value(one, symbols) for one in expression.args]
    if name is None or any(value is None for value in values):
        return None
    return functools.reduce(functools.partial(ops.index_op, name), values)


def _size(block: Any, place: Place) -> Any:
    return ops.dim(block.arguments[place.argument], place.dimension)


def _expect(ir: Any, predicate: int, left: Any, right: Any) -> None:
    """An assertion; the lowering tells which arguments it is about."""
    _assert(ir, ops.compare(predicate, left, right))


def _assert(ir: Any, condition: Any, why: str = "") -> None:
    ops.create_assert(condition, f"the sizes of the arguments do not fit{why}")


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
