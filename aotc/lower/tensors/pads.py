"""Lowers `tensor.pad` with a single padding value to one loop over the padded tensor.

MLIR fills the whole result and then copies the source into it: two loops, the first of which writes
elements that are overwritten.

Padding behind the last element that a window reads is dropped first. torch-mlir pads a pooling with
`ceil_mode` by its stride, whether windows reach there or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.sparse import is_sparse
from aotc.lower.tensors.windows import extents_of, is_monotone, largest_index, window_maps
from aotc.mlir import dialect, ir
from aotc.rewrites.by_text import replace_by_text

_NE = 1  # arith.cmpi's number for "not equal"
_IS_EMPTY = "an image of convolutions or poolings has no elements"
# An index that is no window's.
_PLAIN = (ir.AffineDimExpr, ir.AffineConstantExpr)
# What gives a tensor another shape.
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast")


def expand_pads(module: Any) -> None:
    """Changes the pads in `module` in place whose padded dimensions have static sizes, or whose
    results are only read by windows. Other dimensions, such as a batch, may be dynamic."""
    with module.context:
        for pad in ops.find(module.operation, "tensor.pad"):
            value = _value(pad)
            source, result = pad.operands[0].type, pad.results[0].type
            if is_sparse(source) or is_sparse(result):
                continue
            low = list(ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
            high = _drop_unread(pad, list(ir.DenseI64ArrayAttr(pad.attributes["static_high"])))
            result = pad.results[0].type
            if not any(low + high) and source == result:
                ops.replace(pad, [pad.operands[0]])
                continue
            if value is None or min(low + high, default=0) < 0:
                continue
            unknown = [i for i in range(source.rank) if source.is_dynamic_dim(i)]
            if any(not result.is_dynamic_dim(i) for i in unknown):
                continue
            padded = [i for i in unknown if low[i] or high[i]]
            if 0 in source.shape and not padded:
                _fill(pad, value)
            elif 0 not in source.shape and (not padded or _is_read_by_windows(pad, padded)):
                for i in padded:
                    _assert_elements(pad, i)
                _expand(pad, value, low, high)


def _drop_unread(pad: Any, high: list[int]) -> list[int]:
    """The padding behind the source, after what no user reads was dropped."""
    type_, users = pad.results[0].type, [(use.owner.operation, use) for use in pad.results[0].uses]
    if not users or not type_.has_static_shape:
        return high
    # A negative number of elements is cropped, and an unknown one is not known to be padding.
    unread = [max(one, 0) for one in high]
    for user, use in users:
        maps = window_maps(user)
        # An operand that is written is a result, too, and its type stays.
        if use.operand_number >= len(maps) - len(user.results):
            return high
        extents = extents_of(user, maps)
        for i, one in enumerate(maps[use.operand_number].results):
            last = largest_index(one, extents) if is_monotone(one) else None
            size = type_.shape[i]
            is_whole = last is None or isinstance(one, ir.AffineDimExpr)
            unread[i] = min(unread[i], 0 if is_whole else max(size - 1 - last, 0))
    if any(unread):
        high = [one - other for one, other in zip(high, unread, strict=True)]
        shape = [one - other for one, other in zip(type_.shape, unread, strict=True)]
        pad.attributes["static_high"] = ir.DenseI64ArrayAttr.get(high)
        with pad.location:
            smaller = ir.RankedTensorType.get(shape, type_.element_type, type_.encoding)
        pad.results[0].set_type(smaller)
    return high


def _is_read_by_windows(pad: Any, padded: Sequence[int]) -> bool:
    """Whether convolutions and poolings are all that reads the result, and their windows move along
    the dimensions `padded`. These have no images without elements, of which nothing could be
    read."""
    reads = [(use.owner.operation, use.operand_number, padded) for use in pad.results[0].uses]
    is_read = False
    while reads:
        user, number, along = reads.pop()
        if user.name == "tensor.dim":
            continue
        if user.name in _RESHAPES:
            # Which dimensions were padded is not followed.
            reads += [(use.owner.operation, use.operand_number, ()) for use in user.results[0].uses]
            continue
        maps = window_maps(user)
        moves = [not isinstance(one, _PLAIN) for one in maps[number].results] if maps else []
        if not any(moves) or not all(moves[i] for i in along):
            return False
        is_read = True
    return is_read


def _assert_elements(pad: Any, dimension: int) -> None:
    """Asserts that the source has elements along a dimension: one of them is read in place of
    padding, and dropped."""
    with pad.location, ir.InsertionPoint(pad):
        size = ops.dim(pad.operands[0], dimension)
        ops.create_assert(ops.compare(_NE, size, ops.constant_index(0)), _IS_EMPTY)


def _value(pad: Any) -> Any | None:
    """The padding value if it is the same everywhere; otherwise None."""
    block = pad.regions[0].blocks[0]
    (value,) = ops.terminator(block).operands
    return value if ops.is_made_outside(value, pad) else None


def _fill(pad: Any, value: Any) -> None:
    """Replaces the pad of a tensor without elements. MLIR would insert the source, and it takes no
    slice of a dimension of the constant size 0."""
    source, result = pad.operands[0], pad.results[0].type
    dynamic = [i for i in range(result.rank) if result.is_dynamic_dim(i)]
    with pad.location, ir.InsertionPoint(pad):
        empty = ops.create("tensor.empty", [ops.dim(source, i) for i in dynamic], [result]).result
        filled = dialect("linalg").fill(value, outs=[empty])
    ops.replace(pad, [filled])


def _expand(pad: Any, value: Any, low: list[int], high: list[int]) -> None:
    source, result = pad.operands[0].type, pad.results[0].type
    rank, element = result.rank, result.element_type
    dynamic = [i for i in range(rank) if result.is_dynamic_dim(i)]
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
    sizes = []
    for i in sorted({*dynamic, *padded}):
        sizes += [
            f"%number{i} = arith.constant {i} : index",
            f"%size{i} = tensor.dim %source, %number{i} : {source}",
        ]
    for i in dynamic:
        sizes += [
            f"%added{i} = arith.constant {low[i] + high[i]} : index",
            f"%count{i} = arith.addi %size{i}, %added{i} : index",
        ]
    body, before = "\n".join(lines), "\n".join(sizes)
    counts = ", ".join(f"%count{i}" for i in dynamic)
    text = f"""
func.func @pad(%source: {source}, %value: {element}) -> {result} {{
{before}
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
