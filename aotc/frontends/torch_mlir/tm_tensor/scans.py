"""Lowers `tm_tensor.scan` to loops over chunks.

Along the last dimension, a chunk is a loop that the mapping recognizes as a scan of a row, which
the threads of a block compute together. Along other dimensions, and for combinations that the
mapping does not recognize, one thread computes each chunk.
"""

from __future__ import annotations

from typing import Any

from aotc.frontends.row_scan import RowScan
from aotc.frontends.tensor_text import index_list, size_lines
from aotc.frontends.torch_mlir.tm_tensor.attributes import dimension_of

# The least number of elements of a chunk, and the number for a scan that may be longer than _LONG.
_LEAST_CHUNK, _CHUNK_OF_LONG = 32, 64
_LONG = 4096
# The combinations that row scans support, and their neutral elements.
_NEUTRAL = {"arith.addf": "-0.0", "arith.addi": "0", "arith.mulf": "1.0", "arith.muli": "1"}


def scan_text(ir: Any, operation: Any) -> str | None:
    """The text of an inclusive scan. None for other scans, and if the last accumulators are
    used."""
    is_inclusive = bool(ir.BoolAttr(operation.attributes["inclusive"]).value)
    if not is_inclusive or any(True for _ in operation.results[1].uses):
        return None
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    element = types[0].element_type
    region = f"func.func private @region({element}, {element}) -> {element}"
    dimension = dimension_of(ir, operation)
    combination, *others = operation.regions[0].blocks[0].operations
    neutral = _NEUTRAL.get(combination.operation.name)
    if dimension == types[0].rank - 1 and neutral is not None and len(others) == 1:
        return region + RowScan(ir, types, neutral).text()
    return region + _Scan(types, dimension).text(ir)


class _Scan:
    """A scan in chunks along a dimension.

    A first kernel combines the elements of each chunk to a total. In a second one, each chunk
    begins with the total of the chunks before it, and scans its own elements. There are about as
    many chunks as a chunk has elements, and each chunk combines the totals of those before it. If
    the dimension may be long, chunks are short, and their totals are scanned in between.

    The order of combination is fixed, so the result is bitwise deterministic. `types` are those of
    the source, the result and the accumulators.
    """

    def __init__(self, types: list[Any], dimension: int, name: str = "scan") -> None:
        self._source, self._result, self._accumulator = types
        self._dimension, self._rank, self._name = dimension, self._source.rank, name
        self._element = self._source.element_type
        self._sizes = [f"%size{i}" for i in range(self._rank)]
        self._n = self._sizes[dimension]
        self._counts = ["%chunks" if i == dimension else f"%size{i}" for i in range(self._rank)]
        self._totals = self._type(self._shape())
        is_unknown = self._source.is_dynamic_dim(dimension)
        self._is_long = name == "scan" and (is_unknown or self._source.shape[dimension] > _LONG)

    def _shape(self) -> list[str]:
        """The sizes as in a type, with "?" for the scanned dimension."""
        sizes = [
            "?" if self._source.is_dynamic_dim(i) else str(self._source.shape[i])
            for i in range(self._rank)
        ]
        sizes[self._dimension] = "?"
        return sizes

    def _type(self, shape: list[str]) -> str:
        return f"tensor<{'x'.join(shape)}x{self._element}>"

    def _along(self, dimension: str, others: str = "%d{i}") -> str:
        return index_list(self._rank, self._dimension, dimension, others)

    def _combine(self, made: str, first: str, second: str) -> str:
        e = self._element
        return f"%{made} = func.call @region(%{first}, %{second}) : ({e}, {e}) -> {e}"

    def _combine_all(self, made: str, tensor: str, type_: str, bounds: tuple[str, str, str]) -> str:
        """Lines that define %MADE, the combination of a tensor's elements. `bounds` are the first
        index, the one after it, and the end."""
        first, second, end = bounds
        return f"""
      %{made}_0 = tensor.extract {tensor}[{self._along(first)}] : {type_}
      %{made} = scf.for %{made}_i = {second} to {end} step %c1
          iter_args(%{made}_s = %{made}_0) -> ({self._element}) {{
        %{made}_x = tensor.extract {tensor}[{self._along(f"%{made}_i")}] : {type_}
        {self._combine(f"{made}_y", f"{made}_s", f"{made}_x")}
        scf.yield %{made}_y : {self._element}
      }}"""

    def _bounds(self) -> str:
        return f"""
      %begin = arith.muli %d{self._dimension}, %chunk : index
      %behind = arith.addi %begin, %chunk : index
      %end = arith.minui %behind, {self._n} : index"""

    def _chunk(self) -> str:
        """Lines that define %chunk, the number of elements of a chunk."""
        if self._is_long:
            return f"%chunk = arith.constant {_CHUNK_OF_LONG} : index"
        return f"""
  // The chunk size: a power of two that is at least the square root of n.
  %c2 = arith.constant 2 : index
  %bits = arith.constant 65 : i64
  %number = arith.index_cast {self._n} : index to i64
  %zeros = math.ctlz %number : i64
  %digits = arith.subi %bits, %zeros : i64
  %wide_digits = arith.index_cast %digits : i64 to index
  %half = arith.divui %wide_digits, %c2 : index
  %power = arith.shli %c1, %half : index
  %least = arith.constant {_LEAST_CHUNK} : index
  %chunk = arith.maxui %power, %least : index"""

    def _before(self) -> str:
        """Lines that define %before, the total of all elements before a chunk that is not the first
        one."""
        if not self._is_long:
            bounds = ("%c0", "%c1", f"%d{self._dimension}")
            return self._combine_all("before", "%totals", self._totals, bounds)
        return f"""
      %chunk_before = arith.subi %d{self._dimension}, %c1 : index
      %before = tensor.extract %prefixes#0[{self._along("%chunk_before")}] : {self._totals}"""

    def text(self, ir: Any) -> str:
        """The text of the function, and of a function that it calls. `@region` is declared
        elsewhere."""
        e, source, result, totals = self._element, self._source, self._result, self._totals
        part = f"tensor<?x{e}>"
        inner, scanned = "", ""
        if self._is_long:
            types = [ir.RankedTensorType(ir.Type.parse(totals))] * 3
            inner = _Scan(types, self._dimension, "scan_totals").text(ir)
            scanned = f"""
  %prefixes:2 = func.call @scan_totals(%totals, %empty, %empty)
      : ({totals}, {totals}, {totals}) -> ({totals}, {totals})"""
        dynamic = [
            count for count, size in zip(self._counts, self._shape(), strict=True) if size == "?"
        ]
        slice_ = (
            f"[{self._along('%begin')}] [{self._along('%length', '1')}] [{self._along('1', '1')}]"
        )
        identity = self._along(f"d{self._dimension}", "d{i}")
        own = self._along(f"%d{self._dimension}")
        return f"""{inner}
func.func @{self._name}(%source: {source}, %given: {result}, %unused: {self._accumulator})
    -> ({result}, {self._accumulator}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {size_lines("size", "%source", source)}
  {self._chunk()}
  %chunks = arith.ceildivui {self._n}, %chunk : index
  %empty = tensor.empty({", ".join(dynamic)}) : {totals}
  %totals = linalg.generic {{
      indexing_maps = [affine_map<({identity}) -> ({identity})>],
      iterator_types = [{", ".join(['"parallel"'] * self._rank)}]}} outs(%empty : {totals}) {{
    ^bb0(%none: {e}):
      {chr(10).join(f"%d{i} = linalg.index {i} : index" for i in range(self._rank))}
      {self._bounds()}
      %second = arith.addi %begin, %c1 : index
      {self._combine_all("total", "%source", str(source), ("%begin", "%second", "%end"))}
      linalg.yield %total : {e}
  }} -> {totals}{scanned}
  %made = scf.forall ({own}) in ({", ".join(self._counts)})
      shared_outs(%shared = %given) -> ({result}) {{
    {self._bounds()}
    %length = arith.subi %end, %begin : index
    %first = tensor.extract %source[{self._along("%begin")}] : {source}
    %is_first = arith.cmpi eq, %d{self._dimension}, %c0 : index
    %start = scf.if %is_first -> ({e}) {{
      scf.yield %first : {e}
    }} else {{{self._before()}
      {self._combine("with_first", "before", "first")}
      scf.yield %with_first : {e}
    }}
    %slice = tensor.extract_slice %shared{slice_} : {result} to {part}
    %begun = tensor.insert %start into %slice[%c0] : {part}
    %whole:2 = scf.for %i = %c1 to %length step %c1
        iter_args(%sum = %start, %to = %begun) -> ({e}, {part}) {{
      %at = arith.addi %begin, %i : index
      %x = tensor.extract %source[{self._along("%at")}] : {source}
      {self._combine("more", "sum", "x")}
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
