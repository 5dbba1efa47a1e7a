"""Merges adjacent dimensions of a loop that are contiguous in memory.

For an elementwise operation, an image of 7x7 points in each of 512 channels is 25088 consecutive
numbers. As three dimensions with a short last one, it would leave most lanes of a warp or vector
idle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import Access, access_of
from aotc.analysis.same_sizes import is_size_of
from aotc.builder.numbers import Number, Scalar
from aotc.kernels.matmul.fusion.collapsed import collapse, collapsed_type
from aotc.lower.mapping.build import create_loop, create_parallel
from aotc.lower.mapping.columns import Columns, describe_columns
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of


class _Hoisted:
    """Collapsed views of buffers, and products of sizes, which are created before `loop`. All
    accesses of a buffer share one view, so that a load is known to read what a store wrote, and
    loops of the same sizes share their product."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._made: dict[tuple[Any, str], Any] = {}
        self._products: dict[tuple[Any, ...], Any] = {}

    def product(self, sizes: Sequence[Any]) -> Any:
        """The product of values of type index, at the insertion point or before the loop."""
        if not all(ops.is_made_outside(size, self._loop) for size in sizes):
            return _product(sizes)
        known = [ops.known_index(size) for size in sizes]
        key = tuple(
            size if number is None else number for size, number in zip(sizes, known, strict=True)
        )
        if key not in self._products:
            with ir.InsertionPoint(self._loop):
                self._products[key] = _product(sizes)
        return self._products[key]

    def view(self, memref: Any, parts: Sequence[Sequence[int]]) -> Any:
        if not ops.is_made_outside(memref, self._loop):
            return collapse(memref, parts)
        key = memref, str(parts)
        if key not in self._made:
            with ir.InsertionPoint(self._loop):
                self._made[key] = collapse(memref, parts)
        return self._made[key]


def merge_dimensions(loop: Any, hoisted: _Hoisted | None = None) -> Any:
    """The scf.parallel, which has no results, with as few dimensions as possible; `loop` itself if
    none can be merged."""
    variables = list(loop.regions[0].blocks[0].arguments)
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    groups = _groups(variables, _sizes(lowers, uppers, steps))
    merged = len(groups) < len(variables)
    return _merge(loop, groups, hoisted) if merged else loop


def merge_columns(loop: Any) -> None:
    """Merges dimensions of the loops along the rows of `loop`, an scf.parallel over rows."""
    hoisted = _Hoisted(loop)
    for operation in body_of(loop):
        if operation.name == "scf.parallel" and not operation.results:
            merge_dimensions(operation, hoisted)
        elif operation.name == "scf.for":
            columns = describe_columns(operation)
            if columns is not None:
                _merge_nest(columns, hoisted)


def _merge_nest(columns: Columns, hoisted: _Hoisted) -> None:
    """Merges a nest of reductions into one loop if all of its dimensions are contiguous in
    memory."""
    nest = [columns.loop]
    while len(nest) < len(columns.bounds):
        (inner, *others) = body_of(nest[-1])
        if others or inner.name != "scf.for":
            return
        nest.append(inner)
    lowers, uppers, steps = zip(*columns.bounds, strict=True)
    if len(nest) == 1 or len(_groups(columns.variables, _sizes(lowers, uppers, steps))) > 1:
        return
    _, *carried = nest[-1].regions[0].blocks[0].arguments
    end = list(nest[-1].regions[0].blocks[0].operations)[-1].operation

    def inside(position: Any, values: list[Any]) -> list[Any]:
        _collapse_all(nest[-1], set(columns.variables[1:]), hoisted)
        for old, new in zip((columns.variables[0], *carried), (position, *values), strict=True):
            old.replace_all_uses_with(new)
        for operation in body_of(nest[-1]):
            ir.InsertionPoint.current.insert(operation.detach_from_parent())
        return list(end.operands)

    with columns.loop.location, ir.InsertionPoint(columns.loop):
        zero, one = ops.constant_index(0), ops.constant_index(1)
        count = hoisted.product(uppers)
        inits = list(columns.loop.operands)[3:]
        for old, new in zip(
            columns.loop.results, create_loop(zero, count, one, inits, inside), strict=True
        ):
            old.replace_all_uses_with(new)
    ops.erase(columns.loop)


def _sizes(lowers: Sequence[Any], uppers: Sequence[Any], steps: Sequence[Any]) -> list[Any | None]:
    """The size of each dimension that starts at 0 with step 1, a value of type index; None for
    another form."""
    return [
        upper if ops.known_index(lower) == 0 and ops.known_index(step) == 1 else None
        for lower, upper, step in zip(lowers, uppers, steps, strict=True)
    ]


def _product(sizes: Sequence[Any]) -> Any:
    """The product of values of type index, created at the insertion point."""
    known = [ops.known_index(size) for size in sizes]
    total: Number = math.prod(size for size in known if size is not None)
    for size, number in zip(sizes, known, strict=True):
        if number is None:
            total = Scalar(size) * total
    return ops.constant_index(total) if isinstance(total, int) else total


def _groups(variables: Sequence[Any], sizes: Sequence[Any | None]) -> list[list[int]]:
    """The groups of dimensions that are merged, by their numbers."""
    accesses = {variable: _accesses(variable) for variable in variables}
    groups = [[0]]
    for inner in range(1, len(variables)):
        outer = groups[-1][-1]
        is_plain = sizes[outer] is not None and sizes[inner] is not None
        if is_plain and _are_one(variables, outer, inner, sizes, accesses):
            groups[-1].append(inner)
        else:
            groups.append([inner])
    return groups


def _accesses(variable: Any) -> list[Access] | None:
    """The accesses with the variable as an index; None if it has other uses."""
    found = []
    for use in variable.uses:
        access = access_of(use.owner.operation)
        if access is None or list(access.operation.operands).count(variable) != 1:
            return None
        found.append(access)
    return found


def _are_one(
    variables: Sequence[Any],
    outer: int,
    inner: int,
    sizes: Sequence[Any | None],
    accesses: dict[Any, list[Access] | None],
) -> bool:
    """Whether two dimensions can be merged.

    Each access has both variables or neither. The variables index adjacent dimensions of a
    contiguous memref, and the inner dimension has the loop's size.
    """
    first, second = variables[outer], variables[inner]
    of_first, of_second = accesses[first], accesses[second]
    if not of_first or not of_second or len(of_first) != len(of_second):
        return False
    for access in of_first:
        type_ = ir.MemRefType(access.memref.type)
        place = access.indices.index(first) + 1
        if place == type_.rank or access.indices[place] != second:
            return False
        if not is_size_of(sizes[inner], access.memref, place):
            return False
        if collapsed_type(access.memref, _all_but(place, type_.rank)) is None:
            return False
    return True


def _all_but(place: int, rank: int) -> list[list[int]]:
    """Groups of dimensions for a collapse of `place` and the dimension before it."""
    return [[i, i + 1] if i + 1 == place else [i] for i in range(rank) if i != place]


def _merge(loop: Any, groups: Sequence[Sequence[int]], hoisted: _Hoisted | None) -> Any:
    old = loop.regions[0].blocks[0]
    variables = list(old.arguments)
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    product = _product if hoisted is None else hoisted.product
    with loop.location, ir.InsertionPoint(loop):
        ends = [
            uppers[group[0]] if len(group) == 1 else product([uppers[i] for i in group])
            for group in groups
        ]
        firsts = [group[0] for group in groups]
        merged = create_parallel([lowers[i] for i in firsts], ends, [steps[i] for i in firsts])
    for name in loop.attributes:
        if name != "operandSegmentSizes":
            merged.attributes[name] = loop.attributes[name]
    new = merged.regions[0].blocks[0]
    end = ops.terminator(new)
    for operation in list(old.operations)[:-1]:
        operation.operation.move_before(end)
    _collapse_all(
        merged, {variables[i] for group in groups for i in group[1:]}, hoisted or _Hoisted(merged)
    )
    for group, variable in zip(groups, new.arguments, strict=True):
        variables[group[0]].replace_all_uses_with(variable)
    ops.erase(loop)
    return merged


def _collapse_all(loop: Any, gone: set[Any], hoisted: _Hoisted) -> None:
    for operation in ops.walk(loop):
        access = access_of(operation)
        if access is not None and gone & set(access.indices):
            _collapse(access, gone, hoisted)


def _collapse(access: Access, gone: set[Any], hoisted: _Hoisted) -> None:
    """Recreates the access on a collapsed view. The dimension of each index in `gone` is collapsed
    into the one before it."""
    parts: list[list[int]] = []
    for place, index in enumerate(access.indices):
        if index in gone:
            parts[-1].append(place)
        else:
            parts.append([place])
    operation = access.operation
    with operation.location, ir.InsertionPoint(operation):
        view = hoisted.view(access.memref, parts)
        kept = [index for index in access.indices if index not in gone]
        stored = [operation.operands[0]] if access.writes else []
        types = [result.type for result in operation.results]
        again = ops.create(operation.name, [*stored, view, *kept], types)
    ops.replace(operation, again.results)
