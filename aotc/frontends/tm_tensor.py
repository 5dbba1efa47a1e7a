"""torch-mlir's tm_tensor dialect → linalg, tensor and scf, whose loops become kernels.

torch-mlir makes these operations of sorts, of cumulative sums and products, and of writes to places
that are tensors themselves. They are defined in
https://github.com/llvm/torch-mlir/blob/main/include/torch-mlir-dialects/Dialect/TMTensor/IR/TMTensorOps.td
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.frontends.merge_sort import MergeSort

# Predicates of arith.cmpi and arith.cmpf with which torch-mlir compares two elements that are in
# order: ascending, and descending.
_ASCENDING = {"arith.cmpi": (2, 3, 6, 7), "arith.cmpf": (4, 5, 11, 12)}
_DESCENDING = {"arith.cmpi": (4, 5, 8, 9), "arith.cmpf": (2, 3, 9, 10)}
# Elements of a chunk of a scan, at least; of one of a scan that may be longer than _LONG.
_LEAST_CHUNK, _CHUNK_OF_LONG = 32, 64
_LONG = 4096


def lower_tm_tensor(module: Any) -> None:
    """Replaces sorts, inclusive scans and scatters of elements and slices in a module of
    torch-mlir's. Other operations of the dialect stay."""
    from torch_mlir import ir

    texts = {
        "tm_tensor.sort": _sort,
        "tm_tensor.topk": _topk,
        "tm_tensor.scan": _scan,
        "tm_tensor.scatter": _scatter,
    }
    with module.context:
        for operation in ops.find(module.operation, *texts):
            with operation.location, ir.InsertionPoint(operation):
                text = texts[operation.name](ir, operation)
                if text is not None:
                    _replace(ir, operation, text)


def _replace(ir: Any, operation: Any, text: str) -> None:
    """Puts the body of the text's last function in the place of `operation`: in it, what the
    operation's region does in the place of calls of `@region`, and the bodies of other functions of
    the text in the place of their calls, of which each has one, by the last function."""
    parsed = ir.Module.parse(text)
    functions = {ops.symbol_of(one.operation): one.operation for one in parsed.body.operations}
    function = list(functions.values())[-1]
    for call in ops.find(function, "func.call"):
        callee = ops.callee_of(call)
        if callee != "region":
            ops.replace_by_body(call, functions[callee].regions[0].blocks[0], call.operands)
            ops.erase(call)
    for call in ops.find(function, "func.call"):
        with ir.InsertionPoint(call):
            result = _clone(operation.regions[0].blocks[0], list(call.operands))
        call.results[0].replace_all_uses_with(result)
        ops.erase(call)
    ops.replace_by_body(operation, function.regions[0].blocks[0], operation.operands)
    ops.erase(operation)


def _clone(block: Any, arguments: list[Any]) -> Any:
    """What the block yields for these arguments: of clones of its operations, at the insertion
    point."""
    values = dict(zip(block.arguments, arguments, strict=True))
    *body, returned = block.operations
    for one in body:
        clone = one.operation.clone()
        for place, value in enumerate(one.operation.operands):
            clone.operands[place] = values.get(value, value)
        values.update(zip(one.operation.results, clone.results, strict=True))
    (yielded,) = returned.operands
    return values.get(yielded, yielded)


# --- Sorts ----------------------------------------------------------------------------------------


def _sort(ir: Any, operation: Any) -> str | None:
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    sort = _merge_sort(ir, operation, types)
    return None if sort is None else sort.text()


def _topk(ir: Any, operation: Any) -> str | None:
    """The first elements, of a tensor alone, and where they were, by sorting all."""
    if len(operation.operands) != 3:
        return None
    source, values, indices = (ir.RankedTensorType(value.type) for value in operation.operands)
    element, rank, dimension = indices.element_type, source.rank, _dimension(ir, operation)
    places = ir.RankedTensorType.get(source.shape, element)
    sort = _merge_sort(ir, operation, [source, places])
    if sort is None:
        return None
    dimensions = ", ".join(f"d{i}" for i in range(rank))
    dynamic = ", ".join(f"%size{i}" for i in range(rank) if source.is_dynamic_dim(i))
    counts = [
        f"%count{i}" if values.is_dynamic_dim(i) else str(values.shape[i]) for i in range(rank)
    ]
    first = f"[{', '.join('0' * rank)}] [{', '.join(counts)}] [{', '.join('1' * rank)}]"
    return f"""{sort.text()}
func.func @topk(%source: {source}, %values: {values}, %indices: {indices})
    -> ({values}, {indices}) {{
  {_sizes("size", "%source", source)}
  {_sizes("count", "%values", values)}
  %empty = tensor.empty({dynamic}) : {places}
  %places = linalg.generic {{
      indexing_maps = [affine_map<({dimensions}) -> ({dimensions})>],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}} outs(%empty : {places}) {{
    ^bb0(%none: {element}):
      %at = linalg.index {dimension} : index
      %place = arith.index_cast %at : index to {element}
      linalg.yield %place : {element}
  }} -> {places}
  %sorted:2 = func.call @sort(%source, %places) : ({source}, {places}) -> ({source}, {places})
  %first = tensor.extract_slice %sorted#0{first} : {source} to {values}
  %first_places = tensor.extract_slice %sorted#1{first} : {places} to {indices}
  return %first, %first_places : {values}, {indices}
}}
"""


def _sizes(name: str, tensor: str, type_: Any) -> str:
    """Lines that make %NAME0, ..., the sizes of the tensor."""
    return "\n".join(
        f"%{name}_d{i} = arith.constant {i} : index\n"
        f"%{name}{i} = tensor.dim {tensor}, %{name}_d{i} : {type_}"
        for i in range(type_.rank)
    )


def _merge_sort(ir: Any, operation: Any, types: list[Any]) -> MergeSort | None:
    """A sort by the operation's region. Of NaN, PyTorch says that it is larger than all else; the
    region says nothing of use."""
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
    # Two arguments for each tensor.
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

    return MergeSort(types, _dimension(ir, operation), is_before)


def _dimension(ir: Any, operation: Any) -> int:
    return int(ir.IntegerAttr(operation.attributes["dimension"]).value)


# --- Scans ----------------------------------------------------------------------------------------


def _scan(ir: Any, operation: Any) -> str | None:
    """An inclusive scan whose last accumulators nobody uses."""
    is_inclusive = bool(ir.BoolAttr(operation.attributes["inclusive"]).value)
    if not is_inclusive or any(True for _ in operation.results[1].uses):
        return None
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    element = types[0].element_type
    region = f"func.func private @region({element}, {element}) -> {element}"
    return region + _Scan(types, _dimension(ir, operation)).text(ir)


class _Scan:
    """A scan in chunks of the dimension. A first kernel combines the elements of each chunk. In a
    second one, each chunk begins with the result of the chunks before it, and goes on along its own
    elements. There are about as many chunks as a chunk has elements, and each combines the results
    of those before it; but if the dimension may be long, chunks are short, and their results are
    scanned in between.

    Elements are combined in the same order whatever runs it, so the result has the same bits.
    `types` are those of the source, the result and the accumulators.
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
        """The sizes, as a type has them, but for the dimension's."""
        sizes = [
            "?" if self._source.is_dynamic_dim(i) else str(self._source.shape[i])
            for i in range(self._rank)
        ]
        sizes[self._dimension] = "?"
        return sizes

    def _type(self, shape: list[str]) -> str:
        return f"tensor<{'x'.join(shape)}x{self._element}>"

    def _along(self, dimension: str, others: str = "%d{i}") -> str:
        """A list with one for the dimension and one for each of the others, where {i} is its
        number."""
        each = [others.format(i=i) for i in range(self._rank)]
        each[self._dimension] = dimension
        return ", ".join(each)

    def _combine(self, made: str, first: str, second: str) -> str:
        e = self._element
        return f"%{made} = func.call @region(%{first}, %{second}) : ({e}, {e}) -> {e}"

    def _combine_all(self, made: str, tensor: str, type_: str, bounds: tuple[str, str, str]) -> str:
        """Lines that make %MADE of a tensor's elements at `bounds`: the first place, the one behind
        it, and the end."""
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
        """Lines that make %chunk, the number of a chunk's elements."""
        if self._is_long:
            return f"%chunk = arith.constant {_CHUNK_OF_LONG} : index"
        return f"""
  // A power of two that is at least the square root of n.
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
        """Lines that make %before, of all elements before a chunk that is not the first."""
        if not self._is_long:
            bounds = ("%c0", "%c1", f"%d{self._dimension}")
            return self._combine_all("before", "%totals", self._totals, bounds)
        return f"""
      %chunk_before = arith.subi %d{self._dimension}, %c1 : index
      %before = tensor.extract %prefixes#0[{self._along("%chunk_before")}] : {self._totals}"""

    def text(self, ir: Any) -> str:
        """The text of the function, and of one that it calls. `@region` is declared elsewhere."""
        e, source, result, totals = self._element, self._source, self._result, self._totals
        part = self._type(["?" if i == self._dimension else "1" for i in range(self._rank)])
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
  {_sizes("size", "%source", source)}
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
    %begun = tensor.insert %start into %slice[{self._along("%c0", "%c0")}] : {part}
    %whole:2 = scf.for %i = %c1 to %length step %c1
        iter_args(%sum = %start, %to = %begun) -> ({e}, {part}) {{
      %at = arith.addi %begin, %i : index
      %x = tensor.extract %source[{self._along("%at")}] : {source}
      {self._combine("more", "sum", "x")}
      %put = tensor.insert %more into %to[{self._along("%i", "%c0")}] : {part}
      scf.yield %more, %put : {e}, {part}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole#1 into %shared{slice_} : {part} into {result}
    }}
  }}
  return %made, %unused : {result}, {self._accumulator}
}}
"""


# --- Scatters -------------------------------------------------------------------------------------


def _scatter(ir: Any, operation: Any) -> str | None:
    """A scatter of elements, or of slices that are whole along the dimensions not named."""
    updates, indices, result = (ir.RankedTensorType(value.type) for value in operation.operands)
    named = list(ir.DenseI64ArrayAttr(operation.attributes["dimension_map"]))
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
  {_sizes("count", "%updates", self._updates)}
  {_sizes("size", "%given", result)}
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
