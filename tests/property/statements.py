"""Makes random statements: each from a scope, with the scope of what follows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from property.exchanges import Exchanges
from property.features import Features
from property.program import (
    FLOATS,
    WARP,
    Assign,
    Atomic,
    Barrier,
    Body,
    Break,
    Call,
    Constant,
    Expression,
    For,
    Function,
    If,
    Let,
    Level,
    Memory,
    Operation,
    Return,
    Statement,
    Store,
    Switch,
    Variable,
    While,
)
from property.scope import (
    ATOMIC,
    LINEAR,
    OWN,
    OWN_WAYS,
    READ,
    THREADS,
    Expressions,
    Mode,
    Scope,
    in_block,
    own_position,
)

_TYPES = ("i32", "i32", "i32", "i64", "index", "f32", "f32", "f64", "i8", "i1")
_ATOMIC_KINDS = ("addi", "andi", "ori", "xori", "maxs", "mins", "maxu", "minu")
# More passes of one place would make programs slow to evaluate, and show nothing else.
_MOST_TURNS = 40
_MOST_DEPTH = 3

Made = tuple[list[Statement], Scope]


@dataclass(frozen=True)
class Callee:
    """A function, and what its callers must know."""

    function: Function
    level: Level
    parameter_levels: tuple[Level, ...]
    result_levels: tuple[Level, ...]
    modes: tuple[tuple[str, Mode], ...]


class Statements:
    """Makes random statements for the functions of one program."""

    def __init__(
        self,
        rng: Random,
        threads: int,
        features: Features,
    ) -> None:
        self._rng = rng
        self._count = 0
        self.callees: Sequence[Callee] = ()
        self.expressions = Expressions(rng, has_subgroup_ids=features.subgroup_ids)
        self._exchanges = Exchanges(rng, self.expressions, threads, self._name)
        self._features = features
        # What lanes that do not exist would add to a reduction is undefined on GPUs.
        self._has_whole_warps = threads % WARP == 0

    def _name(self, start: str) -> str:
        self._count += 1
        return f"{start}{self._count}"

    # Bodies

    def several(self, scope: Scope, count: int) -> Made:
        statements: list[Statement] = []
        for _ in range(count):
            made, scope = self.one(scope)
            statements += made
        return statements, scope

    def one(self, scope: Scope) -> Made:
        names = (
            ["let"] * (5 if scope.depth == 0 else 2)
            + ["assign"] * 6
            + ["store"] * 4
            + ["atomic"] * 2
        )
        if scope.depth < _MOST_DEPTH:
            names += ["if"] * 3 + ["switch"] + ["for"] * 2 + ["while"] * 2
        if scope.level == Level.BLOCK:
            names += ["barrier"] * 4
            names += ["all_reduce"] if self._features.block_reductions else []
        if scope.level <= Level.WARP:
            # Where there is no barrier, they are what makes the place worth having.
            often = 1 if scope.level == Level.BLOCK else 3
            names += [*["shuffle"] * 2, "ballot"] * often if self._features.shuffles else []
            if self._features.warp_reductions and self._has_whole_warps:
                names += ["subgroup_reduce"] * often
        if self.callees:
            names += ["call"] * 2
        if scope.may_return:
            names += ["return"]
        if scope.break_level is not None:
            names += ["break"] * 3
        return self.one_of(names, scope)

    def one_of(self, names: Sequence[str], scope: Scope) -> Made:
        name = self._rng.choice(names)
        match name:
            case "shuffle":
                return self._exchanges.shuffle(scope)
            case "ballot":
                return self._exchanges.ballot(scope)
            case "all_reduce":
                return self._exchanges.reduce(scope, Level.BLOCK)
            case "subgroup_reduce":
                return self._exchanges.reduce(scope, Level.WARP)
            case _:
                made: Made = getattr(self, f"_{name}")(scope)
                return made

    def back_to_entry(self, scope: Scope) -> list[Statement]:
        """A barrier, where a body that must end as it began has changed the modes."""
        if scope.entry_modes is None or dict(scope.modes) == dict(scope.entry_modes):
            return []
        return [Barrier()]

    def _inner(self, outer: Scope, count: int, **changes: object) -> tuple[Body, Scope]:
        """A body inside a statement; and the scope behind it, which knows who returned."""
        inside = replace(outer, depth=outer.depth + 1, entry_modes=outer.modes)
        made, end = self.several(replace(inside, **changes), count)  # type: ignore[arg-type]
        body = (*made, *self.back_to_entry(end))
        return body, _after_returns(outer, end)

    # Variables

    def declare(
        self, type_: str, scope: Scope, among: Level
    ) -> tuple[list[Statement], Scope, Variable]:
        variable = Variable(type_, self._name("x"))
        value = self.expressions.make(type_, scope, among, self._rng.randint(0, 3))
        can_change = self._rng.random() < 0.8
        return (
            [Let(variable.name, value)],
            scope.with_variable(variable, among, can_change=can_change),
            variable,
        )

    def _let(self, scope: Scope) -> Made:
        among = self._rng.choice([level for level in Level if level >= scope.level])
        made, scope, _ = self.declare(self._rng.choice(_TYPES), scope, among)
        return made, scope

    def _assign(self, scope: Scope) -> Made:
        candidates = scope.changeable()
        if not candidates:
            return self._let(scope)
        known = self._rng.choice(candidates)
        variable = known.variable
        value = self.expressions.make(variable.type, scope, known.level, self._rng.randint(1, 3))
        return [Assign(variable.name, value)], scope

    # Memory

    def first_stores(self, memory: Memory, scope: Scope) -> list[Statement]:
        """Writes what is read later: each thread its own part of a memory without values."""
        if memory.is_of_block:
            value = self.expressions.make(memory.type, scope, Level.THREAD, 2)
            return [Store(memory.name, in_block(memory, own_position("same")), value)]
        if memory.is_of_thread:
            level = scope.memory_level(memory.name)
            return [
                Store(
                    memory.name,
                    Constant("index", place),
                    self.expressions.make(memory.type, scope, level, 1),
                )
                for place in range(memory.size)
            ]
        return []

    def _store(self, scope: Scope) -> Made:
        candidates = [m for m in scope.memories if self._may_store(m, scope)]
        if not candidates:
            return self._let(scope)
        memory = self._rng.choice(candidates)
        among = scope.memory_level(memory.name) if memory.is_of_thread else Level.THREAD
        value = self.expressions.make(memory.type, scope, among, self._rng.randint(1, 3))
        return [
            Store(memory.name, self.expressions.position(memory, scope, among, 2), value)
        ], scope

    def _may_store(self, memory: Memory, scope: Scope) -> bool:
        if memory.is_of_thread:
            return scope.level <= scope.memory_level(memory.name)
        if memory.space in ("workgroup", "dynamic", "scratch"):
            return scope.mode(memory.name).what == OWN
        return False

    def _atomic(self, scope: Scope) -> Made:
        modes = dict(scope.modes)
        candidates = [m for m in scope.memories if m.name in modes and modes[m.name].what == ATOMIC]
        if not candidates:
            return self._store(scope)
        memory = self._rng.choice(candidates)
        if memory.type in FLOATS:
            # Small integers: their sum is exact, whatever the order.
            value = _small_float(self.expressions.make("i32", scope, Level.THREAD, 2))
        else:
            value = self.expressions.make(memory.type, scope, Level.THREAD, 2)
        place = self.expressions.position(memory, scope, Level.THREAD, 2)
        is_generic = self._rng.random() < 0.3
        return [Atomic(modes[memory.name].way, memory.name, place, value, is_generic)], scope

    def _barrier(self, scope: Scope) -> Made:
        if scope.level != Level.BLOCK:
            return self._let(scope)
        for name, mode in scope.modes:
            memory = next(m for m in scope.memories if m.name == name)
            if memory.space != "sum" and self._rng.random() < 0.6:
                scope = scope.with_mode(name, self.random_mode(memory, mode))
        return [Barrier()], scope

    def random_mode(self, memory: Memory, before: Mode) -> Mode:
        if memory.space == "sum":
            return before
        what = self._rng.choice((OWN, READ, READ, ATOMIC))
        if what == ATOMIC and memory.type in ("i32", "i64"):
            return Mode(ATOMIC, self._rng.choice(_ATOMIC_KINDS))
        return Mode(OWN, self._rng.choice(OWN_WAYS)) if what == OWN else Mode(READ)

    # Ways

    def _condition(self, scope: Scope) -> tuple[Expression, Level]:
        """A condition, and among whom it is the same: those here, or fewer."""
        levels = (Level.BLOCK, Level.BLOCK, Level.WARP, Level.WARP, Level.THREAD, Level.THREAD)
        among = self._rng.choice([level for level in levels if level >= scope.level])
        return self.expressions.condition(scope, among, 3), among

    def _if(self, scope: Scope) -> Made:
        condition, among = self._condition(scope)
        form = self._rng.choice(("scf", "cf"))
        inside = replace(scope, level=among)
        if form == "scf":
            inside = _closed(inside)
        then, after = self._inner(inside, self._rng.randint(1, 3))
        inside = replace(inside, floor=after.floor, level=max(inside.level, after.floor))
        count = self._rng.choice((0, 1, 2))
        otherwise, after = self._inner(inside, count) if count else ((), after)
        return [If(condition, then, otherwise, form)], _after_returns(scope, after)

    def _switch(self, scope: Scope) -> Made:
        among = self._condition(scope)[1]
        any_ = self.expressions.make("index", scope, among, 2)
        selector = Operation("index", "modulo index", (any_, Constant("index", 4)))
        inside = _closed(replace(scope, level=among))
        count = self._rng.randint(2, 4)
        bodies = [self._inner(inside, self._rng.randint(1, 2))[0] for _ in range(count)]
        return [Switch(selector, tuple(bodies))], scope

    def _loop(self, scope: Scope, form: str, level: Level, turns: int) -> dict[str, object]:
        """What is different inside a loop."""
        changes: dict[str, object] = {
            "level": level,
            "turns": scope.turns * turns,
            "loop_level": level if scope.loop_level is None else min(level, scope.loop_level),
            "break_level": level if form == "cf" else None,
            "break_modes": scope.modes,
        }
        return changes if form == "cf" else {**changes, "may_return": False}

    def _for(self, scope: Scope) -> Made:
        rng = self._rng
        form = rng.choice(("scf", "scf", "cf"))
        turns = rng.randint(1, 4)
        if scope.turns * turns > _MOST_TURNS:
            return self._assign(scope)
        level, position_level = scope.level, scope.level
        type_ = rng.choice(("index", "index", "i32"))
        made: list[Statement] = []
        low: Expression = Constant(type_, rng.randint(0, 2))
        step: Expression = Constant(type_, 1)
        match rng.choice(("constant", "computed", "stride", "offset")):
            case "stride" if type_ == "index":
                # From the thread's number on, in steps of all threads: as many for each.
                low, step, position_level = LINEAR, THREADS, Level.THREAD
                high = _binary("muli", THREADS, Constant("index", turns))
            case "offset":
                # The bounds depend on the thread, their distance does not.
                first = Variable(type_, self._name("low"))
                any_ = self.expressions.make(type_, scope, Level.THREAD, 2)
                made.append(Let(first.name, _binary("modulo", any_, Constant(type_, 50))))
                low, high = first, _binary("addi", first, Constant(type_, turns))
                position_level = Level.THREAD
            case "computed":
                level = position_level = self._condition(scope)[1]
                any_ = self.expressions.make(type_, scope, level, 2)
                high = _binary("addi", low, _binary("modulo", any_, Constant(type_, turns + 1)))
            case _:
                step = Constant(type_, rng.randint(1, 2))
                high = _binary("addi", low, Constant(type_, turns))
        position = Variable(type_, self._name("i"))
        inside = scope.with_variable(position, position_level, can_change=False)
        changes = self._loop(scope, form, level, turns)
        body, after = self._inner(inside, rng.randint(1, 4), **changes)
        made.append(For(position.name, low, high, step, body, form))
        return made, _after_returns(scope, after)

    def _while(self, scope: Scope) -> Made:
        rng = self._rng
        form = rng.choice(("scf", "do", "cf"))
        turns = rng.randint(1, 4)
        if scope.turns * turns > _MOST_TURNS:
            return self._assign(scope)
        condition, level = self._condition(scope)
        counter = Variable(rng.choice(("i32", "index")), self._name("turn"))
        type_ = counter.type
        limit = Constant(type_, turns)
        more = Operation("i1", f"cmpi slt {type_}", (counter, limit))
        is_random = rng.random() < 0.8
        condition = Operation("i1", "andi i1", (more, condition)) if is_random else more
        inside = scope.with_variable(counter, level, can_change=False)
        body, after = self._inner(
            inside, rng.randint(1, 4), **self._loop(scope, form, level, turns)
        )
        step = Assign(counter.name, _binary("addi", counter, Constant(type_, 1)))
        loop = While(condition, (step, *body), form)
        return [Let(counter.name, Constant(type_, 0)), loop], _after_returns(scope, after)

    def _break(self, scope: Scope) -> Made:
        condition, among = self._condition(scope)
        if (
            scope.break_level is None
            or among > scope.break_level
            or dict(scope.modes) != dict(scope.break_modes)
        ):
            return self._assign(scope)
        return [Break(condition)], scope

    def _return(self, scope: Scope) -> Made:
        condition, among = self._condition(scope)
        if scope.loop_level is not None and among > scope.loop_level:
            return self._assign(scope)
        if scope.entry_modes is not None and (
            among != Level.BLOCK or dict(scope.modes) != dict(scope.entry_modes)
        ):
            return self._assign(scope)
        return [Return(condition)], replace(
            scope, level=max(scope.level, among), floor=max(scope.floor, among)
        )

    def _call(self, scope: Scope) -> Made:
        candidates = [callee for callee in self.callees if callee.level >= scope.level]
        if not candidates:
            return self._assign(scope)
        callee = self._rng.choice(candidates)
        made: list[Statement] = []
        modes = dict(scope.modes)
        if any(modes.get(name) != mode for name, mode in callee.modes):
            if scope.level != Level.BLOCK or any(name not in modes for name, _ in callee.modes):
                return self._assign(scope)
            made.append(Barrier())
            for name, mode in callee.modes:
                scope = scope.with_mode(name, mode)
        function = callee.function
        arguments = tuple(
            self.expressions.make(parameter.type, scope, among, 2)
            for parameter, among in zip(function.parameters, callee.parameter_levels, strict=True)
        )
        names = tuple(self._name("r") for _ in function.results)
        made.append(Call(names, function.name, arguments))
        for name, result, among in zip(names, function.results, callee.result_levels, strict=True):
            variable = Variable(result.type, name)
            scope = scope.with_variable(variable, max(among, scope.level), can_change=True)
        return made, scope


def _after_returns(outer: Scope, inner: Scope) -> Scope:
    """The scope behind a statement, out of which some threads may not come."""
    floor = max(outer.floor, inner.floor)
    return replace(outer, floor=floor, level=max(outer.level, floor))


def _closed(scope: Scope) -> Scope:
    """Inside an scf operation: nothing around it can be left."""
    return replace(scope, may_return=False, break_level=None)


def _binary(name: str, a: Expression, b: Expression) -> Expression:
    return Operation(a.type, f"{name} {a.type}", (a, b))


def _small_float(value: Expression) -> Expression:
    masked = Operation("i32", "andi i32", (value, Constant("i32", 15)))
    return Operation("f32", "sitofp i32 to f32", (masked,))
