"""`memref.get_global` moves out of `gpu.launch` bodies, before they are outlined.

Outlining would give the kernel a copy of the global: right for a constant, and for workgroup
memory, which goes the other way.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.analysis.types import is_workgroup
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.module_names import WEIGHT

# Constants up to this size are copied into the kernel that uses them; larger ones are handed
# to it, so that they are not in every image once more, and so are weights that may be replaced.
_MAX_KERNEL_CONSTANT = 4096


class HoistGlobals(OwnPass, frozen=True):
    name = "aotc-hoist-globals"
    reason: str = "large constants are handed to kernels"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            constants = {
                name
                for name, variable in ops.globals_of(lowering.module).items()
                if "constant" in variable.attributes
                and WEIGHT not in variable.attributes
                and _global_bytes(variable) <= _MAX_KERNEL_CONSTANT
            }
            for use in ops.find(lowering.module.operation, "memref.get_global"):
                launch = ops.enclosing(use, "gpu.launch")
                if is_workgroup(use.results[0].type):
                    _sink_workgroup_global(use)
                elif launch is not None and ops.global_of(use) not in constants:
                    use.move_before(launch)


def _sink_workgroup_global(use: Any) -> None:
    """Gives each launch that uses workgroup memory its own `use` of it: outlining then gives the
    kernel's module the global. The host has no such memory."""
    if ops.enclosing(use, "gpu.launch", "gpu.module") is not None:
        return
    for operand in list(use.results[0].uses):
        user = operand.owner.operation
        if ops.enclosing(user, "gpu.launch") is not None:
            copy = use.clone(ir.InsertionPoint(user)).operation
            user.operands[operand.operand_number] = copy.results[0]


def _global_bytes(variable: Any) -> int:
    """The size in bytes, of a memref of numbers; a guess above any limit for others."""
    type_ = ir.MemRefType(ir.TypeAttr(variable.attributes["type"]).value)
    try:
        bits = int(type_.element_type.width)
    except AttributeError:
        return _MAX_KERNEL_CONSTANT + 1
    return int(math.prod(type_.shape)) * -(-bits // 8)
