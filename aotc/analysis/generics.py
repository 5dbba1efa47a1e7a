"""`linalg.generic` on tensors: its maps, its loops and its body."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from aotc import ops
from aotc.mlir import ir

RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")


def maps_of(generic: Any) -> list[Any]:
    """The indexing map of each operand."""
    return [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(generic.attributes["indexing_maps"])]


def set_maps(generic: Any, maps: Iterable[Any]) -> None:
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get([*map(ir.AffineMapAttr.get, maps)])


def has_reduction(generic: Any) -> bool:
    return bool(reduction_loops(generic))


def reduction_loops(generic: Any) -> list[int]:
    kinds = ir.ArrayAttr(generic.attributes["iterator_types"])
    return [i for i, kind in enumerate(kinds) if "reduction" in str(kind)]


def loop_sizes(generic: Any) -> dict[int, int]:
    """Loop → its iterations, where the static shape of an operand tells them."""
    sizes: dict[int, int] = {}
    for value, map_ in zip(generic.operands, maps_of(generic), strict=True):
        for dimension, expression in enumerate(map_.results):
            is_loop = isinstance(expression, ir.AffineDimExpr)
            if is_loop and not value.type.is_dynamic_dim(dimension):
                sizes[expression.position] = value.type.get_dim_size(dimension)
    return sizes


def reduction_size(generic: Any) -> int | None:
    """The number of elements that are reduced to one; None if the static shapes do not tell."""
    sizes = loop_sizes(generic)
    loops = reduction_loops(generic)
    return math.prod(sizes[loop] for loop in loops) if set(loops) <= set(sizes) else None


def loops_in(expression: Any) -> set[int]:
    """The loops that an expression of a map depends on."""
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position}
    if isinstance(expression, ir.AffineBinaryExpr):
        return loops_in(expression.lhs) | loops_in(expression.rhs)
    return set()


def is_depthwise(maps: Iterable[Any]) -> bool:
    """Whether a product with these maps is a depthwise convolution: its filter has some of the
    loops that move the windows of its input, and no others."""
    factors = sorted(list(maps)[:2], key=lambda map_: map_.is_projected_permutation)
    window, filter_ = (set().union(*(loops_in(one) for one in map_.results)) for map_ in factors)
    is_window = not factors[0].is_projected_permutation and factors[1].is_projected_permutation
    return is_window and filter_ <= window


def origin(value: Any) -> Any:
    """The tensor before it was reshaped."""
    while (owner := ops.defining(value)) is not None and owner.name in RESHAPES:
        value = owner.operands[0]
    return value


def narrow(value: Any) -> Any:
    """The operand of the widening that makes the tensor, if the tensor is only widened; otherwise
    the tensor. (A matmul widens its operands itself, and has kernels for narrow ones.)"""
    while (producer := ops.defining(value)) is not None and producer.name == "linalg.generic":
        inputs, _ = ops.operand_groups(producer)
        names = [op.name for op in ops.content(producer)]
        if len(inputs) != 1 or names not in (
            ["arith.extf", "linalg.yield"],
            ["arith.extsi", "linalg.yield"],
        ):
            break
        value = origin(inputs[0])
    return value


def non_unit_loops(generic: Any, operand: int) -> set[int]:
    """The loops along those dimensions of the operand whose size is not known to be 1."""
    type_ = generic.operands[operand].type
    return {
        expression.position
        for dimension, expression in enumerate(maps_of(generic)[operand].results)
        if isinstance(expression, ir.AffineDimExpr)
        and (type_.is_dynamic_dim(dimension) or type_.get_dim_size(dimension) != 1)
    }
