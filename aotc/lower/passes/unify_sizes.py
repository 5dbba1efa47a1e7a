"""`aotc-unify-sizes`: replaces sizes that `aotc-assert-sizes` found to be equal by one value."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import ASSUMPTION
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir


class UnifySizes(OwnPass, frozen=True):
    """After each recorded equality, one value replaces both sizes; the assertions are erased."""

    name = "aotc-unify-sizes"
    needs = ("aotc-assert-sizes",)
    reason: str = "sizes that are equal are one value"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for function in ops.find(lowering.module.operation, "func.func"):
                if not any(ASSUMPTION in op.attributes for op in ops.find(function, "cf.assert")):
                    continue  # no equality is recorded there
                for region in function.regions:
                    for block in region.blocks:
                        _unify_in(block, _Sizes({}, {}))


class _Sizes(Struct, frozen=True):
    """`equal`: size's key → the value that replaces it. `met`: key → its number in order of
    appearance."""

    equal: dict[Any, Any]
    met: dict[Any, int]

    def resolve(self, value: Any) -> Any:
        """The value that replaces `value`, or `value` itself."""
        while (key := _key(value)) in self.equal:
            value = self.equal[key]
        self.met.setdefault(key, len(self.met))
        return value

    def learn(self, one: Any, other: Any) -> None:
        """Records an equality. A constant replaces a dynamic size; otherwise the size that was used
        first replaces the other."""
        one, other = sorted((self.resolve(one), self.resolve(other)), key=self._rank)
        if _key(one) != _key(other) and ops.known_index(other) is None:
            self.equal[_key(other)] = one

    def _rank(self, value: Any) -> int:
        return -1 if ops.known_index(value) is not None else self.met[_key(value)]

    def inside(self) -> _Sizes:
        """A copy for a nested region: equalities recorded there hold only there."""
        return _Sizes(dict(self.equal), dict(self.met))


def _unify_in(block: Any, sizes: _Sizes) -> None:
    for operation in ops.operations_in(block):
        if operation.name == "cf.assert" and ASSUMPTION in operation.attributes:
            comparison = ops.defining(operation.operands[0])
            if comparison is not None and comparison.name == "arith.cmpi":
                sizes.learn(*comparison.operands)
            ops.erase(operation)
            continue
        # Comparisons only feed the assertions, and do not count as uses.
        if operation.name != "arith.cmpi":
            for i, operand in enumerate(operation.operands):
                if isinstance(operand.type, ir.IndexType) and ops.known_index(operand) is None:
                    operation.operands[i] = sizes.resolve(operand)
        for region in operation.regions:
            for inner in region.blocks:
                _unify_in(inner, sizes.inside())


def _key(value: Any) -> Any:
    """A key that is equal for values that are the same size of the same buffer."""
    producer = ops.defining(value)
    if producer is not None and producer.name == "memref.dim":
        index = ops.known_dimension(producer)
        if index is not None:
            return (producer.operands[0], index)
    return value
