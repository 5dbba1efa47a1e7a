"""Which buffers of a function may alias, for loops that are parallelized.

Upstream's `affine-parallelize` assumes that two SSA values are two buffers. For the arguments of an
entry that is a promise (docs/limits.md); for two views of one buffer it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aotc import ops
from aotc.analysis.functions import Functions
from aotc.input.entries import ENTRY_ATTRIBUTE
from aotc.mlir import ir
from aotc.ops import symbol_of

_KEEP = "aotc_keep_sequential"
# Affine access → the index of its memref operand, and whether it writes.
_ACCESSES = {
    "affine.load": (0, False),
    "affine.vector_load": (0, False),
    "affine.store": (1, True),
    "affine.vector_store": (1, True),
}
_ALLOCATIONS = ("memref.alloc", "memref.alloca", "gpu.alloc")
# The root of a value that may be a view of any buffer.
_ANYTHING = "anything"


class Roots:
    """The root buffers of the memrefs of a module.

    With `follows_loops`, values are followed through branches and loops, for as long as no
    operation of the module is erased.
    """

    def __init__(self, functions: Functions, *, follows_loops: bool = False) -> None:
        self._functions = functions
        self._follows_loops = follows_loops

    def of(self, value: Any) -> frozenset[Any]:
        """The allocations, globals and arguments that `value` may be a view of, or `_ANYTHING`."""
        return frozenset(self._trace(value, []))

    def may_overlap(self, one: Any, other: Any) -> bool:
        """Whether two SSA values may be views of one buffer."""
        ours, theirs = self.of(one), self.of(other)
        return _ANYTHING in ours or _ANYTHING in theirs or bool(ours & theirs)

    def _trace(self, value: Any, seen: list[Any]) -> Iterator[Any]:
        if any(value == other for other in seen):
            return
        seen.append(value)
        producer = ops.defining(value)
        sources = _sources_of(value) if self._follows_loops else None
        if sources is not None:
            for source in sources:
                yield from self._trace(source, seen)
        elif producer is None:
            yield from self._trace_argument(value, seen)
        elif producer.name in _ALLOCATIONS:
            yield producer
        elif producer.name == "memref.get_global":
            yield ("global", ops.global_of(producer))
        elif producer.name == "arith.select":
            yield from self._trace(producer.operands[1], seen)
            yield from self._trace(producer.operands[2], seen)
        elif producer.name.startswith("memref.") and _is_memref(producer.operands[0]):
            yield from self._trace(producer.operands[0], seen)
        else:
            yield _ANYTHING

    def _trace_argument(self, argument: Any, seen: list[Any]) -> Iterator[Any]:
        function = argument.owner.owner.operation
        if function.name != "func.func" or argument.owner != function.regions[0].blocks[0]:
            yield _ANYTHING
            return
        name, index = symbol_of(function), argument.arg_number
        operands = self._functions.passed(name, index)
        # Callers of an entry from outside the module are unknown.
        if ENTRY_ATTRIBUTE in function.attributes or not operands:
            yield ("argument", name, index)
        for operand in operands:
            yield from self._trace(operand, seen)


def _is_memref(value: Any) -> bool:
    return isinstance(value.type, ir.MemRefType | ir.UnrankedMemRefType)


_BRANCHES = ("scf.if", "scf.index_switch", "scf.execute_region")
_LOOP_BOUNDS = 3  # operands of an scf.for before its initial values


def _sources_of(value: Any) -> list[Any] | None:
    """The values that a selection, a branch or a sequential loop hands on as `value`, a result of
    it or an argument of its regions. None for a value of another operation."""
    producer = ops.defining(value)
    if producer is None:
        return _sources_of_argument(value)
    number = ir.OpResult(value).result_number
    if producer.name in _BRANCHES:
        yields = [op for op in _terminators(producer) if op.name == "scf.yield"]
        return [op.operands[number] for op in yields]
    if producer.name == "scf.for":
        return _carried(producer, number)
    if producer.name == "scf.while":
        return [_terminators(producer)[0].operands[1 + number]]
    return None


def _sources_of_argument(argument: Any) -> list[Any] | None:
    block, number = argument.owner, argument.arg_number
    loop = block.owner.operation
    if loop.name == "scf.for":
        return _carried(loop, number - 1)
    if loop.name != "scf.while":
        return None
    condition, end = _terminators(loop)
    if block == loop.regions[0].blocks[0]:
        return [loop.operands[number], end.operands[number]]
    return [condition.operands[1 + number]]


def _carried(loop: Any, number: int) -> list[Any]:
    """The initial value and the next one of a value that an `scf.for` carries."""
    return [loop.operands[_LOOP_BOUNDS + number], _terminators(loop)[0].operands[number]]


def _terminators(operation: Any) -> list[Any]:
    """The last operation of each block in the regions of an operation."""
    return [
        list(block.operations)[-1].operation for region in operation.regions for block in region
    ]


def accesses_overlap(loop: Any, roots: Roots) -> bool:
    """Whether the loop stores through one SSA value to a buffer that it may access through
    another."""
    accessed: dict[tuple[Any, bool], None] = {}
    for op in ops.walk(loop):
        if op.name in _ACCESSES:
            operand, writes = _ACCESSES[op.name]
            accessed[op.operands[operand], writes] = None
    return any(
        writes and one != other and roots.may_overlap(one, other)
        for one, writes in accessed
        for other, _ in accessed
    )


# The check whether a loop is parallel takes time in the fifth power of the number of loops around
# an access, and in the square of the number of accesses: a second for as many as these.
_DEEPEST_NEST = 32
_MOST_ACCESSES = 500


def _is_large(loop: Any) -> bool:
    """Whether an outermost loop has so many loops or accesses that the check takes too long."""
    inside = ops.walk(loop)
    if sum(op.name in _ACCESSES for op in inside) > _MOST_ACCESSES:
        return True
    loops = [op for op in inside if op.name == "affine.for"]
    return len(loops) > _DEEPEST_NEST and any(
        sum(outer.name == "affine.for" for outer in ops.ancestors(op)) >= _DEEPEST_NEST
        for op in loops
    )


@contextmanager
def some_loops_kept_sequential(function: Any, roots: Roots) -> Iterator[None]:
    """While active, `affine-parallelize` does not change loops whose buffers may alias, nor loops
    whose check would take too long.

    The pass does not parallelize a loop with a call, as the callee may have any effect. So this
    inserts a call into each of these loops, and erases it afterwards.
    """
    outermost = [
        op
        for op in ops.find(function, "affine.for")
        if ops.enclosing(op, "affine.for") is None
        and (_is_large(op) or accesses_overlap(op, roots))
    ]
    calls = []
    for loop in (inner for outer in outermost for inner in ops.find(outer, "affine.for")):
        first = next(iter(loop.regions[0].blocks[0].operations))
        with loop.location, ir.InsertionPoint(first):
            calls.append(ops.call(_KEEP))
    try:
        if calls:
            declaration = ir.Operation.parse(f"func.func private @{_KEEP}()")
            function.block.append(declaration)
        yield
    finally:
        if calls:
            for call in ops.find(function, "func.call"):
                if ops.callee_of(call) == _KEEP:
                    ops.erase(call)
            ops.erase(declaration)
