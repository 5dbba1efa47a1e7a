"""Lowers `tm_tensor.sort` and `tm_tensor.topk` by `aotc.frontends.merge_sort`."""

from __future__ import annotations

from typing import Any

from aotc.frontends.merge_sort import MergeSort
from aotc.frontends.radix_sort import SortKey
from aotc.frontends.sort_operands import operand_of_numbers, used_length
from aotc.frontends.tensor_text import size_lines
from aotc.frontends.torch_mlir.tm_tensor.attributes import dimension_of

# Predicates of arith.cmpi and arith.cmpf by which torch-mlir compares two elements, for ascending
# and for descending order.
_ASCENDING = {"arith.cmpi": (2, 3, 6, 7), "arith.cmpf": (4, 5, 11, 12)}
_DESCENDING = {"arith.cmpi": (4, 5, 8, 9), "arith.cmpf": (2, 3, 9, 10)}


def sort_text(ir: Any, operation: Any) -> str | None:
    """The text of a sort. If only slices use the results, and all end before a known index, the
    results end there: torch-mlir lowers `topk` to a sort whose first elements are taken."""
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    dimension = dimension_of(ir, operation)
    numbers = operand_of_numbers(ir, operation, dimension)
    sort = _merge_sort(ir, operation, types, used_length(operation, dimension), numbers)
    return None if sort is None else sort.text()


def topk_text(ir: Any, operation: Any) -> str | None:
    """The text of a function that returns the first elements of a sorted tensor, and their indices.
    None if the operation has another number of operands."""
    if len(operation.operands) != 3:
        return None
    source, values, indices = (ir.RankedTensorType(value.type) for value in operation.operands)
    element, rank, dimension = indices.element_type, source.rank, dimension_of(ir, operation)
    places = ir.RankedTensorType.get(source.shape, element)
    # If the number of elements is not known, all elements are sorted.
    is_known = not values.is_dynamic_dim(dimension)
    known = values.shape[dimension] if is_known else None
    sort = _merge_sort(ir, operation, [source, places], known, numbers=1)
    if sort is None:
        return None
    dimensions = ", ".join(f"d{i}" for i in range(rank))
    dynamic = ", ".join(f"%size{i}" for i in range(rank) if source.is_dynamic_dim(i))
    results = f"{values}, {indices}"
    # The types of the sort's results, and the lines that make this function's results of them.
    sorted_types, first = results, f"return %sorted#0, %sorted#1 : {results}"
    if not is_known:
        counts = [
            f"%count{i}" if values.is_dynamic_dim(i) else str(values.shape[i]) for i in range(rank)
        ]
        slice_ = f"[{', '.join('0' * rank)}] [{', '.join(counts)}] [{', '.join('1' * rank)}]"
        sorted_types = f"{source}, {places}"
        first = f"""{size_lines("count", "%values", values)}
  %first = tensor.extract_slice %sorted#0{slice_} : {source} to {values}
  %first_places = tensor.extract_slice %sorted#1{slice_} : {places} to {indices}
  return %first, %first_places : {results}"""
    return f"""{sort.text()}
func.func @topk(%source: {source}, %values: {values}, %indices: {indices}) -> ({results}) {{
  {size_lines("size", "%source", source)}
  %empty = tensor.empty({dynamic}) : {places}
  %places = linalg.generic {{
      indexing_maps = [affine_map<({dimensions}) -> ({dimensions})>],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}} outs(%empty : {places}) {{
    ^bb0(%none: {element}):
      %at = linalg.index {dimension} : index
      %place = arith.index_cast %at : index to {element}
      linalg.yield %place : {element}
  }} -> {places}
  %sorted:2 = func.call @sort(%source, %places) : ({source}, {places}) -> ({sorted_types})
  {first}
}}
"""


def _merge_sort(
    ir: Any, operation: Any, types: list[Any], first: int | None, numbers: int | None = None
) -> MergeSort | None:
    """The sort with the order of the operation's region. As in PyTorch, NaN is greater than all
    other elements; the comparison in the region does not order it."""
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
    # The region has two arguments for each tensor.
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

    if key == numbers:
        numbers = None
    order = SortKey(str(element), is_ascending, str(element) != "i1", key)
    return MergeSort(types, dimension_of(ir, operation), is_before, first, numbers, order)
