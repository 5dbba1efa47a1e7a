"""Records the parallelism and block sizes that the author requested, until loops are mapped.

A function with explicit parallelism keeps its other loops sequential. This must be recorded early,
as linalg operations become parallel loops later. The same holds for each function of a module that
manages GPU memory itself: the author decided where the data of its loops is, often for the host. A
loop or linalg operation that requests a block size is identified by its location, as few of its
attributes survive the passes in between.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import BLOCK_ATTRIBUTE, BLOCKS_ATTRIBUTE, IMPORTED_ATTRIBUTE, SEQUENTIAL
from aotc.input.entries import functions_of
from aotc.input.source import Source
from aotc.lower.mapping.blocks import block_of
from aotc.mlir import ir

# Operations that show that the author decided what runs in parallel.
_PARALLEL_OPS = ("gpu.launch", "gpu.launch_func", "scf.parallel", "affine.parallel", "scf.forall")
_MEMORY_OPS = ("gpu.alloc", "gpu.memcpy", "gpu.memset", "gpu.host_register")


def mark_explicit_parallelism(source: Source) -> None:
    """Marks the functions that have parallel loops or launches, and records requested block sizes.

    Raises InputError for a block size that no GPU supports.
    """
    with source.module.context:
        by_function = [(function, ops.walk(function)) for function in functions_of(source.module)]
        manages_memory = any(op.name in _MEMORY_OPS for _, body in by_function for op in body)
        for function, operations in by_function:
            # In a function from a front end, the author did not write the loops.
            is_written = IMPORTED_ATTRIBUTE not in function.attributes
            if is_written and (manages_memory or any(map(is_explicitly_parallel, operations))):
                function.attributes[SEQUENTIAL] = ir.UnitAttr.get()
            blocks = {}
            for operation in operations:
                if BLOCK_ATTRIBUTE in operation.attributes:
                    place = source.place(operation.location)
                    block_of(operation, place)
                    blocks[str(place)] = operation.attributes[BLOCK_ATTRIBUTE]
            if blocks:
                function.attributes[BLOCKS_ATTRIBUTE] = ir.DictAttr.get(blocks)


def is_explicitly_parallel(operation: Any) -> bool:
    """Whether the operation shows that its author decided what runs in parallel."""
    return operation.name in _PARALLEL_OPS or "mapping" in operation.attributes


def attach_block_sizes(function: Any, source: Source | None) -> None:
    """Attaches the requested block sizes to the loops of a function, as attributes.

    Raises InputError for a block size that no GPU supports.
    """
    noted = (
        ir.DictAttr(function.attributes[BLOCKS_ATTRIBUTE])
        if BLOCKS_ATTRIBUTE in function.attributes
        else {}
    )
    for loop in ops.find(function, "scf.parallel", "scf.for"):
        place = source.place(loop.location) if source is not None else None
        if block_of(loop, place) is None and str(place) in noted:
            loop.attributes[BLOCK_ATTRIBUTE] = noted[str(place)]


def drop_device_mappings(function: Any) -> None:
    """Erases the mappings of loops that were `scf.forall`, such as `#gpu.block<x>`. They say which
    dimension of a grid or block a loop has, which does not change what is parallel."""
    for loop in ops.find(function, "scf.parallel"):
        if "mapping" in loop.attributes and "loop_dim_map" not in str(loop.attributes["mapping"]):
            del loop.attributes["mapping"]


def is_sequential(operation: Any) -> bool:
    """Whether the operation, or a function that contains it, is marked."""
    return any(SEQUENTIAL in op.attributes for op in (operation, *ops.ancestors(operation)))


def erase_marks(module: Any) -> None:
    """Erases all marks."""
    for function in functions_of(module):
        for mark in (SEQUENTIAL, BLOCKS_ATTRIBUTE):
            if mark in function.attributes:
                del function.attributes[mark]
