"""Operations with regions: loops, branches and launches, whose bodies are built inside a `with`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aotc.builder.numbers import (
    Condition,
    Number,
    Value,
    compare,
    is_equal,
    wrap,
)
from aotc.builder.operations import Operations, Type
from aotc.mlir import ir
from aotc.ops import create


class Loop:
    """An `scf.for` whose body is being built. `index` is the induction variable, `carried` are the
    iteration arguments. `next` ends the body. Afterwards `results` are the values that the last
    iteration yielded."""

    def __init__(self, operation: Any) -> None:
        self.index, *self.carried = _wrapped(operation.regions[0].blocks[0].arguments)
        self.results = _wrapped(operation.results)

    def next(self, values: Sequence[Value]) -> None:
        create("scf.yield", values)


class Branch:
    """An `scf.if` without results. `operation` is None if the condition is known to be true."""

    def __init__(self, operation: Any) -> None:
        self.operation = operation

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Builds the else region. It may be called once, and only if `operation` is not None."""
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
    """The builder's operations that have regions."""

    def __init__(self) -> None:
        super().__init__()
        self._kernel_name = ""

    @contextmanager
    def loop(
        self, start: Number, stop: Number, step: Number = 1, carried: Sequence[Value] = ()
    ) -> Iterator[Loop]:
        """Builds an `scf.for`. Its bounds and step are of type index, unless one of them is a value
        of another type. With `carried`, the body must end with `Loop.next`."""
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
        """Builds code under a condition: in an `scf.if`, or without one if the condition is
        True."""
        if condition is True:
            yield Branch(None)
            return
        operation = create("scf.if", [condition], regions=2)
        with ir.InsertionPoint(operation.regions[0].blocks.append()):
            yield Branch(operation)
            create("scf.yield")

    def choose(self, condition: Condition, types: Sequence[Type], yes: Any, no: Any) -> list[Value]:
        """The values that `yes` returns if the condition holds, else those of `no`. Both functions
        build their code, unless the condition is known: then only the one that it selects."""
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
        """Builds an `scf.execute_region` without results, and yields the operation."""
        operation = create("scf.execute_region", regions=1)
        with ir.InsertionPoint(operation.regions[0].blocks.append()):
            yield operation
            create("scf.yield")

    @contextmanager
    def launch_unless_empty(
        self, blocks: Number, threads: Number, shared_bytes: int = 0, *, role: str = ""
    ) -> Iterator[Launch]:
        """Builds a launch that is skipped if there are no blocks, as the runtime rejects an empty
        grid."""
        is_there = compare("slt", 0, blocks)
        with self.where(is_there), self.launch(blocks, threads, shared_bytes, role=role) as launch:
            yield launch

    @contextmanager
    def kernel_name(self, name: str) -> Iterator[None]:
        """Kernels that are launched inside get this name, with the role that `launch` is given
        appended. The name of an outer `kernel_name` takes precedence."""
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
        """Builds a kernel in a `gpu.launch`.

        `blocks` is the number of blocks along x, or the numbers along x, y and z. `threads` is the
        number of threads of a block, along x. `shared_bytes` are the bytes of dynamic shared memory
        (of type i32 if it is a value). `cluster` is the number of blocks of a cluster. `role` is
        appended to the kernel's name, and says which part of the operation the kernel does."""
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
