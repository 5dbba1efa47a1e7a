"""The trees of random programs: expressions, statements, memories, functions, programs.

Every expression has a value for all operands (`arithmetic` guards divisors, shifts and
conversions), so that any part of a program may be replaced by another of its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

WARP = 32

# In bits, as memory holds them; `index` is 64 bits on every device of aotc.
INTEGER_BITS = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "index": 64}
FLOATS = ("f32", "f64")
BYTES = {"i1": 1, "i8": 1, "i32": 4, "i64": 8, "index": 8, "f32": 4, "f64": 8}


class Level(IntEnum):
    """Among whom a value, or the way to a statement, is the same."""

    BLOCK = 0
    WARP = 1
    THREAD = 2


@dataclass(frozen=True)
class Constant:
    type: str
    value: int | float | bool


@dataclass(frozen=True)
class Variable:
    type: str
    name: str


@dataclass(frozen=True)
class Id:
    """An id or a size of the launch, as the gpu dialect calls it: `thread_id x`, `lane_id`."""

    name: str
    type: str = "index"


@dataclass(frozen=True)
class Operation:
    """`name` is a key of `operations.OPERATIONS`."""

    type: str
    name: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Load:
    type: str
    memory: str
    # Counts elements in row-major order, whatever the memory's shape.
    index: Expression


Expression = Constant | Variable | Id | Operation | Load


@dataclass(frozen=True)
class Let:
    """Declares a variable; it is seen to the end of its body."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Assign:
    name: str
    value: Expression


@dataclass(frozen=True)
class Store:
    memory: str
    index: Expression
    value: Expression


@dataclass(frozen=True)
class Atomic:
    """`kind` is memref.atomic_rmw's; or its equivalent in memref.generic_atomic_rmw."""

    kind: str
    memory: str
    index: Expression
    value: Expression
    is_generic: bool


@dataclass(frozen=True)
class Barrier:
    pass


@dataclass(frozen=True)
class Shuffle:
    """Declares two variables: what another lane has, and whether there is such a lane.

    Where there is none, the value is whatever it is: programs do not look at it. `mode` is one of
    gpu.shuffle's, "rotate" (gpu.rotate; the offset is a constant) or "broadcast"
    (gpu.subgroup_broadcast of the lane `offset`; there is such a lane).
    """

    name: str
    valid: str
    mode: str
    value: Expression
    offset: Expression


@dataclass(frozen=True)
class Ballot:
    """Declares a variable of type i32: the lanes whose value is true, as bits."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Reduce:
    """Declares a variable: the values of the block, or of the warp, put together by `kind`."""

    name: str
    scope: Level
    kind: str
    value: Expression
    # Whether the operation is a region's (gpu.all_reduce alone has one).
    has_region: bool = False


@dataclass(frozen=True)
class If:
    condition: Expression
    then: Body
    otherwise: Body
    # "scf", or "cf": blocks with branches.
    form: str


@dataclass(frozen=True)
class Switch:
    """scf.index_switch: case i for selector i, else the last body."""

    selector: Expression
    bodies: tuple[Body, ...]


@dataclass(frozen=True)
class For:
    name: str
    low: Expression
    high: Expression
    step: Expression
    body: Body
    form: str


@dataclass(frozen=True)
class While:
    """ "scf" and "cf" ask before the body, "do" (an scf.while, too) behind it."""

    condition: Expression
    body: Body
    form: str


@dataclass(frozen=True)
class Break:
    """Leaves the innermost loop, which is of the form "cf" like all that is between."""

    condition: Expression


@dataclass(frozen=True)
class Return:
    """Ends the function, or the thread; all around it are of the form "cf"."""

    condition: Expression


@dataclass(frozen=True)
class Call:
    """Declares a variable for each result."""

    names: tuple[str, ...]
    function: str
    arguments: tuple[Expression, ...]


Statement = (
    Let
    | Assign
    | Store
    | Atomic
    | Barrier
    | Shuffle
    | Ballot
    | Reduce
    | If
    | Switch
    | For
    | While
    | Break
    | Return
    | Call
)
Body = tuple[Statement, ...]


@dataclass(frozen=True)
class Memory:
    """What kernels load from and store to.

    `space` is one of: "input" (only read), "output" and "scratch" (an element or more for each
    thread), "sum" (only for atomics), these being arguments; "workgroup", "dynamic" (of the
    launch's dynamic workgroup memory), "private" (an attribution) and "alloca".
    """

    name: str
    type: str
    space: str
    shape: tuple[int, ...]
    # Whether the memref's type leaves the first size open.
    is_dynamic: bool = False
    # Where it begins in the dynamic workgroup memory.
    offset: int = 0
    # What an argument has at first: a file's name, or a number for all elements.
    source: str = ""

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def is_argument(self) -> bool:
        return self.space in ("input", "output", "scratch", "sum")

    @property
    def is_of_block(self) -> bool:
        return self.space in ("workgroup", "dynamic")

    @property
    def is_of_thread(self) -> bool:
        return self.space in ("private", "alloca")


@dataclass(frozen=True)
class Function:
    """A func.func that kernels call. Memories of the kernel come as arguments, by their names."""

    name: str
    parameters: tuple[Variable, ...]
    memories: tuple[Memory, ...]
    body: Body
    # Variables of the body.
    results: tuple[Variable, ...]


Size = tuple[int, int, int]


@dataclass(frozen=True)
class Program:
    """A kernel, what it calls, and one launch of it."""

    name: str
    grid: Size
    block: Size
    # "launch": gpu.launch in the entry; "func": gpu.func and gpu.launch_func.
    form: str
    # Whether the entry has the sizes as constants; else it is called with them.
    has_constant_sizes: bool
    # Whether the gpu.func says its block size; so it must be the launch's.
    has_known_block_size: bool
    memories: tuple[Memory, ...]
    # Numbers that the entry, and the kernel, are called with.
    scalars: tuple[tuple[Variable, int | float], ...]
    functions: tuple[Function, ...]
    body: Body
    # What the program was made of, for people.
    origin: str = field(default="", compare=False)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def dynamic_bytes(self) -> int:
        ends = [m.offset + m.size * BYTES[m.type] for m in self.memories if m.space == "dynamic"]
        return max(ends, default=0)

    def memory(self, name: str) -> Memory:
        return next(memory for memory in self.memories if memory.name == name)


def bodies_of(statement: Statement) -> tuple[Body, ...]:
    """The bodies inside a statement."""
    match statement:
        case If(then=then, otherwise=otherwise):
            return then, otherwise
        case Switch(bodies=bodies):
            return bodies
        case For(body=body) | While(body=body):
            return (body,)
        case _:
            return ()


def walk(body: Body) -> Iterator[Statement]:
    """All statements, each before those inside it."""
    for statement in body:
        yield statement
        for inner in bodies_of(statement):
            yield from walk(inner)


def assigned(body: Body) -> set[str]:
    """The variables that assignments in the body, at any depth, are to."""
    return {statement.name for statement in walk(body) if isinstance(statement, Assign)}
