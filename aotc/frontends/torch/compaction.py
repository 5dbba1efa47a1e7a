"""The MLIR text of aotc's own operators in a program's graph: `repeat_interleave`, whose result
size is read by the host, and `masked_scatter`, whose source rows are numbered by a prefix sum."""

from __future__ import annotations

from aotc.frontends.torch.operators import OperatorCall, OperatorLowering


def _repeat_interleave(call: OperatorCall) -> str:
    """Writes index i `ends[i] - ends[i - 1]` times, for each i, where `ends` are the inclusive
    prefix sums of the counts.

    Each thread writes the run of one index. Runs do not overlap, so threads can write them in
    parallel.
    """
    ends, size = call.operands
    (result,) = call.results
    (known,) = call.constants
    if known is None:
        is_size, length = "sge, %count, %zero", "%length"
        message = "a number to count, or a count, is negative or too large"
    else:
        is_size, length = "eq, %count, %known", ""
        message = f"the counts are negative, or their sum is not {known}"
    return f"""
func.func @repeat_interleave(%ends: {ends}, %size: {size}) -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %count = tensor.extract %size[] : {size}
  %known = arith.constant {known or 0} : i64
  %is_size = arith.cmpi {is_size} : i64
  cf.assert %is_size, "{message}"
  // The code after a failed assertion runs, too, so the length must be valid.
  %some = arith.maxsi %count, %zero : i64
  %length = arith.index_cast %some : i64 to index
  %empty = tensor.empty({length}) : {result}
  %all = tensor.dim %ends, %c0 : {ends}
  %n = arith.select %is_size, %all, %c0 : index
  %made = scf.forall (%i) in (%n) shared_outs(%shared = %empty) -> ({result}) {{
    %number = arith.index_cast %i : index to i64
    %is_first = arith.cmpi eq, %i, %c0 : index
    %less = arith.subi %i, %c1 : index
    %before = arith.select %is_first, %c0, %less : index
    %end_before = tensor.extract %ends[%before] : {ends}
    %begin_ = arith.select %is_first, %zero, %end_before : i64
    %end_ = tensor.extract %ends[%i] : {ends}
    %begin = arith.index_cast %begin_ : i64 to index
    %end = arith.index_cast %end_ : i64 to index
    %own = arith.subi %end, %begin : index
    %slice = tensor.extract_slice %shared[%begin] [%own] [1] : {result} to tensor<?xi64>
    %whole = scf.for %k = %c0 to %own step %c1 iter_args(%to = %slice) -> (tensor<?xi64>) {{
      %put = tensor.insert %number into %to[%k] : tensor<?xi64>
      scf.yield %put : tensor<?xi64>
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole into %shared[%begin] [%own] [1]
          : tensor<?xi64> into {result}
    }}
  }}
  return %made : {result}
}}
"""


def _masked_scatter(call: OperatorCall) -> str:
    """Replaces each row of `x` whose mask is true by a row of `source`. `ends` is the inclusive
    prefix sum of the mask, so `ends[i] - 1` is the number of that row."""
    x, mask, ends, count, source = call.operands
    (is_exact,) = call.constants
    (result,) = call.results
    *shape, element = x.removeprefix("tensor<").removesuffix(">").split("x")
    rank = len(shape)
    dimensions = ", ".join(f"d{i}" for i in range(rank))
    own = f"affine_map<({dimensions}) -> ({dimensions})>"
    of_row = f"affine_map<({dimensions}) -> (d0)>"
    rest = "".join(f", %d{i}" for i in range(1, rank))
    numbers = "\n".join(f"    %d{i} = linalg.index {i} : index" for i in range(1, rank))
    unknown = [i for i, size in enumerate(shape) if size == "?"]
    sizes = "\n".join(
        f"  %at{i} = arith.constant {i} : index\n  %size{i} = tensor.dim %x, %at{i} : {x}"
        for i in unknown
    )
    dynamic = ", ".join(f"%size{i}" for i in unknown)
    return f"""
func.func @masked_scatter(%x: {x}, %mask: {mask}, %ends: {ends}, %size: {count},
    %source: {source}) -> {result} {{
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
{sizes}
  %count_ = tensor.extract %size[] : {count}
  %count = arith.index_cast %count_ : i64 to index
  %n = tensor.dim %source, %c0 : {source}
  %fits = arith.cmpi {"eq" if is_exact else "ule"}, %count, %n : index
  cf.assert %fits, "the mask has another number of true elements than there are values"
  %empty = tensor.empty({dynamic}) : {result}
  %made = linalg.generic {{
      indexing_maps = [{own}, {of_row}, {of_row}, {own}],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}}
      ins(%x, %mask, %ends : {x}, {mask}, {ends}) outs(%empty : {result}) {{
  ^bb0(%old: {element}, %is_true: i1, %end: i64, %none: {element}):
{numbers}
    %place_ = arith.subi %end, %one : i64
    %place = arith.index_cast %place_ : i64 to index
    // In bounds even if the assertion has failed.
    %is_there = arith.cmpi ult, %place, %n : index
    %is_new = arith.andi %is_true, %is_there : i1
    %new = scf.if %is_new -> ({element}) {{
      %value = tensor.extract %source[%place{rest}] : {source}
      scf.yield %value : {element}
    }} else {{
      scf.yield %old : {element}
    }}
    linalg.yield %new : {element}
  }} -> {result}
  return %made : {result}
}}
"""


LOWERINGS = (
    OperatorLowering("aotc::repeat_interleave", to_mlir=_repeat_interleave),
    OperatorLowering("aotc::masked_scatter", to_mlir=_masked_scatter),
)
