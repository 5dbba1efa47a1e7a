"""The symbols of a gpu.module, and those that a kernel uses directly or indirectly."""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir
from aotc.ops import content, symbol_of, walk

FUNCTIONS = frozenset({"gpu.func", "func.func", "llvm.func"})


def symbols_of(module: Any) -> dict[str, Any]:
    """The symbols that are defined or declared directly inside, by name, in order."""
    return {symbol_of(op): op for op in content(module) if "sym_name" in op.attributes}


def is_kernel(operation: Any) -> bool:
    """Whether it is a gpu.func that the host launches."""
    return operation.name == "gpu.func" and "kernel" in operation.attributes


def has_body(function: Any) -> bool:
    """Whether a function is defined, not only declared."""
    return len(function.regions[0].blocks) > 0


def reach(start: Any, symbols: dict[str, Any]) -> dict[str, Any]:
    """The symbols that `start` uses, by name: itself, then functions and globals, transitively."""
    reached: dict[str, Any] = {}
    waiting = [symbol_of(start)]
    while waiting:
        name = waiting.pop(0)
        if name in reached or name not in symbols:
            continue
        reached[name] = symbols[name]
        waiting += used_names(symbols[name])
    return reached


def used_names(root: Any) -> list[str]:
    """The symbols that the operations under `root` refer to."""
    names: dict[str, None] = {}
    for operation in walk(root):
        for attribute in operation.attributes:
            key = attribute if isinstance(attribute, str) else attribute.name
            _collect_names(operation.attributes[key], names)
    return list(names)


def _collect_names(attribute: Any, names: dict[str, None]) -> None:
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        names[attribute.value] = None
    elif isinstance(attribute, ir.SymbolRefAttr):
        names[attribute.value[0]] = None
    elif isinstance(attribute, ir.ArrayAttr):
        for element in attribute:
            _collect_names(element, names)
