"""Finds elementwise operations that combine equal parts of the columns of a matmul: the gates of an
LSTM, a GRU or a gated linear unit. A kernel may compute them with the matmul, if no other operation
reads the matmul's result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.block_order import BlockOrder
from aotc.analysis.generics import maps_of
from aotc.analysis.views import are_disjoint, root_of
from aotc.kernels.matmul.epilogue import Epilogue
from aotc.kernels.matmul.fusion.collapsed import collapsed_type
from aotc.kernels.matmul.fusion.elementwise import (
    Loops,
    Operand,
    Reading,
    is_elementwise,
    place_operand,
)
from aotc.kernels.matmul.gates import GateArguments, Gates, gate_name
from aotc.kernels.matmul.problem import Axis, Problem
from aotc.kernels.matmul.recognition import matrix_of_type
from aotc.mlir import ir

_VIEWS = ("memref.subview", "memref.expand_shape", "memref.collapse_shape")
_FULL = (Axis("row"), Axis("column"))


class FusedGates(Struct):
    """The combination of gates that a kernel may compute. `operations`: the operations that it
    replaces, in order. `operands`: the epilogue operands of `gates`. `outputs`: the buffers that it
    writes."""

    gates: Gates
    operations: list[Any]
    operands: list[Operand]
    outputs: list[Operand]

    def make_arguments(self) -> GateArguments:
        """The kernel's arguments, at the insertion point."""
        operands, outputs = (
            tuple(one.make() for one in part) for part in (self.operands, self.outputs)
        )
        return GateArguments(operands, outputs)


class Product(Struct):
    """A matmul whose consumers are examined. `replaced`: the operations that its kernel replaces.
    `c`: its result. `reads`: the buffers that its kernel reads. `done`: the operations that other
    kernels replace. `later`: the results of later matmuls."""

    problem: Problem
    replaced: Sequence[Any]
    c: Any
    reads: Sequence[Any]
    done: Collection[Any]
    later: Sequence[Any]


def find_gates(
    product: Product,
    roots: Roots,
    order: BlockOrder,
    leaves: Callable[[Any, Sequence[Any]], bool],
) -> FusedGates | None:
    """The operations that combine the gates of a matmul, if no other operation reads its result;
    else None. `leaves(operation, reads)` returns whether an operation may be moved in front of the
    matmul, which reads the buffers `reads`."""
    owner = ops.defining(product.c)
    if product.problem.batched or product.problem.adds or owner is None:
        return None
    if owner.name != "memref.alloc":
        return None
    readers = _Readers(product, owner)
    if not readers.find(product.c):
        return None
    n, columns = product.problem.n, readers.columns
    if n is None or columns is None or n == columns or n % columns:
        return None
    combination = _GateCombination(product, roots, readers.gates)
    for operation in order.after(product.replaced[-1]):
        if operation in readers.operations:
            if not combination.take(operation):
                return None
            if len(combination.operations) == len(readers.operations):
                return combination.result(n // columns, columns)
        elif not leaves(operation, combination.reads) or combination.uses_outputs(operation):
            return None
    return None


class _Readers:
    """The operations that read a matmul's result, through views of equal parts of its columns.
    `owner` is the allocation of the result."""

    def __init__(self, product: Product, owner: Any) -> None:
        self._product, self._owner = product, owner
        # The index of the gate that each view has.
        self.gates: dict[Any, int] = {}
        self.operations: list[Any] = []
        self.columns: int | None = None

    def find(self, value: Any) -> bool:
        """Collects the readers of the value, which is C or a view of it. Returns False if one of
        them is not supported."""
        return all(self._take(value, use.owner.operation) for use in value.uses)

    def _take(self, value: Any, user: Any) -> bool:
        if user in self._product.replaced or user.name == "memref.dealloc":
            return True
        if user.name == "memref.dim":
            return ops.known_dimension(user) is not None
        if user.name in _VIEWS:
            return self.find(user.results[0])
        if not is_elementwise(user) or value in list(ops.operand_groups(user)[1]):
            return False
        if user not in self.operations:
            self.operations.append(user)
        return value in self.gates or self._take_view(value)

    def _take_view(self, value: Any) -> bool:
        """Notes the gate of a view. Returns False unless it has all rows and the columns of one
        gate."""
        rank = ir.MemRefType(value.type).rank
        if rank < 2:
            return False
        type_ = collapsed_type(value, [list(range(rank - 1)), [rank - 1]])
        if type_ is None or type_.is_dynamic_dim(1):
            return False
        problem, columns = self._product.problem, int(type_.shape[1])
        strides, offset = type_.get_strides_and_offset()
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        if unknown in (offset, *strides) or list(strides) != [problem.n, 1]:
            return False
        if self.columns not in (None, columns) or offset % columns or offset >= strides[0]:
            return False
        if not (self._has_rows(value) if type_.is_dynamic_dim(0) else type_.shape[0] == problem.m):
            return False
        self.columns, self.gates[value] = columns, offset // columns
        return True

    def _has_rows(self, value: Any) -> bool:
        """Whether a view has all rows of C, if their number is unknown."""
        view = ops.defining(value)
        return (
            view is not None
            and view.name == "memref.subview"
            and view.operands[0] == self._owner.results[0]
            and list(view.operands)[1:] == list(self._owner.operands)
        )


class _GateCombination:
    """Collects the operations that combine the gates."""

    def __init__(self, product: Product, roots: Roots, gates: dict[Any, int]) -> None:
        self._product, self._roots, self._gates = product, roots, gates
        self._reading = Reading([], [], [])
        self._later = [root_of(value) for value in product.later]
        self.operations: list[Any] = []
        self._outputs: list[tuple[Operand, str]] = []
        # The buffers that the kernel reads: operations in front of it must not write them.
        self.reads = list(product.reads)

    def take(self, operation: Any) -> bool:
        """Adds the operation to the kernel. Returns False if that is not possible."""
        inputs, [output] = ops.operand_groups(operation)
        values, maps = [*inputs, output], maps_of(operation)
        if operation in self._product.done or any(root_of(one) in self._later for one in values):
            return False
        arguments = list(operation.regions[0].blocks[0].arguments)
        own = [number for number, value in enumerate(values) if value in self._gates]
        loops = self._loops(values[own[0]], maps[own[0]])
        if loops is None or any(self._loops(values[i], maps[i]) != loops for i in own):
            return False
        names = {}
        for argument, value, map_ in zip(arguments, values, maps, strict=True):
            if list(argument.uses):
                name = self._name(value, map_, loops)
                if name is None:
                    return False
                names[argument] = name
        result = self._reading.body(operation, names, loops)
        placed = place_operand(output, maps[-1], loops)
        if result is None or placed is None or placed[2] != _FULL:
            return False
        if matrix_of_type(placed[1], batched=False) is None:
            return False
        self.operations.append(operation)
        self.reads += [one for one in values if isinstance(one.type, ir.MemRefType)]
        self._outputs.append((placed[0], result))
        return True

    def _loops(self, value: Any, map_: Any) -> Loops | None:
        type_ = ir.MemRefType(value.type)
        return Loops.of(type_, [*["row"] * (type_.rank - 1), "column"], map_)

    def _name(self, value: Any, map_: Any, loops: Loops) -> str | None:
        """The name of the value that an operation reads: a gate, the result of a previous
        operation, or an epilogue operand."""
        if value in self._gates:
            return gate_name(self._gates[value])
        if isinstance(value.type, ir.MemRefType):
            placed = place_operand(value, map_, loops)
            for output, name in self._outputs:
                if placed is not None and placed[0].is_same(output) and placed[2] == _FULL:
                    return name
                if self._overlap(value, output.value):
                    return None
        return self._reading.read(value, map_, loops)

    def uses_outputs(self, operation: Any) -> bool:
        """Whether the operation reads, writes or frees the outputs so far."""
        if operation.name not in ("linalg.generic", "memref.dealloc"):
            return False
        buffers = [value for inner in ops.walk(operation) for value in inner.operands]
        return any(
            self._overlap(value, output.value) for value in buffers for output, _ in self._outputs
        )

    def result(self, count: int, columns: int) -> FusedGates | None:
        """The gates of the operations so far; None if the kernel would read elements that it has
        written."""
        reading = self._reading
        outputs = [output for output, _ in self._outputs]
        for number, output in enumerate(outputs):
            # The kernel may read the very element that it writes, as the read comes first.
            read = zip(reading.epilogue_operands, reading.operands, strict=True)
            apart = [
                operand.value
                for description, operand in read
                if description.axes != _FULL or not operand.is_same(output)
            ]
            apart += [*self._product.reads, *(one.value for one in outputs[:number])]
            if any(self._overlap(output.value, value) for value in apart):
                return None
        epilogue = Epilogue(tuple(reading.steps), self._outputs[-1][1])
        names = tuple(name for _, name in self._outputs)
        operands = tuple(reading.epilogue_operands)
        gates = Gates(count, columns, epilogue, operands, names)
        return FusedGates(gates, self.operations, reading.operands, outputs)

    def _overlap(self, one: Any, other: Any) -> bool:
        if not isinstance(one.type, ir.MemRefType):
            return False
        return self._roots.may_overlap(one, other) and not are_disjoint(one, other)
