"""Values that have the same sizes: operands and results of operations, and sizes of buffers."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

# Operation → the number of the operand that has the sizes of its result.
_OPERANDS = {
    "tensor.cast": 0,
    "tensor.bitcast": 0,
    "memref.cast": 0,
    "memref.memory_space_cast": 0,
    "bufferization.to_tensor": 0,
    "bufferization.to_buffer": 0,
    "bufferization.clone": 0,
    "tensor.insert": 1,
    "tensor.insert_slice": 1,
    "tensor.scatter": 1,
    "vector.transfer_write": 1,
    "bufferization.materialize_in_destination": 1,
    "linalg.pack": 1,
    "linalg.unpack": 1,
}
_TENSOR = ir.RankedTensorType
_SHAPED = (_TENSOR, ir.MemRefType)
_ELEMENTWISE_DIALECTS = ("arith", "math", "complex")


def elementwise_operands(operation: Any) -> list[Any]:
    """The tensor operands of an elementwise operation on tensors, which have the same sizes. Empty
    for another operation."""
    operands = [one for one in operation.operands if isinstance(one.type, _TENSOR)]
    # One condition for all elements chooses a tensor, which may have other sizes than the other.
    is_choice = operation.name == "arith.select" and len(operands) != len(operation.operands)
    is_elementwise = operation.name.split(".")[0] in _ELEMENTWISE_DIALECTS
    return operands if is_elementwise and not is_choice else []


def same_sized_operand(operation: Any, number: int) -> Any | None:
    """The operand that has the sizes of result `number`; None if there is none. The operands of
    elementwise operations on tensors have the same sizes, as `aotc-check-sizes` asserts."""
    name, operands = operation.name, list(operation.operands)
    found = None
    if name in _OPERANDS:
        found = operands[_OPERANDS[name]]
    elif name == "scf.forall":
        found = ops.operand_groups(operation)[-1][number]
    elif name.startswith("linalg.") and len(operands) >= len(operation.results):
        # The last operands are the inits of the results.
        found = operands[len(operands) - len(operation.results) + number]
    elif of_elements := elementwise_operands(operation):
        found = of_elements[0]
    return found if found is not None and isinstance(found.type, _SHAPED) else None


def is_size_of(size: Any, buffer: Any, dimension: int) -> bool:
    """Whether a value of type index is known to be the size of a dimension of a buffer."""
    if not ir.MemRefType(buffer.type).is_dynamic_dim(dimension):
        return bool(ops.known_index(size) == ir.MemRefType(buffer.type).shape[dimension])
    owner = ops.defining(size)
    if owner is not None and owner.name == "memref.dim":
        read = ops.known_index(owner.operands[1])
        return read is not None and _origin(buffer, dimension) == _origin(owner.operands[0], read)
    return bool(_origin(buffer, dimension) == (size, None))


def _origin(buffer: Any, dimension: int) -> tuple[Any, int | None]:
    """Where the dynamic size of a dimension comes from: a value of type index, or the dimension of
    another buffer."""
    owner = ops.defining(buffer)
    if owner is None:
        return buffer, dimension
    name = owner.name
    dynamic = sum(map(ir.MemRefType(buffer.type).is_dynamic_dim, range(dimension)))
    if name in ("memref.alloc", "memref.alloca"):
        return _origin_of_size(owner.operands[dynamic])
    if name == "memref.expand_shape":
        return _origin_of_size(owner.operands[1 + dynamic])
    if name == "memref.view":
        return _origin_of_size(owner.operands[2 + dynamic])
    if name == "memref.cast" and isinstance(owner.operands[0].type, ir.MemRefType):
        return _origin(owner.operands[0], dimension)
    if name == "memref.collapse_shape":
        group = ir.ArrayAttr(ir.ArrayAttr(owner.attributes["reassociation"])[dimension])
        shape = ir.MemRefType(owner.operands[0].type).shape
        several = [i.value for i in group if shape[i.value] != 1]
        if len(several) == 1:
            return _origin(owner.operands[0], several[0])
    return buffer, dimension


def _origin_of_size(size: Any) -> tuple[Any, int | None]:
    owner = ops.defining(size)
    if owner is not None and owner.name == "memref.dim":
        dimension = ops.known_index(owner.operands[1])
        if dimension is not None:
            return _origin(owner.operands[0], dimension)
    return size, None
