"""What torch-mlir's importers leave, as a module with one entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.errors import InputError
from aotc.input.entries import ENTRY_ATTRIBUTE, NAME_ATTRIBUTE


def make_entry(module: Any, name: str, arguments: Sequence[str]) -> Any:
    """Makes the module's one function with a body an entry called `name`, whose arguments have
    these names. Raises InputError where there is another number of functions."""
    from torch_mlir import ir

    with module.context:
        functions = [
            operation.operation
            for operation in module.body.operations
            if "function_type" in operation.operation.attributes
            and operation.operation.regions[0].blocks
        ]
        if len(functions) != 1:
            raise InputError(f"Expected one function, and the importer made {len(functions)}.")
        (function,) = functions
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        # Marked public, it would be left with the results that it has.
        if "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]
        function.attributes[ENTRY_ATTRIBUTE] = ir.UnitAttr.get()
        if len(arguments) == len(function.regions[0].blocks[0].arguments):
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get({NAME_ATTRIBUTE: ir.StringAttr.get(text)}) for text in arguments]
            )
    return module
