"""`aotc-concatenate-in-place`: operands of a concatenation are written directly into its result.

An elementwise operation that computes an operand gets the slice of the result as its output tensor.
The operand's users read that slice, so that no operand is copied. A recurrent layer, for example,
concatenates the states of all steps. An operand is only placed if it is contiguous in the result
and starts at a vector's alignment, so that the kernels that write and read it do not change.

Sizes after the dimension along which the operands are concatenated may be unknown, as those of
images of any size. The slices then have a type that says nothing of their strides, which
`aotc-view-contiguous-slices` changes when they are buffers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, origin
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.slices import DYNAMIC, Mixed, create_slice, extract_slice, mixed_lists

# The widest vector that kernels may load, in bits.
_ALIGNMENT_BITS = 512


class ConcatenateInPlace(OwnPass, frozen=True):
    """Runs before bufferization, when each operation has its own empty tensor."""

    name = "aotc-concatenate-in-place"
    reason: str = "operands of a concatenation are written directly into its result"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for found in ops.find(lowering.module.operation, "tensor.concat"):
                concat = _merge_parts(found)
                operands = _contiguous_operands(concat)
                producers = _producers(operands, concat)
                if producers:
                    text = f"{len(producers)} of {len(operands)} operands are written in place"
                    lowering.remarks.add(self.name, concat.location, text)
                    _place(concat, operands, producers)


class _Operand(Struct, frozen=True):
    """An operand of a concatenation, and the index along dimension `dim` of the result where it
    starts."""

    value: Any
    dim: int
    start: int

    def slice_numbers(self, dynamic: Sequence[Any]) -> tuple[list[int], list[Mixed]]:
        """The offsets and the sizes of this operand in the result; `dynamic` has its sizes that are
        not static."""
        values = iter(dynamic)
        sizes = [next(values) if one == DYNAMIC else one for one in self.value.type.shape]
        return [self.start if i == self.dim else 0 for i in range(len(sizes))], sizes


class _Producer(Struct, frozen=True):
    """The elementwise operation that computes an operand, and the operand's sizes that are not
    static."""

    generic: Any
    operand: _Operand
    sizes: list[Any]


def _merge_parts(concat: Any) -> Any:
    """Replaces operands that are all parts of one tensor, in order, by the tensor: it is written in
    place as a whole. Returns the concatenation."""
    dim = ir.IntegerAttr(concat.attributes["dim"]).value
    operands = list[Any]()
    pending = list[tuple[Any, Any, int]]()  # operands, the tensor of which they are, and their ends
    for value in concat.operands:
        source, start, end = _part_of(value, dim) or (value, 0, value.type.get_dim_size(dim))
        is_next = start > 0 and pending and pending[-1][1] == source and pending[-1][2] == start
        if not is_next:
            pending = []
        operands.append(value)
        if is_next or start == 0:
            pending.append((value, source, end))
        if len(pending) > 1 and end == source.type.get_dim_size(dim):
            operands[-len(pending) :] = [source]
            pending = []
    if len(operands) == len(concat.operands):
        return concat
    with concat.location, ir.InsertionPoint(concat):
        attributes = ops.attributes_of(concat)
        merged = ops.create("tensor.concat", operands, [concat.results[0].type], attributes)
    ops.replace(concat, list(merged.results))
    return merged


def _part_of(value: Any, dim: int) -> tuple[Any, int, int] | None:
    """The tensor of which the value is a part along a dimension, and the part's first index and its
    end."""
    sliced = origin(value)
    owner = ops.defining(sliced)
    if owner is None or owner.name != "tensor.extract_slice" or not _keeps_sizes(value):
        return None
    source = owner.operands[0]
    offsets, sizes, strides = mixed_lists(owner)
    whole = _known_sizes(source)
    shape, rank = value.type.shape, value.type.rank
    if whole is None or source.type.rank != rank or not _is_rank_reduced(sliced.type.shape, shape):
        return None
    others = [i for i in range(rank) if i != dim]
    is_along = all(offsets[i] == 0 and sizes[i] == whole[i] for i in others)
    is_known = isinstance(offsets[dim], int) and isinstance(sizes[dim], int)
    if not (is_along and is_known) or any(one != 1 for one in strides):
        return None
    return source, offsets[dim], offsets[dim] + sizes[dim]


def _known_sizes(tensor: Any) -> list[Mixed] | None:
    """The sizes of a tensor; None if there are no values for those that are not static."""
    if tensor.type.has_static_shape:
        return list(tensor.type.shape)
    owner = ops.defining(tensor)
    if owner is None or owner.name != "tensor.expand_shape":
        return None
    values = itertools.islice(owner.operands, 1, None)
    return [next(values) if one == DYNAMIC else one for one in tensor.type.shape]


def _contiguous_operands(concat: Any) -> list[_Operand]:
    """All operands of a concatenation, if they are contiguous and aligned in it; otherwise an empty
    list."""
    (result,) = concat.results
    dim = ir.IntegerAttr(concat.attributes["dim"]).value
    type_ = result.type
    inner = list(type_.shape[dim + 1 :])
    if math.prod(type_.shape[:dim]) != 1 or (DYNAMIC in inner and _is_returned(result)):
        return []
    if not isinstance(type_.element_type, (ir.FloatType, ir.IntegerType)):
        return []
    operands, start = [], 0
    for value in concat.operands:
        if value.type.is_dynamic_dim(dim) or list(value.type.shape[dim + 1 :]) != inner:
            return []
        operands.append(_Operand(value, dim, start))
        start += value.type.shape[dim]
    # Multiples of this, if sizes are unknown.
    row_bits = math.prod(one for one in inner if one != DYNAMIC) * type_.element_type.width
    is_aligned = all(operand.start * row_bits % _ALIGNMENT_BITS == 0 for operand in operands)
    return operands if is_aligned else []


def _is_returned(value: Any) -> bool:
    """Whether the tensor is a result of a function, a branch or a loop: it is then no buffer of its
    own, whose slices can be views."""
    return any(
        user.name in ("func.return", "scf.yield") for user in ops.users_through(value, RESHAPES)
    )


def _producers(operands: Sequence[_Operand], concat: Any) -> list[_Producer]:
    """The operations that can write operands in place, in program order. An operation that computes
    several operands writes the first one."""
    found: dict[Any, _Producer] = {}
    for operand in operands:
        producer = _producer(operand, concat)
        if producer is not None:
            found.setdefault(producer.generic, producer)
    producers = sorted(found.values(), key=functools.cmp_to_key(_order))
    # Other sizes are found to be the same ones where the operands are concatenated, which is after
    # the operands are computed.
    return [one for one in producers if one.sizes == producers[0].sizes]


def _producer(operand: _Operand, concat: Any) -> _Producer | None:
    """The operation that computes the operand, if it can write into the concatenation: its output
    is an empty tensor, and has the operand's shape except for dimensions of size 1."""
    made = origin(operand.value)
    shape = operand.value.type.shape
    # An operand without elements starts where the next one starts.
    if 0 in shape or not _is_rank_reduced(made.type.shape, shape):
        return None
    if not _keeps_sizes(operand.value):
        return None
    generic: Any = ops.defining(made)
    if generic is None or generic.name != "linalg.generic" or generic.block != concat.block:
        return None
    if len(generic.results) != 1 or has_reduction(generic):
        return None
    empty = ops.defining(generic.operands[len(generic.operands) - 1])
    if empty is None or empty.name != "tensor.empty":
        return None
    return _Producer(generic, operand, list(empty.operands))


def _is_rank_reduced(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether `shape` is `whole` without some of its dimensions of size 1."""
    rest = list(shape)
    for size in whole:
        if rest and rest[0] == size:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest


def _keeps_sizes(value: Any) -> bool:
    """Whether each unknown size of a reshaped tensor is the one that it was reshaped from."""
    while (owner := ops.defining(value)) is not None and owner.name in RESHAPES:
        source = owner.operands[0]
        larger = max(source.type, value.type, key=lambda type_: type_.rank)
        for group in ops.groups_of(owner):
            sizes = [larger.shape[i] for i in group if larger.shape[i] != 1]
            if DYNAMIC in sizes and len(sizes) > 1:
                return False
        value = source
    return True


def _place(concat: Any, operands: Sequence[_Operand], producers: Sequence[_Producer]) -> None:
    (result,) = concat.results
    sizes = producers[0].sizes
    with concat.location, ir.InsertionPoint(producers[0].generic):
        whole = ops.create("tensor.empty", sizes, [result.type]).result
    for producer in producers:
        whole = _write_into(whole, producer)
    placed = {producer.operand.start for producer in producers}
    with concat.location, ir.InsertionPoint(concat):
        for operand in operands:
            if operand.start not in placed:
                whole = _insert(operand.value, whole, operand, sizes)
    result.replace_all_uses_with(whole)
    ops.erase(concat)


def _order(one: _Producer, other: _Producer) -> int:
    return -1 if one.generic.is_before_in_block(other.generic) else 1


def _write_into(whole: Any, producer: _Producer) -> Any:
    """The concatenation's tensor with the operand inserted, which the operation computes in its
    slice."""
    generic = producer.generic
    (made,) = generic.results
    with generic.location, ir.InsertionPoint(generic):
        part = extract_slice(whole, made.type, *producer.operand.slice_numbers(producer.sizes))
    generic.operands[len(generic.operands) - 1] = part
    with generic.location, ir.InsertionPoint.after(generic):
        return _insert(made, whole, producer.operand, producer.sizes)


def _insert(value: Any, whole: Any, operand: _Operand, sizes: Sequence[Any]) -> Any:
    numbers = operand.slice_numbers(sizes)
    return create_slice("tensor.insert_slice", [value, whole], whole.type, *numbers)
