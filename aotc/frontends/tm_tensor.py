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
# Elements of a chunk of a scan, at least.
_LEAST_CHUNK = 32


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
    operation's region does in the place of calls of `@region`, and the body of `@sort`, if the text
    has it, in the place of its one call."""
    parsed = ir.Module.parse(text)
    functions = {ops.symbol_of(one.operation): one.operation for one in parsed.body.operations}
    function = list(functions.values())[-1]
    for call in ops.find(function, "func.call"):
        with ir.InsertionPoint(call):
            if ops.callee_of(call) == "sort":
                ops.replace_by_body(call, functions["sort"].regions[0].blocks[0], call.operands)
                ops.erase(call)
                continue
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
    return _Scan(types, _dimension(ir, operation)).text()


class _Scan:
    """A scan in chunks of the dimension, about as many as a chunk has elements. A first kernel
    combines the elements of each chunk. In a second one, each chunk combines the results of the
    chunks before it, and goes on along its own elements.

    Elements are combined in the same order whatever runs it, so the result has the same bits.
    """

    def __init__(self, types: list[Any], dimension: int) -> None:
        self._source, self._result, self._accumulator = types
        self._dimension, self._rank = dimension, self._source.rank
        self._element = self._source.element_type

    def _at(self, place: str) -> str:
        """Indices of an element that is at `place` of the dimension."""
        places = [f"%d{i}" for i in range(self._rank)]
        places[self._dimension] = place
        return ", ".join(places)

    def _shape(self, ones: bool = False) -> str:
        """The shape with unknown extent along the dimension, and 1 along the others if `ones`."""
        sizes = [
            "1" if ones else "?" if self._source.is_dynamic_dim(i) else str(self._source.shape[i])
            for i in range(self._rank)
        ]
        sizes[self._dimension] = "?"
        return f"tensor<{'x'.join(sizes)}x{self._element}>"

    def _sizes(self) -> list[str]:
        return ["%chunks" if i == self._dimension else f"%size{i}" for i in range(self._rank)]

    def _combine(self, made: str, first: str, second: str) -> str:
        e = self._element
        return f"%{made} = func.call @region(%{first}, %{second}) : ({e}, {e}) -> {e}"

    def text(self) -> str:
        """The text of `func.func @scan`, behind the declaration of `@region`."""
        e, source, result = self._element, self._source, self._result
        totals, part = self._shape(), self._shape(ones=True)
        identity = ", ".join(f"d{i}" for i in range(self._rank))
        parallel = ", ".join(['"parallel"'] * self._rank)
        dynamic = [
            size
            for i, size in enumerate(self._sizes())
            if i == self._dimension or source.is_dynamic_dim(i)
        ]
        offsets = ["%begin" if i == self._dimension else f"%d{i}" for i in range(self._rank)]
        counts = ["%length" if i == self._dimension else "1" for i in range(self._rank)]
        slice_ = f"[{', '.join(offsets)}] [{', '.join(counts)}] [{', '.join(['1'] * self._rank)}]"
        own = ", ".join("%i" if i == self._dimension else "%c0" for i in range(self._rank))
        first_own = ", ".join(["%c0"] * self._rank)
        n = f"%size{self._dimension}"
        bounds = f"""
      %begin = arith.muli %d{self._dimension}, %chunk : index
      %behind = arith.addi %begin, %chunk : index
      %end = arith.minui %behind, {n} : index"""
        return f"""
func.func private @region({e}, {e}) -> {e}
func.func @scan(%source: {source}, %given: {result}, %unused: {self._accumulator})
    -> ({result}, {self._accumulator}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bits = arith.constant 65 : i64
  %least = arith.constant {_LEAST_CHUNK} : index
  {_sizes("size", "%source", source)}
  // A power of two that is at least the square root of n.
  %number = arith.index_cast {n} : index to i64
  %zeros = math.ctlz %number : i64
  %digits = arith.subi %bits, %zeros : i64
  %wide_digits = arith.index_cast %digits : i64 to index
  %half = arith.divui %wide_digits, %c2 : index
  %power = arith.shli %c1, %half : index
  %chunk = arith.maxui %power, %least : index
  %chunks = arith.ceildivui {n}, %chunk : index
  %empty = tensor.empty({", ".join(dynamic)}) : {totals}
  %totals = linalg.generic {{
      indexing_maps = [affine_map<({identity}) -> ({identity})>], iterator_types = [{parallel}]}}
      outs(%empty : {totals}) {{
    ^bb0(%none: {e}):
      {chr(10).join(f"%d{i} = linalg.index {i} : index" for i in range(self._rank))}
      {bounds}
      %first = tensor.extract %source[{self._at("%begin")}] : {source}
      %second = arith.addi %begin, %c1 : index
      %total = scf.for %i = %second to %end step %c1 iter_args(%sum = %first) -> ({e}) {{
        %x = tensor.extract %source[{self._at("%i")}] : {source}
        {self._combine("more", "sum", "x")}
        scf.yield %more : {e}
      }}
      linalg.yield %total : {e}
  }} -> {totals}
  %made = scf.forall ({", ".join(f"%d{i}" for i in range(self._rank))})
      in ({", ".join(self._sizes())}) shared_outs(%shared = %given) -> ({result}) {{
    {bounds}
    %length = arith.subi %end, %begin : index
    %first = tensor.extract %source[{self._at("%begin")}] : {source}
    %is_first = arith.cmpi eq, %d{self._dimension}, %c0 : index
    %start = scf.if %is_first -> ({e}) {{
      scf.yield %first : {e}
    }} else {{
      %least_total = tensor.extract %totals[{self._at("%c0")}] : {totals}
      %before = scf.for %i = %c1 to %d{self._dimension} step %c1
          iter_args(%sum = %least_total) -> ({e}) {{
        %x = tensor.extract %totals[{self._at("%i")}] : {totals}
        {self._combine("more", "sum", "x")}
        scf.yield %more : {e}
      }}
      {self._combine("with_first", "before", "first")}
      scf.yield %with_first : {e}
    }}
    %slice = tensor.extract_slice %shared{slice_} : {result} to {part}
    %begun = tensor.insert %start into %slice[{first_own}] : {part}
    %whole:2 = scf.for %i = %c1 to %length step %c1
        iter_args(%sum = %start, %to = %begun) -> ({e}, {part}) {{
      %at = arith.addi %begin, %i : index
      %x = tensor.extract %source[{self._at("%at")}] : {source}
      {self._combine("more", "sum", "x")}
      %put = tensor.insert %more into %to[{own}] : {part}
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
