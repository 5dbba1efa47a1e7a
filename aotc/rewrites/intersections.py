"""`x86.avx512.vp2intersect` → comparisons of vectors.

Few processors have the instruction, and on most of these it is slower than the comparisons.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.builder.numbers import compare_values
from aotc.mlir import ir


def expand_intersections(root: Any) -> None:
    """Changes the operations under `root` in place."""
    for operation in ops.find(root, "x86.avx512.vp2intersect"):
        with operation.location, ir.InsertionPoint(operation):
            masks = _intersect(*operation.operands)
        ops.replace(operation, masks)


def _intersect(a: Any, b: Any) -> tuple[Any, Any]:
    """Which elements of `a` are in `b`, and which of `b` are in `a`: compares all pairs."""
    count = a.type.shape[0]
    in_b, in_a = [], []
    for distance in range(count):
        equal = compare_values("eq", a, _rotated(b, distance))
        in_b.append(equal)
        in_a.append(_rotated(equal, -distance))
    return _any(in_b), _any(in_a)


def _rotated(vector: Any, distance: int) -> Any:
    """The vector rotated: element i is element i + distance of `vector`."""
    if distance == 0:
        return vector
    count = vector.type.shape[0]
    places = [(i + distance) % count for i in range(count)]
    mask = ir.DenseI64ArrayAttr.get(places)
    return ops.create("vector.shuffle", [vector, vector], [vector.type], {"mask": mask}).result


def _any(masks: list[Any]) -> Any:
    whole = masks[0]
    for mask in masks[1:]:
        whole = ops.binary("arith.ori", whole, mask)
    return whole
