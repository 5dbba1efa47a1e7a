"""What is known of the operands and results of a sort: which operand has the elements' numbers, and
how many of the first elements are used."""

from __future__ import annotations

from typing import Any

from aotc import ops


def operand_of_numbers(ir: Any, operation: Any, dimension: int) -> int | None:
    """The operand whose elements are their own numbers along the dimension, if there is one."""
    found = (i for i, one in enumerate(operation.operands) if _has_numbers(ir, one, dimension))
    return next(found, None)


def _has_numbers(ir: Any, value: Any, dimension: int) -> bool:
    """Whether each element is its own number along the dimension, as in the indices that front ends
    sort for `sort` and `topk`."""
    producer = ops.defining(value)
    if producer is None or producer.name != "linalg.generic" or len(producer.results) != 1:
        return False
    names = ", ".join(f"d{i}" for i in range(ir.RankedTensorType(value.type).rank))
    (yielded,) = list(producer.regions[0].blocks[0].operations)[-1].operands
    cast = ops.defining(yielded)
    place = None
    if cast is not None and cast.name == "arith.index_cast":
        place = ops.defining(cast.operands[0])
    return (
        place is not None
        and place.name == "linalg.index"
        and ir.IntegerAttr(place.attributes["dim"]).value == dimension
        and str(list(producer.attributes["indexing_maps"])[-1])
        == f"affine_map<({names}) -> ({names})>"
    )


def used_length(operation: Any, dimension: int) -> int | None:
    """The number of the results' first elements along the dimension that are used, or None if all
    may be used."""
    ends = [0]
    for use in (use for result in operation.results for use in result.uses):
        if use.owner.name != "tensor.extract_slice":
            return None
        offset, size, stride = (
            use.owner.attributes[f"static_{kind}"][dimension]
            for kind in ("offsets", "sizes", "strides")
        )
        if min(offset, size) < 0 or stride != 1:
            return None
        ends.append(offset + size)
    return max(ends) or None
