"""Finds the image that an operation copies to A or B with a border of zeros.

TMA fills elements outside of an image with zeros, and the CPU device's copies of images with
strides write zeros themselves. Such kernels read the image itself, and the padding operation is
only executed in front of other kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from msgspec.structs import replace

from aotc import ops
from aotc.analysis.access import accesses_no_element
from aotc.analysis.aliasing import Roots
from aotc.analysis.generics import maps_of
from aotc.kernels.matmul.implicit_gemm.cpu.phases import phases_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Padding
from aotc.kernels.matmul.recognition import Matmul
from aotc.mlir import ir


def with_padding(matmul: Matmul, roots: Roots) -> Matmul:
    """The implicit GEMM with the operation that pads its A or B, and the image, if there is one
    that kernels read."""
    return _with_padding(matmul, "a", roots) or _with_padding(matmul, "b", roots) or matmul


def _with_padding(matmul: Matmul, operand: str, roots: Roots) -> Matmul | None:
    problem, buffer = matmul.problem, getattr(matmul, operand)
    assert isinstance(problem, ImplicitGemm)
    loops = (*problem.batch, *problem.rows, *problem.columns, *problem.k_loops)
    if any(one.size is None and one.source[0] == operand for one in loops):
        return None  # the image may have another size
    allocation = ops.defining(buffer)
    if [matmul.a, matmul.b, matmul.c].count(buffer) > 1:
        return None
    if allocation is None or allocation.name != "memref.alloc":
        return None
    users = [use.owner.operation for use in buffer.uses]
    writers = [user for user in users if user.name == "linalg.generic"]
    writers = [user for user in writers if user != matmul.operation]
    others = [one for one in users if one not in (*writers, matmul.operation)]
    if len(writers) != 1 or any(one.name not in ("memref.dim", "memref.dealloc") for one in others):
        return None
    [loop] = writers
    found = _padding(loop, buffer, operand)
    if found is None:
        return None
    source, padding = found
    # C may overlap the image, as so far only the padded copy is read.
    if roots.may_overlap(matmul.c, source):
        return None
    between = _between(loop, matmul.operation)
    if between is None or not all(_leaves(one, source, roots) for one in between):
        return None
    padded = replace(problem, padding=padding)
    if operand == "b" and phases_of(padded) is None:
        return None
    return replace(matmul, problem=padded, pad=loop, source=source, others=[source])


def _padding(loop: Any, buffer: Any, operand: str) -> tuple[Any, Padding] | None:
    """The image that the operation copies to the buffer with zeros around it, and the padding. None
    for another operation. For TMA, which copies A, the image must be an allocation."""
    inputs, outputs = ops.operand_groups(loop)
    rank = ir.MemRefType(buffer.type).rank
    if list(inputs) or list(outputs) != [buffer]:
        return None
    if maps_of(loop)[0] != ir.AffineMap.get_identity(rank):
        return None
    chosen = ops.defining(ops.content(loop)[-1].operands[0])
    if chosen is None or chosen.name != "arith.select" or not _is_zero(chosen.operands[2]):
        return None
    load = ops.defining(chosen.operands[1])
    if load is None or load.name != "memref.load":
        return None
    source, *places = load.operands
    owner = ops.defining(source)
    if operand == "a" and (owner is None or owner.name != "memref.alloc"):
        return None
    type_, padded = ir.MemRefType(source.type), ir.MemRefType(buffer.type)
    dimensions = list(range(type_.rank))
    if operand == "b" and type_.has_static_shape:
        # Dimensions of size 1 that the padded copy does not have.
        dimensions = [i for i in dimensions if ops.known_index(places[i]) != 0]
    if len(dimensions) != padded.rank:
        return None
    inside = set(_conditions(chosen.operands[0]))
    lows = [_low(places[one], number, inside) for number, one in enumerate(dimensions)]
    if None in lows:
        return None
    shape = [type_.shape[one] for one in dimensions]
    for dimension, low in enumerate(lows):
        is_same = shape[dimension] == padded.shape[dimension] and low == 0
        if not is_same and (dimension, low, shape[dimension]) not in inside:
            return None
    if len(inside) > sum(s != p for s, p in zip(shape, padded.shape, strict=True)):
        return None
    strides, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    return source, Padding(
        operand,
        str(type_),
        tuple(None if type_.is_dynamic_dim(i) else type_.shape[i] for i in dimensions),
        tuple(None if strides[i] == unknown else int(strides[i]) for i in dimensions),
        tuple(low or 0 for low in lows),
    )


def _low(place: Any, dimension: int, inside: Set[Any]) -> int | None:
    """The shift of the index along a dimension, where the conditions `inside` hold; None for
    another form of index."""
    owner = ops.defining(place)
    if owner is not None and owner.name == "arith.select":
        if not inside >= set(_conditions(owner.operands[0])):
            return None
        owner = ops.defining(owner.operands[1])
    return _moved(owner, dimension)


def _moved(operation: Any, dimension: int) -> int | None:
    """The constant that is subtracted from the loop's index along a dimension; None for another
    form of index."""
    if operation is None:
        return None
    low = 0
    if operation.name == "arith.subi":
        constant = ops.known_index(operation.operands[1])
        operation = ops.defining(operation.operands[0])
        if constant is None or operation is None:
            return None
        low = constant
    is_index = operation.name == "linalg.index"
    if not is_index or ir.IntegerAttr(operation.attributes["dim"]).value != dimension:
        return None
    return low


def _conditions(condition: Any) -> Iterator[tuple[int, int, int] | None]:
    """For each comparison of the condition that an index is inside of the image: the dimension, the
    shift of the index, and the size. None for a condition of another form."""
    owner = ops.defining(condition)
    if owner is not None and owner.name == "arith.andi":
        for operand in owner.operands:
            yield from _conditions(operand)
        return
    yield _condition(owner)


def _condition(operation: Any) -> tuple[int, int, int] | None:
    if operation is None or operation.name != "arith.cmpi":
        return None
    if ir.IntegerAttr(operation.attributes["predicate"]).value != 6:  # ult
        return None
    size, moved = ops.known_index(operation.operands[1]), ops.defining(operation.operands[0])
    while moved is not None and moved.name == "arith.subi":
        moved = ops.defining(moved.operands[0])
    if size is None or moved is None or moved.name != "linalg.index":
        return None
    dimension = int(ir.IntegerAttr(moved.attributes["dim"]).value)
    low = _moved(ops.defining(operation.operands[0]), dimension)
    return None if low is None else (dimension, low, size)


def _is_zero(value: Any) -> bool:
    number = ops.known_constant(value)
    return isinstance(number, ir.FloatAttr) and ir.FloatAttr(number).value == 0.0


def _between(first: Any, last: Any) -> list[Any] | None:
    """The operations between two operations of a block; None if `first` does not precede `last`."""
    if first.block != last.block:
        return None
    operations = ops.operations_in(first.block)
    begin, end = operations.index(first), operations.index(last)
    return operations[begin + 1 : end] if begin < end else None


def _leaves(operation: Any, source: Any, roots: Roots) -> bool:
    """Whether the operation does not write the image."""
    if operation.name == "linalg.generic":
        if any(inner.name == "memref.store" for inner in ops.walk(operation)):
            return False
        _, outputs = ops.operand_groups(operation)
        return not any(roots.may_overlap(output, source) for output in outputs)
    return accesses_no_element(operation)
