"""`aotc-assert-sizes`: records as assertions which sizes of linalg operands are equal.

Operands of one linalg operation have equal sizes where its indexing maps give them the same loop
dimension. After lowering, the loop bound of one operation is the size of one operand, and that of
the next operation is the size of another; without this record, nothing says that both loops have
the same iteration space. The assertions are inserted while linalg operations are present, which
imply the equalities. `aotc-unify-sizes` uses them when there are loops.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import maps_of
from aotc.attributes import ASSUMPTION
from aotc.errors import InternalError
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_EQ = 0
_CONCERNS_GPU = ("gpu.launch", "gpu.module")


class AssertSizes(OwnPass, frozen=True):
    """Inserts a `cf.assert` for each pair of equal sizes before each `linalg.generic` on buffers.

    The assertions are assumptions, not checks: `aotc-unify-sizes` erases them.
    """

    name = "aotc-assert-sizes"
    reason: str = (
        "equal sizes of the operands of one operation are recorded: its loop will use only one"
    )

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for operation in ops.find(lowering.module.operation, "linalg.generic"):
                if ops.enclosing(operation, *_CONCERNS_GPU) is None:
                    _assert_sizes_of(operation)


def _assert_sizes_of(operation: Any) -> None:
    """Asserts that the sizes along one loop dimension are equal. The first operand is the one whose
    size becomes the loop bound."""
    places: dict[int, list[tuple[Any, int]]] = {}
    for operand, map_ in zip(operation.operands, maps_of(operation), strict=True):
        if not isinstance(operand.type, ir.MemRefType):
            continue
        for i, result in enumerate(map_.results):
            if isinstance(result, ir.AffineDimExpr):
                places.setdefault(result.position, []).append((operand, i))
    with operation.location, ir.InsertionPoint(operation):
        for (first, i), *others in places.values():
            for other, j in others:
                if _is_dynamic(first, i) or _is_dynamic(other, j):
                    if first != other:
                        _assume_equal(ops.size(first, i), ops.size(other, j))
                elif first.type.shape[i] != other.type.shape[j]:
                    # MLIR's verifier does not find this if another size is dynamic.
                    raise InternalError(
                        f"A linalg operation at {operation.location} has operands of sizes "
                        f"{first.type.shape[i]} and {other.type.shape[j]}, which must be equal."
                    )


def _is_dynamic(memref: Any, dimension: int) -> bool:
    return bool(ir.MemRefType(memref.type).is_dynamic_dim(dimension))


def _assume_equal(one: Any, other: Any) -> None:
    is_equal = ops.compare(_EQ, one, other)
    message = "operands of a linalg operation differ in size"
    ops.create_assert(is_equal, message, **{ASSUMPTION: ir.UnitAttr.get()})
