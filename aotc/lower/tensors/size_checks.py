"""Proves what operations require of sizes, or inserts a check at run time.

Many operations are only valid for some sizes: a cast to a static size, a dimension that is split
into equal parts, operands of equal shapes, padding that is not negative. MLIR's lowering checks
none of this at run time, and a read from a tensor of another size accesses other memory. So every
requirement that does not follow from the types of the entry's arguments is checked when the entry
is called, before anything else is executed. A requirement that depends on other values is checked
before the operation.

Modules from importers are checked completely. In modules that a person wrote, the bodies of loops
become kernels. There, only `tensor.pad` is checked, whose result may be smaller than what is
written to it; everything else in loops is trusted (docs/input.md).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import chain
from typing import Any

from aotc import ops
from aotc.analysis.same_sizes import elementwise_operands
from aotc.attributes import IMPORTED_ATTRIBUTE, NAME_ATTRIBUTE
from aotc.input.source import Source, input_error
from aotc.lower.tensors.size_polynomials import (
    FLOOR_DIVIDED,
    ArgumentSize,
    Atom,
    Computed,
    Facts,
    Other,
    Polynomial,
    text_of,
)
from aotc.lower.tensors.size_products import requested_sizes
from aotc.lower.tensors.size_values import (
    BROADCAST,
    Comparison,
    Sizes,
    create_value,
    mixed_polynomials,
)
from aotc.mlir import ir, linalg
from aotc.sizes import LARGEST_MEMORY
from aotc.slices import static_lists

# A bound that no size reaches, and small enough for sums not to overflow.
_LARGEST = Polynomial.number(LARGEST_MEMORY)
# Any size can be multiplied by this without overflow.
_LARGEST_STRIDE = 64
_SHAPED = (ir.RankedTensorType, ir.MemRefType)
# Operations whose regions execute on the host at most once.
_HOST_REGIONS = ("scf.if", "scf.index_switch", "scf.execute_region")
_DIVISIONS = tuple(
    f"arith.{name}" for name in "ceildivsi ceildivui divsi divui floordivsi remsi remui".split()
)
_EQ, _NE, _SLE = 0, 1, 3
_ZERO, _ONE = Polynomial.number(0), Polynomial.number(1)


def check_sizes(source: Source) -> None:
    """Checks the module of `source`, on tensors, in place.

    Raises InputError for a requirement that no sizes of the arguments fulfil.
    """
    with source.module.context:
        for function in ops.find(source.module.operation, "func.func"):
            if not ops.is_declaration(function):
                _Checks(source, function).run()
            if IMPORTED_ATTRIBUTE in function.attributes:
                del function.attributes[IMPORTED_ATTRIBUTE]


class _Checks:
    """The checks of one function."""

    def __init__(self, source: Source, function: Any) -> None:
        self._source = source
        self._function = function
        self._is_imported = IMPORTED_ATTRIBUTE in function.attributes
        self._block = function.regions[0].blocks[0]
        self._first = self._block.operations[0].operation
        self._names = _names(function)
        self._sizes = Sizes(function, Facts())
        # Comparisons that are already checked at the start of the entry.
        self._is_asked: set[Comparison] = set()

    def run(self) -> None:
        for cast in ops.find(self._function, *_CASTS):
            _skip_unranked(self._source, cast)
        for operation in self._operations():
            if operation.name == "cf.assert":
                if self._is_imported:
                    self._replace(operation)
                continue
            for comparison in _expected(self._sizes, operation, self._is_imported):
                self._expect(operation, comparison)
            for comparison in _of_results(self._sizes, operation):
                self._expect(operation, comparison)
            if self._is_imported and operation.name in _DIVISIONS:
                self._expect_divisor(operation)
            for result in operation.results:
                if isinstance(result.type, _SHAPED):
                    self._sizes.all_of(result)

    def _operations(self) -> list[Any]:
        """The operations to check, in order."""
        blocks = self._function.regions[0].blocks
        found = [op for block in blocks for op in _outside_of_bodies(block, self._is_imported)]
        known = set(found)
        pads = [op for op in ops.find(self._function, "tensor.pad") if op not in known]
        return found + pads

    def _replace(self, assertion: Any) -> None:
        """Replaces an importer's assertion, whose message names no argument."""
        condition = assertion.operands[0]
        if _is_false(condition) and assertion.block == self._block:
            raise input_error(self._source, [(assertion.location, _always_fails(assertion))])
        comparisons = self._sizes.comparisons(condition)
        if comparisons is None:
            return
        for comparison in comparisons:
            self._expect(assertion, comparison)
        if assertion == self._first:
            block = ops.operations_in(self._block)
            self._first = block[block.index(assertion) + 1]
        ops.erase(assertion)

    def _expect_divisor(self, division: Any) -> None:
        """Checks that the divisor is not 0; otherwise the process would be killed by a trap."""
        divisor = division.operands[1]
        if ops.known_index(divisor) or self._sizes.holds(("sle", _ONE, self._sizes.value(divisor))):
            return
        conditions = _selecting(division)
        with division.location, ir.InsertionPoint(division):
            is_right = ops.compare(_NE, divisor, ops.constant(divisor.type, 0))
            if conditions:
                one = ops.constant(divisor.type, 1)
                division.operands[1] = ops.select(is_right, divisor, one)
                is_used = functools.reduce(functools.partial(ops.binary, "arith.ori"), conditions)
                is_unused = ops.binary("arith.xori", is_used, ops.constant(is_used.type, 1))
                is_right = ops.binary("arith.ori", is_right, is_unused)
            ops.create_assert(is_right, "a size is divided by 0")

    def _expect(self, operation: Any, comparison: Comparison) -> None:
        """Checks that the comparison holds at the operation."""
        predicate, left, right = comparison
        answer = self._sizes.holds(comparison)
        if answer:
            return
        is_first = operation.block == self._block
        if answer is False and is_first:
            needed = _relation(comparison, self._names)
            message = f"{operation.name} would need {needed}"
            if operation.name == "cf.assert":
                message = _always_fails(operation, f" (it needs {needed})")
            raise input_error(self._source, [(operation.location, message)])
        atoms = left.atoms() | right.atoms()
        for atom in atoms:
            if isinstance(atom, Computed) and "div" in atom.name:
                self._expect(operation, ("sle", _ONE, atom.operands[1]))
        is_known_at_the_start = all(self._is_known_at_the_start(atom) for atom in atoms)
        if operation.name in _VIEWS:
            # Where it stands, it is behind the assertions of --verify, which show the numbers.
            is_known_at_the_start = False
        place = self._first if is_first and is_known_at_the_start else operation
        if place == self._first:
            if comparison in self._is_asked:
                return
            self._is_asked.add(comparison)
        arguments = self._block.arguments
        with operation.location, ir.InsertionPoint(place):
            is_sle = predicate == "sle"
            values = [create_value(one, arguments, capped=not is_sle) for one in (left, right)]
            condition = ops.compare(_SLE if is_sle else _EQ, *values)
            if predicate == BROADCAST:
                is_one = ops.compare(_EQ, values[1], ops.constant_index(1))
                condition = ops.create("arith.ori", [condition, is_one], [condition.type]).result
            ops.create_assert(condition, _message(operation, comparison, self._names))
        if is_first and predicate != BROADCAST:
            self._sizes.facts.learn(predicate, left, right)

    def _is_known_at_the_start(self, atom: Atom) -> bool:
        """Whether the atom is an argument's size or scalar, or computed from those."""
        if not isinstance(atom, Other):
            return True
        return atom.dimension is None and atom.value.owner == self._block


def _skip_unranked(source: Source, cast: Any) -> None:
    """Lets a cast from an unranked type read what was cast to that, whose sizes are known."""
    inner = ops.defining(cast.operands[0])
    if inner is None or inner.name != cast.name:
        return
    given, made = inner.operands[0], cast.results[0]
    if isinstance(inner.results[0].type, _SHAPED) or not isinstance(made.type, _SHAPED):
        return
    cast.operands[0] = given
    try:
        cast.verify()
    except ir.MLIRError:
        cast.operands[0] = inner.results[0]
        what = f"{given.type} is cast to {made.type}, which has another shape"
        raise input_error(source, [(cast.location, what)]) from None


def _selecting(division: Any) -> list[Any]:
    """The conditions under which the quotient is selected, if nothing else uses it: an importer
    divides by the product of sizes, whether or not one of them is to be inferred."""
    block = ops.operations_in(division.block)
    before = block[: block.index(division)]
    conditions = []
    for use in division.results[0].uses:
        select = use.owner
        if select.name != "arith.select" or use.operand_number != 1:
            return []
        condition = select.operands[0]
        if ops.defining(condition) not in before:
            return []
        conditions.append(condition)
    return conditions


def _is_false(condition: Any) -> bool:
    """Whether a condition, or one of its conjuncts, is known to be false."""
    owner = ops.defining(condition)
    if owner is not None and owner.name == "arith.andi":
        return any(map(_is_false, owner.operands))
    if owner is None or owner.name != "arith.constant":
        return False
    return not ir.IntegerAttr(owner.attributes["value"]).value


def _always_fails(assertion: Any, why: str = "") -> str:
    """The error for an importer's assertion that always fails; it often says that there is no
    lowering."""
    return f"this always fails: {ir.StringAttr(assertion.attributes['msg']).value}{why}"


def _names(function: Any) -> list[str]:
    arguments = function.regions[0].blocks[0].arguments
    names = [f"argument {number}" for number in range(len(arguments))]
    if "arg_attrs" in function.attributes:
        for number, given in enumerate(ir.ArrayAttr(function.attributes["arg_attrs"])):
            attributes = ir.DictAttr(given)
            if NAME_ATTRIBUTE in attributes:
                names[number] = ir.StringAttr(attributes[NAME_ATTRIBUTE]).value
    return names


def _message(operation: Any, comparison: Comparison, names: list[str]) -> str:
    predicate, left, right = comparison
    if predicate != "sle":
        or_one = "" if predicate == "eq" else ", and not 1"
        for one, other in ((right, left), (left, right))[: 2 if predicate == "eq" else 1]:
            found = _argument_size(one)
            if found is None:
                continue
            has = f"'{names[found.argument]}' has another size in dimension {found.dimension} than"
            another = _argument_size(other)
            if another is not None:
                whose = f"'{names[another.argument]}' in dimension {another.dimension}"
                return f"{has} {whose}{or_one}"
            if other.known() is not None:
                return f"{has} {other.known()}{or_one}"
    atoms = left.atoms() | right.atoms()
    used = sorted({atom.argument for atom in atoms if isinstance(atom, ArgumentSize)})
    whose = " and ".join(f"'{names[number]}'" for number in used)
    of = f" of {whose}" if used else ""
    if any(isinstance(atom, Other) for atom in atoms):
        if operation.name == "cf.assert":
            return str(ir.StringAttr(operation.attributes["msg"]).value)
        return f"sizes that depend on values{of and f' and sizes{of}'} do not fit {operation.name}"
    return f"the sizes{of} do not fit: expected {_relation(comparison, names)}"


def _relation(comparison: Comparison, names: list[str]) -> str:
    predicate, left, right = comparison
    if predicate == BROADCAST:
        return f"{text_of(right, names)} == {text_of(left, names)} or 1"
    sign = "==" if predicate == "eq" else "<="
    return f"{text_of(left, names)} {sign} {text_of(right, names)}"


def _argument_size(polynomial: Polynomial) -> ArgumentSize | None:
    """The argument size that the polynomial is equal to; None for others."""
    atoms = polynomial.atoms()
    atom = next(iter(atoms), None)
    if len(atoms) == 1 and isinstance(atom, ArgumentSize) and polynomial == Polynomial.atom(atom):
        return atom
    return None


def _outside_of_bodies(block: Any, is_imported: bool) -> Iterator[Any]:
    """Yields the operations of a block and its nested blocks, in order, except those in bodies on
    elements. In functions that were not imported, loops and launches are skipped."""
    for operation in ops.operations_in(block):
        yield operation
        if operation.name.startswith(("linalg.", "tensor.")):
            continue
        if not is_imported and operation.name not in _HOST_REGIONS:
            continue
        for region in operation.regions:
            for inner in region.blocks:
                yield from _outside_of_bodies(inner, is_imported)


def _of_results(sizes: Sizes, operation: Any) -> Iterator[Comparison]:
    """Yields that results have the static sizes that their types declare."""
    for result in operation.results:
        if isinstance(result.type, _SHAPED):
            for dimension, size in enumerate(result.type.shape):
                if not result.type.is_dynamic_dim(dimension):
                    found = sizes.computed(result, dimension)
                    if found is not None:
                        yield "eq", found, Polynomial.number(size)


def _expected(sizes: Sizes, operation: Any, is_imported: bool) -> Iterator[Comparison]:
    """Yields what an operation requires of the sizes of its operands."""
    name = operation.name
    if name.startswith("linalg.") and len(operation.regions) == 1:
        yield from _of_loops(sizes, operation, is_imported)
    elif name in ("tensor.expand_shape", "tensor.reshape", "memref.expand_shape"):
        yield from _of_reshapes(sizes, operation)
    elif name in ("tensor.extract_slice", "tensor.insert_slice", "memref.subview"):
        yield from _of_slices(sizes, operation)
    elif name == "tensor.pad":
        for number in chain.from_iterable(mixed_polynomials(sizes, operation)):
            yield "sle", _ZERO, number
            if _is_any_number(number):
                yield "sle", number, _LARGEST
    elif name == "tensor.concat":
        yield from _of_concatenation(sizes, operation)
    elif operands := _equal_operands(operation):
        for other in operands[1:]:
            for pair in zip(sizes.all_of(operands[0]), sizes.all_of(other), strict=True):
                yield ("eq", *pair)
    elif name in _OF_SIZES:
        given = operation.operands[_OF_SIZES[name] :]
        yield from (("sle", _ZERO, sizes.value(operand)) for operand in given)


# Operation → the number of operands before the dynamic sizes of its result.
_OF_SIZES = {"tensor.empty": 0, "tensor.generate": 0, "tensor.splat": 1}


def _is_any_number(number: Polynomial) -> bool:
    """Whether it depends on scalars that are not sizes: arithmetic on them may overflow."""
    return any(isinstance(atom, Other) and atom.dimension is None for atom in number.atoms())


_CASTS = ("memref.cast", "tensor.cast")
_VIEWS = ("memref.cast", "memref.expand_shape", "memref.subview")
_COPIES = ("memref.copy", "bufferization.materialize_in_destination")


def _equal_operands(operation: Any) -> list[Any]:
    """The operands of a copy, or of an elementwise operation, which have the same sizes."""
    if operation.name in _COPIES:
        operands = [one for one in operation.operands if isinstance(one.type, _SHAPED)]
        return operands if len(operands) == len(operation.operands) else []
    return elementwise_operands(operation)


def _of_loops(sizes: Sizes, operation: Any, is_imported: bool) -> Iterator[Comparison]:
    """Yields the requirements of a structured operation: operands that share a loop have equal
    sizes along it, and other accesses stay in bounds."""
    maps = linalg.get_indexing_maps(operation)
    if maps is None or len(maps) != len(operation.operands):
        return
    extents: dict[int, Polynomial] = {}
    others = []
    for operand, attribute in zip(operation.operands, maps, strict=True):
        if not isinstance(operand.type, _SHAPED):
            continue
        map_ = ir.AffineMapAttr(attribute).value
        for dimension, result in enumerate(map_.results):
            size = sizes.of(operand, dimension)
            if not isinstance(result, ir.AffineDimExpr):
                others.append((result, map_, size, operand.type))
            elif result.position not in extents:
                extents[result.position] = size
            else:
                yield "eq", extents[result.position], size
    units = {loop for loop, extent in extents.items() if extent == _ONE}
    for result, map_, size, type_ in others:
        loops = range(map_.n_dims)
        if isinstance(result, ir.AffineConstantExpr):
            yield "sle", Polynomial.number(result.value + 1), size
        elif all(loop in extents for loop in loops) and not _has_negative_factor(result):
            last = [extents[loop].minus(_ONE) for loop in loops]
            # If all windows are of one element, MLIR drops their loops, and takes the others from
            # the sizes of the image. (`aotc-trim-windows` trims tensors.)
            is_image = isinstance(type_, ir.MemRefType) and not type_.has_static_shape
            is_whole = is_image and all(len(_terms_without(one, units)) < 2 for one in map_.results)
            kind = "eq" if is_whole else "sle"
            yield kind, sizes.expression(result, last, []).plus(_ONE), size
    body = operation.regions[0].blocks[0]
    for read in ops.find(operation, "tensor.extract"):
        # In a branch, the branch's condition limits how far it reads.
        if read.block == body:
            yield from _of_element(sizes, read, extents, is_imported)


def _terms_without(expression: Any, units: set[int]) -> list[Any]:
    """The loops and products that an affine expression adds, without loops of `units`. A single
    product counts as two."""
    if isinstance(expression, ir.AffineDimExpr):
        return [] if expression.position in units else [expression]
    if isinstance(expression, ir.AffineAddExpr):
        return [*_terms_without(expression.lhs, units), *_terms_without(expression.rhs, units)]
    is_zero = isinstance(expression, ir.AffineMulExpr) and not _terms_without(expression.lhs, units)
    return [] if is_zero else [expression, expression]


def _has_negative_factor(expression: Any) -> bool:
    """Whether the expression may decrease when a loop index increases."""
    if isinstance(expression, ir.AffineConstantExpr):
        return bool(expression.value < 0)
    if not isinstance(expression, ir.AffineBinaryExpr):
        return False
    operands = (expression.lhs, expression.rhs)
    if isinstance(expression, ir.AffineAddExpr):
        # A constant that is added is no factor.
        operands = tuple(one for one in operands if not isinstance(one, ir.AffineConstantExpr))
    return any(map(_has_negative_factor, operands))


def _of_element(
    sizes: Sizes, read: Any, extents: dict[int, Polynomial], is_imported: bool
) -> Iterator[Comparison]:
    """Yields the requirements of a `tensor.extract` at loop indices.

    The tensor is at least as long as the loop, or has size 1 where a broadcast tests for that. In
    an importer's broadcast it may not be longer, as the framework would raise an error.
    """
    tensor, *indices = read.operands
    for dimension, value in enumerate(indices):
        owner = ops.defining(value)
        is_broadcast = False
        if owner is not None and owner.name == "arith.select":
            is_broadcast = ops.known_index(owner.operands[1]) == 0
            owner = ops.defining(owner.operands[2])
        if owner is None or owner.name != "linalg.index":
            continue
        extent = extents.get(ir.IntegerAttr(owner.attributes["dim"]).value)
        size = sizes.of(tensor, dimension)
        if extent is None:
            continue
        if is_broadcast and is_imported:
            yield BROADCAST, extent, size
        elif is_broadcast and not sizes.holds(("sle", extent, size)):
            # The size is at least the extent, or is 1.
            yield "sle", extent.minus(size).times(size.minus(_ONE)), _ZERO
            yield "sle", extent, extent.times(size)
        elif not is_broadcast:
            yield "sle", extent, size


def _of_reshapes(sizes: Sizes, operation: Any) -> Iterator[Comparison]:
    source, result = operation.operands[0], operation.results[0]
    if not all(isinstance(one.type, _SHAPED) for one in (source, result)):
        return
    before, after = sizes.all_of(source), sizes.all_of(result)
    if operation.name.endswith(".expand_shape"):
        for size, group in zip(before, ops.groups_of(operation), strict=True):
            yield "eq", size, sizes.product(result, group)
            for dimension in group:
                yield "sle", _ZERO, after[dimension]
    else:
        asked = requested_sizes(operation)
        yield (
            "eq",
            sizes.product(source, [*range(len(before))]),
            sizes.product(result, [*range(len(after))]),
        )
        for size, other in zip(map(sizes.value, asked or ()), after, strict=False):
            yield "eq", size, other
            yield "sle", _ZERO, other


def _of_slices(sizes: Sizes, operation: Any) -> Iterator[Comparison]:
    """Yields the requirements of a slice: it is in bounds, and has the sizes of what is
    inserted."""
    is_put = operation.name == "tensor.insert_slice"
    whole = operation.operands[1 if is_put else 0]
    offsets, asked, strides = mixed_polynomials(sizes, operation)
    for dimension, (offset, size, stride) in enumerate(zip(offsets, asked, strides, strict=True)):
        available = sizes.of(whole, dimension)
        at_start: Comparison = ("sle", _ZERO, offset)
        if not sizes.holds(at_start) and not any(map(_is_any_number, (offset, size))):
            # A slice without elements is anywhere.
            at_start = ("sle", _ZERO, offset.times(size))
        yield at_start
        yield "sle", _ZERO, size
        last = offset.plus(size.minus(_ONE).times(stride))
        known = stride.known()
        if known is None and operation.name in _VIEWS:
            continue  # it may be negative
        if known is not None and known < 0:
            yield "sle", offset.plus(_ONE), available
            yield "sle", _ZERO, last
            continue
        in_bounds: Comparison = ("sle", last.plus(_ONE), available)
        if not sizes.holds(in_bounds) and any(map(_is_any_number, (offset, size, stride))):
            # Bounds each number, so that the sum below cannot overflow.
            yield "sle", offset, available
            yield "sle", size, available
            if known is None or known > _LARGEST_STRIDE:
                steps = available.minus(_ONE).minus(offset)
                count = sizes.facts.computed(FLOOR_DIVIDED, steps, stride).plus(_ONE)
                in_bounds = ("sle", size, count)
        yield in_bounds
    if is_put:
        source = operation.operands[0]
        shape = list(source.type.shape)
        kept = _kept_dimensions(static_lists(operation)[1], shape)
        yield from (
            ("eq", asked[dimension], size)
            for dimension, size in zip(kept, sizes.all_of(source), strict=True)
        )


def _kept_dimensions(sizes: list[int], shape: list[int]) -> list[int]:
    """The dimensions of a slice of these static sizes that a tensor of this shape has; the others
    have the size 1."""
    kept: list[int] = []
    for dimension, size in enumerate(sizes):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(dimension)
    return kept


def _of_concatenation(sizes: Sizes, concat: Any) -> Iterator[Comparison]:
    along = ir.IntegerAttr(concat.attributes["dim"]).value
    for operand in concat.operands:
        for dimension, size in enumerate(sizes.all_of(operand)):
            if dimension != along:
                yield "eq", sizes.of(concat.operands[0], dimension), size
