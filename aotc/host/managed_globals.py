"""Variables that are passed to kernels → managed copies of them, made on first use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import (
    append_with_declarations,
    create_call,
    null_pointer_global,
    runtime_declarations,
)
from aotc.mlir import ir
from aotc.ops import symbol_of

# The attribute of functions that return a variable's copy. A module with hundreds of weights calls
# hundreds of them in one function: if they were inlined, jump threading would take quadratic time.
GETTER_ATTRIBUTES = 'attributes {passthrough = ["noinline"]}'


def make_globals_managed(host: Any, names: Iterable[str]) -> None:
    """Replaces the uses of variables by managed copies, which are made on first use."""
    uses, types = uses_of_variables(host), types_of_variables(host)
    for name in names:
        replace_by_calls(uses.get(name, []), add_managed_getter(host, name, types[name]))


def uses_of_variables(host: Any) -> dict[str, list[Any]]:
    """The `llvm.mlir.addressof` operations in functions, by the variable's name."""
    uses: dict[str, list[Any]] = {}
    for function in ops.content(host):
        if function.name == "llvm.func":
            for op in ops.find(function, "llvm.mlir.addressof"):
                name = str(ir.FlatSymbolRefAttr(op.attributes["global_name"]).value)
                uses.setdefault(name, []).append(op)
    return uses


def replace_by_calls(uses: Iterable[Any], getter: str) -> None:
    """Replaces the addresses of a variable by calls of `getter`, which returns its copy."""
    for use in uses:
        with use.location, ir.InsertionPoint(use):
            copy = create_call(getter, [], "!llvm.ptr")
        ops.replace(use, [copy])


def types_of_variables(host: Any) -> dict[str, str]:
    """The type of each variable, by the variable's name."""
    return {
        symbol_of(op): str(ir.TypeAttr(op.attributes["global_type"]).value)
        for op in ops.content(host)
        if op.name == "llvm.mlir.global"
    }


def add_managed_getter(host: Any, name: str, type_: str) -> str:
    """Adds a function that returns the managed copy of a variable of an LLVM type; returns its
    name.

    Two threads may make the copy at once: one copy is used, the other freed. If there is no memory
    for it, the variable itself is returned; the failure is recorded, and no kernel is launched.
    A second call for the same variable adds nothing.
    """
    pointer, getter = f"aotc_managed_{name}", f"aotc_get_{name}"
    if any(op.name == "llvm.func" and symbol_of(op) == getter for op in ops.content(host)):
        return getter
    declarations = runtime_declarations()
    declarations[name] = f'llvm.mlir.global external @"{name}"() {{addr_space = 0 : i32}} : {type_}'
    append_with_declarations(
        host,
        f"""{null_pointer_global(pointer)}
llvm.func internal @"{getter}"() -> !llvm.ptr {GETTER_ATTRIBUTES} {{
  %place = llvm.mlir.addressof @"{pointer}" : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %known = llvm.load %place atomic acquire {{alignment = 8 : i64}} : !llvm.ptr -> !llvm.ptr
  %is_known = llvm.icmp "ne" %known, %null : !llvm.ptr
  llvm.cond_br %is_known, ^done(%known : !llvm.ptr), ^allocate
^allocate:
  %variable = llvm.mlir.addressof @"{name}" : !llvm.ptr
  %end = llvm.getelementptr %null[1] : (!llvm.ptr) -> !llvm.ptr, {type_}
  %size = llvm.ptrtoint %end : !llvm.ptr to i64
  %shared = llvm.mlir.constant(1 : i8) : i8
  %copy = llvm.call @mgpuMemAlloc(%size, %null, %shared) : (i64, !llvm.ptr, i8) -> !llvm.ptr
  %is_there = llvm.icmp "ne" %copy, %null : !llvm.ptr
  llvm.cond_br %is_there, ^check, ^done(%variable : !llvm.ptr)
^check:
  // After a failure the runtime hands out host memory to go on with: not for good.
  %get_status = llvm.mlir.addressof @aotc_status_get : !llvm.ptr
  %has_status = llvm.icmp "ne" %get_status, %null : !llvm.ptr
  llvm.cond_br %has_status, ^ask, ^fill
^ask:
  %status = llvm.call @aotc_status_get() : () -> i32
  %ok = llvm.mlir.constant(0 : i32) : i32
  %is_ok = llvm.icmp "eq" %status, %ok : i32
  llvm.cond_br %is_ok, ^fill, ^late(%variable : !llvm.ptr)
^fill:
  "llvm.intr.memcpy"(%copy, %variable, %size) <{{isVolatile = false}}>
      : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %exchange = llvm.cmpxchg %place, %null, %copy acq_rel acquire {{alignment = 8 : i64}}
      : !llvm.ptr, !llvm.ptr
  %before = llvm.extractvalue %exchange[0] : !llvm.struct<(ptr, i1)>
  %is_ours = llvm.extractvalue %exchange[1] : !llvm.struct<(ptr, i1)>
  llvm.cond_br %is_ours, ^done(%copy : !llvm.ptr), ^late(%before : !llvm.ptr)
^late(%other: !llvm.ptr):
  llvm.call @mgpuMemFree(%copy, %null) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.br ^done(%other : !llvm.ptr)
^done(%result: !llvm.ptr):
  llvm.return %result : !llvm.ptr
}}""",
        declarations,
    )
    return getter
