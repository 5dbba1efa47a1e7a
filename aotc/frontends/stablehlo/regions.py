"""StableHLO's operations with a region over single elements → loops, by text that calls the region.

The text is a module of two functions: the operation, of its operands to its results, and a private
`@region`, whose calls become what the operation's region does, on numbers in place of tensors of
rank 0. (In tensors each of them would be a buffer.)
"""

from __future__ import annotations

from typing import Any

from aotc import ops

# What the first function of a text is called with.
DECLARATION = "func.func private @region({types}) -> ({results})\n"


def declare_region(arguments: list[Any], results: list[Any]) -> str:
    """The text that declares `@region`, of numbers of these types."""
    return DECLARATION.format(
        types=", ".join(map(str, arguments)), results=", ".join(map(str, results))
    )


def replace_by_text(ir: Any, operation: Any, text: str) -> None:
    """Puts the body of the text's last function in the place of `operation`."""
    parsed = ir.Module.parse(text)
    function = ops.terminator(parsed.body)
    body = function.regions[0].blocks[0]
    for call in ops.find(function, "func.call"):
        with operation.location, ir.InsertionPoint(call):
            made = _on_numbers(ir, operation.regions[0].blocks[0], list(call.operands))
        ops.replace(call, made)
    ops.replace_by_body(operation, body, operation.operands)


def _on_numbers(ir: Any, block: Any, arguments: list[Any]) -> list[Any]:
    """What the block, in linalg on tensors of rank 0, returns for these numbers: clones of what its
    operations do, at the insertion point."""
    values = _Values(ir, dict(zip(block.arguments, arguments, strict=True)))
    *body, returned = block.operations
    for child in body:
        if _is_of_numbers(ir, child.operation):
            values.compute(child.operation)
        else:
            values.clone(child.operation)
    return [values.number(value) for value in returned.operands]


class _Values:
    """What stands for the values of the block: `numbers` has the number in a tensor of rank 0,
    `clones` the clone of a value."""

    def __init__(self, ir: Any, numbers: dict[Any, Any]) -> None:
        self._ir = ir
        self._numbers = numbers
        self._clones: dict[Any, Any] = {}

    def number(self, tensor: Any) -> Any:
        if tensor not in self._numbers:
            element = self._ir.RankedTensorType(tensor.type).element_type
            value = self._clones.get(tensor, tensor)
            self._numbers[tensor] = self._create("tensor.extract", element, value)
        return self._numbers[tensor]

    def clone(self, operation: Any) -> None:
        made = operation.clone()
        for inner in ops.walk(made):
            for place, value in enumerate(inner.operands):
                inner.operands[place] = self._operand(value)
        self._clones.update(zip(operation.results, made.results, strict=True))

    def compute(self, generic: Any) -> None:
        """Clones what a linalg.generic on tensors of rank 0 does with their numbers."""
        inner = generic.regions[0].blocks[0]
        for argument, value in zip(inner.arguments, generic.operands, strict=True):
            # What a result was before is not used, but where it is made from it.
            if any(True for _ in argument.uses):
                self._clones[argument] = self.number(value)
        *steps, yielded = inner.operations
        for step in steps:
            self.clone(step.operation)
        for result, value in zip(generic.results, yielded.operands, strict=True):
            self._numbers[result] = self._operand(value)

    def _operand(self, value: Any) -> Any:
        if value not in self._clones and value in self._numbers:
            made = self._create("tensor.from_elements", value.type, self._numbers[value])
            self._clones[value] = made
        return self._clones.get(value, value)

    def _create(self, name: str, type_: Any, operand: Any) -> Any:
        return self._ir.Operation.create(name, results=[type_], operands=[operand]).result


def _is_of_numbers(ir: Any, operation: Any) -> bool:
    """Whether it is a linalg.generic whose operands are all of rank 0."""
    return operation.name == "linalg.generic" and all(
        isinstance(value.type, ir.RankedTensorType) and value.type.rank == 0
        for value in operation.operands
    )
