"""Whether a buffer is a constant of the module."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import CONSTANT_ARGUMENTS
from aotc.mlir import ir

_VIEWS = tuple(
    f"memref.{word}"
    for word in ("cast", "collapse_shape", "expand_shape", "reinterpret_cast", "subview")
)


def is_constant(buffer: Any) -> bool:
    """Whether `buffer` is a view of a constant `memref.global`, which no kernel writes, or of an
    argument of a launch function that is one in every call."""
    while (owner := ops.defining(buffer)) is not None and owner.name in _VIEWS:
        buffer = owner.operands[0]
    if owner is None:
        argument = ir.BlockArgument(buffer)
        function = argument.owner.owner
        return argument.arg_number in list(function.attributes.get(CONSTANT_ARGUMENTS, ()))
    if owner.name != "memref.get_global":
        return False
    name = ops.global_of(owner)
    module = next(one for one in ops.ancestors(owner) if one.name == "builtin.module")
    variable = ops.globals_of(module).get(name)
    return variable is not None and "constant" in variable.attributes
