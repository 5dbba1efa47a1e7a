"""The address of a memref's element, for operations that access memory by address."""

from __future__ import annotations

from functools import partial
from typing import Any

from aotc.llvm_ops import extract_value
from aotc.mlir import ir
from aotc.ops import unary
from aotc.targets.cpu import build
from aotc.targets.cpu.sizes import size_of


def to_i64(index: Any) -> Any:
    """An index as an i64, which it is on every host."""
    return unary("arith.index_cast", index, build.i64())


def element_address(memref: Any, indices: list[Any]) -> Any:
    """The pointer to `memref[indices]`, built at the current insertion point.

    It is computed from the descriptor that the memref is lowered to.
    """
    type_ = memref.type
    rank = type_.rank
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    descriptor_type = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")
    descriptor = unary("builtin.unrealized_conversion_cast", memref, descriptor_type)
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()

    field = partial(extract_value, descriptor)
    place = field(build.i64(), 2) if offset == dynamic else build.number(offset)
    for dimension, (index, stride) in enumerate(zip(indices, strides, strict=True)):
        factor = field(build.i64(), 4, dimension) if stride == dynamic else build.number(stride)
        place = build.add(place, build.multiply(to_i64(index), factor))
    scale = build.number(size_of(type_.element_type).bytes)
    return build.at(field(build.pointer_type(), 1), build.multiply(place, scale))
