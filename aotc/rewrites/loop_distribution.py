"""Affine loops around several statements → loops around each of them (loop distribution).

Loops whose iterations share no element that is written may run a statement for all iterations
before the next statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.mlir import ir

_LOOP = "affine.for"
_CONSTANT = "arith.constant"
_ACCESSES = {"affine.load": 0, "affine.store": 1}
_COMPUTING = ("arith.", "math.")
_STRUCTURE = (_LOOP, "affine.yield", "affine.apply", "memref.dim")


def distribute(outermost: Any) -> list[Any]:
    """Loops in front of `outermost` that are the same together, each a copy around one statement:
    none where there is one statement, or an iteration may depend on another. The original stays."""
    pieces: list[Any] = []
    chain = list(_chain(outermost))
    groups = _groups(_body(chain[-1]))
    if len(groups) < 2 or not all(map(iterations_are_apart, chain)):
        return []
    for group in groups:
        copy = outermost.clone(ir.InsertionPoint(outermost)).operation
        inner = list(_chain_of(copy, len(chain)))[-1]
        kept = {number for number, _ in group}
        for number, operation in reversed(list(enumerate(_body(inner)))):
            if operation.name != _CONSTANT and number not in kept:
                operation.erase()
        pieces += distribute_further(copy)
    return pieces


def distribute_further(loop: Any) -> list[Any]:
    """The loops that `distribute` makes of one that is made, in its place; else this one."""
    pieces = distribute(loop)
    if not pieces:
        return [loop]
    loop.erase()
    return pieces


def iterations_are_apart(loop: Any) -> bool:
    """Whether all that the loop writes has its variable among the indices, at the same place in
    every access: then no two iterations access one element that is written."""
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
    """The dimensions of an access whose index is the variable alone."""
    map_ = ir.AffineMapAttr(access.attributes["map"]).value
    found = set()
    for dimension, expression in enumerate(map_.results):
        if isinstance(expression, ir.AffineDimExpr) and indices[expression.position] == variable:
            found.add(dimension)
    return found


def _chain(loop: Any) -> Iterator[Any]:
    """The loop, and those that are in each other with nothing beside them."""
    yield loop
    inside = [op for op in _body(loop) if op.name != _CONSTANT]
    if len(inside) == 1 and inside[0].name == _LOOP and not len(inside[0].results):
        yield from _chain(inside[0])


def _chain_of(loop: Any, count: int) -> Iterator[Any]:
    """The first loops of a chain."""
    yield loop
    if count > 1:
        (inner,) = (op for op in _body(loop) if op.name != _CONSTANT)
        yield from _chain_of(inner, count - 1)


def _groups(body: list[Any]) -> list[list[tuple[int, Any]]]:
    """The operations by statements, with their numbers in the body: what uses a value is in the
    statement that computes it, and so is what is between. Constants are in all."""
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


def _body(loop: Any) -> list[Any]:
    """The operations in a loop but its end."""
    *body, _ = (op.operation for op in loop.regions[0].blocks[0].operations)
    return body
