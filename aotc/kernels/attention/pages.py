"""Paged attention: the rows of K and V are in the pages of a cache, which a page table lists.

A page has `rows` keys of all heads: `cache[page]`. A kernel reads the rows in place, by the numbers
of the pages, instead of a gathered copy in the order of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import RESHAPES, maps_of
from aotc.kernels.attention.elements import Element, Place, Reader, read_element
from aotc.mlir import ir
from aotc.rewrites.cloning import copy

_NUMBER = "i64"


class Pages(Struct, frozen=True):
    """The pages of K and V. `rows`: the keys of a page. `heads`: the heads of K and V.

    `has_head_rows`: the rows of all heads are adjacent, and a page is one matrix of the cache;
    otherwise a page has a matrix for each head. `count`: the pages of a sequence, None if unknown.
    `table`: the type of the page table, a buffer with a row for each sequence.
    """

    rows: int
    heads: int
    has_head_rows: bool
    count: int | None = None

    @property
    def keys(self) -> int | None:
        """The number of keys of a sequence, None if unknown."""
        return None if self.count is None else self.rows * self.count

    @property
    def table(self) -> str:
        return f"memref<?x{'?' if self.count is None else self.count}x{_NUMBER}>"


class Gather(Struct, frozen=True, eq=False):
    """A `linalg.generic` that gathers elements of pages of `cache`. The page's `number` is computed
    from an element of `table`. `cache_places` and `table_places`: the indices that an element of
    its result has along each dimension of the cache, without the first one, and of the table."""

    operation: Any
    cache: Any
    number: Any
    table: Any
    cache_places: tuple[Place, ...]
    table_places: tuple[Place, ...]

    @staticmethod
    def of(element: Element) -> Gather | None:
        """The gather that computes the element; None for another operation."""
        generic = ops.defining(element.tensor)
        if generic is None or generic.name != "linalg.generic" or len(generic.results) != 1:
            return None
        inputs, _ = ops.operand_groups(generic)
        *body, end = ops.content(generic)
        extract = ops.defining(end.operands[0])
        maps = maps_of(generic)
        identity = ir.AffineMap.get_identity(len(element.index))
        if len(inputs) != 1 or extract is None or maps[-1] != identity:
            return None
        if (
            extract not in body
            or extract.name != "tensor.extract"
            or not ops.is_made_outside(extract.operands[0], generic)
        ):
            return None
        cache, number, *others = extract.operands
        places = _counted(others, element)
        read = read_element(inputs[0], maps[0], dict(enumerate(element.index)))
        if places is None or not isinstance(read, Element) or not _is_of_argument(number, generic):
            return None
        table = _before_reshapes(read)
        return Gather(generic, cache, number, table.tensor, places, table.index)

    def build_table(self, outer: int | None, inner: int) -> Any:
        """Creates the page table for a kernel at the insertion point, as a tensor of two
        dimensions. Page numbers are computed and checked as in the gather. `outer`, `inner`: the
        dimensions of the table that are the sequence, if there is one, and the page."""
        table = self.table.type
        kept = [inner] if outer is None else [outer, inner]
        dynamic = ops.dynamic_sizes(self.table, kept)
        sizes = [*([1] if outer is None else []), *(int(table.shape[i]) for i in kept)]
        type_ = ir.RankedTensorType.get(sizes, ir.Type.parse(_NUMBER))
        of_loops = {inner: ir.AffineDimExpr.get(1)}
        if outer is not None:
            of_loops[outer] = ir.AffineDimExpr.get(0)
        zero = ir.AffineConstantExpr.get(0)
        read = [of_loops.get(i, zero) for i in range(table.rank)]

        def compute(element: Any) -> Any:
            return ops.unary("arith.index_cast", self._copied_number(element), type_.element_type)

        maps = [ir.AffineMap.get(2, 0, read)]
        return ops.create_elementwise([self.table], type_, dynamic, compute, maps)

    def _copied_number(self, argument: Any) -> Any:
        """Copies the computation of a page's number, for another argument, to the insertion
        point."""
        copies = {self.operation.regions[0].blocks[0].arguments[0]: argument}
        for operation in _needed(self.number, self.operation):
            copy(operation, copies)
        return copies[self.number]


def _needed(value: Any, generic: Any) -> list[Any]:
    """The operations of the generic's body that compute the value, in order."""
    body, found, waiting = ops.content(generic), set(), [value]
    while waiting:
        owner = ops.defining(waiting.pop())
        if owner is not None and owner in body:
            found.add(owner)
            waiting += owner.operands
    return [one for one in body if one in found]


def _is_of_argument(number: Any, generic: Any) -> bool:
    """Whether the number is computed only from the element of the table and from values outside of
    the operation."""
    argument, out = generic.regions[0].blocks[0].arguments
    needed = _needed(number, generic)
    used = [value for one in needed for value in one.operands]
    return (
        argument in used
        and out not in used
        and all(one.name.startswith("arith.") and len(one.results) == 1 for one in needed)
    )


def _before_reshapes(element: Element) -> Element:
    while (owner := ops.defining(element.tensor)) is not None and owner.name in RESHAPES:
        before = Reader().step(element)
        if not isinstance(before, Element):
            break
        element = before
    return element


def _counted(values: Sequence[Any], element: Element) -> tuple[Place, ...] | None:
    """The indices that the index values of the body stand for, which are loop indices or 0; None
    for other values."""
    places: list[Place] = []
    for value in values:
        owner = ops.defining(value)
        if owner is None:
            return None
        if owner.name == "linalg.index":
            places.append(element.index[int(ir.IntegerAttr(owner.attributes["dim"]).value)])
        elif ops.known_index(value) == 0:
            places.append(0)
        else:
            return None
    return tuple(places)
