"""What a place in a program may use: variables, memories, and how far threads agree there."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from random import Random

from property.arithmetic import INTEGERS
from property.operations import OPERATIONS, operations_with
from property.program import (
    FLOATS,
    Constant,
    Expression,
    Id,
    Level,
    Load,
    Memory,
    Operation,
    Variable,
)

# What threads may do with a memory until the next barrier.
OWN, READ, ATOMIC = "own", "read", "atomic"


@dataclass(frozen=True)
class Mode:
    """`own`: each thread has an element, found by `way`; `read`: all may read all; `atomic`: all
    may update all by operations of the kind `way`."""

    what: str
    way: str = ""


# Ways from a thread's number to its element: each is a permutation.
OWN_WAYS = ("same", "reverse", "next", "half")


@dataclass(frozen=True)
class Known:
    """A variable, and among whom it is the same."""

    variable: Variable
    level: Level
    can_change: bool


@dataclass(frozen=True)
class Scope:
    """One place. Inner places have a copy with more in it."""

    # Among whom the way here is the same.
    level: Level
    known: tuple[Known, ...]
    memories: tuple[Memory, ...]
    # Values of private memories are the same among these.
    memory_levels: tuple[tuple[str, Level], ...]
    modes: tuple[tuple[str, Mode], ...]
    # Who is still here after returns: as `level`, and so for all that follows.
    floor: Level = Level.BLOCK
    # The modes that must hold where this body ends; None where that is all the same.
    entry_modes: tuple[tuple[str, Mode], ...] | None = None
    # Whether all around is of the form "cf", so that the function may be left here.
    may_return: bool = True
    # The innermost loop's level and modes, where all up to it is of the form "cf".
    break_level: Level | None = None
    break_modes: tuple[tuple[str, Mode], ...] = ()
    # The smallest of the levels of the loops around, and how often this place is passed.
    loop_level: Level | None = None
    turns: int = 1
    depth: int = 0

    def mode(self, name: str) -> Mode:
        return dict(self.modes)[name]

    def with_mode(self, name: str, mode: Mode) -> Scope:
        return replace(self, modes=tuple({**dict(self.modes), name: mode}.items()))

    def with_variable(self, variable: Variable, level: Level, *, can_change: bool) -> Scope:
        return replace(self, known=(*self.known, Known(variable, level, can_change)))

    def memory_level(self, name: str) -> Level:
        return dict(self.memory_levels)[name]

    def variables(self, type_: str, level: Level) -> list[Variable]:
        """Those of a type that are the same at least among `level`."""
        return [k.variable for k in self.known if k.variable.type == type_ and k.level <= level]

    def changeable(self) -> list[Known]:
        """What may be assigned to here: all of those who agree on it pass together."""
        return [k for k in self.known if k.can_change and k.level >= self.level]


_IDS = {
    Level.BLOCK: tuple(
        f"{name} {dimension}"
        for name in ("block_id", "block_dim", "grid_dim")
        for dimension in "xyz"
    ),
    Level.THREAD: tuple(
        f"{name} {dimension}" for name in ("thread_id", "global_id") for dimension in "xyz"
    ),
}
_SUBGROUP_IDS = {
    Level.BLOCK: ("num_subgroups", "subgroup_size"),
    Level.WARP: ("subgroup_id",),
    Level.THREAD: ("lane_id",),
}

_INTERESTING = {
    "i8": (0, 1, -1, 2, 127, -128, 85),
    "i32": (0, 1, -1, 2, 7, 255, 65536, 2**31 - 1, -(2**31), 0x55555555),
    "i64": (0, 1, -1, 3, 2**31, 2**32 + 1, 2**63 - 1, -(2**63), 0x123456789ABCDEF),
    "index": (0, 1, 2, 3, 5, 31, 32, 33, 1000),
    "f32": (0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 1e10, 2.0**-130, float("inf"), 16777216.0),
    "f64": (0.0, -0.0, 1.0, -2.5, 0.1, 1e300, 5e-324, 2.0**53, float("-inf")),
}


class Expressions:
    """Makes random expressions."""

    def __init__(self, rng: Random, *, has_subgroup_ids: bool) -> None:
        self._rng = rng
        self._has_subgroup_ids = has_subgroup_ids

    def constant(self, type_: str) -> Constant:
        rng = self._rng
        if type_ == "i1":
            return Constant(type_, rng.random() < 0.5)
        value = rng.choice(_INTERESTING[type_])
        if rng.random() < 0.5:
            value = rng.randint(-20, 20) if type_ not in FLOATS else rng.randint(-64, 64) / 8
            if type_ == "index":
                value = abs(value)
        # f32 takes 0.1 to be what f32 has for it.
        return Constant(type_, _rounded(value) if type_ == "f32" else value)

    def make(self, type_: str, scope: Scope, level: Level, depth: int) -> Expression:
        """An expression of a type that is the same at least among `level`."""
        rng = self._rng
        if depth <= 0 or rng.random() < 0.15:
            return self._leaf(type_, scope, level)
        roll = rng.random()
        if roll < 0.15:
            load = self._load(type_, scope, level, depth - 1)
            if load is not None:
                return load
        if roll < 0.2 and level < Level.THREAD and type_ in INTEGERS:
            return self._disguised(type_, scope, level, depth - 1)
        name = rng.choice(operations_with(type_))
        operands = OPERATIONS[name].operands
        # Trees of operations with three or four operands would be large.
        less = 1 if len(operands) < 3 else 2
        return Operation(
            type_, name, tuple(self.make(t, scope, level, depth - less) for t in operands)
        )

    def _leaf(self, type_: str, scope: Scope, level: Level) -> Expression:
        rng = self._rng
        candidates = scope.variables(type_, level)
        if candidates and rng.random() < 0.85:
            # The last ones more often: what was just computed is used.
            first = 0 if rng.random() < 0.5 else max(0, len(candidates) - 3)
            return rng.choice(candidates[first:])
        if type_ == "index" and rng.random() < 0.6:
            return self._id(level)
        return self.constant(type_)

    def _id(self, level: Level) -> Id:
        names: list[str] = []
        for among, found in _IDS.items():
            names += found if among <= level else ()
        if self._has_subgroup_ids:
            for among, found in _SUBGROUP_IDS.items():
                names += found if among <= level else ()
        return Id(self._rng.choice(names))

    def _disguised(self, type_: str, scope: Scope, level: Level, depth: int) -> Expression:
        """What is the same among all, by way of something that is not: x | (t * (t + 1) & 1)."""
        value = self.make(type_, scope, level, depth)
        others = scope.variables(type_, Level.THREAD)
        if not others:
            return value
        other, one = self._rng.choice(others), Constant(type_, 1)

        def binary(name: str, a: Expression, b: Expression) -> Expression:
            return Operation(type_, f"{name} {type_}", (a, b))

        even = binary("muli", other, binary("addi", other, one))
        return binary("ori", value, binary("andi", even, one))

    def condition(self, scope: Scope, level: Level, depth: int) -> Expression:
        """An i1; now and then one of which only its value tells that it is the same for all."""
        if level == Level.THREAD or self._rng.random() < 0.75:
            return self.make("i1", scope, level, depth)
        type_ = self._rng.choice(("i32", "index"))
        a = self._disguised(type_, scope, level, 1)
        b = self.make(type_, scope, level, 1)
        name = self._rng.choice(("eq", "slt", "ugt"))
        return Operation("i1", f"cmpi {name} {type_}", (a, b))

    def _load(self, type_: str, scope: Scope, level: Level, depth: int) -> Expression | None:
        candidates = [
            m for m in scope.memories if m.type == type_ and self._is_read(m, scope, level)
        ]
        if not candidates:
            return None
        memory = self._rng.choice(candidates)
        return Load(type_, memory.name, self.position(memory, scope, level, depth))

    def _is_read(self, memory: Memory, scope: Scope, level: Level) -> bool:
        if memory.space == "input":
            return True
        if memory.is_of_thread:
            return scope.memory_level(memory.name) <= level
        if memory.space == "sum" or memory.space == "output":
            return False
        mode = scope.mode(memory.name)
        return mode.what == READ or (mode.what == OWN and level == Level.THREAD)

    def position(self, memory: Memory, scope: Scope, level: Level, depth: int) -> Expression:
        """An element that may be touched here."""
        if memory.space in ("workgroup", "dynamic", "scratch"):
            mode = scope.mode(memory.name)
            if mode.what == OWN:
                return in_block(memory, own_position(mode.way))
            any_ = self.make("index", scope, level, depth)
            return in_block(memory, Operation("index", "modulo index", (any_, THREADS)))
        any_ = self.make("index", scope, level, depth)
        return Operation("index", "modulo index", (any_, Constant("index", memory.size)))


# Variables that every function declares first.
LINEAR = Variable("index", "linear")
THREADS = Variable("index", "threads")
BLOCK = Variable("index", "block")


def own_position(way: str) -> Expression:
    """The element of this thread: of the `threads` first of a block's memory."""

    def binary(name: str, a: Expression, b: Expression) -> Expression:
        return Operation("index", f"{name} index", (a, b))

    match way:
        case "reverse":
            last = binary("subi", THREADS, Constant("index", 1))
            return binary("subi", last, LINEAR)
        case "next":
            return binary("modulo", binary("addi", LINEAR, Constant("index", 1)), THREADS)
        case "half":
            half = binary("quotient", THREADS, Constant("index", 2))
            return binary("modulo", binary("addi", LINEAR, half), THREADS)
        case _:
            return LINEAR


def in_block(memory: Memory, position: Expression) -> Expression:
    """The position in the block's part of a memory that all blocks have together."""
    if memory.space != "scratch":
        return position
    first = Operation("index", "muli index", (BLOCK, THREADS))
    return Operation("index", "addi index", (first, position))


def _rounded(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])
