"""A failing program → a smaller one that fails in the same way.

Candidates are tried many at a time, in one module: the build is what takes the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import Any

from property.batch import Verdict
from property.evaluate import InvalidProgramError, evaluate
from property.inputs import input_files, inputs_of
from property.mlir_text import module_text
from property.program import (
    Assign,
    Body,
    Call,
    Constant,
    Expression,
    If,
    Load,
    Operation,
    Program,
    Statement,
    Switch,
    Variable,
    bodies_of,
)

# Builds and runs programs; a verdict for each.
Judge = Callable[[Sequence[Program]], list[Verdict]]

_AT_ONCE = 16


def shrink(verdict: Verdict, judge: Judge, seconds: float) -> Verdict:
    """The smallest failing program that is found in about this time, as its verdict."""
    best = verdict
    tried: set[Program] = set()
    deadline = time.monotonic() + seconds
    while (smaller := _smaller(best, judge, tried, deadline)) is not None:
        best = smaller
    return best


def _smaller(
    verdict: Verdict, judge: Judge, tried: set[Program], deadline: float
) -> Verdict | None:
    """A smaller program that fails as well, or None; none is tried after `deadline`.

    `tried` has those that did not fail, or have no meaning.
    """
    name, size = verdict.program.name, _size(verdict.program)
    fitting = (c for c in _candidates(verdict.program) if _size(c) < size and _is_new(c, tried))
    # Where the build fails, the module of many would fail for all of them.
    at_once = 1 if verdict.kind == "build" else _AT_ONCE
    while some := list(islice(fitting, at_once)):
        if time.monotonic() > deadline:
            return None
        named = [_renamed(program, f"{name}_{number}") for number, program in enumerate(some)]
        found = [v for v in judge(named) if v.signature == verdict.signature]
        if found:
            smallest = min(found, key=lambda v: _size(v.program))
            return replace(smallest, program=_renamed(smallest.program, name))
    return None


def _is_new(program: Program, tried: set[Program]) -> bool:
    """Whether it was not tried before, and means something."""
    if program in tried:
        return False
    tried.add(program)
    return _is_valid(program)


def _renamed(program: Program, name: str) -> Program:
    """Under another name, that of its functions too."""
    names = {f.name: f"{name}_helper{number}" for number, f in enumerate(program.functions)}

    def rename(node: Any) -> Any:
        if isinstance(node, Call):
            node = replace(node, function=names[node.function])
        return node

    functions = tuple(
        replace(_mapped(function, rename), name=names[function.name])
        for function in program.functions
    )
    body = _mapped(program.body, rename)
    return replace(program, name=name, functions=functions, body=body)


def _mapped(node: Any, function: Any) -> Any:
    if isinstance(node, tuple):
        return tuple(_mapped(item, function) for item in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {f.name: _mapped(getattr(node, f.name), function) for f in fields(node) if f.init}
    return function(replace(node, **changed))


def _size(program: Program) -> int:
    """About the number of nodes, and a little for large blocks."""
    weight = sum(_node_count(function.body) + 5 for function in program.functions)
    launch = program.threads.bit_length() + program.blocks.bit_length()
    launch += program.has_known_block_size
    return weight + _node_count(program.body) + 2 * len(program.memories) + launch


def _node_count(node: Any) -> int:
    if isinstance(node, tuple):
        return sum(_node_count(item) for item in node)
    if not is_dataclass(node) or isinstance(node, type):
        return 0
    return 1 + sum(_node_count(getattr(node, f.name)) for f in fields(node))


def _is_valid(program: Program) -> bool:
    """Whether it still means something: no race, no name that is not there, no stray break."""
    try:
        module_text([program])
        evaluate(program, inputs_of(program, input_files()))
    except (InvalidProgramError, KeyError, AssertionError):
        return False
    return True


def _candidates(program: Program) -> Iterator[Program]:
    for block, grid in (((1, 1, 1), (1, 1, 1)), ((2, 1, 1), (1, 1, 1)), (program.block, (1, 1, 1))):
        if _has_room(program, block):
            yield _with_sizes(program, block, grid)
    yield replace(program, has_known_block_size=False)
    for body in _smaller_bodies(program.body):
        yield _without_unused(replace(program, body=body))
    for number, function in enumerate(program.functions):
        for body in _smaller_bodies(function.body):
            functions = list(program.functions)
            functions[number] = replace(function, body=body)
            yield _without_unused(replace(program, functions=tuple(functions)))


def _has_room(program: Program, block: tuple[int, int, int]) -> bool:
    return block[0] * block[1] * block[2] <= program.threads


def _with_sizes(
    program: Program, block: tuple[int, int, int], grid: tuple[int, int, int]
) -> Program:
    """Another launch; memories that have a part for each thread or block fit it."""
    smaller = replace(program, block=block, grid=grid)
    count = smaller.threads * smaller.blocks
    memories = []
    for memory in program.memories:
        if memory.space in ("scratch", "output"):
            memory = replace(memory, shape=(count,))
        elif memory.space == "dynamic":
            memory = replace(memory, shape=(smaller.threads,))
        memories.append(memory)
    functions = tuple(
        replace(f, memories=tuple(m for m in memories if m.name in {n.name for n in f.memories}))
        for f in smaller.functions
    )
    return replace(smaller, memories=tuple(memories), functions=functions)


def _without_unused(program: Program) -> Program:
    """Without functions, memories and scalars that nothing names any more."""
    called = {node.function for node in _nodes((program.body, program.functions)) if _is_call(node)}
    functions = [f for f in program.functions if f.name in called]
    names = {name for node in _nodes((program.body, *functions)) for name in _names(node)}
    kept = [m for m in program.memories if m.name in names or m.space == "output"]
    functions = [replace(f, memories=tuple(m for m in f.memories if m in kept)) for f in functions]
    return replace(
        program,
        functions=tuple(functions),
        memories=tuple(kept),
        scalars=tuple((v, value) for v, value in program.scalars if v.name in names),
    )


def _is_call(node: Any) -> bool:
    return isinstance(node, Call)


def _names(node: Any) -> list[str]:
    if isinstance(node, Variable):
        return [node.name]
    memory = getattr(node, "memory", None)
    return [memory] if isinstance(memory, str) else []


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for item in node:
            yield from _nodes(item)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        for field in fields(node):
            yield from _nodes(getattr(node, field.name))


def _smaller_bodies(body: Body) -> Iterator[Body]:
    # Halves and quarters first: most of a program has nothing to do with its failure.
    for size in (len(body) // 2, len(body) // 4, 3, 1):
        if size > 0:
            for first in range(0, len(body), size):
                yield (*body[:first], *body[first + size :])
    for number, statement in enumerate(body):
        for instead in _instead_of(statement):
            yield (*body[:number], *instead, *body[number + 1 :])


def _instead_of(statement: Statement) -> Iterator[Body]:
    yield from bodies_of(statement)
    if isinstance(statement, If):
        for then in _smaller_bodies(statement.then):
            yield (replace(statement, then=then),)
        for otherwise in _smaller_bodies(statement.otherwise):
            yield (replace(statement, otherwise=otherwise),)
    elif isinstance(statement, Switch):
        for number, inner in enumerate(statement.bodies):
            for smaller in _smaller_bodies(inner):
                bodies = list(statement.bodies)
                bodies[number] = smaller
                yield (replace(statement, bodies=tuple(bodies)),)
    elif bodies_of(statement):
        for smaller in _smaller_bodies(bodies_of(statement)[0]):
            yield (_with(statement, body=smaller),)
    if isinstance(statement, Assign) and isinstance(statement.value, Variable):
        return
    for field in fields(statement):
        value = getattr(statement, field.name)
        if isinstance(value, Operation | Load):
            for simpler in _simpler(value):
                yield (_with(statement, **{field.name: simpler}),)
        elif field.name == "arguments":
            for number, argument in enumerate(value):
                for simpler in _simpler(argument):
                    arguments = (*value[:number], simpler, *value[number + 1 :])
                    yield (_with(statement, arguments=arguments),)


def _with(statement: Any, **changes: Any) -> Any:
    """`replace`, for what is not known to have these fields before it runs."""
    return replace(statement, **changes)


def _simpler(expression: Expression) -> Iterator[Expression]:
    """Expressions of the same type with fewer nodes."""
    if isinstance(expression, Constant | Variable):
        return
    yield Constant(expression.type, 1 if expression.type != "i1" else True)
    if isinstance(expression, Operation):
        for number, operand in enumerate(expression.operands):
            if operand.type == expression.type:
                yield operand
            for simpler in _simpler(operand):
                operands: Sequence[Expression] = (
                    *expression.operands[:number],
                    simpler,
                    *expression.operands[number + 1 :],
                )
                yield replace(expression, operands=tuple(operands))
    elif isinstance(expression, Load):
        for simpler in _simpler(expression.index):
            yield replace(expression, index=simpler)
