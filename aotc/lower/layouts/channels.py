"""Chooses channels-last layouts for temporaries of convolutions of 16-bit floats.

GPU kernels copy 16 bytes at once if the channels of a pixel are contiguous, and likewise those of
filters. A 1x1 convolution is a matmul then, for TMA and wgmma. In the channels-first layout of
PyTorch and ONNX, they would load single elements.

No image is copied for this: the producer of a temporary writes it in its new layout. So the
module's arguments and results keep their layout, and the first and last operation convert between
the two. Filters are constants, which are reordered at build time. Buffers between two convolutions
follow, as far as all of their uses are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import loops_in, maps_of, reduction_loops
from aotc.attributes import WEIGHT_ATTRIBUTE
from aotc.builder.numbers import Value
from aotc.input.entries import functions_of
from aotc.kernels.launches import PARALLEL, functions_called_in_parallel
from aotc.kernels.matmul.recognition import multiplies
from aotc.lower.layouts import permute
from aotc.lower.layouts.permute import Dimensions
from aotc.mlir import ir
from aotc.ops import symbol_of

# The number of 16-bit elements in a copy of 16 bytes, and in one of 8, which groups of few channels
# have.
_COPY_ELEMENTS, _LEAST_COPY_ELEMENTS = 8, 4
_NONE: Dimensions = frozenset()


def order_channels(module: Any, elements: Sequence[str]) -> list[Any]:
    """Changes `module`, whose linalg operations are `linalg.generic` on buffers, in place, for
    convolutions of the 16-bit types `elements`.

    Returns the locations of the convolutions that are channels-last now.
    """
    with module.context:
        inside = functions_called_in_parallel(module)
        plan = _Plan(module, ops.globals_of(module), elements)
        for function in functions_of(module):
            if symbol_of(function) not in inside:
                plan.add(function)
        plan.carry_out()
        return [convolution.generic.location for convolution in plan.taken]


class _Access(Struct, frozen=True):
    """A buffer that a `linalg.generic` reads or writes, and the loop that indexes each of its
    dimensions; None for a dimension with another index."""

    value: Any
    loops: tuple[int | None, ...]

    def along(self, loops: Sequence[int] | set[int]) -> Dimensions:
        return frozenset(i for i, loop in enumerate(self.loops) if loop in loops)

    def of(self, dimensions: Dimensions) -> set[int]:
        return {loop for i in dimensions if (loop := self.loops[i]) is not None}


class _Loops(Struct, frozen=True):
    """The loops along the last dimensions of a buffer, and along its other dimensions."""

    of_last: set[int]
    of_others: set[int]


class _Convolution(Struct, frozen=True, eq=False):
    """A multiply-accumulate of an image and a constant filter.

    `channels`: the loops along the filter that index dimensions of the image or result directly.
    `reduced`: those of them that are reduced. `has_window`: whether the image is indexed by sums of
    loops.
    """

    generic: Any
    image: _Access
    filter: _Access
    result: _Access
    channels: set[int]
    reduced: set[int]
    has_window: bool

    @property
    def of_filter(self) -> Dimensions:
        """The dimensions of the filter that become last. A filter without a window is a matrix, and
        is not reordered."""
        return self.filter.along(self.reduced) if self.has_window else _NONE

    @property
    def of_image(self) -> Dimensions:
        return self.image.along(self.channels)

    @property
    def has_small_groups(self) -> bool:
        """Whether channels are reduced within groups that are no copies of 8 bytes."""
        is_grouped = bool(self.channels.intersection(self.image.loops, self.result.loops))
        if not self.reduced or not is_grouped:
            return False
        shape = ir.MemRefType(self.image.value.type).shape
        sizes = [shape[i] for i in self.image.along(self.reduced)]
        return any(size < 0 for size in sizes) or math.prod(sizes) % _LEAST_COPY_ELEMENTS != 0


class _Plan:
    """The dimensions that become last, for each allocation and each constant."""

    def __init__(self, module: Any, variables: dict[str, Any], elements: Sequence[str]) -> None:
        self._variables, self._elements = variables, elements
        self._accesses: dict[Any, list[_Access]] = {}
        self._convolutions: dict[Any, _Convolution] = {}
        # Buffers of other contractions, which need the present layout.
        self._kept: set[Any] = set()
        self._last: dict[Any, Dimensions] = {}
        # Constant name → its last dimensions, for constants that are not filters of these
        # convolutions.
        self._constants: dict[str, Dimensions] = {}
        self._gets: dict[str, list[Any]] = {}
        for get in ops.find(module.operation, "memref.get_global"):
            self._gets.setdefault(ops.global_of(get), []).append(get)
        self.taken: list[_Convolution] = []

    def add(self, function: Any) -> None:
        generics = [
            generic
            for generic in ops.find(function, "linalg.generic")
            if not len(generic.results) and ops.enclosing(generic, *PARALLEL) is None
        ]
        for generic in generics:
            self._accesses[generic] = list(_accesses(generic))
        for generic in generics:
            self._look_at_product(generic)
        here = set(generics)
        for convolution in list(self._convolutions.values()):
            if convolution.generic in here and convolution.has_window and convolution.reduced:
                self._start_at(convolution)
        products = [one.generic for one in self._convolutions.values() if one.reduced]
        has_products = any(generic in here for generic in products)
        for generic in generics:
            self._look_at_depthwise(generic, has_products=has_products)
        self.taken += [
            one
            for one in self._convolutions.values()
            if one.generic in here
            and one.has_window
            and one.reduced
            and self._has_last_channels(one)
        ]

    def carry_out(self) -> None:
        if not self._last and not self.taken:
            return
        # NumPy takes longer to import than a small module takes to build.
        from aotc.lower.layouts.constants import add_reordered

        names = set(self._variables)
        for symbol, last in (self._constants | self._filters()).items():
            made = add_reordered(self._variables[symbol], last, names)
            for get in self._gets[symbol]:
                permute.reorder_constant(get, made, last)
            # It has no uses left, and is private, so that no other module reads it.
            ops.erase(self._variables[symbol])
        for value, last in self._last.items():
            permute.reorder_allocation(ops.defining(value), last)

    def _filters(self) -> dict[str, Dimensions]:
        """Name → last dimensions, for the filters that get another layout."""
        found: dict[str, Dimensions] = {}
        for convolution in self.taken:
            value, last = convolution.filter.value, convolution.of_filter
            symbol, known = self._symbol(value), self._known_order(value, last)
            if symbol is not None and known is not None:
                found.setdefault(symbol, known)
        return {
            symbol: last
            for symbol, last in found.items()
            if not permute.is_same(self._type_of(symbol).rank, last)
        }

    def _type_of(self, symbol: str) -> Any:
        return ir.MemRefType(ir.TypeAttr(self._variables[symbol].attributes["type"]).value)

    # --- Recognition of convolutions -----------------------------------------------------------

    def _look_at_product(self, generic: Any) -> None:
        inputs, outputs = ops.operand_groups(generic)
        if len(inputs) != 2 or len(outputs) != 1 or not multiplies(generic):
            return
        convolution = self._convolution(generic)
        if convolution is not None:
            self._convolutions[generic] = convolution
            return
        for value in (*inputs, *outputs):
            if isinstance(value.type, ir.MemRefType):
                self._kept.add(_root(value))

    def _convolution(self, generic: Any) -> _Convolution | None:
        accesses = self._accesses[generic]
        if len(accesses) != 3 or any(
            str(one.value.type.element_type) not in self._elements for one in accesses[:2]
        ):
            return None
        *factors, result = accesses
        constants = [self._symbol(one.value) is not None for one in factors]
        if constants not in ([True, False], [False, True]):
            return None
        filter_, image = factors if constants[0] else reversed(factors)
        if None in filter_.loops or None in result.loops:
            return None
        window = _added_loops(maps_of(generic)[factors.index(image)])
        channels = filter_.of(frozenset(range(len(filter_.loops)))) - window
        reduced = channels.intersection(reduction_loops(generic)) & set(image.loops)
        found = _Convolution(generic, image, filter_, result, channels, reduced, bool(window))
        return found if not found.has_small_groups and self._can_order(found) else None

    def _look_at_depthwise(self, generic: Any, *, has_products: bool) -> None:
        """Starts the propagation at a depthwise convolution, which has kernels for both layouts, if
        most of its neighbours have the channels last: it is between layers of rows of channels.
        `has_products`: the function multiplies channels, too. A depthwise convolution is mostly
        between such products, which are faster with the channels last."""
        _, outputs = ops.operand_groups(generic)
        accesses = self._accesses[generic]
        results = [one for one in accesses if one.value in outputs]
        filters = [one for one in accesses if self._symbol(one.value) is not None]
        images = [one for one in accesses if one not in (*results, *filters)]
        if not reduction_loops(generic) or not len(results) == len(filters) == len(images) == 1:
            return
        [result], [filter_], [image] = results, filters, images
        elements = {str(one.value.type.element_type) for one in (image, filter_)}
        channels = {
            one
            for one in filter_.loops
            if one is not None and one in image.loops and one in result.loops
        }
        if not elements.issubset(self._elements) or len(channels) != 1:
            return
        marks = [(one.value, one.along(channels)) for one in (image, result)]
        roots = {_root(value) for value, _ in marks}
        votes = [vote for value, last in marks for vote in self._votes(value, last, roots)]
        size = ir.MemRefType(image.value.type).shape[image.loops.index(*channels)]
        has_copies = size > 0 and size % _LEAST_COPY_ELEMENTS == 0
        if votes.count(True) > votes.count(False) or (
            votes and has_copies and has_products and all(map(_is_allocated, roots))
        ):
            self._propagate(marks)

    def _votes(self, value: Value, last: Dimensions, roots: set[Any]) -> Iterator[bool]:
        """For each buffer but `roots` that is accessed with the buffer `value`: whether it is
        contiguous along the dimensions `last` of `value`, and not along others. There are none if a
        view does not permit these dimensions to be last."""
        root, known = _root(value), self._known_order(value, last)
        if known is None or not permute.can_follow(root, known):
            return
        for user, seen in _uses(root, known):
            for access in self._accesses.get(user, ()):
                if _root(access.value) not in roots and len(access.loops) > 1:
                    loop = access.loops[-1]
                    if loop in seen.of_last or loop in seen.of_others:
                        yield loop in seen.of_last

    def _can_order(self, convolution: _Convolution) -> bool:
        """Whether the filter can have the layout that matches the image."""
        last, filter_ = convolution.of_filter, convolution.filter
        if permute.is_same(len(filter_.loops), last):
            return True
        symbol, known = self._symbol(filter_.value), self._known_order(filter_.value, last)
        assert symbol is not None
        return known is not None and self._can_reorder(symbol, known)

    def _can_reorder(self, symbol: str, last: Dimensions) -> bool:
        """Whether a constant can have these dimensions last in all of its uses."""
        attributes = self._variables[symbol].attributes
        is_own = ir.StringAttr(attributes["sym_visibility"]).value == "private"
        return (
            is_own
            and WEIGHT_ATTRIBUTE not in attributes
            and all(permute.can_follow(get.results[0], last) for get in self._gets[symbol])
        )

    def _symbol(self, value: Value) -> str | None:
        """The name of the constant that the value is, or is a view of; None if it is not."""
        get = ops.defining(_root(value))
        if get is None or get.name != "memref.get_global":
            return None
        symbol = ops.global_of(get)
        attributes = self._variables[symbol].attributes
        return symbol if "constant" in attributes and "initial_value" in attributes else None

    # --- Propagation of the layout -------------------------------------------------------------

    def _start_at(self, convolution: _Convolution) -> None:
        """Starts the propagation at a convolution. If its image cannot be channels-last, such as
        one with three colours, the convolution gains nothing, and is skipped."""
        self._propagate([(convolution.image.value, convolution.of_image)])
        if self._has_last_channels(convolution):
            last = convolution.result.along(convolution.channels)
            self._propagate([(convolution.result.value, last)])

    def _has_last_channels(self, convolution: _Convolution) -> bool:
        """Whether the image becomes channels-last, or is so, as rows of channels are that are read
        as an image, and the filter is not."""
        image, filter_, last = convolution.image, convolution.filter, convolution.of_image
        if _root(image.value) in self._last:
            return True
        sizes = [ir.MemRefType(image.value.type).shape[i] for i in last]
        return (
            permute.is_same(len(image.loops), last)
            and filter_.loops[-1] not in convolution.channels
            and min(sizes, default=0) > 0
            and math.prod(sizes) % _COPY_ELEMENTS == 0
        )

    def _propagate(self, marks: list[tuple[Any, Dimensions]]) -> None:
        """Marks buffers, and the other operands of their users along the same loops."""
        while marks:
            value, last = marks.pop()
            root = self._mark(value, last)
            if root is None:
                continue
            for generic, seen in _uses(root, self._last[root]):
                marks += self._operands_along(generic, seen)

    def _mark(self, value: Value, last: Dimensions) -> Any | None:
        """Marks the allocation of which `value` is a view. Returns it if it is newly marked;
        otherwise None."""
        root = _root(value)
        known = self._known_order(value, last)
        if root in self._last or root in self._kept or known is None:
            return None
        if (symbol := self._symbol(root)) is not None:
            self._mark_constant(symbol, known)
            return None
        type_ = ir.MemRefType(root.type)
        owner = ops.defining(root)
        sizes = [type_.shape[i] for i in known]
        if (
            owner is None
            or owner.name != "memref.alloc"
            or type_.memory_space is not None
            or type_.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
            or permute.is_same(type_.rank, known)
            or any(type_.is_dynamic_dim(i) for i in known)
            or math.prod(sizes) % _COPY_ELEMENTS
            or not permute.can_follow(root, known)
            or self._is_reduced_across(root, known)
        ):
            return None
        self._last[root] = known
        return root

    def _mark_constant(self, symbol: str, last: Dimensions) -> None:
        """Marks a constant that is read with an image, such as the filter of a depthwise
        convolution."""
        rank = self._type_of(symbol).rank
        if not permute.is_same(rank, last) and self._can_reorder(symbol, last):
            self._constants.setdefault(symbol, last)

    def _is_reduced_across(self, root: Value, last: Dimensions) -> bool:
        """Whether an operation reduces some channels of all pixels, as a group norm does: in the
        channels-last layout, only the channels of one pixel would be contiguous."""
        return any(
            generic not in self._convolutions
            and not seen.of_last.isdisjoint(reduced := set(reduction_loops(generic)))
            and not seen.of_others.isdisjoint(reduced)
            for generic, seen in _uses(root, last)
        )

    def _operands_along(self, generic: Any, seen: _Loops) -> Iterator[tuple[Any, Dimensions]]:
        convolution = self._convolutions.get(generic)
        if convolution is None or not convolution.reduced:
            loops = seen.of_last - set(reduction_loops(generic))
            for access in self._accesses.get(generic, ()):
                yield access.value, access.along(loops)
        else:
            yield convolution.image.value, convolution.of_image
            yield convolution.result.value, convolution.result.along(convolution.channels)

    def _known_order(self, value: Value, last: Dimensions) -> Dimensions | None:
        """The last dimensions of the root for these last dimensions of a view; None if there are
        none."""
        for view in _views(value):
            last = permute.last_of_source(view, last)
        return last or None


def _views(value: Value) -> Iterator[Any]:
    """Yields the operations that created this view of a buffer, the last one first."""
    while (owner := ops.defining(value)) is not None and owner.name in permute.VIEWS:
        yield owner
        value = owner.operands[0]


def _is_allocated(root: Any) -> bool:
    owner = ops.defining(root)
    return owner is not None and owner.name == "memref.alloc"


def _root(value: Value) -> Any:
    for view in _views(value):
        value = view.operands[0]
    return value


def _uses(value: Value, last: Dimensions) -> Iterator[tuple[Any, _Loops]]:
    """Yields the operations that use a buffer or its views, with the loops along its dimensions."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in permute.VIEWS:
            inner = permute.last_of_view(user, last)
            assert inner is not None
            yield from _uses(user.results[0], inner)
            continue
        generic = user if user.name == "linalg.generic" else ops.enclosing(user, "linalg.generic")
        if generic is None or user.name not in ("linalg.generic", *permute.ACCESSES):
            continue
        access = _Access(value, _loops_of(generic, user, use.operand_number))
        others = frozenset(range(len(access.loops))) - last
        yield generic, _Loops(access.of(last), access.of(others))


def _accesses(generic: Any) -> Iterator[_Access]:
    """Yields the buffer operands of the operation, and the buffers that its body accesses."""
    for number, value in enumerate(generic.operands):
        if isinstance(value.type, ir.MemRefType):
            yield _Access(value, _loops_of(generic, generic, number))
    for access in ops.find(generic, *permute.ACCESSES):
        number = permute.ACCESSES[access.name]
        yield _Access(access.operands[number], _loops_of(generic, access, number))


def _loops_of(generic: Any, user: Any, number: int) -> tuple[int | None, ...]:
    if user.name == "linalg.generic":
        return tuple(
            ir.AffineDimExpr(one).position if isinstance(one, ir.AffineDimExpr) else None
            for one in maps_of(user)[number].results
        )
    return tuple(_index_of(value, generic) for value in list(user.operands)[number + 1 :])


def _index_of(value: Value, generic: Any) -> int | None:
    """The loop of `generic` whose index the value is; None for other values."""
    owner = ops.defining(value)
    if owner is None or owner.name != "linalg.index":
        return None
    if ops.enclosing(owner, "linalg.generic") != generic:
        return None
    return int(ir.IntegerAttr(owner.attributes["dim"]).value)


def _added_loops(map_: Any) -> set[int]:
    """The loops that a map uses in computed expressions."""
    return set().union(
        *(loops_in(one) for one in map_.results if not isinstance(one, ir.AffineDimExpr))
    )
