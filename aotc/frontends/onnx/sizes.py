"""Checks of sizes about which torch-mlir makes wrong assumptions."""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.errors import InputError

_EQ, _SGE = 0, 5  # predicates of arith.cmpi
_MESSAGE = "the batches of a product have several sizes, which are known at run time alone"


def check_sizes(function: Any) -> None:
    """Raises InputError for sizes that torch-mlir computed from unknown ones. It represents unknown
    sizes by negative numbers."""
    for operation in ops.walk(function):
        for result in operation.results:
            if re.search(r"[<x]-\d", str(result.type)):
                name = re.search(r'loc\("(onnx\.[^"]*)"', str(operation.location))
                where = f"{name[1]}: " if name else ""
                raise InputError(
                    f"{where}sizes that are known at run time alone have no lowering here"
                )


def check_repeats(function: Any) -> None:
    """Asserts that a Tile's number of repeats is not negative. torch-mlir treats -1 as an unchanged
    size."""
    from torch_mlir import ir

    for select in ops.find(function, "arith.select"):
        if not str(select.location).startswith('loc("onnx.Tile'):
            continue
        comparison, (kept, repeats) = select.operands[0].owner, select.operands[1:]
        if ops.known_index(kept) != 1 or getattr(comparison, "name", "") != "arith.cmpi":
            continue
        number = comparison.operands[0]
        with select.location, ir.InsertionPoint(select):
            is_good = ops.compare(_SGE, number, comparison.operands[1])
            ops.create_assert(is_good, "a number of repeats is negative")
        select.results[0].replace_all_uses_with(repeats)


def check_batches(function: Any) -> None:
    """Asserts that unknown batch sizes of a matmul's operands are equal. torch-mlir reads both
    operands up to the larger size, even if one has the size 1, which ONNX broadcasts."""
    from torch_mlir import ir

    for larger in list(ops.find(function, "arith.maxui")):
        one, other = larger.operands
        if not all(getattr(size.owner, "name", "") == "tensor.dim" for size in (one, other)):
            continue
        with larger.location, ir.InsertionPoint(larger):
            ops.create_assert(ops.compare(_EQ, one, other), _MESSAGE)
        ops.replace(larger, [one])
