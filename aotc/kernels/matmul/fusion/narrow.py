"""Rounds a matmul's result where it is computed, if its only reader rounds it before use.

An elementwise operation may read the results of several matmuls, as in a gated linear unit. It is
fused to one of the matmuls, and the results of the others are stored to memory. If the operation
rounds such a result before use, a separate cast replaces the rounding. The cast is then fused to
the matmul that computes the result, so that half as many bytes are written and read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.kernels.matmul.fusion.elementwise import is_elementwise
from aotc.kernels.matmul.recognition import Matmul
from aotc.mlir import ir

_ROUNDS = "arith.truncf"
_DEALLOC = "memref.dealloc"


def narrow_results(matmuls: Sequence[Matmul]) -> None:
    """Narrows the results of matmuls, which are in the order of the module's operations, in
    place."""
    for number, matmul in enumerate(matmuls):
        reader = _only_reader(matmul)
        if reader is None:
            continue
        later = [other.c for other in matmuls[number + 1 :]]
        if any(value in later for value in reader.operands):
            _round_early(matmul, reader)


def _only_reader(matmul: Matmul) -> Any | None:
    """The elementwise operation that is the only reader of C; None if there is no such operation,
    or C is no allocation."""
    owner = ops.defining(matmul.c)
    if owner is None or owner.name != "memref.alloc":
        return None
    known = [matmul.operation, *([] if matmul.fill is None else [matmul.fill])]
    users = [use.owner.operation for use in matmul.c.uses]
    readers = [user for user in users if user.name not in (_DEALLOC, "memref.dim")]
    others = [user for user in readers if user not in known]
    if len(others) != 1 or not is_elementwise(others[0]):
        return None
    return others[0] if others[0].block == matmul.operation.block else None


def _round_early(matmul: Matmul, reader: Any) -> None:
    inputs, _ = ops.operand_groups(reader)
    number = inputs.index(matmul.c) if matmul.c in inputs else None
    if number is None:
        return
    argument = reader.regions[0].blocks[0].arguments[number]
    roundings = [use.owner.operation for use in argument.uses]
    types = {str(rounding.results[0].type) for rounding in roundings if rounding.results}
    if len(types) != 1 or any(rounding.name != _ROUNDS for rounding in roundings):
        return
    element = roundings[0].results[0].type
    with matmul.operation.location:
        rounded = _cast(matmul, element, roundings[0])
    reader.operands[number] = rounded
    argument.set_type(element)
    for rounding in roundings:
        ops.replace(rounding, [argument])


def _cast(matmul: Matmul, element: Any, rounding: Any) -> Any:
    """A new buffer with the matmul's result, rounded as by `rounding`. The cast is inserted behind
    the matmul."""
    allocation, operation = ops.defining(matmul.c), matmul.operation
    assert allocation is not None
    type_ = ir.MemRefType.get(ir.MemRefType(matmul.c.type).shape, element)
    attributes = ops.attributes_of(allocation)
    with ir.InsertionPoint(allocation):
        buffer = ops.create("memref.alloc", list(allocation.operands), [type_], attributes).result

    def rounded(value: Any, _: Any) -> Any:
        return ops.create(_ROUNDS, [value], [element], ops.attributes_of(rounding)).result

    maps = [ir.AffineMap.get_identity(type_.rank)] * 2
    with ir.InsertionPoint.after(operation):
        ops.create_generic([matmul.c, buffer], maps, rounded)
    for use in list(matmul.c.uses):
        user = use.owner.operation
        if user.name == _DEALLOC:
            with ir.InsertionPoint(user):
                ops.create(_DEALLOC, [buffer])
    return buffer
