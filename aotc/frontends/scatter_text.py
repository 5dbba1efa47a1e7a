"""Generates the parts of the MLIR text of a scatter that its algorithms share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.frontends.tensor_text import size_lines


class Points(Struct, frozen=True):
    """The places of updates. A point is an index of the tensor of indices, without its coordinate
    dimension. The number of a point is its index along the dimension in which updates of one place
    differ.

    - `loops` are the names and extents of a point's indices, and `number` is the name of the one
      that is its number.
    - `lines` define %at0, ..., the coordinates of type i64 along the dimensions `named` of the
      result. Only those in `checked` may be out of bounds.
    - `update` is an index of the updates for %number, with `%d0`, ... for the other dimensions of
      the result and `%to0`, ... for the dimensions `named`.
    - `count` is the number of points, and `most` the extent of the number's dimension, if known.
    """

    loops: Sequence[tuple[str, str]]
    number: str
    lines: str
    named: Sequence[int]
    checked: Sequence[int]
    update: Sequence[str]
    count: int | None
    most: int | None


class ScatterText:
    """The text of a scatter's places, updates, and writes.

    `types` are those of the updates, the indices and the result. `operation` is the name of the
    operation that combines an update with the old element; it is "" if the update replaces the
    element, and None if `@region` is called with both.
    """

    def __init__(
        self, ir: Any, types: tuple[Any, Any, Any], points: Points, operation: str | None
    ) -> None:
        self._ir = ir
        self._updates, self._indices, self._result = types
        self._points, self._operation = points, operation
        self._rank, self._element = self._result.rank, self._result.element_type
        self._others = [of for of in range(self._rank) if of not in points.named]
        sizes = [self._result.shape[of] for of in points.named]
        is_known = not any(self._result.is_dynamic_dim(of) for of in points.named)
        self._places = math.prod(sizes) if is_known else None

    def _names(self) -> str:
        return ", ".join(name for name, _ in self._points.loops)

    def _loops(self) -> str:
        return f"({self._names()}) in ({', '.join(extent for _, extent in self._points.loops)})"

    def _places_shape(self) -> str:
        return f"{'?' if self._places is None else self._places}xi32"

    def _points_shape(self, element: str) -> str:
        return f"{'?' if self._points.count is None else self._points.count}x{element}"

    def _allocate(self, name: str, type_: str) -> str:
        """Allocates a buffer with an element for each point."""
        given = "%points" if type_.startswith("?") else ""
        return f"%{name} = memref.alloc({given}) : memref<{type_}>"

    def _prologue(self) -> str:
        points = "\n".join(
            f"%points{i} = arith.muli %{f'points{i - 1}' if i else 'c1'}, {extent} : index"
            for i, (_, extent) in enumerate(self._points.loops)
        )
        places = "\n".join(
            f"%places{i} = arith.muli %{f'places{i - 1}' if i else 'c1'}, %size{of} : index"
            for i, of in enumerate(self._points.named)
        )
        return f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %is_update = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  {size_lines("count", "%updates", self._updates)}
  {size_lines("extent", "%indices", self._indices)}
  {size_lines("size", "%given", self._result)}
  {points}
  %points = arith.addi %points{len(self._points.loops) - 1}, %c0 : index
  {places}
  %places = arith.addi %places{len(self._points.named) - 1}, %c0 : index"""

    def _place(self) -> str:
        """Lines that define %within, whether the place of a point is in bounds, %key, its linear
        index, and %to0, ..., its coordinates. They are those of the first place if it is out of
        bounds."""
        lines = [self._points.lines, "%within_ = arith.constant true"]
        within = "%within_"
        for j, of in enumerate(self._points.named):
            if of in self._points.checked:
                lines += [
                    f"%wide{j} = arith.index_cast %size{of} : index to i64",
                    f"%is_in{j} = arith.cmpi ult, %at{j}, %wide{j} : i64",
                    f"%within{j} = arith.andi {within}, %is_in{j} : i1",
                ]
                within = f"%within{j}"
        lines.append(f"%within = arith.andi {within}, %within_ : i1")
        for j, of in enumerate(self._points.named):
            lines += [
                f"%to_{j} = arith.index_cast %at{j} : i64 to index",
                f"%to{of} = arith.select %within, %to_{j}, %c0 : index",
            ]
        return "\n".join([*lines, self._key()])

    def _key(self) -> str:
        """Lines that define %key, the linear index of the coordinates."""
        return _row_major("key", [(f"%size{of}", f"%to{of}") for of in self._points.named])

    def _checked_place(self) -> str:
        return f'{self._place()}\ncf.assert %within, "an index is out of bounds"'

    def _fill(self, name: str, value: str) -> str:
        type_ = self._places_shape()
        return f"""
  %{name} = memref.alloc({"%places" if self._places is None else ""}) : memref<{type_}>
  scf.forall (%p) in (%places) {{
    memref.store {value}, %{name}[%p] : memref<{type_}>
  }}"""

    def _slice_type(self) -> str:
        # Of one dimension: unit ones would be dropped, and inserted again by a copy.
        return f"tensor<?x{self._element}>"

    def _update_at(self, name: str) -> str:
        """Lines that define %NAME as the update of the point %number."""
        return (
            f"%{name} = tensor.extract %updates[{', '.join(self._points.update)}] : {self._updates}"
        )

    def _write(self, loops: str, head: str, value: str) -> str:
        """The loop that writes elements. `head` defines %length, which is 1 if the element at %to0,
        ... and %d0, ... changes, and otherwise 0. `value` defines %new, which may use %was."""
        result, part, rank = self._result, self._slice_type(), self._rank
        at = [f"%to{of}" if of in self._points.named else f"%d{of}" for of in range(rank)]
        slice_ = (
            f"[{', '.join(at)}] [{', '.join(['%length', *'1' * (rank - 1)])}] "
            f"[{', '.join('1' * rank)}]"
        )
        return f"""
  %made = scf.forall {loops} shared_outs(%shared = %given) -> ({result}) {{
    {head}
    %slice = tensor.extract_slice %shared{slice_} : {result} to {part}
    %whole = scf.for %only = %c0 to %length step %c1 iter_args(%into = %slice) -> ({part}) {{
      %was = tensor.extract %into[%c0] : {part}
      {value}
      %put = tensor.insert %new into %into[%c0] : {part}
      scf.yield %put : {part}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole into %shared{slice_} : {part} into {result}
    }}
  }}"""

    def _are_places_few(self) -> bool:
        """Whether there are no more places than points, and at least one point. Then there is a
        thread for each element of the result."""
        count, places = self._points.count, self._places
        return bool(count) and places is not None and count is not None and places <= count

    def _compute(self, value: str) -> str:
        """The loop over all elements of the result. `value` defines %new, which may use the place
        %key and %was."""
        rank, e, result = self._rank, self._element, self._result
        dimensions = ", ".join(f"d{i}" for i in range(rank))
        identity = f"affine_map<({dimensions}) -> ({dimensions})>"
        prefixes = ["to" if of in self._points.named else "d" for of in range(rank)]
        indices = [f"%{one}{of} = linalg.index {of} : index" for of, one in enumerate(prefixes)]
        dynamic = ", ".join(f"%size{i}" for i in range(rank) if result.is_dynamic_dim(i))
        return f"""
  %target = tensor.empty({dynamic}) : {result}
  %made = linalg.generic {{indexing_maps = [{identity}, {identity}],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}}
      ins(%given : {result}) outs(%target : {result}) {{
    ^bb0(%was: {e}, %unused: {e}):
      {chr(10).join(indices)}
      {self._key()}
      {value}
      linalg.yield %new : {e}
  }} -> {result}"""

    def _points_and_others(self) -> str:
        names = ", ".join([self._names(), *(f"%d{of}" for of in self._others)])
        extents = [*(extent for _, extent in self._points.loops)]
        return f"({names}) in ({', '.join([*extents, *(f'%size{of}' for of in self._others)])})"

    def _combine(self, made: str, update: str, was: str) -> str:
        e = self._element
        if self._operation == "":
            return f"%{made} = arith.select %is_update, %{update}, %{was} : {e}"
        if self._operation is None:
            return f"%{made} = func.call @region(%{update}, %{was}) : ({e}, {e}) -> {e}"
        return f"%{made} = {self._operation} %{update}, %{was} : {e}"

    def _linear_index(self, made: str, number: str) -> str:
        """Lines that define %MADE, the linear index of the point whose number is `number`."""
        own = self._points.number
        loops = self._points.loops
        return _row_major(made, [(size, number if name == own else name) for name, size in loops])


def _row_major(made: str, digits: Sequence[tuple[str, str]]) -> str:
    """Lines that define %MADE, the row-major linear index. `digits` are pairs of a size and an
    index, the slowest dimension first."""
    lines, before = [], "%c0"
    for k, (size, index) in enumerate(digits):
        lines += [
            f"%{made}_row{k} = arith.muli {before}, {size} : index",
            f"%{made}_{k} = arith.addi %{made}_row{k}, {index} : index",
        ]
        before = f"%{made}_{k}"
    return "\n".join([*lines, f"%{made} = arith.addi {before}, %c0 : index"])
