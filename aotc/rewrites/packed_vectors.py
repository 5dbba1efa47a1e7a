"""Vectors of i1, i4, i24 or f4 in memory → vectors of whole bytes.

LLVM packs the elements of a vector bit by bit. In a memref each element begins at a byte, and its
size is the next power of two. So a vector is read as a vector of integers of that size, which are
truncated; a store works the other way round.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.types import is_packed
from aotc.mlir import ir

# Operation → the index of its memref operand, and of an operand of the memref's element type, if it
# has one (-1 is the last operand).
_READS = {
    "vector.load": (0, None),
    "vector.transfer_read": (0, None),
    "vector.maskedload": (0, -1),
    "vector.gather": (0, -1),
    "vector.expandload": (0, -1),
    "affine.vector_load": (0, None),
}
_WRITES = {
    "vector.store": (1, 0),
    "vector.transfer_write": (1, 0),
    "vector.maskedstore": (0, -1),
    "vector.scatter": (0, -1),
    "vector.compressstore": (0, -1),
    "affine.vector_store": (1, 0),
}
_BYTE = 8


def widen_packed_vectors(root: Any) -> None:
    """Changes the accesses under `root` in place. (Accesses from bufferized tensors are not
    packed.)"""
    for operation in ops.find(root, *_READS, *_WRITES):
        base, value = (_READS | _WRITES)[operation.name]
        memref = operation.operands[base]
        if not isinstance(memref.type, ir.MemRefType) or not is_packed(memref.type.element_type):
            continue
        with operation.location, ir.InsertionPoint(operation):
            operation.operands[base] = _of_bytes(memref)
            for index in _of_elements(operation, value):
                operand = operation.operands[index]
                operation.operands[index] = _widened(operand)
            if operation.name in _READS:
                _replace(operation, memref.type.element_type)


def _of_elements(operation: Any, value: int | None) -> list[int]:
    """The indices of the operands that have the memref's element type."""
    if operation.name == "vector.transfer_read":
        # The padding operand follows the indices.
        return [1 + operation.operands[0].type.rank]
    return [] if value is None else [value % len(operation.operands)]


def _width(element: Any) -> int:
    """The bits of an element in memory."""
    width: int = element.width
    return max(_BYTE, 1 << (width - 1).bit_length())


def _of_bytes(memref: Any) -> Any:
    """The same memory, as a memref of integers of whole bytes. The descriptor does not change."""
    type_ = memref.type
    wide = ir.MemRefType.get(
        type_.shape, ops.integer(_width(type_.element_type)), type_.layout, type_.memory_space
    )
    return ops.unary("builtin.unrealized_conversion_cast", memref, wide)


def _with_integers(type_: Any) -> Any:
    return ops.with_element_type(type_, ops.integer(ops.element_type(type_).width))


def _widened(value: Any) -> Any:
    type_ = value.type
    element = ops.element_type(type_)
    if isinstance(element, ir.FloatType):
        value = ops.unary("arith.bitcast", value, _with_integers(type_))
    wide = ops.with_element_type(type_, ops.integer(_width(element)))
    return ops.unary("arith.extui", value, wide)


def _replace(operation: Any, element: Any) -> None:
    """Replaces a read by one of wide integers, whose result is truncated for its users."""
    narrow = operation.results[0]
    type_ = narrow.type
    wide = ops.with_element_type(type_, ops.integer(_width(element)))
    attributes = ops.attributes_of(operation)
    read = ops.create(operation.name, list(operation.operands), [wide], attributes).result
    value = ops.unary("arith.trunci", read, _with_integers(type_))
    if isinstance(element, ir.FloatType):
        value = ops.unary("arith.bitcast", value, type_)
    narrow.replace_all_uses_with(value)
    ops.erase(operation)
