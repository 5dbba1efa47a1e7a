"""Constants that kernels are given → the device's copies of them, made on first use.

`aotc.lower.placement.constants` names the copy of `@w` by a declaration `@aotc_device_w`. The
runtime keeps a copy for each context. Upstream's has none: there the copy is managed memory.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import (
    append_with_declarations,
    initialized_global,
    operations,
    runtime_declarations,
)
from aotc.host.managed_globals import (
    add_managed_getter,
    call_in_place_of,
    types_of_variables,
    uses_of_variables,
)
from aotc.module_names import DEVICE_COPY
from aotc.ops import symbol_of

_CONSTANT = "!llvm.struct<(ptr, i64, ptr, ptr)>"  # aotc_constant of aotc_runtime.h
_RELEASE = "aotc_release_constants"
_PRIORITY = 123


def give_device_copies(host: Any) -> None:
    """Lets the uses of each declared copy be a call of what returns it; changes `host` in place."""
    declared = [
        op
        for op in operations(host)
        if op.name == "llvm.mlir.global" and symbol_of(op).startswith(DEVICE_COPY)
    ]
    if not declared:
        return
    uses, types = uses_of_variables(host), types_of_variables(host)
    for variable in declared:
        name = symbol_of(variable).removeprefix(DEVICE_COPY)
        getter = _add_getter(host, name, types[name])
        call_in_place_of(uses.get(symbol_of(variable), []), getter)
    _add_release(host, [symbol_of(variable).removeprefix(DEVICE_COPY) for variable in declared])
    for variable in declared:
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
    # The runtime writes into it.
    return initialized_global(_table(name), _CONSTANT, lines).replace(
        "internal constant", "internal", 1
    )


def _add_getter(host: Any, name: str, type_: str) -> str:
    getter, managed = f"aotc_get_device_{name}", add_managed_getter(host, name, type_)
    declarations = runtime_declarations()
    declarations[name] = f'llvm.mlir.global external @"{name}"() {{addr_space = 0 : i32}} : {type_}'
    declarations[managed] = f'llvm.func @"{managed}"() -> !llvm.ptr'
    append_with_declarations(
        host,
        f"""{_table_text(name, type_)}
llvm.func internal @"{getter}"() -> !llvm.ptr {{
  %get = llvm.mlir.addressof @aotc_constant_get : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %get, %null : !llvm.ptr
  llvm.cond_br %is_there, ^ours, ^other
^ours:
  %constant = llvm.mlir.addressof @"{_table(name)}" : !llvm.ptr
  %copy = llvm.call @aotc_constant_get(%constant) : (!llvm.ptr) -> !llvm.ptr
  llvm.return %copy : !llvm.ptr
^other:
  %managed = llvm.call @"{managed}"() : () -> !llvm.ptr
  llvm.return %managed : !llvm.ptr
}}""",
        declarations,
    )
    return getter


def _add_release(host: Any, names: list[str]) -> None:
    declarations = runtime_declarations()
    calls = []
    for i, name in enumerate(names):
        declarations[_table(name)] = (
            f'llvm.mlir.global external @"{_table(name)}"() {{addr_space = 0 : i32}} : {_CONSTANT}'
        )
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
