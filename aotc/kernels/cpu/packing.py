"""Packs B of a matmul into groups of columns, in the layout (group, k, column in the group). A
group has as many columns as a vector has elements. Columns past B's last one are zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from aotc.builder import Buffer
from aotc.builder.numbers import Number, Scalar, Value, compare, select, signed_minimum
from aotc.kernels.cpu.vectors import Vectors
from aotc.mlir import ir

# Size of the vectors that are transposed in registers: longer ones take more moves per element.
TRANSPOSED_BYTES = 32


class Column(Protocol):
    """Loads from a column of B: the element at `k`, or the vector of `width` elements from `k`
    on."""

    def __call__(self, k: Number, width: int = 1) -> Value: ...


class Part(Struct, frozen=True):
    """A block of B: its first k and its first column, and its extents."""

    k: Number
    column: Number
    k_count: Number
    columns: Number


def pack_columns(v: Vectors, source: Buffer, part: Part, packed: Buffer) -> None:
    """Packs a part of `source`, which is indexed by (k, column)."""
    b = v.b
    # Row by row, in the order of memory, so that hardware prefetches are of use.
    rest = v.signed("remsi", part.columns, v.width)
    whole = v.signed("divsi", part.columns, v.width)
    has_rest = compare("ne", rest, 0)
    with b.loop(0, part.k_count) as k:
        row = part.k + k.index
        with b.loop(0, whole) as group:
            at = [row, part.column + group.index * v.width]
            v.store(v.load(source, at, v.width), packed, [group.index, k.index, 0])
        with b.where(has_rest):
            first = part.column + whole * v.width
            _pack_elements(v, rest, source, lambda j: [row, first + j], packed, [whole, k.index])


def pack_rest(v: Vectors, source: Buffer, part: Part, packed: Buffer) -> None:
    """Packs a part of fewer columns than a vector has elements, as one group; `source` is indexed
    as in `pack_columns`."""
    mask = v.mask(part.columns)
    with v.b.loop(0, part.k_count) as k:
        vector = v.load_masked(source, [part.k + k.index, part.column], mask)
        v.store(vector, packed, [0, k.index, 0])


def pack_transposed(v: Vectors, source: Buffer, part: Part, packed: Buffer) -> None:
    """Packs a part of `source`, which is indexed by (column, k)."""

    def column_of(number: Number) -> Column:
        return lambda k, width=1: v.load(source, [part.column + number, part.k + k], width)

    pack_along_k(v, column_of, (part.k_count, part.columns), packed)


def pack_groups(v: Vectors, source: Buffer, part: Part, packed: Buffer) -> None:
    """Packs a part of `source`, which has the same groups: it is only converted. The part begins
    with a group."""
    b, first = v.b, v.signed("divsi", part.column, v.width)
    with b.loop(0, v.groups(part.columns, v.width)) as group, b.loop(0, part.k_count) as k:
        at = [first + group.index, part.k + k.index, 0]
        v.store(v.load(source, at, v.width), packed, [group.index, k.index, 0])


def pack_along_k(
    v: Vectors, column_of: Callable[[Number], Column], counts: tuple[Number, Number], packed: Buffer
) -> None:
    """Packs columns that are contiguous along K. `column_of` gives access to a column by its index,
    and `counts` is the K extent and the number of columns."""
    with v.b.loop(0, v.groups(counts[1], v.width)) as group:
        _pack_transposed_group(v, column_of, counts, packed, group.index)


def _pack_elements(
    v: Vectors,
    count: Number,
    source: Buffer,
    place_of: Callable[[Scalar], Sequence[Number]],
    packed: Buffer,
    to: Sequence[Number],
) -> None:
    """Packs one row of a group that has only `count` columns, and fills the rest with zeros."""
    b = v.b
    with b.loop(0, count) as column:
        b.store(v.load(source, place_of(column.index)), packed, [*to, column.index])
    with b.loop(count, v.width) as column:
        b.store(b.zero(v.type), packed, [*to, column.index])


def _pack_transposed_group(
    v: Vectors,
    column_of: Callable[[Number], Column],
    counts: tuple[Number, Number],
    packed: Buffer,
    group: Scalar,
) -> None:
    b, (k_count, columns) = v.b, counts
    first = group * v.width
    count = signed_minimum(columns - first, v.width)
    side = TRANSPOSED_BYTES // v.bytes
    is_whole = compare("eq", count, v.width)
    done = select(is_whole, v.whole(k_count, side), 0)
    with b.where(is_whole):
        found = [column_of(first + i) for i in range(v.width)]
        with b.loop(0, done, side) as k:
            for offset in range(0, v.width, side):
                loaded = [column(k.index, side) for column in found[offset : offset + side]]
                for i, vector in enumerate(transposed(v, loaded)):
                    v.store(vector, packed, [group, k.index + i, offset])
    with b.loop(0, count) as j:
        column = column_of(first + j.index)
        with b.loop(done, k_count) as k:
            b.store(column(k.index), packed, [group, k.index, j.index])
    with b.loop(count, v.width) as j, b.loop(0, k_count) as k:
        b.store(b.zero(v.type), packed, [group, k.index, j.index])


def transposed(v: Vectors, vectors: list[Value]) -> list[Value]:
    """The transpose of a square matrix of which `vectors` are the rows. Their number is a power of
    two, the number of elements of each.

    Each of the log2 steps interleaves pairs of vectors.
    """
    side = len(vectors)
    interleaved = [place + half for place in range(side) for half in (0, side)]
    masks = [ir.DenseI64ArrayAttr.get(one) for one in (interleaved[:side], interleaved[side:])]
    for _ in range(side.bit_length() - 1):
        vectors = [
            v.b.op("vector.shuffle", pair, pair[0].type, mask=mask)
            for pair in zip(vectors[: side // 2], vectors[side // 2 :], strict=True)
            for mask in masks
        ]
    return vectors
