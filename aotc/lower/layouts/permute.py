"""Permutes the dimensions of buffers, and rewrites their uses.

`last` is the set of dimensions that become the last ones; within both groups, the order does not
change. A view has the dimensions last that correspond to the buffer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import maps_of, set_maps
from aotc.builder.numbers import Value
from aotc.mlir import ir
from aotc.slices import create_slice, mixed_lists, static_lists, static_numbers

Dimensions = frozenset[int]

EXPAND, COLLAPSE, SUBVIEW = "memref.expand_shape", "memref.collapse_shape", "memref.subview"
VIEWS = (EXPAND, COLLAPSE, SUBVIEW)
_DEALLOC, _DIM = "memref.dealloc", "memref.dim"
# Element access → the operand number of its buffer.
ACCESSES = {"memref.load": 0, "memref.store": 1}
_MEMOIZED = "linalg.memoized_indexing_maps"
# A dynamic stride or offset.
_UNKNOWN = ir.ShapedType.get_dynamic_stride_or_offset()


def order_of(rank: int, last: Dimensions) -> list[int]:
    """The dimensions in their new order."""
    return [i for i in range(rank) if i not in last] + sorted(last)


def is_same(rank: int, last: Dimensions) -> bool:
    """Whether the order with these dimensions last is the present order."""
    return order_of(rank, last) == list(range(rank))


def last_of_view(view: Any, last: Dimensions) -> Dimensions | None:
    """The view's dimensions that are last if `last` are those of its source; None if the view would
    not be possible."""
    if view.name == EXPAND:
        return frozenset(one for i in last for one in ops.groups_of(view)[i])
    if view.name == COLLAPSE:
        found = set()
        for number, group in enumerate(ops.groups_of(view)):
            if last.issuperset(group):
                found.add(number)
            elif not last.isdisjoint(group):
                return None
        return frozenset(found)
    kept = _kept_dimensions(view)
    return None if kept is None else frozenset(kept.index(one) for one in last if one in kept)


def last_of_source(view: Any, last: Dimensions) -> Dimensions:
    """The source's dimensions that correspond to the view's dimensions `last`."""
    if view.name == EXPAND:
        groups = ops.groups_of(view)
        return frozenset(i for i, group in enumerate(groups) if not last.isdisjoint(group))
    if view.name == COLLAPSE:
        groups = ops.groups_of(view)
        return frozenset(one for i in last for one in groups[i])
    kept = _kept_dimensions(view)
    return frozenset(kept[one] for one in last) if kept is not None else frozenset()


def _kept_dimensions(view: Any) -> list[int] | None:
    """The dimensions of its source that a subview has, in order; the others are of size 1. None if
    the strides of its type do not say which."""
    _, sizes, steps = static_lists(view)
    source, sliced = (ir.MemRefType(one.type) for one in (view.operands[0], view.results[0]))
    if source.rank == sliced.rank:
        return list(range(source.rank))
    strides, _ = source.get_strides_and_offset()
    left = list(zip(sliced.shape, sliced.get_strides_and_offset()[0], strict=True))
    kept = []
    for i, (size, step, stride) in enumerate(zip(sizes, steps, strides, strict=True)):
        if left and left[0] == (size, _times(step, stride)):
            kept.append(i)
            del left[0]
    return None if left else kept


def can_follow(value: Value, last: Dimensions) -> bool:
    """Whether all uses of a buffer and of its views support the permutation."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            inner = last_of_view(user, last)
            if inner is None or not can_follow(user.results[0], inner):
                return False
        elif user.name == _DIM:
            if ops.known_dimension(user) is None:
                return False
        elif user.name in ACCESSES:
            if use.operand_number != ACCESSES[user.name]:
                return False
        elif user.name == "linalg.generic":
            if len(user.results):
                return False
        elif user.name != _DEALLOC:
            return False
    return True


def reorder_allocation(alloc: Any, last: Dimensions) -> None:
    """Permutes an allocation and its uses, which must support it."""
    type_ = ir.MemRefType(alloc.results[0].type)
    order = order_of(type_.rank, last)
    sizes, _ = ops.operand_groups(alloc)
    attributes = ops.attributes_of(alloc)
    with alloc.location, ir.InsertionPoint(alloc):
        moved = _permute_sizes(sizes, type_, order)
        made = ops.create("memref.alloc", moved, [_permuted(type_, order)], attributes).result
    _follow(alloc.results[0], made, last)
    ops.erase(alloc)


def reorder_constant(get: Any, symbol: str, last: Dimensions) -> None:
    """Replaces a `memref.get_global` by one of the reordered variable `symbol`."""
    (value,) = get.results
    with get.location, ir.InsertionPoint(get):
        type_ = _permuted(ir.MemRefType(value.type), order_of(value.type.rank, last))
        attributes = {"name": ir.FlatSymbolRefAttr.get(symbol)}
        made = ops.create("memref.get_global", [], [type_], attributes).result
    _follow(value, made, last)
    ops.erase(get)


def _permuted(type_: Any, order: Sequence[int]) -> Any:
    return ir.MemRefType.get([type_.shape[i] for i in order], type_.element_type)


def _permute_sizes(values: Sequence[Any], type_: Any, order: Sequence[int]) -> list[Any]:
    """The dynamic sizes in the new order."""
    unknown = [i for i in range(type_.rank) if type_.is_dynamic_dim(i)]
    of_dimension = dict(zip(unknown, values, strict=True))
    return [of_dimension[i] for i in order if i in of_dimension]


def _follow(old: Value, new: Value, last: Dimensions) -> None:
    order = order_of(old.type.rank, last)
    for use in list(old.uses):
        user, number = use.owner.operation, use.operand_number
        if user.name in VIEWS:
            inner = last_of_view(user, last)
            assert inner is not None
            _follow(user.results[0], _view(user, new, order, inner), inner)
            ops.erase(user)
        elif user.name == "linalg.generic":
            _reorder_map(user, number, order)
            user.operands[number] = new
        elif user.name == _DIM:
            dimension = ops.known_dimension(user)
            assert dimension is not None
            with user.location, ir.InsertionPoint(user):
                user.operands[1] = ops.constant_index(order.index(dimension))
            user.operands[0] = new
        elif user.name in ACCESSES:
            first = ACCESSES[user.name] + 1
            indices = list(user.operands)[first:]
            user.operands[number] = new
            for place, dimension in enumerate(order):
                user.operands[first + place] = indices[dimension]
        else:
            user.operands[number] = new


def _reorder_map(generic: Any, number: int, order: Sequence[int]) -> None:
    maps = maps_of(generic)
    results = list(maps[number].results)
    maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, [results[i] for i in order])
    set_maps(generic, maps)
    if _MEMOIZED in generic.attributes:
        del generic.attributes[_MEMOIZED]


def _view(view: Any, source: Value, order: Sequence[int], last: Dimensions) -> Value:
    """Recreates the view of a permuted buffer."""
    type_ = ir.MemRefType(view.results[0].type)
    own = order_of(type_.rank, last)
    with view.location, ir.InsertionPoint(view):
        if view.name == SUBVIEW:
            return _subview(view, source, order)
        attributes = ops.attributes_of(view)
        groups = ops.groups_of(view)
        if view.name == EXPAND:
            groups = [[own.index(one) for one in groups[i]] for i in order]
            static = list(ir.DenseI64ArrayAttr(attributes["static_output_shape"]))
            attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get([static[i] for i in own])
            sizes = _permute_sizes(list(view.operands)[1:], type_, own)
        else:
            groups = [[order.index(one) for one in groups[i]] for i in own]
            sizes = []
        made = _reshaped_type(source.type, [type_.shape[i] for i in own], groups)
        attributes["reassociation"] = ops.reassociation(groups)
        return ops.create(view.name, [source, *sizes], [made], attributes).result


def _subview(view: Any, source: Value, order: Sequence[int]) -> Value:
    """Recreates a subview. The buffer is contiguous."""
    dimensions = _kept_dimensions(view)
    assert dimensions is not None
    kept = [place for place, i in enumerate(order) if i in dimensions]
    lists = [[mixed[i] for i in order] for mixed in mixed_lists(view)]
    statics = list(map(static_numbers, lists))
    type_ = _sliced_type(ir.MemRefType(source.type), kept, statics)
    return create_slice(SUBVIEW, [source], type_, *lists)


def _sliced_type(source: Any, kept: Sequence[int], statics: list[list[int]]) -> Any:
    """The type of a slice with the dimensions `kept`, as inferred by `memref.subview`."""
    offsets, sizes, steps = statics
    strides, begin = source.get_strides_and_offset()
    for offset, stride in zip(offsets, strides, strict=True):
        product = 0 if offset == 0 else _times(offset, stride)
        begin = _UNKNOWN if _UNKNOWN in (begin, product) else begin + product
    sliced = [_times(steps[i], strides[i]) for i in kept]
    layout = ir.StridedLayoutAttr.get(begin, sliced)
    return ir.MemRefType.get([sizes[i] for i in kept], source.element_type, layout)


def _reshaped_type(source: Any, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> Any:
    """The type of an expanded or collapsed view, as inferred by these operations. A slice has
    strides, from which the strides of each group follow."""
    if source.affine_map == ir.AffineMap.get_identity(source.rank):
        return ir.MemRefType.get(shape, source.element_type)
    strides, begin = source.get_strides_and_offset()
    found = [0] * len(shape)
    for number, group in enumerate(groups):
        if len(shape) < source.rank:
            # The stride of the last dimension whose size is not 1. For a dynamic size this is
            # unknown.
            last = max((i for i in group if source.shape[i] != 1), default=group[0])
            is_known = last == group[0] or not source.is_dynamic_dim(last)
            found[number] = strides[last] if is_known else _UNKNOWN
            continue
        stride = strides[number]
        for i in reversed(group):
            found[i] = stride
            stride = _times(stride, shape[i])
    layout = ir.StridedLayoutAttr.get(begin, found)
    return ir.MemRefType.get(shape, source.element_type, layout)


def _times(one: int, other: int) -> int:
    """The product of sizes, strides or offsets; unknown if one of them is."""
    return _UNKNOWN if _UNKNOWN in (one, other) else one * other
