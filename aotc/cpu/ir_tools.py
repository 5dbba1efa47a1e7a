"""Small operations and types, as the rewrites of this folder need them.

Each maker builds at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.mlir import ir


def walk(operation: Any) -> list[Any]:
    """Every operation under `operation`, itself first, in order.

    A list: the caller may add and erase operations as it goes.
    """
    found = [operation]
    for region in operation.regions:
        for block in region.blocks:
            for child in block.operations:
                found += walk(child.operation)
    return found


def symbol_name(operation: Any) -> str:
    """The name of a symbol's operation."""
    return str(ir.StringAttr(operation.attributes["sym_name"]).value)


def create(
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    attributes: dict[str, Any] | None = None,
    regions: int = 0,
) -> Any:
    """An operation by name."""
    return ir.Operation.create(
        name,
        results=list(results),
        operands=list(operands),
        attributes=attributes or {},
        regions=regions,
    )


def unary(name: str, operand: Any, result: Any) -> Any:
    """The value of a cast or another operation of one operand."""
    return create(name, [operand], [result]).result


def binary(name: str, left: Any, right: Any) -> Any:
    """The value of an operation whose two operands have the result's type."""
    return create(name, [left, right], [left.type]).result


def constant(type_: Any, value: int) -> Any:
    """An integer or index constant; for a vector type the same value in every element."""
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(
            type_, ir.IntegerAttr.get(type_.element_type, _signed(type_.element_type, value))
        )
    else:
        attribute = ir.IntegerAttr.get(type_, _signed(type_, value))
    return create("arith.constant", results=[type_], attributes={"value": attribute}).result


def _signed(type_: Any, value: int) -> int:
    """`value`'s bits as the two's complement number that IntegerAttr takes."""
    if not isinstance(type_, ir.IntegerType):
        return value
    return value - (1 << type_.width) if value >= 1 << (type_.width - 1) else value


def index() -> Any:
    return ir.IndexType.get()


def integer(width: int) -> Any:
    return ir.IntegerType.get_signless(width)


def element_type(type_: Any) -> Any:
    """The element's type of a vector, else the type itself."""
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def with_element_type(type_: Any, element: Any) -> Any:
    """`type_`, scalar or vector, of other elements."""
    if not isinstance(type_, ir.VectorType):
        return element
    return ir.VectorType.get(
        list(type_.shape), element, scalable=list(type_.scalable_dims) if type_.scalable else None
    )
