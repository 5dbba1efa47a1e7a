"""Lowers calls that assemble a sparse tensor from arrays and sizes.

`sparse_entries` inserts these calls for tensors with dynamic sizes, which upstream's
`sparse_tensor.assemble` does not support.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.sparse import Level, level_size, levels_of
from aotc.attributes import ASSEMBLED
from aotc.mlir import ir


def expand_assembly(module: Any) -> None:
    """Replaces the calls after the sparsifier has run: a sparse tensor is its arrays and a
    specifier then."""
    for function in ops.find(module.operation, "func.func"):
        if ASSEMBLED not in function.attributes:
            continue
        type_ = ir.TypeAttr(function.attributes[ASSEMBLED]).value
        for call in ops.find(module.operation, "func.call"):
            if ops.callee_of(call) == ops.symbol_of(function):
                _expand(call, type_)
        ops.erase(function)


def _expand(call: Any, type_: Any) -> None:
    *arrays, specifier = call.results
    given = list(call.operands)
    with call.location, ir.InsertionPoint(call):
        values = [
            array if array.type == result.type else ops.unary("memref.cast", array, result.type)
            for array, result in zip(given, arrays, strict=False)
        ]
        sizes = iter(given[len(arrays) :])
        dimensions = [
            next(sizes) if type_.is_dynamic_dim(i) else ops.constant_index(size)
            for i, size in enumerate(type_.shape)
        ]
        made = ops.create("sparse_tensor.storage_specifier.init", [], [specifier.type]).result
        for kind, level, value in _specified(levels_of(type_), dimensions, values):
            at = {} if level is None else {"level": ir.IntegerAttr.get(ops.index(), level)}
            attributes = {"specifierKind": ir.Attribute.parse(f"#sparse_tensor<kind {kind}>"), **at}
            name = "sparse_tensor.storage_specifier.set"
            made = ops.create(name, [made, value], [specifier.type], attributes).result
    ops.replace(call, [*values, made])


def _specified(
    levels: Sequence[Level], dimensions: Sequence[Any], arrays: Sequence[Any]
) -> Iterator[tuple[str, int | None, Any]]:
    """Yields the fields of the specifier as upstream's operation sets them: each level's size, and
    the number of positions and coordinates in its arrays. The last position is the number of
    coordinates."""
    remaining = iter(arrays)
    count = one = ops.constant_index(1)
    for number, level in enumerate(levels):
        size = level_size(level, dimensions)
        if isinstance(size, int):
            size = ops.constant_index(size)
        elif size is not None:
            size = ops.index_op("arith.divui", size[0], ops.constant_index(size[1]))
        yield "lvl_sz", number, size
        if level.format == "dense":
            count = ops.index_op("arith.muli", count, size)
            continue
        if level.format in ("compressed", "loose_compressed"):
            positions = next(remaining)
            last = count
            if level.format == "loose_compressed":
                pairs = ops.index_op("arith.muli", count, ops.constant_index(2))
                last = ops.index_op("arith.subi", pairs, one)
            yield "pos_mem_sz", number, ops.index_op("arith.addi", last, one)
            count = _as_index(ops.create("memref.load", [positions, last], [_element(positions)]))
        next(remaining)
        yield "crd_mem_sz", number, count
    yield "val_mem_sz", None, count


def _element(memref: Any) -> Any:
    return ir.MemRefType(memref.type).element_type


def _as_index(load: Any) -> Any:
    """Converts a position to an index; positions are unsigned."""
    if load.result.type == ops.index():
        return load.result
    return ops.unary("arith.index_castui", load.result, ops.index())
