"""How many points that follow each other a thread of a GPU takes, so that its accesses are wide."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.contiguous import (
    VECTOR_BYTES,
    are_neighbours,
    coefficient,
    distances,
    element_bytes,
)
from aotc.analysis.effects import access_of
from aotc.lower.mapping.nest import known_product
from aotc.rewrites.cloning import body_of

# A loop of fewer points is over before wide accesses could make it faster.
_LEAST_POINTS = 1 << 16


class Neighbours(Struct, frozen=True):
    """`count` points for each thread, of the `most` that would make a vector of 16 bytes."""

    count: int
    most: int


def plan_neighbours(loop: Any, trips: list[int | None]) -> Neighbours | None:
    """How many neighbours along the last dimension of an scf.parallel make a vector of the widest
    type that the loop accesses; None if that is one, or they do not make half of a vector.

    All accesses are of neighbours, or of what all points along that dimension have in common. Of
    narrower types there are fewer bytes than a vector could have: with more of the widest one than
    a thread can access at once, neighbouring threads would not access neighbouring bytes.
    """
    total = known_product(trips)
    if total is not None and total < _LEAST_POINTS:
        return None
    variable = loop.regions[0].blocks[0].arguments[len(trips) - 1]
    if ops.known_index(ops.operand_groups(loop)[2][-1]) != 1:
        return None
    accesses = [a for operation in body_of(loop) if (a := access_of(operation)) is not None]
    moving = [
        access
        for access in accesses
        if any(coefficient(value, variable) != 0 for value in (access.memref, *access.indices))
    ]
    if not moving or not all(are_neighbours(access, [variable]) for access in moving):
        return None
    sizes = [size for a in moving if (size := element_bytes(a.memref.type)) is not None]
    known = [one for a in moving for one in distances(a.memref.type)[:-1] if one is not None]
    if len(trips) > 1 and trips[-1] is not None:
        # Rows that are no whole vectors are rarely longer in memory than they are here.
        known.append(trips[-1])
    most = VECTOR_BYTES // max(sizes)
    count = math.gcd(most, *known)
    return Neighbours(count, most) if count > 1 and 2 * count >= most else None
