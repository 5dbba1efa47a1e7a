"""Generates the MLIR text of scans along the last dimension (`RowScan`).

A chunk of a row is a loop that the mapping recognizes as a scan, which the threads of a block
compute together.
"""

from __future__ import annotations

from typing import Any

from aotc.frontends.tensor_text import size_lines

# The number of elements of a chunk, and the length up to which a row is a single chunk.
_ROW_CHUNK, _LONGEST_ROW = 4096, 8192


class RowScan:
    """An inclusive scan along the last dimension, in chunks. If there may be several chunks, their
    totals are scanned first, and each chunk begins with the total of the chunks before it.

    `types` are those of the source, the result and the accumulators; `neutral` is the initial
    value. `combination` is the name of an operation; without it, `@region` is called.
    """

    def __init__(
        self,
        ir: Any,
        types: list[Any],
        neutral: str,
        name: str = "scan",
        combination: str | None = None,
    ) -> None:
        self._combination = combination
        self._ir, self._neutral, self._name = ir, neutral, name
        self._source, self._result, self._accumulator = types
        self._rank, self._element = self._source.rank, self._source.element_type
        n = self._source.rank - 1
        self._length = None if self._source.is_dynamic_dim(n) else self._source.shape[n]
        # The totals of chunks are few, so they are a single chunk.
        is_short = self._length is not None and self._length <= _LONGEST_ROW
        self._is_one_chunk = is_short or name != "scan"
        sizes = [
            "?" if self._source.is_dynamic_dim(i) else str(self._source.shape[i]) for i in range(n)
        ]
        self._totals = f"tensor<{'x'.join([*sizes, '?', str(self._element)])}>"
        self._dynamic = [f"%size{i}" for i, size in enumerate(sizes) if size == "?"]

    def _combine(self) -> str:
        e = self._element
        if self._combination is not None:
            return f"%more = {self._combination} %sum, %x : {e}"
        return f"%more = func.call @region(%sum, %x) : ({e}, {e}) -> {e}"

    def _at(self, last: str) -> str:
        """The indices of an element of a row."""
        return ", ".join([*(f"%d{i}" for i in range(self._rank - 1)), last])

    def _chunk(self) -> str:
        """Lines that define %chunk, the length of a chunk, and %chunks, the number of chunks."""
        n = f"%size{self._rank - 1}"
        if self._is_one_chunk:
            return f"%chunk = arith.maxui {n}, %c1 : index\n%chunks = arith.constant 1 : index"
        return f"""
  %chunk = arith.constant {_ROW_CHUNK} : index
  %chunks = arith.ceildivui {n}, %chunk : index"""

    def _bounds(self) -> str:
        last = self._rank - 1
        return f"""
    %begin = arith.muli %d{last}, %chunk : index
    %behind = arith.addi %begin, %chunk : index
    %end = arith.minui %behind, %size{last} : index"""

    def _prefixes(self) -> str:
        """Lines that define %prefixes, the inclusive scan of the chunks' totals."""
        e, totals, rank = self._element, self._totals, self._rank
        identity = ", ".join(f"d{i}" for i in range(rank))
        return f"""
  %empty = tensor.empty({", ".join([*self._dynamic, "%chunks"])}) : {totals}
  %totals = linalg.generic {{
      indexing_maps = [affine_map<({identity}) -> ({identity})>],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}} outs(%empty : {totals}) {{
    ^bb0(%none: {e}):
      {chr(10).join(f"%d{i} = linalg.index {i} : index" for i in range(rank))}
      {self._bounds()}
      %total = scf.for %i = %begin to %end step %c1 iter_args(%sum = %neutral) -> ({e}) {{
        %x = tensor.extract %source[{self._at("%i")}] : {self._source}
        {self._combine()}
        scf.yield %more : {e}
      }}
      linalg.yield %total : {e}
  }} -> {totals}
  %place = tensor.empty({", ".join([*self._dynamic, "%chunks"])}) : {totals}
  %prefixes:2 = func.call @scan_totals(%totals, %place, %place)
      : ({totals}, {totals}, {totals}) -> ({totals}, {totals})"""

    def _start(self) -> str:
        """Lines that define %start, the total of all elements before a chunk."""
        last, e = self._rank - 1, self._element
        return f"""
    %is_first = arith.cmpi eq, %d{last}, %c0 : index
    %less = arith.subi %d{last}, %c1 : index
    %chunk_before = arith.select %is_first, %c0, %less : index
    %before = tensor.extract %prefixes#0[{self._at("%chunk_before")}] : {self._totals}
    %start = arith.select %is_first, %neutral, %before : {e}"""

    def text(self) -> str:
        """The text of the function, and of a function that it calls. `@region` is declared
        elsewhere."""
        e, source, result, rank = self._element, self._source, self._result, self._rank
        part = f"tensor<?x{e}>"
        inner, prefixes, start = "", "", f"%start = arith.constant {self._neutral} : {e}"
        if not self._is_one_chunk:
            totals = [self._ir.RankedTensorType(self._ir.Type.parse(self._totals))] * 3
            inner = RowScan(
                self._ir, totals, self._neutral, "scan_totals", self._combination
            ).text()
            prefixes, start = self._prefixes(), self._start()
        slice_ = (
            f"[{self._at('%begin')}] [{', '.join([*'1' * (rank - 1), '%length'])}] "
            f"[{', '.join('1' * rank)}]"
        )
        counts = ", ".join([*(f"%size{i}" for i in range(rank - 1)), "%chunks"])
        return f"""{inner}
func.func @{self._name}(%source: {source}, %given: {result}, %unused: {self._accumulator})
    -> ({result}, {self._accumulator}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %neutral = arith.constant {self._neutral} : {e}
  {size_lines("size", "%source", source)}
  {self._chunk()}{prefixes}
  %made = scf.forall ({self._at(f"%d{rank - 1}")}) in ({counts})
      shared_outs(%shared = %given) -> ({result}) {{
    {self._bounds()}
    %length = arith.subi %end, %begin : index
    {start}
    %slice = tensor.extract_slice %shared{slice_} : {result} to {part}
    %whole:2 = scf.for %i = %c0 to %length step %c1
        iter_args(%sum = %start, %to = %slice) -> ({e}, {part}) {{
      %at = arith.addi %begin, %i : index
      %x = tensor.extract %source[{self._at("%at")}] : {source}
      {self._combine()}
      %put = tensor.insert %more into %to[%i] : {part}
      scf.yield %more, %put : {e}, {part}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole#1 into %shared{slice_} : {part} into {result}
    }}
  }}
  return %made, %unused : {result}, {self._accumulator}
}}
"""
