"""`aotc-hoist-globals`: moves `memref.get_global` out of `gpu.launch` bodies before outlining.

Outlining would give the kernel a copy of the global. That is right for a small constant. It is also
right for workgroup memory, whose `memref.get_global` is moved into the launch instead.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.analysis.types import is_workgroup
from aotc.attributes import WEIGHT_ATTRIBUTE
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

# Constants up to this size in bytes are copied into the kernel that uses them. Larger ones are
# kernel arguments, so that not every image has a copy. So are weights that may be replaced.
_MAX_KERNEL_CONSTANT = 4096


class HoistGlobals(OwnPass, frozen=True):
    name = "aotc-hoist-globals"
    reason: str = "large constants become kernel arguments"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            constants = {
                name
                for name, variable in ops.globals_of(lowering.module).items()
                if "constant" in variable.attributes
                and WEIGHT_ATTRIBUTE not in variable.attributes
                and _global_bytes(variable) <= _MAX_KERNEL_CONSTANT
            }
            for use in ops.find(lowering.module.operation, "memref.get_global"):
                launch = ops.enclosing(use, "gpu.launch")
                if is_workgroup(use.results[0].type):
                    _sink_workgroup_global(use)
                elif launch is not None and ops.global_of(use) not in constants:
                    use.move_before(launch)


def _sink_workgroup_global(use: Any) -> None:
    """Gives each launch that uses workgroup memory its own `memref.get_global`, so that outlining
    moves the global into the kernel's module. The host has no workgroup memory."""
    if ops.enclosing(use, "gpu.launch", "gpu.module") is not None:
        return
    for operand in list(use.results[0].uses):
        user = operand.owner.operation
        if ops.enclosing(user, "gpu.launch") is not None:
            copy = use.clone(ir.InsertionPoint(user)).operation
            user.operands[operand.operand_number] = copy.results[0]


def _global_bytes(variable: Any) -> int:
    """The size in bytes of a memref of numbers; for other element types, a size above the limit."""
    type_ = ir.MemRefType(ir.TypeAttr(variable.attributes["type"]).value)
    try:
        bits = int(type_.element_type.width)
    except AttributeError:
        return _MAX_KERNEL_CONSTANT + 1
    return int(math.prod(type_.shape)) * -(-bits // 8)
