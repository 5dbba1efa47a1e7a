"""Memory placement: gives kernels memory that the GPU can access.

It runs after outlining, on host functions that launch kernels of gpu.modules. The modes are:

* AUTO: a buffer that only kernels use becomes device memory. A buffer that host code also uses gets
  a device mirror, with copies where the other side wrote in between. Constants are copied to the
  device once for each load of the module. If none of this can be proved correct, the buffer becomes
  managed memory.
* MANAGED: each buffer that reaches a launch becomes managed memory.
* EXPLICIT: buffers stay where the input has them. Temporaries that aotc's passes make become device
  memory, or managed memory if the host also uses them.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import GIVEN
from aotc.lower.placement.alias_classes import AliasClasses, UseKind
from aotc.lower.placement.automatic import place_automatically
from aotc.lower.placement.inlining import inline_launching_functions
from aotc.lower.placement.managed import globals_of, move_to_gpu
from aotc.lower.placement.streams import make_gpu_operations_asynchronous
from aotc.remarks import Remarks
from aotc.request import MemoryMode


def place_memory(module: Any, mode: MemoryMode, remarks: Remarks) -> frozenset[str]:
    """Places the buffers of the module's host functions. Changes the module in place.

    Returns the names of the `memref.global`s that become managed memory.
    """
    with module.context:
        managed_globals: frozenset[str] = frozenset()
        if mode is MemoryMode.AUTO:
            inline_launching_functions(module)
            managed_globals = place_automatically(module, remarks)
        elif mode is MemoryMode.MANAGED:
            managed_globals = _place_managed(module)
        else:
            _place_temporaries(module)
        for allocation in ops.find(module.operation, "memref.alloc"):
            if GIVEN in allocation.attributes:
                del allocation.attributes[GIVEN]
        make_gpu_operations_asynchronous(module)
    return managed_globals


# The uses of device memory that the host does not access.
_ON_DEVICE = (UseKind.LAUNCH, UseKind.FREE, UseKind.SHAPE)


def _place_temporaries(module: Any) -> None:
    """Places the buffers of kernels of which no allocation is the author's."""
    for alias_class in list(AliasClasses(module)):
        allocations = alias_class.allocations
        if alias_class.reaches_launch and not any(map(_is_given, allocations)):
            is_on_device = alias_class.has_only_allocations and all(
                use.kind in _ON_DEVICE for use in alias_class.uses
            )
            move_to_gpu(alias_class, is_host_shared=not is_on_device)


def _is_given(allocation: Any) -> bool:
    return GIVEN in allocation.attributes or allocation.name == "memref.alloca"


def _place_managed(module: Any) -> frozenset[str]:
    alias_classes = AliasClasses(module)
    placed = [alias_class for alias_class in alias_classes if alias_class.reaches_launch]
    managed_globals = globals_of(placed)
    for alias_class in placed:
        move_to_gpu(alias_class, is_host_shared=True)
    return managed_globals
