"""Small helpers over the bindings: making constants, walking, taking operands apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from aotc.mlir import ir


def walk(operation: Any) -> Iterator[Any]:
    """Every operation under `operation`, itself first, in order; safe to change what was seen."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for child in list(block.operations):
                yield from walk(child.operation)


def find(operation: Any, *names: str) -> list[Any]:
    """The operations under `operation` that have one of the names."""
    return [op for op in walk(operation) if op.name in names]


def ancestors(operation: Any) -> Iterator[Any]:
    parent = operation.parent
    while parent is not None:
        yield parent.operation if hasattr(parent, "operation") else parent
        parent = parent.parent


def enclosing(operation: Any, *names: str) -> Any | None:
    """The nearest ancestor that has one of the names."""
    return next((op for op in ancestors(operation) if op.name in names), None)


def defining(value: Any) -> Any | None:
    """The operation that makes `value`; None for a block argument.

    As a plain operation: an op's own class may have a `name` that is an attribute's.
    """
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def callee_of(call: Any) -> str:
    """The function that a `func.call` or a direct `llvm.call` calls."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def constant_index(value: int) -> Any:
    """An `arith.constant` of type index at the current insertion point."""
    index = ir.IndexType.get()
    return ir.Operation.create(
        "arith.constant",
        results=[index],
        attributes={"value": ir.IntegerAttr.get(index, value)},
    ).result


def known_index(value: Any) -> int | None:
    """The value of an index constant, or None."""
    owner = defining(value)
    if owner is None or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def index_op(name: str, *operands: Any) -> Any:
    """A binary arith operation on index values."""
    return ir.Operation.create(name, results=[ir.IndexType.get()], operands=list(operands)).result


def compare(predicate: int, left: Any, right: Any) -> Any:
    """`arith.cmpi` with a predicate by number (2 is slt, 6 is ult)."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.Operation.create(
        "arith.cmpi",
        results=[ir.IntegerType.get_signless(1)],
        operands=[left, right],
        attributes={"predicate": ir.IntegerAttr.get(i64, predicate)},
    ).result


def create_for(lower: Any, upper: Any, step: Any, body: Callable[[Any], None]) -> None:
    """`scf.for` whose body `body(induction variable)` fills."""
    loop = ir.Operation.create("scf.for", results=[], operands=[lower, upper, step], regions=1)
    block = loop.regions[0].blocks.append(ir.IndexType.get())
    with ir.InsertionPoint(block):
        body(block.arguments[0])
        ir.Operation.create("scf.yield")


def create_if(condition: Any, body: Callable[[], None]) -> None:
    """`scf.if` without results whose body `body()` fills."""
    branch = ir.Operation.create("scf.if", results=[], operands=[condition], regions=2)
    block = branch.regions[0].blocks.append()
    with ir.InsertionPoint(block):
        body()
        ir.Operation.create("scf.yield")


def operand_groups(operation: Any) -> list[list[Any]]:
    """The operands by `operandSegmentSizes`."""
    sizes = list(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"]))
    operands = list(operation.operands)
    groups, start = [], 0
    for size in sizes:
        groups.append(operands[start : start + size])
        start += size
    return groups
