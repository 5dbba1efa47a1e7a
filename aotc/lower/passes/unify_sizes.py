"""Sizes that `aotc-assert-sizes` found to be equal are one value."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.lower.passes.assert_sizes import PROMISE
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir


class UnifySizes(OwnPass, frozen=True):
    """Behind each promise, one value stands for both sizes; the promises are erased."""

    name = "aotc-unify-sizes"
    needs = ("aotc-assert-sizes",)
    reason: str = "sizes that are equal are one value"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for function in ops.find(lowering.module.operation, "func.func"):
                if not any(PROMISE in op.attributes for op in ops.find(function, "cf.assert")):
                    continue  # nothing is learned there
                for region in function.regions:
                    for block in region.blocks:
                        _unify_in(block, _Sizes({}, {}))


class _Sizes(Struct, frozen=True):
    """`equal`: what stands for a size, by its key. `met`: keys in the order in which they came."""

    equal: dict[Any, Any]
    met: dict[Any, int]

    def resolve(self, value: Any) -> Any:
        """What stands for the value, or it itself."""
        while (key := _key(value)) in self.equal:
            value = self.equal[key]
        self.met.setdefault(key, len(self.met))
        return value

    def learn(self, one: Any, other: Any) -> None:
        """Constants stand for sizes that are not; else what loops have asked for already."""
        one, other = sorted((self.resolve(one), self.resolve(other)), key=self._rank)
        if _key(one) != _key(other) and ops.known_index(other) is None:
            self.equal[_key(other)] = one

    def _rank(self, value: Any) -> int:
        return -1 if ops.known_index(value) is not None else self.met[_key(value)]

    def inside(self) -> _Sizes:
        """For what is in a region: what is learned there holds there alone."""
        return _Sizes(dict(self.equal), dict(self.met))


def _unify_in(block: Any, sizes: _Sizes) -> None:
    for operation in [op.operation for op in block.operations]:
        if operation.name == "cf.assert" and PROMISE in operation.attributes:
            comparison = ops.defining(operation.operands[0])
            if comparison is not None and comparison.name == "arith.cmpi":
                sizes.learn(*comparison.operands)
            ops.erase(operation)
            continue
        # What only feeds promises asks for nothing.
        if operation.name != "arith.cmpi":
            for i, operand in enumerate(operation.operands):
                if isinstance(operand.type, ir.IndexType) and ops.known_index(operand) is None:
                    operation.operands[i] = sizes.resolve(operand)
        for region in operation.regions:
            for inner in region.blocks:
                _unify_in(inner, sizes.inside())


def _key(value: Any) -> Any:
    """Equal for values that ask for one size of one buffer."""
    producer = ops.defining(value)
    if producer is not None and producer.name == "memref.dim":
        index = ops.known_dimension(producer)
        if index is not None:
            return (producer.operands[0], index)
    return value
