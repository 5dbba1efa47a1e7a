"""A common description of loops whose iterations may run in any order: parallel loops, and
reductions by an associative operation.

A sum of floats is computed in another order than the loop's, but in a fixed order, so that results
are reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import accesses_in, is_understood
from aotc.lower.mapping.nest import Dimension, known_product, known_trips
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of
from aotc.rewrites.reductions import FLOAT_KINDS, INTEGER_KINDS, neutral_bits

KINDS = {name: kind for table in (INTEGER_KINDS, FLOAT_KINDS) for kind, name in table.items()}
_NAN, _INFINITY = float("nan"), float("inf")
# Identity elements. (x + -0.0 is x for each x; x + 0.0 is not, for x = -0.0.)
_FLOAT_NEUTRAL = {
    "add": -0.0,
    "mul": 1.0,
    "minnumf": _NAN,
    "maxnumf": _NAN,
    "minimumf": _INFINITY,
    "maximumf": -_INFINITY,
}


class Accumulator(Struct, frozen=True):
    """A loop-carried value that is reduced by `kind`, one of #gpu<all_reduce_op>: it starts at
    `init`, and each iteration combines it with `value`."""

    kind: str
    init: Any
    value: Any

    @property
    def type(self) -> Any:
        return self.value.type

    def combine(self, left: Any, right: Any) -> Any:
        """Combines two partial results, at the insertion point."""
        is_integer = isinstance(self.type, ir.IntegerType)
        name = (INTEGER_KINDS if is_integer else FLOAT_KINDS)[self.kind]
        return ops.binary(name, left, right)

    def neutral(self) -> Any:
        """The identity element of the reduction as a constant, at the insertion point."""
        if isinstance(self.type, ir.IntegerType):
            return ops.constant(self.type, neutral_bits(self.kind, self.type.width))
        return ops.constant(self.type, _FLOAT_NEUTRAL[self.kind])


class Columns(Struct, frozen=True):
    """A loop, or a nest of loops, whose iterations may run in any order.

    `bounds`: (lower, upper, step) of each dimension, outermost first. `accumulators` are in the
    order of the loop's results.
    """

    loop: Any
    bounds: tuple[tuple[Any, Any, Any], ...]
    variables: tuple[Any, ...]
    body: tuple[Any, ...]
    accumulators: tuple[Accumulator, ...]

    @property
    def known_count(self) -> int | None:
        """The number of iterations of the whole nest; None if it is unknown."""
        return known_product([known_trips(*bounds) for bounds in self.bounds])

    @property
    def normal_bounds(self) -> tuple[tuple[Any, ...], ...]:
        """The bounds, with constants as integers, so that they are equal for loops with the same
        iteration space."""
        return tuple(
            tuple(value if (known := ops.known_index(value)) is None else known for value in one)
            for one in self.bounds
        )

    def dimensions(self, values: dict[Any, Any]) -> list[Dimension]:
        """The dimensions as values, at the insertion point. `values` maps values of the surrounding
        loop to those at the insertion point: a row's columns may depend on the row."""
        return [
            Dimension.of(*(values.get(bound, bound) for bound in bounds)) for bounds in self.bounds
        ]

    def loads_along(self) -> bool:
        """Whether there is a load in which adjacent iterations read adjacent elements."""
        last = self.variables[-1]
        return any(
            access.indices and access.indices[-1] == last
            for operation in self.body
            for access in accesses_in(operation)
            if not access.writes
        )


def describe_columns(loop: Any) -> Columns | None:
    """The description of the loop; None if its iterations are not known to be unordered."""
    if loop.name == "scf.parallel":
        return _describe_parallel(loop)
    if loop.name != "scf.for" or "unsignedCmp" in loop.attributes:
        return None
    is_index = isinstance(loop.operands[0].type, ir.IndexType)
    return _describe_sequential(loop) if is_index else None


def _describe_parallel(loop: Any) -> Columns | None:
    lowers, uppers, steps, inits = ops.operand_groups(loop)
    block = loop.regions[0].blocks[0]
    body = body_of(loop)
    if not all(is_understood(op, may_store=not inits) for op in body):
        return None
    reduce = ops.terminator(block)
    accumulators = []
    for init, value, region in zip(inits, reduce.operands, reduce.regions, strict=True):
        kind = _kind_of_region(region)
        if kind is None or not can_reduce(init.type, kind):
            return None
        accumulators.append(Accumulator(kind, init, value))
    bounds = tuple(zip(lowers, uppers, steps, strict=True))
    return Columns(loop, bounds, tuple(block.arguments), tuple(body), tuple(accumulators))


def _kind_of_region(region: Any) -> str | None:
    """The kind of reduction that a region of scf.reduce computes; None if it is not supported."""
    if len(region.blocks) != 1 or len(list(region.blocks[0].operations)) != 2:
        return None
    combination, end = (op.operation for op in region.blocks[0].operations)
    is_of_both = set(combination.operands) == set(region.blocks[0].arguments)
    if (
        not is_of_both
        or len(combination.operands) != 2
        or end.operands[0] != combination.results[0]
    ):
        return None
    return KINDS.get(combination.name)


def can_reduce(type_: Any, kind: str) -> bool:
    """Whether kernels support a reduction of this kind for this element type."""
    if isinstance(type_, ir.IntegerType):
        is_of_bits = int(type_.width) == 1 and kind in ("and", "or", "xor")
        return is_of_bits or int(type_.width) in (8, 16, 32, 64)
    return isinstance(type_, ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type)


def _describe_sequential(loop: Any) -> Columns | None:
    """Describes an scf.for in which each carried value is a reduction, or a nest of such loops."""
    block = loop.regions[0].blocks[0]
    if not loop.results or not is_understood(loop, may_store=False):
        return None
    variable, *carried = block.arguments
    bounds = tuple(list(loop.operands)[:3])
    inits = list(loop.operands)[3:]
    body = body_of(loop)
    yielded = list(ops.terminator(block).operands)
    inner = ops.defining(yielded[0])
    if inner is not None and inner.name == "scf.for":
        return _describe_nest(loop, bounds, inits, inner)
    accumulators, combinations = [], []
    for init, old, new in zip(inits, carried, yielded, strict=True):
        combination = ops.defining(new)
        if combination is None or combination not in body:
            return None
        value = _added_value(combination, old)
        if value is None or value in carried:
            return None
        kind = KINDS[combination.name]
        if not can_reduce(init.type, kind):
            return None
        accumulators.append(Accumulator(kind, init, value))
        combinations.append(combination)
    body = [op for op in body if op not in combinations]
    return Columns(loop, (bounds,), (variable,), tuple(body), tuple(accumulators))


def _added_value(combination: Any, old: Any) -> Any | None:
    """The operand that is combined with the carried value, if the carried value has no other use;
    otherwise None."""
    uses = list(old.uses)
    if combination.name not in KINDS or len(combination.operands) != 2 or len(uses) != 1:
        return None
    if len(list(combination.results[0].uses)) != 1 or uses[0].owner.operation != combination:
        return None
    return combination.operands[1 - uses[0].operand_number]


def _describe_nest(
    loop: Any, bounds: tuple[Any, ...], inits: Sequence[Any], inner: Any
) -> Columns | None:
    """Describes a loop that only passes its carried values to an inner reduction."""
    block = loop.regions[0].blocks[0]
    variable, *carried = block.arguments
    end = ops.terminator(block)
    columns = describe_columns(inner)
    passed = list(inner.operands)[3:]
    if columns is None or inner not in body_of(loop):
        return None
    if list(end.operands) != list(inner.results) or passed != carried:
        return None
    if any(len(list(value.uses)) != 1 for value in (*carried, *inner.results)):
        return None
    around = [op for op in body_of(loop) if op != inner]
    made_here = {loop.regions[0].blocks[0].arguments[0]} | {r for op in around for r in op.results}
    if any(value in made_here for one in columns.bounds for value in one):
        return None  # the inner bounds depend on the outer loop, as in a triangle
    accumulators = tuple(
        Accumulator(a.kind, init, a.value)
        for a, init in zip(columns.accumulators, inits, strict=True)
    )
    return Columns(
        loop,
        (bounds, *columns.bounds),
        (variable, *columns.variables),
        (*around, *columns.body),
        accumulators,
    )
