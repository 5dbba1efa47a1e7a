"""The builder that kernels are written with. It inserts operations at an insertion point.

Numbers are Python's ints or values (see `numbers`); the operators of both make operations only for
what is not known while the kernel is built:

    with b.launch(blocks, 256) as launch:
        with b.loop(launch.thread, size, 256) as loop:
            b.store(b.load(source, [loop.index]), target, [loop.index])

Types are given as text ("f32", "vector<4xf16>") or as the bindings' types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aotc.mlir import ir
from aotc.module_names import READS_CONSTANT
from aotc.numbers import (
    Condition,
    Number,
    Scalar,
    Value,
    compare,
    compare_values,
    is_equal,
    wrap,
)
from aotc.ops import create

# An `ir.Type`, or its text.
Type = Any

_WORKGROUP = "#gpu.address_space<workgroup>"
# The dynamic shared memory of a block.
SHARED_MEMORY = f"memref<?xi8, {_WORKGROUP}>"
_FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_FAST_MATH_CONTRACT = "#arith.fastmath<contract>"
# Bytes of the widest access to memory.
WIDEST_ACCESS = 16
FLOAT8 = ("f8E4M3FN", "f8E5M2")
_GROUP = "nvgpu.device_async_create_group"


# --- Memory ------------------------------------------------------------------------------------


class Buffer:
    """A memref, and the text of its elements' type. `leading`: indices in front of those that an
    access gives. `unsigned`: its integers are."""

    def __init__(
        self, value: Value, leading: Sequence[Number] = (), *, unsigned: bool = False
    ) -> None:
        self.value, self.leading, self.unsigned = value, tuple(leading), unsigned
        self.type = ir.MemRefType(value.type)
        self.element = str(self.type.element_type)
        self.element_bytes = _bytes_of(self.type.element_type)


def _bytes_of(type_: Any) -> int:
    """The bytes of an element of a type; an index is as large as the host's."""
    if isinstance(type_, ir.VectorType):
        return int(math.prod(type_.shape)) * _bytes_of(type_.element_type)
    return int(type_.width) // 8 if hasattr(type_, "width") else 8


# --- Regions -----------------------------------------------------------------------------------


class Loop:
    """An `scf.for` that is being built: the value that counts, and the values that are carried from
    one iteration to the next. `next` ends the body; afterwards, `results` are what the last
    iteration has handed on."""

    def __init__(self, operation: Any) -> None:
        self.index, *self.carried = _wrapped(operation.regions[0].blocks[0].arguments)
        self.results = _wrapped(operation.results)

    def next(self, values: Sequence[Value]) -> None:
        create("scf.yield", values)


class Branch:
    """An `scf.if` without results; None where its condition is known to hold."""

    def __init__(self, operation: Any) -> None:
        self.operation = operation

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """What is done if the condition, which is not known, does not hold. At most once."""
        block = self.operation.regions[1].blocks.append()
        with ir.InsertionPoint(block):
            yield
            create("scf.yield")


class Launch:
    """A `gpu.launch` whose body is being built. `block` and `thread` are ids, `blocks` and
    `threads` their counts, all of them along x and of type index. `block_ids` are the ids of the
    block along x, y and z."""

    def __init__(self, operation: Any) -> None:
        arguments = _wrapped(operation.regions[0].blocks[0].arguments)
        self.operation = operation
        self.block, self.thread, self.blocks, self.threads = arguments[:12:3]
        self.block_ids = arguments[:3]


def _wrapped(values: Any) -> list[Value]:
    return [wrap(value) for value in values]


class Builder:
    """See the module's docstring. Operations are inserted at the current insertion point of the
    bindings, with the current location."""

    def __init__(self) -> None:
        self._parsed: dict[str, Any] = {}
        self._kernel_name = ""
        self._reads_constants = False

    def type(self, type_: Type) -> Any:
        """The type of a text. A type is given back."""
        return self._parse(type_, ir.Type) if isinstance(type_, str) else type_

    def attribute(self, text: str) -> Any:
        """The attribute of a text."""
        return self._parse(text, ir.Attribute)

    def _parse(self, text: str, kind: Any) -> Any:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = kind.parse(text)
        return found

    # --- Operations --------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result: Type | None = None,
        **attributes: Any,
    ) -> Value:
        """An operation with one result, which is returned, or with none. `attributes` are the
        bindings' attributes, or their text."""
        results = [] if result is None else [self.type(result)]
        given = self.attributes(attributes) if attributes else None
        made = create(name, operands, results, given)
        return None if result is None else wrap(made.result)

    def attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.attribute(one) if isinstance(one, str) else one
            for name, one in given.items()
        }

    def value(self, number: Number, type_: Type = "index") -> Value:
        """A number as a value: a constant, where it is an int."""
        return self.constant(number, type_) if isinstance(number, int) else number

    def values(self, numbers: Sequence[Number]) -> list[Value]:
        return [self.value(number) for number in numbers]

    def constant(self, number: float, type_: Type = "index") -> Value:
        """An `arith.constant`; for a vector type, with the same number in each element. Constants
        are never shared between regions: each call makes one."""
        type_ = self.type(type_)
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        is_integer = isinstance(element, ir.IndexType | ir.IntegerType)
        make = ir.IntegerAttr if is_integer else ir.FloatAttr
        attribute = make.get(element, int(number) if is_integer else float(number))
        if type_ != element:
            attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
        return wrap(create("arith.constant", (), [type_], {"value": attribute}).result)

    def zero(self, type_: Type) -> Value:
        return self.constant(0, type_)

    # --- Numbers of other types ----------------------------------------------------------------

    def index(self, value: Number) -> Number:
        """An unsigned integer as an index."""
        if isinstance(value, int) or isinstance(value.type, ir.IndexType):
            return value
        return Scalar(self._cast("arith.index_castui", value, "index"))

    def i32(self, value: Number) -> Number:
        """An index as an unsigned integer of 32 bits. An int stays one."""
        return (
            value
            if isinstance(value, int)
            else Scalar(self._cast("arith.index_castui", value, "i32"))
        )

    def _cast(self, name: str, value: Value, type_: Type) -> Value:
        return wrap(create(name, [value], [self.type(type_)]).result)

    def signed_cast(self, value: Number, type_: Type) -> Scalar:
        """An index as a signed integer, or the other way round; an int is an index."""
        return Scalar(self._cast("arith.index_cast", self.value(value), type_))

    def convert(self, value: Value, type_: Type, *, unsigned: bool = False) -> Value:
        """A value, or a vector, as another type: floats rounded to nearest even, integers
        sign-extended, or zero-extended if `unsigned`, or wrapped. Between f16 and bf16, through
        f32."""
        source, target = value.type, self.type(type_)
        if source == target:
            return value
        if str(_element(source)) in FLOAT8:
            return self.widen_float8(value, target)
        before, after = _bytes_of(_element(source)), _bytes_of(_element(target))
        is_integer = isinstance(_element(source), ir.IntegerType)
        if before == after and not is_integer:
            return self.convert(self.convert(value, _of_elements(source, "f32")), target)
        if is_integer:
            widen = "arith.extui" if unsigned else "arith.extsi"
            return self._cast(widen if after > before else "arith.trunci", value, target)
        return self._cast("arith.extf" if after > before else "arith.truncf", value, target)

    def widen_float8(self, value: Value, type_: Type) -> Value:
        """An f8, or a vector of such, as a wider float, exactly, by arithmetic on bits.

        f8E5M2 is the upper half of an f16. f8E4M3FN's bits behind its sign are those of an f16,
        whose exponent has another bias; but for its NaN, which has them all.
        """
        target = self.type(type_)
        i16, f16, f32 = (_of_elements(value.type, one) for one in ("i16", "f16", "f32"))
        i8 = self._cast("arith.bitcast", value, _of_elements(value.type, "i8"))
        bits = self._cast("arith.extui", i8, i16)
        eight = self.constant(8, i16)
        if str(_element(value.type)) == "f8E5M2":
            half = self._cast("arith.bitcast", self.op("arith.shli", [bits, eight], i16), f16)
            return self.convert(half, target)
        all_ones = self.constant(0x7F, i16)
        magnitude = self.op("arith.andi", [bits, all_ones], i16)
        sign = self.op("arith.subi", [bits, magnitude], i16)
        sign = self.op("arith.shli", [sign, eight], i16)
        moved = self.op("arith.shli", [magnitude, self.constant(7, i16)], i16)
        half = self._cast("arith.bitcast", self.op("arith.ori", [sign, moved], i16), f16)
        scale = self.constant(256.0, f32)
        scaled = self.op("arith.mulf", [self._cast("arith.extf", half, f32), scale], f32)
        is_nan = compare_values("eq", magnitude, all_ones)
        return self.convert(self.select(is_nan, self.constant(math.nan, f32), scaled), target)

    # --- Sums and products ---------------------------------------------------------------------

    def multiply_add(self, x: Value, y: Value, sum_: Value) -> Value:
        """x * y + sum_, of numbers or vectors. Of floats, the two may become one operation, which
        is rounded once."""
        return self.add(self.multiply(x, y), sum_)

    def multiply(self, x: Value, y: Value) -> Value:
        return self._arithmetic("mul", x, y)

    def add(self, x: Value, y: Value) -> Value:
        """x + y, which may become one operation with a product that it adds."""
        return self._arithmetic("add", x, y)

    def subtract(self, x: Value, y: Value) -> Value:
        return self._arithmetic("sub", x, y)

    def _arithmetic(self, name: str, x: Value, y: Value) -> Value:
        type_ = x.type
        if isinstance(_element(type_), ir.IntegerType):
            return wrap(create(f"arith.{name}i", [x, y], [type_]).result)
        flags = {"fastmath": self.attribute(_FAST_MATH_CONTRACT)}
        return create(f"arith.{name}f", [x, y], [type_], flags).result

    def compare_floats(self, predicate: str, x: Value, y: Value) -> Scalar:
        """`arith.cmpf`. `predicate`: as MLIR spells it (oeq, olt, uno, ...)."""
        i64, bit = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
        number = ir.IntegerAttr.get(i64, _FLOAT_PREDICATES.index(predicate))
        return Scalar(create("arith.cmpf", [x, y], [bit], {"predicate": number}).result)

    def select(self, condition: Condition, yes: Value, no: Value) -> Value:
        """One of two values of any one type."""
        if isinstance(condition, bool):
            return yes if condition else no
        return wrap(create("arith.select", [condition, yes, no], [yes.type]).result)

    # --- Regions -------------------------------------------------------------------------------

    @contextmanager
    def loop(
        self, start: Number, stop: Number, step: Number = 1, carried: Sequence[Value] = ()
    ) -> Iterator[Loop]:
        """An `scf.for`. Numbers are of type index unless one of them is a value of another type.
        With `carried`, the body ends by `Loop.next`."""
        known = (number for number in (start, stop, step) if not isinstance(number, int))
        type_ = next(known, None)
        type_ = ir.IndexType.get() if type_ is None else type_.type
        bounds = [self.value(number, type_) for number in (start, stop, step)]
        first = self.values(carried)
        types = [value.type for value in first]
        operation = create("scf.for", [*bounds, *first], types, regions=1)
        block = operation.regions[0].blocks.append(type_, *types)
        with ir.InsertionPoint(block):
            yield Loop(operation)
            if not carried:
                create("scf.yield")

    @contextmanager
    def where(self, condition: Condition) -> Iterator[Branch]:
        """What is done if the condition holds: an `scf.if`, or without one if it is True."""
        if condition is True:
            yield Branch(None)
            return
        operation = create("scf.if", [condition], regions=2)
        with ir.InsertionPoint(operation.regions[0].blocks.append()):
            yield Branch(operation)
            create("scf.yield")

    def choose(self, condition: Condition, types: Sequence[Type], yes: Any, no: Any) -> list[Value]:
        """The values that one of two functions returns, both of which build theirs; of one alone,
        if the condition is known."""
        if isinstance(condition, bool):
            return list((yes if condition else no)())
        results = [self.type(type_) for type_ in types]
        operation = create("scf.if", [condition], results, regions=2)
        for region, build in zip(operation.regions, (yes, no), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                create("scf.yield", build())
        return _wrapped(operation.results)

    @contextmanager
    def execute_region(self) -> Iterator[Any]:
        """An `scf.execute_region` without results, which is given."""
        operation = create("scf.execute_region", regions=1)
        with ir.InsertionPoint(operation.regions[0].blocks.append()):
            yield operation
            create("scf.yield")

    @contextmanager
    def launch_unless_empty(
        self, blocks: Number, threads: Number, shared_bytes: int = 0, *, role: str = ""
    ) -> Iterator[Launch]:
        """A launch, or none where there are no blocks: the runtime refuses those."""
        is_there = compare("slt", 0, blocks)
        with self.where(is_there), self.launch(blocks, threads, shared_bytes, role=role) as launch:
            yield launch

    @contextmanager
    def kernel_name(self, name: str) -> Iterator[None]:
        """Kernels that are launched inside have this name, and what `launch` calls their role. A
        name that is given around this one stays."""
        outer, self._kernel_name = self._kernel_name, self._kernel_name or name
        yield
        self._kernel_name = outer

    @contextmanager
    def launch(
        self,
        blocks: Number | Sequence[Number],
        threads: Number,
        shared_bytes: Number = 0,
        cluster: int = 1,
        *,
        role: str = "",
    ) -> Iterator[Launch]:
        """A kernel: a `gpu.launch` with so many blocks and threads of a block along x, bytes of
        dynamic shared memory (a value of type i32 if it is not known), and blocks of a cluster.
        `blocks` may also be the counts along x, y and z. `role`: what the kernel does for the one
        that the name is about."""
        index, one = ir.IndexType.get(), self.constant(1)
        counts = self.values([blocks] if isinstance(blocks, Number) else blocks)
        operands = [*counts, *[one] * (3 - len(counts)), self.value(threads), one, one]
        if cluster > 1:
            operands += [self.constant(cluster), one, one]
        has_shared_memory = not is_equal(shared_bytes, 0)
        if has_shared_memory:
            operands.append(self.value(shared_bytes, "i32"))
        clusters = int(cluster > 1)
        segments = [0, *[1] * 6, *[clusters] * 3, int(has_shared_memory), 0]
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)}
        if self._kernel_name:
            name = "_".join(filter(None, (self._kernel_name, role)))
            attributes["function"] = ir.FlatSymbolRefAttr.get(name)
        operation = create("gpu.launch", operands, (), attributes, regions=1)
        block = operation.regions[0].blocks.append(*[index] * (12 + 6 * clusters))
        with ir.InsertionPoint(block):
            yield Launch(operation)
            create("gpu.terminator")

    # --- Memory --------------------------------------------------------------------------------

    def alloc(self, sizes: Sequence[Number], type_: Type) -> Value:
        """A buffer of a type, of whose dynamic dimensions `sizes` are the sizes."""
        segments = ir.DenseI32ArrayAttr.get([len(sizes), 0])
        return self.op("memref.alloc", self.values(sizes), type_, operandSegmentSizes=segments)

    def prefix(self, memref: Value, sizes: Sequence[Number], type_: Type) -> Value:
        """The view of a memref's first elements along each dimension."""
        rank = len(sizes)
        kept = [ir.ShapedType.get_dynamic_size()] * rank
        return self.op(
            "memref.subview",
            [memref, *self.values(sizes)],
            type_,
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, rank, 0]),
            static_offsets=ir.DenseI64ArrayAttr.get([0] * rank),
            static_sizes=ir.DenseI64ArrayAttr.get(kept),
            static_strides=ir.DenseI64ArrayAttr.get([1] * rank),
        )

    def reinterpret_cast(
        self,
        memref: Value,
        offset: Number,
        sizes: Sequence[Number],
        strides: Sequence[Number],
        type_: Type,
    ) -> Value:
        """A memref's memory as one of another type, whose dynamic offset, sizes and strides are
        values here."""
        groups = ([offset], sizes, strides)
        dynamic = [[one for one in group if not isinstance(one, int)] for group in groups]
        unknown = ir.ShapedType.get_dynamic_size()
        static = [
            ir.DenseI64ArrayAttr.get([one if isinstance(one, int) else unknown for one in group])
            for group in groups
        ]
        return self.op(
            "memref.reinterpret_cast",
            [memref, *(one for group in dynamic for one in group)],
            type_,
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, *map(len, dynamic)]),
            static_offsets=static[0],
            static_sizes=static[1],
            static_strides=static[2],
        )

    def dim(self, memref: Value, axis: int) -> Scalar:
        return Scalar(self.op("memref.dim", [memref, self.constant(axis)], "index"))

    def strides(self, memref: Value) -> tuple[Scalar, list[Scalar]]:
        """The offset of the first element, and the distance of neighbours along each dimension, in
        elements."""
        offset, _, strides = self.metadata(memref)
        return offset, strides

    def metadata(self, memref: Value) -> tuple[Scalar, list[Scalar], list[Scalar]]:
        """The offset, sizes and strides of a memref, in elements."""
        type_, index = ir.MemRefType(memref.type), ir.IndexType.get()
        results = [ir.MemRefType.get([], type_.element_type), *[index] * (1 + 2 * type_.rank)]
        _, offset, *rest = create("memref.extract_strided_metadata", [memref], results).results
        numbers = [Scalar(one) for one in rest]
        return Scalar(offset), numbers[: type_.rank], numbers[type_.rank :]

    def shared_memory(self) -> Value:
        """The block's dynamic shared memory, in bytes. (Not `workgroup(...)` of gpu.launch: such a
        buffer is only aligned as its elements are.)"""
        return self.op("gpu.dynamic_shared_memory", (), SHARED_MEMORY)

    def view(self, memory: Value, offset: Number, type_: Type) -> Value:
        """The bytes of a memref of i8 from an offset on, as a memref of a type."""
        return self.op("memref.view", [memory, self.value(offset)], type_)

    def shared_buffer(
        self, memory: Value, offset: Number, shape: Sequence[int], element: str
    ) -> Buffer:
        """A buffer in shared memory, `offset` bytes behind its beginning."""
        sizes = "x".join(map(str, shape))
        return Buffer(self.view(memory, offset, f"memref<{sizes}x{element}, {_WORKGROUP}>"))

    def load(self, buffer: Buffer, at: Sequence[Number]) -> Value:
        """An element."""
        operands = [buffer.value, *self._place(buffer, at)]
        attributes = self._read_attributes()
        return wrap(create("memref.load", operands, [buffer.type.element_type], attributes).result)

    def store(self, value: Value, buffer: Buffer, at: Sequence[Number]) -> None:
        create("memref.store", [value, buffer.value, *self._place(buffer, at)])

    def load_vector(
        self, buffer: Buffer, at: Sequence[Number], count: int, alignment: int | None = None
    ) -> Value:
        """`count` elements of a row. `alignment`: of their address, in bytes; None where no more is
        known than what an element has."""
        operands = [buffer.value, *self._place(buffer, at)]
        vector = ir.VectorType.get([count], buffer.type.element_type)
        attributes = self._aligned(alignment) | self._read_attributes()
        return create("vector.load", operands, [vector], attributes).result

    def store_vector(
        self, vector: Value, buffer: Buffer, at: Sequence[Number], alignment: int | None = None
    ) -> None:
        operands = [vector, buffer.value, *self._place(buffer, at)]
        create("vector.store", operands, (), self._aligned(alignment))

    def load_elements(self, buffer: Buffer, at: Sequence[Number], count: int) -> list[Value]:
        """`count` elements of a row in one access, whose address is a multiple of its size, or of
        16 bytes if it has more."""
        if count == 1:
            return [self.load(buffer, at)]
        alignment = min(count * buffer.element_bytes, WIDEST_ACCESS)
        return self.elements(self.load_vector(buffer, at, count, alignment))

    def store_elements(self, values: Sequence[Value], buffer: Buffer, at: Sequence[Number]) -> None:
        """Stores `values` to a row in one access, aligned as in `load_elements`."""
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
        """All elements of a vector of one dimension."""
        return [self.extract(vector, [number]) for number in range(vector.type.shape[0])]

    def extract(self, vector: Value, at: Sequence[int]) -> Value:
        """The element, or the vector, at a known place of a vector."""
        type_ = ir.VectorType(vector.type)
        rest = list(type_.shape)[len(at) :]
        element = type_.element_type
        result = ir.VectorType.get(rest, element) if rest else element
        place = {"static_position": ir.DenseI64ArrayAttr.get(list(at))}
        return wrap(create("vector.extract", [vector], [result], place).result)

    def insert(self, value: Value, vector: Value, at: Sequence[int]) -> Value:
        """The vector with another element, or vector, at a known place of it."""
        place = {"static_position": ir.DenseI64ArrayAttr.get(list(at))}
        return create("vector.insert", [value, vector], [vector.type], place).result

    def from_elements(self, values: Sequence[Value], type_: Type) -> Value:
        """The vector of a type that has these elements, the last dimension's side by side."""
        return create("vector.from_elements", values, [self.type(type_)]).result

    def _place(self, buffer: Buffer, at: Sequence[Number]) -> list[Value]:
        return self.values((*buffer.leading, *at))

    @contextmanager
    def reads_constants(self) -> Iterator[None]:
        """What is loaded inside is constant: a kernel may read it before it waits for the one
        before it."""
        outer, self._reads_constants = self._reads_constants, True
        yield
        self._reads_constants = outer

    def _read_attributes(self) -> dict[str, Any]:
        return {READS_CONSTANT: ir.UnitAttr.get()} if self._reads_constants else {}

    def _aligned(self, alignment: int | None) -> dict[str, Any]:
        if alignment is None:
            return {}
        i64 = ir.IntegerType.get_signless(64)
        return {"alignment": ir.IntegerAttr.get(i64, alignment)}

    # --- Threads -------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Waits for all threads of the block."""
        create("gpu.barrier")

    def shuffle_xor(self, value: Value, distance: int) -> Value:
        """The value of the lane whose number differs in the bit `distance`."""
        operands = [value, self.constant(distance, "i32"), self.constant(32, "i32")]
        mode = {"mode": self.attribute("#gpu<shuffle_mode xor>")}
        made = create("gpu.shuffle", operands, [value.type, self.type("i1")], mode)
        return wrap(made.results[0])


def _element(type_: Any) -> Any:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _of_elements(type_: Any, element: str) -> Any:
    """A type like another one, with elements of another type."""
    made = ir.Type.parse(element)
    return ir.VectorType.get(type_.shape, made) if isinstance(type_, ir.VectorType) else made


def function_text(
    name: str, arguments: Mapping[str, str], body: Callable[[Builder, list[Value]], None]
) -> str:
    """The text of `func.func @name`, whose body is built from the values of its arguments.
    `arguments`: their types by their names."""
    with ir.Context(), ir.Location.unknown():
        b = Builder()
        types = [b.type(type_) for type_ in arguments.values()]
        type_ = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        attributes = {"sym_name": ir.StringAttr.get(name), "function_type": type_}
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = create("func.func", attributes=attributes, regions=1)
        places = [ir.Location.name(argument) for argument in arguments]
        block = function.regions[0].blocks.append(*types, arg_locs=places)
        with ir.InsertionPoint(block):
            body(b, list(block.arguments))
            create("func.return")
        module.operation.verify()
        text = str(function.get_asm(use_name_loc_as_prefix=True)) + "\n"
        # MLIR prints a group without tokens in a short form that it cannot parse.
        return text.replace(f"{_GROUP} \n", f'"{_GROUP}"() : () -> !nvgpu.device.async.token\n')
