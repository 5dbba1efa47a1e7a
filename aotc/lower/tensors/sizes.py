"""Sizes that operands of linalg have in common: one value for each, so that loops over them are
seen to run over the same points.

Operands of one linalg operation have equal sizes where its indexing maps give them one dimension.
Its loop asks one of the operands, the next loop another. So the equality is written down as an
assertion while there are operations that promise it, and used when there are loops.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir

_PROMISE = "aotc.promise"
_EQ = 0
_CONCERNS_GPU = ("gpu.launch", "gpu.module")


def assert_sizes(module: Any) -> None:
    """Before each `linalg.generic` on buffers: those of its sizes that are equal, as `cf.assert`.

    They are promises rather than checks: `unify_sizes` erases them.
    """
    with module.context:
        for operation in ops.find(module.operation, "linalg.generic"):
            if ops.enclosing(operation, *_CONCERNS_GPU) is None:
                _assert_sizes_of(operation)


def _assert_sizes_of(operation: Any) -> None:
    """The operand whose size the loop will ask for stands first."""
    places: dict[int, list[tuple[Any, int]]] = {}
    maps = [ir.AffineMapAttr(a).value for a in operation.attributes["indexing_maps"]]
    for operand, map_ in zip(operation.operands, maps, strict=True):
        if not isinstance(operand.type, ir.MemRefType):
            continue
        for i, result in enumerate(map_.results):
            if isinstance(result, ir.AffineDimExpr):
                places.setdefault(result.position, []).append((operand, i))
    with operation.location, ir.InsertionPoint(operation):
        for (first, i), *others in places.values():
            for other, j in others:
                if first != other and (_is_dynamic(first, i) or _is_dynamic(other, j)):
                    _promise(_size(first, i), _size(other, j))


def _is_dynamic(memref: Any, dimension: int) -> bool:
    return bool(ir.MemRefType(memref.type).is_dynamic_dim(dimension))


def _size(memref: Any, dimension: int) -> Any:
    if not _is_dynamic(memref, dimension):
        return ops.constant_index(ir.MemRefType(memref.type).shape[dimension])
    return ops.create("memref.dim", [memref, ops.constant_index(dimension)], [ops.index()]).result


def _promise(one: Any, other: Any) -> None:
    is_equal = ops.compare(_EQ, one, other)
    message = ir.StringAttr.get("operands of a linalg operation differ in size")
    marks = {"msg": message, _PROMISE: ir.UnitAttr.get()}
    ops.create("cf.assert", [is_equal], attributes=marks)


def unify_sizes(module: Any) -> None:
    """Behind each promise, one value stands for both sizes; the promises are erased."""
    with module.context:
        for function in ops.find(module.operation, "func.func"):
            if not any(_PROMISE in op.attributes for op in ops.find(function, "cf.assert")):
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
        if operation.name == "cf.assert" and _PROMISE in operation.attributes:
            comparison = ops.defining(operation.operands[0])
            if comparison is not None and comparison.name == "arith.cmpi":
                sizes.learn(*comparison.operands)
            operation.erase()
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
        index = ops.known_index(producer.operands[1])
        if index is not None:
            return (producer.operands[0], index)
    return value
