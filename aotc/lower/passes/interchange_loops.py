"""`aotc-interchange-loops`: orders the loops of linalg operations as their result lies in memory,
with reductions innermost.

An outer reduction would become a host loop with a launch in it. A named operation has the loop
order of its definition: `linalg.depthwise_conv_2d_nchw_chw` has the channels last, and consecutive
channels are one image apart in memory. The last parallel loop is mapped to the threads of a block
or to a vector. Loops with the same iteration space are fused.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import maps_of, set_maps
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_PARALLEL = "#linalg.iterator_type<parallel>"


class InterchangeLoops(OwnPass, frozen=True):
    name = "aotc-interchange-loops"
    reason: str = "reductions become innermost; the last parallel loop is along contiguous memory"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for generic in ops.find(lowering.module.operation, "linalg.generic"):
                order = _order(generic)
                if order is not None:
                    _interchange(generic, order)


def _order(generic: Any) -> list[int] | None:
    """The new order of the loops; None if they have that order, or if the results do not all have
    the same dimension for each parallel loop."""
    maps = maps_of(generic)
    kinds = [str(kind) for kind in generic.attributes["iterator_types"]]
    _, outputs = ops.operand_groups(generic)
    is_plain = all(isinstance(result, ir.AffineDimExpr) for result in maps[-1].results)
    if not is_plain or any(map_ != maps[-1] for map_ in maps[len(maps) - len(outputs) :]):
        return None
    written = [ir.AffineDimExpr(result).position for result in maps[-1].results]
    parallel = [loop for loop, kind in enumerate(kinds) if kind == _PARALLEL]
    order = written + [loop for loop in range(len(kinds)) if loop not in written]
    return order if sorted(written) == parallel and order != sorted(order) else None


def _interchange(generic: Any, order: list[int]) -> None:
    place = {loop: new for new, loop in enumerate(order)}
    dimensions = [ir.AffineDimExpr.get(place[loop]) for loop in range(len(order))]
    maps = [
        ir.AffineMap.get(
            len(order), 0, [result.compose(_map_of(dimensions)) for result in map_.results]
        )
        for map_ in maps_of(generic)
    ]
    kinds = list(generic.attributes["iterator_types"])
    set_maps(generic, maps)
    generic.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[loop] for loop in order])
    for index in ops.find(generic, "linalg.index"):
        if ops.enclosing(index, "linalg.generic") != generic:
            continue
        attribute = ir.IntegerAttr(index.attributes["dim"])
        index.attributes["dim"] = ir.IntegerAttr.get(attribute.type, place[attribute.value])


def _map_of(dimensions: list[Any]) -> Any:
    return ir.AffineMap.get(len(dimensions), 0, dimensions)
