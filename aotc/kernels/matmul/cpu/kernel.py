"""The parts that the kernels for the CPU device have in common: types, vectors and results."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Buffer, Builder
from aotc.kernels.matmul.epilogue import EpilogueOf
from aotc.kernels.matmul.problem import ELEMENT_BYTES, EpilogueBuilder, Place, Problem
from aotc.mlir import ir
from aotc.numbers import Number, Scalar, Value

VECTOR_BYTES = 64
# What the CPU's lowering has conversions for.
_FLOATS = ("f64", "f32", "f16", "bf16")
_INTEGERS = ("i32", "i8")


def has_convertible_types(problem: Problem) -> bool:
    """Whether the CPU's lowering has the conversions that the problem needs."""
    elements = {problem.a.element, problem.b.element, problem.c.element, problem.accumulator}
    return elements <= set(_FLOATS) or elements <= set(_INTEGERS)


def computed_in(problem: Problem) -> str:
    """The type of products and accumulators: the problem's accumulator, or f32 (i32) if that is
    narrower."""
    if ELEMENT_BYTES[problem.accumulator] >= 4:
        return problem.accumulator
    return "i32" if problem.accumulator.startswith("i") else "f32"


class CpuKernel:
    """The base of kernels. `type` is that of accumulators, `width` how many a vector has.

    Counts are divided as signed numbers.
    """

    def __init__(
        self, b: Builder, problem: Problem, epilogue: EpilogueBuilder | None, vectors: int = 1
    ) -> None:
        self.b, self.problem, self.epilogue = b, problem, epilogue
        self.type = computed_in(problem)
        self.bytes = ELEMENT_BYTES[self.type]
        self.width = vectors * VECTOR_BYTES // self.bytes
        self.vector_type = self.of(self.type, self.width)
        # The block's id along z, in the kernel.
        self.batch: Number = 0

    def of(self, element: str, width: int) -> str:
        """The type of an element, or of a vector of `width`."""
        return element if width == 1 else f"vector<{width}x{element}>"

    # --- Counts --------------------------------------------------------------------------------

    def signed(self, operation: str, left: Number, right: Number) -> Scalar:
        made: Scalar = self.b.op(f"arith.{operation}", self.b.values([left, right]), "index")
        return made

    def groups(self, count: Number, size: Number) -> Scalar:
        """How many groups of `size` there are, the last one of which may be smaller."""
        return self.signed("ceildivsi", count, size)

    def whole(self, count: Number, size: int) -> Number:
        """How many of `count` are in groups that are whole."""
        return count - self.signed("remsi", count, size)

    def vectorized(self, count: Number) -> list[tuple[Number, Number, int]]:
        """The bounds and steps of two loops: over whole vectors, and over the elements left."""
        whole = self.whole(count, self.width)
        return [(0, whole, self.width), (whole, count, 1)]

    # --- Memory --------------------------------------------------------------------------------

    def matrix(self, value: Value) -> Buffer:
        """A, B or C: the matrix of this batch."""
        return Buffer(value, [self.batch] if self.problem.batched else [])

    def load(self, buffer: Buffer, at: Sequence[Number], width: int = 1) -> Value:
        """An element, or a vector of `width`, in the type of accumulators."""
        b = self.b
        value = b.load(buffer, at) if width == 1 else b.load_vector(buffer, at, width)
        return b.convert(value, self.of(self.type, width))

    def store(self, value: Value, buffer: Buffer, at: Sequence[Number]) -> None:
        """Stores an element or a vector."""
        is_vector = isinstance(value.type, ir.VectorType)
        (self.b.store_vector if is_vector else self.b.store)(value, buffer, at)

    def broadcast(self, element: Value) -> Value:
        return self.b.op("vector.broadcast", [element], self.vector_type)

    @property
    def stores_vectors(self) -> bool:
        """Whether `store_result` takes vectors: an epilogue may be of single elements."""
        return self.epilogue is None or (
            isinstance(self.epilogue, EpilogueOf) and self.epilogue.can_take_vectors()
        )

    # --- Results -------------------------------------------------------------------------------

    def store_result(
        self, value: Value, c: Buffer, at: Sequence[Number], place: tuple[Number, Number]
    ) -> None:
        """Stores an accumulator, or a vector of them, as elements of C. `place`: the row and the
        column, which the epilogue is given."""
        b, p = self.b, self.problem
        width = value.type.shape[0] if isinstance(value.type, ir.VectorType) else 1
        if p.adds:
            value = b.add(self.load(c, at, width), value)
        value = b.convert(value, self.of(p.accumulator, width))
        if self.epilogue is None:
            value = b.convert(value, self.of(p.c.element, width))
        else:
            row, column = b.values(place)
            where = Place(self.batch if p.batched else None, row, [column])
            if isinstance(self.epilogue, EpilogueOf) and width > 1:
                value = self.epilogue.on_vector(b, value, where)
            else:
                [value] = self.epilogue(b, [value], where)
        self.store(value, c, at)
