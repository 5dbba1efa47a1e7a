"""Splits a search for the extremum of a row and its index into two reductions.

`for j { c = x[j] > v; v = c ? x[j] : v; i = c ? j : i }` carries a pair. The extremum is a
reduction in any order, and so is the first or last index that holds it. Together they give the
loop's results, also for NaN and for equal elements. Of zeros with different signs, the maximum is
+0 and the minimum is -0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Overlaps, accesses_in, is_division, is_pure, is_understood
from aotc.lower.gpu_branches import is_for_gpu
from aotc.lower.mapping.build import copy_in_place_of
from aotc.lower.mapping.columns import can_reduce
from aotc.lower.mapping.nest import known_product, known_trips, loop_trips
from aotc.lower.mapping.single_rows import wrap_in_row
from aotc.lower.mapping.split_reductions import (
    Results,
    are_few_long_columns,
    bounds_of_part,
    computed_from,
    place_of_part,
    size_of_part,
)
from aotc.mlir import ir
from aotc.rewrites.capability import declare_capability, has_gpu
from aotc.rewrites.cloning import body_of, copy
from aotc.rewrites.reductions import neutral_bits

# Predicate numbers of arith.cmpf and arith.cmpi. The left operand is the element.
_OGT, _OGE, _OLT, _OLE, _ORD, _UGT, _ULT, _UNO = 2, 3, 4, 5, 7, 9, 11, 14
_OEQ, _EQ, _NE = 1, 0, 1
_LOOPS = ("scf.for", "scf.while", "scf.parallel", "gpu.launch")
# The predicates with swapped operands.
_MIRRORED_FLOATS = {_OGT: _OLT, _OGE: _OLE, _UGT: _ULT}
_MIRRORED_INTEGERS = {2: 4, 3: 5, 6: 8, 7: 9}
_FLOATS = {_OGT: ("maximumf", True), _OGE: ("maximumf", False)}
_FLOATS |= {_OLT: ("minimumf", True), _OLE: ("minimumf", False)}
_INTEGERS = {4: ("maxsi", True), 5: ("maxsi", False), 2: ("minsi", True), 3: ("minsi", False)}
_INTEGERS |= {8: ("maxui", True), 9: ("maxui", False), 6: ("minui", True), 7: ("minui", False)}


class _Comparison(Struct, frozen=True):
    """The condition under which an element replaces the carried value.

    `predicate`: of arith.cmpf or arith.cmpi, on (element, carried value). `kind`: the reduction
    that computes the extremum. `is_first`: of equal elements, the first is taken; otherwise the
    last. `is_nan_taken`: the first NaN is taken in preference to all numbers; otherwise NaN is
    never taken.
    """

    element: Any
    predicate: int
    kind: str
    is_first: bool
    is_nan_taken: bool


class _Extremum(Struct, frozen=True):
    """A loop that searches for an extremum.

    `value` and `place` are the numbers of the results with the extremum and its index. `at` is the
    index of the element that an iteration compares. `choice`: the operations that compare and
    select, in order.
    """

    loop: Any
    comparison: _Comparison
    value: int
    place: int
    at: Any
    choice: tuple[Any, ...]

    @property
    def known_count(self) -> int | None:
        return known_trips(*list(self.loop.operands)[:3])


def split_extremum(loop: Any, overlaps: Overlaps, *, along_rows: bool = False) -> None:
    """Changes an scf.for that searches for an extremum.

    With `along_rows`, this is only done if the elements, or what they are computed from, are
    adjacent in memory, or for few long columns. Few long rows and columns are split into parts. So
    is a loop of host code whose results are only stored.
    """
    found = _extremum(loop)
    if found is None:
        return
    is_column = along_rows and not _is_along_row(found)
    if is_column and not _is_of_few_long_columns(found):
        return
    with loop.location:
        _put_in_row(found)
        loops = _split_into_parts(found, overlaps)
    if is_column and len(loops) > 1:
        # A thread for each part of a column carries both.
        return
    for one in [again for loop in loops if (again := _extremum(loop)) is not None]:
        _split(one)


def split_extrema_of_columns(loop: Any, *, cpu_kernels: bool) -> Any:
    """Splits the searches of an scf.parallel along columns whose number and length are unknown, for
    GPUs: there, `split_reductions` splits reductions if there are few long columns.

    Returns the loop for GPUs, a copy of `loop` if there are `cpu_kernels`, too.
    """
    if not searches_columns(loop) or is_for_gpu(loop) is False:
        return loop
    if is_for_gpu(loop) is None and cpu_kernels:
        declare_capability(ops.enclosing(loop, "builtin.module"))
        loop = copy_in_place_of(loop, has_gpu)
    with loop.location:
        for found in _extrema_of_columns(loop):
            _split(found)
    return loop


def searches_columns(loop: Any) -> bool:
    """Whether an scf.parallel searches along columns whose number and length are unknown."""
    return bool(_extrema_of_columns(loop))


def _extrema_of_columns(rows: Any) -> list[_Extremum]:
    """The searches along columns whose number and length are unknown."""
    if known_product(loop_trips(rows)) is not None:
        return []
    loops = [op for op in body_of(rows) if op.name == "scf.for"]
    searches = [one for loop in loops if (one := _extremum(loop)) is not None]
    return [one for one in searches if one.known_count is None and not _is_along_row(one)]


def _is_of_few_long_columns(found: _Extremum) -> bool:
    rows = found.loop.parent
    points = known_product(loop_trips(rows)) if rows.name == "scf.parallel" else None
    return points is not None and are_few_long_columns(points, found.known_count)


def _extremum(loop: Any) -> _Extremum | None:
    is_index = isinstance(loop.operands[0].type, ir.IndexType)
    if not is_index or len(loop.results) != 2 or "unsignedCmp" in loop.attributes:
        return None
    body = body_of(loop)
    if not all(is_understood(op, may_store=False) for op in body):
        return None
    block = loop.regions[0].blocks[0]
    _, *carried = block.arguments
    yielded = [ops.defining(one) for one in ops.terminator(block).operands]
    for place, value in ((0, 1), (1, 0)):
        choice = yielded[place]
        if choice is None or choice.name != "arith.select" or choice not in body:
            continue
        condition, at, old = choice.operands
        comparison = _comparison(condition, carried[value])
        if comparison is None or old != carried[place] or yielded[value] is None:
            continue
        is_taken = [condition, comparison.element, carried[value]]
        if not _is_extremum_of_pair(yielded[value], is_taken, comparison):
            continue
        if not can_reduce(comparison.element.type, comparison.kind):
            return None
        known = {choice, yielded[value], *_conditions(condition)}
        others = [op for op in body if op not in known]
        # The element must not depend on the carried values, and the index only on the loop
        # variable.
        if any(set(carried) & set(inner.operands) for op in others for inner in ops.walk(op)):
            return None
        can_load = (known_trips(*list(loop.operands)[:3]) or 0) > 0
        if any(not _is_reexecutable(op, can_load=can_load) for op in _computation_of(at, others)):
            return None
        choices = tuple(op for op in body if op in known)
        return _Extremum(loop, comparison, value, place, at, choices)
    return None


def _is_reexecutable(operation: Any, *, can_load: bool) -> bool:
    """Whether the operation may be executed once more, for any of the loop's iterations."""
    if operation.name == "memref.load":
        return can_load
    return is_pure(operation) and not is_division(operation) and not list(operation.regions)


def _comparison(condition: Any, old: Any) -> _Comparison | None:
    """The comparison of an element with the carried value that the condition consists of; None for
    others."""
    parts = [ops.defining(one) for one in _conditions_of(condition)]
    compared = [
        one
        for one in parts
        if one is not None
        and one.name in ("arith.cmpf", "arith.cmpi")
        and list(one.operands) != [old, old]
    ]
    if len(compared) != 1 or old not in compared[0].operands:
        return None
    left, right = compared[0].operands
    predicate = ir.IntegerAttr(compared[0].attributes["predicate"]).value
    is_float = compared[0].name == "arith.cmpf"
    if left == old:
        mirrored = _MIRRORED_FLOATS if is_float else _MIRRORED_INTEGERS
        mirrored = {**mirrored, **{right: left for left, right in mirrored.items()}}
        if predicate not in mirrored:
            return None
        left, predicate = right, mirrored[predicate]
    if left == old:
        return None
    if not is_float:
        if predicate not in _INTEGERS or len(parts) > 1:
            return None
        return _Comparison(left, predicate, *_INTEGERS[predicate], False)
    if predicate in _FLOATS and len(parts) == 1:
        return _Comparison(left, predicate, *_FLOATS[predicate], False)
    if predicate in (_UGT, _ULT) and len(parts) == 2:
        other = parts[1 - parts.index(compared[0])]
        is_number = other is not None and _predicate(other) == _ORD
        kind = "maximumf" if predicate == _UGT else "minimumf"
        return _Comparison(left, predicate, kind, True, True) if is_number else None
    return None


def _predicate(operation: Any) -> int | None:
    """The predicate of an `arith.cmpf`; None for other operations."""
    if operation.name != "arith.cmpf":
        return None
    return int(ir.IntegerAttr(operation.attributes["predicate"]).value)


def _conditions_of(condition: Any) -> list[Any]:
    """The conditions of which `condition` is the conjunction."""
    owner = ops.defining(condition)
    is_both = owner is not None and owner.name == "arith.andi"
    return list(owner.operands) if owner is not None and is_both else [condition]


def _conditions(condition: Any) -> set[Any]:
    """The operations that compute the condition."""
    owners = {ops.defining(one) for one in (condition, *_conditions_of(condition))}
    return {owner for owner in owners if owner is not None}


def _is_extremum_of_pair(new: Any, is_taken: list[Any], comparison: _Comparison) -> bool:
    """Whether the operation is the extremum of the carried value and the element."""
    if new.name == "arith.select":
        return list(new.operands) == is_taken
    # arith.maximumf and minimumf are NaN if an operand is.
    is_extreme = new.name == f"arith.{comparison.kind}"
    is_float = comparison.kind in ("maximumf", "minimumf")
    both = list(new.operands) in (is_taken[1:], is_taken[:0:-1])
    return is_extreme and both and (comparison.is_nan_taken or not is_float)


def _computation_of(value: Any, body: list[Any]) -> list[Any]:
    """The operations of the body that compute the value, in order."""
    wanted, made = [value], []
    for operation in reversed(body):
        if any(result in wanted for result in operation.results):
            made.append(operation)
            wanted += [operand for inner in ops.walk(operation) for operand in inner.operands]
    return made[::-1]


def _is_along_row(found: _Extremum) -> bool:
    """Whether the elements, or what they are computed from, are adjacent in memory."""
    body = body_of(found.loop)
    variable = found.loop.regions[0].blocks[0].arguments[0]
    return any(
        access.indices and access.indices[-1] == variable
        for operation in _computation_of(found.comparison.element, body)
        for access in accesses_in(operation)
    )


def _put_in_row(found: _Extremum) -> None:
    """Puts a loop of host code with a known trip count into a loop over a single row, if its
    results are only stored."""
    loop = found.loop
    if any(op.name in _LOOPS for op in ops.ancestors(loop)) or found.known_count is None:
        return
    following = ops.operations_in(loop.block)
    following = following[following.index(loop) + 1 :]
    members, made = [loop], set(loop.results)
    early: list[Any] = []
    for operation in following:
        if not any(made & set(inner.operands) for inner in ops.walk(operation)):
            if not is_pure(operation):
                break
            early.append(operation)
            continue
        if not is_pure(operation) and operation.name != "memref.store":
            return
        members.append(operation)
        made |= set(operation.results)
    uses = [use.owner.operation for value in made for use in value.uses]
    if len(members) > 1 and all(user in members for user in uses):
        # A member may use them, such as the view that the result is stored to.
        for operation in early:
            operation.move_before(loop)
        wrap_in_row(members)


def _split_into_parts(found: _Extremum, overlaps: Overlaps) -> list[Any]:
    """Inserts a loop over the parts of each of few long rows before the loop over the rows.

    Returns the loops that search for an extremum afterwards, which may be one.
    """
    loop, comparison, count = found.loop, found.comparison, found.known_count
    rows = loop.parent
    if rows is None or rows.name != "scf.parallel" or not comparison.is_first or count is None:
        return [loop]
    trips = loop_trips(rows)
    points = known_product(trips)
    lowers, _, steps, inits = ops.operand_groups(rows)
    starts = [ops.known_index(one) for one in (*lowers, loop.operands[0])]
    by = [ops.known_index(one) for one in (*steps, loop.operands[2])]
    if points is None or inits or set(starts) != {0} or set(by) != {1}:
        return [loop]
    along_rows = _is_along_row(found)
    size = size_of_part(points, count, along_rows=along_rows)
    before = None if size is None else computed_from(loop, overlaps)
    if size is None or before is None:
        return [loop]
    parts = -(-count // size)
    types = [result.type for result in loop.results]
    with ir.InsertionPoint(rows):
        sizes_of_rows = [trip or 0 for trip in trips]
        place = functools.partial(place_of_part, along_rows=along_rows)
        partial = Results(types, place(parts, sizes_of_rows))
        zero, one = ops.constant_index(0), ops.constant_index(1)
        made: list[Any] = []

        def part(variables: list[Any]) -> None:
            number, *row = variables
            values = dict(zip(rows.regions[0].blocks[0].arguments, row, strict=True))
            for operation in before:
                copy(operation, values)
            again = copy(loop, values)
            made.append(again)
            with ir.InsertionPoint(again):
                # The identity element, which any element replaces.
                least = _neutral(comparison.element.type, comparison.kind)
                nowhere = ops.constant(types[found.place], 0)
                again.operands[0], again.operands[1] = bounds_of_part(number, size, count)
            again.operands[3 + found.value], again.operands[3 + found.place] = least, nowhere
            partial.store(list(again.results), place(number, row))

        sizes = [ops.constant_index(size) for size in (parts, *sizes_of_rows)]
        ops.create_parallel(sizes, part)
        over_parts = (zero, sizes[0], one)
    with ir.InsertionPoint(loop):
        last = ops.create("scf.for", [*over_parts, *list(loop.operands)[3:]], types, regions=1)
    old = loop.regions[0].blocks[0]
    block = last.regions[0].blocks.append(ops.index(), *types)
    with ir.InsertionPoint(block):
        loaded = partial.load(place(block.arguments[0], list(rows.regions[0].blocks[0].arguments)))
        values = dict(zip(old.arguments, block.arguments, strict=True))
        values |= {comparison.element: loaded[found.value], found.at: loaded[found.place]}
        for operation in found.choice:
            copy(operation, values)
        end = ops.terminator(old)
        ops.create("scf.yield", [values[operand] for operand in end.operands])
    ops.replace(loop, last.results)
    with ir.InsertionPoint.after(rows):
        partial.free()
    return [*made, last]


def _split(found: _Extremum) -> None:
    loop, comparison = found.loop, found.comparison
    made = _computation_of(comparison.element, body_of(loop))
    is_float = comparison.kind in ("maximumf", "minimumf")
    with loop.location, ir.InsertionPoint(loop):

        def element(values: dict[Any, Any]) -> Any:
            for operation in made:
                copy(operation, values)
            return values.get(comparison.element, comparison.element)

        def counted(values: dict[Any, Any]) -> Any:
            """The element. If NaN is never taken, NaN is replaced by the identity element."""
            one = element(values)
            if not is_float or comparison.is_nan_taken:
                return one
            return ops.select(_compare(_ORD, one, one), one, least)

        type_ = comparison.element.type
        least = _neutral(type_, comparison.kind)
        extreme = _reduce(loop, least, comparison.kind, counted)

        trips = known_trips(*list(loop.operands)[:3])
        integer = ops.integer(64 if trips is None or trips >= 1 << 31 else 32)
        order = "minsi" if comparison.is_first else "maxsi"
        nowhere = _neutral(integer, order)

        def holder(values: dict[Any, Any]) -> Any:
            variable = values[loop.regions[0].blocks[0].arguments[0]]
            one = element(values)
            equal = _compare(_OEQ if is_float else _EQ, one, extreme)
            if comparison.is_nan_taken:
                both = [_compare(_UNO, value, value) for value in (one, extreme)]
                equal = ops.binary("arith.ori", equal, ops.binary("arith.andi", *both))
            number = ops.unary("arith.index_cast", variable, integer)
            return ops.select(equal, number, nowhere)

        place = _reduce(loop, nowhere, order, holder)

        inits = list(loop.operands)[3:]
        old = inits[found.value]
        taken = _compare(comparison.predicate, extreme, old)
        if comparison.is_nan_taken:
            taken = ops.binary("arith.andi", taken, _compare(_ORD, old, old))
        is_there = ops.compare(_NE, place, nowhere)
        taken = ops.binary("arith.andi", taken, is_there)
        variable, (lower, *_) = loop.regions[0].blocks[0].arguments[0], loop.operands
        # The loads below need a valid index of the loop in any case.
        at = ops.unary("arith.index_cast", place, ops.index())
        at = ops.select(is_there, at, lower)
        values = {variable: at}
        for operation in _computation_of(found.at, body_of(loop)):
            copy(operation, values)
        new = {found.value: extreme, found.place: values.get(found.at, found.at)}
        for i, result in enumerate(loop.results):
            chosen = ops.select(taken, new[i], inits[i])
            result.replace_all_uses_with(chosen)
    ops.erase(loop)


def _reduce(loop: Any, init: Any, kind: str, value: Callable[[dict[Any, Any]], Any]) -> Any:
    """Reduces `value`, a function of the loop variable, over the loop's iterations."""
    bounds = list(loop.operands)[:3]
    made = ops.create("scf.for", [*bounds, init], [init.type], regions=1)
    block = made.regions[0].blocks.append(ops.index(), init.type)
    old = loop.regions[0].blocks[0].arguments[0]
    with ir.InsertionPoint(block):
        one = value({old: block.arguments[0]})
        ops.create("scf.yield", [ops.binary(f"arith.{kind}", one, block.arguments[1])])
    return made.result


def _neutral(type_: Any, kind: str) -> Any:
    if isinstance(type_, ir.IntegerType):
        return ops.constant(type_, neutral_bits(kind, type_.width))
    return ops.constant(type_, float("-inf" if kind == "maximumf" else "inf"))


def _compare(predicate: int, left: Any, right: Any) -> Any:
    is_integer = isinstance(left.type, ir.IntegerType)
    return (ops.compare if is_integer else ops.compare_floats)(predicate, left, right)
