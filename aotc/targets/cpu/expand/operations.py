"""Kernel operations whose lowering to LLVM cannot be used on the CPU → operations with one."""

from __future__ import annotations

from typing import Any

from aotc import llvm_ops, ops
from aotc.mlir import ir
from aotc.ops import (
    body_of_module,
    content,
    integer,
    symbol_of,
    unary,
    walk,
)
from aotc.rewrites.copies import expand_copy
from aotc.targets.cpu import build


def replace_operations(flat: Any) -> None:
    """Replaces gpu.printf and memref.copy in every function of the module."""
    formats: list[Any] = []
    for function in content(flat.operation):
        first_format = len(formats)
        for operation in walk(function):
            with ir.InsertionPoint(operation), operation.location:
                if operation.name == "gpu.printf":
                    number = len(formats) - first_format
                    formats.append(_call_printf(operation, f"{symbol_of(function)}_format{number}"))
                    ops.erase(operation)
                elif operation.name == "memref.copy":
                    expand_copy(operation)
    if formats:
        body_of_module(flat).append(ir.Operation.parse("llvm.func @printf(!llvm.ptr, ...) -> i32"))
    for variable in formats:
        body_of_module(flat).append(variable)


def _call_printf(printf: Any, global_name: str) -> Any:
    """Calls libc's printf instead; returns the global with the format string."""
    text = ir.StringAttr(printf.attributes["format"]).value_bytes + b"\0"
    variable = build.bytes_global(global_name, text)
    arguments = [llvm_ops.llvm_address(global_name), *map(_promote, printf.operands)]
    type_ = ir.TypeAttr.get(ir.Type.parse("!llvm.func<i32 (ptr, ...)>"))
    llvm_ops.call_llvm("printf", arguments, [integer(32)], var_callee_type=type_)
    return variable


def _promote(value: Any) -> Any:
    """The default argument promotion of C for a variadic argument."""
    type_ = value.type
    if isinstance(type_, ir.IndexType):
        return unary("arith.index_cast", value, integer(64))
    if isinstance(type_, ir.IntegerType):
        if type_.width == 1:
            return unary("arith.extui", value, integer(32))
        wide = 32 if type_.width <= 32 else 64
        return value if type_.width == wide else unary("arith.extsi", value, integer(wide))
    if isinstance(type_, (ir.F16Type, ir.BF16Type, ir.F32Type)):
        return unary("arith.extf", value, ir.F64Type.get())
    return value
