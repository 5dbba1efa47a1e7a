"""Generates the MLIR text of scatters, which combine updates with the elements of a tensor at given
places.

Several updates may have the same place. The algorithm depends on the combination:

- If the last update wins, an atomic maximum finds its number for each place.
- If the order does not matter, updates are combined by atomic operations.
- If there are few places, and many updates of each, threads combine parts of the updates, each in
  a row of its own of a table of the places, and then the rows are combined.
- Otherwise the updates of a place are grouped and put in order, and one thread for each element
  combines them. An atomic counter for each place counts its updates and gives each of them a slot,
  in an arbitrary order. The rank of an update is then the number of updates of the place that have
  a smaller number. If a place has so many updates that this takes too long, they are sorted.

So the result is bitwise deterministic, and no two threads write to one place.
"""

from __future__ import annotations

import math

from aotc.frontends.merge_sort import MergeSort
from aotc.frontends.row_scan import RowScan
from aotc.frontends.scatter_text import ScatterText
from aotc.module_names import CAPABILITY

# With more updates per place on average, the updates are sorted.
_MOST_OF_PLACE = 64
# With more updates of one place, a single thread orders them, by a search through all updates.
_MOST_RANKED = 1024
# Parts of updates are combined for at most so many places, and have at least so many updates.
_MOST_IN_PARTS, _LEAST_PART = 512, 64
# On the CPU device, a thread combines the updates of so many neighbouring columns in order. If they
# need no sort, there are at least so many columns.
_COLUMNS, _LEAST_COLUMNS = 16, 64
# What operations begin with: on floats, or on integers that have no atomic operations.
_IDENTITIES = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.addi": 0,
    "arith.muli": 1,
}
# Integer operations that are associative and commutative → their kinds in `memref.atomic_rmw`.
_ATOMIC = {
    "arith.addi": "addi",
    "arith.maxsi": "maxs",
    "arith.minsi": "mins",
    "arith.maxui": "maxu",
    "arith.minui": "minu",
    "arith.andi": "andi",
    "arith.ori": "ori",
}


class Scatter(ScatterText):
    """Generates `func.func @scatter`."""

    def text(self) -> str:
        """The text of `func.func @scatter`, after the functions that it calls."""
        e = self._element
        helpers, body = self._algorithm()
        region = f"func.func private @region({e}, {e}) -> {e}" if self._operation is None else ""
        return f"""{helpers}
{region}
func.func @scatter(%updates: {self._updates}, %indices: {self._indices}, %given: {self._result})
    -> {self._result} {{
  {self._prologue()}
  {body}
  return %made : {self._result}
}}
"""

    def _assert_32_bits(self) -> str:
        """Lines that assert that the numbers of places and of points fit into 32 bits."""
        if self._points.count is not None and self._places is not None:
            return ""
        return """
  %most = arith.constant 2147483647 : index
  %are_points_few = arith.cmpi ule, %points, %most : index
  %are_places_few = arith.cmpi ule, %places, %most : index
  %are_few = arith.andi %are_points_few, %are_places_few : i1
  cf.assert %are_few, "more than 2147483647 places or updates of a scatter"
"""

    def _algorithm(self) -> tuple[str, str]:
        """The text of functions that the algorithm calls, and the lines that define %made."""
        count, places = self._points.count, self._places
        if self._operation == "" and max(count or 0, places or 0) < 1 << 31:
            return "", self._assert_32_bits() + self._assign()
        if self._operation in _ATOMIC and str(e := self._element) in ("i32", "i64"):
            return "", self._combine_atomically(_ATOMIC[self._operation], str(e))
        fits_parts = self._fits_parts()
        if fits_parts:
            return "", self._part_length() + self._in_parts()
        is_known = count is not None and places is not None
        if len(self._points.loops) == 1 and is_known and self._needs_sort():
            return self._by_device(*self._sort())
        helpers, body = self._rank_updates()
        if self._columns() >= _LEAST_COLUMNS:
            helpers, body = self._by_device(helpers, body)
        if fits_parts is None:
            body = self._either(body)
        return helpers, self._assert_32_bits() + body

    def _columns(self) -> int:
        """The number of elements along the loops in which places differ, as far as it is known."""
        loops, indices = self._points.loops, self._indices
        points = [i for i, (name, _) in enumerate(loops) if name != self._points.number]
        sizes = [indices.shape[i] for i in points if not indices.is_dynamic_dim(i)]
        others = [self._result.shape[i] for i in self._others if not self._result.is_dynamic_dim(i)]
        return math.prod([*sizes, *others])

    def _by_device(self, helpers: str, body: str) -> tuple[str, str]:
        """The algorithm for GPUs, and for the CPU device one by which a thread combines the updates
        of some columns in order."""
        result = self._result
        return (
            f"func.func private @{CAPABILITY}() -> i32\n{helpers}",
            f"""
  %capability = func.call @{CAPABILITY}() : () -> i32
  %least_capability = arith.constant 1 : i32
  %has_gpu = arith.cmpi sge, %capability, %least_capability : i32
  %made = scf.if %has_gpu -> ({result}) {{
    {body}
    scf.yield %made : {result}
  }} else {{
    {self._in_order()}
    scf.yield %made : {result}
  }}""",
        )

    def _in_order(self) -> str:
        """A thread combines all updates of `_COLUMNS` neighbouring columns."""
        points, result = self._points, str(self._result)
        buffer = f"memref<{result.removeprefix('tensor<')}"
        dynamic = [f"%size{i}" for i in range(self._rank) if self._result.is_dynamic_dim(i)]
        at = [f"%to{of}" if of in points.named else f"%d{of}" for of in range(self._rank)]
        loops = [one for one in points.loops if one[0] != points.number]
        loops += [(f"%d{of}", f"%size{of}") for of in self._others]
        *outer, (column, columns) = loops or [("%only", "%c1")]
        names = ", ".join([*(name for name, _ in outer), "%chunk"])
        extents = ", ".join([*(extent for _, extent in outer), "%chunks"])
        # The place depends on the column unless that is one of the result's own dimensions.
        along = f"scf.for {column} = %chunk_begin to %chunk_end step %c1 {{"
        return f"""
  %buffer = memref.alloc({", ".join(dynamic)}) : {buffer}
  bufferization.materialize_in_destination %given in restrict writable %buffer
      : ({result}, {buffer}) -> ()
  %chunk_length = arith.constant {_COLUMNS} : index
  %chunks = arith.ceildivui {columns}, %chunk_length : index
  scf.forall ({names}) in ({extents}) {{
    %chunk_begin = arith.muli %chunk, %chunk_length : index
    %whole_end = arith.addi %chunk_begin, %chunk_length : index
    %chunk_end = arith.minui %whole_end, {columns} : index
    scf.for {points.number} = %c0 to {dict(points.loops)[points.number]} step %c1 {{
      {"" if self._others else along}
      {self._checked_place()}
      scf.if %within {{
        {along if self._others else ""}
        %number = arith.addi {points.number}, %c0 : index
        {self._update_at("update")}
        %was = memref.load %buffer[{", ".join(at)}] : {buffer}
        {self._combine("new", "update", "was")}
        memref.store %new, %buffer[{", ".join(at)}] : {buffer}
        {"}" if self._others else ""}
      }}
      {"" if self._others else "}"}
    }}
  }}
  %made = bufferization.to_tensor %buffer restrict : {buffer} to {result}"""

    def _needs_sort(self) -> bool:
        """Whether there are so many updates per place, or so many places, that the updates are
        sorted."""
        count, places = self._points.count or 0, self._places or 0
        return count > _MOST_OF_PLACE * places or max(count, places) >= 1 << 31

    def _fits_parts(self) -> bool | None:
        """Whether parts of the updates are combined first. None if that depends on sizes that are
        not known."""
        if self._operation not in _IDENTITIES:
            return False
        points, sizes = self._points, list(self._indices.shape)
        along = [name for name, _ in points.loops].index(points.number)
        others = [self._indices.is_dynamic_dim(i) for i in range(len(points.loops)) if i != along]
        if self._places is None or any(others):
            return None
        lines = math.prod(sizes[i] for i in range(len(points.loops)) if i != along)
        if self._places > _MOST_IN_PARTS * lines:
            return False
        return points.count is None or points.count > _MOST_OF_PLACE * self._places

    def _part_length(self) -> str:
        """Lines that define %line_places, the places that the updates along the number's dimension
        have, and %part_length, the number of these updates that a part has. Then the table has
        about as many elements as the updates."""
        lines, made = "", "%c1"
        for i, (name, extent) in enumerate(self._points.loops):
            if name != self._points.number:
                lines += f"%lines{i} = arith.muli {made}, {extent} : index\n"
                made = f"%lines{i}"
        return f"""
  {lines}
  %some_lines = arith.maxui {made}, %c1 : index
  %line_places = arith.ceildivui %places, %some_lines : index
  %least_part = arith.constant {_LEAST_PART} : index
  %part_length = arith.maxui %line_places, %least_part : index"""

    def _in_parts(self) -> str:
        """A part has a row of the table for itself, which begins with the operation's identity."""
        points, rank, result, e = self._points, self._rank, self._result, self._element
        extent = dict(points.loops)[points.number]
        table = f"?x{str(result).removeprefix('tensor<')}"
        dynamic = ["%parts", *(f"%size{i}" for i in range(rank) if result.is_dynamic_dim(i))]
        every = ", ".join(["%part", *(f"%d{i}" for i in range(rank))])
        sizes = ", ".join(["%parts", *(f"%size{i}" for i in range(rank))])
        place = [f"%to{i}" if i in points.named else f"%d{i}" for i in range(rank)]
        at = ", ".join(["%part", *place])
        loops = [("%part", "%parts"), *(one for one in points.loops if one[0] != points.number)]
        loops += [(f"%d{of}", f"%size{of}") for of in self._others]
        names, extents = (", ".join(words) for words in zip(*loops, strict=True))
        own = ", ".join(f"d{i}" for i in range(rank))
        return f"""
  %parts = arith.ceildivui {extent}, %part_length : index
  %identity = arith.constant {self._identity()}
  %table = memref.alloc({", ".join(dynamic)}) : memref<{table}
  scf.forall ({every}) in ({sizes}) {{
    memref.store %identity, %table[{every}] : memref<{table}
  }}
  scf.forall ({names}) in ({extents}) {{
    %part_begin = arith.muli %part, %part_length : index
    %whole_end = arith.addi %part_begin, %part_length : index
    %part_end = arith.minui %whole_end, {extent} : index
    scf.for {points.number} = %part_begin to %part_end step %c1 {{
      {self._checked_place()}
      scf.if %within {{
        %number = arith.addi {points.number}, %c0 : index
        {self._update_at("update")}
        %was = memref.load %table[{at}] : memref<{table}
        {self._combine("new", "update", "was")}
        memref.store %new, %table[{at}] : memref<{table}
      }}
    }}
  }}
  %rows = bufferization.to_tensor %table restrict : memref<{table} to tensor<{table}
  %made = linalg.generic {{indexing_maps = [affine_map<({own}, row) -> (row, {own})>,
      affine_map<({own}, row) -> ({own})>],
      iterator_types = [{", ".join(['"parallel"'] * rank)}, "reduction"]}}
      ins(%rows : tensor<{table}) outs(%given : {result}) {{
    ^bb0(%update: {e}, %was: {e}):
      {self._combine("new", "update", "was")}
      linalg.yield %new : {e}
  }} -> {result}"""

    def _identity(self) -> str:
        value, ir = _IDENTITIES[self._operation or ""], self._ir
        kind = ir.FloatAttr if isinstance(value, float) else ir.IntegerAttr
        with ir.Location.unknown(self._element.context):
            return str(kind.get(self._element, value))

    def _either(self, otherwise: str) -> str:
        """Combines parts if there are few places and many updates of each."""
        extent, result = dict(self._points.loops)[self._points.number], self._result
        return f"""
  {self._part_length()}
  %most_places = arith.constant {_MOST_IN_PARTS} : index
  %most_of_place = arith.constant {_MOST_OF_PLACE} : index
  %are_places_few_ = arith.cmpi ule, %line_places, %most_places : index
  %many = arith.muli %line_places, %most_of_place : index
  %are_updates_many = arith.cmpi ugt, {extent}, %many : index
  %has_parts = arith.andi %are_places_few_, %are_updates_many : i1
  %made = scf.if %has_parts -> ({result}) {{
    {self._in_parts()}
    scf.yield %made : {result}
  }} else {{
    {otherwise}
    scf.yield %made : {result}
  }}"""

    def _assign(self) -> str:
        loops, number = self._points_and_others(), self._points.number
        value = f"%number = arith.addi {number}, %c0 : index\n{self._update_at('new')}"
        if self._points.count == 1:
            head = f"{self._checked_place()}\n%length = arith.select %within, %c1, %c0 : index"
            return self._write(loops, head, value)
        of_places = self._places_shape()
        lasts = f"""
  %none = arith.constant -1 : i32
  {self._fill("lasts", "%none")}
  scf.forall {self._loops()} {{
    {self._checked_place()}
    %own = arith.index_cast {number} : index to i32
    scf.if %within {{
      %last = memref.atomic_rmw maxs %own, %lasts[%key] : (i32, memref<{of_places}>) -> i32
    }}
  }}"""
        load = f"%last = memref.load %lasts[%key] : memref<{of_places}>"
        if self._are_places_few():
            return lasts + self._compute(f"""
      {load}
      %has_update = arith.cmpi sge, %last, %zero : i32
      %some = arith.select %has_update, %last, %zero : i32
      %number = arith.index_cast %some : i32 to index
      {self._update_at("update")}
      %new = arith.select %has_update, %update, %was : {self._element}""")
        head = f"""
    {self._place()}
    {load}
    %own = arith.index_cast {number} : index to i32
    %is_last = arith.cmpi eq, %last, %own : i32
    %is_left = arith.andi %is_last, %within : i1
    %length = arith.select %is_left, %c1, %c0 : index"""
        return lasts + self._write(loops, head, value)

    def _combine_atomically(self, kind: str, element: str) -> str:
        result = str(self._result)
        buffer = f"memref<{result.removeprefix('tensor<')}"
        dynamic = [f"%size{i}" for i in range(self._rank) if self._result.is_dynamic_dim(i)]
        at = [f"%to{of}" if of in self._points.named else f"%d{of}" for of in range(self._rank)]
        return f"""
  %buffer = memref.alloc({", ".join(dynamic)}) : {buffer}
  bufferization.materialize_in_destination %given in restrict writable %buffer
      : ({result}, {buffer}) -> ()
  scf.forall {self._points_and_others()} {{
    {self._checked_place()}
    %number = arith.addi {self._points.number}, %c0 : index
    {self._update_at("update")}
    scf.if %within {{
      %was = memref.atomic_rmw {kind} %update, %buffer[{", ".join(at)}]
          : ({element}, {buffer}) -> {element}
    }}
  }}
  %made = bufferization.to_tensor %buffer restrict : {buffer} to {result}"""

    def _range(self) -> str:
        """Lines that define %begin and %end, the range of slots of the place %key."""
        of_places = self._places_shape()
        return f"""
      %is_first_place = arith.cmpi eq, %key, %c0 : index
      %less = arith.subi %key, %c1 : index
      %place_before = arith.select %is_first_place, %c0, %less : index
      %end_before = tensor.extract %ends#0[%place_before] : tensor<{of_places}>
      %begin_ = arith.select %is_first_place, %zero, %end_before : i32
      %end_ = tensor.extract %ends#0[%key] : tensor<{of_places}>
      %begin = arith.index_cast %begin_ : i32 to index
      %end = arith.index_cast %end_ : i32 to index"""

    def _arrival(self) -> str:
        return f"""
      %arrival_ = memref.load %arrivals[%point] : memref<{self._points_shape("i32")}>
      %arrival = arith.index_cast %arrival_ : i32 to index"""

    def _rank_updates(self) -> tuple[str, str]:
        """Groups the points by place. Each place has a range of slots, whose end is in %ends. An
        element of `%arrived` has the number of a point in its low 32 bits, and that of its place in
        the high ones."""
        points, listed = self._points, self._points_shape("i64")
        of_places, of_points = self._places_shape(), self._points_shape("i32")
        counts = self._ir.RankedTensorType(self._ir.Type.parse(f"tensor<{of_places}>"))
        scan = RowScan(self._ir, [counts] * 3, "0", combination="arith.addi")
        return (
            scan.text(),
            f"""
  {self._fill("counts", "%zero")}
  {self._allocate("keys", of_points)}
  {self._allocate("arrivals", of_points)}
  %nowhere = arith.constant -1 : index
  scf.forall {self._loops()} {{
    {self._checked_place()}
    {self._linear_index("point", points.number)}
    %known = arith.select %within, %key, %nowhere : index
    %stored = arith.index_cast %known : index to i32
    memref.store %stored, %keys[%point] : memref<{of_points}>
    scf.if %within {{
      %arrival = memref.atomic_rmw addi %one, %counts[%key] : (i32, memref<{of_places}>) -> i32
      memref.store %arrival, %arrivals[%point] : memref<{of_points}>
    }}
  }}
  %all_counts = bufferization.to_tensor %counts restrict
      : memref<{of_places}> to tensor<{of_places}>
  %ends_empty = tensor.empty({"%places" if self._places is None else ""}) : tensor<{of_places}>
  %ends:2 = func.call @scan(%all_counts, %ends_empty, %ends_empty)
      : ({", ".join([f"tensor<{of_places}>"] * 3)}) -> (tensor<{of_places}>, tensor<{of_places}>)
  {self._allocate("arrived", listed)}
  {self._allocate("numbers", of_points)}
  %most_ranked = arith.constant {_MOST_RANKED} : index
  %digits = arith.constant 32 : i64
  scf.forall {self._loops()} {{
    {self._linear_index("point", points.number)}
    %key_ = memref.load %keys[%point] : memref<{of_points}>
    %key = arith.index_cast %key_ : i32 to index
    %within = arith.cmpi sge, %key, %c0 : index
    scf.if %within {{
      {self._range()}
      {self._arrival()}
      %slot = arith.addi %begin, %arrival : index
      %place_number = arith.index_cast %key : index to i64
      %high = arith.shli %place_number, %digits : i64
      %own = arith.index_cast {points.number} : index to i64
      %both = arith.ori %high, %own : i64
      memref.store %both, %arrived[%slot] : memref<{listed}>
      {self._order_many()}
    }}
  }}
  %last_place = arith.subi %places, %c1 : index
  %has_places = arith.cmpi ne, %places, %c0 : index
  %slots = arith.select %has_places, %points, %c0 : index
  scf.forall (%slot) in (%slots) {{
    %all_ = tensor.extract %ends#0[%last_place] : tensor<{of_places}>
    %all = arith.index_cast %all_ : i32 to index
    %is_used = arith.cmpi ult, %slot, %all : index
    scf.if %is_used {{
      %own = memref.load %arrived[%slot] : memref<{listed}>
      %place_number = arith.shrui %own, %digits : i64
      %key = arith.index_cast %place_number : i64 to index
      {self._range()}
      %count = arith.subi %end, %begin : index
      %is_ranked = arith.cmpi ule, %count, %most_ranked : index
      scf.if %is_ranked {{
        %rank = scf.for %k = %begin to %end step %c1 iter_args(%before = %begin) -> (index) {{
          %other = memref.load %arrived[%k] : memref<{listed}>
          %is_before = arith.cmpi slt, %other, %own : i64
          %more = arith.addi %before, %c1 : index
          %now = arith.select %is_before, %more, %before : index
          scf.yield %now : index
        }}
        %number = arith.trunci %own : i64 to i32
        memref.store %number, %numbers[%rank] : memref<{of_points}>
      }}
    }}
  }}
  {self._write_ranked()}""",
        )

    def _order_many(self) -> str:
        """Lines for the first point of a place that has too many updates to rank: it searches the
        points along the number's dimension for the others, in order."""
        if self._points.most is not None and self._points.most <= _MOST_RANKED:
            return ""
        of_points, extent = self._points_shape("i32"), dict(self._points.loops)[self._points.number]
        return f"""
      %count = arith.subi %end, %begin : index
      %is_large = arith.cmpi ugt, %count, %most_ranked : index
      %is_first = arith.cmpi eq, %arrival, %c0 : index
      %orders = arith.andi %is_large, %is_first : i1
      scf.if %orders {{
        %filled = scf.for %n = %c0 to {extent} step %c1 iter_args(%next = %begin) -> (index) {{
          {self._linear_index("other", "%n")}
          %other_key = memref.load %keys[%other] : memref<{of_points}>
          %is_same = arith.cmpi eq, %other_key, %key_ : i32
          %behind = scf.if %is_same -> (index) {{
            %number = arith.index_cast %n : index to i32
            memref.store %number, %numbers[%next] : memref<{of_points}>
            %after = arith.addi %next, %c1 : index
            scf.yield %after : index
          }} else {{
            scf.yield %next : index
          }}
          scf.yield %behind : index
        }}
      }}"""

    def _write_ranked(self) -> str:
        e = self._element
        value = f"""
      %new = scf.for %k = %begin to %end step %c1 iter_args(%value = %was) -> ({e}) {{
        %number_ = memref.load %numbers[%k] : memref<{self._points_shape("i32")}>
        %number = arith.index_cast %number_ : i32 to index
        {self._update_at("update")}
        {self._combine("more", "update", "value")}
        scf.yield %more : {e}
      }}"""
        if self._are_places_few():
            prefixes = ["to" if of in self._points.named else "d" for of in range(self._rank)]
            names = ", ".join(f"%{prefix}{of}" for of, prefix in enumerate(prefixes))
            sizes = ", ".join(f"%size{of}" for of in range(self._rank))
            head = f"""
    {self._key()}
    {self._range()}
    %count = arith.subi %end, %begin : index
    %length = arith.minui %count, %c1 : index"""
            return self._write(f"({names}) in ({sizes})", head, value)
        head = f"""
    {self._place()}
    {self._linear_index("point", self._points.number)}
    {self._range()}
    {self._arrival()}
    %is_first = arith.cmpi eq, %arrival, %c0 : index
    %writes = arith.andi %is_first, %within : i1
    %length = arith.select %writes, %c1, %c0 : index"""
        return self._write(self._points_and_others(), head, value)

    def _sort(self) -> tuple[str, str]:
        """Sorts the points by place. The first one of each place combines all updates that follow
        it."""
        keys, e, loop = self._points_shape("i64"), self._element, self._points.loops[0]
        type_ = self._ir.RankedTensorType(self._ir.Type.parse(f"tensor<{keys}>"))
        sort = MergeSort(
            [type_, type_],
            0,
            lambda name, first, second: f"%{name} = arith.cmpi slt, %{first}0, %{second}0 : i64",
        )
        generic = f"""linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} outs(%empty : {type_}) {{
    ^bb0(%none: i64):
      {loop[0]} = linalg.index 0 : index"""
        names = ", ".join(["%slot", *(f"%d{of}" for of in self._others)])
        extents = ", ".join([loop[1], *(f"%size{of}" for of in self._others)])
        head = f"""
    %sorted_key = tensor.extract %sorted#0[%slot] : {type_}
    %has_none_before = arith.cmpi eq, %slot, %c0 : index
    %less = arith.subi %slot, %c1 : index
    %before = arith.select %has_none_before, %c0, %less : index
    %key_before = tensor.extract %sorted#0[%before] : {type_}
    %is_other = arith.cmpi ne, %sorted_key, %key_before : i64
    %is_first = arith.ori %has_none_before, %is_other : i1
    %own_number = tensor.extract %sorted#1[%slot] : {type_}
    {loop[0]} = arith.index_cast %own_number : i64 to index
    {self._place()}
    %writes = arith.andi %is_first, %within : i1
    %length = arith.select %writes, %c1, %c0 : index"""
        value = f"""
      %run:2 = scf.while (%k = %slot, %value = %was) : (index, {e}) -> (index, {e}) {{
        %is_there = arith.cmpi ult, %k, {loop[1]} : index
        %inside = arith.select %is_there, %k, %slot : index
        %other = tensor.extract %sorted#0[%inside] : {type_}
        %is_same = arith.cmpi eq, %other, %sorted_key : i64
        %goes_on = arith.andi %is_there, %is_same : i1
        scf.condition(%goes_on) %k, %value : index, {e}
      }} do {{
      ^bb0(%k: index, %value: {e}):
        %number_ = tensor.extract %sorted#1[%k] : {type_}
        %number = arith.index_cast %number_ : i64 to index
        {self._update_at("update")}
        {self._combine("more", "update", "value")}
        %next = arith.addi %k, %c1 : index
        scf.yield %next, %more : index, {e}
      }}
      %new = arith.select %is_first, %run#1, %was : {e}"""
        return (
            sort.text(),
            f"""
  %empty = tensor.empty() : {type_}
  %keys = {generic}
      {self._checked_place()}
      %stored = arith.index_cast %key : index to i64
      linalg.yield %stored : i64
  }} -> {type_}
  %numbers = {generic}
      %stored = arith.index_cast {loop[0]} : index to i64
      linalg.yield %stored : i64
  }} -> {type_}
  %sorted:2 = func.call @sort(%keys, %numbers) : ({type_}, {type_}) -> ({type_}, {type_})
  {self._write(f"({names}) in ({extents})", head, value)}""",
        )
