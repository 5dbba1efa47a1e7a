"""Makes random statements by which the threads of a warp or of a block exchange values."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from property.program import (
    WARP,
    Ballot,
    Constant,
    Expression,
    Id,
    Let,
    Level,
    Operation,
    Reduce,
    Shuffle,
    Statement,
    Variable,
)
from property.scope import LINEAR, THREADS, Expressions, Scope

_INTEGER_KINDS = ("add", "mul", "and", "or", "xor", "maxsi", "minsi", "maxui", "minui")
# Of small integers that are not negative: exact in any order.
_FLOAT_KINDS = ("add", "maximumf", "minimumf", "maxnumf", "minnumf")

Made = tuple[list[Statement], Scope]


class Exchanges:
    """`threads`: of a block. The last warp has fewer lanes where it does not divide by 32."""

    def __init__(
        self, rng: Random, expressions: Expressions, threads: int, name: Callable[[str], str]
    ) -> None:
        self._rng = rng
        self._expressions = expressions
        self._is_whole = threads % WARP == 0
        self._name = name

    def shuffle(self, scope: Scope) -> Made:
        rng = self._rng
        mode = rng.choice(("xor", "up", "down", "idx", "idx", "rotate", "broadcast"))
        type_ = rng.choice(("i32", "f32", "i64", "f64", "i8", "i1"))
        among = max(scope.level, rng.choice((Level.BLOCK, Level.WARP)))
        if mode == "idx" and rng.random() < 0.6:
            among = Level.THREAD
        by = Variable("i32", self._name("by"))
        raw, valid = Variable(type_, self._name("raw")), Variable("i1", self._name("valid"))
        found = Variable(type_, self._name("got"))
        any_ = self._expressions.make("i32", scope, among, 2)
        if mode == "rotate":
            any_ = Constant("i32", rng.randint(0, WARP - 1))
        value = self._expressions.make(type_, scope, Level.THREAD, 2)
        instead = self._expressions.make(type_, scope, Level.BLOCK, 1)
        exists = self._exists(mode, by, valid)
        chosen: Expression = raw
        if exists is not None:
            chosen = Operation(type_, f"select {type_}", (exists, raw, instead))
        made: list[Statement] = [
            Let(by.name, _i32("andi", any_, Constant("i32", WARP - 1))),
            Shuffle(raw.name, valid.name, mode, value, by if mode != "rotate" else any_),
            Let(found.name, chosen),
        ]
        found_level = among if mode in ("idx", "broadcast") else Level.THREAD
        scope = scope.with_variable(valid, Level.THREAD, can_change=False)
        scope = scope.with_variable(found, max(Level.WARP, found_level), can_change=True)
        return made, scope

    def _exists(self, mode: str, by: Variable, valid: Variable) -> Expression | None:
        """Whether there is a lane to take the value from; None where there always is."""
        if self._is_whole:
            return valid if mode in ("up", "down") else None
        if mode == "up":
            return valid
        lane = Operation("i32", "index_cast index to i32", (Id("lane_id"),))
        source = {
            "xor": _i32("xori", lane, by),
            "down": _i32("addi", lane, by),
            "idx": by,
            "broadcast": by,
            "rotate": _i32("andi", _i32("addi", lane, by), Constant("i32", WARP - 1)),
        }[mode]
        linear, threads = (
            Operation("i32", "index_cast index to i32", (variable,))
            for variable in (LINEAR, THREADS)
        )
        first = _i32("andi", linear, Constant("i32", -WARP))
        lanes = _i32("subi", threads, first)
        is_there = Operation("i1", "cmpi slt i32", (source, lanes))
        return Operation("i1", "andi i1", (is_there, valid))

    def ballot(self, scope: Scope) -> Made:
        variable = Variable("i32", self._name("votes"))
        value = self._expressions.make("i1", scope, Level.THREAD, 3)
        scope = scope.with_variable(variable, Level.WARP, can_change=True)
        return [Ballot(variable.name, value)], scope

    def reduce(self, scope: Scope, among: Level) -> Made:
        rng = self._rng
        type_ = rng.choice(("i32", "i64", "f32"))
        kind = rng.choice(_FLOAT_KINDS if type_ == "f32" else _INTEGER_KINDS)
        if type_ == "f32":
            any_ = self._expressions.make("i32", scope, Level.THREAD, 2)
            small = _i32("andi", any_, Constant("i32", 15))
            value: Expression = Operation("f32", "sitofp i32 to f32", (small,))
        else:
            value = self._expressions.make(type_, scope, Level.THREAD, 2)
        variable = Variable(type_, self._name("all"))
        has_region = among == Level.BLOCK and rng.random() < 0.3
        scope = scope.with_variable(variable, among, can_change=True)
        return [Reduce(variable.name, among, kind, value, has_region)], scope


def _i32(name: str, a: Expression, b: Expression) -> Expression:
    return Operation("i32", f"{name} i32", (a, b))
