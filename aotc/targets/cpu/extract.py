"""gpu.modules → one module whose functions run one thread.

Symbols of different gpu.modules may have the same name. So each gets the name
`aotc_cpu_<gpu.module>_<symbol>`, with a number appended if that is taken.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir
from aotc.ops import body_of_module, content, symbol_of, walk
from aotc.rewrites.memory_spaces import SpaceStripper
from aotc.rewrites.points import join_guards, synchronize_points, widen_blocks
from aotc.symbols import is_kernel, reach, symbols_of, used_names
from aotc.targets.cpu.expand.matrix_types import replace_types
from aotc.targets.cpu.expand.operations import replace_operations
from aotc.targets.cpu.shared_memory import mark_workgroup
from aotc.targets.cpu.synchronize import DECLARATIONS, WRITE, WRITE_TEXTS
from aotc.targets.cpu.thread_function import ThreadFunction, kernel_to_function, pass_ids

PREFIX = "aotc_cpu_"

_DEVICE_ATTRIBUTES = frozenset({"passthrough", "target_cpu", "target_features", "tune_cpu"})

# A kernel: the names of its gpu.module and of itself.
KernelName = tuple[str, str]


class Names(Struct, frozen=True):
    """Unique new names: of block functions by kernel, of other symbols by gpu.module and symbol.

    They do not depend on which kernels are extracted, so that the results of several extractions
    are compatible.
    """

    blocks: dict[KernelName, str]
    symbols: dict[tuple[str, str], str]


def plan_names(module: Any, gpu_modules: list[Any]) -> Names:
    """New names for the symbols of the gpu.modules, which no symbol in `module` has."""
    taken = {
        symbol_of(operation)
        for operation in walk(module.operation)
        if "sym_name" in operation.attributes
    }

    def make(wanted: str) -> str:
        name, count = wanted, 0
        while name in taken:
            name = f"{wanted}_{count}"
            count += 1
        taken.add(name)
        return name

    blocks: dict[KernelName, str] = {}
    symbols: dict[tuple[str, str], str] = {}
    for gpu_module in gpu_modules:
        module_name = symbol_of(gpu_module)
        for name, operation in symbols_of(gpu_module).items():
            own = make(f"{PREFIX}{module_name}_{name}")
            if is_kernel(operation):
                blocks[module_name, name] = own
                own = make(f"{own}_thread")
            symbols[module_name, name] = own
    return Names(blocks, symbols)


class Extracted(Struct, frozen=True):
    """The module, with the thread function of each kernel."""

    module: Any
    threads: dict[KernelName, ThreadFunction]
    shared_bytes: dict[KernelName, int]


def extract_threads(
    gpu_modules: list[Any], wanted: set[KernelName], names: Names, name: str
) -> Extracted:
    """Copies the kernels in `wanted`, and what they use, as functions that run one thread.

    `name` is the name of the input in locations that have no file name.
    """
    flat = ir.Module.create()
    threads: dict[KernelName, ThreadFunction] = {}
    shared_bytes: dict[KernelName, int] = {}
    stripper = SpaceStripper()
    for original in gpu_modules:
        module_name = symbol_of(original)
        kernels = {kernel for module, kernel in wanted if module == module_name}
        if not kernels:
            continue
        # The copy stays a gpu.module, as a symbol table, while its symbols are renamed.
        copy = original.clone()
        body_of_module(flat).append(copy)
        _keep_reached(copy, kernels)
        wide = widen_blocks(copy)
        join_guards(copy)
        synchronize_points(copy)
        for kernel, size in mark_workgroup(copy).items():
            shared_bytes[module_name, kernel] = size
        stripper.strip_operation(copy)
        replace_types(copy)
        _rename(copy, module_name, names)
        for operation in content(copy):
            _forget_device(operation)
        symbols = symbols_of(copy)
        for kernel in sorted(kernels):
            function = symbols[names.symbols[module_name, kernel]]
            threads[module_name, kernel] = kernel_to_function(function, wide.get(kernel))
        wanted_here = {names.symbols[module_name, kernel] for kernel in kernels}
        for variable in pass_ids(content(copy), wanted_here, name):
            body_of_module(flat).append(variable)
        for operation in content(copy):
            body_of_module(flat).append(operation)
        ops.erase(copy)
    replace_operations(flat)
    texts = list(DECLARATIONS.values())
    if any(_is_write(call) for call in ops.find(flat.operation, "llvm.call")):
        texts += WRITE_TEXTS
    for text in texts:
        body_of_module(flat).append(ir.Operation.parse(text))
    return Extracted(flat, threads, shared_bytes)


def _is_write(call: Any) -> bool:
    return "callee" in call.attributes and ops.callee_of(call) == WRITE


def _keep_reached(copy: Any, kernels: set[str]) -> None:
    symbols = symbols_of(copy)
    kept = {name for kernel in kernels for name in reach(symbols[kernel], symbols)}
    for operation in content(copy):
        if "sym_name" not in operation.attributes or symbol_of(operation) not in kept:
            ops.erase(operation)


def _rename(copy: Any, module_name: str, names: Names) -> None:
    # Each replacement walks the whole module. It is skipped for kernels, which nothing refers to.
    used = frozenset(used_names(copy))
    for old, operation in symbols_of(copy).items():
        new = names.symbols[module_name, old]
        if old in used:
            ir.SymbolTable.replace_all_symbol_uses(old, new, copy)
        operation.attributes["sym_name"] = ir.StringAttr.get(new)


def _forget_device(operation: Any) -> None:
    """Drops attributes that are for a GPU compiler, or for callers from outside."""
    for attribute in list(operation.attributes):
        name = attribute if isinstance(attribute, str) else attribute.name
        if "." in name or name in _DEVICE_ATTRIBUTES:
            del operation.attributes[name]
