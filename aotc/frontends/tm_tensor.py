"""torch-mlir's tm_tensor dialect → linalg, tensor and scf, whose loops become kernels.

torch-mlir makes these operations of sorts and of cumulative sums and products. They are defined in
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
    """Replaces sorts and inclusive scans of a module of torch-mlir's. Other operations of the
    dialect stay."""
    from torch_mlir import ir

    texts = {"tm_tensor.sort": _sort, "tm_tensor.scan": _scan}
    with module.context:
        for operation in ops.find(module.operation, *texts):
            text = texts[operation.name](ir, operation)
            if text is not None:
                with operation.location, ir.InsertionPoint(operation):
                    _replace(ir, operation, text)


def _replace(ir: Any, operation: Any, text: str) -> None:
    """Puts the body of the text's last function in the place of `operation`, and what its region
    does in the place of calls of `@region`."""
    parsed = ir.Module.parse(text)
    function = list(parsed.body.operations)[-1].operation
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
    """Of NaN, PyTorch says that it is larger than all else; the region says nothing of use."""
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
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
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

    return MergeSort(types, _dimension(ir, operation), is_before).text()


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
  {chr(10).join(f"%k{i} = arith.constant {i} : index" for i in range(self._rank))}
  {chr(10).join(f"%size{i} = tensor.dim %source, %k{i} : {source}" for i in range(self._rank))}
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
