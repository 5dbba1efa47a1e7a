"""Memory operations: allocations and views of buffers, and loads and stores of elements and
vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aotc.attributes import READS_CONSTANT
from aotc.builder.numbers import (
    Number,
    Scalar,
    Value,
    wrap,
)
from aotc.builder.operations import Operations, Type, bytes_of
from aotc.mlir import ir
from aotc.ops import alloc, create, extract
from aotc.slices import create_slice

_WORKGROUP = "#gpu.address_space<workgroup>"
# The dynamic shared memory of a block.
SHARED_MEMORY = f"memref<?xi8, {_WORKGROUP}>"
# Bytes of the widest access to memory.
WIDEST_ACCESS = 16


class Buffer:
    """A memref, and the text of its element type. `leading` are indices that are put before
    those of each access. `unsigned` says that its integers are unsigned."""

    def __init__(
        self, value: Value, leading: Sequence[Number] = (), *, unsigned: bool = False
    ) -> None:
        self.value, self.leading, self.unsigned = value, tuple(leading), unsigned
        self.type = ir.MemRefType(value.type)
        self.element = str(self.type.element_type)
        self.element_bytes = bytes_of(self.type.element_type)


class Memory(Operations):
    """The builder's operations on memory."""

    def __init__(self) -> None:
        super().__init__()
        self._reads_constants = False

    def alloc(self, sizes: Sequence[Number], type_: Type) -> Value:
        """Allocates a buffer of a type; `sizes` are the sizes of its dynamic dimensions."""
        return alloc(self.type(type_), self.values(sizes))

    def prefix(self, memref: Value, sizes: Sequence[Number], type_: Type) -> Value:
        """A view of the first `sizes[i]` elements of a memref along each dimension i."""
        offsets = [0] * len(sizes)
        view = create_slice(
            "memref.subview", [memref], self.type(type_), offsets, self.values(sizes)
        )
        return wrap(view)

    def reinterpret_cast(
        self,
        memref: Value,
        offset: Number,
        sizes: Sequence[Number],
        strides: Sequence[Number],
        type_: Type,
    ) -> Value:
        """The memory of a memref as a memref of another type. An offset, size or stride that is a
        value here is dynamic in `type_`."""
        name, made = "memref.reinterpret_cast", self.type(type_)
        return wrap(create_slice(name, [memref], made, [offset], sizes, strides))

    def dim(self, memref: Value, axis: int) -> Scalar:
        return Scalar(self.op("memref.dim", [memref, self.constant(axis)], "index"))

    def strides(self, memref: Value) -> tuple[Scalar, list[Scalar]]:
        """The offset of the first element, and the stride of each dimension, in elements."""
        _, offset, _, strides = self.metadata(memref)
        return offset, strides

    def metadata(self, memref: Value) -> tuple[Value, Scalar, list[Scalar], list[Scalar]]:
        """A memref of rank 0 for a memref's memory, and the memref's offset, sizes and strides, in
        elements."""
        type_, index = ir.MemRefType(memref.type), ir.IndexType.get()
        base = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
        types = [base, *[index] * (1 + 2 * type_.rank)]
        made, *rest = create("memref.extract_strided_metadata", [memref], types).results
        offset, *numbers = map(Scalar, rest)
        return made, offset, numbers[: type_.rank], numbers[type_.rank :]

    def shared_memory(self) -> Value:
        """The block's dynamic shared memory, as bytes. (A `workgroup(...)` buffer of gpu.launch has
        only the alignment of its elements.)"""
        return self.op("gpu.dynamic_shared_memory", (), SHARED_MEMORY)

    def view(self, memory: Value, offset: Number, type_: Type) -> Value:
        """A memref of a type, on the bytes of a memref of i8 from an offset on."""
        return self.op("memref.view", [memory, self.value(offset)], type_)

    def shared_buffer(
        self, memory: Value, offset: Number, shape: Sequence[int], element: str
    ) -> Buffer:
        """A buffer in shared memory, at an offset of `offset` bytes in `memory`."""
        sizes = "x".join(map(str, shape))
        return Buffer(self.view(memory, offset, f"memref<{sizes}x{element}, {_WORKGROUP}>"))

    def load(self, buffer: Buffer, at: Sequence[Number]) -> Value:
        """Loads one element."""
        operands = [buffer.value, *self._place(buffer, at)]
        attributes = self.read_attributes()
        return wrap(create("memref.load", operands, [buffer.type.element_type], attributes).result)

    def store(self, value: Value, buffer: Buffer, at: Sequence[Number]) -> None:
        create("memref.store", [value, buffer.value, *self._place(buffer, at)])

    def load_vector(
        self, buffer: Buffer, at: Sequence[Number], count: int, alignment: int | None = None
    ) -> Value:
        """Loads `count` elements of a row. `alignment` is that of their address, in bytes; None
        means the alignment of an element."""
        operands = [buffer.value, *self._place(buffer, at)]
        vector = ir.VectorType.get([count], buffer.type.element_type)
        attributes = self._aligned(alignment) | self.read_attributes()
        return create("vector.load", operands, [vector], attributes).result

    def store_vector(
        self, vector: Value, buffer: Buffer, at: Sequence[Number], alignment: int | None = None
    ) -> None:
        operands = [vector, buffer.value, *self._place(buffer, at)]
        create("vector.store", operands, (), self._aligned(alignment))

    def prefetch(self, buffer: Buffer, at: Sequence[Number]) -> None:
        """Prefetches the cache line of an element, for a read, into all caches."""
        attributes = {
            "isWrite": ir.BoolAttr.get(False),
            "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 3),
            "isDataCache": ir.BoolAttr.get(True),
        }
        create("memref.prefetch", [buffer.value, *self._place(buffer, at)], (), attributes)

    def load_elements(self, buffer: Buffer, at: Sequence[Number], count: int) -> list[Value]:
        """Loads `count` elements of a row in one access. The address must be a multiple of the
        access's size, or of 16 bytes if that is larger."""
        if count == 1:
            return [self.load(buffer, at)]
        alignment = min(count * buffer.element_bytes, WIDEST_ACCESS)
        return self.elements(self.load_vector(buffer, at, count, alignment))

    def store_elements(self, values: Sequence[Value], buffer: Buffer, at: Sequence[Number]) -> None:
        """Stores `values` to a row in one access, with the alignment that `load_elements` needs."""
        if len(values) == 1:
            self.store(values[0], buffer, at)
            return
        place = self._place(buffer, at)
        vector = ir.VectorType.get([len(values)], buffer.type.element_type)
        made = self.from_elements(values, vector)
        alignment = min(len(values) * buffer.element_bytes, WIDEST_ACCESS)
        operands = [made, buffer.value, *place]
        create("vector.store", operands, (), self._aligned(alignment))

    def elements(self, vector: Value) -> list[Value]:
        """All elements of a vector of rank 1."""
        return [self.extract(vector, [number]) for number in range(vector.type.shape[0])]

    def extract(self, vector: Value, at: Sequence[int]) -> Value:
        """The element, or the subvector, at a static position of a vector."""
        return wrap(extract(vector, *at))

    def insert(self, value: Value, vector: Value, at: Sequence[int]) -> Value:
        """The vector, with the element or the subvector at a static position replaced."""
        place = {"static_position": ir.DenseI64ArrayAttr.get(list(at))}
        return create("vector.insert", [value, vector], [vector.type], place).result

    def from_elements(self, values: Sequence[Value], type_: Type) -> Value:
        """A vector of a type from its elements, in row-major order."""
        return create("vector.from_elements", values, [self.type(type_)]).result

    def _place(self, buffer: Buffer, at: Sequence[Number]) -> list[Value]:
        return self.values((*buffer.leading, *at))

    @contextmanager
    def reads_constants(self) -> Iterator[None]:
        """Marks loads inside as loads of constants: a kernel may execute them before it waits for
        the kernel before it."""
        outer, self._reads_constants = self._reads_constants, True
        yield
        self._reads_constants = outer

    def read_attributes(self) -> dict[str, Any]:
        return {READS_CONSTANT: ir.UnitAttr.get()} if self._reads_constants else {}

    def _aligned(self, alignment: int | None) -> dict[str, Any]:
        if alignment is None:
            return {}
        i64 = ir.IntegerType.get_signless(64)
        return {"alignment": ir.IntegerAttr.get(i64, alignment)}
