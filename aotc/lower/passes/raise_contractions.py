"""`aotc-raise-contractions`: loops that compute a matrix product become a `linalg.generic`.

The kernel library recognizes contractions in that form. Upstream's raising to linalg starts from
other operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots, accesses_overlap
from aotc.analysis.functions import Functions
from aotc.attributes import BLOCK_ATTRIBUTE
from aotc.kernels.matmul.recognition import WIDENING, unwidened
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.passes.parallelize_loops import (
    functions_without_parallel_loops,
    make_parallel,
    raise_to_affine,
)
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of
from aotc.rewrites.loop_distribution import distribute
from aotc.slices import DYNAMIC, create_slice, static_numbers

_LOOPS = ("affine.for", "scf.for")
_SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
_CONSTANT = "arith.constant"


class RaiseContractions(OwnPass, frozen=True):
    name = "aotc-raise-contractions"
    needs = ("aotc-mark-explicit-parallelism",)
    reason: str = "loops that compute a matrix product become linalg, which has library kernels"

    def run(self, lowering: Lowering) -> None:
        module = lowering.module
        with module.context:
            roots = Roots(Functions(module))
            for function in functions_without_parallel_loops(module):
                operations = ops.walk(function)
                has_linalg = any(op.name.startswith("linalg.") for op in operations)
                if not any(map(adds_product, operations)) or not raise_to_affine(function):
                    continue
                outermost = [
                    loop
                    for loop in ops.find(function, *_LOOPS)
                    if ops.enclosing(loop, *_LOOPS) is None
                ]
                found = [one for loop in outermost for one in _contractions(loop, roots)]
                for one in found:
                    text = f"loops over {len(one.loops)} dimensions become linalg.generic"
                    lowering.remarks.add(self.name, one.loops[0].location, text)
                    _replace(one)
                # `aotc-parallelize-loops` skips functions with parallel loops, and from here on
                # this function may have some. So its other loops become parallel here.
                if found and not has_linalg:
                    make_parallel(function, roots)


def adds_product(operation: Any) -> bool:
    """Whether it is an addition of a product nested in two loops, as in a contraction."""
    if operation.name not in _SUMS:
        return False
    inner = operation.parent
    outer = ops.enclosing(inner, *_LOOPS) if inner is not None and inner.name in _LOOPS else None
    return outer is not None and any(
        (factor := ops.defining(term)) is not None and factor.name == _SUMS[operation.name]
        for term in operation.operands
    )


class _Range(Struct):
    """The iteration range of a loop. `lower` and `upper` are SSA values or integers."""

    lower: Any
    upper: Any

    @classmethod
    def of(cls, loop: Any) -> _Range | None:
        """The range of a loop; None if a bound is not a single value, or if the step is not 1."""
        if ir.IntegerAttr(loop.attributes["step"]).value != 1:
            return None
        lower_operands, upper_operands, _ = ops.operand_groups(loop)
        lower = _results(loop.attributes["lowerBoundMap"], lower_operands)
        upper = _results(loop.attributes["upperBoundMap"], upper_operands)
        return cls(*lower, *upper) if lower and upper and len(lower + upper) == 2 else None

    def known_size(self) -> int | None:
        if isinstance(self.lower, int) and isinstance(self.upper, int):
            return max(0, self.upper - self.lower)
        return None

    def size(self) -> Any:
        """The number of iterations: an integer, or an SSA value created at the insertion point."""
        if (known := self.known_size()) is not None:
            return known
        if self.lower == 0 and _dimension_of(self.upper) is not None:
            return self.upper
        size = ops.index_op("arith.subi", _value(self.upper), _value(self.lower))
        return ops.index_op("arith.maxsi", size, ops.constant_index(0))


class _Access(Struct):
    """A load or store. `places`: the index for each dimension of the memref, an SSA value or an
    integer."""

    memref: Any
    places: list[Any]

    @classmethod
    def of(cls, operation: Any) -> _Access | None:
        """The access of an `affine.load` or `affine.store`; None if an index is computed."""
        first = 1 if operation.name == "affine.store" else 0
        memref, *operands = list(operation.operands)[first:]
        places = _results(operation.attributes["map"], operands)
        return None if places is None else cls(memref, places)


class _Contraction(Struct):
    """Loops, outermost first, that accumulate products of `factors` into each element of `out`.

    `start`: the initial value of the elements; None if the loops add to the old elements.
    `arithmetic`: the operations of one iteration, in order.
    """

    loops: list[Any]
    ranges: list[_Range]
    factors: list[_Access]
    out: _Access
    loads: list[Any]
    arithmetic: list[Any]
    start: Any | None

    @property
    def variables(self) -> list[Any]:
        return [loop.regions[0].blocks[0].arguments[0] for loop in self.loops]

    def loops_of(self, access: _Access) -> list[int]:
        """The loops whose induction variables index the access, one for each such dimension of the
        memref."""
        variables = self.variables
        return [variables.index(place) for place in access.places if place in variables]

    def is_valid(self) -> bool:
        """Whether the loops are a contraction.

        No loop's bounds depend on another loop. Each access uses a loop for at most one dimension.
        Each loop is a dimension of a factor, and some are reductions. The result is not a factor.
        """
        outer, variables = self.loops[0], self.variables
        if any(factor.memref == self.out.memref for factor in self.factors):
            return False
        made = [place for one in self.ranges for place in (one.lower, one.upper)]
        for access in (*self.factors, self.out):
            made += [access.memref, *(one for one in access.places if one not in variables)]
            if len(set(self.loops_of(access))) != len(self.loops_of(access)):
                return False
        if not all(isinstance(one, int) or ops.is_made_outside(one, outer) for one in made):
            return False
        seen = {loop for factor in self.factors for loop in self.loops_of(factor)}
        return seen == set(range(len(self.loops))) and set(self.loops_of(self.out)) < seen


# Within a host loop, contractions with fewer multiplications than this do not become kernels.
_LEAST_IN_LOOP = 1 << 15


def _contractions(loop: Any, roots: Roots) -> Iterator[_Contraction]:
    """Yields the contractions that the loop is or contains.

    A loop with other statements is distributed, so that contractions get their own loops.
    Contractions in a sequential loop are yielded if they are large enough.
    """
    if not any(map(adds_product, ops.walk(loop))):
        return
    if loop.name == _LOOPS[0] and not accesses_overlap(loop, roots):
        one = _contraction(loop)
        if one is not None:
            yield one
            return
        pieces = distribute(loop)
        found = [one for piece in pieces if (one := _contraction(piece)) is not None]
        for useless in [loop] if found else pieces:
            ops.erase(useless)
        if found:
            yield from found
            return
    if _is_sequential(loop):
        inner = (op for op in body_of(loop) if op.name in _LOOPS)
        yield from (one for op in inner for one in _contractions(op, roots) if not _is_small(one))


def _is_sequential(loop: Any) -> bool:
    """Whether the loop will not become parallel: it is not affine, or all its iterations write the
    same elements."""
    if loop.name != _LOOPS[0]:
        return True
    variable = loop.regions[0].blocks[0].arguments[0]
    return any(
        ops.is_made_outside(store.operands[1], loop) and variable not in list(store.operands)[2:]
        for store in ops.find(loop, "affine.store")
        if all(op.name in _LOOPS for op in _between(store, loop))
    )


def _between(operation: Any, outer: Any) -> Iterator[Any]:
    for around in ops.ancestors(operation):
        if around == outer:
            return
        yield around


def _is_small(one: _Contraction) -> bool:
    sizes = [size for range_ in one.ranges if (size := range_.known_size()) is not None]
    return len(sizes) == len(one.ranges) and math.prod(sizes) < _LEAST_IN_LOOP


def _contraction(outermost: Any) -> _Contraction | None:
    """The contraction that a loop nest computes; None if it computes anything else."""
    loops = [outermost]
    while len(inner := [op for op in body_of(loops[-1]) if op.name == _LOOPS[0]]) == 1:
        loops += inner
    ranges = [range_ for loop in loops if (range_ := _Range.of(loop)) is not None]
    work = [op for loop in loops for op in body_of(loop) if op.name not in (_LOOPS[0], _CONSTANT)]
    total = [op for op in work if op.name in _SUMS]
    if inner or len(loops) < 2 or len(ranges) != len(loops) or len(total) != 1:
        return None
    if any(BLOCK_ATTRIBUTE in loop.attributes for loop in loops):
        return None
    product = [op for op in work if op.name == _SUMS[total[0].name]]
    if len(product) != 1 or product[0].results[0] not in total[0].operands:
        return None
    old = [one for one in total[0].operands if one != product[0].results[0]]
    loads = [ops.defining(unwidened(one)) for one in product[0].operands]
    found = _result_of(loops, work, total[0], old[0]) if old else None
    if found is None or not all(one is not None and one.name == "affine.load" for one in loads):
        return None
    out, start, known = found
    widening = [op for op in work if op.name in WIDENING]
    accesses = [access for load in loads if (access := _Access.of(load)) is not None]
    expected = [*loads, *widening, *product, *total, *known]
    if len(accesses) != 2 or out is None or loads[0] == loads[1] or len(expected) != len(work):
        return None
    if not all(op in work for op in expected) or loads[0] in known or loads[1] in known:
        return None
    arithmetic = [op for op in work if op in widening or op in product or op in total]
    if any(op.parent != loops[-1] for op in (*loads, *arithmetic)):
        return None
    one = _Contraction(loops, ranges, accesses, out, loads, arithmetic, start)
    return one if one.is_valid() and _is_result_in_order(one, known) else None


def _result_of(
    loops: list[Any], work: list[Any], total: Any, old: Any
) -> tuple[_Access | None, Any | None, list[Any]] | None:
    """The access of the result, its initial value, and the operations that load and store it."""
    innermost, stores = loops[-1], [op for op in work if op.name == "affine.store"]
    carried = list(innermost.results)
    if any(list(loop.results) for loop in loops[:-1]) or len(carried) > 1 or not stores:
        return None
    last = stores[-1]
    out = _Access.of(last)
    if not carried:
        load = ops.defining(old)
        if load is None or load.name != "affine.load" or last.operands[0] != total.results[0]:
            return None
        numbers = [store.operands[0] for store in stores[:-1]]
        known = [load, *stores]
        accesses = [_Access.of(op) for op in known]
        # The initial value is stored before the loop.
        if len(stores) > 2 or any(one != out for one in accesses):
            return None
        return out, numbers[0] if numbers else None, known
    argument = innermost.regions[0].blocks[0].arguments[1]
    end = innermost.regions[0].blocks[0].operations[-1].operation
    is_sum = list(end.operands) == [total.results[0]] and old == argument
    if not is_sum or len(stores) > 1 or last.operands[0] != carried[0]:
        return None
    (start,) = ops.operand_groups(innermost)[2]
    load = ops.defining(start)
    if load is None or load.name != "affine.load":
        return out, start, [last]
    return (out, None, [load, last]) if _Access.of(load) == out else None


def _is_result_in_order(one: _Contraction, known: list[Any]) -> bool:
    """Whether the loads and stores of the result are where a contraction has them: in the innermost
    loop, or directly before or after its reduction loops."""
    inner = one.loops[-1]
    if one.start is not None and not _is_number(one.start):
        return False
    parallel = one.loops_of(one.out)
    for operation in known:
        if operation.parent == inner:
            continue
        around = [i for i, loop in enumerate(one.loops) if loop in ops.ancestors(operation)]
        if sorted(parallel) != around:
            return False
        within = [op for op in body_of(operation.parent) if op.name != _CONSTANT]
        is_last = bool(inner.results) and operation.operands[0] == inner.results[0]
        if operation != within[-1 if is_last else 0]:
            return False
    return True


def _is_number(value: Any) -> bool:
    owner = ops.defining(value)
    return owner is not None and owner.name == _CONSTANT


def _replace(one: _Contraction) -> None:
    """Replaces the loops by a `linalg.generic`."""
    outer = one.loops[0]
    with outer.location, ir.InsertionPoint(outer):
        sizes = [range_.size() for range_ in one.ranges]
        views = [_view(one, access, sizes) for access in (*one.factors, one.out)]
        if one.start is not None:
            _create_fill(one.start.owner.clone().results[0], views[-1])
        _create_product(one, views)
    ops.erase(outer)


def _create_fill(value: Any, view: Any) -> None:
    rank = view.type.rank
    maps = [ir.AffineMap.get(rank, 0, []), ir.AffineMap.get_identity(rank)]
    ops.create_generic([value, view], maps, lambda element, _: element)


def _create_product(one: _Contraction, views: list[Any]) -> None:
    dimensions = [one.loops_of(access) for access in (*one.factors, one.out)]
    rank, loaded = len(one.loops), [load.results[0] for load in one.loads]
    maps = [
        ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(loop) for loop in loops])
        for loops in dimensions
    ]

    def compute(*elements: Any) -> Any:
        values = list(zip(loaded, elements, strict=False))
        for operation in one.arithmetic:
            clone = operation.clone()
            for i, operand in enumerate(operation.operands):
                # An operand that is neither loaded nor computed here is the accumulator.
                new = [value for key, value in values if key == operand]
                clone.operands[i] = new[0] if new else elements[2]
            values.append((operation.results[0], clone.results[0]))
        return values[-1][1]

    ops.create_generic(views, maps, compute, set(range(rank)) - set(dimensions[-1]))


def _view(one: _Contraction, access: _Access, sizes: list[Any]) -> Any:
    """The part of a memref that the loops access, with one dimension for each loop that indexes
    it."""
    memref, variables = access.memref, one.variables
    offsets, extents, is_whole = list[Any](), list[Any](), True
    for dimension, place in enumerate(access.places):
        if place in variables:
            loop = variables.index(place)
            offsets.append(one.ranges[loop].lower)
            extents.append(sizes[loop])
            is_whole &= offsets[-1] == 0 and _is_size(extents[-1], memref, dimension)
        else:
            offsets.append(place)
            extents.append(1)
            is_whole = False
    if is_whole:
        return memref
    kept = [i for i, place in enumerate(access.places) if place in variables]
    return _subview(memref, offsets, extents, kept)


def _subview(memref: Any, offsets: list[Any], extents: list[Any], kept: list[int]) -> Any:
    """The subview, rank-reduced to the dimensions in `kept`."""
    type_ = ir.MemRefType(memref.type)
    static = [static_numbers(numbers) for numbers in (offsets, extents)]
    strides, offset = type_.get_strides_and_offset()
    stride_unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    moved = zip(static[0], strides, strict=True)
    if stride_unknown in (offset, *strides) or DYNAMIC in static[0]:
        offset = offset if all(one == 0 for one in static[0]) else stride_unknown
    else:
        offset += sum(one * stride for one, stride in moved)
    view = ir.MemRefType.get(
        [static[1][i] for i in kept],
        type_.element_type,
        ir.StridedLayoutAttr.get(offset, [strides[i] for i in kept]),
        type_.memory_space,
    )
    return create_slice("memref.subview", [memref], view, offsets, extents)


def _is_size(size: Any, memref: Any, dimension: int) -> bool:
    """Whether `size` is known to be the memref's size along the dimension."""
    type_ = ir.MemRefType(memref.type)
    if isinstance(size, int):
        return not type_.is_dynamic_dim(dimension) and type_.get_dim_size(dimension) == size
    return _dimension_of(size) == (memref, dimension)


def _dimension_of(value: Any) -> tuple[Any, int] | None:
    """The memref and the dimension of which `value` is the size."""
    dim = None if isinstance(value, int) else ops.defining(value)
    if dim is None or dim.name != "memref.dim":
        return None
    number = ops.known_dimension(dim)
    return None if number is None else (dim.operands[0], number)


def _results(map_: Any, operands: Any) -> list[Any] | None:
    """The results of an affine map, as SSA values or integers; None if one of them is computed."""
    map_, operands = ir.AffineMapAttr(map_).value, list(operands)
    results: list[Any] = []
    for expression in map_.results:
        if isinstance(expression, ir.AffineDimExpr):
            results.append(operands[expression.position])
        elif isinstance(expression, ir.AffineSymbolExpr):
            results.append(operands[map_.n_dims + expression.position])
        elif isinstance(expression, ir.AffineConstantExpr):
            results.append(expression.value)
        else:
            return None
    return results


def _value(number: Any) -> Any:
    return ops.constant_index(number) if isinstance(number, int) else number
