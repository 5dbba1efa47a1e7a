"""`tm_tensor.scatter` → a sort of the updates by their places, and a loop over them."""

from __future__ import annotations

from typing import Any

from aotc.frontends.merge_sort import MergeSort
from aotc.frontends.tensor_text import size_lines


def scatter_text(ir: Any, operation: Any) -> str | None:
    """A scatter of elements, or of slices that are whole along the dimensions not named."""
    updates, indices, result = (ir.RankedTensorType(value.type) for value in operation.operands)
    named = list(ir.DenseI64ArrayAttr(operation.attributes["dimension_map"]))
    if result.rank == 0:
        return None
    others = [of for of in range(result.rank) if of not in named]
    # The dimensions of the updates behind the first: those of a window, or of a slice.
    window = updates.rank - 1
    if window == result.rank and all(updates.shape[1 + of] == 1 for of in named):
        places = ["%c0" if of in named else f"%d{of}" for of in range(result.rank)]
    elif window == len(others):
        places = [f"%d{of}" for of in others]
    else:
        return None
    if any(
        updates.shape[updates.rank - len(others) + i] != result.shape[of]
        for i, of in enumerate(others)
        if window == len(others)
    ):
        return None
    return _Scatter(ir, (updates, indices, result), named, places).text()


class _Scatter:
    """The updates are sorted by their places, those of one place in their order: the first of each
    place combines all that follow it with what was there. So the result has the same bits whatever
    runs it, and no two threads write to one place.

    `named` are the dimensions that indices name, in their order. `places` index an update behind
    its number: `%d2` along dimension 2 of the result.
    """

    def __init__(
        self, ir: Any, types: tuple[Any, Any, Any], named: list[int], places: list[str]
    ) -> None:
        self._updates, self._indices, self._result = types
        self._named, self._places = named, places
        self._others = [of for of in range(self._result.rank) if of not in named]
        count = self._updates.shape[:1]
        self._keys = ir.RankedTensorType.get(count, ir.IntegerType.get_signless(64))

    def _read(self, position: str) -> list[str]:
        """Lines that make %at0, ..., the indices of an update, of type i64."""
        element, lines = self._indices.element_type, []
        for j in range(len(self._named)):
            read = f"tensor.extract %indices[{position}, %j{j}] : {self._indices}"
            if str(element) == "i64":
                lines.append(f"%at{j} = {read}")
            else:
                lines += [f"%read{j} = {read}", f"%at{j} = arith.extsi %read{j} : {element} to i64"]
        return lines

    def _key(self) -> str:
        """Lines that make %key, the number of the place among all, and %is_within."""
        lines = ["%key_ = arith.constant 0 : i64", "%within_ = arith.constant true"]
        key, within = "%key_", "%within_"
        for j, of in enumerate(self._named):
            lines += [
                f"%wide{j} = arith.index_cast %size{of} : index to i64",
                f"%is_in{j} = arith.cmpi ult, %at{j}, %wide{j} : i64",
                f"%within{j} = arith.andi {within}, %is_in{j} : i1",
                f"%row{j} = arith.muli {key}, %wide{j} : i64",
                f"%key{j} = arith.addi %row{j}, %at{j} : i64",
            ]
            key, within = f"%key{j}", f"%within{j}"
        return "\n".join(
            [
                *lines,
                f'cf.assert {within}, "an index is out of bounds"',
                f"linalg.yield {key} : i64",
            ]
        )

    def _coordinates(self) -> str:
        """Lines that make %to0, ... along the named dimensions: within the result also where an
        assertion has failed."""
        lines = []
        for j, of in enumerate(self._named):
            lines += [
                f"%some{j} = arith.maxui %size{of}, %c1 : index",
                f"%last{j} = arith.subi %some{j}, %c1 : index",
                f"%to_{j} = arith.index_cast %at{j} : i64 to index",
                f"%to{of} = arith.minui %to_{j}, %last{j} : index",
            ]
        return "\n".join(lines)

    def text(self) -> str:
        """The text of `func.func @scatter`, behind those that it calls."""
        keys, result, rank = self._keys, self._result, self._result.rank
        e = result.element_type
        sort = MergeSort(
            [keys, keys],
            0,
            lambda name, first, second: f"%{name} = arith.cmpi slt, %{first}0, %{second}0 : i64",
        )
        dynamic = "%count0" if keys.is_dynamic_dim(0) else ""
        part = f"tensor<{'x'.join(['?', *'1' * (rank - 1), str(e)])}>"
        at = [f"%to{of}" if of in self._named else f"%d{of}" for of in range(rank)]
        slice_ = (
            f"[{', '.join(at)}] [{', '.join(['%length', *'1' * (rank - 1)])}] "
            f"[{', '.join('1' * rank)}]"
        )
        loops = ", ".join(["%i", *(f"%d{of}" for of in self._others)])
        counts = ", ".join(["%count0", *(f"%size{of}" for of in self._others)])
        numbered = f"""{{indexing_maps = [affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} outs(%empty : {keys}) {{
    ^bb0(%none: i64):
      %i = linalg.index 0 : index"""
        constants = "\n".join(
            f"%j{j} = arith.constant {j} : index" for j in range(len(self._named))
        )
        read = "\n".join(self._read("%i"))
        read_own = "\n".join(self._read("%first"))
        own = ", ".join(["%c0"] * rank)
        return f"""{sort.text()}
func.func private @region({e}, {e}) -> {e}
func.func @scatter(%updates: {self._updates}, %indices: {self._indices}, %given: {result})
    -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {constants}
  {size_lines("count", "%updates", self._updates)}
  {size_lines("size", "%given", result)}
  %empty = tensor.empty({dynamic}) : {keys}
  %keys = linalg.generic {numbered}
      {read}
      {self._key()}
  }} -> {keys}
  %numbers = linalg.generic {numbered}
      %number = arith.index_cast %i : index to i64
      linalg.yield %number : i64
  }} -> {keys}
  %sorted:2 = func.call @sort(%keys, %numbers) : ({keys}, {keys}) -> ({keys}, {keys})
  %made = scf.forall ({loops}) in ({counts}) shared_outs(%shared = %given) -> ({result}) {{
    %key = tensor.extract %sorted#0[%i] : {keys}
    %has_none_before = arith.cmpi eq, %i, %c0 : index
    %less = arith.subi %i, %c1 : index
    %before = arith.select %has_none_before, %c0, %less : index
    %key_before = tensor.extract %sorted#0[%before] : {keys}
    %is_other = arith.cmpi ne, %key, %key_before : i64
    %is_first = arith.ori %has_none_before, %is_other : i1
    %length = arith.select %is_first, %c1, %c0 : index
    %first_number = tensor.extract %sorted#1[%i] : {keys}
    %first = arith.index_cast %first_number : i64 to index
    {read_own}
    {self._coordinates()}
    %slice = tensor.extract_slice %shared{slice_} : {result} to {part}
    %whole = scf.for %one = %c0 to %length step %c1 iter_args(%to = %slice) -> ({part}) {{
      %was = tensor.extract %to[{own}] : {part}
      %run:2 = scf.while (%k = %i, %value = %was) : (index, {e}) -> (index, {e}) {{
        %is_there = arith.cmpi ult, %k, %count0 : index
        %inside = arith.select %is_there, %k, %i : index
        %other = tensor.extract %sorted#0[%inside] : {keys}
        %is_same = arith.cmpi eq, %other, %key : i64
        %goes_on = arith.andi %is_there, %is_same : i1
        scf.condition(%goes_on) %k, %value : index, {e}
      }} do {{
      ^bb0(%k: index, %value: {e}):
        %number = tensor.extract %sorted#1[%k] : {keys}
        %position = arith.index_cast %number : i64 to index
        %update = tensor.extract %updates[{", ".join(["%position", *self._places])}]
            : {self._updates}
        %new = func.call @region(%update, %value) : ({e}, {e}) -> {e}
        %next = arith.addi %k, %c1 : index
        scf.yield %next, %new : index, {e}
      }}
      %put = tensor.insert %run#1 into %to[{own}] : {part}
      scf.yield %put : {part}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole into %shared{slice_} : {part} into {result}
    }}
  }}
  return %made : {result}
}}
"""
