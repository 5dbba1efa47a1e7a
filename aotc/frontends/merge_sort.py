"""Generates the MLIR text of a parallel merge sort (`MergeSort`).

A thread sorts `CHUNK` adjacent elements. Then rounds of merges double the length of the sorted
runs. In a merge, each thread writes `CHUNK` elements: by bisection, it finds how many elements of
each of the two runs precede its first one, and then merges sequentially. The threads are
independent, so each round becomes a kernel. The sort is stable.

If only the first elements are needed, runs grow up to that length only: a merge of two such runs
writes only the first half, so that half of the elements remain.

Between rounds, element p is in row p % CHUNK and column p / CHUNK of a buffer, so that neighbouring
threads access neighbouring elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from aotc.frontends.radix_sort import RadixSort, SortKey
from aotc.frontends.row_selection import RowSelection
from aotc.frontends.tensor_text import index_list, size_lines
from aotc.module_names import CAPABILITY

# The number of elements that a thread sorts or merges, a power of two.
CHUNK = 8
_DIGITS = CHUNK.bit_length() - 1
# Unused columns of a buffer. With a power of two of columns, all rows would map to the same sets of
# a CPU's cache.
_PADDING = 16
# Threads of a GPU select the first elements of rows of at most so many elements, if at most so many
# are wanted of each of at least so many rows, as of the experts of a router.
_LONGEST_ROW, _MOST_OF_ROW, _LEAST_ROWS = 256, 16, 1024


class MergeSort:
    """A function of tensors to tensors whose elements along `dimension` are sorted.

    `types` are the tensors' types, all of one shape. `is_before(NAME, FIRST, SECOND)` returns lines
    that define the i1 `%NAME`: whether the elements `%FIRST0`, ... come before `%SECOND0`, .... It
    must be a strict weak order. With `first`, the results have only that many elements along the
    dimension. The operand `numbers` has the number of each element along it, and is not read; the
    order does not depend on it. With `key`, `is_before` is the order of that.
    """

    def __init__(
        self,
        types: Sequence[Any],
        dimension: int,
        is_before: Callable[[str, str, str], str],
        first: int | None = None,
        numbers: int | None = None,
        key: SortKey | None = None,
    ) -> None:
        self._types = types
        self._elements = [type_.element_type for type_ in types]
        self._rank = types[0].rank
        self._dimension = dimension % self._rank
        self._is_before = is_before
        self._first, self._numbers, self._key = first, numbers, key
        # The types of the buffers, and of the slice of each that a thread writes.
        sizes = [self._size(i) for i in range(self._rank)]
        self._buffers = [f"tensor<{self._buffer_shape(sizes)}x{e}>" for e in self._elements]
        self._parts = [f"tensor<{CHUNK}x{e}>" for e in self._elements]
        made = "".join(f"{size}x" for size in self._result_sizes())
        self._results = [f"tensor<{made}{e}>" for e in self._elements]

    def _size(self, dimension: int) -> str:
        is_dynamic = self._types[0].is_dynamic_dim(dimension)
        return "?" if is_dynamic else str(self._types[0].shape[dimension])

    def _result_sizes(self) -> list[str]:
        sizes = [self._size(i) for i in range(self._rank)]
        if self._first is not None:
            sizes[self._dimension] = str(self._first)
        return sizes

    def _buffer_shape(self, sizes: Sequence[str]) -> str:
        """The sizes of a buffer, as in its type."""
        before, after = sizes[: self._dimension], sizes[self._dimension + 1 :]
        return "x".join([*before, str(CHUNK), "?", *after])

    def _join(self, form: str, separator: str = ", ") -> str:
        """The template instantiated for each operand, joined: {i} is its number, {t} its type, {e}
        its element type, {b} the type of its buffers, {p} that of a thread's slice, {r} that of its
        result."""
        types = (self._types, self._elements, self._buffers, self._parts, self._results)
        return separator.join(
            form.format(i=i, t=type_, e=element, b=buffer, p=part, r=result)
            for i, (type_, element, buffer, part, result) in enumerate(zip(*types, strict=True))
        )

    def _lines(self, form: str) -> str:
        """The template instantiated for each operand, one per line."""
        return self._join(form, "\n")

    def _index_list(self, along: str, others: str = "%d{i}") -> str:
        return index_list(self._rank, self._dimension, along, others)

    def _read_elements(self, name: str, source: str, at: str) -> str:
        """Lines that define %NAME0, ... as the elements number %AT of the buffers %SOURCE0, ...."""
        place = self._index_list(f"%{name}_row, %{name}_column")
        return f"""
        %{name}_row = arith.andi %{at}, %chunk_mask : index
        %{name}_column = arith.shrui %{at}, %chunk_digits : index
        {self._lines(f"%{name}{{i}} = tensor.extract %{source}{{i}}[{place}] : {{b}}")}"""

    def _allocate_buffers(self, name: str) -> str:
        """Lines that allocate the buffers %NAME0, ...."""
        sizes = [f"%size{i}" if self._size(i) == "?" else "" for i in range(self._rank)]
        sizes[self._dimension] = "%width"
        given = ", ".join(size for size in sizes if size)
        return self._lines(f"%{name}{{i}} = bufferization.alloc_tensor({given}) : {{b}}")

    def _chunk_loop(self, made: str, target: str, body: str, chunks: str = "chunks") -> str:
        """Lines that define %MADE0, ... as the buffers %TARGET0, ... with new chunks. For each of
        %CHUNKS chunks, `body` defines %done0, ... from the slices %part0, .... The chunk begins at
        %begin along the dimension."""
        counts = self._index_list(f"%{chunks}", "%size{i}")
        ones, sizes = ["1"] * (self._rank + 1), ["1"] * (self._rank + 1)
        sizes[self._dimension] = str(CHUNK)
        slice_ = f"[{self._index_list('0, %column')}] [{', '.join(sizes)}] [{', '.join(ones)}]"
        parts = self._lines(
            f"%part{{i}} = tensor.extract_slice %shared{{i}}{slice_} : {{b}} to {{p}}"
        )
        put = self._lines(
            f"tensor.parallel_insert_slice %done{{i}} into %shared{{i}}{slice_} : {{p}} into {{b}}"
        )
        return f"""
    {self._left_hand_side(made)} = scf.forall ({self._index_list("%column")}) in ({counts})
        shared_outs({self._join(f"%shared{{i}} = %{target}{{i}}")}) -> ({self._join("{b}")}) {{
      %begin = arith.shli %column, %chunk_digits : index
      {parts}
      {body}
      scf.forall.in_parallel {{
        {put}
      }}
    }}
    {self._lines(f"%{made}{{i}} = tensor.cast %{made}#{{i}} : {{b}} to {{b}}")}"""

    def _left_hand_side(self, name: str) -> str:
        """The left-hand side of an operation that has a result for each operand."""
        return f"%{name}:{len(self._types)}"

    def _sort_chunk(self) -> str:
        """The body that sorts a chunk by odd-even transposition. Only neighbours are swapped, and
        only if they are out of order, so the sort is stable. Elements after the end never move."""
        lines = []
        for k in range(CHUNK):
            place = self._index_list(f"%inside{k}")
            lines += [
                f"%offset{k} = arith.constant {k} : index",
                f"%at{k} = arith.addi %begin, %offset{k} : index",
                f"%inside{k} = arith.minui %at{k}, %last : index",
                f"%is_there{k} = arith.cmpi ult, %at{k}, %n : index",
                *(
                    f"%x0_{k}_{i} = arith.index_cast %inside{k} : index to {type_.element_type}"
                    if i == self._numbers
                    else f"%x0_{k}_{i} = tensor.extract %given{i}[{place}] : {type_}"
                    for i, type_ in enumerate(self._types)
                ),
            ]
        # The names of the SSA values at each position.
        names = [f"x0_{k}_" for k in range(CHUNK)]
        for turn in range(CHUNK):
            for k in range(turn % 2, CHUNK - 1, 2):
                first, second, new = names[k], names[k + 1], f"x{turn + 1}_"
                lines += [
                    self._is_before(f"is_less{turn}_{k}", second, first),
                    f"%swap{turn}_{k} = arith.andi %is_less{turn}_{k}, %is_there{k + 1} : i1",
                    self._lines(
                        f"%{new}{k}_{{i}} = arith.select %swap{turn}_{k}, %{second}{{i}}, "
                        f"%{first}{{i}} : {{e}}"
                    ),
                    self._lines(
                        f"%{new}{k + 1}_{{i}} = arith.select %swap{turn}_{k}, %{first}{{i}}, "
                        f"%{second}{{i}} : {{e}}"
                    ),
                ]
                names[k], names[k + 1] = f"{new}{k}_", f"{new}{k + 1}_"
        before = "part{i}"
        for k, name in enumerate(names):
            after = "done{i}" if k == CHUNK - 1 else f"put{k}_{{i}}"
            put = f"%{after} = tensor.insert %{name}{{i}} into %{before}[%offset{k}] : {{p}}"
            lines.append(self._lines(put))
            before = after
        return "\n".join(lines)

    def _merge(self, made: str, target: str, source: str, merges: str) -> str:
        """Lines that define %MADE0, ... in the buffers %TARGET0, ... by merging the runs of
        %SOURCE0, ..., which %MERGES merges have produced."""
        if self._first is None:
            counts = f"%{made}_run = arith.shli %chunk, %{merges} : index"
            body = self._merge_chunk(source, f"{made}_run", "n")
            return f"{counts}{self._chunk_loop(made, target, body)}"

        # Each run, except perhaps the last one, is truncated to its first elements.
        def truncated_runs(name: str, merges: str) -> str:
            return f"""
    %{name}_covered = arith.shli %chunk, %{merges} : index
    %{name}_run = arith.minui %{name}_covered, %kept : index
    %{name}_full = arith.divui %n, %{name}_covered : index
    %{name}_rest = arith.remui %n, %{name}_covered : index
    %{name}_in_full = arith.muli %{name}_full, %{name}_run : index
    %{name}_in_last = arith.minui %{name}_rest, %{name}_run : index
    %{name}_count = arith.addi %{name}_in_full, %{name}_in_last : index"""

        after = f"""
    %{made}_merges = arith.addi %{merges}, %c1 : index
    {truncated_runs(f"{made}_after", f"{made}_merges")}
    %{made}_chunks = arith.ceildivui %{made}_after_count, %chunk : index"""
        body = self._merge_chunk(source, f"{made}_run", f"{made}_count", f"{made}_after_run")
        loop = self._chunk_loop(made, target, body, f"{made}_chunks")
        return f"{truncated_runs(made, merges)}{after}{loop}"

    def _merge_chunk(self, source: str, run: str, count: str, made: str = "both") -> str:
        """The body that merges a chunk from `source`, which has %COUNT elements in runs of %RUN.
        The new runs have the length %MADE: that of both runs together, or that of one."""
        # The first two results of the loop are indices.
        done = "\n".join(
            f"%done{i} = tensor.cast %merged#{2 + i} : {part} to {part}"
            for i, part in enumerate(self._parts)
        )
        return f"""
      // The position of its first element in the merged run, and the bounds of the two runs.
      %both = arith.addi %{run}, %{run} : index
      // The lengths of runs are powers of two.
      %mask = arith.subi %{made}, %c1 : index
      %place = arith.andi %begin, %mask : index
      {self._run_start(made)}
      %run_end = arith.addi %runs, %{run} : index
      %middle = arith.minui %run_end, %{count} : index
      %both_end = arith.addi %runs, %both : index
      %end = arith.minui %both_end, %{count} : index
      %firsts = arith.subi %middle, %runs : index
      %seconds = arith.subi %end, %middle : index
      // Bisects the number of elements of the first run before it, from %least to %most.
      %beyond = arith.subi %place, %seconds : index
      %least = arith.maxsi %beyond, %c0 : index
      %most = arith.minsi %place, %firsts : index
      %found:2 = scf.while (%low = %least, %high = %most) : (index, index) -> (index, index) {{
        %are_several = arith.cmpi slt, %low, %high : index
        scf.condition(%are_several) %low, %high : index, index
      }} do {{
      ^bb0(%low: index, %high: index):
        %sum = arith.addi %low, %high : index
        %half = arith.shrui %sum, %c1 : index
        %from_first = arith.addi %runs, %half : index
        %others = arith.subi %place, %half : index
        %behind_second = arith.addi %middle, %others : index
        %from_second = arith.subi %behind_second, %c1 : index
        {self._read_elements("p", source, "from_first")}
        {self._read_elements("q", source, "from_second")}
        {self._is_before("is_less", "q", "p")}
        %after_half = arith.addi %half, %c1 : index
        %new_low = arith.select %is_less, %low, %after_half : index
        %new_high = arith.select %is_less, %half, %high : index
        scf.yield %new_low, %new_high : index, index
      }}
      %first_place = arith.addi %runs, %found#0 : index
      %taken = arith.subi %place, %found#0 : index
      %second_place = arith.addi %middle, %taken : index
      %merged:{2 + len(self._types)} = scf.for %k = %c0 to %chunk step %c1
          iter_args(%i = %first_place, %j = %second_place, {self._join("%to{i} = %part{i}")})
          -> (index, index, {self._join("{p}")}) {{
        %has_first = arith.cmpi ult, %i, %middle : index
        %has_no_second = arith.cmpi uge, %j, %end : index
        // In bounds even if a run is exhausted.
        %first = arith.minui %i, %last : index
        %second = arith.minui %j, %last : index
        {self._read_elements("a", source, "first")}
        {self._read_elements("b", source, "second")}
        {self._is_before("second_is_less", "b", "a")}
        %true = arith.constant true
        %first_is_not_more = arith.xori %second_is_less, %true : i1
        %may_be_first = arith.ori %has_no_second, %first_is_not_more : i1
        %is_first = arith.andi %has_first, %may_be_first : i1
        {self._lines("%v{i} = arith.select %is_first, %a{i}, %b{i} : {e}")}
        %next_i = arith.addi %i, %c1 : index
        %next_j = arith.addi %j, %c1 : index
        %new_i = arith.select %is_first, %next_i, %i : index
        %new_j = arith.select %is_first, %j, %next_j : index
        {self._lines("%put{i} = tensor.insert %v{i} into %to{i}[%k] : {p}")}
        scf.yield %new_i, %new_j, {self._join("%put{i}")} : index, index, {self._join("{p}")}
      }}
      {done}"""

    def _run_start(self, made: str) -> str:
        """Lines that define %runs, the start of the two runs."""
        if made == "both":
            return "%runs = arith.subi %begin, %place : index"
        return f"""
      %before = arith.subi %begin, %place : index
      %read_for_one = arith.divui %both, %{made} : index
      %runs = arith.muli %before, %read_for_one : index"""

    def _selection(self) -> RowSelection | None:
        """How a thread finds the first elements of a row, if that is faster than to sort it."""
        first, numbers = self._first, self._numbers
        if first is None or numbers is None:
            return None
        is_dynamic = self._types[0].is_dynamic_dim(self._dimension)
        length = None if is_dynamic else self._types[0].shape[self._dimension]
        has_key = self._key is not None and not self._is_for_gpus()
        if not RowSelection.takes(length, first, has_key):
            return None
        types, results, dimension = self._types, self._results, self._dimension
        return RowSelection(types, results, dimension, self._is_before, first, numbers)

    def _radix_sort(self) -> RadixSort | None:
        """How a thread of the CPU device sorts a row, if that is faster than merges."""
        types, dimension, key = self._types, self._dimension, self._key
        if key is None or not RadixSort.takes(types, dimension, key):
            return None
        return RadixSort(types, self._results, dimension, key, self._first, self._numbers)

    def _is_for_gpus(self) -> bool:
        """Whether the threads of a GPU do so, too: a thread for each of many short rows."""
        shape = self._types[0].shape if self._types[0].has_static_shape else None
        return (
            shape is not None
            and shape[self._dimension] <= _LONGEST_ROW
            and (self._first or 0) <= _MOST_OF_ROW
            and math.prod(shape) >= _LEAST_ROWS * shape[self._dimension]
        )

    def text(self) -> str:
        """The text of `func.func @sort`. If it calls `CAPABILITY`, the text declares that, too."""
        results, count = self._join("{r}"), len(self._types)
        plain = "%plain"
        lines = self._plain_lines()
        declaration = ""
        selection = self._selection()
        order = selection or self._radix_sort()
        if order is not None:
            declaration = f"func.func private @{CAPABILITY}() -> i32"
            row_lines = order.lines("selected", "empty")
            plain, of_merges = "%chosen", self._join("%plain#{i}") if count > 1 else "%plain"
            if selection is not None and self._is_for_gpus():
                plain, declaration, lines = "%selected", "", row_lines
            else:
                lines = f"""
  %capability = func.call @{CAPABILITY}() : () -> i32
  %least_capability = arith.constant 1 : i32
  %has_gpu = arith.cmpi sge, %capability, %least_capability : i32
  {f"%chosen:{count}" if count > 1 else "%chosen"} = scf.if %has_gpu -> ({results}) {{
    {lines}
    scf.yield {of_merges} : {results}
  }} else {{
    {row_lines}
    scf.yield {self._join("%selected#{i}")} : {results}
  }}"""
        returned = self._join(f"{plain}#{{i}}") if count > 1 else plain
        dynamic = ", ".join(
            f"%size{i}" for i, size in enumerate(self._result_sizes()) if size == "?"
        )
        return f"""
{declaration}
func.func @sort({self._join("%given{i}: {t}")}) -> ({results}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %chunk = arith.constant {CHUNK} : index
  %chunk_mask = arith.constant {CHUNK - 1} : index
  %chunk_digits = arith.constant {_DIGITS} : index
  %padding = arith.constant {_PADDING} : index
  %bits = arith.constant 64 : i64
  {size_lines("size", "%given0", self._types[0])}
  %n = tensor.dim %given0, %size_d{self._dimension} : {self._types[0]}
  %some = arith.maxui %n, %c1 : index
  %last = arith.subi %some, %c1 : index
  %chunks = arith.ceildivui %n, %chunk : index
  // The number of merges is the bit length of the last chunk's index: 0 for at most one chunk.
  %some_chunks = arith.maxui %chunks, %c1 : index
  %last_chunk = arith.subi %some_chunks, %c1 : index
  %number = arith.index_cast %last_chunk : index to i64
  %zeros = math.ctlz %number : i64
  %digits = arith.subi %bits, %zeros : i64
  %merges = arith.index_cast %digits : i64 to index
  %width = arith.addi %chunks, %padding : index
  {self._allocate_buffers("from")}
  {self._allocate_buffers("spare")}
  {self._join("%empty{i} = tensor.empty(" + dynamic + ") : {r}", chr(10))}
  {lines}
  return {returned} : {results}
}}
"""

    def _plain_lines(self) -> str:
        """Lines that define %plain, the results, by sorting chunks and merging runs."""
        results, buffers, count = self._join("{r}"), self._join("{b}"), len(self._types)
        dimensions = ", ".join(f"d{i}" for i in range(self._rank))
        identity = f"affine_map<({dimensions}) -> ({dimensions})>"
        # Each iteration does two rounds, from one buffer to the other and back, so two buffers are
        # enough.
        return f"""
  {self._chunk_loop("sorted", "from", self._sort_chunk())}
  %kept = arith.constant {max(CHUNK, 1 << ((self._first or 1) - 1).bit_length())} : index
  %round:{2 * count} = scf.for %merge = %c0 to %merges step %c2
      iter_args({self._join("%x{i} = %sorted{i}")}, {self._join("%y{i} = %spare{i}")})
      -> ({buffers}, {buffers}) {{
    %next_merge = arith.addi %merge, %c1 : index
    {self._merge("there", "y", "x", "merge")}
    {self._merge("back", "x", "there", "next_merge")}
    scf.yield {self._join("%back{i}")}, {self._join("%there{i}")} : {buffers}, {buffers}
  }}
  {self._left_hand_side("plain") if count > 1 else "%plain"} = linalg.generic {{
      indexing_maps = [{", ".join([identity] * count)}],
      iterator_types = [{", ".join(['"parallel"'] * self._rank)}]}}
      outs({self._join("%empty{i}")} : {results}) {{
  ^bb0({self._join("%unused{i}: {e}")}):
    {chr(10).join(f"%d{i} = linalg.index {i} : index" for i in range(self._rank))}
    {self._lines("%last_round{i} = tensor.cast %round#{i} : {b} to {b}")}
    {self._read_elements("v", "last_round", f"d{self._dimension}")}
    linalg.yield {self._join("%v{i}")} : {self._join("{e}")}
  }} -> ({results})"""
