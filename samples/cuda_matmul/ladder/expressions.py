"""What the kernels are written in: Python's operators over MLIR values.

The bindings make one operation a call. Here `row * 8 + k` is `arith.muli` and `arith.addi`,
`A[row, k]` is `memref.load`, and functions under `@loop` and `@where` are the bodies of `scf.for`
and `scf.if`. Python's own `for` and `if` run while the kernel is made: they unroll, and choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aotc.mlir import dialect, ir

arith, gpu, memref, nvgpu, scf, vector = map(dialect, "arith gpu memref nvgpu scf vector".split())


class Scalar:
    """An index, a truth value or a float. A Python int beside one is an index, too."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def index(cls, number: int) -> Scalar:
        return cls(arith.constant(ir.IndexType.get(), number))

    def __add__(self, other: Index) -> Scalar:
        if self.is_float:
            return Scalar(arith.addf(self.value, to_value(other), fastmath=_contract()))
        return self if _is(other, 0) else Scalar(arith.addi(self.value, to_value(other)))

    def __mul__(self, other: Index) -> Scalar:
        if self.is_float:
            return Scalar(arith.mulf(self.value, to_value(other), fastmath=_contract()))
        return self if _is(other, 1) else Scalar(arith.muli(self.value, to_value(other)))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Index) -> Scalar:
        return Scalar(arith.subi(self.value, to_value(other)))

    # Unsigned, as no index here is negative: by a power of two, a shift.
    def __floordiv__(self, other: Index) -> Scalar:
        return self if _is(other, 1) else Scalar(arith.divui(self.value, to_value(other)))

    def __mod__(self, other: Index) -> Scalar:
        return Scalar(arith.remui(self.value, to_value(other)))

    def __lt__(self, other: Index) -> Scalar:
        return self._compare("ult", other)

    def equals(self, other: Index) -> Scalar:
        """Whether the two are equal; `==` stays Python's."""
        return self._compare("eq", other)

    def __and__(self, other: Scalar) -> Scalar:
        return Scalar(arith.andi(self.value, other.value))

    def __or__(self, other: Scalar) -> Scalar:
        return Scalar(arith.ori(self.value, other.value))

    @property
    def is_float(self) -> bool:
        return isinstance(self.value.type, ir.FloatType)

    def _compare(self, predicate: str, other: Index) -> Scalar:
        kind = getattr(arith.CmpIPredicate, predicate)
        return Scalar(arith.cmpi(kind, self.value, to_value(other)))


Index = int | Scalar


def _is(operand: Index, number: int) -> bool:
    return isinstance(operand, int) and operand == number


def _contract() -> Any:
    """A product and a sum may become one operation, rounded once."""
    return arith.FastMathFlags.contract


def to_value(operand: Index) -> Any:
    """The `ir.Value`."""
    if isinstance(operand, Scalar):
        return operand.value
    return arith.constant(ir.IndexType.get(), operand)


def minimum(left: Index, right: Index) -> Scalar:
    return Scalar(arith.minui(to_value(left), to_value(right)))


def select(condition: Scalar, yes: Index, no: Index) -> Scalar:
    return Scalar(arith.select(condition.value, to_value(yes), to_value(no)))


def ceildiv(left: Scalar, right: int) -> Scalar:
    return (left + (right - 1)) // right


class Array:
    """A memref, whose elements are read and written one by one or in vectors of some."""

    def __init__(self, value: Any) -> None:
        self.value = value
        type_ = ir.MemRefType(value.type)
        self.element = type_.element_type
        self.element_bytes: int = self.element.width // 8
        self.rank = type_.rank

    @property
    def shape(self) -> list[Scalar]:
        return [Scalar(memref.dim(self.value, to_value(number))) for number in range(self.rank)]

    @property
    def zero(self) -> Scalar:
        return Scalar(arith.constant(self.element, 0.0))

    def address(self) -> Scalar:
        return Scalar(memref.extract_aligned_pointer_as_index(self.value))

    def __getitem__(self, at: tuple[Index, ...]) -> Scalar:
        return Scalar(memref.load(self.value, _values(at)))

    def __setitem__(self, at: tuple[Index, ...], value: Scalar) -> None:
        memref.store(value.value, self.value, _values(at))

    def load(self, at: tuple[Index, ...], count: int) -> list[Scalar]:
        """`count` elements in one access, whose address is a multiple of its size."""
        if count == 1:
            return [self[at]]
        type_, bytes_ = ir.VectorType.get([count], self.element), count * self.element_bytes
        loaded = vector.load(type_, self.value, _values(at), alignment=bytes_)
        return [Scalar(vector.extract(loaded, [], [number])) for number in range(count)]

    def store(self, at: tuple[Index, ...], values: Sequence[Scalar]) -> None:
        """Like `load`."""
        if len(values) == 1:
            self[at] = values[0]
            return
        type_ = ir.VectorType.get([len(values)], self.element)
        made = vector.from_elements(type_, [value.value for value in values])
        vector.store(made, self.value, _values(at), alignment=len(values) * self.element_bytes)


def _values(at: tuple[Index, ...]) -> list[Any]:
    return [to_value(index) for index in at]


def copy_async(
    source: Array,
    at: tuple[Index, ...],
    to: Array,
    place: tuple[Index, ...],
    count: int,
    there: Index,
) -> Any:
    """Begins to copy `count` elements to workgroup memory. Only `there` of them are read, the
    others become 0. Returns what `end_copies` takes."""
    # 16 bytes at once may pass by the L1 cache, which has no use for them.
    passes_l1 = True if count * source.element_bytes == 16 else None
    return nvgpu.device_async_copy(
        *(to.value, _values(place), source.value, _values(at), count),
        src_elements=to_value(there),
        bypass_l1=passes_l1,
    )


def end_copies(copies: Sequence[Any]) -> Any:
    """Makes a group of them. Returns what `wait_copies` takes."""
    return nvgpu.device_async_create_group(copies)


def wait_copies(group: Any, pending: int) -> None:
    """Waits until of this thread's groups at most `pending`, the last ones, are under way."""
    nvgpu.device_async_wait(group, num_groups=pending)


def barrier() -> None:
    """Waits for the other threads of the block, and for what they wrote."""
    gpu.barrier()


Body = Callable[..., Sequence[Scalar]]


def loop(
    start: int, stop: Index, step: int, carry: Sequence[Scalar] = ()
) -> Callable[[Body], list[Scalar]]:
    """`@loop(0, K, 8, carry=sums)` over `def sums(k, *sums)`, which returns the next ones.

    The function's name is then that of the values that the last turn has returned.
    """

    def make(body: Body) -> list[Scalar]:
        bounds = [to_value(bound) for bound in (start, stop, step)]
        made = scf.ForOp(*bounds, [value.value for value in carry])
        with ir.InsertionPoint(made.body):
            carried = body(Scalar(made.induction_variable), *map(Scalar, made.inner_iter_args))
            scf.yield_([value.value for value in carried])
        return [Scalar(result) for result in made.results]

    return make


def where(condition: Scalar) -> Callable[[Callable[[], None]], None]:
    """`@where(row < M)`: the body runs where it is so."""
    return lambda body: either(condition, body, lambda: None)


def either(condition: Scalar, yes: Callable[[], None], no: Callable[[], None]) -> None:
    """Runs one of the two."""
    made = scf.IfOp(condition.value, has_else=True)
    for block, body in ((made.then_block, yes), (made.else_block, no)):
        with ir.InsertionPoint(block):
            body()
            scf.yield_([])
