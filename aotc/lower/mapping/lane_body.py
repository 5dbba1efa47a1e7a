"""Vectorizes a loop's body: each operation is created for a vector of columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import Access, access_of
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.lower.mapping.build import create_loop
from aotc.lower.mapping.columns import Columns, describe_columns
from aotc.lower.mapping.lane_kinds import UNIFORM, VECTOR, Kinds
from aotc.lower.mapping.partials import LANES, Partials, splat, vector_of
from aotc.mlir import ir
from aotc.rewrites.checks import create_check
from aotc.rewrites.cloning import body_of, copy
from aotc.sizes import element_bytes


def compute(bodies: Sequence[LaneBody], operations: Sequence[Any]) -> None:
    """Creates the operations for several vectors of columns, each operation for all vectors before
    the next."""
    for operation in operations:
        if operation.name == "scf.for":
            _compute_loop(bodies, operation)
        else:
            for body in bodies:
                body.add(operation)


def _compute_loop(bodies: Sequence[LaneBody], loop: Any) -> None:
    """Creates one loop for all vectors of columns."""
    columns = describe_columns(loop)
    partials = [Partials.of(one) for one in columns.accumulators] if columns else []
    if columns is not None and all(len(one.kinds) > 1 for one in partials):
        _compute_extremes(bodies, columns, partials)
        return
    bounds, inits = list(loop.operands)[:3], list(loop.operands)[3:]
    lower, upper, step = (bodies[0].here(bound) for bound in bounds)
    block = loop.regions[0].blocks[0]
    variable, *carried = block.arguments
    count = len(carried)

    def iterate(position: Any, values: list[Any]) -> list[Any]:
        inside = []
        for number, body in enumerate(bodies):
            own = values[number * count : (number + 1) * count]
            inside.append(body.inside({variable: position, **dict(zip(carried, own, strict=True))}))
        compute(inside, body_of(loop))
        end = ops.terminator(block)
        return [one.vector(value) for one in inside for value in end.operands]

    starts = [body.vector(value) for body in bodies for value in inits]
    results = create_loop(lower, upper, step, starts, iterate)
    for number, body in enumerate(bodies):
        own = results[number * count : (number + 1) * count]
        body.enter(dict(zip(loop.results, own, strict=True)))


def _compute_extremes(
    bodies: Sequence[LaneBody], columns: Columns, partials: Sequence[Partials]
) -> None:
    """A loop nest that carries extrema of floats, such as the windows of a pooling.

    It carries their partial results instead, which take fewer instructions and are independent of
    each other.
    """

    def nest(variables: list[Any], carried: list[Any]) -> list[Any]:
        if len(variables) == len(columns.bounds):
            return add(variables, carried)
        lower, upper, step = (bodies[0].here(one) for one in columns.bounds[len(variables)])
        return create_loop(
            *(lower, upper, step, carried),
            lambda position, values: nest([*variables, position], values),
        )

    def add(variables: list[Any], carried: list[Any]) -> list[Any]:
        named = dict(zip(columns.variables, variables, strict=True))
        inside = [body.inside(named) for body in bodies]
        compute(inside, columns.body)
        values = iter(carried)
        return [
            new
            for body in inside
            for one in partials
            for new in one.add(
                [next(values) for _ in one.kinds], body.vector(one.accumulator.value), None
            )
        ]

    neutral = [value for one in partials for value in one.neutral()]
    found = iter(nest([], neutral * len(bodies)))
    for body in bodies:
        for one, result in zip(partials, columns.loop.results, strict=True):
            extremes = one.lanes([next(found) for _ in one.kinds])
            init = body.vector(one.accumulator.init)
            body.enter({result: one.accumulator.combine(init, extremes)})


# The width of a masked load in bytes.
_MASKED_BYTES = 32
# The last cache line of the address space: no memref is there, which LLVM does not know.
_NO_ADDRESS = -64


class LaneBody:
    """`values` maps values of the body to vectors, or for indices to that of the first column.
    Columns outside of the mask are not accessed. The conditions `known` hold for all columns."""

    def __init__(
        self,
        kinds: Kinds,
        values: dict[Any, Any],
        mask: Any | None,
        known: Collection[Any] = (),
    ) -> None:
        self._kinds, self._values, self._mask, self._known = kinds, values, mask, known
        # Value of the body → the vector created for a value that is not a vector.
        self._made: dict[Any, Any] = {}

    def add(self, operation: Any) -> None:
        """Creates an operation of the body, other than a loop, at the insertion point."""
        access = access_of(operation)
        if access is not None and self._is_of_columns(access):
            self._access(access)
        elif self._kinds[operation.results[0]] != VECTOR:
            copy(operation, self._values)
        elif operation.results[0] in self._known:
            self._values[operation.results[0]] = splat(ops.constant(ops.integer(1), 1))
        else:
            (result,) = operation.results
            operands = [self.vector(operand) for operand in operation.operands]
            if operation.name == "arith.select" and self._known:
                operands[0] = self._common(operation.operands[0]) or operands[0]
            attributes, message = ops.attributes_of(operation), None
            if self._mask is not None and isinstance(operands[0].type, ir.VectorType):
                message = attributes.pop(CHECK_ATTRIBUTE, None)
            made = ops.create(operation.name, operands, [vector_of(result.type)], attributes).result
            if message is not None:
                # Columns outside of the mask are not checked, and keep the value that is safe.
                outside = ops.binary(
                    "arith.xori", self._mask, splat(ops.constant(ops.integer(1), 1))
                )
                condition = ops.binary("arith.ori", operands[0], outside)
                made = create_check(condition, made, operands[2], message)
            self._values[result] = made

    def inside(self, values: dict[Any, Any]) -> LaneBody:
        """The body of a nested loop, with additional `values`."""
        return LaneBody(self._kinds, self._values | values, self._mask, self._known)

    def here(self, value: Any) -> Any:
        """The value that replaces a value of the body."""
        return self._values.get(value, value)

    def enter(self, values: dict[Any, Any]) -> None:
        """Sets vectors that replace values of the body from here on."""
        self._values |= values

    def vector(self, value: Any) -> Any:
        """The vector that replaces a value of the body."""
        here = self._values.get(value, value)
        kind = self._kinds[value]
        if kind == VECTOR:
            return here
        if value not in self._made:
            vector = splat(here)
            if kind != UNIFORM:
                # A constant, as LLVM's backend fails for some masks of `vector.step`.
                (lanes,) = vector.type.shape
                each = [ir.IntegerAttr.get(ops.index(), kind * lane) for lane in range(lanes)]
                numbers = {"value": ir.DenseElementsAttr.get(each, type=vector.type)}
                places = ops.create("arith.constant", results=[vector.type], attributes=numbers)
                vector = ops.binary("arith.addi", vector, places.result)
            self._made[value] = vector
        return self._made[value]

    def _common(self, condition: Any) -> Any | None:
        """The condition as one that all columns have in common; None if it may differ."""
        if self._kinds[condition] == UNIFORM:
            return self.here(condition)
        if condition in self._known:
            return ops.constant(ops.integer(1), 1)
        owner = ops.defining(condition)
        if owner is None or owner.name != "arith.andi":
            return None
        left, right = map(self._common, owner.operands)
        return left and right and ops.binary("arith.andi", left, right)

    # --- Accesses ---

    def _is_of_columns(self, access: Access) -> bool:
        return any(self._kinds[index] != UNIFORM for index in access.indices)

    def _access(self, access: Access) -> None:
        memref = self._values.get(access.memref, access.memref)
        if access.writes:
            self._store(access, memref)
            return
        (result,) = access.operation.results
        padded = self._kinds.padded.get(result)
        indices, mask = access.indices, self._mask
        load: Callable[..., Any] = _load
        if padded is not None:
            indices, condition = padded.indices, padded.condition
            if mask is None:
                load, mask = _load_padded, self._common(condition) or self.vector(condition)
            else:
                both = ops.binary("arith.andi", self.vector(condition), mask)
                mask = _of_no_known_element(both, memref)
        here = [self._values.get(index, index) for index in indices]
        stride = self._kinds[indices[-1]]
        if stride == VECTOR:
            load, here[-1] = _load_gathered, self.vector(indices[-1])
        self._values[result] = load(memref, here, result.type, stride, mask)

    def _store(self, access: Access, memref: Any) -> None:
        value = self.vector(access.operation.operands[0])
        indices = [self._values.get(index, index) for index in access.indices]
        if self._mask is None:
            ops.create("vector.store", [value, memref, *indices])
        else:
            ops.create("vector.maskedstore", [memref, *indices, self._mask, value])


def _load_padded(memref: Any, indices: Sequence[Any], type_: Any, stride: int, mask: Any) -> Any:
    """Loads the elements in the mask, or all of them if `mask` is a condition that holds. Away from
    the edges these are all elements, and a load without a mask takes a fraction of the time."""
    is_whole, is_vector = mask, isinstance(mask.type, ir.VectorType)
    if is_vector:
        kind = {"kind": ir.Attribute.parse("#vector.kind<and>")}
        is_whole = ops.create("vector.reduction", [mask], [ops.integer(1)], kind).result
    branch = ops.create("scf.if", [is_whole], [vector_of(type_)], regions=2)
    for region, is_all in zip(branch.regions, (True, False), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            if is_all or is_vector:
                own = None if is_all else _of_no_known_element(mask, memref)
                loaded = _load(memref, indices, type_, stride, own)
            else:
                loaded = ops.constant(vector_of(type_), 0)
            ops.create("scf.yield", [loaded])
    return branch.result


def _load(memref: Any, indices: Sequence[Any], type_: Any, stride: int, mask: Any | None) -> Any:
    """Loads the elements at `indices` plus multiples of `stride`."""
    if mask is None and stride == 2:
        return _load_every_second(memref, indices, type_)
    if mask is None and stride > 1:
        # Memory after the last element may not belong to the memref.
        mask = splat(ops.constant(ops.integer(1), 1))
    width = LANES * stride
    wide = ir.VectorType.get([width], type_)
    if mask is None:
        return ops.create("vector.load", [memref, *indices], [wide]).result
    if stride > 1:
        no = ops.constant(mask.type, 0)
        bits = ir.VectorType.get([width], ops.integer(1))
        places = [i // stride if i % stride == 0 else LANES for i in range(width)]
        mask = shuffle(mask, no, places, bits)
    loaded = _load_masked(memref, indices, mask, wide)
    if stride == 1:
        return loaded
    return shuffle(loaded, loaded, list(range(0, width, stride)), vector_of(type_))


def _load_gathered(
    memref: Any, indices: Sequence[Any], type_: Any, _stride: int, mask: Any | None
) -> Any:
    """Loads the elements at a vector of indices in the last dimension."""
    *outer, places = indices
    if mask is None:
        mask = ops.constant(vector_of(ops.integer(1)), 1)
    type_ = vector_of(type_)
    operands = [memref, *outer, ops.constant(ops.index(), 0), places, mask, ops.constant(type_, 0)]
    return ops.create("vector.gather", operands, [type_]).result


def _load_every_second(memref: Any, indices: Sequence[Any], type_: Any) -> Any:
    """Loads two vectors, the second of which ends with the last element, as memory after that may
    not belong to the memref."""
    *outer, first = indices
    last = ops.binary("arith.addi", first, ops.constant_index(LANES - 1))
    vector = vector_of(type_)
    one, other = (
        ops.create("vector.load", [memref, *outer, at], [vector]).result for at in (first, last)
    )
    # Indices into the concatenation of both vectors, whose elements LANES - 1 and LANES are the
    # same.
    places = [2 * i if 2 * i < LANES else 2 * i + 1 for i in range(LANES)]
    return shuffle(one, other, places, vector)


def _of_no_known_element(mask: Any, memref: Any) -> Any:
    """The mask, of which LLVM does not know the elements. Where it knows that a vector has none,
    its backend may load the whole vector, which may be outside of the memref."""
    address = ops.create("memref.extract_aligned_pointer_as_index", [memref], [ops.index()]).result
    is_never = ops.compare(0, address, ops.constant_index(_NO_ADDRESS))
    return ops.binary("arith.ori", mask, splat(is_never))


def _load_masked(memref: Any, indices: Sequence[Any], mask: Any, type_: Any) -> Any:
    """Loads in vectors of AVX2's width. LLVM's backend fails for some masks of two such vectors if
    it knows that one of them loads nothing."""
    (width,), element = type_.shape, ops.element_type(type_)
    count = min(LANES, _MASKED_BYTES // (element_bytes(element) or 1))
    part, bits = (ir.VectorType.get([count], one) for one in (element, ops.integer(1)))
    *outer, first = indices
    loaded = ops.constant(type_, 0)
    for start in range(0, width, count):
        at = ops.binary("arith.addi", first, ops.constant_index(start)) if start else first
        own = shuffle(mask, mask, range(start, start + count), bits)
        found = ops.create(
            "vector.maskedload", [memref, *outer, at, own, ops.constant(part, 0)], [part]
        )
        if count == width:
            return found.result
        place = {
            name: ir.Attribute.parse(f"[{n}]") for name, n in (("offsets", start), ("strides", 1))
        }
        loaded = ops.create(
            "vector.insert_strided_slice", [found.result, loaded], [type_], place
        ).result
    return loaded


def shuffle(left: Any, right: Any, places: Sequence[int], type_: Any) -> Any:
    attributes = {"mask": ir.DenseI64ArrayAttr.get(places)}
    return ops.create("vector.shuffle", [left, right], [type_], attributes).result
