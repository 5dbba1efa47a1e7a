"""Keeps kernels of the library out of the module while passes on loops and host code run.

The library creates kernels in their final form, with thousands of operations. Passes over the whole
module would process them again and again. So they are outlined as soon as they are created, and the
module contains only their declarations until they are put back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import MODULE_PREFIX, gpu_modules
from aotc.mlir import ir
from aotc.ops import symbol_of

_NAMED_MODULE = "module"


def has_library_kernels_alone(module: Any) -> bool:
    """Whether there are launches, and the library created all of them."""
    launches = ops.find(module.operation, "gpu.launch")
    return bool(launches) and all(
        _NAMED_MODULE in launch.attributes
        and str(ir.FlatSymbolRefAttr(launch.attributes[_NAMED_MODULE]).value).startswith(
            MODULE_PREFIX
        )
        for launch in launches
    )


def library_modules(module: Any, written_by_hand: Collection[str]) -> list[Any]:
    """The library's outlined gpu.modules. Those in `written_by_hand` may have any name, and are
    skipped."""
    return [
        gpu_module
        for gpu_module in gpu_modules(module)
        if (name := symbol_of(gpu_module)).startswith(MODULE_PREFIX) and name not in written_by_hand
    ]


def detach_kernels(module: Any, outlined: Iterable[Any]) -> Any:
    """Moves gpu.modules into a new module, and replaces them by stubs with empty kernels."""
    with module.context, ir.Location.unknown():
        detached = ir.Module.create()
        for gpu_module in outlined:
            _insert_signatures(gpu_module)
            ops.body_of_module(detached).append(gpu_module)
    return detached


def reattach_kernels(module: Any, detached: Any) -> None:
    """Moves the gpu.modules back in place of their stubs. Those without a stub are dropped."""
    with module.context:
        wanted = {symbol_of(one): one for one in gpu_modules(module)}
        for gpu_module in gpu_modules(detached):
            signatures = wanted.get(symbol_of(gpu_module))
            if signatures is not None:
                gpu_module.move_before(signatures)
                ops.erase(signatures)


def _insert_signatures(gpu_module: Any) -> None:
    with ir.InsertionPoint(gpu_module), gpu_module.location:
        stub = ir.Operation.create(
            "gpu.module", attributes=ops.attributes_of(gpu_module), regions=1
        )
    block = stub.regions[0].blocks.append()
    for kernel in (one.operation for one in gpu_module.regions[0].blocks[0].operations):
        with ir.InsertionPoint(block), kernel.location:
            one = ir.Operation.create("gpu.func", attributes=ops.attributes_of(kernel), regions=1)
        arguments = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
        body = one.regions[0].blocks.append(*arguments)
        with ir.InsertionPoint(body), kernel.location:
            ir.Operation.create("gpu.return")
