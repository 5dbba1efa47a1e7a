"""Affine loops around several statements → one loop nest for each statement (loop distribution).

If no two iterations access an element that is written, all iterations of one statement may run
before those of the next statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of

_LOOP = "affine.for"
_CONSTANT = "arith.constant"
_ACCESSES = {"affine.load": 0, "affine.store": 1}
_COMPUTING = ("arith.", "math.")
_STRUCTURE = (_LOOP, "affine.yield", "affine.apply", "memref.dim")


def distribute(outermost: Any) -> list[Any]:
    """Creates loops before `outermost` that are equivalent to it, each a copy with one
    statement. Returns none if there is only one statement, or if an iteration may depend on
    another. The original is not erased."""
    pieces: list[Any] = []
    chain = list(_chain(outermost))
    groups = _groups(body_of(chain[-1]))
    if len(groups) < 2 or not all(map(iterations_are_apart, chain)):
        return []
    for group in groups:
        copy = outermost.clone(ir.InsertionPoint(outermost)).operation
        inner = list(_chain_of(copy, len(chain)))[-1]
        kept = {number for number, _ in group}
        for number, operation in reversed(list(enumerate(body_of(inner)))):
            if operation.name != _CONSTANT and number not in kept:
                operation.erase()
        pieces += distribute_further(copy)
    return pieces


def distribute_further(loop: Any) -> list[Any]:
    """Replaces a new loop by the loops that `distribute` makes of it; returns these, or the
    loop."""
    pieces = distribute(loop)
    if not pieces:
        return [loop]
    loop.erase()
    return pieces


def iterations_are_apart(loop: Any) -> bool:
    """Whether no two iterations access an element that the loop writes. That is so if, for each
    memref that is written, some dimension has the induction variable as its index in every
    access."""
    variable = loop.regions[0].blocks[0].arguments[0]
    places: dict[Any, list[set[int]]] = {}
    written = []
    for operation in ops.walk(loop):
        if operation.name in _ACCESSES:
            operand = _ACCESSES[operation.name]
            memref, *indices = list(operation.operands)[operand:]
            places.setdefault(memref, []).append(_places_of(variable, operation, indices))
            if operand == 1:
                written.append(memref)
        elif not (operation.name.startswith(_COMPUTING) or operation.name in _STRUCTURE):
            return False
    if len(loop.results):
        return False
    return all(ops.is_made_outside(one, loop) for one in places) and all(
        set.intersection(*places[one]) for one in written
    )


def _places_of(variable: Any, access: Any, indices: list[Any]) -> set[int]:
    """The dimensions of an access whose index is the induction variable alone."""
    map_ = ir.AffineMapAttr(access.attributes["map"]).value
    found = set()
    for dimension, expression in enumerate(map_.results):
        if isinstance(expression, ir.AffineDimExpr) and indices[expression.position] == variable:
            found.add(dimension)
    return found


def _chain(loop: Any) -> Iterator[Any]:
    """The loops of a perfect nest, the outermost first (constants may be between them)."""
    yield loop
    inside = [op for op in body_of(loop) if op.name != _CONSTANT]
    if len(inside) == 1 and inside[0].name == _LOOP and not len(inside[0].results):
        yield from _chain(inside[0])


def _chain_of(loop: Any, count: int) -> Iterator[Any]:
    """The first `count` loops of a perfect nest."""
    yield loop
    if count > 1:
        (inner,) = (op for op in body_of(loop) if op.name != _CONSTANT)
        yield from _chain_of(inner, count - 1)


def _groups(body: list[Any]) -> list[list[tuple[int, Any]]]:
    """The operations, grouped by statement, with their numbers in the body. An operation that uses
    a value is in the statement that computes it, as are all operations between the two. Constants
    are left out: every copy keeps them."""
    numbered = [(i, op) for i, op in enumerate(body) if op.name != _CONSTANT]
    groups: list[list[tuple[int, Any]]] = []
    for number, operation in numbered:
        inside = ops.walk(operation)
        used = {operand for inner in inside for operand in inner.operands}
        group = [(number, operation)]
        first = len(groups)
        for i, earlier in enumerate(groups):
            if any(result in used for _, made in earlier for result in made.results):
                first = i
                break
        for merged in reversed(groups[first:]):
            group = merged + group
        groups[first:] = [group]
    return groups
