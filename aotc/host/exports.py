"""The exported functions of a host module: the C interfaces of its entries, and nothing else.

Each entry also gets a packed form for the harness, `aotc_call_NAME(void **values)`, and a `main` of
the module gets the form that templates/harness/program_main.c calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.emit.table import packed_symbol, size_symbol, workspace_symbol
from aotc.errors import InputError
from aotc.host.llvm_dialect import (
    append_with_declarations,
    declaration,
    defined_functions,
    signature,
)
from aotc.input.entries import ENTRY_ATTRIBUTE, PROGRAM_MAIN, refuse_main
from aotc.manifest import RESULT_SHAPES, Entry, Value
from aotc.mlir import ir
from aotc.module_names import RESULT_SIZES, SIZE_NUMBERS, WORKSPACE_SIZE
from aotc.ops import symbol_of

_USER_MAIN = "aotc_user_main"
# The types that a main may return → the operation that converts them to an exit code.
_STATUSES = {
    "void": "",
    "i1": "llvm.zext",
    "i8": "llvm.sext",
    "i16": "llvm.sext",
    "i32": "",
    "i64": "llvm.trunc",
}


def internalize(host: Any, entries: Sequence[Entry], lowered: Sequence[str]) -> None:
    """Gives all functions internal linkage, except the C interfaces of the entries, and the
    functions in `lowered`, which are not changed."""
    _rename(host, {entry.lowered_symbol: entry.symbol for entry in entries})
    exported = {entry.symbol for entry in entries}
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    for function in ops.content(host):
        if function.name != "llvm.func" or not function.regions[0].blocks:
            continue
        name = symbol_of(function)
        if name == PROGRAM_MAIN and ENTRY_ATTRIBUTE not in function.attributes:
            _wrap_main(host, function, has_entries=len(entries) > 0)
        if name in lowered:
            continue
        if name not in exported:
            # The functions that back ends call (weak_odr) keep their names.
            if "weak" not in str(function.attributes["linkage"]):
                function.attributes["linkage"] = internal
        else:
            _extend_result(function)


def _rename(host: Any, names: dict[str, str]) -> None:
    """Renames functions, in their definitions and in their uses."""
    for operation in [*ops.content(host), *ops.find(host, "llvm.call", "llvm.mlir.addressof")]:
        for attribute in ("sym_name", "callee", "global_name"):
            if attribute not in operation.attributes:
                continue
            old = str(operation.attributes[attribute].value)
            if names.get(old, old) != old:
                kind = ir.StringAttr if attribute == "sym_name" else ir.FlatSymbolRefAttr
                operation.attributes[attribute] = kind.get(names[old])


def _extend_result(function: Any) -> None:
    """Marks a small integer result as extended to a whole register, as C's ABIs require."""
    _, result = signature(function)
    extension = {"i1": "zeroext", "i8": "signext", "i16": "signext"}.get(result)
    if extension is not None:
        function.attributes["res_attrs"] = ir.Attribute.parse(f"[{{llvm.{extension}}}]")


def _wrap_main(host: Any, main: Any, *, has_entries: bool) -> None:
    """Renames the module's own main, and adds the form of it that program_main.c calls.

    If there are entries, a main of a type that no program can start is an ordinary function.
    """
    main.attributes["sym_name"] = ir.StringAttr.get(_USER_MAIN)
    for call in ops.find(host, "llvm.call"):
        if "callee" in call.attributes and ops.callee_of(call) == PROGRAM_MAIN:
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_USER_MAIN)
    parameters, result = signature(main)
    if parameters not in ([], ["i32", "!llvm.ptr"]) or result not in _STATUSES:
        if has_entries:
            return
        raise InputError(refuse_main(parameters, [] if result == "void" else [result]))
    arguments = "%argc, %argv" if parameters else ""
    call = f"llvm.call @{_USER_MAIN}({arguments}) : ({', '.join(parameters)})"
    if result == "void":
        lines = [f"{call} -> ()", "%status = llvm.mlir.constant(0 : i32) : i32"]
    elif result == "i32":
        lines = [f"%status = {call} -> i32"]
    else:
        conversion = _STATUSES[result]
        lines = [f"%value = {call} -> {result}", f"%status = {conversion} %value : {result} to i32"]
    body = "\n  ".join(lines)
    append_with_declarations(
        host,
        f"""llvm.func hidden @aotc_program_main(%argc: i32, %argv: !llvm.ptr) -> i32 {{
  {body}
  llvm.return %status : i32
}}""",
        {_USER_MAIN: declaration(_USER_MAIN, parameters, result)},
    )


def add_packed_calls(host: Any, entries: Sequence[Entry]) -> None:
    """Adds the packed form of each entry."""
    functions = defined_functions(host)
    for entry in entries:
        _add_packed_call(host, entry, functions.get(entry.symbol))
        if RESULT_SHAPES in entry.functions:
            count = sum(len(value.shape) for value in entry.results if value.shape is not None)
            function = functions[f"{entry.name}{RESULT_SIZES}"]
            _add_size_call(host, entry, function, size_symbol(entry), count)
        if entry.workspace_bytes is None:
            function = functions[f"{entry.name}{WORKSPACE_SIZE}"]
            _add_size_call(host, entry, function, workspace_symbol(entry), 1)


def _add_packed_call(host: Any, entry: Entry, function: Any | None) -> None:
    """Adds `aotc_call_NAME(values)`. values[i] is the address of scalar argument i, or of memref
    descriptor i. The results' addresses follow those of the arguments."""
    symbol = entry.symbol
    if function is None:
        raise InputError(
            f"After --pipeline, entry '{entry.name}' has no C interface '{symbol}'. "
            f"Keep '{ENTRY_ATTRIBUTE}' on the function until convert-func-to-llvm."
        )
    parameters, result = signature(function)
    result_mlir = result if result.startswith(("i", "f", "bf", "h")) else f"!llvm.{result}"
    lines: list[str] = []
    arguments: list[str] = []
    returns_by_pointer = len(parameters) == len(entry.arguments) + 1

    def slot(index: int) -> str:
        lines.append(
            f"%q{index} = llvm.getelementptr %values[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        )
        lines.append(f"%p{index} = llvm.load %q{index} : !llvm.ptr -> !llvm.ptr")
        return f"%p{index}"

    count = len(entry.arguments)
    # The type has an alias, as it may be long and is printed for each result.
    packed = "!results"
    alias = f"{packed} = !llvm.struct<({', '.join(map(_result_type, entry.results))})>"
    if returns_by_pointer:
        if len(entry.results) == 1:
            arguments.append(slot(count))
        else:
            lines.append("%one = llvm.mlir.constant(1 : i64) : i64")
            lines.append(f"%packed = llvm.alloca %one x {packed} : (i64) -> !llvm.ptr")
            arguments.append("%packed")
    for i, (value, type_) in enumerate(
        zip(entry.arguments, parameters[int(returns_by_pointer) :], strict=True)
    ):
        pointer = slot(i)
        if value.is_scalar:
            lines.append(f"%v{i} = llvm.load {pointer} : !llvm.ptr -> {type_}")
            pointer = f"%v{i}"
        arguments.append(pointer)
    call = f'llvm.call @"{symbol}"({", ".join(arguments)}) : ({", ".join(parameters)})'
    if result == "void":
        lines.append(f"{call} -> ()")
    else:
        lines.append(f"%result = {call} -> {result_mlir}")
        lines.append(f"llvm.store %result, {slot(count)} : {result_mlir}, !llvm.ptr")
    if returns_by_pointer and len(entry.results) > 1:
        lines.append(f"%all = llvm.load %packed : !llvm.ptr -> {packed}")
        for i, value in enumerate(entry.results):
            type_ = _result_type(value)
            full = type_ if not type_.startswith("struct") else f"!llvm.{type_}"
            lines.append(f"%r{i} = llvm.extractvalue %all[{i}] : {packed}")
            lines.append(f"llvm.store %r{i}, {slot(count + i)} : {full}, !llvm.ptr")
    lines.append("llvm.return")
    body = "\n  ".join(lines)
    append_with_declarations(
        host,
        f"{alias}\nllvm.func hidden @{packed_symbol(entry)}(%values: !llvm.ptr) {{\n  {body}\n}}",
        {symbol: declaration(symbol, parameters, "void" if result == "void" else result_mlir)},
    )


def _add_size_call(host: Any, entry: Entry, function: Any, caller: str, count: int) -> None:
    """Adds `caller(given, out_sizes)`. given[i] is the address of scalar argument i, or of the
    dynamic sizes of memref i. The `count` sizes that the function returns are written to
    `out_sizes`."""
    parameters, result = signature(function)
    lines: list[str] = []
    arguments: list[str] = []
    for i, value in enumerate(entry.arguments):
        places = range(1 if value.shape is None else value.shape.count(None))
        if value.is_scalar and value.type not in SIZE_NUMBERS:
            continue
        if places:
            lines.append(
                f"%q{i} = llvm.getelementptr %given[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
            )
            lines.append(f"%p{i} = llvm.load %q{i} : !llvm.ptr -> !llvm.ptr")
        for place in places:
            name, type_ = f"{i}_{place}", parameters[len(arguments)]
            lines.append(
                f"%a{name} = llvm.getelementptr %p{i}[{place}] : (!llvm.ptr) -> !llvm.ptr, i64"
            )
            lines.append(f"%v{name} = llvm.load %a{name} : !llvm.ptr -> {type_}")
            arguments.append(f"%v{name}")
    result_mlir = result if count == 1 else f"!llvm.{result}"
    symbol = symbol_of(function)
    lines.append(
        f'%sizes = llvm.call @"{symbol}"({", ".join(arguments)}) : ({", ".join(parameters)})'
        f" -> {result_mlir}"
    )
    for i in range(count):
        size = "%sizes" if count == 1 else f"%s{i}"
        if count > 1:
            lines.append(f"{size} = llvm.extractvalue %sizes[{i}] : {result_mlir}")
        lines.append(f"%o{i} = llvm.getelementptr %out[{i}] : (!llvm.ptr) -> !llvm.ptr, i64")
        lines.append(f"llvm.store {size}, %o{i} : i64, !llvm.ptr")
    lines.append("llvm.return")
    body = "\n  ".join(lines)
    append_with_declarations(
        host,
        f"llvm.func hidden @{caller}(%given: !llvm.ptr, %out: !llvm.ptr) {{\n  {body}\n}}",
        {symbol: declaration(symbol, parameters, result_mlir)},
    )


def _result_type(value: Value) -> str:
    """The LLVM type of a result in the struct that returns several results."""
    if value.shape is None:
        scalars = {
            "index": "i64",
            "complex<f32>": "struct<(f32, f32)>",
            "complex<f64>": "struct<(f64, f64)>",
        }
        text = scalars.get(value.type, value.type)
        return text[1:] if text.startswith(("si", "ui")) else text
    rank = len(value.shape)
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    return f"struct<(ptr, ptr, i64{arrays})>"
