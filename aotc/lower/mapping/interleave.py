"""Lets a thread store a few adjacent elements that it loads from different places.

A pixel shuffle, and the parts of a transposed convolution, are loops whose last dimension has two
to seven points, which are elements of different channels. Neighbouring threads would load from
these, and a block would have few points. Without that dimension, neighbouring threads load
neighbouring elements of each channel.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.effects import access_of, accesses_in, is_pure
from aotc.lower.mapping.build import create_parallel
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.lower.mapping.tiles import LEAST_EXTENT, other_dimension
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy_interleaved

# With fewer threads, a GPU would have less to do at a time.
_LEAST_THREADS = 1 << 15


def can_interleave(loop: Any) -> bool:
    """Whether a GPU's thread should have all points of the last dimension of an scf.parallel."""
    body, trips = body_of(loop), loop_trips(loop)
    *others, last = loop.regions[0].blocks[0].arguments
    count, threads = trips[-1], known_product(trips[:-1])
    if count is None or not 1 < count < LEAST_EXTENT or not others:
        return False
    if threads is not None and threads < _LEAST_THREADS:
        return False
    lowers, _, steps, _ = ops.operand_groups(loop)
    if ops.known_index(lowers[-1]) is None or ops.known_index(steps[-1]) is None:
        return False
    if not all(is_pure(op) or access_of(op) is not None for op in body):
        return False
    accesses = [one for op in body for one in accesses_in(op)]
    if not all(one.indices and one.indices[-1] == last for one in accesses if one.writes):
        return False
    along = {other_dimension(one, last, others) for one in accesses if not one.writes}
    return along - {None} == {others[-1]}


def interleave_last_dimension(loop: Any) -> Any:
    """The loop, for which that is so, with the points of its last dimension one after the other in
    its body. Other short dimensions become the first ones, as a block has points of the last."""
    trips = loop_trips(loop)
    *others, last = loop.regions[0].blocks[0].arguments
    groups = ops.operand_groups(loop)[:3]
    first, step = (ops.known_index(groups[i][-1]) or 0 for i in (0, 2))
    order = sorted(range(len(others) - 1), key=lambda i: (trips[i] or LEAST_EXTENT) >= LEAST_EXTENT)
    order.append(len(others) - 1)
    with loop.location, ir.InsertionPoint(loop):
        made = create_parallel(*([one[i] for i in order] for one in groups))
        points = [ops.constant_index(first + step * i) for i in range(trips[-1] or 0)]
    block = made.regions[0].blocks[0]
    own = dict(zip((others[i] for i in order), block.arguments, strict=True))
    with ir.InsertionPoint(ops.terminator(block)):
        copy_interleaved(body_of(loop), [{**own, last: point} for point in points])
    ops.erase(loop)
    return made
