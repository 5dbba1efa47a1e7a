"""Merging of the functions of CPU kernels into the host module."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.ops import body_of_module, content, symbol_of
from aotc.symbols import has_body, symbols_of


def merge_cpu_kernels(kernels: Any, host: Any) -> None:
    """Moves the symbols of `kernels.module` into `host`, a module in the LLVM dialect.

    Functions of libc and libm that both declare are declared once. `kernels.module` is empty
    afterwards. Raises InputError if the host module has one of the names for something else.
    """
    move_symbols(kernels.module, host)


def check_cpu_kernels(kernels: Any, host: Any) -> None:
    """Raises InputError as `merge_cpu_kernels` does, without changing the modules."""
    present = symbols_of(host)
    for operation in content(kernels.module.operation):
        name = symbol_of(operation)
        if name in present:
            _check_same(operation, present[name])


def move_symbols(source: Any, target: Any) -> None:
    """Moves every symbol of `source` that `target` does not have. Symbols that both have must be
    compatible."""
    present = symbols_of(target.operation)
    for operation in content(source.operation):
        name = symbol_of(operation)
        if name not in present:
            body_of_module(target).append(operation)
            continue
        _check_same(operation, present[name])
        ops.erase(operation)


def _check_same(ours: Any, theirs: Any) -> None:
    if not _is_same(ours, theirs):
        name = symbol_of(ours)
        raise InputError(
            f"The module has a symbol '{name}' of its own, but its kernels need the function "
            f"'{name}' of the C library on the CPU: {_type_of(ours)}, not {_type_of(theirs)}.",
            hint="Rename the symbol, or build with --no-cpu-kernels.",
        )


def _is_same(ours: Any, theirs: Any) -> bool:
    if ours.name != theirs.name:
        return False
    if ours.name == "llvm.func" and not has_body(ours):
        return bool(_type_of(ours) == _type_of(theirs))
    # A definition is a helper or a global that an earlier kernel has brought along.
    return True


def _type_of(operation: Any) -> Any:
    return operation.attributes.get("function_type", operation.name)
