"""`aotc-verify-operations` (`--verify`): asserts that sizes, indices and types of operations fit.

MLIR's `generate-runtime-verification` inserts a `cf.assert` before each operation that it supports.
A single run would be too early for accesses and too late for the rest. Before affine loops are
lowered, it does not support their accesses, and its assertions would keep loops from being
recognized as parallel. After operations are lowered, casts have been folded and linalg is loops. So
the pass runs twice, and each run keeps the assertions that the other run does not.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, ClassVar

from aotc import ops
from aotc.analysis.assertions import EQ, ULT
from aotc.attributes import FORMAT_ATTRIBUTE
from aotc.errors import InputError
from aotc.lower.passes.base import Lowering, OwnPass, Parsers
from aotc.mlir import ir
from aotc.slices import mixed_lists

_UPSTREAM = "generate-runtime-verification"
# The message: a title, the operation's text, the reason, and a location with the input's path.
_MESSAGE = re.compile(
    r'ERROR: Runtime op verification failed\n(?:%[^=\n]* = )?"?(?P<operation>[\w.]+).*\n'
    r"\^ (?P<reason>.*?)(?:\nLocation: .*)?",
    re.DOTALL,
)
# Access → the operand number of its memref or tensor; the indices follow it.
_ACCESSES = {
    "memref.load": 0,
    "memref.store": 1,
    "memref.atomic_rmw": 1,
    "memref.generic_atomic_rmw": 0,
    "tensor.extract": 0,
    "tensor.insert": 1,
}
_VIEWS = ("memref.subview", "tensor.extract_slice")
_DIMENSIONS = ("memref.dim", "tensor.dim")
_OF_DIMENSION = re.compile(r"offset (?P<offset>\d+) is|runs out-of-bounds along dimension (\d+)")
_UNKNOWN = ir.ShapedType.get_dynamic_size()
_SLE = 3  # arith.cmpi's predicate
_LOOPS = ("scf.for", "scf.while", "scf.parallel", "scf.forall", "affine.for", "affine.parallel")
_KERNELS = ("gpu.launch", "gpu.module")


class Part(Enum):
    """The operations that one run verifies."""

    OPERATIONS = "operations"
    ACCESSES = "accesses"


def _parse_part(word: str) -> Part:
    try:
        return Part(word)
    except ValueError:
        known = ", ".join(part.value for part in Part)
        raise InputError(f"aotc-verify-operations{{part={word}}}: known are {known}.") from None


class VerifyOperations(OwnPass, frozen=True):
    """Asserts what operations require of their operands.

    `part=operations`: everything that MLIR verifies, except accesses to elements in loops, kernels
    and bodies of linalg operations. `part=accesses`: all accesses to elements.
    """

    name = "aotc-verify-operations"
    parsers: ClassVar[Parsers] = {"part": _parse_part}
    reason: str = "--verify: an operation whose operands do not fit is a failure"
    part: Part = Part.OPERATIONS

    def run(self, lowering: Lowering) -> None:
        lowering.run_upstream(_UPSTREAM)
        with lowering.module.context:
            # Operation name → the next operation with that name after the current one.
            next_by_name: dict[str, Any] = {}
            for operation in reversed(ops.walk(lowering.module.operation)):
                if operation.name in (*_ACCESSES, *_VIEWS, *_DIMENSIONS):
                    next_by_name[operation.name] = operation
                elif operation.name == "cf.assert":
                    self._rewrite(operation, next_by_name)
        # Removes the conditions of erased assertions, and duplicate sizes.
        lowering.run_upstream("cse")

    def _rewrite(self, assertion: Any, next_by_name: dict[str, Any]) -> None:
        message = ir.StringAttr(assertion.attributes["msg"]).value_bytes.decode()
        found = _MESSAGE.fullmatch(message)
        if found is None:
            return
        name = found["operation"]
        if not self._keeps(assertion, name):
            ops.erase(assertion)
        elif name in _ACCESSES:
            _assert_each_index(assertion, next_by_name[name])
        elif name in _VIEWS:
            _assert_view(assertion, next_by_name[name], found["reason"])
        elif name in _DIMENSIONS:
            _assert_dimension(assertion, next_by_name[name])
        else:
            _set_message(assertion, f"{name}: {found['reason']}")

    def _keeps(self, assertion: Any, operation: str) -> bool:
        is_access = operation in _ACCESSES
        if self.part is Part.ACCESSES:
            return is_access
        around = [op.name for op in ops.ancestors(assertion)]
        if any(name.startswith("linalg.") for name in around):
            return False
        return not (is_access and any(name in (*_LOOPS, *_KERNELS) for name in around))


def _assert_each_index(assertion: Any, access: Any) -> None:
    """Replaces the assertion by one for each dimension of the access. The comparison is unsigned,
    so that a negative index fails as well."""
    name = access.name
    accessed, *indices = list(access.operands)[_ACCESSES[name] :]
    with assertion.location, ir.InsertionPoint(assertion):
        for dimension, index in enumerate(indices):
            size = ops.size(accessed, dimension)
            known, length = ops.known_index(index), ops.known_index(size)
            if known is not None and length is not None and 0 <= known < length:
                continue
            _assert(
                ops.compare(ULT, index, size),
                f"{name}: an index is out of bounds for dimension {dimension}",
                f"{name}: index %lld is out of bounds for dimension {dimension} of size %lld",
            )
    ops.erase(assertion)


def _assert_view(assertion: Any, view: Any, reason: str) -> None:
    """Replaces the assertion by one of a view's first or last index. An empty view may start after
    the last element, and has no last index."""
    found = _OF_DIMENSION.search(reason)
    if found is None:
        _set_message(assertion, f"{view.name}: {reason}")
        return
    dimension = int(found[1] or found[2])
    with assertion.location, ir.InsertionPoint(assertion):
        of_source = ops.size(view.operands[0], dimension)
        offset, size, stride = (
            ops.constant_index(one) if isinstance(one, int) else one
            for one in (mixed[dimension] for mixed in mixed_lists(view))
        )
        zero, one = ops.constant_index(0), ops.constant_index(1)
        if found["offset"]:
            index, what = offset, "offset"
            is_empty, is_end = ops.compare(EQ, size, zero), ops.compare(EQ, offset, of_source)
            otherwise = ops.binary("arith.andi", is_empty, is_end)
        else:
            steps = ops.index_op("arith.subi", size, one)
            far = ops.index_op("arith.muli", steps, stride)
            index, what = ops.index_op("arith.addi", offset, far), "last index"
            otherwise = ops.compare(_SLE, size, zero)
        is_inside = ops.compare(ULT, index, of_source)
        _assert(
            ops.binary("arith.ori", is_inside, otherwise),
            f"{view.name}: the {what} is out of bounds for dimension {dimension}",
            f"{view.name}: {what} %lld is out of bounds for dimension {dimension} of size %lld",
        )
    ops.erase(assertion)


def _assert_dimension(assertion: Any, dim: Any) -> None:
    value, index = dim.operands
    with assertion.location, ir.InsertionPoint(assertion):
        rank = ops.create(dim.name.replace("dim", "rank"), [value], [ops.index()]).result
        _assert(
            ops.compare(ULT, index, rank),
            f"{dim.name}: the value has no such dimension",
            f"{dim.name}: %lld is no dimension of a value of rank %lld",
        )
    ops.erase(assertion)


def _set_message(assertion: Any, text: str) -> None:
    """Sets the assertion's message. If the assertion compares two sizes for equality, the message
    shows them."""
    assertion.attributes["msg"] = ir.StringAttr.get(text)
    comparison = ops.defining(assertion.operands[0])
    if comparison is not None and comparison.name == "index.cmp":
        if "eq" not in str(comparison.attributes["pred"]):
            return
        with assertion.location, ir.InsertionPoint(assertion):
            assertion.operands[0] = ops.compare(EQ, *comparison.operands)
        comparison = ops.defining(assertion.operands[0])
    if comparison is None or comparison.name != "arith.cmpi":
        return
    is_equality = ir.IntegerAttr(comparison.attributes["predicate"]).value == EQ
    if is_equality and comparison.operands[0].type == ops.index():
        plain = text.replace("%", "%%")
        assertion.attributes[FORMAT_ATTRIBUTE] = ir.StringAttr.get(f"{plain}: %lld is not %lld")


def _assert(condition: Any, message: str, format_: str) -> None:
    ops.create_assert(condition, message, **{FORMAT_ATTRIBUTE: ir.StringAttr.get(format_)})
