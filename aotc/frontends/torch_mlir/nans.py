"""Makes the maxima, minima and clamps that torch-mlir generates propagate NaN.

PyTorch and ONNX's reference return NaN for `maximum(nan, 1)` and `clamp(nan, 0, 1)`, and their
`argmax` finds it. torch-mlir generates a comparison and a selection, which return the number. It
generates one `linalg.generic` for each of PyTorch's operations. So comparisons and selections of
the program itself are in two of them, and are not changed.
"""

from __future__ import annotations

from typing import Any

from aotc import ops

# Predicates of arith.cmpf.
_OGT, _OLT, _ORD, _UGT, _ULT = 2, 4, 7, 9, 11
_ORDERED = {_UGT: _OGT, _ULT: _OLT}
_EXTREMUM = {_OGT: "arith.maximumf", _OLT: "arith.minimumf"}
_UNORDERED = {_OGT: _UGT, _OLT: _ULT}


def propagate_nans(module: Any) -> None:
    """Changes the operations in the bodies of the module's `linalg.generic`, in place."""
    for generic in ops.find(module.operation, "linalg.generic"):
        for select in ops.find(generic, "arith.select"):
            comparison = ops.defining(select.operands[0])
            if (
                comparison is not None
                and comparison.name == "arith.cmpf"
                and ops.enclosing(comparison, "linalg.generic") == generic
            ):
                _correct(select, comparison)


def _correct(select: Any, comparison: Any) -> None:
    from torch_mlir import ir

    predicate = ir.IntegerAttr(comparison.attributes["predicate"]).value
    a, b = comparison.operands
    _, yes, no = select.operands
    if (yes, no) == (a, b) and predicate in _EXTREMUM:
        with select.location, ir.InsertionPoint(select):
            extremum = ops.binary(_EXTREMUM[predicate], a, b)
        ops.replace(select, [extremum])
    elif (yes, no) == (b, a) and predicate in _ORDERED:
        # This is a clamp. With an ordered comparison, it returns a NaN operand.
        with select.location, ir.InsertionPoint(select):
            select.operands[0] = _compare(comparison, _ORDERED[predicate], a, b)
    elif predicate in _UNORDERED and _is_index_of_extremum(select, comparison):
        # The first NaN is the extremum, and no later element replaces it.
        with select.location, ir.InsertionPoint(select):
            is_beyond = _compare(comparison, _UNORDERED[predicate], a, b)
            select.operands[0] = ops.binary(
                "arith.andi", is_beyond, _compare(comparison, _ORD, b, b)
            )


def _compare(like: Any, predicate: int, a: Any, b: Any) -> Any:
    """A comparison with another predicate, at the current insertion point."""
    from torch_mlir import ir

    number = ir.IntegerAttr.get(like.attributes["predicate"].type, predicate)
    attributes = {"predicate": number, "fastmath": like.attributes["fastmath"]}
    return ops.create("arith.cmpf", [a, b], [like.result.type], attributes).result


def _is_index_of_extremum(select: Any, comparison: Any) -> bool:
    """Whether an element is compared with the running extremum to select an index."""
    if str(select.results[0].type) not in ("i64", "i32", "index"):
        return False
    a, b = comparison.operands
    return any(
        use.owner.operation.name in ("arith.maximumf", "arith.minimumf")
        and set(use.owner.operation.operands) == {a, b}
        for use in a.uses
    )
