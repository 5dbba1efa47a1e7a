"""How K and V lie where several matrices of Q share them."""

from __future__ import annotations

import pytest

from aotc import ops
from aotc.kernels.attention.elements import Element, Place
from aotc.kernels.attention.operands import BATCH, KEY, shared_operand
from aotc.mlir import ir

COLUMN = "d"
# Of 2 heads, each for 2 of Q: b / 4 and b % 4 / 2, or b % 2, of the batch of Q.
EACH = (("high", BATCH, 4), ("high", ("low", BATCH, 4), 2))
BY_TURNS = (("high", ("high", BATCH, 2), 2), ("low", BATCH, 2))


@pytest.mark.parametrize(("places", "group"), [(EACH, 2), (BY_TURNS, None)])
def test_groups_are_of_heads_that_follow_each_other(
    places: tuple[Place, Place], group: int | None
) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func private @f() -> tensor<3x2x8x64xf16>")
        (function,) = ops.find(module.operation, "func.func")
        type_ = function.attributes["function_type"].value.results[0]
        with ir.InsertionPoint(module.body):
            tensor = ops.create("tensor.empty", [], [type_]).result
        found = shared_operand(Element(tensor, (*places, KEY, COLUMN)), KEY, COLUMN)
        assert (found and found.group) == group
