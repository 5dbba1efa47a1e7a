"""Assertions in kernels: fewer branches, and the location and message that the driver prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotc import ops
from aotc.analysis.assertions import compared_by
from aotc.analysis.effects import is_pure
from aotc.input.source import Source
from aotc.mlir import ir


def merge_assertions(device: Any, source: Source) -> None:
    """Merges assertions with the same message and place that follow each other.

    So a thread with several elements checks them together, and not one after the other. MLIR's
    lowering prints the file and line of an assertion only if its location is a plain file location,
    otherwise "(unknown)" (for a call or a name). So each assertion gets the first file place in its
    location, without the folder, as artifacts must not depend on it.
    """
    blocks = dict.fromkeys(assertion.block for assertion in ops.find(device, "cf.assert"))
    for block in blocks:
        before = None
        for operation in ops.operations_in(block):
            if operation.name == "cf.assert":
                _place(operation, source)
                if _print_numbers(operation):
                    before = None
                    continue
                if before is not None and _says_the_same(before, operation):
                    _merge(before, operation)
                before = operation
            elif not is_pure(operation):
                before = None


def _print_numbers(assertion: Any) -> bool:
    """Adds a printf of the numbers that an assertion compares, before its failure, if it has a
    format: the driver's message is a constant."""
    compared = compared_by(assertion)
    if compared is None:
        return False
    i1, i64 = ops.integer(1), ops.integer(64)
    with assertion.location, ir.InsertionPoint(assertion):
        fails = ops.binary("arith.xori", assertion.operands[0], ops.constant(i1, 1))
        numbers = [ops.unary("arith.index_cast", number, i64) for number in compared.numbers]
        text = {"format": ir.StringAttr.get(f"{compared.format}\n")}
        ops.create_if(fails, lambda: ops.create("gpu.printf", numbers, attributes=text))
    return True


def _place(assertion: Any, source: Source) -> None:
    place = source.place(assertion.location)
    if place is not None:
        file = Path(place.file).name
        assertion.location = ir.Location.file(file, place.line, place.column)


def _says_the_same(one: Any, other: Any) -> bool:
    return bool(one.attributes["msg"] == other.attributes["msg"] and one.location == other.location)


def _merge(one: Any, other: Any) -> None:
    """Makes `other`, the later assertion, check both conditions."""
    with other.location, ir.InsertionPoint(other):
        other.operands[0] = ops.binary("arith.andi", one.operands[0], other.operands[0])
    ops.erase(one)
