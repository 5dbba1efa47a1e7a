"""Keeps elementwise work out of contractions that would repeat it.

MLIR fuses the producer of an operand into its consumer. A matmul reads each element of an operand
once for each row or column of the other operand, and would compute a fused activation function or
row norm as often. With a barrier, this work becomes a separate loop, which can be fused with the
loops that produce its operands. A pooling, whose windows may overlap, leaves the activation
function of a convolution to the epilogue of the convolution's kernel.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.analysis.generics import (
    has_reduction,
    loop_sizes,
    loops_in,
    maps_of,
    narrow,
    non_unit_loops,
    origin,
    reduction_size,
)
from aotc.attributes import FUSION_BARRIER
from aotc.kernels.matmul.least_work import is_worth_a_kernel
from aotc.kernels.matmul.recognition import multiplies
from aotc.mlir import ir

_BARRIER_OPERATION = "bufferization.dealloc_tensor"
# A single one of these operations is as cheap as the load that it belongs to.
_CHEAP = ("arith.addf", "arith.subf", "arith.mulf", "arith.addi", "arith.subi", "arith.muli")
# These are part of the load. Rounding is not: it is done once, and matmuls have kernels that read
# the rounded values.
_YIELD = "linalg.yield"
# The most elementwise operations between a contraction and a pooling.
_MOST_STEPS = 4
_FREE = (_YIELD, "arith.extf", "arith.extsi", "arith.extui")
_GATHER = "tensor.extract"
# The most gathers that are repeated for each element along a dimension.
_MOST_GATHERS = 4
_CHEAP_FUNCTIONS = ("math.absf", "math.absi", "math.copysign", "math.fma")
# The most producers in which these are searched: there may be thousands.
_MOST_PRODUCERS = 64


def insert_fusion_barriers(module: Any) -> None:
    """Gives values that must not be fused a second use, until `erase_fusion_barriers`."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            has_kernels = _has_kernels(generic)
            kept_apart = [
                value
                for value in _repeated_operands(generic)
                if _computes(value) or (has_kernels and _operations(value))
            ]
            is_for_kernel = _is_broadcast_for_kernel(generic)
            is_gather = _GATHER in _names(generic)
            kept_apart += [
                value
                for value in _broadcast_operands(generic)
                if _gathers(value)
                or (is_for_kernel and _computes(value))
                or (is_gather and _has_functions(value))
            ]
            windows = _window_operands(generic)
            kept_apart += [value for value in windows if _is_epilogue(value)]
            kept_apart += _permuted_epilogues(generic)
            # A convolution reads an image by computed indices once its padding is fused. A reshape
            # of the result would then divide its loops, and it would have no kernels any more.
            if (windows and multiplies(generic)) or _dequantizes(generic):
                kept_apart += generic.results
            for value in (*kept_apart, *_flattened_operands(generic)):
                with generic.location, ir.InsertionPoint.after(ops.defining(value)):
                    ops.create(
                        _BARRIER_OPERATION, [value], attributes={FUSION_BARRIER: ir.UnitAttr.get()}
                    )


def erase_fusion_barriers(module: Any) -> None:
    """Erases the uses that `insert_fusion_barriers` inserted."""
    for barrier in ops.find(module.operation, _BARRIER_OPERATION):
        if FUSION_BARRIER in barrier.attributes:
            ops.erase(barrier)


def _has_kernels(generic: Any) -> bool:
    """Whether it is a multiply-accumulate that is not known to be small. Library kernels of such
    operations compute nothing else from their operands."""
    names = [op.name for op in ops.content(generic) if op.name not in _FREE]
    if names not in (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"]):
        return False
    if not all(_is_tensor(value) and value.type.has_static_shape for value in generic.operands):
        return True
    summed = None if _window_operands(generic) else reduction_size(generic)
    return is_worth_a_kernel(math.prod(loop_sizes(generic).values()), summed or 1)


def _repeated_operands(generic: Any) -> list[Any]:
    """The producers' tensors of operands whose elements a reduction reads more than once.

    For an operand that is only widened, it is the tensor before the widening, as matmuls widen what
    they read.
    """
    if not has_reduction(generic):
        return []
    return [narrow(origin(value)) for value in _read_again(generic)]


def _broadcast_operands(generic: Any) -> list[Any]:
    """As `_repeated_operands`, of elementwise operations."""
    return [] if has_reduction(generic) else list(map(origin, _read_again(generic)))


def _is_broadcast_for_kernel(generic: Any) -> bool:
    """Whether it only broadcasts a tensor, which kernels of matmuls read without the copy."""
    if len(ops.content(generic)) != 1 or not _read_again(generic):
        return False
    readers = [use.owner.operation for result in generic.results for use in result.uses]
    return any(
        reader.name == "linalg.generic" and has_reduction(reader) and _has_kernels(reader)
        for reader in readers
    )


def _read_again(generic: Any) -> list[Any]:
    """The operands that do not have all loops of more than one iteration."""
    loops = set().union(*(non_unit_loops(generic, i) for i in range(len(generic.operands))))
    inputs, _ = ops.operand_groups(generic)
    return [
        value
        for value, map_ in zip(inputs, maps_of(generic), strict=False)
        if _is_tensor(value) and loops - _loops_of(map_)
    ]


def _gathers(value: Any) -> bool:
    """Whether many dependent gathers make the elements of a tensor, as a walk down decision trees
    does."""
    names = itertools.chain.from_iterable(map(_names, _producers(value)))
    gathers = (name for name in names if name == _GATHER)
    return next(itertools.islice(gathers, _MOST_GATHERS, None), None) is not None


def _has_functions(value: Any) -> bool:
    """Whether functions, such as the logarithm of a distance, make the elements of a tensor."""
    names = itertools.chain.from_iterable(map(_names, _producers(value)))
    return any(name.startswith("math.") and name not in _CHEAP_FUNCTIONS for name in names)


def _names(generic: Any) -> list[str]:
    return [op.name for op in ops.content(generic)]


def _producers(value: Any) -> Iterator[Any]:
    """The elementwise operations that make a tensor, the last one first."""
    waiting, seen = [value], set[Any]()
    while waiting and len(seen) < _MOST_PRODUCERS:
        producer = ops.defining(waiting.pop())
        if producer is None or producer in seen or producer.name != "linalg.generic":
            continue
        seen.add(producer)
        if has_reduction(producer):
            continue
        yield producer
        inputs, _ = ops.operand_groups(producer)
        waiting += map(origin, filter(_is_tensor, inputs))


def _window_operands(generic: Any) -> list[Any]:
    """The operands that a reduction reads by windows."""
    if generic.name != "linalg.generic" or not has_reduction(generic):
        return []
    inputs, _ = ops.operand_groups(generic)
    return [
        value
        for value, map_ in zip(inputs, maps_of(generic), strict=False)
        if _is_tensor(value) and any(len(loops_in(result)) > 1 for result in map_.results)
    ]


def _is_epilogue(value: Any, steps: int = _MOST_STEPS) -> bool:
    """Whether the producer of a tensor is elementwise, and can be fused to a contraction."""
    producer = ops.defining(value)
    if not steps or producer is None or producer.name != "linalg.generic":
        return False
    if has_reduction(producer):
        return False
    inputs, _ = ops.operand_groups(producer)
    sources = [ops.defining(origin(one)) for one in inputs if _is_tensor(one)]
    return any(
        source is not None
        and source.name == "linalg.generic"
        and (
            _has_kernels(source)
            if has_reduction(source)
            else _is_epilogue(source.results[0], steps - 1)
        )
        for source in sources
    )


def _permuted_epilogues(generic: Any) -> list[Any]:
    """What an operation permutes, if it can be fused to a convolution: the convolution's
    kernel then stores the rounded result, and that of the permutation reads half as much."""
    inputs, _ = ops.operand_groups(generic)
    if has_reduction(generic) or len(inputs) != 1 or not _is_tensor(inputs[0]):
        return []
    map_ = maps_of(generic)[0]
    if not map_.is_permutation or map_ == ir.AffineMap.get_identity(map_.n_dims):
        return []
    value = origin(inputs[0])
    producer = ops.defining(value)
    if not _is_epilogue(value, 1) or producer is None:
        return []
    sources = map(ops.defining, map(origin, ops.operand_groups(producer)[0]))
    return [value] if any(one is not None and _window_operands(one) for one in sources) else []


def _dequantizes(generic: Any) -> bool:
    """Whether it is a matmul with quantized weights. Its kernels produce a vector or a matrix; if a
    consumer with another shape were fused, the matmul's loops would get that shape."""
    inputs, _ = ops.operand_groups(generic)
    types = [ir.ShapedType(value.type).element_type for value in inputs if _is_tensor(value)]
    return (
        has_reduction(generic)
        and any(isinstance(one, ir.IntegerType) for one in types)
        and any(isinstance(one, ir.FloatType) for one in types)
        and any(op.name == "arith.mulf" for op in ops.content(generic))
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _flattened_operands(generic: Any) -> list[Any]:
    """The operands that a reshape flattens for a reduction with several results that depends on
    indices, such as an argmax. Fused with the reshape, the reduction would become a loop nest that
    carries several values."""
    if len(generic.results) < 2 or not has_reduction(generic):
        return []
    inputs, _ = ops.operand_groups(generic)
    made = [owner for value in inputs if (owner := ops.defining(value)) is not None]
    is_placed = any(op.name == "linalg.index" for op in ops.content(generic))
    return [op.results[0] for op in made if op.name == "tensor.collapse_shape" and is_placed]


def _loops_of(map_: Any) -> set[int]:
    return {int(number) for number in re.findall(r"d(\d+)", " ".join(map(str, map_.results)))}


def _computes(value: Any) -> bool:
    """Whether the producer of a tensor, once fused, does more than move, widen or scale
    elements."""
    names = _operations(value)
    return len(names) > 1 or any(name not in _CHEAP for name in names)


def _is_constant(operation: Any, generic: Any) -> bool:
    """Whether all operands are values from outside, such as in a conversion of a constant."""
    operands = list(operation.operands)
    return bool(operands) and all(ops.is_made_outside(value, generic) for value in operands)


def _operations(value: Any) -> list[str]:
    """The names of the elementwise operations that would be fused into the reader of a tensor."""
    producer = ops.defining(value)
    if producer is None or producer.name != "linalg.generic" or has_reduction(producer):
        return []
    names = [
        op.name
        for op in ops.content(producer)
        if op.name not in _FREE and not _is_constant(op, producer)
    ]
    inputs, _ = ops.operand_groups(producer)
    for source in map(origin, inputs):
        if len(names) < 2 and len({use.owner.operation for use in source.uses}) == 1:
            names += _operations(source)
    return names
