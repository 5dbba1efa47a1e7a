"""Makes the dimension along which all accesses of a loop are contiguous its last one.

The threads of a warp, and the lanes of a vector, are along the last dimension. Copies into parts of
a concatenation are loops over channels, rows and columns, whatever layout the buffers have got.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import Access, accesses_in
from aotc.lower.mapping.build import create_parallel
from aotc.lower.mapping.nest import loop_trips
from aotc.mlir import ir


def interchange_dimensions(loop: Any) -> Any:
    """The scf.parallel, which has no results, with its dimensions in that order; `loop` itself if
    accesses are contiguous along its last dimension, or along different ones."""
    variables = list(loop.regions[0].blocks[0].arguments)
    accesses = [one for one in accesses_in(loop) if set(one.indices) & set(variables)]
    found = {_contiguous_variable(access, variables) for access in accesses}
    variable = found.pop() if len(found) == 1 else None
    if variable is None or variable == variables[-1]:
        return loop
    place = variables.index(variable)
    # A last dimension of one iteration is no reason for another loop.
    if all(trips == 1 for trips in loop_trips(loop)[place + 1 :]):
        return loop
    return _interchange(loop, [i for i in range(len(variables)) if i != place] + [place])


def _contiguous_variable(access: Access, variables: Sequence[Any]) -> Any | None:
    """The variable that is the index along the only dimension with stride 1; None for others."""
    type_ = ir.MemRefType(access.memref.type)
    try:
        strides, _ = type_.get_strides_and_offset()
    except RuntimeError:
        # The layout is an affine map that has no strides.
        return None
    along = [
        index
        for i, (index, stride) in enumerate(zip(access.indices, strides, strict=True))
        if stride == 1 and (type_.is_dynamic_dim(i) or type_.get_dim_size(i) != 1)
    ]
    return along[0] if len(along) == 1 and along[0] in variables else None


def _interchange(loop: Any, order: Sequence[int]) -> Any:
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    old = loop.regions[0].blocks[0]
    with loop.location, ir.InsertionPoint(loop):
        made = create_parallel(*([one[i] for i in order] for one in (lowers, uppers, steps)))
    for name in loop.attributes:
        if name != "operandSegmentSizes":
            made.attributes[name] = loop.attributes[name]
    new = made.regions[0].blocks[0]
    end = ops.terminator(new)
    for operation in ops.operations_in(old)[:-1]:
        operation.move_before(end)
    for i, variable in zip(order, new.arguments, strict=True):
        old.arguments[i].replace_all_uses_with(variable)
    ops.erase(loop)
    return made
