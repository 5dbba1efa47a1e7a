"""Which lane holds which element of a matrix: the PTX manual's formulas, element by element."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aotc.targets.cpu.expand.fragments import (
    LDMATRIX,
    LDMATRIX_TRANSPOSED,
    MMA_SHAPES,
    WMMA_SHAPES,
    MmaFragment,
    Place,
    RowMajorFragment,
    mma_fragments,
)

# Of a lane's group and member, and of the number of its element: the row and the column, as the
# manual's pages «Matrix Fragments for mma.mMnNkK» give them.
Formula = Callable[[int, int, int], Place]

A: dict[tuple[str, int, int], Formula] = {
    ("f16", 16, 8): lambda g, t, i: (g + (8 if i >= 2 else 0), 2 * t + i % 2),
    ("f16", 16, 16): lambda g, t, i: (
        g if i < 2 or 4 <= i < 6 else g + 8,
        2 * t + i % 2 + (8 if i >= 4 else 0),
    ),
    ("tf32", 16, 4): lambda g, t, i: (g + (8 if i == 1 else 0), t),
    ("tf32", 16, 8): lambda g, t, i: (g + (8 if i in (1, 3) else 0), t + (4 if i >= 2 else 0)),
    ("f64", 8, 4): lambda g, t, i: (g, t),
    ("f64", 16, 4): lambda g, t, i: (g + (8 if i == 1 else 0), t),
    ("f64", 16, 8): lambda g, t, i: (g + (8 if i in (1, 3) else 0), t + (4 if i >= 2 else 0)),
    ("i8", 8, 16): lambda g, t, i: (g, 4 * t + i),
    ("i8", 16, 16): lambda g, t, i: (g + (8 if i >= 4 else 0), 4 * t + i % 4),
    ("i8", 16, 32): lambda g, t, i: (
        g if i < 4 or 8 <= i < 12 else g + 8,
        4 * t + i % 4 + (16 if i >= 8 else 0),
    ),
    ("i4", 8, 32): lambda g, t, i: (g, 8 * t + i),
    ("i4", 16, 32): lambda g, t, i: (g + (8 if i >= 8 else 0), 8 * t + i % 8),
    ("i4", 16, 64): lambda g, t, i: (
        g if i < 8 or 16 <= i < 24 else g + 8,
        8 * t + i % 8 + (32 if i >= 16 else 0),
    ),
}
B: dict[tuple[str, int], Formula] = {
    ("f16", 8): lambda g, t, i: (2 * t + i, g),
    ("f16", 16): lambda g, t, i: (2 * t + i % 2 + (8 if i >= 2 else 0), g),
    ("tf32", 4): lambda g, t, i: (t, g),
    ("tf32", 8): lambda g, t, i: (t + (4 if i == 1 else 0), g),
    ("f64", 4): lambda g, t, i: (t, g),
    ("f64", 8): lambda g, t, i: (t + (4 if i == 1 else 0), g),
    ("i8", 16): lambda g, t, i: (4 * t + i, g),
    ("i8", 32): lambda g, t, i: (4 * t + i % 4 + (16 if i >= 4 else 0), g),
    ("i4", 32): lambda g, t, i: (8 * t + i, g),
    ("i4", 64): lambda g, t, i: (8 * t + i % 8 + (32 if i >= 8 else 0), g),
}
C: dict[int, Formula] = {
    8: lambda g, t, i: (g, 2 * t + i),
    16: lambda g, t, i: (g + (8 if i >= 2 else 0), 2 * t + i % 2),
}
WIDTHS = {"f16": 2, "bf16": 2, "tf32": 1, "f64": 1, "i8": 4, "i4": 8}

SHAPES = sorted(
    {
        (type_.replace("bf16", "f16").replace("f32", "tf32"), *shape)
        for (type_, _), shapes in MMA_SHAPES.items()
        for shape in shapes
    }
)


def places(fragment: MmaFragment, lane: int) -> list[Place]:
    """Of the elements of all registers of a lane, in order."""
    return [
        fragment.place(lane, register, element)
        for register, elements in enumerate(fragment.offsets)
        for element in range(len(elements))
    ]


def check(fragment: MmaFragment, formula: Formula, rows: int, columns: int) -> None:
    assert (fragment.rows, fragment.columns) == (rows, columns)
    everywhere = []
    for lane in range(32):
        own = places(fragment, lane)
        assert own == [formula(lane // 4, lane % 4, i) for i in range(rows * columns // 32)]
        everywhere += own
    assert sorted(everywhere) == [(row, column) for row in range(rows) for column in range(columns)]


@pytest.mark.parametrize(("type_", "m", "n", "k"), SHAPES)
def test_registers_are_the_manuals(type_: str, m: int, n: int, k: int) -> None:
    """Every element of A, B and C is where the manual says, each exactly once."""
    a, b, c = mma_fragments(m, n, k, WIDTHS[type_])
    check(a, A[type_, m, k], m, k)
    check(b, B[type_, k], k, n)
    check(c, C[m], m, n)


@pytest.mark.parametrize(("type_", "m", "n", "k"), SHAPES)
def test_a_and_c_are_stored_by_rows(type_: str, m: int, n: int, k: int) -> None:
    """A register of A holds neighbours in a row, one of B neighbours in a column."""
    a, b, c = mma_fragments(m, n, k, WIDTHS[type_])
    assert (a.is_by_rows, c.is_by_rows) == (True, True)
    assert b.is_by_rows == (WIDTHS[type_] == 1)


def test_ldmatrix_gives_a_fragment() -> None:
    """A register of a tile is what mma.sync wants of 16-bit elements: rows for A, columns for B."""
    a, b, _ = mma_fragments(16, 8, 8, 2)
    for lane in range(32):
        row, word = LDMATRIX.place(lane, 0, 0)
        assert [(row, 2 * word), (row, 2 * word + 1)] == places(a, lane)[:2]
        assert places(LDMATRIX_TRANSPOSED, lane) == places(b, lane)


SPREADS = sorted(
    {
        size
        for shapes in WMMA_SHAPES.values()
        for m, n, k in shapes
        for size in ((m, k), (k, n), (m, n))
    }
)


@pytest.mark.parametrize(("rows", "columns"), SPREADS)
def test_spread_covers_a_matrix(rows: int, columns: int) -> None:
    """Every element of a wmma matrix has one lane, and a lane's elements are in one row."""
    layout = RowMajorFragment(rows, columns)
    assert layout.fits
    everywhere = []
    for lane in range(32):
        own = [layout.place(lane, element) for element in range(layout.count)]
        assert len({row for row, _ in own}) == 1
        everywhere += own
    assert everywhere == [(row, column) for row in range(rows) for column in range(columns)]


@pytest.mark.parametrize(("rows", "columns"), [(0, 32), (3, 5), (64, 8), (48, 8)])
def test_other_matrices_do_not_spread(rows: int, columns: int) -> None:
    """What does not divide, or what would give a lane more than a row, is refused."""
    assert not RowMajorFragment(rows, columns).fits
