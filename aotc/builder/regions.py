"""Operations with regions: loops, branches and launches, whose bodies are built inside a `with`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aotc.builder.operations import Operations, Type
from aotc.mlir import ir
from aotc.numbers import (
    Condition,
    Number,
    Value,
    compare,
    is_equal,
    wrap,
)
from aotc.ops import create


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


class Regions(Operations):
    """What makes them."""

    def __init__(self) -> None:
        super().__init__()
        self._kernel_name = ""

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
