"""Parallel loops → launches: the shape of blocks, and that every point is visited once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import Library, build_library

from aotc.chips import MAX_BLOCK, WARP
from aotc.lower.mapping.blocks import (
    MAX_GRID_YZ,
    MIN_THREADS,
    BlockShape,
    choose_block,
)

MAX_THREADS = 1024
EXTENTS = (None, 0, 1, 2, 3, 5, 8, 31, 32, 33, 64, 100, 127, 128, 255, 256, 1000, 10**6)


# --- The shape of a block --------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_block_is_full_and_allowed(rank: int) -> None:
    """A block has 128 to 1024 threads, and no more along z than CUDA allows."""
    for extents in itertools.product(EXTENTS, repeat=rank):
        block = choose_block(extents)
        assert MIN_THREADS <= block.threads <= MAX_THREADS, (extents, block)
        assert 1 <= block.z <= MAX_BLOCK[2], (extents, block)
        assert min(block.x, block.y) >= 1, (extents, block)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_wide_inner_loop_gets_whole_warps(rank: int) -> None:
    """Neighbouring threads touch neighbouring elements: a warp runs along x where it can."""
    for extents in itertools.product(EXTENTS, repeat=rank):
        block = choose_block(extents)
        if extents[0] is None or extents[0] >= WARP:
            assert block.x % WARP == 0, (extents, block)


def test_no_axis_but_x_is_wider_than_its_loop_needs() -> None:
    for extents in itertools.product(EXTENTS, repeat=3):
        block = choose_block(extents)
        for extent, size in zip(extents[1:], (block.y, block.z), strict=True):
            if extent is not None:
                assert size < 2 * max(extent, 1) or size == 1 or extent == 0, (extents, block)


@pytest.mark.parametrize(
    ("extents", "expected"),
    [
        ((1000,), BlockShape(256, 1, 1)),
        ((None, None), BlockShape(32, 8, 1)),
        ((1024, 1024), BlockShape(32, 8, 1)),
        ((4096, 4096), BlockShape(32, 8, 1)),
        # Few rows that are long.
        ((200704, 8), BlockShape(256, 1, 1)),
        ((1000, 8), BlockShape(32, 8, 1)),
        ((1000, 1), BlockShape(256, 1, 1)),
        ((3, 1000), BlockShape(4, 64, 1)),
        ((64, 4, 4), BlockShape(32, 4, 2)),
        ((1, 1, 1), BlockShape(128, 1, 1)),
    ],
)
def test_blocks_of_common_loops(extents: tuple[int | None, ...], expected: BlockShape) -> None:
    assert choose_block(extents) == expected


# --- What the launch looks like --------------------------------------------------------


def _counting_loop(
    name: str, bounds: list[tuple[int, int, int]], *, dynamic: bool, dtype: str = "i32"
) -> str:
    """An entry whose loop adds 1 to an element for each of its points.

    With `dynamic`, lower and upper bounds and steps are arguments.
    """
    rank = len(bounds)
    shape = "x".join(["?"] * rank)
    memref = f"memref<{shape}x{dtype}>"
    parameters, constants, groups = [], [], ([], [], [])
    for d, bound in enumerate(bounds):
        for kind, number, group in zip(("lo", "hi", "by"), bound, groups, strict=True):
            group.append(f"%{kind}{d}")
            if dynamic:
                parameters.append(f"%{kind}{d}: index")
            else:
                constants.append(f"%{kind}{d} = arith.constant {number} : index")
    ivs = [f"%i{d}" for d in range(rank)]
    lower, upper, step = (", ".join(group) for group in groups)
    arguments = ", ".join([f"%count: {memref}", *parameters])
    place = f"%count[{', '.join(ivs)}] : {memref}"
    return f"""
func.func @{name}({arguments}) attributes {{llvm.emit_c_interface}} {{
  {"; ".join(constants).replace("; ", chr(10) + "  ")}
  %one = arith.constant 1 : {dtype}
  scf.parallel ({", ".join(ivs)}) = ({lower}) to ({upper}) step ({step}) {{
    %old = memref.load {place}
    %new = arith.addi %old, %one : {dtype}
    memref.store %new, {place}
  }}
  return
}}
"""


def _geometry(text: str) -> list[tuple[str, ...]]:
    """(grid, threads) of each launch in outlined MLIR, constants by their value."""
    constants = dict(re.findall(r"(%c[-\w]+) = arith.constant (-?\d+) : index", text))
    return [
        tuple(
            ", ".join(constants.get(word, "?") for word in group.split(", "))
            for group in launch.groups()
        )
        for launch in re.finditer(r"blocks in \(([^)]*)\) threads in \(([^)]*)\)", text)
    ]


@pytest.mark.parametrize(
    ("bounds", "grid", "threads"),
    [
        ([(0, 1000, 1)], "4, 1, 1", "256, 1, 1"),
        # Vectors of four neighbours.
        ([(0, 1 << 18, 1)], "256, 1, 1", "256, 1, 1"),
        ([(0, 1024, 1), (0, 1024, 1)], "8, 128, 1", "32, 8, 1"),
        ([(0, 1024, 1), (0, 100, 1)], "1, 103, 1", "25, 10, 1"),
        ([(0, 1024, 1), (0, 101, 1)], "4, 128, 1", "32, 8, 1"),
        ([(3, 300, 7), (0, 50, 1)], "2, 6, 1", "32, 8, 1"),
        # Outer dimensions run together along z.
        ([(0, 6, 1), (0, 5, 1), (0, 4, 1), (0, 64, 1)], "2, 1, 15", "32, 4, 2"),
        # More blocks than a grid's y can have: walked in strides.
        ([(0, 10_000_000, 1), (0, 32, 1)], f"1, {MAX_GRID_YZ}, 1", "8, 32, 1"),
        # Work for many blocks: a thread has four points.
        ([(0, 1 << 28, 1)], f"{1 << 18}, 1, 1", "256, 1, 1"),
        ([(0, 1 << 20, 2)], f"{1 << 9}, 1, 1", "256, 1, 1"),
        ([(0, 8192, 1), (0, 8191, 1)], "256, 256, 1", "32, 8, 1"),
    ],
)
def test_grid_of_known_loops(
    bounds: list[tuple[int, int, int]],
    grid: str,
    threads: str,
    aotc: Callable[..., Outcome],
    mlir_file: Callable[..., Path],
) -> None:
    path = mlir_file(_counting_loop("f", bounds, dynamic=False))
    built = aotc("build", path, "--emit", "mlir", "--no-cpu-kernels", "-o", "-")
    assert _geometry(built.succeeded().stdout) == [(grid, threads)]


def test_a_loop_that_divides_has_no_guard(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> None:
    path = mlir_file(_counting_loop("f", [(0, 64, 1), (0, 96, 1)], dynamic=False))
    text = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    assert "gpu.launch_func" in text
    assert "scf.if" not in text


def test_only_the_dimension_that_does_not_divide_is_guarded(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> None:
    path = mlir_file(_counting_loop("f", [(0, 64, 1), (0, 97, 1)], dynamic=False))
    built = aotc("build", path, "--emit", "mlir", "--no-cpu-kernels", "-o", "-")
    text = built.succeeded().stdout
    assert text.count("scf.if") == 1
    assert "%c97 = arith.constant 97" in text


def test_mappings_by_hand_are_kept(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> None:
    """A loop with gpu.loop_dim_map runs as its author mapped it, next to one that aotc maps."""
    path = mlir_file(
        """
func.func @f(%a: memref<40x24xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 40 : index
  %columns = arith.constant 24 : index
  %v = arith.constant 1.0 : f32
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
    memref.store %v, %a[%i, %j] : memref<40x24xf32>
  } {mapping = [#gpu.loop_dim_map<processor = block_y, map = (d0) -> (d0), bound = (d0) -> (d0)>,
                #gpu.loop_dim_map<processor = thread_x, map = (d0) -> (d0), bound = (d0) -> (d0)>]}
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    memref.store %v, %a[%i, %c0] : memref<40x24xf32>
  }
  return
}
"""
    )
    text = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    assert _geometry(text) == [("1, 40, 1", "24, 1, 1"), ("1, 1, 1", "256, 1, 1")]


def _totals(*reductions: tuple[str, str]) -> str:
    """A function of reductions of %a by an operation, each from a value on: %t0 is zero, %t1 what
    the first reduction gives, ..."""
    loops = "".join(
        f"""
  %t{number} = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%t{first}) -> f32 {{
    %v = memref.load %a[%i] : memref<?xf32>
    scf.reduce(%v : f32) {{
    ^bb0(%l: f32, %r: f32):
      %s = {operation} %l, %r : f32
      scf.reduce.return %s : f32
    }}
  }}"""
        for number, (operation, first) in enumerate(reductions, 1)
    )
    return f"""
func.func @total(%a: memref<?xf32>) -> f32 attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t0 = arith.constant 0.0 : f32
  %n = memref.dim %a, %c0 : memref<?xf32>{loops}
  return %t{len(reductions)} : f32
}}
"""


def test_a_reduction_is_two_kernels(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    text = _totals(("arith.addf", "0"))
    outlined = aotc("build", mlir_file(text), "--emit", "mlir", "-o", "-").succeeded().stdout
    assert [threads for _, threads in _geometry(outlined)] == ["256, 1, 1", "512, 1, 1"]
    assert "atomic" not in outlined
    library = build_library(text, tmp_path)
    assert library.call("total", np.arange(100, dtype=np.float32)) == 4950.0


def test_a_reduction_begins_with_the_result_of_another(tmp_path: Path) -> None:
    library = build_library(_totals(("arith.maximumf", "0"), ("arith.addf", "1")), tmp_path)
    assert library.call("total", np.arange(100, dtype=np.float32)) == 4950.0 + 99.0


# --- What it computes ------------------------------------------------------------------

STATIC_LOOPS: dict[str, list[tuple[int, int, int]]] = {
    "one": [(0, 1, 1)],
    "divides": [(0, 512, 1)],
    "does_not_divide": [(0, 300, 1)],
    "steps": [(5, 300, 7)],
    "step_past_the_end": [(2, 6, 50)],
    "empty": [(9, 9, 1)],
    "reversed": [(9, 3, 1)],
    "two": [(1, 37, 1), (0, 70, 3)],
    "two_narrow": [(0, 500, 1), (0, 3, 1)],
    "two_empty": [(0, 20, 1), (4, 4, 1)],
    "three": [(1, 9, 2), (0, 7, 1), (2, 45, 1)],
    "four": [(0, 3, 1), (1, 6, 2), (0, 9, 1), (0, 33, 1)],
    "five": [(0, 2, 1), (1, 4, 1), (0, 3, 2), (0, 5, 1), (0, 6, 1)],
    "outer_only": [(0, 100, 1), (0, 1, 1), (0, 1, 1)],
}


def _points(bounds: list[tuple[int, int, int]]) -> tuple[tuple[int, ...], np.ndarray]:
    """A shape that holds every point of the loop, and 1 where the loop has one."""
    shape = tuple(max(low, high, 1) + 2 for low, high, _ in bounds)
    expected = np.zeros(shape, np.int32)
    expected[np.ix_(*[range(*bound) for bound in bounds])] = 1
    return shape, expected


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Every loop of STATIC_LOOPS, and one of each rank whose bounds are arguments."""
    text = "".join(
        _counting_loop(name, bounds, dynamic=False) for name, bounds in STATIC_LOOPS.items()
    )
    for rank in range(1, 6):
        text += _counting_loop(f"dynamic{rank}", [(0, 0, 1)] * rank, dynamic=True)
    return build_library(text, tmp_path_factory.mktemp("loops"), "-O1")


@pytest.mark.parametrize("name", STATIC_LOOPS)
def test_each_point_of_a_static_loop_runs_once(name: str, loops: Library) -> None:
    shape, expected = _points(STATIC_LOOPS[name])
    count = np.zeros(shape, np.int32)
    loops.call(name, count)
    np.testing.assert_array_equal(count, expected)


@pytest.mark.parametrize("name", STATIC_LOOPS)
def test_each_point_of_a_dynamic_loop_runs_once(name: str, loops: Library) -> None:
    bounds = STATIC_LOOPS[name]
    shape, expected = _points(bounds)
    count = np.zeros(shape, np.int32)
    loops.call(f"dynamic{len(bounds)}", count, *itertools.chain(*bounds))
    np.testing.assert_array_equal(count, expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("outer", ["y", "z"])
def test_more_blocks_than_a_grid_can_have(outer: str, dynamic: bool, tmp_path: Path) -> None:
    """Past 65535 blocks along y or z, each block walks in strides."""
    # Blocks of 4 x 64 threads, or 1 x 4 x 64: more than 65535 of them.
    rows = 65535 * 64 + 100
    bounds = [(0, rows, 1), (0, 3, 1)] if outer == "y" else [(0, rows, 1), (0, 1, 1), (0, 1, 1)]
    text = _counting_loop("f", bounds, dynamic=dynamic, dtype="i8")
    library = build_library(text, tmp_path, "-O1")
    count = np.zeros([high for _, high, _ in bounds], np.int8)
    library.call("f", count, *(itertools.chain(*bounds) if dynamic else ()))
    assert (count == 1).all()


def test_loops_in_loops_and_branches(tmp_path: Path) -> None:
    """A parallel loop under a sequential one and a branch is launched as often as it runs;
    one inside a kernel runs in sequence."""
    library = build_library(
        """
func.func @f(%a: memref<10x20x30xi32>, %odd: i1) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c20 = arith.constant 20 : index
  %c30 = arith.constant 30 : index
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %c10 step %c1 {
    scf.if %odd {
      scf.parallel (%j) = (%c1) to (%c20) step (%c1) {
        %row = memref.load %a[%i, %j, %c0] : memref<10x20x30xi32>
        scf.parallel (%k) = (%c0) to (%c30) step (%c1) {
          %old = memref.load %a[%i, %j, %k] : memref<10x20x30xi32>
          %new = arith.addi %old, %one : i32
          memref.store %new, %a[%i, %j, %k] : memref<10x20x30xi32>
        }
      }
    }
  }
  return
}
""",
        tmp_path,
    )
    count = np.zeros((10, 20, 30), np.int32)
    library.call("f", count, False)
    assert not count.any()
    library.call("f", count, True)
    expected = np.ones_like(count)
    expected[:, 0] = 0
    np.testing.assert_array_equal(count, expected)


def test_affine_loops_with_bounds_that_depend_on_others(tmp_path: Path) -> None:
    """A triangle: the inner loop's bound is the outer's variable, and stays sequential."""
    library = build_library(
        """
func.func @f(%a: memref<50x50xi32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 50 {
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to 50 {
      %v = arith.constant 1 : i32
      affine.store %v, %a[%i, %j] : memref<50x50xi32>
    }
  }
  return
}
""",
        tmp_path,
    )
    got = np.zeros((50, 50), np.int32)
    library.call("f", got)
    np.testing.assert_array_equal(got, np.triu(np.ones((50, 50), np.int32)))
