"""Sparse tensors' specifiers: what of them nobody needs is not computed.

A specifier has the sizes of the levels, and how much of each array is used. The sparsifier asks for
the latter to make views of arrays as long as that; an entry has to load them: the last position of
a level is how many coordinates the level has. Loops over stored elements take their bounds from the
positions themselves, so the views are not needed for loads and stores; and what no function asks
for is not handed to it. Then positions stay on the device.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_SPECIFIER = "!llvm.struct<(array<"


def drop_views(module: Any) -> None:
    """Behind the sparsifier: loads and stores are of whole arrays rather than of what is used."""
    for view in ops.find(module.operation, "memref.subview"):
        source, *sizes = view.operands
        if len(sizes) != 1 or source.type != view.results[0].type or not _is_used_size(sizes[0]):
            continue
        uses = list(view.results[0].uses)
        if all(_is_access(use) for use in uses):
            ops.replace(view, [source])


def _is_used_size(value: Any) -> bool:
    made = ops.defining(value)
    if made is None or made.name != "sparse_tensor.storage_specifier.get":
        return False
    return "mem_sz" in str(made.attributes["specifierKind"])


def _is_access(use: Any) -> bool:
    """Whether it is the memref of a load or a store."""
    place = {"memref.load": 0, "memref.store": 1}
    return bool(place.get(use.owner.operation.name) == use.operand_number)


def scalarize_specifiers(module: Any) -> None:
    """Where specifiers are structures: a private function takes the members that it reads in place
    of the whole."""
    # A function may only hand its specifier on, to one whose turn comes later.
    while any(_scalarize(function, module) for function in _private_functions(module)):
        continue


def _private_functions(module: Any) -> list[Any]:
    return [
        function
        for function in ops.find(module.operation, "func.func")
        if "sym_visibility" in function.attributes
        and "private" in str(function.attributes["sym_visibility"])
        and not ops.is_declaration(function)
    ]


def _scalarize(function: Any, module: Any) -> bool:
    """Whether a specifier among the function's arguments gave way to its members."""
    block = function.regions[0].blocks[0]
    for number, argument in enumerate(block.arguments):
        readers = [use.owner.operation for use in argument.uses]
        is_specifier = str(argument.type).startswith(_SPECIFIER)
        if not is_specifier or any(op.name != "llvm.extractvalue" for op in readers):
            continue
        members: dict[str, list[Any]] = {}
        for reader in readers:
            members.setdefault(str(reader.attributes["position"]), []).append(reader)
        for call in ops.find(module.operation, "func.call"):
            if ops.callee_of(call) == ops.symbol_of(function):
                _hand_over(call, number, [same[0] for same in members.values()])
        for same in members.values():
            scalar = block.add_argument(same[0].results[0].type, same[0].location)
            for reader in same:
                ops.replace(reader, [scalar])
        block.erase_argument(number)
        _describe(function, number, len(members))
        return True
    return False


def _hand_over(call: Any, number: int, readers: list[Any]) -> None:
    """Calls the function with members behind its other arguments, which are read here."""
    operands = list(call.operands)
    specifier = operands.pop(number)
    with call.location, ir.InsertionPoint(call):
        for reader in readers:
            type_ = reader.results[0].type
            position = {"position": reader.attributes["position"]}
            operands.append(ops.create("llvm.extractvalue", [specifier], [type_], position).result)
        types = [result.type for result in call.results]
        attributes = ops.attributes_of(call)
        made = ops.create("func.call", operands, types, attributes)
    ops.replace(call, made.results)


def _describe(function: Any, number: int, added: int) -> None:
    """The type and the attributes of a function whose argument `number` gave way to `added` at its
    end."""
    inputs = [argument.type for argument in function.regions[0].blocks[0].arguments]
    ops.set_function_type(function, inputs, ops.function_type(function).results)
    if "arg_attrs" in function.attributes:
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        del attributes[number]
        attributes += [ir.DictAttr.get({})] * added
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
