"""The operations of a module that may be executed, collected once for all checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc.lower.checks.reach import never_runs, reachable_blocks
from aotc.ops import symbol_of


class Operations:
    """The operations of a module by name and in order, without those that are never executed
    because of a constant condition or an empty loop."""

    def __init__(self, module: Any) -> None:
        self._positions: dict[Any, int] = {}
        self._named: dict[str, list[tuple[int, Any]]] = {}
        for position, op in enumerate(_executable(module.operation)):
            self._positions[op] = position
            self._named.setdefault(op.name, []).append((position, op))

    def __contains__(self, operation: Any) -> bool:
        return operation in self._positions

    def named(self, *names: str) -> list[Any]:
        """The operations with one of the names, in order."""
        found = [entry for name in names for entry in self._named.get(name, ())]
        return [op for _, op in sorted(found, key=lambda entry: entry[0])]

    def is_before(self, one: Any, other: Any) -> bool:
        """Whether `one` comes before `other` in the text."""
        return self._positions[one] < self._positions[other]

    def kernels(self) -> dict[tuple[str, str], Any]:
        """(gpu.module, function) → the function, for gpu.funcs and llvm.funcs."""
        return dict(self._functions())

    def _functions(self) -> Iterator[tuple[tuple[str, str], Any]]:
        for gpu_module in self.named("gpu.module"):
            for op in gpu_module.regions[0].blocks[0].operations:
                if op.operation.name in ("gpu.func", "llvm.func"):
                    yield (symbol_of(gpu_module), symbol_of(op.operation)), op.operation


def _executable(operation: Any) -> Iterator[Any]:
    yield operation
    for i, region in enumerate(operation.regions):
        if never_runs(operation, i):
            continue
        # Most regions have one block.
        blocks = list(region.blocks)
        reached = reachable_blocks(region) if len(blocks) > 1 else blocks
        for block in blocks:
            for child in block.operations if block in reached else ():
                yield from _executable(child.operation)
