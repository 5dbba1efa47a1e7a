"""Constants that are passed to kernels → copies on the device or for the CPU, made on first use.

`aotc.lower.placement.constants` refers to the copy of `@w` by a declaration `@aotc_device_w`. The
runtime keeps a copy for each context. Upstream's runtime does not support copies: with it, the copy
is managed memory. `@aotc_packed_w` and `@aotc_winograd_w` are copies for kernels of the CPU device,
which upstream's runtime does not have.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import (
    append_with_declarations,
    initialized_global,
    runtime_declarations,
)
from aotc.host.managed_globals import (
    GETTER_ATTRIBUTES,
    add_managed_getter,
    replace_by_calls,
    types_of_variables,
    uses_of_variables,
)
from aotc.module_names import (
    CPU_COPIES,
    DEVICE_COPY,
    GROUPED_BYTES_COPY,
    GROUPED_HALVES_COPY,
    WINOGRAD_COPY,
)
from aotc.ops import symbol_of

_CONSTANT = "!llvm.struct<(ptr, i64, ptr, ptr)>"  # aotc_constant of aotc_runtime.h
_RELEASE = "aotc_release_constants"
# The rows of a constant in a row of its copy.
_IN_GROUP = {GROUPED_HALVES_COPY: 2, GROUPED_BYTES_COPY: 4}
_PRIORITY = 123


def use_device_copies(host: Any) -> None:
    """Replaces the uses of each declared copy by calls of a function that returns it; changes
    `host` in place."""
    declared = [
        (op, prefix)
        for op in ops.content(host)
        if op.name == "llvm.mlir.global"
        for prefix in (DEVICE_COPY, *CPU_COPIES)
        if symbol_of(op).startswith(prefix)
    ]
    if not declared:
        return
    uses, types = uses_of_variables(host), types_of_variables(host)
    names = dict.fromkeys(symbol_of(op).removeprefix(prefix) for op, prefix in declared)
    append_with_declarations(
        host,
        "\n".join(_table_text(name, types[name]) for name in names),
        {name: _declared(name, types[name]) for name in names},
    )
    for variable, prefix in declared:
        name = symbol_of(variable).removeprefix(prefix)
        if prefix == DEVICE_COPY:
            getter = _add_getter(host, name, types[name])
        else:
            getter = _add_cpu_getter(host, name, prefix, types[symbol_of(variable)])
        replace_by_calls(uses.get(symbol_of(variable), []), getter)
    _add_release(host, list(names))
    for variable, _ in declared:
        ops.erase(variable)


def _table(name: str) -> str:
    return f"aotc_constant_{name}"


def _table_text(name: str, type_: str) -> str:
    lines = [
        f"%empty = llvm.mlir.zero : {_CONSTANT}",
        f'%data = llvm.mlir.addressof @"{name}" : !llvm.ptr',
        "%null = llvm.mlir.zero : !llvm.ptr",
        f"%end = llvm.getelementptr %null[1] : (!llvm.ptr) -> !llvm.ptr, {type_}",
        "%size = llvm.ptrtoint %end : !llvm.ptr to i64",
        f"%with_data = llvm.insertvalue %data, %empty[0] : {_CONSTANT}",
        f"%all = llvm.insertvalue %size, %with_data[1] : {_CONSTANT}",
        f"llvm.return %all : {_CONSTANT}",
    ]
    # The runtime writes to the variable.
    return initialized_global(_table(name), _CONSTANT, lines).replace(
        "internal constant", "internal", 1
    )


def rows_of_copy(prefix: str, type_: str) -> int:
    """The number of rows of the constant, or of its transpose, that a copy for the CPU device is
    made of. `prefix` is the prefix of the copy's name, `type_` its LLVM type."""
    found = re.match(r"!llvm\.array<\d+ x array<(\d+) x", type_)
    assert found is not None
    rows = int(found[1]) - int(prefix != WINOGRAD_COPY)
    return rows * _IN_GROUP.get(prefix, 1)


def _declared(name: str, type_: str) -> str:
    return f'llvm.mlir.global external @"{name}"() {{addr_space = 0 : i32}} : {type_}'


def _add_getter(host: Any, name: str, type_: str) -> str:
    getter, managed = f"aotc_get_device_{name}", add_managed_getter(host, name, type_)
    lines = f"""  %managed = llvm.call @"{managed}"() : () -> !llvm.ptr
  llvm.return %managed : !llvm.ptr"""
    declarations = {managed: f'llvm.func @"{managed}"() -> !llvm.ptr'}
    call = "@aotc_constant_get(%constant) : (!llvm.ptr) -> !llvm.ptr"
    _append_getter(host, getter, name, (call, lines), declarations)
    return getter


def _add_cpu_getter(host: Any, name: str, prefix: str, type_: str) -> str:
    """Adds the getter of a copy of LLVM type `type_`. With upstream's runtime it returns null, as
    no kernel that would read the copy is launched."""
    form = CPU_COPIES[prefix]
    getter = f"aotc_get_{form}_{name}"
    rows = f"%rows = llvm.mlir.constant({rows_of_copy(prefix, type_)} : i64) : i64"
    call = f"@aotc_constant_get_{form}(%constant, %rows) : (!llvm.ptr, i64) -> !llvm.ptr"
    _append_getter(host, getter, name, (call, "  llvm.return %null : !llvm.ptr"), {}, rows)
    return getter


def _append_getter(
    host: Any,
    getter: str,
    name: str,
    texts: tuple[str, str],
    declarations: dict[str, str],
    before: str = "",
) -> None:
    """Adds a function that returns the result of a runtime function. `texts` are the call, and the
    code for a runtime without that function; `before` is code before the call."""
    call, other = texts
    function = call.partition("(")[0]
    append_with_declarations(
        host,
        f"""llvm.func internal @"{getter}"() -> !llvm.ptr {GETTER_ATTRIBUTES} {{
  %get = llvm.mlir.addressof {function} : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %get, %null : !llvm.ptr
  llvm.cond_br %is_there, ^ours, ^other
^ours:
  %constant = llvm.mlir.addressof @"{_table(name)}" : !llvm.ptr
  {before}
  %copy = llvm.call {call}
  llvm.return %copy : !llvm.ptr
^other:
{other}
}}""",
        {**runtime_declarations(), **_table_declaration(name), **declarations},
    )


def _table_declaration(name: str) -> dict[str, str]:
    return {_table(name): _declared(_table(name), _CONSTANT)}


def _add_release(host: Any, names: list[str]) -> None:
    declarations = runtime_declarations()
    calls = []
    for i, name in enumerate(names):
        declarations.update(_table_declaration(name))
        calls += [
            f'%c{i} = llvm.mlir.addressof @"{_table(name)}" : !llvm.ptr',
            f"llvm.call @aotc_constant_release(%c{i}) : (!llvm.ptr) -> ()",
        ]
    body = "\n  ".join(calls)
    append_with_declarations(
        host,
        f"""llvm.func internal @"{_RELEASE}"() {{
  %release = llvm.mlir.addressof @aotc_constant_release : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %release, %null : !llvm.ptr
  llvm.cond_br %is_there, ^release, ^done
^release:
  {body}
  llvm.br ^done
^done:
  llvm.return
}}
llvm.mlir.global_dtors
    dtors = [@"{_RELEASE}"], priorities = [{_PRIORITY} : i32], data = [#llvm.zero]""",
        declarations,
    )
