"""A batch of products that have one matrix in common → products of a view that repeats it.

The view has a dimension for the batch, in which matrices are at a distance of 0: so the product is
one that all families take. (One matrix as B of rows that follow each other is no batch: `recognise`
counts rows over several dimensions.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.lower.tensors.generics import maps_of
from aotc.mlir import ir


def repeat(generic: Any) -> bool:
    """Whether it is one: then the operation reads the view, which is made in front of it."""
    maps = maps_of(generic)
    if len(maps) != 3 or maps[0].n_dims != 4:
        return False
    first = maps[2].results[0] if len(maps[2].results) == 3 else None
    ranks = [len(map_.results) for map_ in maps[:2]]
    if sorted(ranks) != [2, 3] or not isinstance(first, ir.AffineDimExpr):
        return False
    which = ranks.index(2)
    batch = ir.AffineDimExpr(first)
    if maps[1 - which].results[0] != first or batch in list(maps[which].results):
        return False
    # No kernel takes one of another memory.
    if any(value.type.memory_space is not None for value in generic.operands):
        return False
    with generic.location:
        view = _view(generic.operands[which], generic.operands[2], generic)
    generic.operands[which] = view
    loops = [batch, *maps[which].results]
    maps[which] = ir.AffineMap.get(maps[which].n_dims, 0, loops)
    attributes = [ir.AffineMapAttr.get(map_) for map_ in maps]
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get(attributes)
    return True


def _view(matrix: Any, result: Any, before: Any) -> Any:
    """The matrix for each of the result's first dimension."""
    type_, batched = ir.MemRefType(matrix.type), ir.MemRefType(result.type)
    strides, offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = [
        None if one.is_dynamic_dim(i) else int(one.shape[i])
        for one, i in ((batched, 0), (type_, 0), (type_, 1))
    ]
    known = [None if one == unknown else int(one) for one in (offset, *strides)]
    layout = f"strided<[0, {_shown(known[1:])}], offset: {_shown(known[:1])}>"
    words = "x".join("?" if size is None else str(size) for size in sizes)
    made = f"memref<{words}x{type_.element_type}, {layout}>"
    names = ("%batch", "%meta#2", "%meta#3", "%meta#1", "%meta#4", "%meta#5")
    given = [
        name if number is None else str(number)
        for name, number in zip(names, (*sizes, *known), strict=True)
    ]
    text = f"""
func.func @view(%a: {type_}, %c: {batched}) -> {made} {{
  %zero = arith.constant 0 : index
  %batch = memref.dim %c, %zero : {batched}
  %meta:6 = memref.extract_strided_metadata %a : {type_}
      -> memref<{type_.element_type}>, index, index, index, index, index
  %view = memref.reinterpret_cast %a to offset: [{given[3]}], sizes: [{", ".join(given[:3])}],
      strides: [0, {", ".join(given[4:])}] : {type_} to {made}
  return %view : {made}
}}"""
    parsed = ir.Module.parse(text)
    (function,) = parsed.body.operations
    block = function.operation.regions[0].blocks[0]
    for argument, value in zip(block.arguments, (matrix, result), strict=True):
        argument.replace_all_uses_with(value)
    *operations, _ = block.operations
    for one in operations:
        one.operation.move_before(before)
    return operations[-1].operation.results[0]


def _shown(numbers: Sequence[int | None]) -> str:
    return ", ".join("?" if number is None else str(number) for number in numbers)
