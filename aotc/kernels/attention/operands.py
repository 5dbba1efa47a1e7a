"""The operands of an attention: tensors that a kernel can read and write in place, with the roles
of their dimensions (batch, heads, rows, columns)."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.generics import RESHAPES, maps_of
from aotc.analysis.rounding import rounds_to_nearest
from aotc.kernels.attention.elements import Element, Index, Place, joined_place, parts_of
from aotc.kernels.attention.layout import Form
from aotc.kernels.attention.pages import Gather, Pages
from aotc.mlir import ir
from aotc.slices import static_lists

BATCH, QUERY, KEY = "b", "i", "j"
# The batch of Q, if `BATCH` is the batch of the matrices that several of Q's share.
_OF_Q = "q"
OF_16_BITS = ("f16", "bf16")
_MOST_DIMENSIONS = 4


class Operand(Struct, frozen=True):
    """A tensor of matrices: up to two batch dimensions, rows, and columns.

    `form`: the roles of its dimensions. `group`: the number of consecutive matrices of Q that share
    a matrix of this operand (K or V). `pages`: the pages of a cache, whose rows `gather` gathers in
    the order of keys. `table_dimensions`: the dimensions of the page table that are the sequence
    (None if there is one sequence) and the page."""

    tensor: Any
    form: Form = Form()
    group: int = 1
    pages: Pages | None = None
    gather: Gather | None = None
    table_dimensions: tuple[int | None, int] = (None, 0)


def batch_of(type_: Any) -> Index | None:
    """The indices of the batch dimensions of a matmul's result; None for a type of another form."""
    if type_.rank == 4 and not type_.is_dynamic_dim(1):
        heads = int(type_.get_dim_size(1))
        return (("high", BATCH, heads), ("low", BATCH, heads))
    if type_.rank not in (2, 3):
        return None
    return (BATCH,) if type_.rank == 3 else ()


def batch_of_rows(type_: Any) -> Index | None:
    """The indices of the batch dimensions of a matmul's result with one row in each matrix; None
    for a type of another form."""
    if type_.rank == 2:
        return (BATCH,)
    if type_.rank != 3 or type_.is_dynamic_dim(1):
        return None
    heads = int(type_.get_dim_size(1))
    return (("high", BATCH, heads), ("low", BATCH, heads))


def row_operand(element: Element, column: str) -> Operand | None:
    """The tensor of an element of Q with one row in each matrix; None if kernels cannot read it in
    place."""
    *batch, last = element.index
    element_type = str(element.tensor.type.element_type)
    is_it = last == column and _is_batch(batch) and element_type in (*OF_16_BITS, "f32")
    return Operand(element.tensor) if is_it else None


def shared_operand(element: Element, row: str, column: str) -> Operand | None:
    """The tensor of an element of K or V, which several matrices of Q may share; None if kernels
    cannot read it in place."""
    for group in _groups(element.index):
        index = _of_shared_batches(element.index, group)
        found = operand_of(Element(element.tensor, index), row, column, is_batched=True)
        if found is not None:
            return replace(found, group=group)
    return None


def paged_operand(element: Element, row: str, column: str) -> Operand | None:
    """The cache of an element of K or V that is gathered from pages; None for another element."""
    gather = Gather.of(element)
    if gather is None or str(gather.cache.type.element_type) not in (*OF_16_BITS, "f32"):
        return None
    for group in _groups((*gather.cache_places, *gather.table_places)):
        found = _paged(
            gather,
            _of_shared_batches(gather.cache_places, group),
            _of_shared_batches(gather.table_places, group),
            row,
            column,
        )
        if found is not None:
            return replace(found, group=group)
    return None


def _paged(gather: Gather, cache: Index, table: Index, row: str, column: str) -> Operand | None:
    """See `paged_operand`. `cache` and `table`: the indices of the cache and of the page table, in
    terms of the batch of K and V."""
    sizes = list(gather.cache.type.shape)[1:]
    is_known = not any(gather.cache.type.is_dynamic_dim(i + 1) for i in range(len(sizes)))
    if not is_known or len(sizes) not in (2, 3) or cache[-1] != column:
        return None
    in_page = [i for i, place in enumerate(cache) if place == ("low", row, sizes[i])]
    if len(in_page) != 1:
        return None
    (key,) = in_page
    rows, heads = sizes[key], 1
    head: Place = 0
    if len(sizes) == 3:
        heads, head = sizes[1 - key], cache[1 - key]
    of_table = [i for i, place in enumerate(table) if place != 0]
    if not of_table or table[of_table[-1]] != ("high", row, rows) or len(of_table) > 2:
        return None
    *outer, inner = of_table
    batch = [*(table[i] for i in outer), *([] if head == 0 else [head])]
    is_one_head = (head == 0) == (heads == 1)
    if not is_one_head or not _is_batch(batch):
        return None
    if len(batch) == 2 and batch[1] != ("low", BATCH, heads):
        return None
    has_head_rows = key == 0 and len(sizes) == 3
    if not has_head_rows and not is_whole(gather.cache):
        return None
    type_ = gather.table.type
    count = None if type_.is_dynamic_dim(inner) else int(type_.shape[inner])
    return Operand(
        gather.cache,
        Form(heads, has_head_dimension=True) if has_head_rows else Form(),
        pages=Pages(rows, heads, has_head_rows, count),
        gather=gather,
        table_dimensions=(outer[0] if outer else None, inner),
    )


def is_whole(tensor: Any) -> bool:
    """Whether the tensor's elements are contiguous, as far as its definition shows."""
    value = tensor
    while (owner := ops.defining(value)) is not None and owner.name in (*RESHAPES, "tensor.cast"):
        value = owner.operands[0]
    if owner is None:
        return True
    if owner.name == "bufferization.to_tensor":
        type_ = owner.operands[0].type
        return bool(type_.affine_map == ir.AffineMap.get_identity(type_.rank))
    return bool(owner.name != "tensor.extract_slice")


def _groups(index: Index) -> tuple[int, ...]:
    """The possible numbers of matrices of Q that share a matrix of K: 1 and the divisors in the
    index."""
    groups = {place[2] for one in index for place in parts_of(one) if place[0] == "high"}
    return (1, *sorted(groups, reverse=True))


def _of_shared_batches(index: Index, group: int) -> Index:
    return index if group == 1 else tuple(_of_shared_batch(place, group) for place in index)


def _of_shared_batch(place: Any, group: int) -> Any:
    """The index in terms of the batch of the shared matrices: b / group becomes `BATCH`, and b
    itself becomes `_OF_Q`."""
    if not isinstance(place, tuple):
        return _OF_Q if place == BATCH else place
    part, of, number = place
    if part == "joined":
        first, second = (_of_shared_batch(one, group) for one in of)
        return joined_place(first, second, number)
    if of == BATCH and part == "high" and number % group == 0:
        return BATCH if number == group else ("high", BATCH, number // group)
    # (b % n) / group is (b / group) % (n / group).
    if part == "high" and number == group and isinstance(of, tuple):
        inner, of_inner, heads = of
        if (inner, of_inner) == ("low", BATCH) and heads % group == 0:
            return 0 if heads == group else ("low", BATCH, heads // group)
    return (part, _of_shared_batch(of, group), number)


def operand_of(element: Element, row: str, column: str, *, is_batched: bool) -> Operand | None:
    """The element's tensor, if kernels support its layout and type; otherwise None."""
    tensor, index = element.tensor, element.index
    type_ = ir.RankedTensorType(tensor.type)
    if str(type_.element_type) not in (*OF_16_BITS, "f32") or type_.rank not in (2, 3, 4):
        return None
    for i, place in enumerate(index):
        if place == 0 and (type_.is_dynamic_dim(i) or type_.get_dim_size(i) != 1):
            return None
    places = [place for place in index if place != 0]
    if len(places) < 2:
        return None
    *front, before, last = places
    if (before, last) == (row, column) and tuple(index[-2:]) == (row, column):
        return Operand(tensor) if (_is_batch(front) if is_batched else not front) else None
    if type_.is_dynamic_dim(type_.rank - 1):
        return None
    size = type_.get_dim_size(type_.rank - 1)
    if last == column and front and front[-1] == row and _is_batch([*front[:-1], before]):
        if type_.is_dynamic_dim(type_.rank - 2):
            return None
        return Operand(tensor, Form(type_.get_dim_size(type_.rank - 2), has_head_dimension=True))
    if before == row and isinstance(last, tuple) and last[0] == "joined":
        (head, inner), depth = last[1], last[2]
        if inner == column and _is_batch([*front, head]):
            return Operand(tensor, Form(size // depth))
    return None


def operand_with_rows_first(element: Element, row: str, column: str) -> Operand | None:
    """As `operand_of`, for a tensor whose rows are in front of the batch. The heads in a row are
    adjacent."""
    type_ = ir.RankedTensorType(element.tensor.type)
    if type_.rank not in (3, 4) or any(type_.is_dynamic_dim(i) for i in range(2, type_.rank)):
        return None
    first, *batch, last = element.index
    if first != row or str(type_.element_type) not in (*OF_16_BITS, "f32"):
        return None
    heads = 1
    if isinstance(last, tuple) and last[0] == "joined":
        (head, last), depth = last[1], last[2]
        batch, heads = [*batch, head], type_.get_dim_size(type_.rank - 1) // depth
    elif type_.rank == 4:
        heads = type_.get_dim_size(2)
    has_head_dimension = type_.rank == 4
    if last != column or not _is_batch(batch) or len(batch) != 1 + (heads > 1):
        return None
    return Operand(element.tensor, Form(heads, has_head_dimension, has_rows_first=True))


def has_adjacent_heads(operand: Operand) -> bool:
    """Whether the heads of a row are adjacent in memory, as far as the tensor's definition shows.
    Slices and reshapes are views, and a slice of columns leaves gaps between the heads."""
    value = operand.tensor
    form = operand.form
    count = form.heads * int(value.type.shape[-1]) if form.has_head_dimension else 1
    while (owner := ops.defining(value)) is not None:
        if owner.name == "tensor.extract_slice":
            if _adjacent_elements(owner) < count:
                return False
        elif owner.name not in RESHAPES:
            return True
        value = owner.operands[0]
    return True


def _adjacent_elements(slice_: Any) -> int:
    """A lower bound for the number of elements of a slice that are contiguous in its source."""
    _, sizes, strides = static_lists(slice_)
    count = 1
    for size, stride, whole in zip(
        reversed(sizes), reversed(strides), reversed(slice_.operands[0].type.shape), strict=True
    ):
        if size < 0 or stride != 1:
            break
        count *= size
        if size != whole:
            break
    return count


def is_narrow(tensor: Any) -> bool:
    """Whether the tensor's elements are no wider than f32, the accumulator type."""
    return str(tensor.type.element_type) in (*OF_16_BITS, "f32")


def _is_batch(places: Any) -> bool:
    """Whether the indices are the batch, or the batch split into two consecutive dimensions."""
    if len(places) == 2 and all(isinstance(place, tuple) for place in places):
        first, second = places
        is_whole_batch = first[1] == BATCH and first[1:] == second[1:]
        return is_whole_batch and (first[0], second[0]) == ("high", "low")
    return list(places) == [BATCH]


def result_of(product: Any) -> Operand:
    """The result of the second matmul, or the tensor that a cast and a transposition of the heads
    into rows produce from it."""
    value = product.results[0]
    found = Operand(value)
    batch = list(value.type.shape)[:-2]
    while True:
        users = [use.owner.operation for use in value.uses]
        if len(users) != 1:
            return found
        (user,) = users
        shape = list(value.type.shape)
        if user.name in RESHAPES:
            value = user.results[0]
            if not _keeps_rows(user):
                return found
        elif _narrows(user):
            value = user.results[0]
            found = Operand(value)
        elif (order := _order_inside(user)) and not value.type.is_dynamic_dim(len(shape) - 3):
            heads = shape[-3]
            is_all = len(shape) == 3 or value.type.is_dynamic_dim(0)
            is_all = is_all or shape[0] * heads == math.prod(batch)
            form = Form(heads, has_head_dimension=True, has_rows_first=order == "rows first")
            return Operand(user.results[0], form) if is_all else found
        else:
            return found


def row_of(product: Any) -> Operand:
    """The result of the second matmul with one row in each matrix, or its cast."""
    value = product.results[0]
    users = [use.owner.operation for use in value.uses]
    is_narrowed = len(users) == 1 and _narrows(users[0])
    return Operand(users[0].results[0] if is_narrowed else value)


def _keeps_rows(reshape: Any) -> bool:
    """Whether rows and columns remain separate dimensions, the last ones."""
    lengths = [len(ir.ArrayAttr(one)) for one in ir.ArrayAttr(reshape.attributes["reassociation"])]
    rank = reshape.results[0].type.rank
    return len(lengths) > 2 and lengths[-2:] == [1, 1] and rank <= _MOST_DIMENSIONS


def _order_inside(operation: Any) -> str:
    """How the operation transposes ([batch,] heads, rows, columns): to ([batch,] rows, heads,
    columns), "batch first", or to (rows, batch, heads, columns), "rows first". An empty string for
    any other operation."""
    if operation.name != "linalg.generic" or len(operation.results) != 1:
        return ""
    inputs, _ = ops.operand_groups(operation)
    if len(inputs) != 1 or [one.name for one in ops.content(operation)] != ["linalg.yield"]:
        return ""
    if ops.content(operation)[0].operands[0] != operation.regions[0].blocks[0].arguments[0]:
        return ""
    source, result = ([str(place) for place in map_.results] for map_ in maps_of(operation))
    if len(source) not in (3, 4) or len(set(source)) != len(source):
        return ""
    *front, heads, rows, columns = source
    if result == [*front, rows, heads, columns]:
        return "batch first"
    return "rows first" if result == [rows, *front, heads, columns] else ""


def _narrows(operation: Any) -> bool:
    if operation.name != "linalg.generic" or len(operation.results) != 1:
        return False
    inputs, _ = ops.operand_groups(operation)
    names = [one.name for one in ops.content(operation)]
    maps = maps_of(operation)
    is_plain = all(map_ == ir.AffineMap.get_identity(map_.n_dims) for map_ in maps)
    yielded = ops.content(operation)[-1].operands[0]
    cast = ops.defining(yielded)
    return (
        len(inputs) == 1
        and is_plain
        and names == ["arith.truncf", "linalg.yield"]
        and cast is not None
        and rounds_to_nearest(cast)
        and cast.operands[0] == operation.regions[0].blocks[0].arguments[0]
    )
