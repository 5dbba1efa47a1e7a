"""TMA descriptors of 8-bit elements and of f32 that is rounded to tf32: what upstream cannot say.

`convert-nvgpu-to-nvvm` takes every element type that it does not know for bf16, i8 and f8 too, and
none for tf32. So these descriptors become calls of the runtime here, with CUDA's data types.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.rewrites.by_text import replace_by_text

# Of `nvgpu.tma.create.descriptor` of f32: TMA rounds what it loads to tf32.
ROUNDS_TO_TF32 = "aotc.rounds_to_tf32"

_CREATE = "nvgpu.tma.create.descriptor"
_ENCODE = "mgpuTensorMapEncodeTiledMemref"
_UNRANKED = "!llvm.struct<(i64, ptr)>"
_DECLARATION = (
    f"llvm.func @{_ENCODE}(i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> !llvm.ptr"
)
# cuda.h, CUtensorMapDataType.
_UINT8, _TFLOAT32 = 0, 11
_BYTES = ("i8", "f8E4M3FN", "f8E5M2")
# How a descriptor's type spells the parameters of `cuTensorMapEncodeTiled`: each by its place in
# cuda.h's enumeration, in the order in which they are passed.
_PARAMETERS = {
    "interleave": ("none", "interleave_16b", "interleave_32b"),
    "swizzle": ("none", "swizzle_32b", "swizzle_64b", "swizzle_128b"),
    "l2promo": ("none", "l2promo_64b", "l2promo_128b", "l2promo_256b"),
    "oob": ("zero", "nan"),
}


def encode_tensor_maps(host: Any) -> None:
    """Rewrites such `nvgpu.tma.create.descriptor` under `host`, a builtin.module, in place."""
    is_any = False
    for operation in ops.find(host, _CREATE):
        data_type = _data_type(operation)
        if data_type is not None:
            replace_by_text(operation, _function(operation, data_type))
            is_any = True
    declared = {ops.symbol_of(op) for op in ops.find(host, "llvm.func")}
    if is_any and _ENCODE not in declared:
        host.regions[0].blocks[0].append(ir.Operation.parse(_DECLARATION))


def _data_type(create: Any) -> int | None:
    element = str(ir.UnrankedMemRefType(create.operands[0].type).element_type)
    if ROUNDS_TO_TF32 in create.attributes:
        return _TFLOAT32
    return _UINT8 if element in _BYTES else None


def _function(create: Any, data_type: int) -> str:
    """What stands for it, as a function of its operands."""
    source, *box = create.operands
    names = [f"%box{i}" for i in range(len(box))]
    type_ = str(create.results[0].type)
    arguments = [f"%source: {source.type}", *(f"{name}: index" for name in names)]
    numbers = [data_type, *(_parameter(type_, *one) for one in _PARAMETERS.items())]
    lines = [
        f"%memref = builtin.unrealized_conversion_cast %source : {source.type} to {_UNRANKED}",
        f"%rank = llvm.extractvalue %memref[0] : {_UNRANKED}",
        f"%descriptor = llvm.extractvalue %memref[1] : {_UNRANKED}",
        f"%count = llvm.mlir.constant({len(box)} : i64) : i64",
        "%sizes = llvm.alloca %count x i64 : (i64) -> !llvm.ptr",
    ]
    for i, name in enumerate(names):
        lines += [
            f"%size{i} = arith.index_cast {name} : index to i64",
            f"%at{i} = llvm.getelementptr %sizes[{i}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"llvm.store %size{i}, %at{i} : i64, !llvm.ptr",
        ]
    lines += [f"%n{i} = llvm.mlir.constant({n} : i64) : i64" for i, n in enumerate(numbers)]
    passed = ", ".join(["%rank", "%descriptor", *(f"%n{i}" for i in range(5)), "%sizes"])
    types = ", ".join(["i64", "!llvm.ptr", *["i64"] * 5, "!llvm.ptr"])
    lines += [
        f"%map = llvm.call @{_ENCODE}({passed}) : ({types}) -> !llvm.ptr",
        f"%result = builtin.unrealized_conversion_cast %map : !llvm.ptr to {type_}",
        f"return %result : {type_}",
    ]
    body = "\n  ".join(lines)
    head = f"func.func @encode({', '.join(arguments)}) -> {type_}"
    return f"{head} {{\n  {body}\n}}\n{_DECLARATION}"


def _parameter(type_: str, name: str, words: tuple[str, ...]) -> int:
    found = re.search(rf"\b{name} = (\w+)", type_)
    return words.index(found[1]) if found else 0
