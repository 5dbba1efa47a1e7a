"""Fuses the elementwise producer and consumers of C into a matmul's kernel.

A consumer is an elementwise `linalg.generic` that reads C. If no other operation does, the epilogue
computes it from each accumulator before the store. The intermediate buffer is then removed; if the
consumer updates C in place, C is written only once. A producer fills C before the matmul, for
example with a bias in each row; the epilogue adds its value to the accumulators. The arithmetic is
that of the operations.

The matmul moves down to its last consumer, so no operation between them may write what it reads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.access import accesses_no_element, reads_shape_only
from aotc.analysis.aliasing import Roots
from aotc.analysis.block_order import BlockOrder
from aotc.analysis.generics import maps_of
from aotc.kernels.matmul.epilogue import SUM, Epilogue
from aotc.kernels.matmul.fusion.collapsed import each
from aotc.kernels.matmul.fusion.elementwise import (
    Loops,
    Operand,
    Reading,
    is_elementwise,
    place_operand,
)
from aotc.kernels.matmul.fusion.gates import FusedGates, Product, find_gates
from aotc.kernels.matmul.fusion.selection import RowSelection, find_selection
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, Problem
from aotc.kernels.matmul.recognition import Matmul, matrix_of_type
from aotc.kernels.matmul.vectors import row_type
from aotc.mlir import ir

_VIEWS = ("memref.expand_shape", "memref.collapse_shape")
_DEALLOC = "memref.dealloc"
_WIDEST_ACCESS = 16  # bytes


class Fused(Struct):
    """A matmul with its fused operations, which one kernel computes.

    `operands` are A, B, C and the problem's epilogue operands. `replaced`: the operations that the
    kernel replaces, in order; the kernel is inserted at the last one. `temporaries`: the buffers
    that are unused afterwards. `pad` and `source`: see `Matmul`. `gates`: a combination of gates
    that the kernel may compute as well; it is then inserted at the last of their operations.
    `selection`: the rows of C that are read, if the kernel need not compute all of them.
    """

    problem: Problem
    operands: list[Operand]
    replaced: list[Any]
    epilogue: Epilogue | None = None
    temporaries: list[Any] = []
    pad: Any | None = None
    source: Any | None = None
    gates: FusedGates | None = None
    selection: RowSelection | None = None


def unfused(matmul: Matmul) -> Fused:
    if matmul.has_rows:
        dimensions = each(1 + matmul.problem.batched)
        a, c = (Operand(value, dimensions, is_row=True) for value in (matmul.a, matmul.c))
    else:
        rank = 2 + matmul.problem.batched
        a, c = (
            Operand(value, groups or each(rank))
            for value, groups in ((matmul.a, matmul.a_groups), (matmul.c, matmul.c_groups))
        )
    operands = [a, Operand(matmul.b), c]
    front = [] if matmul.fill is None else [matmul.fill]
    replaced = [*front, matmul.operation]
    return Fused(matmul.problem, operands, replaced, pad=matmul.pad, source=matmul.source)


def fuse(
    matmul: Matmul,
    roots: Roots,
    done: Collection[Any],
    later: Sequence[Any],
    order: BlockOrder | None = None,
) -> Fused:
    """The matmul with all operations that can be fused to it. Excluded are the operations `done`,
    which other kernels replace, and those that read a buffer of `later`, the C of later matmuls:
    they are fused to the last of these."""
    if axes_of(matmul) is None:
        return unfused(matmul)
    fusion = _Fusion(matmul, roots, done, later, order or BlockOrder())
    fusion.fuse_producer()
    while fusion.fuse_consumer():
        pass
    fused = fusion.result()
    fused.gates, fused.selection = fusion.find_gates(), fusion.find_selection()
    return fused


def axes_of(matmul: Matmul) -> list[str] | None:
    """The name of the axis (see `Axis`) along each dimension of C. None if the dimensions are not
    those of the batch, the rows and the columns, each in order, the slowest first."""
    problem = matmul.problem
    if not isinstance(problem, ImplicitGemm):
        names = ["batch", "row", "column"][0 if problem.batched else 1 :]
        if matmul.has_rows:
            names.remove("row")
        groups = matmul.c_groups or each(len(names))
        return [name for name, group in zip(names, groups, strict=True) for _ in group]
    type_ = ir.MemRefType(matmul.c.type)
    # A dimension of size 1 may belong to either axis.
    found = {i: "row" for i in range(type_.rank) if type_.shape[i] == 1}
    roles = (("batch", problem.batch), ("row", problem.rows), ("column", problem.columns))
    for name, loops in roles:
        moves = [loop.c for loop in loops]
        places = [dimension for move in moves for dimension, _ in move]
        if any(len(move) != 1 or move[0][1] != 1 for move in moves) or places != sorted(places):
            return None
        found |= dict.fromkeys(places, name)
    if len(found) != type_.rank:
        return None
    return [found[i] for i in range(type_.rank)]


def remove_temporary(buffer: Any) -> None:
    """Erases a buffer or view whose elements are unused. Its `memref.dim` are replaced by the
    sizes."""
    owner = buffer.owner.operation
    for use in list(buffer.uses):
        user = use.owner.operation
        if user.name in _VIEWS:
            remove_temporary(user.results[0])
            continue
        if user.name == "memref.dim":
            dimension = ops.known_dimension(user)
            assert dimension is not None
            with user.location, ir.InsertionPoint(user):
                user.results[0].replace_all_uses_with(_size(buffer, dimension))
        ops.erase(user)
    ops.erase(owner)


def _size(buffer: Any, dimension: int) -> Any:
    """The size of a temporary, or of a view of it, as a value at the insertion point."""
    owner, type_ = buffer.owner.operation, ir.MemRefType(buffer.type)
    if not type_.is_dynamic_dim(dimension):
        return ops.constant_index(type_.shape[dimension])
    if owner.name == "memref.collapse_shape":
        size = ops.constant_index(1)
        for inner in ops.groups_of(owner)[dimension]:
            size = ops.index_op("arith.muli", size, _size(owner.operands[0], inner))
        return size
    sizes = list(owner.operands)[0 if owner.name == "memref.alloc" else 1 :]
    return sizes[sum(type_.is_dynamic_dim(i) for i in range(dimension))]


class _Fusion:
    """The state of the fusion: a matmul, and the operations that are fused to it so far."""

    def __init__(
        self,
        matmul: Matmul,
        roots: Roots,
        done: Collection[Any],
        later: Sequence[Any],
        order: BlockOrder,
    ) -> None:
        self._matmul, self._roots, self._order = matmul, roots, order
        self._done, self._later = done, later
        self._fused = unfused(matmul)
        self._reading = Reading([], [], [])
        # The name of the value to store to C, and its type.
        self._value, self._element = SUM, matmul.problem.accumulator
        # The buffer that gets the value if nothing more is fused, and the axes of its dimensions.
        self._c = matmul.c
        self._names = axes_of(matmul) or []
        self._full = tuple(Axis(name) for name in dict.fromkeys(self._names))
        # The buffers that the kernel reads: operations in front of it must not write them.
        self._reads = [matmul.a, matmul.b, *matmul.others]

    def result(self) -> Fused:
        fused, reading = self._fused, self._reading
        if self._value != SUM:
            value = reading.convert(self._value, self._element, fused.problem.c.element)
            fused.problem = replace(
                fused.problem, epilogue_operands=tuple(reading.epilogue_operands)
            )
            fused.operands += reading.operands
            fused.epilogue = Epilogue(tuple(reading.steps), value)
        return fused

    def find_gates(self) -> FusedGates | None:
        """The operations that combine parts of the columns of the current C, if there are any."""
        product = self._product()
        if product is None:
            return None
        return find_gates(product, self._roots, self._order, self._leaves)

    def find_selection(self) -> RowSelection | None:
        """The rows of the current C that are read, if not all are."""
        product = self._product()
        return None if product is None else find_selection(product, self._order, self._leaves)

    def _product(self) -> Product | None:
        problem = self._fused.problem
        if self._matmul.has_rows or not problem.has_matrices:
            return None
        replaced, reads = self._fused.replaced, self._reads
        return Product(problem, replaced, self._c, reads, self._done, self._later)

    # --- The producer --------------------------------------------------------------------------

    def fuse_producer(self) -> None:
        """Fuses the operation that fills C before the matmul with values other than zeros, if
        possible."""
        producer = self._find_producer()
        if producer is None:
            return
        inputs, [output] = ops.operand_groups(producer)
        *maps, map_ = maps_of(producer)
        *arguments, old = producer.regions[0].blocks[0].arguments
        loops = self._loops(output, map_)
        if loops is None or list(old.uses):
            return
        reading = self._reading.copy()
        known = reading.read_all(zip(arguments, inputs, maps, strict=True), loops)
        value = None if known is None else reading.body(producer, known, loops)
        if value is None or not self._may_write(output, map_, loops, reading):
            return
        reads = _buffers(inputs)
        between = takewhile(lambda op: op != producer, self._order.before(self._matmul.operation))
        if not all(self._leaves(op, reads) for op in between):
            return
        problem = self._matmul.problem
        type_ = self._element = problem.accumulator
        begun = reading.convert(value, problem.c.element, type_)
        name = "arith.addi" if type_.startswith("i") else "arith.addf"
        self._value = reading.step(name, [begun, SUM], f"({type_}, {type_}) -> {type_}")
        self._reading = reading
        self._fused.problem = replace(self._fused.problem, adds=False)
        self._fused.replaced.insert(0, producer)
        self._reads += reads

    def _find_producer(self) -> Any | None:
        if not self._matmul.problem.adds:
            return None
        for operation in self._order.before(self._matmul.operation):
            if is_elementwise(operation):
                _, [output] = ops.operand_groups(operation)
                if output == self._c:
                    return operation
            if not self._leaves(operation, []):
                return None
        return None

    # --- The consumers -------------------------------------------------------------------------

    def fuse_consumer(self) -> bool:
        """Fuses the next consumer of C. Returns whether there was one that can be fused."""
        consumer = self._find_consumer()
        if consumer is None:
            return False
        inputs, [output] = ops.operand_groups(consumer)
        values, maps = [*inputs, output], maps_of(consumer)
        arguments = list(consumer.regions[0].blocks[0].arguments)
        own = [number for number, value in enumerate(values) if self._is_c(value)]
        loops = self._loops(values[own[0]], maps[own[0]])
        if loops is None or any(self._loops(values[i], maps[i]) != loops for i in own):
            return False
        reading = self._reading.copy()
        others = [
            (argument, value, map_)
            for argument, value, map_ in zip(arguments, values, maps, strict=True)
            if not self._is_c(value) and list(argument.uses)
        ]
        known = reading.read_all(others, loops)
        if known is None:
            return False
        held = reading.convert(self._value, self._element, _element(self._c))
        known |= {arguments[number]: held for number in own}
        value = reading.body(consumer, known, loops)
        if value is None:
            return False
        is_in_place = len(inputs) in own
        same = maps[own[0]] if values[own[0]] == self._c else None
        if is_in_place:
            if not self._may_write(values[own[0]], maps[own[0]], loops, reading):
                return False
        elif not self._move_to(output, (same, maps[-1]), loops, reading, consumer):
            return False
        self._reading, self._value, self._element = reading, value, _element(self._c)
        self._reads += _buffers(value for _, value, _ in others)
        self._fused.replaced.append(consumer)
        return True

    def _move_to(
        self, output: Any, maps: tuple[Any, Any], loops: Loops, reading: Reading, consumer: Any
    ) -> bool:
        """Makes `output` the kernel's C, if no other operation uses the previous C. `maps`: the
        maps of the previous C (None if the consumer reads a view of it) and of `output`."""
        old, new = maps
        found = None
        if self._fused.problem.has_matrices:
            found = self._moved(output, new, loops)
        elif old is not None and old == new:
            found = self._moved_implicit_gemm(output)
        inputs = (self._matmul.a, self._matmul.b, *self._matmul.others)
        if (
            found is None
            or self._fused.problem.adds
            or not self._is_temporary(consumer)
            or any(self._roots.may_overlap(output, one) for one in inputs)
            or not self._may_write(output, new, loops, reading)
        ):
            return False
        self._fused.temporaries.append(self._c)
        self._fused.operands[2], self._fused.problem = found
        self._c = output
        self._names = [loops.places[ir.AffineDimExpr(r).position][0] for r in new.results]
        return True

    def _moved(self, output: Any, map_: Any, loops: Loops) -> tuple[Operand, Problem] | None:
        """The operand and the problem with `output` as C; None if it cannot be C."""
        placed = place_operand(output, map_, loops)
        if placed is None or placed[2] != self._full:
            return None
        operand, type_, _ = placed
        if self._matmul.has_rows:
            operand, type_ = replace(operand, is_row=True), row_type(type_)
        matrix = matrix_of_type(type_, batched=self._matmul.problem.batched)
        return None if matrix is None else (operand, replace(self._fused.problem, c=matrix))

    def _moved_implicit_gemm(self, output: Any) -> tuple[Operand, Problem] | None:
        """As `_moved`, for an implicit GEMM and a C with the same dimensions."""
        problem, type_ = self._fused.problem, ir.MemRefType(output.type)
        element = str(type_.element_type)
        if (
            not isinstance(problem, ImplicitGemm)
            or element not in ELEMENT_BYTES
            or type_.memory_space is not None
        ):
            return None
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        distances, _ = type_.get_strides_and_offset()
        strides = tuple(None if one == unknown else int(one) for one in distances)
        # Columns are contiguous as before, if the strides are the same.
        alignment = ELEMENT_BYTES[element]
        last = problem.columns[-1]
        if strides == problem.strides[2] and last.size and strides[last.c[0][0]] == 1:
            outer = [one for one in strides if one and one != 1]
            elements = math.gcd(last.size, *outer)
            alignment = math.gcd(_WIDEST_ACCESS, elements * ELEMENT_BYTES[element])
        c = replace(problem.c, type=str(type_), element=element, alignment=alignment)
        changed = replace(problem, c=c, strides=(*problem.strides[:2], strides))
        return Operand(output), changed

    def _find_consumer(self) -> Any | None:
        for operation in self._order.after(self._fused.replaced[-1]):
            if is_elementwise(operation) and any(map(self._is_c, operation.operands)):
                others = any(_source(value) in self._later for value in operation.operands)
                return None if operation in self._done or others else operation
            if not self._leaves(operation, self._reads):
                return None
        return None

    def _is_c(self, value: Any) -> bool:
        """Whether the value is C or a reshape of C, or the buffer that C is a reshape of."""
        return bool(self._c in (value, _source(value)))

    def _is_temporary(self, consumer: Any) -> bool:
        """Whether only the matmul and `consumer` access C's elements."""
        owner = ops.defining(self._c)
        known = [*self._fused.replaced, consumer]

        def is_known(use: Any) -> bool:
            user = use.owner.operation
            if user.name in _VIEWS:
                return all(is_known(inner) for inner in user.results[0].uses)
            if user.name == "memref.dim":
                return ops.known_dimension(user) is not None
            return user.name == _DEALLOC or user in known

        return (
            owner is not None
            and owner.name == "memref.alloc"
            and all(is_known(use) for use in self._c.uses)
        )

    def _may_write(self, target: Any, map_: Any, loops: Loops, reading: Reading) -> bool:
        """Whether the kernel may write to `target`: the writes must not change elements that the
        epilogue reads later. An operand that is read at the very index that is written is allowed,
        as the read comes first."""
        placed = place_operand(target, map_, loops)
        return all(
            not isinstance(operand.value.type, ir.MemRefType)
            or not self._roots.may_overlap(operand.value, target)
            or (placed is not None and operand.is_same(placed[0]) and description.axes == placed[2])
            for description, operand in zip(
                reading.epilogue_operands, reading.operands, strict=True
            )
        )

    def _loops(self, value: Any, map_: Any) -> Loops | None:
        """The loops along C, or along a view of it; None if an axis is unknown."""
        names: list[str] | None = self._names
        if value != self._c:
            names = self._viewed(ops.defining(value))
        return None if names is None else Loops.of(value.type, names, map_)

    def _viewed(self, view: Any) -> list[str] | None:
        """The axis along each dimension of a view of C; None if a dimension mixes two axes."""
        groups = ops.groups_of(view)
        if view.name == "memref.expand_shape":
            pairs = zip(self._names, groups, strict=True)
            return [name for name, group in pairs for _ in group]
        merged = [{self._names[i] for i in group} for group in groups]
        return None if any(len(names) != 1 for names in merged) else [*map(min, merged)]

    def _leaves(self, operation: Any, reads: Sequence[Any]) -> bool:
        """Whether it can stand in front of the matmul as well as behind it."""
        if accesses_no_element(operation):
            return True
        buffers = _buffers(operation.operands)
        if operation.name == _DEALLOC:
            return not self._overlap(buffers, [*reads, self._c])
        if operation.name != "linalg.generic" or len(operation.results):
            return reads_shape_only(operation)
        # A body may read buffers that are no operands.
        inner = [op for op in ops.walk(operation)[1:] if _buffers(op.operands)]
        if any(op.name != "memref.load" for op in inner):
            return False
        buffers += [value for op in inner for value in _buffers(op.operands)]
        _, outputs = ops.operand_groups(operation)
        return not self._overlap(buffers, [self._c]) and not self._overlap(outputs, reads)

    def _overlap(self, ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
        return any(self._roots.may_overlap(one, other) for one in ours for other in theirs)


def _buffers(values: Any) -> list[Any]:
    return [value for value in values if isinstance(value.type, ir.MemRefType)]


def _element(buffer: Any) -> str:
    return str(ir.MemRefType(buffer.type).element_type)


def _source(value: Any) -> Any:
    """The buffer that a value is a reshape of, or the value itself."""
    owner = ops.defining(value)
    return owner.operands[0] if owner is not None and owner.name in _VIEWS else value
