"""`vector.bitcast` of elements whose width is not a power of two → shifts of small integers.

LLVM lowers such casts wrongly. The bits of a row are split into groups that whole elements of both
types fill: a group of 40 bits has 8 elements of i5, and 5 of i8. A group is computed in an integer
whose width is a power of two, because from shifts in an i40 LLVM would make the cast again.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.mlir import ir


def has_odd_elements(type_: Any) -> bool:
    """Whether a type is a vector of elements whose width is not a power of two."""
    if not isinstance(type_, ir.VectorType) or not hasattr(type_.element_type, "width"):
        return False
    width = int(type_.element_type.width)
    return width & (width - 1) != 0


def is_expandable(old: Any, new: Any) -> bool:
    """Whether a cast between these vectors can be expanded. It cannot if an element of the new type
    consists of several odd-sized elements, as LLVM might compute in such elements."""
    return not (
        has_odd_elements(old) and _width(new) > _width(old) and _width(new) % _width(old) == 0
    )


def _width(type_: Any) -> int:
    return int(type_.element_type.width)


def expand_bit_casts(root: Any) -> None:
    """Changes the casts under `root` in place."""
    for cast in ops.find(root, "vector.bitcast"):
        given, result = cast.operands[0], cast.results[0]
        if has_odd_elements(given.type) or has_odd_elements(result.type):
            with cast.location, ir.InsertionPoint(cast):
                result.replace_all_uses_with(_expanded(given, result.type))
            ops.erase(cast)


def _expanded(given: Any, type_: Any) -> Any:
    old, new = _width(given.type), _width(type_)
    bits = math.prod(given.type.shape) * old
    row = ir.VectorType.get([bits // old], ops.integer(old))
    values = ops.shape_cast(_as_bits(given), row)
    elements = [ops.extract(values, number) for number in range(bits // old)]
    group = math.lcm(old, new)
    joined = [
        _join(elements[first : first + group // old], group)
        for first in range(0, bits // old, group // old)
    ]
    narrow = [
        _cut(whole, place, ops.integer(new)) for whole in joined for place in range(0, group, new)
    ]
    made = ir.VectorType.get([bits // new], ops.integer(new))
    vector = ops.create("vector.from_elements", narrow, [made]).result
    vector = ops.shape_cast(vector, ops.with_element_type(type_, ops.integer(new)))
    return vector if vector.type == type_ else ops.unary("arith.bitcast", vector, type_)


def _as_bits(value: Any) -> Any:
    element = value.type.element_type
    if isinstance(element, ir.IntegerType):
        return value
    bits = ops.with_element_type(value.type, ops.integer(int(element.width)))
    return ops.unary("arith.bitcast", value, bits)


def _join(elements: list[Any], width: int) -> Any:
    """The concatenation of elements, the first in the lowest bits, in an integer of at least
    `width` bits."""
    if len(elements) == 1:
        return elements[0]
    type_, size = ops.integer(1 << (width - 1).bit_length()), elements[0].type.width
    whole = ops.unary("arith.extui", elements[0], type_)
    for number, element in enumerate(elements[1:], 1):
        wide = ops.unary("arith.extui", element, type_)
        moved = ops.binary("arith.shli", wide, ops.constant(type_, number * size))
        whole = ops.binary("arith.ori", whole, moved)
    return whole


def _cut(whole: Any, place: int, type_: Any) -> Any:
    """The bits of an integer from bit `place` on, as many as `type_` has."""
    if whole.type == type_:
        return whole
    moved = ops.binary("arith.shrui", whole, ops.constant(whole.type, place)) if place else whole
    return ops.unary("arith.trunci", moved, type_)
