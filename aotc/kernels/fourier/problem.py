"""The parameters of a Fourier transform, and the partition of the work in its kernel."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

# The points of a row that a thread has in registers.
POINTS = 8
_MOST_THREADS = 1024
# The rows of a block if rows are the contiguous dimension, so that a warp accesses whole sectors.
_ADJACENT_ROWS = 16
# The shared memory of a block for its points: without the opt-in to more dynamic shared memory, and
# with it, for more adjacent rows.
_SHARED_BYTES, _MORE_SHARED_BYTES = 32 << 10, 64 << 10


class Kind(StrEnum):
    """The kind of a transform, by the names of FFTW and PyTorch: complex to complex, real to
    complex, complex to real."""

    C2C = "c2c"
    R2C = "r2c"
    C2R = "c2r"


class Order(StrEnum):
    """Which of the last two dimensions of a batch of rows is contiguous: the points of a row, or
    the rows."""

    POINTS_LAST = "points_last"
    ROWS_LAST = "rows_last"


class Transform(Struct, frozen=True):
    """Rows of `length` points: y[k] = sum of x[j] exp(sign 2πi jk / length), not normalized.

    For R2C, `length` / 2 + 1 points of the result are computed. For C2R, the same number of points
    is read, and the first and the last are assumed to be real. `rows` is the number of rows, None
    if unknown. `source` and `target` are the orders of the operand and of the result. `has_more`: a
    block may have 80 KiB of shared memory on every GPU that the kernel is for.
    """

    kind: Kind
    length: int
    sign: int
    element: str
    source: Order
    target: Order
    rows: int | None = None
    has_more: bool = True

    @property
    def points(self) -> int:
        """The length of the complex transform. For real rows, two adjacent numbers are one
        point."""
        return self.length if self.kind is Kind.C2C else self.length // 2

    @property
    def is_adjacent(self) -> bool:
        """Whether rows are the contiguous dimension of the operand or of the result."""
        return Order.ROWS_LAST in (self.source, self.target)

    @property
    def element_bytes(self) -> int:
        return 8 if self.element == "f64" else 4

    @property
    def block_rows(self) -> int:
        """The rows of a block: a power of two."""
        most = most_points(self.element) // self.points
        rows = max(1, most // 2)
        if self.is_adjacent:
            if self.has_more:
                most *= _MORE_SHARED_BYTES // _SHARED_BYTES
            rows = max(rows, min(most, _ADJACENT_ROWS))
        rows = min(rows, max(1, _MOST_THREADS * POINTS // self.points))
        while self.rows is not None and rows > 1 and rows // 2 >= self.rows:
            rows //= 2
        return rows

    @property
    def threads(self) -> int:
        return self.block_rows * self.points // POINTS

    @property
    def radices(self) -> list[int]:
        """The radices of the passes. Their product is the number of points."""
        rest, found = self.points, []
        while rest > 1:
            found.append(min(rest, POINTS))
            rest //= found[-1]
        return found


def most_points(element: str) -> int:
    """The number of complex points that fit a block's shared memory."""
    return _SHARED_BYTES // (16 if element == "f64" else 8)


def is_possible(kind: Kind, length: int, element: str) -> bool:
    """Whether the kernel supports rows of `length` points of this element type."""
    points = length if kind is Kind.C2C else length // 2
    is_power = length & (length - 1) == 0
    return element in ("f32", "f64") and is_power and POINTS <= points <= most_points(element)
