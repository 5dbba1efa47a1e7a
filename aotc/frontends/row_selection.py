"""Generates the MLIR text that finds the first elements of rows in their order (`RowSelection`).

It is for the CPU device. One thread reads a row and keeps the numbers of the first elements that it
has seen in a heap, whose root is the last one of them. Most elements of a long row come after the
root, so that they cost a comparison each. Elements that are equal keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aotc.frontends.row_order import RowOrder

# Rows have at least this many times the elements that are kept. Otherwise they are sorted.
_LEAST_RATIO = 4
# More elements than this are kept only of longer rows, if digits can order them, too: each element
# of a row costs less here, but those that are kept cost more.
_MOST_KEPT, _LEAST_RATIO_OF_MORE = 8, 256
# What a row of unknown length is taken to have.
_USUAL_LENGTH = 8192
# The number of elements that are compared with the root together, as vectors.
_GROUP = 64


class RowSelection(RowOrder):
    """The first `count` elements of each row. `is_before` is that of `MergeSort`."""

    def __init__(
        self,
        types: Sequence[Any],
        results: Sequence[str],
        dimension: int,
        is_before: Callable[[str, str, str], str],
        count: int,
        numbers: int,
    ) -> None:
        super().__init__(types, results, dimension, count, numbers)
        self._first, self._is_before = count, is_before
        self._element = types[numbers].element_type
        self._heap = f"tensor<{count}x{self._element}>"

    @staticmethod
    def takes(length: int | None, count: int, has_key: bool) -> bool:
        """Whether this is faster than a sort of rows of the length, which may be unknown. A sort
        with a key is one by digits."""
        ratio = _LEAST_RATIO_OF_MORE if has_key and count > _MOST_KEPT else _LEAST_RATIO
        if length is None:
            return not has_key or ratio * count <= _USUAL_LENGTH
        return length >= ratio * count

    def _read(self, name: str, number: str) -> str:
        """Lines that define %NAME0, ... as the elements with this number of the row."""
        # A row that is shorter than the heap is rejected elsewhere, and only read within it.
        return f"""
        %{name}_any = arith.index_cast %{number} : {self._element} to index
        %{name}_at = arith.minui %{name}_any, %last : index
        {self._read_at(name, f"{name}_at")}"""

    def _comes_before(self, name: str, first: str, second: str) -> str:
        """Lines that define the i1 %NAME: whether the element with the number %FIRST comes before
        that with the number %SECOND."""
        return f"""
          {self._read(f"{name}_p", first)}
          {self._read(f"{name}_q", second)}
          {self._is_before(f"{name}_less", f"{name}_p", f"{name}_q")}
          {self._is_before(f"{name}_more", f"{name}_q", f"{name}_p")}
          %{name}_is_earlier = arith.cmpi slt, %{first}, %{second} : {self._element}
          %{name}_may_be = arith.select %{name}_more, %false, %{name}_is_earlier : i1
          %{name} = arith.ori %{name}_less, %{name}_may_be : i1"""

    def _sift(self, made: str, heap: str, start: str, size: str, number: str) -> str:
        """Lines that define %MADE: the heap with %NUMBER instead of the element %START, moved down
        to its place among the first %SIZE."""
        m, h = made, self._heap
        return f"""
        %{m}_end = arith.subi %{size}, %c1 : index
        %{m}_found:3 = scf.for %{m}_level = %c0 to %levels step %c1
            iter_args(%{m}_i = %{start}, %{m}_moves = %true, %{m}_h = %{heap})
            -> (index, i1, {h}) {{
          %{m}_twice = arith.addi %{m}_i, %{m}_i : index
          %{m}_left = arith.addi %{m}_twice, %c1 : index
          %{m}_right = arith.addi %{m}_twice, %c2 : index
          %{m}_has_one = arith.cmpi ult, %{m}_left, %{size} : index
          %{m}_a = arith.minui %{m}_left, %{m}_end : index
          %{m}_b = arith.minui %{m}_right, %{m}_end : index
          %{m}_p = tensor.extract %{m}_h[%{m}_a] : {h}
          %{m}_q = tensor.extract %{m}_h[%{m}_b] : {h}
          {self._comes_before(f"{m}_is_right", f"{m}_p", f"{m}_q")}
          %{m}_child = arith.select %{m}_is_right, %{m}_b, %{m}_a : index
          %{m}_last = arith.select %{m}_is_right, %{m}_q, %{m}_p : {self._element}
          {self._comes_before(f"{m}_is_below", number, f"{m}_last")}
          %{m}_may_move = arith.andi %{m}_has_one, %{m}_moves : i1
          %{m}_goes_on = arith.andi %{m}_may_move, %{m}_is_below : i1
          %{m}_up = arith.select %{m}_goes_on, %{m}_last, %{number} : {self._element}
          %{m}_put = tensor.insert %{m}_up into %{m}_h[%{m}_i] : {h}
          %{m}_next = arith.select %{m}_goes_on, %{m}_child, %{m}_i : index
          scf.yield %{m}_next, %{m}_goes_on, %{m}_put : index, i1, {h}
        }}
        %{m} = tensor.insert %{number} into %{m}_found#2[%{m}_found#0] : {h}"""

    def _find(self) -> str:
        """Lines that define %numbers: the numbers of the first elements, in their order."""
        h = self._heap
        return f"""
      %heap = bufferization.alloc_tensor() : {h}
      %filled = scf.for %j = %c0 to %first step %c1 iter_args(%h = %heap) -> ({h}) {{
        %p = arith.index_cast %j : index to {self._element}
        %put = tensor.insert %p into %h[%j] : {h}
        scf.yield %put : {h}
      }}
      %half = arith.shrui %first, %c1 : index
      %built = scf.for %j = %c0 to %half step %c1 iter_args(%h = %filled) -> ({h}) {{
        %rest = arith.subi %half, %j : index
        %at = arith.subi %rest, %c1 : index
        %p = tensor.extract %h[%at] : {h}
        {self._sift("build", "h", "at", "first", "p")}
        scf.yield %build : {h}
      }}
      %seen = scf.for %start = %first to %n step %group iter_args(%g = %built) -> ({h}) {{
        %rest = arith.subi %n, %start : index
        %length = arith.minui %rest, %group : index
        %end = arith.addi %start, %length : index
        %root = tensor.extract %g[%c0] : {h}
        {self._read("y", "root")}
        %are_some = scf.for %j = %start to %end step %c1 iter_args(%any = %false) -> (i1) {{
          {self._read_at("x", "j")}
          {self._is_before("is_one", "x", "y")}
          %or = arith.ori %any, %is_one : i1
          scf.yield %or : i1
        }}
        %seen_group = scf.if %are_some -> ({h}) {{
          %kept = scf.for %j = %start to %end step %c1 iter_args(%h = %g) -> ({h}) {{
            %last_root = tensor.extract %h[%c0] : {h}
            {self._read_at("v", "j")}
            {self._read("w", "last_root")}
            {self._is_before("is_new", "v", "w")}
            %new = scf.if %is_new -> ({h}) {{
              %p = arith.index_cast %j : index to {self._element}
              {self._sift("put", "h", "c0", "first", "p")}
              scf.yield %put : {h}
            }} else {{
              scf.yield %h : {h}
            }}
            scf.yield %new : {h}
          }}
          scf.yield %kept : {h}
        }} else {{
          scf.yield %g : {h}
        }}
        scf.yield %seen_group : {h}
      }}
      %moves = arith.subi %first, %c1 : index
      %numbers = scf.for %j = %c0 to %moves step %c1 iter_args(%h = %seen) -> ({h}) {{
        %size = arith.subi %moves, %j : index
        %root = tensor.extract %h[%c0] : {h}
        %p = tensor.extract %h[%size] : {h}
        %taken = tensor.insert %root into %h[%size] : {h}
        {self._sift("sorted", "taken", "c0", "size", "p")}
        scf.yield %sorted : {h}
      }}"""

    def _number(self, name: str, place: str) -> str:
        return f"""
        %{name}_number = tensor.extract %numbers[%{place}] : {self._heap}
        %{name}_any = arith.index_cast %{name}_number : {self._element} to index
        %{name} = arith.minui %{name}_any, %last : index"""

    def lines(self, made: str, target: str) -> str:
        return f"""
    %group = arith.constant {_GROUP} : index
    %levels = arith.constant {self._first.bit_length()} : index
    %false = arith.constant false
    %true = arith.constant true
    {super().lines(made, target)}"""
