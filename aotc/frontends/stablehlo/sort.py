"""Lowers `stablehlo.sort` by `aotc.frontends.merge_sort`, which is stable whether or not the
operation requires it. https://openxla.org/stablehlo/spec#sort"""

from __future__ import annotations

from typing import Any

from aotc.frontends.merge_sort import MergeSort
from aotc.frontends.stablehlo.regions import declare_region, replace_by_text


def lower_sort(ir: Any, operation: Any) -> None:
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    operands = ", ".join(f"{type_.element_type}, {type_.element_type}" for type_ in types)

    def is_before(name: str, first: str, second: str) -> str:
        values = ", ".join(f"%{first}{i}, %{second}{i}" for i in range(len(types)))
        return f"%{name} = func.call @region({values}) : ({operands}) -> i1"

    dimension = ir.IntegerAttr(operation.attributes["dimension"]).value
    sort = MergeSort(types, dimension, is_before)
    elements = [type_.element_type for type_ in types for _ in range(2)]
    replace_by_text(ir, operation, declare_region(elements, ["i1"]) + sort.text())
