"""Lines of MLIR text on tensors that several front ends generate."""

from __future__ import annotations

from typing import Any


def index_list(rank: int, dimension: int, along: str, others: str = "%d{i}") -> str:
    """An index list with `along` for a dimension, and `others` for each other one, where {i} is its
    number."""
    places = [others.format(i=i) for i in range(rank)]
    places[dimension] = along
    return ", ".join(places)


def size_lines(name: str, tensor: str, type_: Any) -> str:
    """Lines that define %NAME0, ..., the sizes of the tensor."""
    return "\n".join(
        f"%{name}_d{i} = arith.constant {i} : index\n"
        f"%{name}{i} = tensor.dim {tensor}, %{name}_d{i} : {type_}"
        for i in range(type_.rank)
    )
