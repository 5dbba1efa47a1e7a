"""TMA descriptors that upstream cannot express: for 8-bit elements, for f32 rounded to tf32, and
for images in im2col mode.

`convert-nvgpu-to-nvvm` encodes every element type that it does not know as bf16, also i8 and f8,
and has none for tf32. So these descriptors become calls of the runtime here, with CUDA's data
types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.attributes import IM2COL, ROUNDS_TO_TF32
from aotc.mlir import ir
from aotc.rewrites.by_text import replace_by_text

_CREATE = "nvgpu.tma.create.descriptor"
_ENCODE = "mgpuTensorMapEncodeTiledMemref"
_UNRANKED = "!llvm.struct<(i64, ptr)>"
_DECLARATION = (
    f"llvm.func @{_ENCODE}(i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> !llvm.ptr"
)
# Only aotc's runtime has this function. The reference is weak, as only kernels for Hopper use it,
# and another runtime need not support Hopper.
_ENCODE_IM2COL = "aotc_tensor_map_encode_im2col"
_DECLARATION_IM2COL = (
    f"llvm.func extern_weak @{_ENCODE_IM2COL}(i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, "
    "!llvm.ptr, !llvm.ptr, !llvm.ptr) -> !llvm.ptr"
)
# cuda.h, CUtensorMapDataType.
_UINT8, _TFLOAT32 = 0, 11
_HALVES = {"f16": 6, "bf16": 9}
_BYTES = ("i8", "f8E4M3FN", "f8E5M2")
# How a descriptor's type spells the parameters of `cuTensorMapEncodeTiled`, in the order in which
# they are passed. The position of a word is its number in cuda.h's enumeration.
_PARAMETERS = {
    "interleave": ("none", "interleave_16b", "interleave_32b"),
    "swizzle": ("none", "swizzle_32b", "swizzle_64b", "swizzle_128b"),
    "l2promo": ("none", "l2promo_64b", "l2promo_128b", "l2promo_256b"),
    "oob": ("zero", "nan"),
}


def encode_tensor_maps(host: Any) -> None:
    """Rewrites these descriptors under `host`, a builtin.module, in place."""
    called: dict[str, str] = {}
    for operation in ops.find(host, _CREATE):
        data_type = _data_type(operation)
        if data_type is None:
            continue
        is_im2col = IM2COL in operation.attributes
        name = _ENCODE_IM2COL if is_im2col else _ENCODE
        called[name] = _DECLARATION_IM2COL if is_im2col else _DECLARATION
        replace_by_text(operation, f"{_function(operation, name, data_type)}\n{called[name]}")
    declared = {ops.symbol_of(op) for op in ops.find(host, "llvm.func")}
    for name, declaration in called.items():
        if name not in declared:
            host.regions[0].blocks[0].append(ir.Operation.parse(declaration))


def _data_type(create: Any) -> int | None:
    element = str(ir.UnrankedMemRefType(create.operands[0].type).element_type)
    if ROUNDS_TO_TF32 in create.attributes:
        return _TFLOAT32
    if IM2COL in create.attributes:
        return _HALVES[element]
    return _UINT8 if element in _BYTES else None


def _function(create: Any, name: str, data_type: int) -> str:
    """The text of a function of the operation's operands that calls the runtime's `name`."""
    source, *box = create.operands
    names = [f"%box{i}" for i in range(len(box))]
    type_ = str(create.results[0].type)
    arguments = [f"%source: {source.type}", *(f"{name}: index" for name in names)]
    numbers = [data_type, *(_parameter(type_, *one) for one in _PARAMETERS.items())]
    lines = [
        f"%memref = builtin.unrealized_conversion_cast %source : {source.type} to {_UNRANKED}",
        f"%rank = llvm.extractvalue %memref[0] : {_UNRANKED}",
        f"%descriptor = llvm.extractvalue %memref[1] : {_UNRANKED}",
    ]
    sizes = []
    for i, size in enumerate(names):
        lines.append(f"%size{i} = arith.index_cast {size} : index to i64")
        sizes.append(f"%size{i}")
    lines += _array("sizes", sizes)
    arrays = ["%sizes"]
    if IM2COL in create.attributes:
        given = list(ir.DenseI64ArrayAttr(create.attributes[IM2COL]))
        rank = len(given) // 3
        for first, array in enumerate(("lower", "upper", "steps")):
            own = [f"%{array}_{i}" for i in range(rank)]
            lines += [
                f"{one} = llvm.mlir.constant({number} : i64) : i64"
                for one, number in zip(own, given[first * rank :], strict=False)
            ]
            lines += _array(array, own)
            arrays.append(f"%{array}")
    lines += [f"%n{i} = llvm.mlir.constant({n} : i64) : i64" for i, n in enumerate(numbers)]
    passed = ", ".join(["%rank", "%descriptor", *(f"%n{i}" for i in range(5)), *arrays])
    types = ", ".join(["i64", "!llvm.ptr", *["i64"] * 5, *["!llvm.ptr"] * len(arrays)])
    lines += [
        f"%map = llvm.call @{name}({passed}) : ({types}) -> !llvm.ptr",
        f"%result = builtin.unrealized_conversion_cast %map : !llvm.ptr to {type_}",
        f"return %result : {type_}",
    ]
    body = "\n  ".join(lines)
    head = f"func.func @encode({', '.join(arguments)}) -> {type_}"
    return f"{head} {{\n  {body}\n}}"


def _array(name: str, values: Sequence[str]) -> list[str]:
    """Operations that store i64 values to an array on the stack. Its pointer is `%name`."""
    lines = [
        f"%{name}_count = llvm.mlir.constant({len(values)} : i64) : i64",
        f"%{name} = llvm.alloca %{name}_count x i64 : (i64) -> !llvm.ptr",
    ]
    for i, value in enumerate(values):
        lines += [
            f"%{name}_at{i} = llvm.getelementptr %{name}[{i}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"llvm.store {value}, %{name}_at{i} : i64, !llvm.ptr",
        ]
    return lines


def _parameter(type_: str, name: str, words: tuple[str, ...]) -> int:
    found = re.search(rf"\b{name} = (\w+)", type_)
    return words.index(found[1]) if found else 0
