"""Groups of threads (a block, a warp, a row), and the loops over their threads.

LLVM may vectorize a loop over threads. Threads between synchronizations have no order, so their
accesses to shared memory are marked as parallel by an access group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.prologue import Parameters, ThreadIds, ids_of

# Builds the code of one thread: (its ids, its index in the group, the access group's array).
Body = Callable[[ThreadIds, Any, Any], None]


class Cursor:
    """The insertion point in a function. It also builds loops."""

    def __init__(self, region: Any, location: Any) -> None:
        self.region = region
        self._location = location
        self._point: Any = None

    def __enter__(self) -> Cursor:
        self._location.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.enter(None)
        self._location.__exit__(None, None, None)

    def new_block(self, *types: Any) -> Any:
        return self.region.blocks.append(*types)

    def enter(self, block: Any) -> None:
        """Continues at the end of `block`."""
        if self._point is not None:
            self._point.__exit__(None, None, None)
        self._point = None if block is None else ir.InsertionPoint(block)
        if self._point is not None:
            self._point.__enter__()

    def loop(
        self,
        count: Any,
        body: Callable[[Any], None],
        *,
        first: Any = None,
        step: int = 1,
        annotation: Any = None,
    ) -> None:
        """`for (i = first; i < count; i += step) body(i)`. A loop that is known to have one
        iteration is not built.

        `first` is 0 by default.
        """
        known = build.known_number(count)
        if first is None and known is not None and 0 < known <= step:
            body(build.number(0))
            return
        following, inside, behind = (
            self.new_block(build.i64()),
            self.new_block(),
            self.new_block(),
        )
        build.jump(following, [build.number(0) if first is None else first])
        self.enter(following)
        i = following.arguments[0]
        build.branch(build.compare(build.SLT, i, count), inside, behind)
        self.enter(inside)
        body(i)
        build.jump(following, [build.add(i, build.number(step))], annotation=annotation)
        self.enter(behind)


# LLVM unrolls short loops of constant trip count before it vectorizes, and then cannot vectorize
# them. So unrolling is disabled until the loop is vectorized. Afterwards, a row's short loop is
# fully unrolled, so that the values that its threads carry are in registers.
_KEEP_ROLLED = "unroll = <disable = true>"
_THEN_UNROLL = "vectorize = <followupVectorized = <unroll = <full = true>>>"
_THEN_AS_USUAL = "vectorize = <followupVectorized = <mustProgress = true>>"


def loop_over_threads(
    cursor: Cursor,
    count: Any,
    body: Callable[[Any, Any], None],
    *,
    first: Any = None,
    is_row: bool = False,
) -> None:
    """A loop whose iterations are independent: `body(i, access groups)`."""
    then = _THEN_UNROLL if is_row else _THEN_AS_USUAL
    marks = ir.Attribute.parse(
        f"[#llvm.access_group<id = distinct[0]<>>, #llvm.loop_annotation<{then}, {_KEEP_ROLLED}, "
        "parallelAccesses = #llvm.access_group<id = distinct[0]<>>>]"
    )
    group, annotation = list(marks)
    groups = ir.ArrayAttr.get([group])
    cursor.loop(count, lambda i: body(i, groups), first=first, annotation=annotation)


# The range of ids of a dimension that have work, given the ids of the outer dimensions: the first
# id (None for 0), and the end.
Range = Callable[[int, ThreadIds], tuple[Any, Any]]


# With so few threads along x, vectorizing along x does not pay.
_FEW_COLUMNS = 3


class BlockGroup(Struct, frozen=True):
    """The threads of a block whose ids are in a range along each dimension. `columns` is the number
    of threads along x, if it is known and all of them have work.

    The loop along x is the innermost one. Few columns are unrolled inside of the loop along y, so
    that this loop may be vectorized: two phases of an image, whose pixels alternate, are loaded as
    vectors and stored as one vector that has both.
    """

    range_of: Range
    columns: int | None = None

    def for_each(self, cursor: Cursor, body: Body) -> None:
        zero = build.number(0)
        columns = self.columns

        def along(dimension: int, ids: ThreadIds, inside: Callable[[Any], None]) -> None:
            first, end = self.range_of(dimension, ids)
            cursor.loop(end, inside, first=first)

        def along_y(y: Any, z: Any) -> None:
            first, end = self.range_of(0, ThreadIds(zero, y, z))
            loop_over_threads(
                cursor,
                end,
                lambda x, marks: body(ThreadIds(x, y, z), None, marks),
                first=first,
            )

        def few(y: Any, z: Any, marks: Any) -> None:
            for x in range(columns or 0):
                body(ThreadIds(build.number(x), y, z), None, marks)

        def along_z(z: Any) -> None:
            first, end = self.range_of(1, ThreadIds(zero, zero, z))
            rows = build.known_number(end)
            if columns is None or columns > _FEW_COLUMNS or (rows is not None and rows <= columns):
                cursor.loop(end, lambda y: along_y(y, z), first=first)
            else:
                loop_over_threads(cursor, end, lambda y, marks: few(y, z, marks), first=first)

        along(2, ThreadIds(zero, zero, zero), along_z)


class RowGroup(Struct, frozen=True):
    """Threads that differ only in x: `count` of them, from `first` on, and at most `width`."""

    parameters: Parameters
    first: ThreadIds
    count: Any
    width: int

    def for_each(self, cursor: Cursor, body: Body) -> None:
        def lane(i: Any, marks: Any) -> None:
            body(ThreadIds(build.add(self.first.x, i), self.first.y, self.first.z), i, marks)

        loop_over_threads(cursor, self.count, lane, is_row=True)


class WarpGroup(Struct, frozen=True):
    """The lanes of a warp. The last warp of a block may have fewer."""

    parameters: Parameters
    warp: Any
    width: int = WARP

    @property
    def first(self) -> ThreadIds:
        return self._ids(build.number(0))

    def for_each(self, cursor: Cursor, body: Body) -> None:
        before = build.multiply(self.warp, build.number(WARP))
        threads = build.known_number(self.parameters.thread_count)
        if threads is not None and threads % WARP == 0:
            count = build.number(WARP)
        else:
            left = build.integer_op("sub", self.parameters.thread_count, before)
            count = build.smaller(left, build.number(WARP))
        loop_over_threads(cursor, count, lambda i, marks: body(self._ids(i), i, marks))

    def _ids(self, lane: Any) -> ThreadIds:
        parameters = self.parameters
        before = build.multiply(self.warp, build.number(WARP))
        linear = build.add(before, lane)
        width, height, depth = (build.known_number(size) for size in parameters.block_dim)
        zero = build.number(0)
        if height == 1 and depth == 1:
            return ThreadIds(linear, zero, zero, linear)
        if width is not None and width % WARP == 0:
            # A warp lies within a row.
            first = ids_of(before, parameters)
            return ThreadIds(build.add(first.x, lane), first.y, first.z, linear)
        return ids_of(linear, parameters)
