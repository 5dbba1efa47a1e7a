"""Shared memory by address (an i32 in PTX's shared window), named barriers, and structs of
registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.builder import Builder, Type
from aotc.builder.numbers import Number, Value, wrap
from aotc.mlir import ir
from aotc.ops import create

SWIZZLE_BYTES = 128  # the widest swizzle mode
_POINTER = "!llvm.ptr<3>"
_MATRICES = {
    "shape": "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
    "eltType": "#nvvm.ld_st_matrix_elt_type<b16>",
}
_FOUR_WORDS = "!llvm.struct<(i32, i32, i32, i32)>"


def shared_pointer(b: Builder, address: Number) -> Value:
    return b.op("llvm.inttoptr", [b.value(address, "i32")], _POINTER)


def load(b: Builder, pointer: Value, type_: Type, alignment: int | None = None) -> Value:
    """A load by pointer. `alignment`: the address's alignment in bytes; None for the type's own."""
    return b.op("llvm.load", [pointer], type_, **_aligned(alignment))


def store(b: Builder, value: Value, pointer: Value, alignment: int) -> None:
    b.op("llvm.store", [value, pointer], **_aligned(alignment))


def _aligned(alignment: int | None) -> dict[str, Any]:
    if alignment is None:
        return {}
    return {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment)}


def ldmatrix(b: Builder, pointer: Value, *, transposes: bool = False) -> Value:
    """Loads four 8x8 matrices of 16-bit elements. Each lane passes the address of one of their 32
    rows. Returns the lane's four words, a struct of i32."""
    layout = "col" if transposes else "row"
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)
    attributes = {**_MATRICES, "layout": f"#nvvm.mma_layout<{layout}>", "num": number}
    return b.op("nvvm.ldmatrix", [pointer], _FOUR_WORDS, **attributes)


def stmatrix(
    b: Builder, words: Sequence[Value], pointer: Value, *, transposes: bool = False
) -> None:
    """Stores four 8x8 matrices of 16-bit elements; the inverse of `ldmatrix`."""
    layout = "col" if transposes else "row"
    attributes = {**_MATRICES, "layout": f"#nvvm.mma_layout<{layout}>"}
    b.op("nvvm.stmatrix", [pointer, *words], **attributes)


def synchronize_warp(b: Builder) -> None:
    b.op("nvvm.bar.warp.sync", [b.constant(-1, "i32")])


def named_barrier(b: Builder, number: Number, threads: int) -> None:
    """Waits at a named barrier until `threads` threads have arrived."""
    segments = ir.DenseI32ArrayAttr.get([1, 1])
    operands = [b.value(number, "i32"), b.constant(threads, "i32")]
    b.op("nvvm.barrier", operands, operandSegmentSizes=segments)


def named_barrier_arrive(b: Builder, number: Number, threads: int) -> None:
    """Arrives at a named barrier of `threads` threads, without waiting."""
    b.op("nvvm.barrier.arrive", [b.value(number, "i32"), b.constant(threads, "i32")])


# --- Structs of registers, and assembly --------------------------------------------------------


def struct_type(element: str, count: int) -> str:
    return f"!llvm.struct<({', '.join([element] * count)})>"


def extract(b: Builder, struct: Value, element: Type, number: int) -> Value:
    position = {"position": ir.DenseI64ArrayAttr.get([number])}
    return wrap(create("llvm.extractvalue", [struct], [b.type(element)], position).result)


def unpack(b: Builder, struct: Value, element: Type, numbers: Sequence[int]) -> list[Value]:
    """The elements of a struct with the given indices, all of one type."""
    return [extract(b, struct, element, number) for number in numbers]


def undefined(b: Builder, type_: Type) -> Value:
    return b.op("llvm.mlir.undef", (), type_)


def insert(b: Builder, value: Value, struct: Value, number: int) -> Value:
    position = ir.DenseI64ArrayAttr.get([number])
    return b.op("llvm.insertvalue", [struct, value], struct.type, position=position)


def pack(b: Builder, values: Sequence[Value], type_: Type) -> Value:
    struct = undefined(b, type_)
    for number, value in enumerate(values):
        struct = insert(b, value, struct, number)
    return struct


def assembly(
    b: Builder,
    text: str,
    constraints: str,
    operands: Sequence[Value],
    result: Type,
    *,
    has_side_effects: bool = True,
) -> Value:
    """Inline PTX with one result, which may be a struct of registers."""
    effects = {"has_side_effects": ir.UnitAttr.get()} if has_side_effects else {}
    return b.op(
        "llvm.inline_asm",
        operands,
        result,
        asm_string=ir.StringAttr.get(text),
        constraints=ir.StringAttr.get(constraints),
        asm_dialect=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0),
        **effects,
    )
