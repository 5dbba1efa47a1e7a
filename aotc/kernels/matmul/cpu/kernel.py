"""The base of the kernels for the CPU device: types, operands and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.cpu.vectors import Vectors
from aotc.kernels.family import CPU
from aotc.kernels.matmul.epilogue import EpilogueOf
from aotc.kernels.matmul.family import MatmulFamily, P
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    EpilogueBuilder,
    Line,
    Place,
    Problem,
)
from aotc.mlir import ir

# The element types among which the CPU's lowering has conversions.
_FLOATS = ("f64", "f32", "f16", "bf16")
_INTEGERS = ("i32", "i16", "i8")


def has_convertible_types(problem: Problem) -> bool:
    """Whether the CPU's lowering has the conversions that the problem needs. C's elements may be of
    the other kind (floats or integers), if an epilogue converts them, as in the dequantization of
    integer accumulators."""
    elements = {problem.a.element, problem.b.element, problem.accumulator}
    is_of_one_kind = elements <= set(_FLOATS) or elements <= set(_INTEGERS)
    return is_of_one_kind and problem.c.element in (*_FLOATS, *_INTEGERS)


def computed_in(problem: Problem) -> str:
    """The type of products and accumulators: the problem's accumulator, or f32 (i32) if that is
    narrower."""
    if ELEMENT_BYTES[problem.accumulator] >= 4:
        return problem.accumulator
    return "i32" if problem.accumulator.startswith("i") else "f32"


class CpuFamily(MatmulFamily[P]):
    """The base of the families for the CPU device. `kernel_type` is a subclass of `CpuKernel`."""

    mnemonic = "cpu"
    target = CPU
    has_cost_model = False

    def tile_name(self, problem: P, variant: Any) -> str:
        """See `MatmulFamily`."""
        return f"{variant.m}x{variant.n}"

    def insert(self, b: Builder, problem: P, variant: Any, arguments: Arguments) -> None:
        """See `KernelFamily`."""
        self.kernel_type(b, problem, variant, arguments.epilogue).build(arguments)


class CpuKernel(Vectors):
    """The base of kernels, which compute in `computed`, or in what `computed_in` says."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        epilogue: EpilogueBuilder | None,
        vectors: int = 1,
        computed: str | None = None,
    ) -> None:
        super().__init__(b, computed or computed_in(problem), vectors)
        self.problem, self.epilogue = problem, epilogue
        # In the kernel, the block's id along z.
        self.batch: Number = 0

    def matrix(self, value: Value, *, unsigned: bool = False) -> Buffer:
        """The matrix of A, B or C in this block's batch."""
        return Buffer(value, [self.batch] if self.problem.batched else [], unsigned=unsigned)

    @property
    def stores_vectors(self) -> bool:
        """Whether `store_result` supports vectors. Some epilogues are for single elements only."""
        return self.epilogue is None or (
            isinstance(self.epilogue, EpilogueOf) and self.epilogue.can_take_vectors()
        )

    def each_stored(self, start: Number, stop: Number, width: int) -> Iterator[tuple[Number, int]]:
        """See `each_vector`; single elements if `store_result` does not support vectors."""
        return self.each_vector(start, stop, width if self.stores_vectors else 1)

    @property
    def has_short_epilogue(self) -> bool:
        """Whether the epilogue is short enough for a kernel to have many copies of it."""
        return self.epilogue is None or (
            isinstance(self.epilogue, EpilogueOf) and self.epilogue.epilogue.is_short
        )

    # --- Results -------------------------------------------------------------------------------

    @property
    def batch_of_c(self) -> Value | None:
        """The index along the batch for the epilogue; None if C has no batch."""
        return self.b.value(self.batch) if self.problem.batched else None

    def store_result(
        self,
        value: Value,
        c: Buffer,
        at: Sequence[Number],
        place: tuple[Number, Number],
        line: Line | None = None,
    ) -> None:
        """Stores an accumulator, or a vector of them, as elements of C, with the epilogue. `at`:
        the indices in the buffer `c`. `place`: the row and the column for the epilogue. `line`: see
        `Place`."""
        b, p = self.b, self.problem
        width = value.type.shape[0] if isinstance(value.type, ir.VectorType) else 1
        if p.adds:
            value = b.add(self.load(c, at, width), value)
        value = b.convert(value, self.of(p.accumulator, width))
        if self.epilogue is None:
            value = b.convert(value, self.of(p.c.element, width))
        else:
            row, column = b.values(place)
            where = Place(self.batch_of_c, row, [column], line=line)
            if isinstance(self.epilogue, EpilogueOf) and width > 1:
                value = self.epilogue.on_vector(b, value, where)
            else:
                [value] = self.epilogue(b, [value], where)
        self.store(value, c, at)

    def prefetch_operands(
        self, c: Buffer, at: Sequence[Number], place: tuple[Number, Number], line: Line | None
    ) -> None:
        """Prefetches the data that `store_result` reads for a vector of accumulators."""
        if self.problem.adds:
            self.b.prefetch(c, at)
        if isinstance(self.epilogue, EpilogueOf):
            row, column = self.b.values(place)
            where = Place(self.batch_of_c, row, [column], line=line)
            self.epilogue.prefetch(self.b, where)
