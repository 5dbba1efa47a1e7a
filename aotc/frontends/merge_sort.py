"""Sorts as merges of sorted runs, each twice as long as those before: `MergeSort` writes the text.

An element of a merge finds by itself, by bisection, how many elements of either run are before it:
all elements of a merge are independent, and become a kernel. n elements take log2(n) merges of
log2(n) steps. Elements that are equal keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class MergeSort:
    """A function of tensors to tensors whose elements along `dimension` are sorted.

    `types` are the tensors' types, all of one shape. `is_before` writes lines that make the i1
    `%NAME`, whether the elements `%FIRST0`, ... belong before `%SECOND0`, ..., of these three
    names. It must order all elements strictly and weakly: of equal ones neither is before the
    other.
    """

    def __init__(
        self, types: Sequence[Any], dimension: int, is_before: Callable[[str, str, str], str]
    ) -> None:
        self._types = types
        self._elements = [type_.element_type for type_ in types]
        self._rank = types[0].rank
        self._dimension = dimension % self._rank
        self._is_before = is_before

    def _each(self, form: str, separator: str = ", ") -> str:
        """The form for each operand: {i} is its number, {t} its type, {e} that of its elements."""
        return separator.join(
            form.format(i=i, t=type_, e=element)
            for i, (type_, element) in enumerate(zip(self._types, self._elements, strict=True))
        )

    def _read(self, name: str, source: str, at: str) -> str:
        """Lines that make %NAME0, ... of the elements of the tensors `source` at %AT of the
        dimension."""
        places = [f"%d{i}" for i in range(self._rank)]
        places[self._dimension] = f"%{at}"
        place = ", ".join(places)
        return "\n".join(
            f"%{name}{i} = tensor.extract {tensor}[{place}] : {type_}"
            for i, (tensor, type_) in enumerate(zip(source.split(", "), self._types, strict=True))
        )

    def _buffers(self, number: int) -> str:
        """Lines that make %fromNUMBER, a copy of the operand, and %spareNUMBER, as large."""
        type_ = self._types[number]
        dynamic = [i for i in range(self._rank) if type_.is_dynamic_dim(i)]
        sizes = ", ".join(f"%size{number}_{i}" for i in dynamic)
        lines = [
            f"%at{number}_{i} = arith.constant {i} : index\n"
            f"%size{number}_{i} = tensor.dim %given{number}, %at{number}_{i} : {type_}"
            for i in dynamic
        ]
        return "\n".join(
            [
                *lines,
                f"%from{number} = bufferization.alloc_tensor() copy(%given{number}) : {type_}",
                f"%spare{number} = bufferization.alloc_tensor({sizes}) : {type_}\n",
            ]
        )

    def _results(self, name: str) -> str:
        """The results of the operation that is called so."""
        return self._each(f"%{name}#{{i}}") if len(self._types) > 1 else f"%{name}"

    def _named(self, name: str) -> str:
        """What is written before the = of an operation that has a result for each operand."""
        return f"%{name}:{len(self._types)}" if len(self._types) > 1 else f"%{name}"

    def _merge(self, made: str, source: str, place: str, run: str) -> str:
        """Makes %MADE of `source`, the tensors' names, whose runs have %RUN elements, in the place
        of %PLACE0, ..."""
        types, count = self._each("{t}"), len(self._types)
        dimensions = ", ".join(f"d{i}" for i in range(self._rank))
        identity = f"affine_map<({dimensions}) -> ({dimensions})>"
        return f"""
    {self._named(made)} = linalg.generic {{
        indexing_maps = [{", ".join([identity] * count)}],
        iterator_types = [{", ".join(['"parallel"'] * self._rank)}]}}
        outs({self._each(f"%{place}{{i}}")} : {types}) {{
    ^bb0({self._each("%unused{i}: {e}")}):
      {chr(10).join(f"%d{i} = linalg.index {i} : index" for i in range(self._rank))}
      // Its place in the two runs together, and where they begin and end.
      %both = arith.addi %{run}, %{run} : index
      // Runs are as long as a power of two.
      %mask = arith.subi %both, %c1 : index
      %place = arith.andi %d{self._dimension}, %mask : index
      %begin = arith.subi %d{self._dimension}, %place : index
      %run_end = arith.addi %begin, %{run} : index
      %middle = arith.minui %run_end, %n : index
      %both_end = arith.addi %begin, %both : index
      %end = arith.minui %both_end, %n : index
      %firsts = arith.subi %middle, %begin : index
      %seconds = arith.subi %end, %middle : index
      // How many before it are of the first run: from %least to %most.
      %beyond = arith.subi %place, %seconds : index
      %least = arith.maxsi %beyond, %c0 : index
      %most = arith.minsi %place, %firsts : index
      %i:2 = scf.while (%low = %least, %high = %most) : (index, index) -> (index, index) {{
        %are_several = arith.cmpi slt, %low, %high : index
        scf.condition(%are_several) %low, %high : index, index
      }} do {{
      ^bb0(%low: index, %high: index):
        %sum = arith.addi %low, %high : index
        %half = arith.shrui %sum, %c1 : index
        %from_first = arith.addi %begin, %half : index
        %rest = arith.subi %place, %half : index
        %behind_second = arith.addi %middle, %rest : index
        %from_second = arith.subi %behind_second, %c1 : index
        {self._read("p", source, "from_first")}
        {self._read("q", source, "from_second")}
        {self._is_before("is_less", "q", "p")}
        %after_half = arith.addi %half, %c1 : index
        %new_low = arith.select %is_less, %low, %after_half : index
        %new_high = arith.select %is_less, %half, %high : index
        scf.yield %new_low, %new_high : index, index
      }}
      %j = arith.subi %place, %i#0 : index
      %has_first = arith.cmpi slt, %i#0, %firsts : index
      %has_no_second = arith.cmpi sge, %j, %seconds : index
      // Within the tensor also where a run has no more.
      %first_place = arith.addi %begin, %i#0 : index
      %second_place = arith.addi %middle, %j : index
      %first = arith.minui %first_place, %last : index
      %second = arith.minui %second_place, %last : index
      {self._read("a", source, "first")}
      {self._read("b", source, "second")}
      {self._is_before("second_is_less", "b", "a")}
      %true = arith.constant true
      %first_is_not_more = arith.xori %second_is_less, %true : i1
      %may_be_first = arith.ori %has_no_second, %first_is_not_more : i1
      %is_first = arith.andi %has_first, %may_be_first : i1
      {self._each("%v{i} = arith.select %is_first, %a{i}, %b{i} : {e}", chr(10))}
      linalg.yield {self._each("%v{i}")} : {self._each("{e}")}
    }} -> ({types})"""

    def _keep(self, made: str, place: str) -> str:
        """%MADE_kept0, ...: what was made is where %PLACE0, ... was."""
        return "\n".join(
            f"%{made}_kept{i} = bufferization.materialize_in_destination {name} in %{place}{i} "
            f": ({type_}, {type_}) -> {type_}"
            for i, (name, type_) in enumerate(
                zip(self._results(made).split(", "), self._types, strict=True)
            )
        )

    def text(self) -> str:
        """The text of `func.func @sort`."""
        types, count = self._each("{t}"), len(self._types)
        # Two merges a round, there and back: two buffers are enough.
        return f"""
func.func @sort({self._each("%given{i}: {t}")}) -> ({types}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bits = arith.constant 64 : i64
  %dimension = arith.constant {self._dimension} : index
  %n = tensor.dim %given0, %dimension : {self._types[0]}
  // As many merges as n - 1 has digits: none for one element, or none.
  %some = arith.maxui %n, %c1 : index
  %last = arith.subi %some, %c1 : index
  %number = arith.index_cast %last : index to i64
  %zeros = math.ctlz %number : i64
  %digits = arith.subi %bits, %zeros : i64
  %merges = arith.index_cast %digits : i64 to index
  {"".join(self._buffers(i) for i in range(count))}
  %round:{2 * count} = scf.for %merge = %c0 to %merges step %c2
      iter_args({self._each("%x{i} = %from{i}")}, {self._each("%y{i} = %spare{i}")})
      -> ({types}, {types}) {{
    %run = arith.shli %c1, %merge : index
    %next_run = arith.shli %c2, %merge : index
    {self._merge("there", self._each("%x{i}"), "y", "run")}
    {self._keep("there", "y")}
    {self._merge("back", self._each("%there_kept{i}"), "x", "next_run")}
    {self._keep("back", "x")}
    scf.yield {self._each("%back_kept{i}")}, {self._each("%there_kept{i}")} : {types}, {types}
  }}
  return {self._each("%round#{i}")} : {types}
}}
"""
