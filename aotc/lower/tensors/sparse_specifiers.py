"""Removes computations of fields of sparse storage specifiers that are not needed.

A specifier has the sizes of the levels, and the used length of each array. The sparsifier uses the
lengths only for views of arrays with that length. An entry would have to load them, as the last
position of a level is its number of coordinates. Loops over stored elements take their bounds from
the positions themselves, so the views are not needed for loads and stores. Fields that a function
does not read are not passed to it. Without these uses, positions stay on the device.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_SPECIFIER = "!llvm.struct<(array<"


def drop_views(module: Any) -> None:
    """Replaces views of the used part of arrays by the whole arrays in loads and stores, after the
    sparsifier."""
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
    """Whether the use is the memref operand of a load or store."""
    place = {"memref.load": 0, "memref.store": 1}
    return bool(place.get(use.owner.operation.name) == use.operand_number)


def scalarize_specifiers(module: Any) -> None:
    """Replaces specifiers, which are structures here, by the fields that are read, as arguments of
    private functions."""
    # A function may only pass its specifier on to one that is handled later.
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
    """Replaces one specifier argument by its fields. Returns whether there was one."""
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
    """Passes the fields as additional last arguments of the call, and extracts them before it."""
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
    """Updates the type and attributes of a function whose argument `number` was replaced by `added`
    arguments at the end."""
    inputs = [argument.type for argument in function.regions[0].blocks[0].arguments]
    ops.set_function_type(function, inputs, ops.function_type(function).results)
    if "arg_attrs" in function.attributes:
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        del attributes[number]
        attributes += [ir.DictAttr.get({})] * added
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
