"""The distribution of a matrix's elements over the lanes of a warp.

There are two layouts. `MmaFragment` is the layout that the PTX manual gives for `mma.sync`. It is
visible to programs, which load and store their registers themselves. `RowMajorFragment` is aotc's
own, for `!gpu.mma_matrix`, whose layout is opaque: it is row-major, so that the elements of a lane
are in one row.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.chips import WARP

# A row and a column, or an offset of both.
Place = tuple[int, int]

# `mma.sync` consists of tiles of 8 rows, of 8 columns, and of 4 registers along k. The lanes of a
# warp are 8 groups of 4.
_TILE = 8
GROUP_SIZE = 4

Shape = tuple[int, int, int]

# The shapes (m, n, k) of `mma.sync` by the element types of the multiplicands and the accumulators,
# as in the PTX manual, as far as `nvgpu.mma.sync` has them. f32 is tf32 there.
MMA_SHAPES: dict[tuple[str, str], frozenset[Shape]] = {
    ("f16", "f16"): frozenset({(16, 8, 8), (16, 8, 16)}),
    ("f16", "f32"): frozenset({(16, 8, 8), (16, 8, 16)}),
    ("bf16", "f32"): frozenset({(16, 8, 8), (16, 8, 16)}),
    ("f32", "f32"): frozenset({(16, 8, 4), (16, 8, 8)}),
    ("f64", "f64"): frozenset({(8, 8, 4), (16, 8, 4), (16, 8, 8)}),
    ("i8", "i32"): frozenset({(8, 8, 16), (16, 8, 16), (16, 8, 32)}),
    ("i4", "i32"): frozenset({(8, 8, 32), (16, 8, 32), (16, 8, 64)}),
}

# The shapes of `mma.sp.sync` that the CPU supports. A has half of the K elements.
SPARSE_SHAPES: dict[tuple[str, str], frozenset[Shape]] = {
    ("f16", "f16"): frozenset({(16, 8, 16), (16, 8, 32)}),
    ("f16", "f32"): frozenset({(16, 8, 16), (16, 8, 32)}),
    ("bf16", "f32"): frozenset({(16, 8, 16), (16, 8, 32)}),
    ("f32", "f32"): frozenset({(16, 8, 8), (16, 8, 16)}),
}

# The shapes of `wmma`, for `gpu.subgroup_mma_compute`.
_WIDE = frozenset({(16, 16, 16), (32, 8, 16), (8, 32, 16)})
WMMA_SHAPES: dict[tuple[str, str], frozenset[Shape]] = {
    ("f16", "f16"): _WIDE,
    ("f16", "f32"): _WIDE,
    ("f32", "f32"): frozenset({(16, 16, 8)}),
    ("f64", "f64"): frozenset({(8, 8, 4)}),
    ("si8", "i32"): _WIDE,
    ("ui8", "i32"): _WIDE,
}


class MmaFragment(Struct, frozen=True):
    """A matrix in the registers of a warp. A register holds one or more elements.

    In lane 4 * group + member, element e of register r is the matrix element at
    `group * group_step + member * member_step + offsets[r][e]`.
    """

    rows: int
    columns: int
    group_step: Place
    member_step: Place
    offsets: tuple[tuple[Place, ...], ...]

    @property
    def is_by_rows(self) -> bool:
        """Whether the elements of each register are consecutive in a row."""
        return all(
            place == (first[0], first[1] + number)
            for first, *others in self.offsets
            for number, place in enumerate(others, 1)
        )

    def place(self, lane: int, register: int, element: int) -> Place:
        """The row and the column of an element of a register."""
        group, member = divmod(lane, GROUP_SIZE)
        row, column = (
            group * self.group_step[d]
            + member * self.member_step[d]
            + self.offsets[register][element][d]
            for d in range(2)
        )
        return row, column


def mma_fragments(
    m: int, n: int, k: int, width: int
) -> tuple[MmaFragment, MmaFragment, MmaFragment]:
    """The fragments of A (m x k), B (k x n) and the accumulators (m x n). n is 8.

    `width` is the number of multiplicands in a register: 32 bits of them, or one f64.
    """
    row_tiles = m // _TILE
    depth = GROUP_SIZE * width
    k_tiles = k // depth
    a = MmaFragment(
        m,
        k,
        group_step=(1, 0),
        member_step=(0, width),
        # Row tiles first, then tiles along k.
        offsets=tuple(
            tuple((_TILE * row_tile, depth * k_tile + e) for e in range(width))
            for k_tile in range(k_tiles)
            for row_tile in range(row_tiles)
        ),
    )
    b = MmaFragment(
        k,
        n,
        group_step=(0, 1),
        member_step=(width, 0),
        offsets=tuple(
            tuple((depth * k_tile + e, 0) for e in range(width)) for k_tile in range(k_tiles)
        ),
    )
    c = MmaFragment(
        m,
        n,
        group_step=(1, 0),
        member_step=(0, 2),
        offsets=tuple(
            ((_TILE * row_tile, 0), (_TILE * row_tile, 1)) for row_tile in range(row_tiles)
        ),
    )
    return a, b, c


class RowMajorFragment(Struct, frozen=True):
    """A matrix of which lane l holds the elements [l * count, (l + 1) * count), in row-major
    order."""

    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns // WARP

    @property
    def fits(self) -> bool:
        """Whether every lane has the same number of elements, all in one row."""
        return (
            self.rows * self.columns > 0
            and self.rows * self.columns % WARP == 0
            and self.columns % self.count == 0
        )

    def place(self, lane: int, element: int) -> Place:
        return divmod(lane * self.count + element, self.columns)


# A tile of ldmatrix has 8 rows of 16 bytes.
LDMATRIX_ROWS = 8
LDMATRIX_ROW_BYTES = 16

# The layout of a tile in the lanes' registers: as 32-bit words, and transposed as 16-bit elements.
LDMATRIX = MmaFragment(8, 4, group_step=(1, 0), member_step=(0, 1), offsets=(((0, 0),),))
LDMATRIX_TRANSPOSED = MmaFragment(
    8, 8, group_step=(0, 1), member_step=(2, 0), offsets=(((0, 0), (1, 0)),)
)
