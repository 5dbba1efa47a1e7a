"""Gives each symbolic size of torch.export one value in the entry, and asserts the relations
between sizes.

The importer keeps no symbols. Each use of an argument's size would read it separately, and wherever
two sizes meet, the program would check at run time whether they are equal or one is broadcast.
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
# By default, PyTorch assumes that a symbolic size is neither 0 nor 1, and records this as a lower
# bound of 2. The bound is not checked, because PyTorch's operators also hold for these sizes. A
# branch of the user's code on a size of 1 is not detected.
_LEAST_OF_ANY = 2


class Place(Struct, frozen=True):
    """A dimension of an entry's argument, and the expression of its size in torch.export."""

    argument: int
    dimension: int
    expression: Any


def places_of(program: Any) -> list[Place]:
    """The dimensions of unknown size of the inputs of a `torch.export.ExportedProgram`."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    return [
        Place(argument, dimension, size.node.expr)
        for argument, name in enumerate(program.graph_signature.user_inputs)
        if name in nodes
        for dimension, size in enumerate(getattr(nodes[name].meta.get("val"), "shape", ()))
        if not isinstance(size, int)
    ]


def unify_sizes(module: Any, program: Any, conditions: Sequence[Any]) -> None:
    """Replaces sizes that have the same symbol by the first of them, in place, in a module of
    torch-mlir's with one entry. Inserts assertions of what the program expects of the sizes, and of
    `conditions`, which are expressions of the symbols."""
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
        # The other conditions are about inputs that have a fixed value, or about computed values.
        asked_of = set(symbols).union(*(place.expression.free_symbols for place in places))
        for condition in dict.fromkeys(conditions):
            if not condition.free_symbols <= asked_of:
                continue
            _assert(ir, writer.value(condition), f": PyTorch expected {condition.subs(names)}")


def _names(program: Any, places: Sequence[Place]) -> dict[Any, Any]:
    """The names of symbols in messages: sizes of arguments."""
    import sympy  # type: ignore[import-not-found, import-untyped, unused-ignore]

    inputs = program.graph_signature.user_inputs
    return {
        place.expression: sympy.Symbol(f"{inputs[place.argument]}.shape[{place.dimension}]")
        for place in reversed(places)
        if place.expression.is_Symbol
    }


def _numbers(program: Any, block: Any) -> dict[Any, Any]:
    """Maps the symbols of integer inputs to the values of these inputs."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    found = {}
    for argument, name in zip(block.arguments, program.graph_signature.user_inputs, strict=True):
        number = getattr(nodes[name].meta.get("val"), "node", None) if name in nodes else None
        if number is not None and number.expr.is_Symbol and str(argument.type) == "i64":
            found[number.expr] = ops.unary("arith.index_cast", argument, ops.index())
    return found


def _symbols(block: Any, places: Sequence[Place]) -> Iterator[tuple[Any, Any]]:
    """Yields symbols and their values. A value comes from the first dimension whose size is the
    symbol; otherwise from one whose size is a linear expression of it."""
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
    """Yields the bounds that torch.export assumed for each symbol: (symbol, lower, upper). A bound
    may be None."""
    for symbol, values in program.range_constraints.items():
        least, greatest = (
            int(bound) if getattr(bound, "is_Integer", isinstance(bound, int)) else None
            for bound in (values.lower, values.upper)
        )
        yield symbol, None if least is None or least <= _LEAST_OF_ANY else least, greatest


def _value(expression: Any, symbols: dict[Any, Any]) -> Any:
    """The value of torch.export's expression. None unless it consists of sums and products of the
    symbols."""
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
    """Asserts a comparison. The lowering adds to the message which arguments it is about."""
    _assert(ir, ops.compare(predicate, left, right))


def _assert(ir: Any, condition: Any, why: str = "") -> None:
    ops.create_assert(condition, f"the sizes of the arguments do not fit{why}")


def _give(ir: Any, asked: Sequence[Any], block: Any, place: Place, size: Any) -> None:
    """Replaces reads of the size of `place` by `size`."""
    for dim in asked:
        tensor, dimension = dim.operands
        maker = ops.defining(dimension)
        if tensor != block.arguments[place.argument] or maker is None:
            continue
        if maker.name == "arith.constant":
            number = ir.IntegerAttr(maker.attributes["value"]).value
            if number == place.dimension:
                dim.results[0].replace_all_uses_with(size)
