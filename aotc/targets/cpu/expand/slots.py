"""A warp's slots: an array with one element for each lane, which the other lanes read.

A value is stored in the type that LLVM has in whole bytes: an index as i64, an i1 as a byte. A
value of more than 32 bytes, such as a long vector, is exchanged in pieces.

An exchange begins with a synchronization of the warp, and writes after it. By then every lane has
read the values of the previous exchange, also if the lanes take part in different ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import (
    constant,
    constant_from,
    create,
    element_type,
    integer,
    is_pointer,
    shape_cast,
    unary,
    with_element_type,
)
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.sizes import size_of

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids

# Bytes of slots for each warp, and for each lane's value; the rest is for `leaders`.
WARP_BYTES = 2048
LANE_BYTES = 32

_SMALLEST_BITS = 8
# Types that are stored unchanged.
_FLOATS = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)


def check_type(type_: Any) -> str | None:
    """The reason why values of `type_` cannot be exchanged, or None."""
    element = element_type(type_)
    is_known = isinstance(element, (ir.IndexType, ir.IntegerType, ir.FloatType))
    is_known &= not isinstance(element, ir.FloatTF32Type)
    if isinstance(element, ir.IntegerType):
        is_known &= element.width <= 8 * LANE_BYTES
    if isinstance(type_, ir.VectorType):
        is_known &= not type_.scalable and type_.rank > 0
    elif isinstance(type_, ir.ComplexType):
        is_known = check_type(type_.element_type) is None
    else:
        is_known |= is_pointer(type_)
    return None if is_known else f"threads cannot exchange values of type {type_} on the CPU"


def stored_type(type_: Any) -> Any:
    """The type in which a value of `type_` is stored."""
    element = element_type(type_)
    if isinstance(element, ir.IndexType):
        element = integer(64)
    elif isinstance(element, ir.IntegerType):
        bits = _SMALLEST_BITS
        while bits < element.width:
            bits *= 2
        element = integer(bits)
    elif isinstance(element, ir.FloatType) and not isinstance(element, _FLOATS):
        return stored_type(with_element_type(type_, integer(element.width)))
    return with_element_type(type_, element)


def to_stored(value: Any) -> Any:
    return _convert(value, stored_type(value.type), "arith.extui")


def from_stored(value: Any, type_: Any) -> Any:
    return _convert(value, type_, "arith.trunci")


def _convert(value: Any, type_: Any, for_integers: str) -> Any:
    if type_ == value.type:
        return value
    elements = [element_type(t) for t in (value.type, type_)]
    if any(isinstance(element, ir.IndexType) for element in elements):
        return unary("arith.index_cast", value, type_)
    if any(isinstance(element, ir.FloatType) for element in elements):
        # The float consists of whole bytes: all bits are kept.
        return unary("arith.bitcast", value, type_)
    return unary(for_integers, value, type_)


class Slots(Struct, frozen=True):
    """An array of elements of one type, from `address` on.

    A vector whose size is not a power of two is padded, as in any memory.
    """

    address: Any
    type: Any

    @property
    def bytes(self) -> int:
        return size_of(stored_type(self.type)).bytes

    @property
    def alignment(self) -> int:
        return min(self.bytes, LANE_BYTES)

    def at(self, number: Any) -> Any:
        """The address of an element; `number` is an i64."""
        return build.at(self.address, build.multiply(number, build.number(self.bytes)))

    def store(self, value: Any, number: Any) -> None:
        build.store(to_stored(value), self.at(number), alignment=self.alignment)

    def load(self, number: Any) -> Any:
        stored = build.load(self.at(number), stored_type(self.type), alignment=self.alignment)
        return from_stored(stored, self.type)

    def fill(self, bits: int) -> None:
        """Stores the integer `bits` to all elements of the warp's lanes."""
        scalar = element_type(stored_type(self.type))
        count = self.bytes // size_of(scalar).bytes * WARP
        row = constant(ir.VectorType.get([count], scalar), bits)
        build.store(row, self.address, alignment=LANE_BYTES)

    def load_row(self, first: Any, count: int, step: int) -> Any:
        """`count` elements with a stride of `step`, concatenated to one vector."""
        stored = stored_type(self.type)
        width = stored.shape[0] if isinstance(stored, ir.VectorType) else 1
        scalar = element_type(stored)
        pitch = self.bytes // size_of(scalar).bytes
        length = ((count - 1) * step) * pitch + width
        row = build.load(
            self.at(first), ir.VectorType.get([length], scalar), alignment=self.alignment
        )
        row = shuffle(row, [n * step * pitch + e for n in range(count) for e in range(width)])
        return from_stored(row, with_element_type(row.type, element_type(self.type)))


def leaders(ids: Ids) -> Slots:
    """Slots of a byte for each lane: the lane of a group that acts for the group."""
    return Slots(build.at(ids.slots, LANE_BYTES * WARP), integer(8))


def shuffle(vector: Any, positions: list[int]) -> Any:
    """The elements of a vector at `positions`, as another vector."""
    if positions == list(range(vector.type.shape[0])):
        return vector
    return create(
        "vector.shuffle",
        [vector, vector],
        [ir.VectorType.get([len(positions)], vector.type.element_type)],
        {"mask": ir.DenseI64ArrayAttr.get(positions)},
    ).result


def lane_count(ids: Ids) -> Any:
    """The number of lanes of this thread's warp, as an i64. The last warp may have less than 32."""
    threads = thread_count(ids)
    before = build.multiply(to_i64(ids.warp), build.number(WARP))
    return build.smaller(build.integer_op("sub", threads, before), build.number(WARP))


def thread_count(ids: Ids) -> Any:
    """The number of threads of the block, as an i64."""
    x, y, z = (to_i64(size) for size in ids.block_dim)
    return build.multiply(build.multiply(x, y), z)


def warp_count(ids: Ids) -> Any:
    """The number of warps of the block, as an i64."""
    rounded = build.add(thread_count(ids), build.number(WARP - 1))
    return build.divide(rounded, build.number(WARP))


def split(value: Any) -> list[Any]:
    """The value in pieces that fit into a lane's slot, and are scalars or vectors of rank 1."""
    type_ = value.type
    if isinstance(type_, ir.ComplexType):
        return [unary(name, value, type_.element_type) for name in ("complex.re", "complex.im")]
    if not isinstance(type_, ir.VectorType):
        return [value]
    if type_.rank > 1:
        count = 1
        for size in type_.shape:
            count *= size
        value = unary("vector.shape_cast", value, ir.VectorType.get([count], type_.element_type))
    (count,) = value.type.shape
    longest = LANE_BYTES // size_of(element_type(stored_type(type_))).bytes
    return [
        value if count <= longest else _slice(value, first, min(longest, count - first))
        for first in range(0, count, longest)
    ]


def join(pieces: list[Any], type_: Any) -> Any:
    """The value of type `type_` from the pieces that `split` returned."""
    whole = pieces[0]
    if isinstance(type_, ir.ComplexType):
        return create("complex.create", pieces, [type_]).result
    if len(pieces) > 1:
        count = sum(piece.type.shape[0] for piece in pieces)
        whole = _zeros(ir.VectorType.get([count], type_.element_type))
        first = 0
        for piece in pieces:
            whole = create(
                "vector.insert_strided_slice",
                [piece, whole],
                [whole.type],
                {"offsets": _numbers(first), "strides": _numbers(1)},
            ).result
            first += piece.type.shape[0]
    return shape_cast(whole, type_)


def _slice(vector: Any, first: int, count: int) -> Any:
    return create(
        "vector.extract_strided_slice",
        [vector],
        [ir.VectorType.get([count], vector.type.element_type)],
        {"offsets": _numbers(first), "sizes": _numbers(count), "strides": _numbers(1)},
    ).result


def _numbers(*values: int) -> Any:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(integer(64), value) for value in values])


def _zeros(type_: Any) -> Any:
    if isinstance(type_.element_type, _FLOATS):
        zero = ir.FloatAttr.get(type_.element_type, 0.0)
        attribute = ir.DenseElementsAttr.get_splat(type_, zero)
        return constant_from(attribute)
    return constant(type_, 0)
