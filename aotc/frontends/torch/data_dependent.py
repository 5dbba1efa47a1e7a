"""Decompositions of PyTorch's operators whose result sizes depend on values.

All of them use one operator of aotc's own, `repeat_interleave`, and PyTorch's other operators.
torch-mlir treats it as opaque: its result is a tensor of unknown size.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from aotc.errors import InputError
from aotc.frontends.torch.operators import define_operators
from aotc.frontends.torch.places import place_of_tracing

Tensor = Any

# The most columns by which rows can be sorted. Each column needs one sort.
_WIDEST = 16
# The largest sum of counts. A larger one is close to the overflow of 64-bit integers.
_LARGEST_SUM = 2.0**62


def data_dependent_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.nonzero.default: _nonzero,
        aten.nonzero_static.default: _nonzero_static,
        aten.nonzero_numpy.default: _nonzero_as_tuple,
        aten.where.default: _nonzero_as_tuple,
        aten.argwhere.default: _nonzero,
        aten.masked_select.default: _masked_select,
        aten.masked_scatter.default: _masked_scatter,
        aten.index_put.default: _index_put,
        aten.repeat_interleave.Tensor: _repeat_interleave,
        aten.repeat_interleave.self_Tensor: _repeat_interleave_of_tensor,
        aten._unique2.default: _unique2,
        aten._unique.default: _unique,
        aten.unique_consecutive.default: _unique_consecutive,
        aten.unique_dim.default: _unique_dim,
        aten.unique_dim_consecutive.default: _unique_dim_consecutive,
        aten.bincount.default: _bincount,
    }


# --- Positions ------------------------------------------------------------------------------------


def _repeated(counts: Tensor, size: Any = None, known_size: int | None = None) -> Tensor:
    """Each index i of a 1-D tensor of counts, repeated `counts[i]` times, in order. `size` is the
    sum of the counts, of rank 0; if `known_size` is given, it must be equal to that."""
    size = counts.sum() if size is None else size
    return _operators().repeat_interleave.default(counts.cumsum(0), size, known_size)


def positions(mask: Tensor) -> Tensor:
    """The indices of the true elements of a 1-D mask, in order."""
    import torch

    return _repeated(mask.to(torch.int64))


def coordinates(mask: Tensor) -> list[Tensor]:
    """The coordinates of the true elements of a mask: one 1-D tensor for each dimension."""
    return _parted(positions(mask.reshape(-1)), mask.shape)


def _parted(places: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """Splits linear indices into a tensor of this shape into coordinates, one tensor for each
    dimension."""
    found = []
    for size in reversed(shape[1:]):
        row = places // size
        found.append(places - row * size)
        places = row
    return [places, *found[::-1]]


def _is_true(x: Tensor) -> Tensor:
    import torch

    return x if x.dtype == torch.bool else x != 0


def _nonzero(x: Tensor) -> Tensor:
    import torch

    if x.dim() == 0:
        return positions(_is_true(x).reshape(1)).reshape(-1, 1)[:, :0]
    return torch.stack(coordinates(_is_true(x)), 1)


def _nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The coordinates of the first `size` nonzero elements. Zeros and further elements are
    scattered to an additional last place, which is cut off."""
    import torch

    mask = _is_true(x).reshape(-1)
    ends = mask.to(torch.int64).cumsum(0)
    to = torch.where(mask & (ends <= size), ends - 1, size)
    numbers = torch.arange(mask.shape[0])
    places = torch.zeros(size + 1, dtype=torch.int64).scatter(0, to, numbers)[:size]
    columns = _parted(places, x.shape)[: x.dim()]
    is_there = (torch.arange(size) < mask.sum()).unsqueeze(1)
    found = torch.stack(columns, 1) if columns else places.reshape(-1, 1)[:, :0]
    return torch.where(is_there, found, fill_value)


def _nonzero_as_tuple(x: Tensor) -> list[Tensor]:
    return coordinates(_is_true(x if x.dim() else x.reshape(1)))


def _masked_select(x: Tensor, mask: Tensor) -> Tensor:
    import torch

    broadcast: Any = torch.broadcast_tensors
    x, mask = broadcast(x, mask)
    return x.reshape(-1).index_select(0, positions(mask.reshape(-1)))


def index_by_masks(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`x[indices]`, where some indices are masks."""
    import torch

    indices = _with_masks_of_bool(indices)
    first, mask = _only_mask(indices)
    if mask is not None:
        row = _put_together(x, first, mask.dim())
        return row.index_select(first, positions(mask.reshape(-1)))
    return torch.ops.aten.index.Tensor(x, _places_of_masks(indices))


def _is_empty(x: Tensor) -> bool:
    """Whether a tensor is known to have no elements. torch-mlir treats an empty index tensor as if
    it had one element."""
    return any(isinstance(size, int) and size == 0 for size in x.shape)


def _index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`x[indices] = values`, where some indices are masks."""
    import torch

    if any(index is not None and _is_empty(index) for index in indices):
        return x.clone()
    if accumulate and x.dtype == torch.bool:
        # The sum of booleans is true if one of them is.
        counts = torch.ops.aten.index_put.default(x.int(), indices, values.int(), accumulate=True)
        return counts != 0
    if not any(map(is_mask, indices)):
        return _put_at_unknown(x, indices, values, accumulate)
    indices = _with_masks_of_bool(indices)
    first, mask = _only_mask(indices)
    if mask is None:
        places = _places_of_masks(indices)
        return torch.ops.aten.index_put.default(x, places, values, accumulate)
    # In the values, one dimension of selected elements replaces the mask's dimensions.
    rank = x.dim() - mask.dim() + 1
    values = values.reshape(*[1] * (rank - values.dim()), *values.shape)
    count = values.shape[first]
    if isinstance(count, int) and count == 1:
        before, behind = values.shape[:first], values.shape[first + 1 :]
        mask = mask.reshape(*mask.shape, *[1] * len(behind))
        values = values.reshape(*before, *[1] * (x.dim() - rank + 1), *behind)
        return torch.where(mask, x + values if accumulate else values, x)
    row = _put_together(x, first, mask.dim()).movedim(first, 0)
    values = values.movedim(first, 0).expand(count, *row.shape[1:])
    into = torch.zeros_like(row) if accumulate else row
    found = _scattered(into, mask.reshape(-1), values, is_exact=True)
    return (row + found if accumulate else found).movedim(0, first).reshape(x.shape)


def _put_at_unknown(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> Tensor:
    """`x[..., index] = values` for 1-D indices of adjacent dimensions whose length is not known.
    torch-mlir assumes that the length is at least one, and transposes `x` if these are not its
    first dimensions."""
    first = next(place for place, index in enumerate(indices) if index is not None)
    given = list(indices[first:])
    while given[-1] is None:
        given.pop()
    if not all(
        index is not None and index.dim() == 1 and not isinstance(index.shape[0], int)
        for index in given
    ):
        return NotImplemented
    behind = first + len(given)
    index, whole = one_index(given, x.shape[first:behind])
    rows = x.reshape(*x.shape[:first], whole, *x.shape[behind:])
    values = values.expand(*x.shape[:first], index.shape[0], *x.shape[behind:])
    put = rows.index_add if accumulate else rows.index_copy
    return put(first, index, values).reshape(x.shape)


def one_index(indices: Sequence[Tensor | None], sizes: Sequence[Any]) -> tuple[Tensor, Any]:
    """Linearizes indices of adjacent dimensions of these sizes. Returns the linear index and the
    size of the collapsed dimension. An index that is out of bounds stays out of bounds."""
    import torch

    together: Any = 0
    is_inside: Any = True
    whole: Any = 1
    for index, size in zip(indices, sizes, strict=True):
        assert index is not None
        index = index.to(torch.int64)
        index = torch.where(index < 0, index + size, index)
        is_inside = (index >= 0) & (index < size) & is_inside
        together, whole = together * size + index, whole * size
    return torch.where(is_inside, together, whole), whole


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    import torch

    broadcast: Any = torch.broadcast_tensors
    x, mask = broadcast(x, mask)
    found = _scattered(x.reshape(-1), mask.reshape(-1), source.reshape(-1), is_exact=False)
    return found.reshape(x.shape)


def _scattered(x: Tensor, mask: Tensor, source: Tensor, *, is_exact: bool) -> Tensor:
    """The rows of `x`, in which those where the 1-D `mask` is true are replaced by the rows of
    `source`, in order. With `is_exact`, `source` must have exactly as many rows."""
    import torch

    counts = mask.to(torch.int64)
    scatter = _operators().masked_scatter.default
    return scatter(x, mask, counts.cumsum(0), counts.sum(), source, is_exact)


def _only_mask(indices: Sequence[Tensor | None]) -> tuple[int, Tensor | None]:
    """Returns the position of the first index that is given, and the mask if that is the only index
    and is a mask."""
    given = [(place, index) for place, index in enumerate(indices) if index is not None]
    (place, index), *others = given
    return (place, None if others or not is_mask(index) or index.dim() == 0 else index)


def _put_together(x: Tensor, first: int, count: int) -> Tensor:
    """The tensor with `count` dimensions from `first` on collapsed into one."""
    return x if count == 1 else x.reshape(*x.shape[:first], -1, *x.shape[first + count :])


def _places_of_masks(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices, with each mask replaced by the coordinates of its true elements."""
    found: list[Tensor | None] = []
    for index in indices:
        found += coordinates(index) if index is not None and is_mask(index) else [index]
    return found


def _with_masks_of_bool(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Converts masks of uint8, which are true where they are not 0, to bool."""
    return [_is_true(index) if is_mask(index) else index for index in indices]


def is_mask(index: Tensor | None) -> bool:
    import torch

    return index is not None and index.dtype in (torch.bool, torch.uint8)


# --- Repetitions ----------------------------------------------------------------------------------


def _repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    import torch

    if not (output_size is None or isinstance(output_size, int)):
        return NotImplemented
    counts = repeats.to(torch.int64)
    is_wrong = (counts < 0).any() | (counts.double().sum() > _LARGEST_SUM)
    return _repeated(counts, _size_unless(is_wrong, counts.sum()), output_size)


def _repeat_interleave_of_tensor(
    x: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    if dim is None:
        x, dim = x.reshape(-1), 0
    count = repeats.shape[0] if repeats.dim() else 1
    if isinstance(count, int) and count == 1:
        repeats = repeats.reshape(1).expand(x.shape[dim])
    places = _repeat_interleave(repeats, output_size=output_size)
    return places if places is NotImplemented else x.index_select(dim, places)


def _size_unless(is_wrong: Tensor, size: Tensor) -> Tensor:
    """The size, or -1 if `is_wrong`, for which the call fails."""
    import torch

    return torch.where(is_wrong, -1, size)


# --- Sets -----------------------------------------------------------------------------------------


def _unique2(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The result is always sorted, even if `sorted` is false."""
    values, places = x.reshape(-1).sort(stable=True)
    found, groups, counts = _of_sorted(values, _begins(values), return_counts)
    inverse = _put_back(groups, places).reshape(x.shape) if return_inverse else _nothing()
    return found, inverse, counts


def _unique(x: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    values, inverse, _ = _unique2(x, sorted, return_inverse)
    return values, inverse


def _unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    if dim is not None:
        return _unique_dim_consecutive(x, dim, return_inverse, return_counts)
    row = x.reshape(-1)
    found, groups, counts = _of_sorted(row, _begins(row), return_counts)
    return found, groups.reshape(x.shape) if return_inverse else _nothing(), counts


def _unique_dim(
    x: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Each slice becomes a row. The rows are sorted by a stable sort per column, from the last
    column to the first."""
    import torch

    del sorted
    rows = _as_rows(x, dim)
    places = torch.arange(rows.shape[0])
    for column in reversed(range(_known_width(rows))):
        order = rows[:, column].index_select(0, places).sort(stable=True).indices
        places = places.index_select(0, order)
    values = rows.index_select(0, places)
    found, groups, counts = _of_sorted(values, _begins(values), return_counts)
    inverse = _put_back(groups, places) if return_inverse else _nothing()
    return _as_slices(found, x, dim), inverse, counts


def _unique_dim_consecutive(
    x: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    rows = _as_rows(x, dim)
    found, groups, counts = _of_sorted(rows, _begins(rows), return_counts)
    return _as_slices(found, x, dim), groups if return_inverse else _nothing(), counts


def _known_width(rows: Tensor) -> int:
    width = rows.shape[1]
    if not isinstance(width, int) or width > _WIDEST:
        raise InputError(
            f"{place_of_tracing()}aten.unique_dim of slices of more than {_WIDEST} elements, or of "
            "any size, has no lowering.",
            hint="export the program with sizes for the other dimensions, or make one number of "
            "each slice.",
        )
    return width


def _as_rows(x: Tensor, dim: int) -> Tensor:
    moved = x.movedim(dim, 0)
    return moved.reshape(moved.shape[0], -1)


def _as_slices(rows: Tensor, x: Tensor, dim: int) -> Tensor:
    others = list(x.movedim(dim, 0).shape[1:])
    return rows.reshape(-1, *others).movedim(0, dim)


def _begins(values: Tensor) -> Tensor:
    """Whether each element, or row, differs from the one before. NaN differs from everything."""
    import torch

    numbers = torch.arange(values.shape[0])
    differs = values != values.index_select(0, (numbers - 1).clamp(min=0))
    if values.dim() > 1:
        differs = differs.any(1)
    return differs | (numbers == 0)


def _of_sorted(values: Tensor, begins: Tensor, counted: bool) -> tuple[Tensor, Tensor, Tensor]:
    """For sorted values, returns the first element of each group of equal elements, the group
    number of each element, and the size of each group."""
    import torch

    first = positions(begins)
    found = values.index_select(0, first)
    groups = begins.to(torch.int64).cumsum(0) - 1
    if not counted:
        return found, groups, _nothing()
    end = torch.full((1,), values.shape[0])
    return found, groups, torch.cat([first, end])[1:] - first


def _put_back(values: Tensor, places: Tensor) -> Tensor:
    """Scatters each value to its place. The places are a permutation."""
    return values.new_empty(values.shape).scatter(0, places, values)


def _nothing() -> Tensor:
    import torch

    return torch.zeros(0, dtype=torch.int64)


# --- Counts ---------------------------------------------------------------------------------------


def _bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    import torch

    row = x.to(torch.int64)
    # The additional element is the result's minimal length - 1, which also serves an empty input.
    most = torch.cat([row, torch.full((1,), minlength - 1)]).amax()
    size = _size_unless((row < 0).any(), most + 1)
    bins = _repeated_once(size)
    if weights is None:
        return torch.zeros_like(bins).scatter_add(0, row, torch.ones_like(row))
    type_ = torch.float32 if weights.dtype == torch.float32 else torch.float64
    return torch.zeros_like(bins, dtype=type_).scatter_add(0, row, weights.to(type_))


def _repeated_once(size: Tensor) -> Tensor:
    """A 1-D tensor whose length is the value of `size`, of rank 0. Its elements are 0."""
    return _operators().repeat_interleave.default(size.reshape(1), size)


# --- aotc's operators -----------------------------------------------------------------------------


@functools.cache
def _operators() -> Any:
    repeat = "repeat_interleave(Tensor ends, Tensor size, int? known_size=None) -> Tensor"
    scatter = (
        "masked_scatter(Tensor x, Tensor mask, Tensor ends, Tensor size, Tensor source, "
        "bool is_exact) -> Tensor"
    )
    return define_operators({repeat: _of_unknown_size, scatter: _of_same_size})


def _of_unknown_size(ends: Tensor, size: Tensor, known_size: int | None = None) -> Tensor:
    import torch

    del size
    if known_size is not None:
        return ends.new_empty(known_size)
    return ends.new_empty(torch.library.get_ctx().new_dynamic_size())


def _of_same_size(x: Tensor, *arguments: Any) -> Tensor:
    return x.new_empty(x.shape)
