"""Debug information for functions in the LLVM dialect: the lines of the input."""

from __future__ import annotations

from typing import Any

from aotc.input.source import find_place
from aotc.mlir import ir
from aotc.ops import walk
from aotc.rewrites.run import PassWatch, run_passes

LINES_PASS = "ensure-debug-info-scope-on-llvm-func"


def add_lines(module: Any, name: str, emission: str, watch: PassWatch) -> None:
    """Gives each function a debug scope. `emission` is MLIR's emission kind.

    In a function with a scope, LLVM requires a location for each call. A function without a file
    location (it is unknown, or a name) gets line 0 of `name`, and a call without one gets its
    function's location.
    """
    place = None
    for operation in walk(module.operation):
        if operation.name == "llvm.func":
            place = _placed(operation, ir.Location.file(name, 0, 0, module.context), name)
        elif operation.name in ("llvm.call", "llvm.invoke"):
            _placed(operation, place, name)
    run_passes(module, (f"{LINES_PASS}{{emission-kind={emission}}}",), name=name, watch=watch)


def _placed(operation: Any, place: Any, name: str) -> Any:
    """The operation's location; sets it to `place` first if it is not in a file."""
    if find_place(str(operation.location), name) is None:
        operation.location = place
    return operation.location
