"""Loads from padded buffers → conditional loads.

`select(is_in, load(x[select(is_in, i, 0)]), value)` reads the first element for indices outside of
x. On GPUs this avoids divergence. On a CPU, a conditional load is vectorized with masks, and
contiguous elements are loaded as a vector; that is not possible with selected addresses.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_TYPES = ("f32", "f64", "i32", "i64")
_PURE = ("arith.", "math.", "index.", "affine.apply")


def load_under_conditions(root: Any) -> None:
    """Changes such loads in `root`, in place, of elements of at least 32 bits: not every CPU has
    masked loads of narrower ones."""
    for select in ops.find(root, "arith.select"):
        load = ops.defining(select.operands[1])
        if load is not None and load.name == "memref.load":
            _put_inside(select, load)


def _put_inside(select: Any, load: Any) -> None:
    condition, value, other = select.operands
    selected = [_selected(index, condition) for index in load.operands[1:]]
    if (
        not any(selected)
        or len(list(load.results[0].uses)) != 1
        or load.block != select.block
        or str(value.type) not in _TYPES
        or not _is_pure_between(load, select)
    ):
        return
    with select.location, ir.InsertionPoint(select):
        branch = ops.create("scf.if", [condition], [value.type], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            indices = [one or index for one, index in zip(selected, load.operands[1:], strict=True)]
            loaded = ops.load(load.operands[0], indices)
            ops.create("scf.yield", [loaded])
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            ops.create("scf.yield", [other])
    ops.replace(select, [branch.results[0]])
    ops.erase(load)


def _is_pure_between(load: Any, select: Any) -> bool:
    """Whether the operations between the two neither write memory nor synchronize."""
    between = ops.operations_in(select.block)
    between = between[between.index(load) + 1 : between.index(select)]
    return all(
        one.name.startswith(_PURE) or one.name in ("memref.load", "memref.dim") for one in between
    )


def _selected(index: Any, condition: Any) -> Any | None:
    """The value of an index if the condition holds, if the index is a select on it; else None."""
    maker = ops.defining(index)
    if maker is None or maker.name != "arith.select" or maker.operands[0] != condition:
        return None
    return maker.operands[1]
