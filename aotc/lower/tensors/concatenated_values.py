"""Plans the computation of a concatenation of values that are computed in the same way.

The concatenation of `f(a)` and `f(b)` along a dimension is `f` of the concatenation of `a` and `b`,
if `f` computes each index along the dimension from one index of its operand. The plan goes back to
constants, which are concatenated at build time. Operands that do not depend on the dimension must
be equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import RESHAPES, loops_in, maps_of, reduction_loops
from aotc.attributes import NAME_ATTRIBUTE
from aotc.lower.tensors.constants import dense_of
from aotc.lower.tensors.known_tensors import SMALL, KnownTensors
from aotc.mlir import ir
from aotc.sizes import dense_bytes

_MOST_STEPS = 32


class Concatenation(Struct):
    """A node of the plan. `build` inserts its operations; everything that they read must be defined
    before the insertion point. A node with several users is built once: `made` is its value
    then."""

    made: Any = None

    def build(self) -> Any:
        """The value of the node; its operations are inserted when it is built first."""
        if self.made is None:
            self.made = self._build()
        return self.made

    def _build(self) -> Any:
        raise NotImplementedError


class _Same(Concatenation, kw_only=True):
    """A value that does not depend on the dimension."""

    value: Any

    def _build(self) -> Any:
        return self.value


class _Constant(Concatenation, kw_only=True):
    """One of several equal constants that do not depend on the dimension. The constant is created
    again, as none of the existing ones may be before the insertion point."""

    value: Any

    def _build(self) -> Any:
        return ops.constant_from(ops.known_constant(self.value))


class _Constants(Concatenation, kw_only=True):
    values: list[Any]
    axis: int

    def _build(self) -> Any:
        known = KnownTensors()
        arrays = [array for one in self.values if (array := known.of(one)) is not None]
        element = self.values[0].type.element_type
        return ops.constant_from(dense_of(np.concatenate(arrays, self.axis), element))


class _Operation(Concatenation, kw_only=True):
    """`operation` with other operands.

    Its result has size `size` along `axis`. If `axis` is None, the result keeps its shape.
    """

    operation: Any
    operands: list[Concatenation]
    axis: int | None = None
    size: int = 0

    def _build(self) -> Any:
        values = [one.build() for one in self.operands]
        clone = self.operation.clone()
        for number, value in enumerate(values):
            clone.operands[number] = value
        if clone.name == "linalg.generic":
            _make_constants(clone)
        if self.axis is None:
            return clone.results[0]
        shape = list(clone.results[0].type.shape)
        shape[self.axis] = self.size
        element = clone.results[0].type.element_type
        clone.results[0].set_type(ir.RankedTensorType.get(shape, element))
        if clone.name == "tensor.expand_shape":
            clone.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(shape)
        return clone.results[0]


def _make_constants(generic: Any) -> None:
    """Recreates constants that the body uses from outside, for the same reason as `_Constant`."""
    for operation in ops.content(generic):
        for number, value in enumerate(operation.operands):
            constant = None if isinstance(value.type, ir.ShapedType) else ops.known_constant(value)
            if constant is not None and ops.is_made_outside(value, generic):
                with ir.InsertionPoint(generic):
                    operation.operands[number] = ops.constant_from(constant)


def concatenation(values: Sequence[Any], axis: int) -> Concatenation | None:
    """The plan for the concatenation of tensors along a dimension of known sizes.

    None if the concatenation cannot be computed from concatenated constants, or if a computation or
    a large constant would be duplicated.
    """
    planner = _Planner()
    return (
        planner.concatenate(list(values), axis) if planner.can_concatenate(values, axis) else None
    )


class _Planner:
    def __init__(self) -> None:
        self._known = KnownTensors()
        self._nodes: dict[Hashable, Concatenation | None] = {}
        self._depth = 0

    def can_concatenate(self, values: Sequence[Any], axis: int) -> bool:
        """Whether the types allow the concatenation."""
        types = [value.type for value in values]
        if not all(isinstance(one, ir.RankedTensorType) for one in types):
            return False
        if len({one.rank for one in types}) > 1 or any(one.is_dynamic_dim(axis) for one in types):
            return False
        return len({(str(one.element_type), *_without(one.shape, axis)) for one in types}) == 1

    def concatenate(self, values: list[Any], axis: int) -> Concatenation | None:
        """As `concatenation`, for values that `can_concatenate` accepts."""
        key = (*values, axis)
        if key not in self._nodes:
            self._depth += 1
            self._nodes[key] = self._node(values, axis) if self._depth <= _MOST_STEPS else None
            self._depth -= 1
        return self._nodes[key]

    def _node(self, values: list[Any], axis: int) -> Concatenation | None:
        makers: list[Any] = [ops.defining(value) for value in values]
        if any(one is None or len(one.results) != 1 for one in makers):
            return None
        first, *others = makers
        if any(one.name != first.name for one in others):
            return None
        if first.name == "arith.constant":
            return self._constants(values, axis)
        size = sum(value.type.shape[axis] for value in values)
        along = self._axes_of_operands(makers, axis)
        if along is None:
            return None
        operands = self._operands(makers, along)
        if operands is None:
            return None
        return _Operation(operation=first, operands=operands, axis=axis, size=size)

    def _constants(self, values: list[Any], axis: int) -> Concatenation | None:
        # A large constant with other users would be in the artifact twice.
        if not all(_is_small(one) or _is_used_once(one) for one in values):
            return None
        if _is_i1(values[0].type) or not all(map(self._known.has, values)):
            return None
        return _Constants(values=values, axis=axis)

    def _operands(
        self, makers: list[Any], along: Sequence[int | None]
    ) -> list[Concatenation] | None:
        """The nodes of the operands. `along`: the dimension along which each operand is
        concatenated; None for operands that must be equal."""
        nodes = []
        for number, axis in enumerate(along):
            values = [one.operands[number] for one in makers]
            node = self._same(values) if axis is None else self._concatenated(values, axis)
            if node is None:
                return None
            nodes.append(node)
        return nodes

    def _concatenated(self, values: list[Any], axis: int) -> Concatenation | None:
        if not self.can_concatenate(values, axis):
            return None
        makes_twice = not all(_is_used_once(one) or _is_free(ops.defining(one)) for one in values)
        return None if makes_twice else self.concatenate(values, axis)

    def _same(self, values: list[Any]) -> Concatenation | None:
        first, *others = values
        if all(one == first for one in others):
            return _Same(value=first)
        # Small tensors may be equal because they are computed in the same way, such as the shifts
        # of packed weights.
        makers: list[Any] = [ops.defining(value) for value in values]
        if not all(map(_is_small, values)) or any(one is None for one in makers):
            return None
        if any(value.type != first.type for value in others):
            return None
        if makers[0].name == "arith.constant":
            return self._same_constant(values)
        if any(one.name != makers[0].name for one in makers) or not _are_alike(makers):
            return None
        operands = self._operands(makers, [None] * len(makers[0].operands))
        return None if operands is None else _Operation(operation=makers[0], operands=operands)

    def _same_constant(self, values: list[Any]) -> Concatenation | None:
        if not all(map(self._known.has, values)):
            return None
        contents = {np.asarray(self._known.of(value)).tobytes() for value in values}
        return _Constant(value=values[0]) if len(contents) == 1 else None

    def _axes_of_operands(self, makers: list[Any], axis: int) -> list[int | None] | None:
        """The dimension of each operand that `axis` of the result corresponds to; None for an
        operand that is read as a whole.

        Returns None if the operations differ, or if they use the index along `axis` for more than
        access.
        """
        first = makers[0]
        if not _are_alike(makers):
            return None
        if first.name == "tensor.empty":
            return [None] * len(first.operands)
        if first.name in RESHAPES:
            return _axes_of_reshape(makers, axis)
        return _axes_of_generic(first, axis)


def _are_alike(makers: Sequence[Any]) -> bool:
    """Whether operations with the same name compute the same function of their operands, except for
    sizes."""
    first, *others = makers
    if first.name in RESHAPES:
        return all(ops.groups_of(one) == ops.groups_of(first) for one in others)
    if first.name == "linalg.generic":
        key = body_key(first)
        return key is not None and all(body_key(one) == key for one in others)
    return bool(first.name == "tensor.empty")


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [*shape[:axis], *shape[axis + 1 :]]


def _is_small(value: Any) -> bool:
    """Whether a constant of this tensor may be duplicated. (No constants of i1 are created.)"""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return False
    size = dense_bytes(type_)
    return size is not None and size <= SMALL and not _is_i1(type_)


def _is_i1(type_: Any) -> bool:
    return bool(type_.element_type == ops.integer(1))


def _is_used_once(value: Any) -> bool:
    return len(list(value.uses)) == 1


def _is_free(operation: Any) -> bool:
    """Whether duplicating the operation costs nothing: a small constant, an empty tensor, or a
    fill."""
    if operation is None:
        return False
    if operation.name == "arith.constant":
        return _is_small(operation.results[0])
    inputs = [one for one in operation.operands if isinstance(one.type, ir.RankedTensorType)]
    return operation.name == "tensor.empty" or (
        operation.name == "linalg.generic"
        and len(ops.content(operation)) == 1
        and all(_is_empty(one) for one in inputs)
    )


def _is_empty(value: Any) -> bool:
    owner = ops.defining(value)
    return owner is not None and owner.name == "tensor.empty"


def _axes_of_reshape(makers: list[Any], axis: int) -> list[int | None] | None:
    """The operands' axes for a reshape. A reshape keeps an index along a dimension intact only if
    all previous dimensions of its group have size 1."""
    first = makers[0]
    groups = ops.groups_of(first)
    # The dynamic size operands of an `expand_shape` must be the same for all.
    others: list[int | None] = [None] * (len(first.operands) - 1)
    wide = [
        one.operands[0] if one.name == "tensor.collapse_shape" else one.results[0] for one in makers
    ]
    if first.name == "tensor.expand_shape":
        for number, group in enumerate(groups):
            leading = group[: group.index(axis)] if axis in group else []
            if axis in group and all(one.type.shape[i] == 1 for one in wide for i in leading):
                return [number, *others]
        return None
    turning = [i for i in groups[axis] if any(one.type.shape[i] != 1 for one in wide)]
    return [turning[0] if turning else groups[axis][0], *others]


def _axes_of_generic(generic: Any, axis: int) -> list[int | None] | None:
    maps = maps_of(generic)
    expression = maps[-1].results[axis]
    if not isinstance(expression, ir.AffineDimExpr):
        return None
    loop = expression.position
    body = ops.content(generic)
    if loop in reduction_loops(generic) or any(
        op.name == "linalg.index" and ir.IntegerAttr(op.attributes["dim"]).value == loop
        for op in body
    ):
        return None
    axes: list[int | None] = []
    for map_ in maps:
        places = [i for i, one in enumerate(map_.results) if loop in loops_in(one)]
        if len(places) > 1 or any(
            not isinstance(map_.results[i], ir.AffineDimExpr) for i in places
        ):
            return None
        axes.append(places[0] if places else None)
    return axes


def body_key(generic: Any) -> Hashable | None:
    """A key that is equal for two `linalg.generic` that compute the same function of each element;
    None for a body with nested regions. A value from outside is represented by itself, or by its
    constant."""
    body = ops.content(generic)
    if any(op.regions for op in body):
        return None
    arguments = list(generic.regions[0].blocks[0].arguments)
    names: dict[Any, Hashable] = {argument: number for number, argument in enumerate(arguments)}
    operations = []
    for operation in body:
        given = [names.get(value, _outside(value)) for value in operation.operands]
        types = [str(result.type) for result in operation.results]
        operations.append((operation.name, _attributes(operation), *given, *types))
        for number, result in enumerate(operation.results):
            names[result] = (len(operations), number)
    elements = [str(argument.type) for argument in arguments]
    return (_attributes(generic), *elements, *operations)


def _attributes(operation: Any) -> str:
    kept = {k: v for k, v in ops.attributes_of(operation).items() if k != NAME_ATTRIBUTE}
    return ", ".join(f"{name} = {kept[name]}" for name in sorted(kept))


def _outside(value: Any) -> Hashable:
    # The bindings have no class for the attributes of some tensor constants.
    constant = None if isinstance(value.type, ir.ShapedType) else ops.known_constant(value)
    found: Hashable = value if constant is None else str(constant)
    return found
