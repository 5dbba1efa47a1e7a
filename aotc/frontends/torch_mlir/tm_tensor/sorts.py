"""`tm_tensor.sort` and `topk` → merges: `aotc.frontends.merge_sort`."""

from __future__ import annotations

from typing import Any

from aotc.frontends.merge_sort import MergeSort
from aotc.frontends.tensor_text import size_lines
from aotc.frontends.torch_mlir.tm_tensor.attributes import dimension_of

# Predicates of arith.cmpi and arith.cmpf with which torch-mlir compares two elements that are in
# order: ascending, and descending.
_ASCENDING = {"arith.cmpi": (2, 3, 6, 7), "arith.cmpf": (4, 5, 11, 12)}
_DESCENDING = {"arith.cmpi": (4, 5, 8, 9), "arith.cmpf": (2, 3, 9, 10)}


def sort_text(ir: Any, operation: Any) -> str | None:
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    sort = _merge_sort(ir, operation, types)
    return None if sort is None else sort.text()


def topk_text(ir: Any, operation: Any) -> str | None:
    """The first elements, of a tensor alone, and where they were, by sorting all."""
    if len(operation.operands) != 3:
        return None
    source, values, indices = (ir.RankedTensorType(value.type) for value in operation.operands)
    element, rank, dimension = indices.element_type, source.rank, dimension_of(ir, operation)
    places = ir.RankedTensorType.get(source.shape, element)
    sort = _merge_sort(ir, operation, [source, places])
    if sort is None:
        return None
    dimensions = ", ".join(f"d{i}" for i in range(rank))
    dynamic = ", ".join(f"%size{i}" for i in range(rank) if source.is_dynamic_dim(i))
    counts = [
        f"%count{i}" if values.is_dynamic_dim(i) else str(values.shape[i]) for i in range(rank)
    ]
    first = f"[{', '.join('0' * rank)}] [{', '.join(counts)}] [{', '.join('1' * rank)}]"
    return f"""{sort.text()}
func.func @topk(%source: {source}, %values: {values}, %indices: {indices})
    -> ({values}, {indices}) {{
  {size_lines("size", "%source", source)}
  {size_lines("count", "%values", values)}
  %empty = tensor.empty({dynamic}) : {places}
  %places = linalg.generic {{
      indexing_maps = [affine_map<({dimensions}) -> ({dimensions})>],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}} outs(%empty : {places}) {{
    ^bb0(%none: {element}):
      %at = linalg.index {dimension} : index
      %place = arith.index_cast %at : index to {element}
      linalg.yield %place : {element}
  }} -> {places}
  %sorted:2 = func.call @sort(%source, %places) : ({source}, {places}) -> ({source}, {places})
  %first = tensor.extract_slice %sorted#0{first} : {source} to {values}
  %first_places = tensor.extract_slice %sorted#1{first} : {places} to {indices}
  return %first, %first_places : {values}, {indices}
}}
"""


def _merge_sort(ir: Any, operation: Any, types: list[Any]) -> MergeSort | None:
    """A sort by the operation's region. Of NaN, PyTorch says that it is larger than all else; the
    region says nothing of use."""
    *body, _ = operation.regions[0].blocks[0].operations
    comparisons = [one.operation for one in body]
    if len(comparisons) != 1 or comparisons[0].name not in _ASCENDING:
        return None
    (comparison,) = comparisons
    predicate = ir.IntegerAttr(comparison.attributes["predicate"]).value
    is_ascending = predicate in _ASCENDING[comparison.name]
    if not is_ascending and predicate not in _DESCENDING[comparison.name]:
        return None
    arguments = list(operation.regions[0].blocks[0].arguments)
    # Two arguments for each tensor.
    key = arguments.index(comparison.operands[0]) // 2
    element = types[key].element_type

    def is_before(name: str, first: str, second: str) -> str:
        p, q = (f"%{first}{key}", f"%{second}{key}")
        if not is_ascending:
            p, q = q, p
        if comparison.name == "arith.cmpi":
            less = "ult" if str(element) == "i1" else "slt"
            return f"%{name} = arith.cmpi {less}, {p}, {q} : {element}"
        return f"""
        %{name}_less = arith.cmpf olt, {p}, {q} : {element}
        %{name}_is_number = arith.cmpf ord, {p}, {p} : {element}
        %{name}_is_nan = arith.cmpf uno, {q}, {q} : {element}
        %{name}_ends = arith.andi %{name}_is_number, %{name}_is_nan : i1
        %{name} = arith.ori %{name}_less, %{name}_ends : i1"""

    return MergeSort(types, dimension_of(ir, operation), is_before)
