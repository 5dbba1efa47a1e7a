"""Which lane of a warp holds which element of a matrix.

Two ways to share a matrix among 32 lanes. `MmaFragment` is the layout that the PTX manual gives
for `mma.sync`, which programs can see: they load and store their registers themselves. `Spread`
is ours, for `!gpu.mma_matrix`, whose layout no program may know: it is by rows, so that what a
lane computes stands in one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotc.cpu.synchronize import WARP_SIZE

# A row and a column, or a distance of both.
Place = tuple[int, int]

# `mma.sync` is made of tiles of 8 rows, of 8 columns, and of 4 registers along k: the lanes of
# a warp are 8 groups of 4.
_TILE = 8
_GROUP = 4

# (m, n, k) by the types of the multiplicands and of the accumulators, as the PTX manual has them
# and `nvgpu.mma.sync` can say them. f32 are tf32 there.
MMA_SHAPES: dict[tuple[str, str], frozenset[tuple[int, int, int]]] = {
    ("f16", "f16"): frozenset({(16, 8, 8), (16, 8, 16)}),
    ("f16", "f32"): frozenset({(16, 8, 8), (16, 8, 16)}),
    ("bf16", "f32"): frozenset({(16, 8, 8), (16, 8, 16)}),
    ("f32", "f32"): frozenset({(16, 8, 4), (16, 8, 8)}),
    ("f64", "f64"): frozenset({(8, 8, 4)}),
    ("i8", "i32"): frozenset({(8, 8, 16), (16, 8, 16), (16, 8, 32)}),
    ("i4", "i32"): frozenset({(8, 8, 32), (16, 8, 32), (16, 8, 64)}),
}


@dataclass(frozen=True)
class MmaFragment:
    """A matrix in the registers of a warp, each register holding one or more elements.

    Lane 4 * group + member holds, in element e of register r, what stands at
    `group * group_step + member * member_step + offsets[r][e]`.
    """

    rows: int
    columns: int
    group_step: Place
    member_step: Place
    offsets: tuple[tuple[Place, ...], ...]

    def place(self, lane: int, register: int, element: int) -> Place:
        """The row and the column of an element."""
        group, member = divmod(lane, _GROUP)
        row, column = (
            group * self.group_step[d] + member * self.member_step[d]
            + self.offsets[register][element][d]
            for d in range(2)
        )
        return row, column


def mma_fragments(
    m: int, n: int, k: int, width: int
) -> tuple[MmaFragment, MmaFragment, MmaFragment]:
    """A (m x k), B (k x n) and the accumulators (m x n), n being 8.

    `width` is the number of multiplicands in a register: 32 bits of them, or one f64.
    """
    row_tiles = m // _TILE
    depth = _GROUP * width
    k_tiles = k // depth
    a = MmaFragment(
        m,
        k,
        group_step=(1, 0),
        member_step=(0, width),
        # The rows' tiles first, then those along k.
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
        offsets=tuple(((_TILE * row_tile, 0), (_TILE * row_tile, 1)) for row_tile in range(row_tiles)),
    )
    return a, b, c


@dataclass(frozen=True)
class Spread:
    """A matrix of which lane l holds the elements [l * count, (l + 1) * count), row by row."""

    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns // WARP_SIZE

    @property
    def fits(self) -> bool:
        """Whether every lane has the same number of elements, all in one row."""
        return (
            self.rows * self.columns > 0
            and self.rows * self.columns % WARP_SIZE == 0
            and self.columns % self.count == 0
        )

    def place(self, lane: int, element: int) -> Place:
        return divmod(lane * self.count + element, self.columns)


# ldmatrix: tiles of 8 rows of 16 bytes. Lane i gives the address of row i % 8 of tile i / 8.
LDMATRIX_ROWS = 8
LDMATRIX_ROW_BYTES = 16
LDMATRIX_TILE_BYTES = LDMATRIX_ROWS * LDMATRIX_ROW_BYTES


def ldmatrix_offset(lane: int, element: int, element_bytes: int, *, transpose: bool) -> int:
    """Where in a tile, in bytes, an element of a lane's register is from.

    `transpose` is for elements of 2 bytes.
    """
    group, member = divmod(lane, _GROUP)
    if transpose:
        return LDMATRIX_ROW_BYTES * (2 * member + element) + 2 * group
    return LDMATRIX_ROW_BYTES * group + 4 * member + element_bytes * element
