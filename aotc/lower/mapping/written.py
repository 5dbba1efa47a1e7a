"""Functions whose author wrote what runs in parallel: their other loops stay in sequence.

A mark, from the input on until loops are mapped: linalg, too, becomes parallel loops.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.load.entries import functions_of
from aotc.mlir import ir

_MARK = "aotc.sequential"
# What says that the author decided what runs in parallel.
PARALLEL_OPS = ("gpu.launch", "gpu.launch_func", "scf.parallel", "affine.parallel", "scf.forall")


def mark_parallel_functions(module: Any) -> None:
    """Marks the functions that have parallel loops or launches."""
    with module.context:
        for function in functions_of(module):
            if any(
                op.name in PARALLEL_OPS or "mapping" in op.attributes for op in ops.walk(function)
            ):
                function.attributes[_MARK] = ir.UnitAttr.get()


def is_sequential(loop: Any) -> bool:
    """Whether the loop's function carries the mark."""
    return any(_MARK in op.attributes for op in ops.ancestors(loop))


def erase_marks(module: Any) -> None:
    """Takes all marks away."""
    for function in functions_of(module):
        if _MARK in function.attributes:
            del function.attributes[_MARK]
