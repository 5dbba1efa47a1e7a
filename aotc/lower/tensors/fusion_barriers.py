"""Elementwise work is kept out of matmuls that would repeat it.

MLIR fuses what computes an operand into what reads it. A matmul reads each element
once for each column of the other: an activation function, or the norm of a row, would be computed
as often. It becomes a loop of its own, which the loops of what made its operand can take in.
"""

from __future__ import annotations

import math
import re
from typing import Any

from aotc import ops
from aotc.analysis.generics import body_of, has_reduction, maps_of, narrow, non_unit_loops, origin
from aotc.kernels.matmul.least_work import LEAST_WORK
from aotc.mlir import ir

_HELD = "aotc.held"
_HOLDER = "bufferization.dealloc_tensor"
# Of these, one costs as little as the load that it belongs to.
_CHEAP = ("arith.addf", "arith.subf", "arith.mulf", "arith.addi", "arith.subi", "arith.muli")
# And these are a part of it. (Rounding is not: it is done once, and matmuls have kernels that
# read what is rounded.)
_YIELD = "linalg.yield"
_FREE = (_YIELD, "arith.extf", "arith.extsi", "arith.extui")


def insert_fusion_barriers(module: Any) -> None:
    """Gives what is not to be fused a second use, until `erase_fusion_barriers`."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            has_kernels = _has_kernels(generic)
            held = [
                value
                for value in _repeated_operands(generic)
                if _computes(value) or (has_kernels and _operations(value))
            ]
            if _dequantizes(generic):
                held += generic.results
            for value in (*held, *_flattened_operands(generic)):
                with generic.location, ir.InsertionPoint.after(ops.defining(value)):
                    ops.create(_HOLDER, [value], attributes={_HELD: ir.UnitAttr.get()})


def erase_fusion_barriers(module: Any) -> None:
    """Ends what `insert_fusion_barriers` began."""
    for holder in ops.find(module.operation, _HOLDER):
        if _HELD in holder.attributes:
            ops.erase(holder)


def _has_kernels(generic: Any) -> bool:
    """Whether it multiplies and adds, and is not known to be small: then it has kernels, that
    compute nothing else of their operands."""
    names = [op.name for op in body_of(generic) if op.name not in _FREE]
    if names not in (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"]):
        return False
    sizes: dict[int, int] = {}
    for value, map_ in zip(generic.operands, maps_of(generic), strict=True):
        type_ = value.type
        if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
            return True
        for result, size in zip(map_.results, type_.shape, strict=True):
            if isinstance(result, ir.AffineDimExpr):
                sizes[result.position] = int(size)
    return math.prod(sizes.values()) >= LEAST_WORK


def _repeated_operands(generic: Any) -> list[Any]:
    """The tensors, as they were made, of which a reduction reads an element more than once. One
    that is only widened for it is held as it was before: matmuls widen what they read."""
    if not has_reduction(generic):
        return []
    loops = set().union(*(non_unit_loops(generic, i) for i in range(len(generic.operands))))
    inputs, _ = ops.operand_groups(generic)
    return [
        narrow(origin(value))
        for value, map_ in zip(inputs, maps_of(generic), strict=False)
        if _is_tensor(value) and loops - _loops_of(map_)
    ]


def _dequantizes(generic: Any) -> bool:
    """Whether it is a product with quantized weights, whose kernels have a vector or a matrix as
    their result: what reads it in another shape would have its loops in that shape, too."""
    inputs, _ = ops.operand_groups(generic)
    types = [ir.ShapedType(value.type).element_type for value in inputs if _is_tensor(value)]
    return (
        has_reduction(generic)
        and any(isinstance(one, ir.IntegerType) for one in types)
        and any(isinstance(one, ir.FloatType) for one in types)
        and any(op.name == "arith.mulf" for op in body_of(generic))
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _flattened_operands(generic: Any) -> list[Any]:
    """The operands that a reshape flattens for a reduction to several results that depends on where
    elements are, as the place of an extreme: by a nest of loops it would carry several values."""
    if len(generic.results) < 2 or not has_reduction(generic):
        return []
    inputs, _ = ops.operand_groups(generic)
    made = [owner for value in inputs if (owner := ops.defining(value)) is not None]
    is_placed = any(op.name == "linalg.index" for op in body_of(generic))
    return [op.results[0] for op in made if op.name == "tensor.collapse_shape" and is_placed]


def _loops_of(map_: Any) -> set[int]:
    return {int(number) for number in re.findall(r"d(\d+)", " ".join(map(str, map_.results)))}


def _computes(value: Any) -> bool:
    """Whether what makes a tensor, once it is fused, does more than put elements elsewhere, widen
    or scale them."""
    names = _operations(value)
    return len(names) > 1 or any(name not in _CHEAP for name in names)


def _is_constant(operation: Any, generic: Any) -> bool:
    """Whether it is of values from outside alone: a constant of another type."""
    operands = list(operation.operands)
    return bool(operands) and all(ops.is_made_outside(value, generic) for value in operands)


def _operations(value: Any) -> list[str]:
    """The operations on elements that would be fused into what reads a tensor."""
    producer = ops.defining(value)
    if producer is None or producer.name != "linalg.generic" or has_reduction(producer):
        return []
    names = [
        op.name
        for op in body_of(producer)
        if op.name not in _FREE and not _is_constant(op, producer)
    ]
    inputs, _ = ops.operand_groups(producer)
    for source in map(origin, inputs):
        if len(names) < 2 and len({use.owner.operation for use in source.uses}) == 1:
            names += _operations(source)
    return names
