"""Merges outlined kernels into few `gpu.module`s.

`gpu-kernel-outlining` creates a gpu.module for each launch. With one gpu.module for all loops,
there is one image: one run of clang and ptxas for each chip, and one copy of what kernels share.
The library's kernels for an operation are in a separate one, as other inputs have the same.
"""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import gpu_modules, launched_kernel, target_and_dispatch
from aotc.attributes import RUNS_ON
from aotc.emit.c_text import c_identifier
from aotc.kernels.family import ANY_GPU, CPU, EVERYWHERE
from aotc.lower.gpu_branches import is_for_gpu
from aotc.lower.outlining.offsets import unify_offsets
from aotc.mlir import ir
from aotc.ops import symbol_of


def merge_outlined(module: Any, written_by_hand: set[str], name: str, *, debug: bool) -> None:
    """Merges outlined gpu.modules, and shares equal kernels. With `debug`, equal kernels must have
    the same source lines as well.

    Kernels of loops are put into a gpu.module called `name`; those that only the CPU runs into
    another one. The library's kernels for one operation and one target are in a gpu.module whose
    name does not depend on the rest of the input, so that the cache finds it for another input with
    the same operation.

    Modules in `written_by_hand` stay, and so do modules that contain more than kernels, such as
    clones of functions and globals, whose names could clash.
    """
    launches = launches_of(module)
    for_cpu = _modules_where(launches, has_gpu=False)
    for_gpus = _modules_where(launches, has_gpu=True)
    targets: dict[str, list[Any]] = {}
    for op in gpu_modules(module):
        if symbol_of(op) not in written_by_hand and _is_plain(op):
            target = CPU if symbol_of(op) in for_cpu else target_and_dispatch(symbol_of(op))[0]
            targets.setdefault(target, []).append(op)
            if not target and symbol_of(op) in for_gpus:
                # The gpu.module also has kernels that the CPU runs.
                for kernel in ops.content(op):
                    with module.context:
                        kernel.attributes[RUNS_ON] = ir.StringAttr.get(ANY_GPU)
    for target, outlined in targets.items():
        groups: dict[str, list[Any]] = {}
        for op in share_kernels(outlined, launches, debug=debug):
            groups.setdefault(target_and_dispatch(symbol_of(op))[1], []).append(op)
        for dispatch, group in groups.items():
            own = name
            if dispatch:
                own = _common_name(group) or dispatch.rpartition("_")[0]
            is_limited = target not in ("", EVERYWHERE)
            _merge(module, group, launches, f"{own}_{target}" if is_limited else own)
            if is_limited:
                with module.context:
                    group[0].attributes[RUNS_ON] = ir.StringAttr.get(target)


def _common_name(outlined: Sequence[Any]) -> str:
    """The common prefix of the kernels' names in whole words; empty if there is none."""
    names = [symbol_of(kernel) for op in outlined for kernel in ops.content(op)]
    return os.path.commonpath([name.replace("_", "/") for name in names]).replace("/", "_")


def launches_of(module: Any) -> list[Any]:
    """The launches of outlined kernels."""
    return ops.find(module.operation, "gpu.launch_func")


def share_kernels(outlined: Sequence[Any], launches: Sequence[Any], *, debug: bool) -> list[Any]:
    """Merges equal kernels: the first one is kept for all launches.

    A model with equal layers has equal kernels for each layer. `debug`: as in `equal_kernels`.
    Returns the gpu.modules that still have kernels, and erases the others.
    """
    kernels = [kernel for op in outlined for kernel in ops.content(op)]
    unify_offsets(kernels, launches)
    equal = equal_kernels(kernels, debug=debug)
    _rename_launches(launches, {_path_of(kernel): _path_of(first) for kernel, first in equal})
    for kernel, _ in equal:
        ops.erase(kernel)
    kept = []
    for op in outlined:
        if ops.content(op):
            kept.append(op)
        else:
            ops.erase(op)
    return kept


def _path_of(kernel: Any) -> tuple[str, str]:
    return symbol_of(kernel.parent), symbol_of(kernel)


def equal_kernels(kernels: Sequence[Any], *, debug: bool) -> list[tuple[Any, Any]]:
    """(kernel, first equal kernel) for each kernel that equals an earlier one except for the number
    in its name.

    The rest of the name says which function or operation the kernel belongs to. With `debug`, and
    for kernels with assertions, whose messages contain locations, the source lines must be equal as
    well.
    """
    # The text of a kernel is only compared if another has the same name and type.
    types = [(_unnumbered(op), str(op.attributes["function_type"])) for op in kernels]
    counts = Counter(types)
    firsts: dict[tuple[str, str], Any] = {}
    found = []
    for kernel in (op for op, type_ in zip(kernels, types, strict=True) if counts[type_] > 1):
        text = kernel.get_asm(use_local_scope=True, enable_debug_info=debug)
        if not debug and "cf.assert" in text:
            text = kernel.get_asm(use_local_scope=True, enable_debug_info=True)
        key = _unnumbered(kernel), text.replace(f"@{symbol_of(kernel)}(", "@(", 1)
        first = firsts.setdefault(key, kernel)
        if first is not kernel:
            found.append((kernel, first))
    return found


def _unnumbered(kernel: Any) -> str:
    return re.sub(r"_\d+$", "", symbol_of(kernel))


def _modules_where(launches: Sequence[Any], *, has_gpu: bool) -> set[str]:
    """The gpu.modules that are only launched with a GPU (`has_gpu`), or only without one."""
    elsewhere = {launched_kernel(op)[0] for op in launches if is_for_gpu(op) is not has_gpu}
    return {launched_kernel(op)[0] for op in launches} - elsewhere


def _merge(module: Any, outlined: list[Any], launches: Sequence[Any], name: str) -> None:
    with module.context:
        target = outlined[0]
        names: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        for gpu_module in outlined:
            for kernel in ops.content(gpu_module):
                old = symbol_of(kernel)
                new = _free_name(old, taken)
                taken.add(new)
                names[symbol_of(gpu_module), old] = new
                kernel.attributes["sym_name"] = ir.StringAttr.get(new)
                if gpu_module is not target:
                    target.regions[0].blocks[0].append(kernel)
        for gpu_module in outlined[1:]:
            ops.erase(gpu_module)
        others = {
            symbol_of(op.operation)
            for op in ops.body_of_module(module).operations
            if _is_symbol(op)
        }
        target_name = _free_name(name, others - {symbol_of(target)})
        target.attributes["sym_name"] = ir.StringAttr.get(target_name)
        _rename_launches(launches, {old: (target_name, new) for old, new in names.items()})


def _is_symbol(op: Any) -> bool:
    return "sym_name" in op.operation.attributes


def _is_plain(gpu_module: Any) -> bool:
    return all(op.name == "gpu.func" for op in ops.content(gpu_module))


def _free_name(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        candidate = f"{name}_{count}"
        count += 1
    return candidate


def _rename_launches(
    launches: Iterable[Any], renamed: Mapping[tuple[str, str], tuple[str, str]]
) -> None:
    """Changes launches of renamed kernels. Keys and values are (gpu.module, kernel)."""
    for launch in launches:
        if (new := renamed.get(launched_kernel(launch))) is not None:
            with launch.context:
                launch.attributes["kernel"] = ir.SymbolRefAttr.get(list(new))


def rename_kernels(module: Any) -> None:
    """Renames the functions of gpu.modules to C identifiers, which PTX accepts."""
    with module.context:
        for gpu_module in gpu_modules(module):
            functions = [op for op in ops.content(gpu_module) if _is_symbol(op)]
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
                name = symbol_of(gpu_module)
                renamed[name, old] = name, new
            if renamed:
                _rename_launches(launches_of(module), renamed)
