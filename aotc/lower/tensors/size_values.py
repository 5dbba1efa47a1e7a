"""Converts values and tensor sizes of an entry to polynomials, and polynomials to values."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.affine import evaluate_affine
from aotc.analysis.same_sizes import same_sized_operand
from aotc.lower.tensors.size_polynomials import (
    DIVIDED,
    FLOOR_DIVIDED,
    GREATEST,
    LEAST,
    ArgumentSize,
    Atom,
    Computed,
    Facts,
    Other,
    Polynomial,
    in_order,
)
from aotc.lower.tensors.size_products import requested_sizes
from aotc.mlir import ir
from aotc.slices import mixed_lists

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui")
_BINARY = (DIVIDED, FLOOR_DIVIDED, "arith.remsi", LEAST, GREATEST)
# Operations with one operand for each dynamic size of the result.
_WITH_SIZES = ("tensor.empty", "tensor.generate", "bufferization.alloc_tensor", "memref.alloc")
_ZERO, _ONE = Polynomial.number(0), Polynomial.number(1)
# A comparison: the predicate ("eq", "sle" or BROADCAST), the left and the right side.
BROADCAST = "broadcast"  # the right side can be broadcast to the left one: it is equal, or 1
Comparison = tuple[str, Polynomial, Polynomial]


class Sizes:
    """The polynomials of an entry's values. They are requested in program order, so that a request
    does not recurse further than to the operands."""

    def __init__(self, entry: Any, facts: Facts) -> None:
        self.facts = facts
        self._block = entry.regions[0].blocks[0]
        self._values: dict[Any, Polynomial] = {}
        self._sizes: dict[tuple[Any, int], Polynomial] = {}
        self._others = 0

    def of(self, tensor: Any, dimension: int) -> Polynomial:
        """The size of a tensor along a dimension."""
        if not tensor.type.is_dynamic_dim(dimension):
            return Polynomial.number(tensor.type.get_dim_size(dimension))
        key = (tensor, dimension)
        if key not in self._sizes:
            self._sizes[key] = self._size(tensor, dimension)
        return self.facts.simplified(self._sizes[key])

    def all_of(self, tensor: Any) -> list[Polynomial]:
        """The sizes of a tensor along all dimensions."""
        return [self.of(tensor, i) for i in range(tensor.type.rank)]

    def value(self, value: Any) -> Polynomial:
        """The polynomial of a scalar."""
        if value not in self._values:
            self._values[value] = self._value(value)
        return self.facts.simplified(self._values[value])

    def comparisons(self, condition: Any) -> list[Comparison] | None:
        """The comparisons of which the condition is the conjunction; None for other conditions."""
        owner = ops.defining(condition)
        if owner is None:
            return None
        if owner.name == "arith.constant":
            return [] if ir.IntegerAttr(owner.attributes["value"]).value else None
        if owner.name == "arith.andi":
            both = [self.comparisons(operand) for operand in owner.operands]
            return None if None in both else [one for some in both for one in some or ()]
        if owner.name != "arith.cmpi" or not _is_number(owner.operands[0].type):
            return None
        number = ir.IntegerAttr(owner.attributes["predicate"]).value
        left, right = (self.value(operand) for operand in owner.operands)
        if number >= len(_PREDICATES) or _PREDICATES[number] == "ne":
            return None
        name = _PREDICATES[number]
        if name in ("sgt", "sge"):
            left, right, name = right, left, {"sgt": "slt", "sge": "sle"}[name]
        return [("sle", left.plus(_ONE), right) if name == "slt" else (name, left, right)]

    def holds(self, comparison: Comparison) -> bool | None:
        """Whether the comparison holds; None if it is not known."""
        predicate, left, right = comparison
        if predicate == BROADCAST:
            return self._is_broadcastable(left, right)
        if predicate == "eq" and left == right:
            return True
        if predicate == "sle" and self.facts.is_never_negative(right.minus(left)):
            return True
        apart = right.minus(left).minus(_ONE)
        if predicate == "eq" and self.facts.is_never_negative(apart):
            return False
        over = left.minus(right).minus(_ONE)
        return False if self.facts.is_never_negative(over) else None

    def _is_broadcastable(self, extent: Polynomial, size: Polynomial) -> bool | None:
        answers = [self.holds(("eq", one, size)) for one in (extent, _ONE)]
        return True if True in answers else None if None in answers else False

    def _value(self, value: Any) -> Polynomial:
        known = ops.known_index(value)
        if known is not None:
            return Polynomial.number(known)
        owner = ops.defining(value)
        if owner is None:
            return self._other(value)
        if owner.name in _CASTS and _is_number(owner.operands[0].type):
            return self.value(owner.operands[0])
        if owner.name in ("arith.addi", "arith.subi", "arith.muli"):
            left, right = map(self.value, owner.operands)
            how = {"arith.addi": left.plus, "arith.subi": left.minus, "arith.muli": left.times}
            return how[owner.name](right)
        if owner.name in _BINARY:
            left, right = map(self.value, owner.operands)
            return self.facts.computed(owner.name, left, right)
        if owner.name == "arith.select" and _is_number(value.type):
            return self._selected(owner)
        if owner.name == "affine.apply":
            map_ = ir.AffineMapAttr(owner.attributes["map"]).value
            operands = [self.value(operand) for operand in owner.operands]
            return self.expression(
                map_.results[0], operands[: map_.n_dims], operands[map_.n_dims :]
            )
        if owner.name in ("tensor.dim", "memref.dim"):
            dimension = ops.known_dimension(owner)
            if dimension is not None:
                return self.of(owner.operands[0], dimension)
        return self._other(value)

    def _other(self, value: Any, dimension: int | None = None) -> Polynomial:
        self._others += 1
        return Polynomial.atom(Other(self._others, value, dimension))

    def _selected(self, select: Any) -> Polynomial:
        """The selected value if it is known which; otherwise the minimum or maximum if the select
        computes that."""
        condition, *values = select.operands
        one, other = map(self.value, values)
        compared = self.comparisons(condition)
        if compared is not None:
            answers = [self.holds(comparison) for comparison in compared]
            if all(answers):
                return one
            if False in answers:
                return other
            ((predicate, left, right), *more) = compared
            # The condition is a < b or a <= b, and the values are a and b.
            difference, apart = right.minus(left), one.minus(other)
            if predicate == "sle" and not more:
                if difference in (apart, apart.minus(_ONE)):
                    return self.facts.computed(GREATEST, one, other)
                if difference.plus(apart) in (_ZERO, _ZERO.minus(_ONE)):
                    return self.facts.computed(LEAST, one, other)
        return self._other(select.results[0])

    def expression(
        self, expression: Any, dims: list[Polynomial], symbols: list[Polynomial]
    ) -> Polynomial:
        """The polynomial of an affine expression of these dimensions and symbols."""
        return evaluate_affine(expression, dims, symbols, Polynomial.number, self._combine)

    def _combine(self, kind: str, left: Polynomial, right: Polynomial) -> Polynomial:
        if kind == "add":
            return left.plus(right)
        if kind == "mul":
            return left.times(right)
        name = {"floordiv": FLOOR_DIVIDED, "ceildiv": "arith.ceildivsi", "mod": "arith.remsi"}[kind]
        return self.facts.computed(name, left, right)

    def _size(self, tensor: Any, dimension: int) -> Polynomial:
        owner = ops.defining(tensor)
        if owner is None:
            if tensor.owner == self._block:
                return Polynomial.atom(ArgumentSize(tensor.arg_number, dimension))
            return self._other(tensor, dimension)
        found = self.computed(tensor, dimension)
        if found is not None:
            return found
        unknown = [i for i in range(tensor.type.rank) if tensor.type.is_dynamic_dim(i)]
        number = unknown.index(dimension)
        if owner.name in _WITH_SIZES:
            # If the result is a copy, the operand is the tensor that is copied.
            asked = owner.operands[0 if _has_rank(owner.operands[0]) else number]
            return self.of(asked, dimension) if _has_rank(asked) else self.value(asked)
        if owner.name in ("tensor.expand_shape", "memref.expand_shape", "tensor.splat"):
            return self.value(owner.operands[1 + number])
        if owner.name in ("tensor.extract_slice", "memref.subview"):
            sizes = ops.operand_groups(owner)[2]
            return self.value(sizes[number])
        return self._other(tensor, dimension)

    def computed(self, tensor: Any, dimension: int) -> Polynomial | None:
        """The size that an operation computes from its operands' sizes, even if its result declares
        a static one. None for an operation whose verifier compares the two."""
        owner = ops.defining(tensor)
        like = owner and same_sized_operand(owner, list(owner.results).index(tensor))
        if like:
            return self.of(like, dimension)
        if owner is None:
            return None
        if owner.name in ("tensor.collapse_shape", "memref.collapse_shape"):
            return self.product(owner.operands[0], ops.groups_of(owner)[dimension])
        if owner.name == "tensor.concat":
            return self._concatenated(owner, dimension)
        if owner.name == "tensor.pad":
            low, high = mixed_polynomials(self, owner)
            return low[dimension].plus(self.of(owner.operands[0], dimension)).plus(high[dimension])
        asked = requested_sizes(owner) if owner.name == "tensor.reshape" else None
        return None if asked is None else self.value(asked[dimension])

    def product(self, tensor: Any, dimensions: list[int]) -> Polynomial:
        """The product of the tensor's sizes along `dimensions`."""
        total = Polynomial.number(1)
        for dimension in dimensions:
            total = total.times(self.of(tensor, dimension))
        return total

    def _concatenated(self, concat: Any, dimension: int) -> Polynomial:
        if ir.IntegerAttr(concat.attributes["dim"]).value != dimension:
            return self.of(concat.operands[0], dimension)
        total = Polynomial.number(0)
        for operand in concat.operands:
            total = total.plus(self.of(operand, dimension))
        return total


def mixed_polynomials(sizes: Sizes, operation: Any) -> list[list[Polynomial]]:
    """The offsets, sizes and strides of an operation on a slice, or the low and high padding, for
    each dimension, static or not."""
    return [
        [Polynomial.number(one) if isinstance(one, int) else sizes.value(one) for one in mixed]
        for mixed in mixed_lists(operation)
    ]


def create_value(polynomial: Polynomial, arguments: Any, *, capped: bool = False) -> Any:
    """The polynomial as a value at the insertion point; `arguments` are the entry's.

    With `capped`, a product that overflows an index becomes the largest index.
    """
    total = ops.constant_index(0)
    for atoms, factor in in_order(polynomial):
        product = ops.constant_index(factor)
        if capped and factor > 0 and len(atoms) + (factor > 1) > 1:
            product = ops.capped_product([product, *(_create_atom(a, arguments) for a in atoms)])
            atoms = []
        for atom in atoms:
            product = ops.index_op("arith.muli", product, _create_atom(atom, arguments))
        total = ops.index_op("arith.addi", total, product)
    return total


def _create_atom(atom: Atom, arguments: Any) -> Any:
    if isinstance(atom, Computed):
        operands = [create_value(operand, arguments) for operand in atom.operands]
        return ops.index_op(atom.name, *operands)
    if isinstance(atom, ArgumentSize):
        return ops.dim(arguments[atom.argument], atom.dimension)
    if atom.dimension is not None:
        return ops.dim(atom.value, atom.dimension)
    if isinstance(atom.value.type, ir.IndexType):
        return atom.value
    return ops.unary("arith.index_cast", atom.value, ops.index())


def _is_number(type_: Any) -> bool:
    """Whether integers of the type are wide enough for sizes."""
    return isinstance(type_, ir.IndexType) or str(type_) == "i64"


def _has_rank(tensor: Any) -> bool:
    return isinstance(tensor.type, ir.RankedTensorType | ir.MemRefType)
