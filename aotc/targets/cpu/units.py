"""CPU kernels → modules that are compiled separately.

They are compiled in parallel, also with the code for GPUs, and recompiled only if one of their
kernels has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotc.host.kernels import CpuKernels
from aotc.mlir import ir
from aotc.ops import body_of_module, content, symbol_of
from aotc.symbols import has_body, symbols_of, used_names

# The number of kernels of a module. Starting clang takes about as long as compiling one kernel.
_KERNELS = 4
_HIDDEN = 1  # LLVM's Visibility


def kernel_symbols(cpu: CpuKernels) -> list[str]:
    """The functions that the runtime gets, in the order of the kernels."""
    return list(_modules(cpu))


def _modules(cpu: CpuKernels) -> dict[str, str]:
    """Each of these functions → its gpu.module."""
    named = ((kernel.symbol or kernel.step, kernel.module) for kernel in cpu.kernels)
    return {name: module for name, module in named if name is not None}


def split_kernels(cpu: CpuKernels) -> list[Any]:
    """Modules in the LLVM dialect, each with the functions of a few kernels and what they use.

    The functions of `kernel_symbols` are hidden there, and all others internal. A variable that is
    not constant is in one module only. `cpu.module` is not changed.
    """
    symbols = symbols_of(cpu.module.operation)
    roots = kernel_symbols(cpu)
    used = {
        name: [other for other in used_names(op) if other in symbols]
        for name, op in symbols.items()
    }
    reached = {root: _reach(root, used) for root in roots}
    # Functions that only the back end calls, so that nothing refers to them.
    common = {
        name
        for name, operation in symbols.items()
        if operation.name == "llvm.func"
        and has_body(operation)
        and not any(name in names for names in reached.values())
    }
    common = common.union(*(_reach(name, used) for name in common))
    variables = {name for name, operation in symbols.items() if _can_change(operation)}
    with cpu.module.context, ir.Location.unknown():
        return [
            _part(cpu.module, common.union(*(reached[root] for root in group)), group)
            for group in _groups(_modules(cpu), {root: reached[root] & variables for root in roots})
        ]


def _reach(root: str, used: dict[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += used[name]
    return reached


def _groups(modules: Mapping[str, str], variables: dict[str, set[str]]) -> list[list[str]]:
    """The functions in groups, in order. `modules` maps a function to its gpu.module. A group has a
    few functions of one gpu.module, and functions with a common variable are in the same group."""
    groups: list[list[str]] = []
    for root, module in modules.items():
        sharing = [
            group for group in groups if any(variables[root] & variables[one] for one in group)
        ]
        if sharing:
            first, *others = sharing
            for other in others:
                first += other
                groups.remove(other)
            first.append(root)
        elif groups and len(groups[-1]) < _KERNELS and modules[groups[-1][0]] == module:
            groups[-1].append(root)
        else:
            groups.append([root])
    return groups


def _can_change(operation: Any) -> bool:
    return operation.name == "llvm.mlir.global" and "constant" not in operation.attributes


def _part(module: Any, names: set[str], roots: list[str]) -> Any:
    part = ir.Module.create()
    for operation in content(module.operation):
        if symbol_of(operation) not in names:
            continue
        copy = operation.clone()
        body_of_module(part).append(copy)
        if symbol_of(operation) in roots:
            copy.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
            i64 = ir.IntegerType.get_signless(64)
            copy.attributes["visibility_"] = ir.IntegerAttr.get(i64, _HIDDEN)
    return part
