"""Finds batched matmuls of which one matrix of the batch is read for each row: mixtures of experts,
whose router chooses an expert for each row. A kernel need not compute the other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.access import reads_shape_only
from aotc.analysis.block_order import BlockOrder
from aotc.analysis.generics import maps_of
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.builder.numbers import Scalar, Value
from aotc.kernels.matmul.fusion.gates import Product
from aotc.mlir import ir


class RowSelection(Struct):
    """Row m of C is only read in the matrix of the batch whose index the operations `steps` compute
    from element m of `chosen`, a vector of integers. `start` and `stop`: the first and the last
    value of `steps`."""

    chosen: Any
    start: Any
    steps: list[Any]
    stop: Any

    def matrix(self, element: Value) -> Scalar:
        """The index of the matrix for an element of `chosen`, at the insertion point."""
        made: dict[Any, Any] = {self.start: element}
        for step in self.steps:
            for one in step.operands:
                if one not in made:
                    made[one] = one.owner.clone().operation.result
            copy = step.clone().operation
            for number, one in enumerate(step.operands):
                copy.operands[number] = made[one]
            # The gather checks the index.
            if CHECK_ATTRIBUTE in copy.attributes:
                del copy.attributes[CHECK_ATTRIBUTE]
            made[step.result] = copy.result
        return Scalar(made[self.stop])


def find_selection(
    product: Product, order: BlockOrder, leaves: Callable[[Any, Sequence[Any]], bool]
) -> RowSelection | None:
    """The selection of a batched matmul, if one gather is the only reader of its result; else None.
    `leaves(operation, reads)`: whether the operation neither accesses C nor writes `reads`."""
    c = product.c
    gather = gather_of(c)
    if gather is None or not product.problem.batched or product.problem.adds:
        return None
    if any(_writes(one, c) and one not in product.replaced for one in _users(c)):
        return None
    reader = gather.parent.operation
    found = _selection(reader, gather)
    if found is None or reader in product.done:
        return None
    for operation in order.after(product.replaced[-1]):
        if operation == reader:
            return found
        # The matrices that are chosen must be known before the matmul.
        if not leaves(operation, [found.chosen]):
            return None
    return None


def gather_of(c: Any) -> Any | None:
    """The only load from a matmul's result, if only operations that write it read it besides."""
    owner = ops.defining(c)
    if owner is None or owner.name != "memref.alloc":
        return None
    readers = [
        one
        for one in _users(c)
        if not (one.name == "memref.dealloc" or reads_shape_only(one) or _writes(one, c))
    ]
    return readers[0] if [one.name for one in readers] == ["memref.load"] else None


def _users(buffer: Any) -> list[Any]:
    return [use.owner.operation for use in buffer.uses]


def _writes(operation: Any, c: Any) -> bool:
    """Whether C is an output of the operation, such as of the matmul, which adds to it."""
    return operation.name == "linalg.generic" and c in list(ops.operand_groups(operation)[1])


def _selection(generic: Any, load: Any) -> RowSelection | None:
    """The selection that a load of C in the body of an operation makes."""
    if generic.name != "linalg.generic":
        return None
    _, matrix, row, _ = load.operands
    at = ops.defining(row)
    if at is None or at.name != "linalg.index":
        return None
    loop = ir.AffineDimExpr.get(ir.IntegerAttr(at.attributes["dim"]).value)
    steps = _steps_to(matrix, generic)
    made = {step.result for step in steps}
    given = {one for step in steps for one in step.operands if one not in made}
    sources = [one for one in given if not ops.is_constant(one)]
    arguments = list(generic.regions[0].blocks[0].arguments)
    if len(sources) != 1 or sources[0] not in arguments:
        return None
    number = arguments.index(sources[0])
    chosen, map_ = generic.operands[number], maps_of(generic)[number]
    if not isinstance(chosen.type, ir.MemRefType) or list(map_.results) != [loop]:
        return None
    return RowSelection(chosen, sources[0], steps, matrix)


def _steps_to(value: Any, generic: Any) -> list[Any]:
    """The arithmetic in a body that computes the value, in order."""
    wanted, steps = {value}, list[Any]()
    for operation in reversed(ops.content(generic)):
        is_wanted = any(result in wanted for result in operation.results)
        if is_wanted and operation.name.startswith("arith.") and operation.operands:
            steps.insert(0, operation)
            wanted.update(operation.operands)
    return steps
