"""The branches of a `cf.switch`, and its expansion into a chain of `cf.cond_br`."""

from __future__ import annotations

from typing import Any, NamedTuple

from aotc import ops
from aotc.mlir import ir

_EQ = 0  # arith.cmpi's number


class Branch(NamedTuple):
    """A block that a switch may lead to, with the operands for its arguments. The value of the
    default branch is 0."""

    value: int
    block: Any
    operands: list[Any]


def switch_branches(switch: Any) -> list[Branch]:
    """The default branch, then the branch of each case."""
    _, default_count, _ = ir.DenseI32ArrayAttr(switch.attributes["operandSegmentSizes"])
    values, counts = [0], [default_count]
    if "case_values" in switch.attributes:
        values += [int(case) for case in switch.attributes["case_values"]]
        counts += list(ir.DenseI32ArrayAttr(switch.attributes["case_operand_segments"]))
    operands = list(switch.operands)[1:]
    branches = []
    for value, block, count in zip(values, switch.successors, counts, strict=True):
        branches.append(Branch(value, block, operands[:count]))
        operands = operands[count:]
    return branches


def expand_switch(switch: Any) -> None:
    """Replaces a switch by comparisons, each with a `cf.cond_br` to its case or to the next one."""
    default, *cases = switch_branches(switch)
    flag, block = switch.operands[0], switch.operation.block
    location = switch.location
    ops.erase(switch)
    with location:
        for number, case in enumerate(cases, 1):
            rest = default
            if number < len(cases):
                rest = Branch(0, block.create_after(), [])
            value = ir.IntegerAttr.get(flag.type, case.value)
            with ir.InsertionPoint(block):
                is_it = ops.compare(_EQ, flag, ops.constant_from(value))
                counts = [1, len(case.operands), len(rest.operands)]
                ir.Operation.create(
                    "cf.cond_br",
                    operands=[is_it, *case.operands, *rest.operands],
                    successors=[case.block, rest.block],
                    attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get(counts)},
                )
            block = rest.block
        if not cases:
            with ir.InsertionPoint(block):
                ir.Operation.create("cf.br", operands=default.operands, successors=[default.block])
