"""Elementwise operations on tensor-core fragments that upstream lowers wrongly → others.

convert-gpu-to-nvvm supports only some kinds of `gpu.subgroup_mma_elementwise`: it lowers subf to a
division, and aborts the process for kinds that it does not support.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.input.source import Source
from aotc.mlir import ir
from aotc.ops import create, find

_NAME = "gpu.subgroup_mma_elementwise"
_LOWERED = ("addf", "mulf", "divf", "maxf", "minf")


def replace_elementwise(device: Any, source: Source) -> None:
    """Replaces subf and negatef everywhere under `device`. Raises InputError for unsupported
    kinds."""
    found = find(device, _NAME)
    problems = [
        f"{_NAME}{_at(op, source)}: '{_kind(op)}' has no lowering for GPUs"
        for op in found
        if _kind(op) not in (*_LOWERED, "subf", "negatef")
    ]
    if problems:
        raise InputError(
            "\n".join(problems),
            hint="Load the elements by threads, or compute in the accumulator's type.",
        )
    for operation in found:
        if _kind(operation) in _LOWERED:
            continue
        with ir.InsertionPoint(operation), operation.location:
            operands = list(operation.operands)
            # A product with -1 is exact, so the sum with it is the correctly rounded difference.
            result = _build("mulf", [operands[-1], _minus_one(operation.results[0].type)])
            if _kind(operation) == "subf":
                result = _build("addf", [operands[0], result])
        ops.replace(operation, [result])


def _kind(operation: Any) -> str:
    # #gpu<mma_element_wise addf>
    found = re.search(r"(\w+)>$", str(operation.attributes["opType"]))
    return found[1] if found else ""


def _at(operation: Any, source: Source) -> str:
    place = source.place(operation.location)
    return "" if place is None else f" at {place}"


def _build(kind: str, operands: list[Any]) -> Any:
    attribute = ir.Attribute.parse(f"#gpu<mma_element_wise {kind}>")
    return create(_NAME, operands, [operands[0].type], {"opType": attribute}).result


def _minus_one(type_: Any) -> Any:
    element = re.search(r"x([a-z]\w*), ", str(type_))
    number = ir.Type.parse(element[1] if element else "f32")
    value = ops.constant_from(ir.FloatAttr.get(number, -1.0))
    return ops.unary("gpu.subgroup_mma_constant_matrix", value, type_)
