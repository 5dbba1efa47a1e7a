"""Lowers StableHLO's operations whose region works on single elements to loops, by MLIR text that
calls the region.

The text is a module with the operation as a function, from its operands to its results, and
private functions: `@region`, or `@region0`, `@region1`, ... Calls of them are replaced by the
operation's regions, converted from tensors of rank 0 to scalars. (Each tensor would become a
buffer.) A call of `@key` is replaced by what the only region compares: the first operand of its
comparison, with each argument as both elements.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.module_names import CAPABILITY

# The declaration of the text's first function.
DECLARATION = "func.func private @region{number}({types}) -> ({results})\n"


def declare_region(arguments: list[Any], results: list[Any], number: int | None = None) -> str:
    """The declaration of `@region` with these scalar types, or of that with the number."""
    return DECLARATION.format(
        number="" if number is None else number,
        types=", ".join(map(str, arguments)),
        results=", ".join(map(str, results)),
    )


def declare_key(arguments: list[Any], result: str) -> str:
    """The declaration of `@key` with these scalar types."""
    return f"func.func private @key({', '.join(map(str, arguments))}) -> {result}\n"


def replace_by_text(ir: Any, operation: Any, text: str) -> None:
    """Replaces `operation` by the body of the text's last function."""
    parsed = ir.Module.parse(text)
    function = ops.terminator(parsed.body)
    body = function.regions[0].blocks[0]
    for call in ops.find(function, "func.call"):
        callee, operands = ops.callee_of(call), list(call.operands)
        if callee == CAPABILITY:
            continue
        number = int(callee.removeprefix("region") or 0) if callee != "key" else 0
        if callee == "key":
            operands = [operand for operand in operands for _ in range(2)]
        with operation.location, ir.InsertionPoint(call):
            made = _clone_on_scalars(ir, operation.regions[number].blocks[0], operands)
        if callee == "key":
            made = [made[0].owner.operands[0]]
        ops.replace(call, made)
    ops.replace_by_body(operation, body, operation.operands)


def _clone_on_scalars(ir: Any, block: Any, arguments: list[Any]) -> list[Any]:
    """Clones the operations of a block of linalg on tensors of rank 0 at the insertion point,
    converted to scalars. Returns the scalars that the block returns for `arguments`."""
    values = _Values(ir, dict(zip(block.arguments, arguments, strict=True)))
    *body, returned = block.operations
    for child in body:
        if _is_scalar_generic(ir, child.operation):
            values.compute(child.operation)
        else:
            values.clone(child.operation)
    return [values.scalar(value) for value in returned.operands]


class _Values:
    """Maps the values of the block. `numbers` has the scalar of a tensor of rank 0, and `clones`
    the clone of a value."""

    def __init__(self, ir: Any, scalars: dict[Any, Any]) -> None:
        self._ir = ir
        self._scalars = scalars
        self._clones: dict[Any, Any] = {}

    def scalar(self, tensor: Any) -> Any:
        if tensor not in self._scalars:
            element = self._ir.RankedTensorType(tensor.type).element_type
            value = self._clones.get(tensor, tensor)
            self._scalars[tensor] = self._create("tensor.extract", element, value)
        return self._scalars[tensor]

    def clone(self, operation: Any) -> None:
        made = operation.clone()
        for inner in ops.walk(made):
            for place, value in enumerate(inner.operands):
                inner.operands[place] = self._operand(value)
        self._clones.update(zip(operation.results, made.results, strict=True))

    def compute(self, generic: Any) -> None:
        """Clones the body of a linalg.generic on tensors of rank 0, applied to their scalars."""
        inner = generic.regions[0].blocks[0]
        for argument, value in zip(inner.arguments, generic.operands, strict=True):
            # The init operand of a result is only read if the body uses it.
            if any(True for _ in argument.uses):
                self._clones[argument] = self.scalar(value)
        *steps, yielded = inner.operations
        for step in steps:
            self.clone(step.operation)
        for result, value in zip(generic.results, yielded.operands, strict=True):
            self._scalars[result] = self._operand(value)

    def _operand(self, value: Any) -> Any:
        if value not in self._clones and value in self._scalars:
            made = self._create("tensor.from_elements", value.type, self._scalars[value])
            self._clones[value] = made
        return self._clones.get(value, value)

    def _create(self, name: str, type_: Any, operand: Any) -> Any:
        return self._ir.Operation.create(name, results=[type_], operands=[operand]).result


def _is_scalar_generic(ir: Any, operation: Any) -> bool:
    """Whether an operation is a linalg.generic whose operands all have rank 0."""
    return operation.name == "linalg.generic" and all(
        isinstance(value.type, ir.RankedTensorType) and value.type.rank == 0
        for value in operation.operands
    )
