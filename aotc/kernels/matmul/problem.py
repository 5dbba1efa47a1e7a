"""The matmul that a kernel computes: its operands' types, layouts and sizes, and the epilogue's.

`Problem` is a GEMM of matrices in memory. The other problems are GEMMs, too, and add what their
kernels need to find an element of an operand:

* `implicit_gemm.problem.ImplicitGemm`: the loops of M, N, K and the batch, and the strides of the
  operands along them. Convolutions and other contractions; A may be an image without its padding.
* `depthwise.problem.Depthwise`: the windows of a depthwise convolution, and their padding.

A family has kernels for one of these types (`MatmulFamily.problem_type`). All other code asks a
problem by the properties of `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import Number, Value

if TYPE_CHECKING:
    from aotc.kernels.matmul.gates import GateArguments, Gates

# Bytes of the elements of matrices, by their types in MLIR.
ELEMENT_BYTES = {
    "f64": 8,
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "f8E4M3FN": 1,
    "f8E5M2": 1,
    "i32": 4,
    "i16": 2,
    "i8": 1,
}


# The assumed size of a batch of unknown size.
LIKELY_SIZE = 8


class Matrix(Struct, frozen=True):
    """An operand: the type of its buffer (`memref<?x64xf16>`), whose last dimension is contiguous,
    with a leading dimension for the batch if the problem has one.

    `sizes`: rows and columns as stored in memory, None for unknown ones. `pitch`: elements from one
    row to the next, None if unknown. `alignment`: known alignment of every row, in bytes.
    `transposed`: A is stored K x M, B is stored N x K. `unsigned`: the elements are unsigned
    integers.
    """

    type: str
    element: str
    sizes: tuple[int | None, int | None]
    pitch: int | None
    alignment: int
    transposed: bool = False
    unsigned: bool = False


class Axis(Struct, frozen=True):
    """An index that is computed from an index of C: `name` ("batch", "row" or "column"), divided by
    `divisor`, modulo `modulus` (None: no modulus). Collapsed dimensions have a divisor and a
    modulus."""

    name: str
    divisor: int = 1
    modulus: int | None = None


class EpilogueOperand(Struct, frozen=True):
    """An input of the epilogue. It is a buffer, and `axes` is the axis of C along each of its
    dimensions (empty for rank 0). If `element` is None, it is a scalar.

    `alignment`: of the first element of each row, in bytes.
    """

    type: str
    element: str | None
    axes: tuple[Axis, ...]
    alignment: int

    @property
    def is_along_rows(self) -> bool:
        """Whether consecutive elements of a row of C read consecutive elements of the operand."""
        return self.axes[-1:] == (Axis("column"),)

    def is_along(self, line: Line | None) -> bool:
        """Whether consecutive elements of a line read consecutive elements of the operand. Without
        a line, see `is_along_rows`."""
        if line is None or self.is_along_rows or not self.axes:
            return self.is_along_rows
        *outer, last = self.axes
        return line.holds_neighbours(last) and all(map(line.is_constant, outer))

    def is_constant(self, line: Line | None) -> bool:
        """Whether all elements of a line, or of a row of C if `line` is None, read the same element
        of the operand."""
        if line is None:
            return all(axis.name != "column" for axis in self.axes)
        return all(map(line.is_constant, self.axes))


class Problem(Struct, frozen=True):
    """C = A · B, or C += A · B: A is M x K, B is K x N, C is M x N; `Matrix.transposed` says how A
    and B are stored.

    `accumulator`: the accumulator type, which the operation requires. `batched`: all three have a
    leading batch dimension. `allow_tf32`: f32 elements may be rounded to tf32 before they are
    multiplied. `allow_3xtf32`: each may be split into a sum of two tf32, and the product of the two
    low parts is omitted. `exact_accumulation`: the accumulators of tensor cores are promoted (added
    to further accumulators) before they lose bits. `epilogue_operands`: the further operands that
    the epilogue reads, `%e0`, `%e1` and so on.
    """

    a: Matrix
    b: Matrix
    c: Matrix
    accumulator: str
    adds: bool = False
    batched: bool = False
    allow_tf32: bool = False
    allow_3xtf32: bool = False
    exact_accumulation: bool = False
    epilogue_operands: tuple[EpilogueOperand, ...] = ()

    @property
    def operation(self) -> str:
        """The operation in kernel names, such as `matmul_f16_tn`: its types and layouts. Layouts
        are named as in BLAS and CUTLASS, first A's, then B's: `n` is column-major and `t`
        row-major."""
        name = "batched_matmul" if self.batched else "matmul"
        layouts = "".join("n" if matrix.transposed else "t" for matrix in (self.a, self.b))
        return "_".join((name, *self._elements(), layouts))

    def _elements(self) -> list[str]:
        return list(dict.fromkeys((self.a.element, self.b.element, self.c.element)))

    @property
    def arguments(self) -> dict[str, str]:
        """The types of the arguments of `MatmulFamily.function`, by their names."""
        types = {"a": self.a.type, "b": self.b.type, "c": self.c.type}
        return types | {
            f"e{number}": operand.type for number, operand in enumerate(self.epilogue_operands)
        }

    @property
    def likely_batch(self) -> int:
        """The size of the batch (1 without a batch), or `LIKELY_SIZE` if it is unknown."""
        if not self.batched:
            return 1
        first = self.c.type.removeprefix("memref<").partition("x")[0]
        return int(first) if first.isdigit() else LIKELY_SIZE

    @property
    def has_matrices(self) -> bool:
        """Whether A, B and C are matrices in memory, which have sizes and pitches."""
        return True

    @property
    def padded_operand(self) -> str | None:
        """The operand, "a" or "b", in place of which the kernel reads an image without its padding,
        and pads it."""
        return None

    def without_padding(self, operand: str) -> Problem:
        """The problem whose operand, "a" or "b", is the padded image."""
        return self

    @property
    def name(self) -> str:
        """The operation in messages."""
        return "matmul"

    @property
    def has_slow_loops(self) -> bool:
        """Whether the CPU has kernels because loops are slow for problems of any size."""
        return False

    @property
    def has_known_sizes(self) -> bool:
        return None not in (self.m, self.n, self.k)

    @property
    def m(self) -> int | None:
        return self.c.sizes[0]

    @property
    def n(self) -> int | None:
        return self.c.sizes[1]

    @property
    def k(self) -> int | None:
        return self.a.sizes[0 if self.a.transposed else 1]


class Line(Struct, frozen=True):
    """A group of `size` consecutive columns of C, such as the pixels of an image or of a row of an
    image. `number` is the index of the group; its first column is `number` * `size`."""

    size: int
    number: Number

    def is_constant(self, axis: Axis) -> bool:
        """Whether the axis has the same index for all columns of a line."""
        return axis.name != "column" or axis.divisor % self.size == 0

    def holds_neighbours(self, axis: Axis) -> bool:
        """Whether the axis has consecutive indices for the columns of a line."""
        if axis.name != "column" or axis.divisor != 1:
            return False
        return axis.modulus is None or axis.modulus % self.size == 0


class Place(Struct, frozen=True):
    """The indices of several elements of one row of C, as values of type index: the batch (None
    without a batch), the row, and the column of each element.

    `is_whole`: the columns are consecutive, and the first one is a multiple of their number.
    Otherwise columns beyond C's last one are replaced by another column. `given`: the values of
    epilogue operands at these elements, by the operand's number, if the kernel has loaded them.
    `line`: the line that has all columns, if known.
    """

    batch: Value | None
    row: Value
    columns: Sequence[Value]
    is_whole: bool = False
    given: Mapping[int, Sequence[Value]] = {}
    line: Line | None = None


# Builds the epilogue: (builder, accumulators, their indices in C) → values of C's element type. The
# indices are in bounds.
EpilogueBuilder = Callable[[Builder, Sequence[Value], Place], Sequence[Value]]


class Arguments(Struct, frozen=True):
    """A problem's operands in host code: buffers, and the epilogue operands. `epilogue` builds the
    values that are stored to C from accumulators; None if they are only converted. `gates`: what
    the kernel stores instead of C, if its columns are gates that it combines. `rows`: the first of
    the rows of C that are computed, and their number; None for all of them. `packed_b`: a copy of B
    in the order in which some kernels read it, for those that read the original, too."""

    a: Value
    b: Value
    c: Value
    epilogue_operands: tuple[Value, ...] = ()
    epilogue: EpilogueBuilder | None = None
    gates: tuple[Gates, GateArguments] | None = None
    rows: tuple[Number, Number] | None = None
    packed_b: Value | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        return self.a, self.b, self.c, *self.epilogue_operands
