"""Narrows the integers of quantized matmuls, as front ends write them, to the width of their
values.

A front end widens bytes, subtracts their zero points in 32 bits, multiplies and accumulates in 64
bits, and truncates to 32. Here accumulators get 32 bits if nothing reads more of them, or if they
cannot be larger. Factors whose range is within 8 or 16 bits are stored with that width. If the
matmul's own body computes the factors, as the body of `linalg.quantized_matmul` subtracts zero
points, they are computed before it (`separated_factors.py`).

The difference of a byte and a zero point has 9 bits. With one zero point p for a whole factor,

    sum of (x - p) w = sum of (x - c) w + (c - p) * sum of w

where the constant c is chosen such that x - c is a signed byte. There is one sum of w per column of
w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import (
    RESHAPES,
    has_reduction,
    is_depthwise,
    maps_of,
    reduction_loops,
    reduction_size,
)
from aotc.kernels.matmul.recognition import multiplies, unwidened
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.lower.tensors.integer_ranges import (
    Range,
    range_of,
    range_of_scalar,
    range_of_type,
    ranges_in,
)
from aotc.lower.tensors.separated_factors import separate_factors
from aotc.mlir import ir

_SUM_BITS = 32
_FACTOR_BITS = (8, 16)
# The limit of operations that the range analysis looks through.
_MOST_STEPS = 12


def narrow_integers(module: Any) -> None:
    """Changes `module`, whose named operations are `linalg.generic` on tensors, in place."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            separate_factors(generic)
        for generic in ops.find(module.operation, "linalg.generic"):
            if _is_product(generic):
                with generic.location, ir.InsertionPoint(generic):
                    product = _narrow_sum(generic)
                if is_depthwise(maps_of(product)) and _has_known_zero(product):
                    continue  # which its kernels subtract
                for number in range(2):
                    with product.location, ir.InsertionPoint(product):
                        _center_factor(product, number)
                    # Narrowed here, the first factor is summed as bytes when the second one is
                    # centered.
                    with product.location, ir.InsertionPoint(product):
                        _narrow_factor(product, number)


def _is_product(generic: Any) -> bool:
    if not has_reduction(generic) or len(generic.results) != 1 or not multiplies(generic):
        return False
    element = generic.results[0].type.element_type
    return isinstance(element, ir.IntegerType) and element.width >= _SUM_BITS


def _narrow_factor(generic: Any, number: int) -> None:
    factor = generic.operands[number]
    element = factor.type.element_type
    if _is_widened(factor):
        return  # the matmul widens it itself
    least, largest = range_of(factor, _MOST_STEPS)
    for bits in _FACTOR_BITS:
        if bits < element.width and -(1 << bits - 1) <= least and largest < 1 << bits - 1:
            narrow = _cast(factor, "arith.trunci", bits)
            generic.operands[number] = _cast(narrow, "arith.extsi", element.width)
            return


def _is_widened(tensor: Any) -> bool:
    producer = ops.defining(tensor)
    return (
        producer is not None
        and producer.name == "linalg.generic"
        and [op.name for op in ops.content(producer)] == ["arith.extsi", "linalg.yield"]
    )


def _narrow_sum(generic: Any) -> Any:
    """The matmul, replaced by one with 32-bit accumulators if possible."""
    result = generic.results[0]
    if result.type.element_type.width <= _SUM_BITS:
        return generic
    if not (_is_truncated(result) or _is_small(generic)):
        return generic
    i32 = ir.IntegerType.get_signless(_SUM_BITS)
    *factors, start = generic.operands
    if (zero := filled_with(start)) is None:
        start = _cast(start, "arith.trunci", _SUM_BITS)
    else:
        type_ = ir.RankedTensorType.get(list(start.type.shape), i32)
        value = ops.unary("arith.trunci", zero, i32)
        start = create_broadcast(
            value, type_, ir.AffineMap.get(type_.rank, 0, []), ops.dynamic_sizes(start)
        )
    product = ops.create(
        "linalg.generic",
        [*factors, start],
        [start.type],
        ops.attributes_of(generic),
        regions=1,
    )
    types = [factor.type.element_type for factor in factors]
    block = product.regions[0].blocks.append(*types, i32)
    arguments = list(generic.regions[0].blocks[0].arguments)
    multiply = next(op for op in ops.content(generic) if op.name == "arith.muli")
    with ir.InsertionPoint(block):
        pair = [
            _resize(block.arguments[arguments.index(unwidened(factor))], i32)
            for factor in multiply.operands
        ]
        term = ops.binary("arith.muli", *pair)
        ops.create("linalg.yield", [ops.binary("arith.addi", block.arguments[2], term)])
    wide = _cast(product.results[0], "arith.extsi", result.type.element_type.width)
    result.replace_all_uses_with(wide)
    ops.erase(generic)
    return product


def _resize(value: Any, type_: Any) -> Any:
    """The integer sign-extended or truncated to the type."""
    if value.type == type_:
        return value
    return ops.unary(
        "arith.extsi" if value.type.width < type_.width else "arith.trunci", value, type_
    )


def _is_truncated(tensor: Any) -> bool:
    """Whether all users only read the lower 32 bits."""
    for use in tensor.uses:
        user = use.owner.operation
        if user.name in RESHAPES:
            if not _is_truncated(user.results[0]):
                return False
            continue
        inputs, _ = ops.operand_groups(user) if user.name == "linalg.generic" else ((), ())
        if use.operand_number >= len(inputs):
            return False
        argument = user.regions[0].blocks[0].arguments[use.operand_number]
        casts = [one.owner.operation for one in argument.uses]
        if not all(
            cast.name == "arith.trunci" and cast.results[0].type.width <= _SUM_BITS
            for cast in casts
        ):
            return False
    return True


def _is_small(generic: Any) -> bool:
    """Whether the initial value is 0 and no sum exceeds 32 bits."""
    *factors, start = generic.operands
    zero = filled_with(start)
    is_zero = zero is not None and range_of_scalar(zero, {}, 1) == (0, 0)
    count = reduction_size(generic)
    if not is_zero or count is None:
        return False
    largest = (max(map(abs, range_of(factor, _MOST_STEPS))) for factor in factors)
    return math.prod(largest) * count < 1 << _SUM_BITS - 1


def filled_with(tensor: Any) -> Any | None:
    """The scalar that a tensor is filled with; None if it is not a fill."""
    fill = ops.defining(tensor)
    if fill is None or fill.name != "linalg.generic":
        return None
    inputs, _ = ops.operand_groups(fill)
    if len(ops.content(fill)) != 1 or len(inputs) != 1 or isinstance(inputs[0].type, ir.ShapedType):
        return None
    (yielded,) = ops.content(fill)[0].operands
    return inputs[0] if yielded == fill.regions[0].blocks[0].arguments[0] else None


def _cast(tensor: Any, name: str, bits: int) -> Any:
    """The tensor with elements of `bits` bits."""
    type_ = ir.RankedTensorType.get(list(tensor.type.shape), ir.IntegerType.get_signless(bits))
    identity = ir.AffineMap.get_identity(type_.rank)
    return create_broadcast(tensor, type_, identity, ops.dynamic_sizes(tensor), name)


# --- Zero points -------------------------------------------------------------------------------


def _center_factor(product: Any, number: int) -> None:
    """Replaces a factor `byte - zero point` by `byte - constant`, and adds the correction to the
    result."""
    maps, reductions = maps_of(product), reduction_loops(product)
    factor, other = product.operands[number], product.operands[1 - number]
    difference = ops.defining(factor)
    # The factor's own map may be of any form, such as that of a convolution's image.
    is_known = all(map_.is_projected_permutation for map_ in (maps[1 - number], maps[2]))
    if not is_known or difference is None:
        return
    loops = [ir.AffineDimExpr(one).position for one in maps[1 - number].results]
    if not set(reductions) <= set(loops) or (found := _difference(difference)) is None:
        return
    least, largest = _range_of_minuend(difference)
    middle = least + (1 << _FACTOR_BITS[0] - 1)
    is_centered = range_of_scalar(found, {}, 1) == (middle, middle)
    if largest - least >= 1 << _FACTOR_BITS[0] or is_centered:
        return
    # If the accumulator is as wide as the difference, the result is the same even if the difference
    # overflows.
    is_wider = product.results[0].type.element_type.width > found.type.width
    if is_wider and not _difference_fits((least, largest), found):
        return
    center = ops.constant(found.type, middle)
    product.operands[number] = _subtract_instead(difference, center)
    rest = ops.binary("arith.subi", center, found)
    readers = [(use.owner.operation, use.operand_number) for use in product.results[0].uses]
    with ir.InsertionPoint.after(product):
        sums = _sum_of(other, [loops.index(loop) for loop in reductions], product.results[0].type)
        results = [ir.AffineDimExpr(one).position for one in maps[2].results]
        columns = [results.index(loop) for loop in loops if loop not in reductions]
        whole = _add_multiple(product.results[0], rest, sums, columns)
    for reader, operand in readers:
        reader.operands[operand] = whole


def _difference_fits(minuend: Range, subtrahend: Any) -> bool:
    """Whether the difference cannot overflow the subtrahend's type."""
    least, largest = range_of_scalar(subtrahend, {}, _MOST_STEPS)
    lowest, highest = range_of_type(subtrahend.type)
    return lowest <= minuend[0] - largest and minuend[1] - least <= highest


def _has_known_zero(product: Any) -> bool:
    """Whether a factor is a difference of a byte and a constant."""
    differences = [ops.defining(factor) for factor in product.operands[:2]]
    with product.location, ir.InsertionPoint(product):
        found = [_difference(one) for one in differences if one is not None]
    return any(zero is not None and len(set(range_of_scalar(zero, {}, 1))) == 1 for zero in found)


def _difference(generic: Any) -> Any | None:
    """The scalar that an elementwise operation subtracts as its last step, as a value at the
    insertion point; None for other operations."""
    if generic.name != "linalg.generic" or has_reduction(generic) or len(generic.results) != 1:
        return None
    subtract = ops.defining(ops.content(generic)[-1].operands[0])
    if subtract is None or subtract.name != "arith.subi":
        return None
    subtrahend = subtract.operands[1]
    if subtract.parent != generic:
        return None
    if ops.is_made_outside(subtrahend, generic):
        return subtrahend
    if subtrahend not in list(generic.regions[0].blocks[0].arguments):
        return None
    value = generic.operands[list(generic.regions[0].blocks[0].arguments).index(subtrahend)]
    if not isinstance(value.type, ir.ShapedType):
        return value
    if value.type.rank != 0:
        return None
    return ops.unary("tensor.extract", value, value.type.element_type)


def _range_of_minuend(generic: Any) -> Range:
    subtract: Any = ops.defining(ops.content(generic)[-1].operands[0])
    return range_of_scalar(subtract.operands[0], ranges_in(generic, _MOST_STEPS), _MOST_STEPS)


def _subtract_instead(generic: Any, value: Any) -> Any:
    clone = generic.clone()
    subtract: Any = ops.defining(ops.content(clone)[-1].operands[0])
    subtract.operands[1] = value
    return clone.results[0]


def _sum_of(tensor: Any, dimensions: Sequence[int], like: Any) -> Any:
    """The sums of a tensor along `dimensions`, with the element type of `like`."""
    rank, element = tensor.type.rank, like.element_type
    kept = [i for i in range(rank) if i not in dimensions]
    type_ = ir.RankedTensorType.get([tensor.type.shape[i] for i in kept], element)
    sizes = ops.dynamic_sizes(tensor, kept)
    none = ir.AffineMap.get(type_.rank, 0, [])
    start = create_broadcast(ops.constant(element, 0), type_, none, sizes)
    maps = [
        ir.AffineMap.get_identity(rank),
        ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(i) for i in kept]),
    ]

    def add(term: Any, total: Any) -> Any:
        return ops.binary("arith.addi", total, _resize(term, element))

    return ops.create_generic([tensor, start], maps, add, dimensions).result


def _add_multiple(tensor: Any, factor: Any, sums: Any, dimensions: Sequence[int]) -> Any:
    """The tensor plus a scalar times `sums`, which is broadcast along the other dimensions."""
    rank, element = tensor.type.rank, tensor.type.element_type
    factor = _resize(factor, element)
    identity = ir.AffineMap.get_identity(rank)
    along = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(i) for i in dimensions])
    none = ir.AffineMap.get(rank, 0, [])

    def add(own: Any, sum_: Any, by: Any) -> Any:
        return ops.multiply_add_integers(by, sum_, own)

    inputs, sizes = [tensor, sums, factor], ops.dynamic_sizes(tensor)
    return ops.create_elementwise(inputs, tensor.type, sizes, add, [identity, along, none])
