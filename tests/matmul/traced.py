"""Kernels' arithmetic, evaluated: what is built on arguments is computed for values of these.

    with traced(lane="i32") as trace:
        address = place_of(trace.b, trace["lane"])
    assert trace.evaluate(lane=3)[address] == 48

Operations that compute no integers are the tests' to read, by `trace.operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aotc.builder import Builder
from aotc.builder.numbers import Value, wrap
from aotc.mlir import ir
from aotc.ops import create

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": lambda x, y: x + y,
    "arith.subi": lambda x, y: x - y,
    "arith.muli": lambda x, y: x * y,
    "arith.divui": lambda x, y: x // y,
    "arith.remui": lambda x, y: x % y,
    "arith.minui": min,
    "arith.maxui": max,
    "arith.maxsi": max,
    "arith.andi": lambda x, y: x & y,
    "arith.ori": lambda x, y: x | y,
    "arith.xori": lambda x, y: x ^ y,
    "arith.shli": lambda x, y: x << y,
    "arith.shrui": lambda x, y: x >> y,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "0": lambda x, y: x == y,
    "1": lambda x, y: x != y,
    "6": lambda x, y: x < y,
}
# What has the value of its operand.
SAME = (
    *("arith.trunci", "arith.extui", "arith.index_castui"),
    *("llvm.bitcast", "llvm.inttoptr"),
)


class Values(dict[Any, Any]):
    """Of IR's values; an int has its own."""

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, int):
            return key
        raise KeyError(key)


class Trace:
    """Operations on arguments of these names and types."""

    def __init__(self, block: Any, types: dict[str, str]) -> None:
        self.b, self._block = Builder(), block
        self._arguments = {
            name: wrap(block.add_argument(self.b.type(type_), ir.Location.unknown()))
            for name, type_ in types.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self._arguments[name]

    def name_of(self, value: Value) -> str:
        """An argument's."""
        return next(name for name, one in self._arguments.items() if one == value)

    def operations(self, *names: str) -> list[Any]:
        """Of these names, all if none is given, in regions too."""
        return [one for one in _walk(self._block) if not names or one.name in names]

    def evaluate(self, given: dict[Any, Any] | None = None, **arguments: Any) -> Values:
        """The values of the arithmetic. `given`: those of other values. A vector of elements is a
        tuple of values. What depends on other operations has no value."""
        values = Values({self[name]: value for name, value in arguments.items()})
        values.update(given or {})
        for one in self.operations():
            found = _evaluate(one, values)
            if found is not None:
                values[wrap(one.results[0])] = found
        return values


@contextmanager
def traced(**types: str) -> Iterator[Trace]:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        type_ = ir.TypeAttr.get(ir.FunctionType.get([], []))
        attributes = {"sym_name": ir.StringAttr.get("traced"), "function_type": type_}
        with ir.InsertionPoint(module.body):
            function = create("func.func", attributes=attributes, regions=1)
        block = function.regions[0].blocks.append()
        trace = Trace(block, types)
        with ir.InsertionPoint(block):
            yield trace


def _walk(block: Any) -> Iterator[Any]:
    for one in block.operations:
        yield one.operation
        for region in one.operation.regions:
            for inner in region.blocks:
                yield from _walk(inner)


def _evaluate(one: Any, values: Values) -> Any:
    operands = list(one.operands)
    if one.name == "arith.constant":
        attribute = one.attributes["value"]
        is_integer = isinstance(attribute, ir.IntegerAttr)
        return ir.IntegerAttr(attribute).value if is_integer else None
    if one.name == "vector.from_elements":
        return tuple(operands)
    if not operands or any(operand not in values for operand in operands):
        return None
    found = [values[operand] for operand in operands]
    if one.name in SAME:
        return int(found[0]) if isinstance(found[0], bool) else found[0]
    if one.name == "arith.cmpi":
        return COMPARISONS[str(one.attributes["predicate"]).split()[0]](*found)
    if one.name == "arith.select":
        condition, yes, no = found
        return yes if condition else no
    if one.name in OPERATIONS:
        return OPERATIONS[one.name](*found)
    return None
