"""Which accesses are contiguous: consecutive points access consecutive elements.

The analysis is for a kernel, and for a loop that is not yet a kernel: `variable` is the value that
counts the points in either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import Access
from aotc.mlir import ir

# Bytes of the widest access of one thread of a GPU.
VECTOR_BYTES = 16
_MOST_STEPS = 64


def coefficient(value: Any, variable: Any) -> int | None:
    """How much `value` grows when `variable` grows by 1: 0 if it does not depend on it; None if the
    growth is no constant, or if `value` takes more than `_MOST_STEPS` steps to compute."""
    return _coefficient(value, {variable: 1}, _MOST_STEPS)


def _coefficient(value: Any, found: dict[Any, int | None], steps: int) -> int | None:
    """As `coefficient`; `found` has the coefficients of values that are known already."""
    if value not in found:
        owner = ops.defining(value)
        if owner is None:
            return 0
        if steps == 0:
            return None
        parts = [_coefficient(operand, found, steps - 1) for operand in owner.operands]
        found[value] = _of_parts(owner, parts)
    return found[value]


def _of_parts(owner: Any, parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if owner.name == "arith.addi":
        return known[0] + known[1]
    if owner.name == "arith.subi":
        return known[0] - known[1]
    if owner.name == "arith.muli" and any(known):
        first, second = (ops.known_index(operand) for operand in owner.operands)
        if first is not None:
            return first * known[1]
        return None if second is None else second * known[0]
    return None if any(known) or owner.regions else 0


def element_bytes(type_: Any) -> int | None:
    """Bytes of a memref's element in memory; None if a vector of such elements has another layout
    in memory than the elements themselves."""
    element = type_.element_type
    is_number = isinstance(element, ir.IntegerType) and element.is_signless
    if not is_number and not isinstance(element, ir.FloatType):
        return None
    return int(element.width) // 8 if element.width in (8, 16, 32, 64) else None


def is_unit_stride(access: Access, variables: Sequence[Any]) -> bool:
    """Whether the access has unit stride along each of the variables: the next point accesses the
    next element in memory."""
    type_ = ir.MemRefType(access.memref.type)
    if type_.rank == 0 or type_.memory_space is not None or element_bytes(type_) is None:
        return False
    known = [one for one in static_strides(type_) if one is not None]
    # MLIR has no vectors of memrefs with negative strides.
    if static_strides(type_)[-1] != 1 or min(known) < 0:
        return False
    *outer, last = access.indices
    return all(
        coefficient(last, variable) == 1
        and all(coefficient(index, variable) == 0 for index in outer)
        and coefficient(access.memref, variable) == 0
        for variable in variables
    )


def static_strides(type_: Any) -> list[int | None]:
    """The stride of each dimension of a memref, in elements; None where it is dynamic."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return [None if one == unknown else int(one) for one in type_.get_strides_and_offset()[0]]
