"""Lowers `tensor.pad` with a single padding value to one loop over the padded tensor.

MLIR fills the whole result and then copies the source into it: two loops, the first of which writes
elements that are overwritten.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.sparse import is_sparse
from aotc.mlir import ir
from aotc.rewrites.by_text import replace_by_text


def expand_pads(module: Any) -> None:
    """Changes the pads in `module` in place whose padded dimensions have static sizes. Other
    dimensions, such as a batch, may be dynamic."""
    with module.context:
        for pad in ops.find(module.operation, "tensor.pad"):
            value = _value(pad)
            source, result = pad.operands[0].type, pad.results[0].type
            if is_sparse(source) or is_sparse(result):
                continue
            low = list(ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
            high = list(ir.DenseI64ArrayAttr(pad.attributes["static_high"]))
            is_known = not any(
                (low[i] or high[i] or not result.is_dynamic_dim(i)) and source.is_dynamic_dim(i)
                for i in range(source.rank)
            )
            if value is None or not is_known or min(low + high, default=0) < 0 or 0 in source.shape:
                continue
            _expand(pad, value, low, high)


def _value(pad: Any) -> Any | None:
    """The padding value if it is the same everywhere; otherwise None."""
    block = pad.regions[0].blocks[0]
    (value,) = ops.terminator(block).operands
    return value if ops.is_made_outside(value, pad) else None


def _expand(pad: Any, value: Any, low: list[int], high: list[int]) -> None:
    source, result = pad.operands[0].type, pad.results[0].type
    rank, element = result.rank, result.element_type
    dimensions = ", ".join(f"d{i}" for i in range(rank))
    identity = f"affine_map<({dimensions}) -> ({dimensions})>"
    kinds = ", ".join(['"parallel"'] * rank)
    padded = [i for i in range(rank) if low[i] or high[i]]
    lines = []
    for i in range(rank):
        lines.append(f"%i{i} = linalg.index {i} : index")
    for i in padded:
        lines += [
            f"%low{i} = arith.constant {low[i]} : index",
            f"%at{i} = arith.subi %i{i}, %low{i} : index",
            f"%size{i} = arith.constant {source.get_dim_size(i)} : index",
            # The comparison is unsigned, so that a negative index is out of range as well.
            f"%is_in{i} = arith.cmpi ult, %at{i}, %size{i} : index",
        ]
    inside = "%true"
    lines.append("%true = arith.constant true")
    for i in padded:
        lines.append(f"%all{i} = arith.andi {inside}, %is_in{i} : i1")
        inside = f"%all{i}"
    lines.append("%zero = arith.constant 0 : index")
    for i in padded:
        lines.append(f"%from{i} = arith.select {inside}, %at{i}, %zero : index")
    place = ", ".join(f"%from{i}" if i in padded else f"%i{i}" for i in range(rank))
    lines += [
        f"%read = tensor.extract %source[{place}] : {source}",
        f"%chosen = arith.select {inside}, %read, %value : {element}",
    ]
    body = "\n".join(lines)
    dynamic = [i for i in range(rank) if result.is_dynamic_dim(i)]
    sizes = "\n".join(
        f"%dim{i} = arith.constant {i} : index\n%count{i} = tensor.dim %source, %dim{i} : {source}"
        for i in dynamic
    )
    counts = ", ".join(f"%count{i}" for i in dynamic)
    text = f"""
func.func @pad(%source: {source}, %value: {element}) -> {result} {{
{sizes}
  %empty = tensor.empty({counts}) : {result}
  %padded = linalg.generic {{indexing_maps = [{identity}], iterator_types = [{kinds}]}}
      outs(%empty : {result}) {{
  ^bb0(%unused: {element}):
{body}
    linalg.yield %chosen : {element}
  }} -> {result}
  return %padded : {result}
}}"""
    replace_by_text(pad, text, [pad.operands[0], value])
