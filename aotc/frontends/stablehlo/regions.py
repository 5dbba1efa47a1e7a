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
    function = list(parsed.body.operations)[-1].operation
    body = function.regions[0].blocks[0]
    for call in ops.find(function, "func.call"):
        with operation.location, ir.InsertionPoint(call):
            made = _on_numbers(ir, operation.regions[0].blocks[0], list(call.operands))
        for old, new in zip(call.results, made, strict=True):
            old.replace_all_uses_with(new)
        ops.erase(call)
    ops.replace_by_body(operation, body, operation.operands)


def _on_numbers(ir: Any, block: Any, arguments: list[Any]) -> list[Any]:
    """What the block, in linalg on tensors of rank 0, returns for these numbers: clones of what its
    operations do, at the insertion point."""
    # By tensor of rank 0: its number; and by value: its clone.
    numbers = dict(zip(block.arguments, arguments, strict=True))
    clones: dict[Any, Any] = {}

    def number(tensor: Any) -> Any:
        if tensor not in numbers:
            element = ir.RankedTensorType(tensor.type).element_type
            value = clones.get(tensor, tensor)
            extract = ir.Operation.create("tensor.extract", results=[element], operands=[value])
            numbers[tensor] = extract.result
        return numbers[tensor]

    def operand(value: Any) -> Any:
        if value not in clones and value in numbers:
            made = ir.Operation.create(
                "tensor.from_elements", results=[value.type], operands=[numbers[value]]
            )
            clones[value] = made.result
        return clones.get(value, value)

    def clone(operation: Any) -> None:
        made = operation.clone()
        for inner in ops.walk(made):
            for place, value in enumerate(inner.operands):
                inner.operands[place] = operand(value)
        clones.update(zip(operation.results, made.results, strict=True))

    *body, returned = block.operations
    for child in body:
        operation = child.operation
        if not _is_of_numbers(ir, operation):
            clone(operation)
            continue
        inner = operation.regions[0].blocks[0]
        for argument, value in zip(inner.arguments, operation.operands, strict=True):
            # What a result was before is not used, but where it is made from it.
            if any(True for _ in argument.uses):
                clones[argument] = number(value)
        *steps, yielded = inner.operations
        for step in steps:
            clone(step.operation)
        for result, value in zip(operation.results, yielded.operands, strict=True):
            numbers[result] = operand(value)
    return [number(value) for value in returned.operands]


def _is_of_numbers(ir: Any, operation: Any) -> bool:
    """Whether it is a linalg.generic whose operands are all of rank 0."""
    return operation.name == "linalg.generic" and all(
        isinstance(value.type, ir.RankedTensorType) and value.type.rank == 0
        for value in operation.operands
    )
