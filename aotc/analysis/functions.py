"""The functions of a module, and the calls that may reach them."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.ops import symbol_of

# An async.func may be called, too.
_FUNCTIONS = ("func.func", "async.func")
CALLS = ("func.call", "async.call")


class Functions:
    """The functions of a module that have a body, and the calls that may reach each.

    A `func.call_indirect` may call each function of its type whose address the module takes.
    `addressed` has the names of these functions.
    """

    def __init__(self, module: Any) -> None:
        self._bodies = {
            symbol_of(op.operation): op.operation
            for op in ops.body_of_module(module).operations
            if op.operation.name in _FUNCTIONS and op.operation.regions[0].blocks
        }
        # Function → the operands and the results of each call that may reach it.
        self._calls: dict[str, list[tuple[list[Any], list[Any]]]] = {}
        found = ops.find(module.operation, *CALLS, "func.constant")
        for call in found:
            if call.name in CALLS:
                self._add_call(ops.callee_of(call), list(call.operands), call)
        types = {
            str(ir.FlatSymbolRefAttr(constant.attributes["value"]).value): constant.results[0].type
            for constant in found
            if constant.name not in CALLS
        }
        self.addressed = frozenset(types)
        for call in ops.find(module.operation, "func.call_indirect") if types else ():
            address, *passed = call.operands
            for name in sorted(n for n, type_ in types.items() if type_ == address.type):
                self._add_call(name, passed, call)

    def _add_call(self, name: str, operands: list[Any], call: Any) -> None:
        self._calls.setdefault(name, []).append((operands, list(call.results)))

    def get(self, name: str) -> Any | None:
        return self._bodies.get(name)

    def argument(self, call: Any, index: int) -> Any | None:
        """The argument of the called function that operand `index` of `call` becomes; None if the
        function is not known."""
        function = self._bodies.get(ops.callee_of(call))
        return None if function is None else function.regions[0].blocks[0].arguments[index]

    def passed(self, function: str, index: int) -> list[Any]:
        """The values that are passed for argument `index` of `function`, one for each call."""
        return [operands[index] for operands, _ in self._calls.get(function, ())]

    def returned(self, function: str, index: int) -> list[Any]:
        """The values that are result `index` of `function`, one for each call."""
        return [results[index] for _, results in self._calls.get(function, ())]
