"""Vector loads and stores of a memref's elements, and their alignment: GPUs access up to 16 bytes
at once, at addresses that are multiples of the size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.contiguous import VECTOR_BYTES, element_bytes, static_strides
from aotc.mlir import ir

_EQ = 0  # of arith.cmpi


def may_be_aligned(type_: Any, count: int) -> bool:
    """Whether vectors of `count` elements can be aligned at the same column in each row."""
    known = [one for one in static_strides(type_)[:-1] if one is not None]
    return all(one % count == 0 for one in known)


def are_aligned(memrefs: Iterable[Any], places: Sequence[Any], count: int) -> Any:
    """A condition: vectors of `count` elements of the memrefs, for which `may_be_aligned` holds,
    are at aligned addresses. `places` are indices of the last dimension, or terms whose sum is such
    an index; each is tested."""
    parts: dict[Any, None] = {}
    addresses: list[Any] = []
    for memref in dict.fromkeys(memrefs):
        type_ = ir.MemRefType(memref.type)
        address = ops.unary("memref.extract_aligned_pointer_as_index", memref, ops.index())
        addresses.append(_rest(address, _alignment(type_, count)))
        parts |= dict.fromkeys(_unknown_parts(memref, type_))
    parts |= dict.fromkeys(places)
    rests = [*addresses, *(_rest(value, count) for value in parts)]
    rest = rests[0]
    for other in rests[1:]:
        rest = ops.index_op("arith.ori", rest, other)
    return ops.compare(_EQ, rest, ops.constant_index(0))


def load_vector(memref: Any, indices: Sequence[Any], count: int) -> Any:
    """Loads an aligned vector of `count` elements at `indices`."""
    type_ = ir.VectorType.get([count], ir.MemRefType(memref.type).element_type)
    return ops.create("vector.load", [memref, *indices], [type_], _aligned(memref, count)).result


def elements_of(vector: Any) -> list[Any]:
    """Each element of a vector."""
    return [ops.extract(vector, number) for number in range(vector.type.shape[0])]


def store_vector(values: Sequence[Any], memref: Any, indices: Sequence[Any]) -> None:
    """Stores an aligned vector of the values."""
    type_ = ir.VectorType.get([len(values)], values[0].type)
    vector = ops.create("vector.from_elements", values, [type_]).result
    operands = [vector, memref, *indices]
    ops.create("vector.store", operands, attributes=_aligned(memref, len(values)))


def _alignment(type_: Any, count: int) -> int:
    return min(VECTOR_BYTES, count * (element_bytes(type_) or 1))


def _aligned(memref: Any, count: int) -> dict[str, Any]:
    bytes_ = _alignment(ir.MemRefType(memref.type), count)
    return {"alignment": ir.IntegerAttr.get(ops.integer(64), bytes_)}


def _rest(value: Any, divisor: int) -> Any:
    """The remainder of a division by a power of two."""
    return ops.index_op("arith.andi", value, ops.constant_index(divisor - 1))


def _unknown_parts(memref: Any, type_: Any) -> list[Any]:
    """The offset, unless it is 0, and the dynamic strides except the last."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, offset = type_.get_strides_and_offset()
    if unknown not in strides[:-1] and offset == 0:
        return []
    base = ir.MemRefType.get([], type_.element_type)
    results = [base, *[ops.index()] * (1 + 2 * type_.rank)]
    _, start, *numbers = ops.create("memref.extract_strided_metadata", [memref], results).results
    strided = zip(numbers[type_.rank : -1], strides, strict=False)
    found = [value for value, stride in strided if stride == unknown]
    if offset == unknown:
        return [start, *found]
    return found if offset == 0 else [ops.constant_index(offset), *found]
