"""`aotc-clone-casts`: each user of a widened tensor gets its own widening cast.

An example is the f64 copy of an input from which the variance of a layer norm is computed. The cast
is then fused with its user, which loads the narrow tensor. MLIR fuses only producers with a single
user. Otherwise the wide tensor, which has twice the bytes, would be stored.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import maps_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_WIDENING = ("arith.extf", "arith.extsi", "arith.extui")


class CloneCasts(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-clone-casts"
    reason: str = "each operation that reads a widened tensor widens it itself"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for generic in ops.find(lowering.module.operation, "linalg.generic"):
                if _widens(generic):
                    _separate(generic)


def _widens(generic: Any) -> bool:
    """Whether the operation only widens each element of its input."""
    inputs, _ = ops.operand_groups(generic)
    cast, *others = ops.content(generic)
    (argument, *_) = generic.regions[0].blocks[0].arguments
    return (
        len(generic.results) == len(inputs) == len(others) == 1
        and cast.name in _WIDENING
        and list(cast.operands) == [argument]
        and others[0].operands[0] == cast.results[0]
        and all(map_ == ir.AffineMap.get_identity(map_.n_dims) for map_ in maps_of(generic))
    )


def _separate(generic: Any) -> None:
    users: list[Any] = []
    for use in generic.results[0].uses:
        user = use.owner.operation
        if user.name == "linalg.generic" and user not in users:
            users.append(user)
    for user in users[1:]:
        with ir.InsertionPoint(user):
            clone = generic.clone()
        for i, operand in enumerate(user.operands):
            if operand == generic.results[0]:
                user.operands[i] = clone.results[0]
