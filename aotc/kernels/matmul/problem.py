"""What a kernel for a matmul is to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from aotc.builder import Builder
from aotc.numbers import Value

# Bytes of the elements of matrices, by their types in MLIR.
ELEMENT_BYTES = {
    "f64": 8,
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "f8E4M3FN": 1,
    "f8E5M2": 1,
    "i32": 4,
    "i8": 1,
}


class Matrix(Struct, frozen=True):
    """An operand: the type of its buffer (`memref<?x64xf16>`), with one dimension for a batch in
    front where the problem has one; the last dimension is contiguous.

    `sizes` are of rows and columns as they lie in memory, None for one that is not known.
    `pitch` is how many elements lie between two rows, None if that is not known; `alignment` how
    many bytes every row's address is a multiple of, as far as is known.
    `transposed`: A is given as K x M, B as N x K.
    """

    type: str
    element: str
    sizes: tuple[int | None, int | None]
    pitch: int | None
    alignment: int
    transposed: bool = False


class Axis(Struct, frozen=True):
    """Where an element of C is: its `batch`, `row` or `column`, divided by `divisor`, of which
    `modulus` takes the remainder: an outer and an inner dimension that rows are counted over."""

    name: str
    divisor: int = 1
    modulus: int | None = None


class EpilogueOperand(Struct, frozen=True):
    """What is read to make an element of C from its sum: a buffer, and the axis of C along each of
    its dimensions (none: a scalar in a buffer); or, without an element type, a scalar itself.

    `alignment`: how many bytes the address of each row's first element is a multiple of.
    """

    type: str
    element: str | None
    axes: tuple[Axis, ...]
    alignment: int

    @property
    def is_along_rows(self) -> bool:
        """Whether neighbours in a row of C read neighbours of it."""
        return self.axes[-1:] == (Axis("column"),)


class Problem(Struct, frozen=True):
    """C = A · B, or C += A · B: A is M x K, B is K x N (`transposed`: as they lie), C is M x N.

    Products are added as `accumulator`, the type that the operation asks for. With `batched`,
    matrices are those of one dimension in front, which all three have. `allow_tf32`: elements of
    f32 may be rounded to tf32 before they are multiplied; `allow_3xtf32`: they may be parted into
    sums of two of tf32 each, of whose products the least one is left out. `exact_accumulation`:
    what tensor cores add is added to other sums before it loses bits. `epilogue_operands` are
    further operands, `%e0` and so on, for what is done with sums before they are stored.
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
        """The operation in kernels' names, as `matmul_f16_tn`: its types and layouts. Layouts are
        named as in BLAS and CUTLASS, first A's, then B's: `n` is column-major and `t` row-major."""
        name = "batched_matmul" if self.batched else "matmul"
        layouts = "".join("n" if matrix.transposed else "t" for matrix in (self.a, self.b))
        return "_".join((name, *self._elements(), layouts))

    def _elements(self) -> list[str]:
        return list(dict.fromkeys((self.a.element, self.b.element, self.c.element)))

    @property
    def arguments(self) -> dict[str, str]:
        """The types of the arguments of a family's function, by their names."""
        types = {"a": self.a.type, "b": self.b.type, "c": self.c.type}
        return types | {
            f"e{number}": operand.type for number, operand in enumerate(self.epilogue_operands)
        }

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


class Place(Struct, frozen=True):
    """Of elements of C that are neighbours in a row: their batch (None: there is none), their row,
    and the column of each, values of type index.

    `is_whole`: the first column is a multiple of how many there are, and the others follow it.
    Without that a column may be there twice, as one behind C's last is. `given`: what epilogue
    operands have there, by their numbers, of those that the kernel has read itself.
    """

    batch: Value | None
    row: Value
    columns: Sequence[Value]
    is_whole: bool = False
    given: Mapping[int, Sequence[Value]] = {}


class Arguments(Struct, frozen=True):
    """A problem's operands in host code: buffers, and the epilogue operands."""

    a: Value
    b: Value
    c: Value
    epilogue_operands: tuple[Value, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        return self.a, self.b, self.c, *self.epilogue_operands


# What sums become before they are stored: of a builder, sums (values of the accumulator's type)
# and where they are, values of C's element type. Places are inside of C.
EpilogueBuilder = Callable[[Builder, Sequence[Value], Place], Sequence[Value]]
