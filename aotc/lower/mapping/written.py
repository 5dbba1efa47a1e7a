"""What the author wrote of parallel loops, noted in the input until loops are mapped.

A function that says what runs in parallel keeps its other loops in sequence: by then linalg, too,
is parallel loops. A loop or a linalg operation that says how large its blocks are is known by its
place: of its attributes little comes through the passes in between.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.load.entries import functions_of
from aotc.load.source import Source
from aotc.lower.mapping.blocks import BLOCK_ATTRIBUTE, BlockShape, block_of
from aotc.mlir import ir

_MARK = "aotc.sequential"
_BLOCKS = "aotc.blocks"
# What says that the author decided what runs in parallel.
PARALLEL_OPS = ("gpu.launch", "gpu.launch_func", "scf.parallel", "affine.parallel", "scf.forall")


def mark_parallel(source: Source) -> None:
    """Marks the functions that have parallel loops or launches, and notes the blocks.

    Raises InputError for a block that no GPU has.
    """
    with source.module.context:
        for function in functions_of(source.module):
            operations = ops.walk(function)
            if any(op.name in PARALLEL_OPS or "mapping" in op.attributes for op in operations):
                function.attributes[_MARK] = ir.UnitAttr.get()
            blocks = {}
            for operation in operations:
                if BLOCK_ATTRIBUTE in operation.attributes:
                    place = source.place(operation.location)
                    block_of(operation, place)
                    blocks[str(place)] = operation.attributes[BLOCK_ATTRIBUTE]
            if blocks:
                function.attributes[_BLOCKS] = ir.DictAttr.get(blocks)


def given_block(loop: Any, source: Source | None) -> BlockShape | None:
    """The block that the loop's author asked for, if there is one."""
    place = source.place(loop.location) if source is not None else None
    own = block_of(loop, place)
    function = ops.enclosing(loop, "func.func")
    if own is not None or place is None or function is None:
        return own
    noted = ir.DictAttr(function.attributes[_BLOCKS]) if _BLOCKS in function.attributes else {}
    return BlockShape(*noted[str(place)]) if str(place) in noted else None


def is_sequential(loop: Any) -> bool:
    """Whether the loop's function carries the mark."""
    return any(_MARK in op.attributes for op in ops.ancestors(loop))


def erase_marks(module: Any) -> None:
    """Takes all marks away."""
    for function in functions_of(module):
        for mark in (_MARK, _BLOCKS):
            if mark in function.attributes:
                del function.attributes[mark]
