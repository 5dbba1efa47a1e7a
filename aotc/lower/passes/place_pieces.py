"""`aotc-place-pieces`: pieces of a concatenation are written to where they lie in it.

An elementwise operation that makes a piece gets the slice of the concatenation as the tensor that
it writes. Its readers read it there, so that no piece is copied: a recurrent layer puts the states
of all steps together. A piece is contiguous in the concatenation, and begins where a vector may:
what reads and writes it are the kernels that it had.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import has_reduction, origin
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

# Kernels may load vectors of so many bits.
_ALIGNMENT_BITS = 512


class PlacePieces(OwnPass, frozen=True):
    """Runs where each operation has an empty tensor of its own, before there are buffers."""

    name = "aotc-place-pieces"
    reason: str = "pieces of a concatenation are written where they lie in it"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for concat in ops.find(lowering.module.operation, "tensor.concat"):
                pieces = _contiguous_pieces(concat)
                makers = _makers(pieces, concat)
                if makers:
                    text = f"{len(makers)} of {len(pieces)} pieces are written in place"
                    lowering.remarks.add(self.name, concat.location, text)
                    _place(concat, pieces, makers)


class _Piece(Struct, frozen=True):
    """A piece of a concatenation: the tensor, and the index along `dim` where it begins."""

    value: Any
    dim: int
    start: int

    def slice_attributes(self) -> dict[str, Any]:
        """Of an operation that reads or writes the piece's slice."""
        rank = self.value.type.rank
        offsets = [self.start if i == self.dim else 0 for i in range(rank)]
        return {
            "static_offsets": ir.DenseI64ArrayAttr.get(offsets),
            "static_sizes": ir.DenseI64ArrayAttr.get(list(self.value.type.shape)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
        }


class _Maker(Struct, frozen=True):
    """The elementwise operation that makes a piece."""

    generic: Any
    piece: _Piece


def _contiguous_pieces(concat: Any) -> list[_Piece]:
    """All pieces of a concatenation, if they are contiguous in it and aligned; else none."""
    (result,) = concat.results
    dim = ir.IntegerAttr(concat.attributes["dim"]).value
    type_ = result.type
    if not type_.has_static_shape or math.prod(type_.shape[:dim]) != 1:
        return []
    if not isinstance(type_.element_type, (ir.FloatType, ir.IntegerType)):
        return []
    pieces, start = [], 0
    for value in concat.operands:
        if not value.type.has_static_shape:
            return []
        pieces.append(_Piece(value, dim, start))
        start += value.type.shape[dim]
    row_bits = math.prod(type_.shape[dim + 1 :]) * type_.element_type.width
    is_aligned = all(piece.start * row_bits % _ALIGNMENT_BITS == 0 for piece in pieces)
    return pieces if is_aligned else []


def _makers(pieces: Sequence[_Piece], concat: Any) -> list[_Maker]:
    """What can write pieces, in the order of the program: each operation its first piece, if it
    makes several of them."""
    found: dict[Any, _Maker] = {}
    for piece in pieces:
        maker = _maker(piece, concat)
        if maker is not None:
            found.setdefault(maker.generic, maker)
    return sorted(found.values(), key=functools.cmp_to_key(_order))


def _maker(piece: _Piece, concat: Any) -> _Maker | None:
    """The operation that makes the piece, if it can write it into the concatenation: it writes an
    empty tensor, and the piece has its shape, but for dimensions of 1."""
    made = origin(piece.value)
    # A piece of no elements has the place of the next one.
    if 0 in piece.value.type.shape or not _is_rank_reduced(made.type.shape, piece.value.type.shape):
        return None
    generic: Any = ops.defining(made)
    if generic is None or generic.name != "linalg.generic" or generic.block != concat.block:
        return None
    if len(generic.results) != 1 or has_reduction(generic):
        return None
    empty = ops.defining(generic.operands[len(generic.operands) - 1])
    if empty is None or empty.name != "tensor.empty":
        return None
    return _Maker(generic, piece)


def _is_rank_reduced(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether `shape` is `whole` without some of its dimensions of 1."""
    rest = list(shape)
    for size in whole:
        if rest and rest[0] == size:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest


def _place(concat: Any, pieces: Sequence[_Piece], makers: Sequence[_Maker]) -> None:
    (result,) = concat.results
    with concat.location, ir.InsertionPoint(makers[0].generic):
        whole = ops.create("tensor.empty", [], [result.type]).result
    for maker in makers:
        whole = _write_into(whole, maker)
    placed = {maker.piece.start for maker in makers}
    with concat.location, ir.InsertionPoint(concat):
        for piece in pieces:
            if piece.start not in placed:
                whole = _insert(piece.value, whole, piece)
    result.replace_all_uses_with(whole)
    ops.erase(concat)


def _order(one: _Maker, other: _Maker) -> int:
    return -1 if one.generic.is_before_in_block(other.generic) else 1


def _write_into(whole: Any, maker: _Maker) -> Any:
    """The tensor with the piece in it, which is made in its slice."""
    generic = maker.generic
    (made,) = generic.results
    attributes = {
        **maker.piece.slice_attributes(),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    with generic.location, ir.InsertionPoint(generic):
        part = ops.create("tensor.extract_slice", [whole], [made.type], attributes).result
    generic.operands[len(generic.operands) - 1] = part
    with generic.location, ir.InsertionPoint.after(generic):
        return _insert(made, whole, maker.piece)


def _insert(value: Any, whole: Any, piece: _Piece) -> Any:
    attributes = {
        **piece.slice_attributes(),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0]),
    }
    return ops.create("tensor.insert_slice", [value, whole], [whole.type], attributes).result
