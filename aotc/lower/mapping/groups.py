"""Fuses consecutive loops over the same rows or points into one loop.

A softmax is six loops: some run for each row (its maximum, its sum), and others for each element.
Fused, they are one loop over the rows, in which a row is read once. A chain of elementwise loops
becomes one loop over the points, and intermediate results need not be loaded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, accesses_in, is_pure, is_understood
from aotc.analysis.views import are_disjoint
from aotc.attributes import BLOCK_ATTRIBUTE
from aotc.lower.mapping.accumulators import accumulates
from aotc.lower.mapping.build import create_parallel
from aotc.lower.mapping.nest import known_trips, loop_trips
from aotc.lower.mapping.rows import LEAST_COLUMNS
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of

# The limit of fused loops, as larger kernels take long to compile.
_MOST_LOOPS = 32
# Operations that may be moved before the loops, as they do not access existing memory.
_EARLY = ("memref.alloc", "memref.alloca", "arith.constant", "memref.get_global", "tensor.empty")
_LATE = ("memref.dealloc",)


class _Group(Struct):
    """Loops whose first `rank` dimensions become those of one loop. The operations in `early` are
    moved before it, and those in `late` after it."""

    loops: list[Any]
    rank: int
    has_reduction: bool
    early: list[Any] = field(default_factory=list)
    late: list[Any] = field(default_factory=list)


class _Member(Struct, frozen=True):
    """A candidate for a group, with the operations between it and the previous loop."""

    loop: Any
    early: list[Any]
    late: list[Any]
    has_reduction: bool

    @property
    def rank(self) -> int:
        return len(_rows(self.loop))


def fuse_loops(
    function: Any, overlaps: Overlaps, is_mappable: Callable[[Any], bool]
) -> list[tuple[Any, str]]:
    """Fuses loops over the same rows if one of them reduces along its rows, and loops over the same
    points.

    Returns each fused loop with a description.
    """
    fused = []
    blocks = {op.block: op.block for op in ops.find(function, "scf.parallel") if is_mappable(op)}
    for block in blocks.values():
        for group in _groups(block, overlaps, is_mappable):
            of_what = "rows" if group.has_reduction else "points"
            text = f"{len(group.loops)} loops over the same {of_what} are one kernel"
            fused.append((_fuse(group), text))
    return fused


def _groups(block: Any, overlaps: Overlaps, is_mappable: Callable[[Any], bool]) -> list[_Group]:
    """The groups of a block, each with at least two loops."""
    found: list[_Group] = []
    run: list[_Member] = []
    early: list[Any] = []
    late: list[Any] = []
    for operation in ops.operations_in(block):
        if operation.name == "scf.parallel" and is_mappable(operation) and is_understood(operation):
            run.append(_Member(operation, early, late, bool(_reductions(operation, overlaps))))
            early, late = [], []
        elif is_pure(operation) or operation.name in _EARLY:
            early.append(operation)
        elif operation.name in _LATE:
            late.append(operation)
        else:
            found += _split(run, overlaps)
            run, early, late = [], [], []
    return found + _split(run, overlaps)


def _split(run: list[_Member], overlaps: Overlaps) -> list[_Group]:
    """Splits consecutive loops, with only movable operations in between, into groups."""
    found: list[_Group] = []
    start = 0
    while start < len(run):
        best = _longest(run[start:], overlaps)
        if best is not None:
            found.append(best)
        start += 1 if best is None else len(best.loops)
    return found


def _longest(run: list[_Member], overlaps: Overlaps) -> _Group | None:
    """The longest group that starts with the run's first loop: one over rows with reductions if
    possible, otherwise one over points."""
    first = run[0]
    for rank in sorted({member.rank for member in run if member.has_reduction}):
        if first.rank >= rank:
            members = _fitting(run, rank, overlaps)
            if len(members) > 1 and any(member.has_reduction for member in members):
                return _group(members, rank)
    points = list(itertools.takewhile(lambda member: not member.has_reduction, run))
    members = _fitting(points, first.rank, overlaps, of_points=True)
    return _group(members, first.rank) if len(members) > 1 else None


def _group(members: list[_Member], rank: int) -> _Group:
    has_reduction = any(member.has_reduction for member in members)
    group = _Group([member.loop for member in members], rank, has_reduction)
    for member in members[1:]:
        group.early += member.early
        group.late += member.late
    return group


def _fitting(
    run: list[_Member], rank: int, overlaps: Overlaps, *, of_points: bool = False
) -> list[_Member]:
    """The longest prefix of the run that can be fused with benefit, where the last loop shares
    memory with previous ones. Loops that share nothing are included if a later one does."""
    members = run[:1]
    fitting = 0  # members up to the last one that shares memory
    for member in run[1:_MOST_LOOPS]:
        loops = [other.loop for other in members]
        if not _may_follow(loops, rank, member.loop, overlaps):
            break
        if of_points and not (
            member.rank == rank and _have_same_access_order([*loops, member.loop])
        ):
            break
        shares = _shares(loops[: max(1, fitting)], member.loop, overlaps)
        members = [*members, member]
        fitting = len(members) if shares else fitting
    return members[:fitting]


def _rows(loop: Any) -> list[Any]:
    return list(loop.regions[0].blocks[0].arguments)


def _reductions(loop: Any, overlaps: Overlaps) -> list[Any]:
    """The reductions in the loop's body."""
    return [
        op
        for op in body_of(loop)
        if (op.name == "scf.for" and (len(op.results) > 0 or accumulates(op, overlaps)))
        or (op.name == "scf.parallel" and len(op.results) > 0)
    ]


def _may_follow(loops: list[Any], rank: int, loop: Any, overlaps: Overlaps) -> bool:
    """Whether the loop can be fused behind the others, row by row, with benefit."""
    first = loops[0]
    if len(_rows(loop)) < rank or _bounds(loop, rank) != _bounds(first, rank):
        return False
    if len(_requested_blocks([*loops, loop])) > 1:
        return False
    if not _is_worth_it([*loops, loop], rank, overlaps):
        return False
    earlier = [(other, access) for other in loops for access in accesses_in(other)]
    return all(
        _is_of_same_row((other, one), (loop, access), rank)
        for access in accesses_in(loop)
        for other, one in earlier
        if (one.writes or access.writes)
        and overlaps.may_overlap(one.memref, access.memref)
        and not are_disjoint(one.memref, access.memref)
    )


def _shares(loops: list[Any], loop: Any, overlaps: Overlaps) -> bool:
    """Whether the loop accesses memory that one of the others accesses."""
    theirs = {access.memref for other in loops for access in accesses_in(other)}
    ours = {access.memref for access in accesses_in(loop)}
    return any(overlaps.may_overlap(one, other) for one in theirs for other in ours)


def _requested_blocks(loops: list[Any]) -> set[Any]:
    """The block sizes that the loops request. A loop without a request takes another's."""
    return {op.attributes[BLOCK_ATTRIBUTE] for op in loops if BLOCK_ATTRIBUTE in op.attributes}


def _have_same_access_order(loops: list[Any]) -> bool:
    """Whether the loops access memory in the same order.

    They access it along their last dimension, or transposed along one common dimension, so that
    tiles of the fused loop are tiles of each.
    """
    transposed = {
        (a.writes, at) for loop in loops for a, at in _transposed_accesses(loop) if at is not None
    }
    stores = {at for loop in loops for a, at in _transposed_accesses(loop) if a.writes}
    return not transposed or (len(transposed) == 1 and len(stores) == 1)


def _transposed_accesses(loop: Any) -> list[tuple[Access, int | None]]:
    """The loop's accesses, each with the loop dimension that is contiguous in memory if the access
    is transposed (it also uses the loop's last dimension, as another index); otherwise with
    None."""
    rows = _rows(loop)
    return [
        (access, rows.index(access.indices[-1]) if is_transposed else None)
        for access in accesses_in(loop)
        for is_transposed in [
            len(access.indices) > 0
            and access.indices[-1] in rows[:-1]
            and rows[-1] in access.indices
        ]
    ]


def _is_worth_it(loops: list[Any], rank: int, overlaps: Overlaps) -> bool:
    """Whether fusion does not lose parallelism.

    Loops with more dimensions than the rows lose their threads to the rows. So they must be
    elementwise, and each row must be one that a block or warp computes.
    """
    if all(len(_rows(loop)) == rank for loop in loops):
        return True
    for loop in loops:
        if len(_rows(loop)) > rank and (
            any(len(op.regions) > 0 for op in body_of(loop)) or _is_transposed(loop, rank)
        ):
            return False
        if len(_rows(loop)) == rank and not all(
            _is_along_row(reduction, loop) for reduction in _reductions(loop, overlaps)
        ):
            return False
    return True


def _is_transposed(loop: Any, rank: int) -> bool:
    """Whether adjacent elements of a row are not adjacent in memory, so that tiles are better."""
    rows, columns = set(_rows(loop)[:rank]), set(_rows(loop)[rank:])
    return any(
        access.indices and access.indices[-1] in rows and columns & set(access.indices)
        for access in accesses_in(loop)
    )


def _is_along_row(reduction: Any, loop: Any) -> bool:
    """Whether a reduction is along rows that are long enough, and reads no other row."""
    rows = _rows(loop)
    inner = [op for op in ops.walk(reduction) if op.name in ("scf.for", "scf.parallel")]
    last = {op.regions[0].blocks[0].arguments[len(_variables(op)) - 1] for op in inner}
    loads = [a for a in accesses_in(reduction) if not a.writes and a.indices]
    counts = [count for op in inner for count in _counts(op)]
    return (
        any(a.indices[-1] in last and all(row in a.indices for row in rows) for a in loads)
        and not any(a.indices[-1] in rows and last & set(a.indices) for a in loads)
        and (None in counts or math.prod(count or 0 for count in counts) >= LEAST_COLUMNS)
    )


def _variables(loop: Any) -> list[Any]:
    arguments = list(loop.regions[0].blocks[0].arguments)
    return arguments if loop.name == "scf.parallel" else arguments[:1]


def _counts(loop: Any) -> list[int | None]:
    if loop.name == "scf.parallel":
        return loop_trips(loop)
    return [known_trips(*list(loop.operands)[:3])]


def _bounds(loop: Any, rank: int) -> list[Any]:
    """The bounds and steps of the first `rank` dimensions; equal for loops with the same rows."""
    return [
        value if (known := ops.known_index(value)) is None else known
        for group in ops.operand_groups(loop)[:3]
        for value in group[:rank]
    ]


def _is_of_same_row(one: tuple[Any, Access], other: tuple[Any, Access], rank: int) -> bool:
    """Whether two accesses only conflict in iterations of the same row: each dimension of the rows
    is an index of both, at the same position."""
    (loop, access), (other_loop, other_access) = one, other
    if access.memref != other_access.memref:
        return False
    pairs = list(zip(access.indices, other_access.indices, strict=True))
    return all((_rows(loop)[row], _rows(other_loop)[row]) in pairs for row in range(rank))


def _fuse(group: _Group) -> Any:
    first = group.loops[0]
    for operation in group.early:
        operation.move_before(first)
    lowers, uppers, steps, _ = ops.operand_groups(first)
    bounds = [part[: group.rank] for part in (lowers, uppers, steps)]
    with first.location, ir.InsertionPoint(first):
        fused = create_parallel(*bounds)
        for block in _requested_blocks(group.loops):
            fused.attributes[BLOCK_ATTRIBUTE] = block
    for operation in reversed(group.late):
        operation.move_after(fused)
    rows = _rows(fused)
    end = ops.terminator(fused.regions[0].blocks[0])
    for loop in group.loops:
        own = _rows(loop)
        target = end
        if len(own) > group.rank:
            parts = ops.operand_groups(loop)[:3]
            with loop.location, ir.InsertionPoint(end):
                inner = create_parallel(*(part[group.rank :] for part in parts))
            target = ops.terminator(inner.regions[0].blocks[0])
            new = [*rows, *_rows(inner)]
        else:
            new = rows
        for old, value in zip(own, new, strict=True):
            old.replace_all_uses_with(value)
        for operation in body_of(loop):
            operation.move_before(target)
        ops.erase(loop)
    return fused
