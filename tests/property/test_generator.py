"""The generator and the evaluation: what programs promise, and what is found when one breaks it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from property import batch
from property.arithmetic import DTYPES, INTEGERS, Array
from property.batch import Settings, Verdict, judge
from property.evaluate import InvalidProgramError, evaluate
from property.features import Features
from property.generate import generate, prelude
from property.inputs import input_files, inputs_of
from property.mlir_text import module_text
from property.operations import OPERATIONS
from property.program import (
    Assign,
    Barrier,
    Body,
    Call,
    Constant,
    Expression,
    For,
    Id,
    If,
    Let,
    Level,
    Load,
    Memory,
    Operation,
    Program,
    Reduce,
    Return,
    Shuffle,
    Statement,
    Store,
    Variable,
    While,
    walk,
)
from property.shrink import shrink

SOME = range(400)
LINEAR = Variable("index", "linear")


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [generate(f"p{seed}", seed, Features()) for seed in SOME]


def test_a_seed_gives_one_program() -> None:
    first, second, other = (generate("p", seed, Features()) for seed in (7, 7, 8))
    assert module_text([first]) == module_text([second])
    assert first != other


def test_every_program_has_a_meaning(programs: list[Program]) -> None:
    """No race, no barrier that some threads do not reach, no value before it is written."""
    for program in programs:
        evaluate(program, inputs_of(program, input_files()))


def test_every_kind_of_statement_is_made(programs: list[Program]) -> None:
    """In kernels and in what they call; each loop in each form; sizes of every kind."""
    found: set[type] = set()
    forms = set()
    for program in programs:
        bodies = [program.body, *(function.body for function in program.functions)]
        for statement in itertools.chain(*map(walk, bodies)):
            found.add(type(statement))
            if isinstance(statement, If | For | While):
                forms.add((type(statement), statement.form))
    assert found == set(Statement.__args__)
    assert len(forms) == 2 + 2 + 3
    assert {len([s for s in p.block if s > 1]) for p in programs} == {0, 1, 2, 3}
    assert {p.threads % 32 == 0 for p in programs} == {True, False}
    assert max(p.threads for p in programs) == 1024
    spaces = {memory.space for program in programs for memory in program.memories}
    assert spaces == {
        *("input", "output", "scratch", "sum", "workgroup", "dynamic", "private", "alloca")
    }


def test_every_operation_is_made(programs: list[Program]) -> None:
    text = module_text(programs)
    for name, operation in OPERATIONS.items():
        mnemonic = operation.text[-1].split()[0]
        assert mnemonic in text, name


def test_features_are_left_out() -> None:
    bare = Features(
        shuffles=False, block_reductions=False, warp_reductions=False, subgroup_ids=False
    )
    text = module_text(generate(f"p{seed}", seed, bare) for seed in range(100))
    for name in ("shuffle", "ballot", "all_reduce", "subgroup", "lane_id"):
        assert f"gpu.{name}" not in text


# Small programs by hand: what `evaluate` accepts, and what it does not.


def program_of(body: Sequence[Statement], threads: int = 64) -> Program:
    return Program(
        name="p",
        grid=(1, 1, 1),
        block=(threads, 1, 1),
        form="func",
        has_constant_sizes=True,
        has_known_block_size=False,
        memories=(
            Memory("shared", "i32", "workgroup", (threads,)),
            Memory("out", "i64", "output", (threads,), True, source="-1"),
        ),
        scalars=(),
        functions=(),
        body=(*prelude(), *body),
    )


def results(program: Program) -> list[int]:
    found: list[int] = evaluate(program, inputs_of(program, input_files()))["out"].tolist()
    return found


def index(value: int) -> Constant:
    return Constant("index", value)


def binary(name: str, a: Expression, b: Expression) -> Operation:
    return Operation(a.type, f"{name} {a.type}", (a, b))


def as_i64(value: Expression) -> Operation:
    name = "index_cast index to i64" if value.type == "index" else f"extsi {value.type} to i64"
    return Operation("i64", name, (value,))


def as_i32(value: Expression) -> Operation:
    return Operation("i32", "index_cast index to i32", (value,))


IS_FIRST_HALF = Operation("i1", "cmpi ult index", (LINEAR, index(32)))
IS_SMALL = Operation("i1", "cmpi ult index", (LINEAR, index(5)))
OWN_STORE = Store("shared", LINEAR, as_i32(LINEAR))
NEXT = binary("modulo", binary("addi", LINEAR, index(1)), Variable("index", "threads"))
STORE_NEXT = Store("out", LINEAR, as_i64(Load("i32", "shared", NEXT)))


def test_neighbours_exchange_through_shared_memory() -> None:
    assert results(program_of([OWN_STORE, Barrier(), STORE_NEXT])) == [*range(1, 64), 0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([OWN_STORE, STORE_NEXT], "shared is read where another thread writes"),
        ([STORE_NEXT], "shared is read before it is written"),
        (
            [OWN_STORE, Barrier(), STORE_NEXT, OWN_STORE],
            "shared is written where another thread is",
        ),
        ([Store("shared", index(0), as_i32(LINEAR))], "shared is written by two threads at once"),
        ([Store("shared", binary("addi", LINEAR, index(1)), as_i32(LINEAR))], "no such element"),
        ([If(IS_SMALL, (Barrier(),), (), "scf")], "a barrier that not the whole block reaches"),
        ([If(IS_FIRST_HALF, (Barrier(),), (), "cf")], "a barrier that not the whole block"),
        ([Return(IS_SMALL), Barrier()], "a barrier that not the whole block reaches"),
        (
            [If(IS_SMALL, (Reduce("all", Level.WARP, "add", as_i32(LINEAR)),), (), "scf")],
            "a reduction that not the whole warp reaches",
        ),
        ([While(Constant("i1", True), (), "scf")], "a loop does not end"),
    ],
)
def test_what_has_no_meaning_is_found(body: list[Statement], message: str) -> None:
    with pytest.raises(InvalidProgramError, match=message):
        evaluate(program_of(body), inputs_of(program_of(body), input_files()))


def test_a_warp_may_go_another_way_than_the_next() -> None:
    """Shuffles and reductions of warps in branches that whole warps take."""
    add = Reduce("all", Level.WARP, "add", as_i32(LINEAR))
    keep = Store("out", LINEAR, as_i64(Variable("i32", "all")))
    program = program_of([If(IS_FIRST_HALF, (add, keep), (), "scf")])
    assert results(program) == [sum(range(32))] * 32 + [-1] * 32


@pytest.mark.parametrize(
    ("mode", "offset", "source"),
    [
        ("xor", 5, [lane ^ 5 for lane in range(32)]),
        ("up", 3, [None, None, None, *range(29)]),
        ("down", 30, [30, 31, *[None] * 30]),
        ("idx", 9, [9] * 32),
    ],
)
def test_shuffles(mode: str, offset: int, source: list[int | None]) -> None:
    shuffle = Shuffle("got", "valid", mode, as_i32(LINEAR), Constant("i32", offset))
    chosen = Operation(
        "i32",
        "select i32",
        (Variable("i1", "valid"), Variable("i32", "got"), Constant("i32", -1)),
    )
    program = program_of([shuffle, Store("out", LINEAR, as_i64(chosen))], threads=32)
    assert results(program) == [-1 if lane is None else lane for lane in source]


def test_threads_leave_loops_when_they_must() -> None:
    """Each thread counts its own turns; those that return store nothing."""
    turns = Variable("index", "turns")
    count = Assign("turns", binary("addi", turns, index(1)))
    loop = For("i", index(0), LINEAR, index(1), (count,), "scf")
    late = Operation("i1", "cmpi ugt index", (turns, index(2)))
    body: list[Statement] = [
        Let("turns", index(0)),
        loop,
        Return(late),
        Store("out", LINEAR, as_i64(turns)),
    ]
    assert results(program_of(body, threads=5)) == [0, 1, 2, -1, -1]


# The meaning of operations, against Python's own numbers.


@pytest.mark.parametrize("type_", INTEGERS)
def test_integer_division_is_mlirs(type_: str) -> None:
    """Towards zero, downwards, upwards; without a sign where the name says so."""
    bits = 8 * DTYPES[type_]().itemsize
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = [low, low + 1, -100, -7, -1, 0, 1, 6, 7, 99, high - 1, high]
    meanings = {
        "divsi": lambda a, b: math.trunc(Fraction(a, b)),
        "remsi": lambda a, b: a - b * math.trunc(Fraction(a, b)),
        "floordivsi": lambda a, b: a // b,
        "ceildivsi": lambda a, b: -(-a // b),
        "divui": lambda a, b: a % 2**bits // b,
        "remui": lambda a, b: a % 2**bits % b,
        "ceildivui": lambda a, b: -(-(a % 2**bits) // b),
    }
    for (name, meaning), a, by in itertools.product(meanings.items(), values, values):
        operands = (np.array([value], DTYPES[type_]) for value in (a, by))
        got = int(OPERATIONS[f"{name} {type_}"].evaluate(*operands)[0])
        divisor = by & 62 | 1
        assert (got - meaning(a, divisor)) % 2**bits == 0, (name, a, divisor)


def test_fused_multiplication_rounds_once() -> None:
    generator = np.random.default_rng(0)

    def operands() -> Array:
        return (generator.uniform(1, 2, 2000) * 2.0 ** generator.integers(-30, 30, 2000)).astype(
            np.float32
        )

    a, b = operands(), operands()
    # Half of them nearly cancel: then the product's low bits are what is left.
    c = np.where(np.arange(2000) % 2 == 0, operands(), -(a * b))
    got = OPERATIONS["fma f32"].evaluate(a, b, c)
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    for value, true in zip(got, exact, strict=True):
        error = abs(Fraction(float(value)) - true)
        neighbours = (np.nextafter(value, np.float32(d)) for d in (-np.inf, np.inf))
        assert all(error <= abs(Fraction(float(other)) - true) for other in neighbours)


# What happens when aotc is wrong.


def test_another_result_is_a_mismatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: here it is the expectation that is wrong."""

    def wrong(program: Program, inputs: dict[str, Array]) -> dict[str, Array]:
        found = evaluate(program, inputs)
        found["out"][-1] ^= 1
        return found

    program = program_of([OWN_STORE, Barrier(), STORE_NEXT])
    assert [v.kind for v in judge([program], tmp_path / "right", Settings())] == ["ok"]
    monkeypatch.setattr(batch, "evaluate", wrong)
    (verdict,) = judge([program], tmp_path / "wrong", Settings())
    assert verdict.kind == "mismatch"
    assert "'out' differs from" in verdict.message


def test_a_program_that_does_not_build_is_found_among_others(tmp_path: Path) -> None:
    good = program_of([OWN_STORE, Barrier(), STORE_NEXT])
    bad = replace(good, body=(*good.body, Let("x", Id("no_such_id"))))
    programs = [replace(good, name="a"), replace(bad, name="b"), replace(good, name="c")]
    verdicts = judge(programs, tmp_path, Settings())
    assert [verdict.kind for verdict in verdicts] == ["ok", "build", "ok"]
    assert "no_such_id" in verdicts[1].message


def test_a_failure_is_shrunk_to_its_reason() -> None:
    """Here what fails is a multiplication behind a barrier, in a loop or not."""

    def has_reason(body: Body) -> bool:
        kinds = [
            "barrier" if isinstance(statement, Barrier) else "product"
            for statement in walk(body)
            if isinstance(statement, Barrier) or "muli i32" in repr(statement)
        ]
        return "product" in kinds[kinds.index("barrier") :] if "barrier" in kinds else False

    def fake_judge(programs: Sequence[Program]) -> list[Verdict]:
        return [Verdict(p, "mismatch" if has_reason(p.body) else "ok") for p in programs]

    seed = next(s for s in SOME if has_reason(generate("p", s, Features()).body))
    program = generate("p", seed, Features())
    found = shrink(Verdict(program, "mismatch"), fake_judge, 60).program
    assert has_reason(found.body)
    assert found.threads == 1
    # The barrier, the statement with the product, and the variables that this needs.
    assert len(list(walk(found.body))) <= 6
    assert not any(isinstance(statement, Call) for statement in walk(found.body))
