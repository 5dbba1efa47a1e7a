"""Outlined kernels → few `gpu.module`s.

`gpu-kernel-outlining` makes a gpu.module for every launch. One module for all loops is one image:
one run of clang and ptxas for each chip, and one copy of what kernels share. What the library has
for an operation is another, which other inputs have, too.
"""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.gpu_modules import (
    RUNS_ON,
    gpu_modules,
    launched_kernel,
    target_and_dispatch,
)
from aotc.emit.c_text import c_identifier
from aotc.kernels.family import ANY_GPU, CPU, EVERYWHERE
from aotc.lower.gpu_branches import is_for_gpu
from aotc.lower.outlining.offsets import unify_offsets
from aotc.mlir import ir
from aotc.ops import symbol_of


def merge_outlined(module: Any, written_by_hand: set[str], name: str, *, debug: bool) -> None:
    """Moves the kernels of outlined gpu.modules into few ones, where those that are the same are
    one: with `debug`, those whose lines are the same, too.

    The kernels of loops are in a gpu.module called `name`, those that the CPU alone has in another
    one. The library's kernels for one operation and one target have a gpu.module whose name does
    not depend on the rest of the input: the cache finds it when another input has that operation.

    Modules in `written_by_hand` stay, and so does one that holds more than kernels (copies of
    functions and globals that its kernel uses: their names may mean different things).
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
                # In the same module as others, of which the CPU has forms.
                for kernel in _content(op):
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
    """The words that the names of kernels begin with; none if they have none in common."""
    names = [symbol_of(kernel) for op in outlined for kernel in _content(op)]
    return os.path.commonpath([name.replace("_", "/") for name in names]).replace("/", "_")


def launches_of(module: Any) -> list[Any]:
    """The launches of outlined kernels."""
    return ops.find(module.operation, "gpu.launch_func")


def share_kernels(outlined: Sequence[Any], launches: Sequence[Any], *, debug: bool) -> list[Any]:
    """Merges equal kernels: the first one stays, for all launches. Equal layers of a model have a
    kernel for each of their operations. `debug`: see `equal_kernels`. Returns the gpu.modules that
    still have kernels, and erases the others."""
    kernels = [kernel for op in outlined for kernel in _content(op)]
    unify_offsets(kernels, launches)
    equal = equal_kernels(kernels, debug=debug)
    _rename_launches(launches, {_path_of(kernel): _path_of(first) for kernel, first in equal})
    for kernel, _ in equal:
        ops.erase(kernel)
    kept = []
    for op in outlined:
        if _content(op):
            kept.append(op)
        else:
            ops.erase(op)
    return kept


def _path_of(kernel: Any) -> tuple[str, str]:
    return symbol_of(kernel.parent), symbol_of(kernel)


def equal_kernels(kernels: Sequence[Any], *, debug: bool) -> list[tuple[Any, Any]]:
    """Each kernel that is like an earlier one but for the number in its name, and the first like
    it: the names say of which function or operation they are. With `debug`, and where they have
    assertions, whose messages say where, their lines must be the same, too."""
    # Of one that has no other's arguments and number of operations the text need not be compared.
    shapes = [(str(op.attributes["function_type"]), len(ops.walk(op))) for op in kernels]
    counts = Counter(shapes)
    firsts: dict[tuple[str, str], Any] = {}
    found = []
    for kernel in (op for op, shape in zip(kernels, shapes, strict=True) if counts[shape] > 1):
        has_lines = debug or bool(ops.find(kernel, "cf.assert"))
        text = kernel.get_asm(use_local_scope=True, enable_debug_info=has_lines)
        name = symbol_of(kernel)
        key = re.sub(r"_\d+$", "", name), text.replace(f"@{name}(", "@(", 1)
        first = firsts.setdefault(key, kernel)
        if first is not kernel:
            found.append((kernel, first))
    return found


def _modules_where(launches: Sequence[Any], *, has_gpu: bool) -> set[str]:
    """The gpu.modules all of whose launches stand where there is a GPU, or where there is none."""
    elsewhere = {launched_kernel(op)[0] for op in launches if is_for_gpu(op) is not has_gpu}
    return {launched_kernel(op)[0] for op in launches} - elsewhere


def _merge(module: Any, outlined: list[Any], launches: Sequence[Any], name: str) -> None:
    with module.context:
        target = outlined[0]
        names: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        for gpu_module in outlined:
            for kernel in _content(gpu_module):
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


def _content(gpu_module: Any) -> list[Any]:
    return [op.operation for op in gpu_module.regions[0].blocks[0].operations]


def _is_plain(gpu_module: Any) -> bool:
    return all(op.name == "gpu.func" for op in _content(gpu_module))


def _free_name(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        candidate = f"{name}_{count}"
        count += 1
    return candidate


def _rename_launches(
    launches: Iterable[Any], renamed: Mapping[tuple[str, str], tuple[str, str]]
) -> None:
    """Launches of kernels, each named with its gpu.module, are of others."""
    for launch in launches:
        if (new := renamed.get(launched_kernel(launch))) is not None:
            with launch.context:
                launch.attributes["kernel"] = ir.SymbolRefAttr.get(list(new))


def rename_kernels(module: Any) -> None:
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
                name = symbol_of(gpu_module)
                renamed[name, old] = name, new
            if renamed:
                _rename_launches(launches_of(module), renamed)
