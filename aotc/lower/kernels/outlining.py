"""Outlined kernels → one `gpu.module` for the whole input.

`gpu-kernel-outlining` makes a gpu.module for every launch. One module for all of them is one
image: one run of clang and ptxas for each chip, and one copy of what kernels share.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.emit.c_text import c_identifier
from aotc.mlir import ir
from aotc.ops import symbol_of


def gpu_modules(module: Any) -> list[Any]:
    """The gpu.modules at the top level of a module: an `ir.Module`, or its operation."""
    top = ops.body_of_module(module).operations
    return [op.operation for op in top if op.operation.name == "gpu.module"]


def merge_outlined(module: Any, written_by_hand: set[str], name: str) -> None:
    """Moves the kernels of outlined gpu.modules into one called `name`.

    Modules in `written_by_hand` stay, and so does one that holds more than kernels (copies of
    functions and globals that its kernel uses: their names may mean different things).
    """
    outlined = [
        op for op in gpu_modules(module) if symbol_of(op) not in written_by_hand and _is_plain(op)
    ]
    if not outlined:
        return
    with module.context:
        target = outlined[0]
        renamed: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        for gpu_module in outlined:
            for kernel in _content(gpu_module):
                old = symbol_of(kernel)
                new = _free_name(old, taken)
                taken.add(new)
                renamed[symbol_of(gpu_module), old] = new
                kernel.attributes["sym_name"] = ir.StringAttr.get(new)
                if gpu_module is not target:
                    target.regions[0].blocks[0].append(kernel)
        for gpu_module in outlined[1:]:
            gpu_module.erase()
        others = {
            symbol_of(op.operation)
            for op in ops.body_of_module(module).operations
            if _is_symbol(op)
        }
        target_name = _free_name(name, others - {symbol_of(target)})
        target.attributes["sym_name"] = ir.StringAttr.get(target_name)
        _rename_launches(module, renamed, target_name)


def _is_symbol(op: Any) -> bool:
    return "sym_name" in op.operation.attributes


def _content(gpu_module: Any) -> list[Any]:
    return [op.operation for op in gpu_module.regions[0].blocks[0].operations]


def _is_plain(gpu_module: Any) -> bool:
    return all(op.name == "gpu.func" for op in _content(gpu_module))


def lowered_kernels(gpu_module: Any) -> list[Any]:
    """The kernels of a gpu.module that are in the LLVM dialect already."""
    return [
        op
        for op in _content(gpu_module)
        if op.name == "llvm.func"
        and ("gpu.kernel" in op.attributes or "nvvm.kernel" in op.attributes)
    ]


def _free_name(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        candidate = f"{name}_{count}"
        count += 1
    return candidate


def launched_kernel(launch: Any) -> tuple[str, str]:
    """(gpu.module, kernel) that a gpu.launch_func names."""
    return tuple(ir.SymbolRefAttr(launch.attributes["kernel"]).value)


def _rename_launches(module: Any, renamed: dict[tuple[str, str], str], target: str) -> None:
    for launch in ops.find(module.operation, "gpu.launch_func"):
        key = launched_kernel(launch)
        if key in renamed:
            launch.attributes["kernel"] = ir.SymbolRefAttr.get([target, renamed[key]])


def spell_kernel_names(module: Any) -> None:
    """Gives the functions of gpu.modules names that PTX can spell: C identifiers."""
    with module.context:
        for gpu_module in gpu_modules(module):
            functions = [op for op in _content(gpu_module) if _is_symbol(op)]
            taken = {symbol_of(op) for op in functions}
            renamed = {}
            for function in functions:
                old = symbol_of(function)
                new = c_identifier(old)
                if new == old:
                    continue
                new = _free_name(new, taken)
                taken.add(new)
                ir.SymbolTable.replace_all_symbol_uses(old, new, gpu_module)
                function.attributes["sym_name"] = ir.StringAttr.get(new)
                renamed[symbol_of(gpu_module), old] = new
            if renamed:
                _rename_launches(module, renamed, symbol_of(gpu_module))
