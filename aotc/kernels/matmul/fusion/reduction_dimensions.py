"""Collapses the reduction dimensions of matrix-vector products to one, if they are contiguous.

Fusion creates such products from reshapes of vectors: the linear layer after an attention, for
example, reads the outputs of all heads as one vector.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import maps_of, reduction_loops, set_maps
from aotc.kernels.matmul.fusion.collapsed import Groups, collapse, collapsed_type
from aotc.mlir import ir


def collapse_reduction_dimensions(generic: Any) -> bool:
    """Collapses the reduction dimensions of an operation in place. Returns whether it did. The
    operation is a multiply-add on buffers, without `linalg.index`."""
    inputs, _ = ops.operand_groups(generic)
    maps = maps_of(generic)
    if len(inputs) != 2 or not all(map_.is_projected_permutation for map_ in maps):
        return False
    *operands, result = ([ir.AffineDimExpr(one).position for one in map_.results] for map_ in maps)
    summed = reduction_loops(generic)
    if len(summed) < 2 or len(result) != 1 or len(summed) + 1 != maps[0].n_dims:
        return False
    # The vector determines the order in which the dimensions are collapsed.
    vector = next((places for places in operands if set(places) == set(summed)), None)
    if vector is None:
        return False
    known: dict[tuple[int, ...], tuple[Groups, list[int]]] = {
        tuple(vector): ([list(range(len(vector)))], [1]),
        (*result, *vector): ([[0], list(range(1, len(vector) + 1))], [0, 1]),
        (*vector, *result): ([list(range(len(vector))), [len(vector)]], [1, 0]),
    }
    found = [known.get(tuple(places)) for places in operands]
    if None in found:
        return False
    views = [one for one in found if one is not None]
    types = [
        collapsed_type(value, groups) for value, (groups, _) in zip(inputs, views, strict=True)
    ]
    if None in types:
        return False
    with generic.location, ir.InsertionPoint(generic):
        for number, (value, (groups, _)) in enumerate(zip(inputs, views, strict=True)):
            generic.operands[number] = collapse(value, groups)
    dims = [ir.AffineDimExpr.get(i) for i in range(2)]
    places = [*(own for _, own in views), [0]]
    set_maps(generic, [ir.AffineMap.get(2, 0, [dims[i] for i in own]) for own in places])
    kinds = ("parallel", "reduction")
    generic.attributes["iterator_types"] = ir.ArrayAttr.get(
        [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    )
    return True
