"""Seeds → programs: kernels whose every way is defined on a GPU, with all that the CPU device has.

The generator knows of each variable, and of the way to each place, among whom it is the same:
the block's threads, the warp's, or nobody's. So it knows where a barrier or a shuffle is legal,
and which element of shared memory a thread may touch. `evaluate` checks that it is right.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from property.features import Features
from property.program import (
    BYTES,
    Body,
    Constant,
    Expression,
    Function,
    Id,
    Let,
    Level,
    Load,
    Memory,
    Operation,
    Program,
    Size,
    Statement,
    Store,
    Variable,
)
from property.scope import (
    ATOMIC,
    BLOCK,
    LINEAR,
    OWN,
    THREADS,
    Mode,
    Scope,
)
from property.statements import Callee, Statements

# An element of a kind that no program's results show is a defect that they do not find.
_HASH_FACTOR = 31

_BLOCKS: tuple[Size, ...] = (
    (1, 1, 1),
    (7, 1, 1),
    (31, 1, 1),
    (32, 1, 1),
    (33, 1, 1),
    (64, 1, 1),
    (100, 1, 1),
    (128, 1, 1),
    (256, 1, 1),
    (1000, 1, 1),
    (1024, 1, 1),
    (8, 4, 1),
    (16, 16, 1),
    (5, 7, 1),
    (32, 3, 1),
    (1, 64, 1),
    (32, 32, 1),
    (4, 4, 4),
    (2, 3, 5),
    (1, 1, 48),
    (10, 10, 10),
    (64, 1, 2),
)
_GRIDS: tuple[Size, ...] = ((1, 1, 1), (2, 1, 1), (3, 1, 1), (5, 1, 1), (2, 2, 1), (1, 3, 2))
_MOST_THREADS = 3072
_PRIVATE_SHAPES: tuple[tuple[int, ...], ...] = ((1,), (3,), (4,), (2, 3))

# The files of inputs: see `inputs`.
INPUT_SIZE = 64
INPUT_TYPES = ("i8", "i32", "i64", "index", "f32", "f64")

_SUM_KINDS = ("addi", "andi", "ori", "xori", "maxs", "mins", "maxu", "minu")


def generate(name: str, seed: int, features: Features) -> Program:
    """The program of a seed."""
    return _Generator(name, Random(seed), features).program()


class _Generator:
    def __init__(self, name: str, rng: Random, features: Features) -> None:
        self._name = name
        self._rng = rng
        self._features = features

    def program(self) -> Program:
        rng = self._rng
        block = rng.choice(_BLOCKS)
        threads = block[0] * block[1] * block[2]
        fitting = [g for g in _GRIDS if g[0] * g[1] * g[2] * threads <= _MOST_THREADS]
        grid = rng.choice(fitting)
        form = rng.choice(("launch", "func"))
        memories = self._memories(threads, grid[0] * grid[1] * grid[2])
        scalars = self._scalars()
        statements = Statements(
            rng,
            threads,
            self._features,
        )
        modes = tuple((m.name, _first_mode(rng, m)) for m in memories if _has_mode(m))
        levels = tuple(
            (m.name, rng.choice((Level.BLOCK, Level.THREAD))) for m in memories if m.is_of_thread
        )
        scope = Scope(Level.BLOCK, (), memories, levels, modes)
        callees = [
            self._function(number, statements, scope) for number in range(rng.choice((0, 0, 1, 2)))
        ]
        statements.callees = callees
        body = self._kernel_body(statements, scope, scalars)
        return Program(
            name=self._name,
            grid=grid,
            block=block,
            form=form,
            has_constant_sizes=rng.random() < 0.5,
            has_known_block_size=form == "func" and rng.random() < 0.3,
            memories=memories,
            scalars=scalars,
            functions=tuple(callee.function for callee in callees),
            body=body,
        )

    def _memories(self, threads: int, blocks: int) -> tuple[Memory, ...]:
        rng = self._rng
        found = []
        for type_ in rng.sample(INPUT_TYPES, rng.randint(2, 4)):
            name, dynamic = f"in_{type_}", rng.random() < 0.5
            source = f"{type_}.npy"
            found.append(Memory(name, type_, "input", (INPUT_SIZE,), dynamic, source=source))
        if rng.random() < 0.6:
            type_ = rng.choice(("i32", "f32", "i64"))
            shape = (blocks * threads,)
            found.append(Memory("scratch", type_, "scratch", shape, rng.random() < 0.5, source="3"))
        if rng.random() < 0.5:
            type_ = rng.choice(("i32", "i32", "i64", "f32"))
            size = (rng.randint(1, 6),)
            found.append(Memory("sum", type_, "sum", size, source="0" if type_ == "f32" else "5"))
        for number in range(rng.choice((0, 1, 1, 2))):
            type_ = rng.choice(("i32", "f32", "i64", "i8", "index", "f64"))
            extents = self._workgroup_shape(threads)
            found.append(Memory(f"shared{number}", type_, "workgroup", extents))
        offset = 0
        for number in range(rng.choice((0, 0, 1, 2))):
            type_ = rng.choice(("i32", "f32", "i64", "i8"))
            name = f"dynamic{number}"
            found.append(Memory(name, type_, "dynamic", (threads,), offset=offset))
            offset += -(-threads * BYTES[type_] // 16) * 16
        for space in ("private", "alloca"):
            if rng.random() < 0.35:
                type_ = rng.choice(("i32", "f32", "i64", "i1"))
                extents = rng.choice(_PRIVATE_SHAPES)
                found.append(Memory(space, type_, space, extents))
        found.append(Memory("out", "i64", "output", (blocks * threads,), True, source="-1"))
        return tuple(found)

    def _workgroup_shape(self, threads: int) -> tuple[int, ...]:
        columns = self._rng.choice((8, 16, 33))
        return self._rng.choice(
            (
                (threads,),
                (threads + 3,),
                (-(-threads // columns), columns),
                (-(-threads // (2 * columns)), 2, columns),
            )
        )

    def _scalars(self) -> tuple[tuple[Variable, int | float], ...]:
        rng = self._rng
        values: dict[str, int | float] = {
            "i32": rng.randint(-100, 100),
            "i64": rng.randint(-(2**40), 2**40),
            "f32": rng.randint(-64, 64) / 8,
            "index": rng.randint(0, 10),
        }
        types = rng.sample(list(values), rng.randint(0, 3))
        return tuple((Variable(type_, f"given_{type_}"), values[type_]) for type_ in types)

    def _kernel_body(
        self,
        statements: Statements,
        scope: Scope,
        scalars: tuple[tuple[Variable, int | float], ...],
    ) -> Body:
        rng = self._rng
        body: list[Statement] = list(prelude())
        for variable, _ in scalars:
            scope = scope.with_variable(variable, Level.BLOCK, can_change=False)
        scope = with_prelude(scope)
        # The first values of one memory may be computed from those before it.
        memories, scope = scope.memories, replace(scope, memories=())
        for memory in memories:
            body += statements.first_stores(memory, scope)
            scope = replace(scope, memories=(*scope.memories, memory))
        made, scope = statements.several(scope, rng.randint(4, 14))
        body += made
        if rng.random() < 0.5:
            made, scope = statements.one_of(("barrier", "for", "if", "while"), scope)
            body += made
            made, scope = statements.several(scope, rng.randint(2, 6))
            body += made
        return (*body, *_results(statements, scope))

    def _function(self, number: int, statements: Statements, kernel: Scope) -> Callee:
        """A function to be called, with memories of the kernel's among its arguments."""
        rng = self._rng
        level = rng.choice(list(Level))
        name = f"{self._name}_helper{number}"
        parameters = []
        scope = replace(kernel, level=level, known=(), entry_modes=kernel.modes)
        for type_ in rng.sample(("i32", "i64", "f32", "index", "i1"), rng.randint(1, 3)):
            among = rng.choice(list(Level))
            parameter = Variable(type_, f"{name}_given_{type_}")
            parameters.append((parameter, among))
            scope = scope.with_variable(parameter, among, can_change=False)
        passed = tuple(m for m in kernel.memories if m.space != "output" and rng.random() < 0.4)
        scope = replace(
            scope,
            memories=passed,
            modes=tuple((n, m) for n, m in scope.modes if n in {p.name for p in passed}),
        )
        scope = replace(scope, entry_modes=scope.modes)
        scope = with_prelude(scope)
        body: list[Statement] = list(prelude())
        results = []
        for type_ in rng.sample(("i32", "i64", "f32", "f64", "index"), rng.randint(0, 2)):
            among = rng.choice([among for among in Level if among >= level])
            made, scope, variable = statements.declare(type_, scope, among)
            body += made
            results.append((variable, among))
        made, scope = statements.several(scope, rng.randint(2, 6))
        body += [*made, *statements.back_to_entry(scope)]
        function = Function(
            name,
            tuple(parameter for parameter, _ in parameters),
            passed,
            tuple(body),
            tuple(variable for variable, _ in results),
        )
        return Callee(
            function,
            level,
            tuple(among for _, among in parameters),
            tuple(among for _, among in results),
            scope.entry_modes or (),
        )


def prelude() -> tuple[Statement, ...]:
    """The variables that tell a thread its numbers."""

    def linear(id_: str, size: str) -> Expression:
        x, y, z = (Id(f"{id_} {dimension}") for dimension in "xyz")
        by_z = _index("addi", y, _index("muli", Id(f"{size} y"), z))
        return _index("addi", x, _index("muli", Id(f"{size} x"), by_z))

    area = _index("muli", Id("block_dim x"), Id("block_dim y"))
    return (
        Let(LINEAR.name, linear("thread_id", "block_dim")),
        Let(THREADS.name, _index("muli", area, Id("block_dim z"))),
        Let(BLOCK.name, linear("block_id", "grid_dim")),
    )


def with_prelude(scope: Scope) -> Scope:
    scope = scope.with_variable(LINEAR, Level.THREAD, can_change=False)
    scope = scope.with_variable(THREADS, Level.BLOCK, can_change=False)
    return scope.with_variable(BLOCK, Level.BLOCK, can_change=False)


def _index(name: str, a: Expression, b: Expression) -> Expression:
    return Operation("index", f"{name} index", (a, b))


def _has_mode(memory: Memory) -> bool:
    return memory.space in ("workgroup", "dynamic", "scratch", "sum")


def _first_mode(rng: Random, memory: Memory) -> Mode:
    if memory.space == "sum":
        kind = "addf" if memory.type == "f32" else rng.choice(_SUM_KINDS)
        return Mode(ATOMIC, kind)
    return Mode(OWN, "same")


def _results(statements: Statements, scope: Scope) -> Body:
    """Stores what all variables and memories have, as one number, where the host sees it."""
    total: Expression = Constant("i64", 17)
    seen: list[Expression] = [known.variable for known in scope.known]
    thread = replace(scope, level=Level.THREAD)
    for memory in scope.memories:
        is_readable = memory.is_of_thread or (
            _has_mode(memory) and scope.mode(memory.name).what != ATOMIC
        )
        if is_readable:
            position = statements.expressions.position(memory, thread, Level.THREAD, 1)
            seen.append(Load(memory.type, memory.name, position))
    body: list[Statement] = [Let("hash0", total)]
    for number, value in enumerate(seen):
        before = Variable("i64", f"hash{number}")
        scaled = Operation("i64", "muli i64", (before, Constant("i64", _HASH_FACTOR)))
        total = Operation("i64", "addi i64", (scaled, _as_i64(value)))
        body.append(Let(f"hash{number + 1}", total))
    place = _index("addi", _index("muli", BLOCK, THREADS), LINEAR)
    return (*body, Store("out", place, Variable("i64", f"hash{len(seen)}")))


def _as_i64(value: Expression) -> Expression:
    match value.type:
        case "i64":
            return value
        case "f64":
            return Operation("i64", "bits of f64", (value,))
        case "f32":
            return _as_i64(Operation("i32", "bits of f32", (value,)))
        case "index":
            return Operation("i64", "index_cast index to i64", (value,))
        case "i1":
            return Operation("i64", "extui i1 to i64", (value,))
        case narrow:
            return Operation("i64", f"extsi {narrow} to i64", (value,))
