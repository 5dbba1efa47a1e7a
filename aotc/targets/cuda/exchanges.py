"""Exchanges between threads in a gpu.module that upstream does not lower → operations that it does.

This runs before convert-gpu-to-nvvm. An operation that upstream lowers is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.chips import WARP
from aotc.errors import InputError
from aotc.input.source import Source
from aotc.mlir import ir
from aotc.ops import find
from aotc.rewrites.reductions import check_clusters
from aotc.targets.cuda.lanes import (
    expand_ballot,
    expand_broadcast,
    expand_rotate,
    expand_shuffle,
)
from aotc.targets.cuda.reductions import expand_all_reduce, expand_subgroup_reduce
from aotc.targets.cuda.threads import (
    expand_subgroup_count,
    expand_subgroup_id,
    expand_subgroup_size,
)

# Each function builds the replacement of the results, at the operation. None: upstream lowers it.
_EXPANSIONS: dict[str, Callable[[Any], Sequence[Any] | None]] = {
    "gpu.all_reduce": expand_all_reduce,
    "gpu.ballot": expand_ballot,
    "gpu.num_subgroups": expand_subgroup_count,
    "gpu.rotate": expand_rotate,
    "gpu.shuffle": expand_shuffle,
    "gpu.subgroup_broadcast": expand_broadcast,
    "gpu.subgroup_id": expand_subgroup_id,
    "gpu.subgroup_reduce": expand_subgroup_reduce,
    "gpu.subgroup_size": expand_subgroup_size,
}


def expand_exchanges(device: Any, source: Source) -> None:
    """Replaces these operations everywhere under `device`.

    Raises InputError for lanes that a warp does not have.
    """
    found = find(device, *_EXPANSIONS)
    problems = [problem for op in found if (problem := _problem(op, source)) is not None]
    if problems:
        raise InputError("\n".join(problems))
    # In reverse order: operations in the region of a reduction come before the reduction.
    for operation in reversed(found):
        with ir.InsertionPoint(operation), operation.location:
            values = _EXPANSIONS[operation.name](operation)
        if values is None:
            continue
        ops.replace(operation, values)


def _problem(operation: Any, source: Source) -> str | None:
    reason = None
    if operation.name == "gpu.subgroup_reduce":
        reason = check_clusters(operation, WARP)
    elif operation.name == "gpu.rotate":
        width = ir.IntegerAttr(operation.attributes["width"]).value
        if width > WARP:
            reason = f"a width of {width} does not fit into a warp of {WARP}"
    if reason is None:
        return None
    place = source.place(operation.location)
    return f"{operation.name}{'' if place is None else f' at {place}'}: {reason}"
