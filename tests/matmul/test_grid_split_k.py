"""Grid split-K, whose partial sums a second kernel adds, as far as a machine without such a GPU can
tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from matmul.test_wgmma import Aotc, module, problem, relu
from matmul.traced import traced
from msgspec.structs import replace

from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.problem import Arguments
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.grid_split_k import GridSplitK
from aotc.kernels.matmul.wgmma.variants import Variant
from aotc.request import Chip

SLICED = Variant(n=64, consumers=1, stages=4, grid_split_k=3)


@pytest.mark.parametrize("grid_split_k", [2, 3, 7])
@pytest.mark.parametrize("k", [1, 64, 65, 1000, 4100])
def test_each_step_of_k_is_of_one_slice(grid_split_k: int, k: int) -> None:
    """Of all grid split-K the same number of steps; those without are behind the end of K."""
    stages, done, p = -(-k // 64), [], problem(k=k)
    names = ("stages", "slice", "row", "column", "zero", "m", "n")
    with traced(c=p.c.type, **dict.fromkeys(names, "i32")) as trace:
        sizes, arguments = (trace["m"], trace["n"]), Arguments(None, None, trace["c"])
        split_k = GridSplitK(trace.b, p, grid_split_k, arguments, sizes)
        own = split_k.divide(trace["stages"])
        tile = Tile(trace["row"], trace["column"], trace["slice"])
        tile, first = split_k.place(tile, trace["zero"])
        assert tile.batch is None
        for slice_ in range(grid_split_k):
            values = trace.evaluate(stages=stages, slice=slice_)
            assert values[own] >= 1
            done += [values[first] + 64 * i for i in range(values[own])]
    assert done == [64 * i for i in range(len(done))]
    assert len(done) >= stages


@pytest.mark.parametrize(
    ("m", "n", "k", "tile", "grid_split_k", "split_k"),
    [
        (1000, 1000, 8000, (256, 128), 4, 1),
        (512, 512, 8192, (64, 128), 4, 1),
        (256, 256, 16384, (64, 128), 16, 1),
        (512, 4096, 11008, (128, 256), 1, 2),
        (512, 11008, 4096, (256, 176), 1, 1),
        (512, 512, 512, (64, 64), 1, 1),
    ],
)
def test_few_tiles_are_divided_where_k_is_long(
    m: int, n: int, k: int, tile: tuple[int, int], grid_split_k: int, split_k: int
) -> None:
    """As was measured to be fastest."""
    [first, *_] = choose(problem(m=m, n=n, k=k), [Chip("sm_90a")])
    found = first.variant
    assert (found.m, found.n) == tile
    assert (found.grid_split_k, found.cluster_split_k) == (grid_split_k, split_k)


@pytest.mark.parametrize(
    ("why", "fields", "variant"),
    [
        ("batches are not sliced", {"batch": 2}, SLICED),
        ("nor is what has unknown sizes", {"dynamic": True}, SLICED),
        ("nor what clusters divide", {}, replace(SLICED, cluster_split_k=2)),
        ("C is not made transposed", {}, Variant(n=96, transposes_c=True, grid_split_k=2)),
    ],
)
def test_what_cannot_be_divided_is_refused(
    why: str, fields: dict[str, int], variant: Variant
) -> None:
    assert not WGMMA.can_implement(problem(**{"k": 1024, **fields}), variant), why  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "width"), [(104, 4), (102, 1)])
def test_a_second_kernel_adds(
    n: int, width: int, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """It waits for the first one, reads the sums of all parts, and does what is to be done."""
    p = problem(n=n, k=1024, transposed="b", c_alignment=8 if width == 4 else 4)
    path, out = mlir_file(module(p, SLICED, relu)), tmp_path / "out"
    command = ("build", path, "--chip", "sm_90a", "--emit", "ptx,cubin", "-o", f"{out}/")
    assert "warning" not in aotc(*command).succeeded().stderr
    first, second = next(out.glob("*.ptx")).read_text().split(".entry")[1:]
    if "wgmma.mma_async" in second:
        first, second = second, first
    assert not re.search(r"max\.\S*f32", first)
    assert second.index("griddepcontrol.wait") < second.index("ld.global")
    assert second.count("ld.global.v4.b32") + second.count("ld.global.v4.f32") == 3
    assert len(re.findall(r"max\.\S*f32", second)) == 4
    assert second.count("st.global") == 4 // width
