"""Consecutive accesses of one thread become vector accesses, in a kernel for GPUs only.

The author of such a kernel marks them: a thread's loads (or stores) of consecutive elements follow
each other in the code. The kernel tests at run time whether their addresses are aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import llvm_ops, ops
from aotc.analysis.effects import Access, access_of, is_pure
from aotc.attributes import VECTOR_ATTRIBUTE
from aotc.mlir import ir
from aotc.rewrites.cloning import copy
from aotc.rewrites.wide_accesses import (
    are_aligned,
    elements_of,
    load_vector,
    may_be_aligned,
    store_vector,
)

_MOST_STEPS = 4
# Bits of the narrowest register of inline assembly.
_NARROWEST_REGISTER = 32


def mark_neighbour(operation: Any, count: int) -> None:
    """Marks an access as one of `count` accesses that may become one vector access. An access
    to a memref of rank 0 is not marked."""
    access = access_of(operation)
    if access is None or not len(access.indices):
        return
    operation.attributes[VECTOR_ATTRIBUTE] = ir.IntegerAttr.get(ops.integer(64), count)


class _Place(Struct, frozen=True):
    """An access, and its last index as a sum of `terms` and a constant."""

    access: Access
    terms: frozenset[Any]
    constant: int

    def follows(self, first: _Place, distance: int) -> bool:
        mine, other = self.access, first.access
        return (
            (mine.memref, mine.writes, mine.indices[:-1])
            == (other.memref, other.writes, other.indices[:-1])
            and self.terms == first.terms
            and self.constant == first.constant + distance
        )


def vectorize_neighbours(gpu_module: Any) -> None:
    """Vectorizes the marked accesses, and removes the marks."""
    with gpu_module.context:
        blocks = {}
        for operation in ops.find(gpu_module, "memref.load", "memref.store"):
            if VECTOR_ATTRIBUTE in operation.attributes:
                blocks[operation.block] = operation.block
        for block in blocks:
            for run in _runs(ops.operations_in(block)):
                _vectorize(run)


def _runs(operations: Sequence[Any]) -> list[list[Access]]:
    """Groups of marked accesses, each of which can become one vector access."""
    found: list[list[Access]] = []
    run: list[_Place] = []
    for operation in operations:
        if VECTOR_ATTRIBUTE not in operation.attributes:
            if not is_pure(operation) and operation.name != "arith.constant":
                run = []
            continue
        count = ir.IntegerAttr(operation.attributes[VECTOR_ATTRIBUTE]).value
        del operation.attributes[VECTOR_ATTRIBUTE]
        access = access_of(operation)
        assert access is not None
        place = _Place(access, *_sum(access.indices[-1]))
        if not run or not place.follows(run[0], len(run)):
            run = []
        if run or place.constant % count == 0:
            run.append(place)
        if len(run) == count:
            found.append([one.access for one in run])
            run = []
    return found


def _sum(value: Any, steps: int = _MOST_STEPS) -> tuple[frozenset[Any], int]:
    """An index as a sum of distinct values and a constant, found through at most `steps` nested
    additions."""
    known = ops.known_index(value)
    if known is not None:
        return frozenset(), known
    owner = ops.defining(value)
    if steps > 0 and owner is not None and owner.name == "arith.addi":
        (left, first), (right, second) = (_sum(operand, steps - 1) for operand in owner.operands)
        if not left & right:
            return left | right, first + second
    return frozenset([value]), 0


def _vectorize(run: Sequence[Access]) -> None:
    memref, count, first = run[0].memref, len(run), run[0].operation
    if not may_be_aligned(memref.type, count):
        return
    if run[0].writes:
        _store(run, memref, count)
    else:
        with first.location, ir.InsertionPoint(first):
            _load(run, memref, count)
    for access in run:
        ops.erase(access.operation)


def _store(run: Sequence[Access], memref: Any, count: int) -> None:
    last = run[-1].operation

    def apart() -> None:
        for access in run:
            copy(access.operation, {})

    with last.location, ir.InsertionPoint(last):
        values = [access.operation.operands[0] for access in run]
        indices = run[0].indices
        is_aligned = are_aligned([memref], indices[-1:], count)
        ops.create_either(is_aligned, lambda: store_vector(values, memref, indices), apart)


def _load(run: Sequence[Access], memref: Any, count: int) -> None:
    element = run[0].operation.results[0].type
    type_ = ir.VectorType.get([count], element)
    *outer, start = run[0].indices
    is_aligned = are_aligned([memref], [start], count)
    branch = ops.create("scf.if", [is_aligned], [type_], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        ops.create("scf.yield", [load_vector(memref, [*outer, start], count)])
    with ir.InsertionPoint(branch.regions[1].blocks.append()):
        places = [ops.index_op("arith.addi", start, ops.constant_index(at)) for at in range(count)]
        loads = [ops.create("memref.load", [memref, *outer, at], [element]) for at in places]
        elements = [_hide(load.result) for load in loads]
        ops.create("scf.yield", [ops.create("vector.from_elements", elements, [type_]).result])
    for access, value in zip(run, elements_of(branch.result), strict=True):
        access.operation.results[0].replace_all_uses_with(value)


def _hide(value: Any) -> Any:
    """The value, hidden from LLVM by inline assembly. Otherwise LLVM would make a vector load of
    these loads, and merge it with the vector load of the other branch, with the smaller alignment
    of the two."""
    width = _NARROWEST_REGISTER
    if not isinstance(value.type, ir.IntegerType):
        bits = ops.integer(value.type.width)
        return ops.unary(
            "arith.bitcast", _hide(ops.unary("arith.bitcast", value, bits)), value.type
        )
    if value.type.width < width:
        wide = _hide(ops.unary("arith.extui", value, ops.integer(width)))
        return ops.unary("arith.trunci", wide, value.type)
    register = "r" if value.type.width == width else "l"
    return llvm_ops.assembly("", f"={register},0", [value], value.type)
