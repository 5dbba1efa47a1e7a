"""Generates the MLIR text that finds the first elements of rows in their order (`RowSelection`).

It is for the CPU device. One thread reads a row and keeps the numbers of the first elements that it
has seen in a heap, whose root is the last one of them. Most elements of a long row come after the
root, so that they cost a comparison each. Elements that are equal keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aotc.frontends.tensor_text import index_list

# Rows have at least this many times the elements that are kept. Otherwise they are sorted.
LEAST_RATIO = 4
# The number of elements that are compared with the root together, as vectors.
_GROUP = 64


class RowSelection:
    """A loop over the rows of tensors of one shape along `dimension`, whose results are the first
    `count` elements of each row. `is_before` is that of `MergeSort`, and `numbers` the operand that
    has the elements' numbers."""

    def __init__(
        self,
        types: Sequence[Any],
        results: Sequence[str],
        dimension: int,
        is_before: Callable[[str, str, str], str],
        count: int,
        numbers: int,
    ) -> None:
        self._types, self._results = types, results
        self._rank, self._dimension, self._count = types[0].rank, dimension, count
        self._is_before = is_before
        self._numbers, self._number = numbers, types[numbers].element_type
        self._heap = f"tensor<{count}x{self._number}>"

    def _place(self, along: str, others: str = "%d{i}") -> str:
        return index_list(self._rank, self._dimension, along, others)

    def _read(self, name: str, number: str, type_of_number: str = "") -> str:
        """Lines that define %NAME0, ... as the elements with this number of the row."""
        at, lines = number, []
        if type_of_number != "index":
            at = f"{name}_at"
            # A row that is shorter than the heap is rejected elsewhere, and only read within it.
            lines = [
                f"%{at}_any = arith.index_cast %{number} : {self._number} to index",
                f"%{at} = arith.minui %{at}_any, %last : index",
            ]
        for i, type_ in enumerate(self._types):
            if i == self._numbers:
                lines.append(f"%{name}{i} = arith.index_cast %{at} : index to {self._number}")
            else:
                place = self._place(f"%{at}")
                lines.append(f"%{name}{i} = tensor.extract %given{i}[{place}] : {type_}")
        return "\n".join(lines)

    def _comes_before(self, name: str, first: str, second: str) -> str:
        """Lines that define the i1 %NAME: whether the element with the number %FIRST comes before
        that with the number %SECOND."""
        return f"""
          {self._read(f"{name}_p", first)}
          {self._read(f"{name}_q", second)}
          {self._is_before(f"{name}_less", f"{name}_p", f"{name}_q")}
          {self._is_before(f"{name}_more", f"{name}_q", f"{name}_p")}
          %{name}_is_earlier = arith.cmpi slt, %{first}, %{second} : {self._number}
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
          %{m}_last = arith.select %{m}_is_right, %{m}_q, %{m}_p : {self._number}
          {self._comes_before(f"{m}_is_below", number, f"{m}_last")}
          %{m}_may_move = arith.andi %{m}_has_one, %{m}_moves : i1
          %{m}_goes_on = arith.andi %{m}_may_move, %{m}_is_below : i1
          %{m}_up = arith.select %{m}_goes_on, %{m}_last, %{number} : {self._number}
          %{m}_put = tensor.insert %{m}_up into %{m}_h[%{m}_i] : {h}
          %{m}_next = arith.select %{m}_goes_on, %{m}_child, %{m}_i : index
          scf.yield %{m}_next, %{m}_goes_on, %{m}_put : index, i1, {h}
        }}
        %{m} = tensor.insert %{number} into %{m}_found#2[%{m}_found#0] : {h}"""

    def _find(self) -> str:
        """Lines that define %numbers: the numbers of the first elements, in their order."""
        h = self._heap
        return f"""
      %filled = scf.for %j = %c0 to %first step %c1 iter_args(%h = %heap) -> ({h}) {{
        %p = arith.index_cast %j : index to {self._number}
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
          {self._read("x", "j", "index")}
          {self._is_before("is_one", "x", "y")}
          %or = arith.ori %any, %is_one : i1
          scf.yield %or : i1
        }}
        %seen_group = scf.if %are_some -> ({h}) {{
          %kept = scf.for %j = %start to %end step %c1 iter_args(%h = %g) -> ({h}) {{
            %last_root = tensor.extract %h[%c0] : {h}
            {self._read("v", "j", "index")}
            {self._read("w", "last_root")}
            {self._is_before("is_new", "v", "w")}
            %new = scf.if %is_new -> ({h}) {{
              %p = arith.index_cast %j : index to {self._number}
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

    def lines(self, made: str, target: str) -> str:
        """Lines that define %MADE0, ... as the tensors %TARGET0, ... with the first elements."""
        loops = [(f"%d{i}", f"%size{i}") for i in range(self._rank) if i != self._dimension]
        loops = loops or [("%row", "%c1")]
        slice_ = (
            f"[{self._place('0')}] [{self._place(str(self._count), '1')}] "
            f"[{', '.join(['1'] * self._rank)}]"
        )
        types = list(zip(self._results, self._types, strict=True))
        parts = [f"tensor<{self._count}x{type_.element_type}>" for _, type_ in types]
        cut = [
            f"%part{i} = tensor.extract_slice %to{i}{slice_} : {result} to {parts[i]}"
            for i, (result, _) in enumerate(types)
        ]
        put = [
            f"%put{i} = tensor.insert %v{i} into %made{i}[%j] : {part}"
            for i, part in enumerate(parts)
        ]
        into = [
            f"tensor.parallel_insert_slice %written#{i} into %to{i}{slice_} : {parts[i]} into "
            f"{result}"
            for i, (result, _) in enumerate(types)
        ]

        def each(form: str) -> str:
            return ", ".join(form.format(i=i) for i in range(len(types)))

        newline = "\n"
        return f"""
    %first = arith.constant {self._count} : index
    %group = arith.constant {_GROUP} : index
    %levels = arith.constant {self._count.bit_length()} : index
    %false = arith.constant false
    %true = arith.constant true
    %{made}:{len(types)} = scf.forall ({", ".join(name for name, _ in loops)})
        in ({", ".join(size for _, size in loops)})
        shared_outs({each(f"%to{{i}} = %{target}{{i}}")})
        -> ({", ".join(self._results)}) {{
      {newline.join(cut)}
      %heap = bufferization.alloc_tensor() : {self._heap}
      {self._find()}
      %written:{len(types)} = scf.for %j = %c0 to %first step %c1
          iter_args({each("%made{i} = %part{i}")}) -> ({", ".join(parts)}) {{
        %p = tensor.extract %numbers[%j] : {self._heap}
        {self._read("v", "p")}
        {newline.join(put)}
        scf.yield {each("%put{i}")} : {", ".join(parts)}
      }}
      scf.forall.in_parallel {{
        {newline.join(into)}
      }}
    }}"""
