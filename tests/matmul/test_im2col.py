"""Convolutions whose windows TMA copies (its im2col mode), as far as a machine without a Hopper GPU
can tell: which elements a box has, and which problems are left to other kernels."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.command import Outcome
from matmul.contracted import Contraction, convolution
from matmul.traced import traced
from msgspec.structs import replace as replace_struct

from aotc.builder.numbers import unravel
from aotc.kernels.family import ANY_GPU
from aotc.kernels.hopper.im2col import Im2colTile, Windows
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Padding
from aotc.kernels.matmul.implicit_gemm.wgmma import IMPLICIT_WGMMA, as_matmul
from aotc.kernels.matmul.implicit_gemm.wgmma_table import IMPLICIT_WGMMA_TABLE
from aotc.kernels.matmul.wgmma.kernel import operands
from aotc.kernels.matmul.wgmma.variants import Variant
from aotc.request import Chip

HALF = {"element": "f16", "result": "f32"}
HOPPER = Chip("sm_90a")
WINDOWS = convolution("windows", (3, 64, 7, 9), (72, 3, 3), layout="nhwc", **HALF)
CASES = (
    WINDOWS,
    convolution(
        *("steps", (2, 128, 5, 6), (64, 3, 2)),
        strides=(2, 3),
        dilations=(2, 1),
        layout="nhwc",
        **HALF,
    ),
    convolution("points", (2, 64, 5, 6), (64, 1, 1), strides=(2, 2), layout="nhwc", **HALF),
    convolution("one_image", (1, 64, 9, 11), (64, 3, 3), layout="nhwc", **HALF),
    Contraction(
        *("line", {"n": 3, "w": 50, "f": 64, "q": 5, "c": 64}),
        *(("n", "w*2 + q*3", "c"), ("q", "c", "f"), ("n", "w", "f")),
        **HALF,
    ),
    Contraction(
        "space",
        {"n": 2, "d": 3, "h": 4, "w": 5, "f": 64, "o": 2, "p": 3, "q": 3, "c": 64},
        ("n", "d + o", "h + p*2", "w*2 + q", "c"),
        *(("f", "o", "p", "q", "c"), ("n", "d", "h", "w", "f")),
        **HALF,
    ),
    # Rows and K have dimensions of their own, some of K's between those of rows.
    Contraction(
        *("behind", {"s": 5, "b": 4, "j": 64, "h": 3, "d": 64}),
        *(("s", "h", "b", "d"), ("j", "h", "d"), ("s", "b", "j")),
        **HALF,
    ),
)


def problem_of(case: Contraction) -> ImplicitGemm:
    problem = case.problem
    assert problem is not None
    return problem


def padded(case: Contraction, low: tuple[int, ...], high: tuple[int, ...]) -> ImplicitGemm:
    """The problem with so many zeros before and behind A's elements, along each dimension."""
    edges = zip(case.shape("a"), low, high, strict=True)
    sizes = tuple(size - before - behind for size, before, behind in edges)
    strides = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
    return replace_struct(problem_of(case), padding=Padding("a", "", sizes, strides, low))


PROBLEMS = {case.name: problem_of(case) for case in CASES} | {
    "padded": padded(WINDOWS, (0, 1, 1, 0), (0, 1, 1, 0)),
    "padded apart": padded(CASES[1], (0, 2, 0, 0), (0, 0, 3, 0)),
    "padded points": padded(CASES[2], (0, 0, 1, 0), (0, 1, 0, 0)),
    "padded line": padded(CASES[4], (0, 4, 0), (0, 30, 0)),
}


def offset(problem: ImplicitGemm, row: int, k: int) -> int | None:
    """Where the image has A's element; None where it has padding instead."""
    places = [0] * len(problem.strides[0])
    for number, loops in ((row, problem.rows), (k, problem.k_loops)):
        digits = unravel(number, *(loop.size for loop in loops[1:]))
        for loop, digit in zip(loops, digits, strict=True):
            for dimension, factor in loop.a:
                assert isinstance(digit, int)
                places[dimension] += digit * factor
    strides, padding = problem.strides[0], problem.padding
    if padding is not None:
        strides = padding.strides
        places = [place - low for place, low in zip(places, padding.low, strict=True)]
        sizes = (size or 0 for size in padding.sizes)
        if not all(0 <= place < size for place, size in zip(places, sizes, strict=True)):
            return None
    return sum(place * (stride or 0) for place, stride in zip(places, strides, strict=True))


def signed(number: int) -> int:
    """An i32 that is counted modulo 2^32."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def copied(windows: Windows, images: int, coordinates: list[int], pixel: int) -> int | None:
    """The offset in A of the first channel of a pixel of a box, as cuda.h and the PTX manual say
    («im2col mode»); None for one that TMA fills with zeros."""
    rank = len(windows.axes)
    channel, *place = coordinates[: rank + 2]
    image, places = place[-1], list(reversed(place[:-1]))
    offsets = list(reversed(coordinates[rank + 2 :]))
    for _ in range(pixel):
        for number in reversed(range(rank)):
            axis = windows.axes[number]
            places[number] += axis.step
            if places[number] <= axis.pixels - 1 + axis.corners[1]:
                break
            places[number] = axis.corners[0]
        else:
            image += 1
    if image >= images or channel >= windows.channels:
        return None
    total = image * windows.image_stride + channel
    for axis, start, tap in zip(windows.axes, places, offsets, strict=True):
        if not 0 <= start + tap < axis.pixels:
            return None
        total += (start + tap) * axis.stride
    return total


@pytest.mark.parametrize("sharers", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_boxes_are_rows_of_a(name: str, sharers: int) -> None:
    """Each pixel of a box has the elements that the loops of a row and of K lead to, and zeros
    behind the last row, behind K, and where A is padded."""
    problem = PROBLEMS[name]
    found = as_matmul(problem)
    assert found is not None
    assert problem.m is not None
    assert problem.k is not None
    images = 1 if found.images is None else found.images.size
    assert images is not None
    plain, _ = operands(found.problem, Variant(n=64, consumers=1))
    rng = random.Random(name)
    with traced(at="i32", k="i32", part="i32") as trace:
        tile = Im2colTile(
            *(plain.matrix, plain.extent, plain.is_k_major, plain.in_one_box, plain.batched),
            sharers=sharers,
            windows=found.windows,
            images=images,
        )
        [(place, coordinates)] = tile.copies(trace.b, trace["at"], trace["k"], None, trace["part"])
        for _ in range(12):
            at, k = rng.randrange(0, problem.m, 64), rng.randrange(0, problem.k + 64, 64)
            part = rng.randrange(sharers)
            values = trace.evaluate(at=at, k=k, part=part)
            assert values[place] == part * 128 * 64 // sharers
            numbers = [signed(int(values[one])) for one in coordinates]
            for pixel in range(64 // sharers):
                row = at + part * 64 // sharers + pixel
                is_there = row < problem.m and k < problem.k
                expected = offset(problem, row, k) if is_there else None
                assert copied(found.windows, images, numbers, pixel) == expected


def test_other_padding_is_refused() -> None:
    """That of images, of channels, or of a dimension that no loop moves along."""
    for edge in ((1, 0, 0, 0), (0, 0, 0, 1)):
        assert as_matmul(padded(WINDOWS, edge, (0, 0, 0, 0))) is None
    points = Contraction(
        *("points", {"n": 3, "h": 1, "w": 5, "f": 64, "q": 3, "c": 64}),
        *(("n", "h", "w + q", "c"), ("f", "q", "c"), ("n", "h", "w", "f")),
        **HALF,
    )
    problem = problem_of(points)
    padding = Padding("a", "", (3, 2, 7, 64), (896, 448, 64, 1), (0, 1, 0, 0))
    assert as_matmul(problem) is not None
    assert as_matmul(replace_struct(problem, padding=padding)) is None


def test_windows_have_the_size_that_they_reach() -> None:
    """What an image has behind its last window is not in the tensor map."""
    case = replace(CASES[1], name="wide", a=("n", "h*2 + p*2", "w*3 + q", "c"))
    found = as_matmul(problem_of(case))
    assert found is not None
    assert [axis.pixels for axis in found.windows.axes] == [case.shape("a")[i] for i in (1, 2)]


LARGE = convolution("large", (8, 128, 28, 28), (128, 3, 3), layout="nhwc", **HALF)
REFUSED = {
    "f32": replace(WINDOWS, element="f32"),
    "other channels": convolution("c", (3, 72, 7, 9), (72, 3, 3), layout="nhwc", **HALF),
    "channels first": convolution("first", (3, 64, 7, 9), (72, 3, 3), **HALF),
    "a step of 9": convolution(
        "step", (1, 64, 3, 3), (64, 2, 2), strides=(1, 9), layout="nhwc", **HALF
    ),
    "a window that reaches too far": convolution(
        "far", (1, 64, 3, 3), (64, 2, 2), dilations=(1, 129), layout="nhwc", **HALF
    ),
    "a size that is not known": replace(WINDOWS, dynamic=(("a", 1), ("c", 1))),
    "groups": Contraction(
        *("groups", {"g": 2, "n": 2, "h": 4, "w": 5, "f": 64, "p": 3, "q": 3, "c": 64}),
        *(("n", "h + p", "w + q", "g", "c"), ("g", "f", "p", "q", "c"), ("n", "h", "w", "g", "f")),
        **HALF,
    ),
    "rows in another order than C's": Contraction(
        *("turned", {"n": 2, "h": 4, "w": 5, "f": 64, "p": 3, "c": 64}),
        *(("n", "h + p", "w", "c"), ("f", "p", "c"), ("n", "w", "h", "f")),
        **HALF,
    ),
    "five dimensions of pixels": Contraction(
        *("many", {"n": 2, "i": 2, "d": 3, "h": 4, "w": 5, "f": 64, "q": 2, "c": 64}),
        *(("n", "i + q", "d", "h", "w", "c"), ("f", "q", "c"), ("n", "i", "d", "h", "w", "f")),
        **HALF,
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_tma_cannot_is_refused(why: str) -> None:
    assert IMPLICIT_WGMMA.variants(problem_of(REFUSED[why])) == ()


def test_images_of_any_number() -> None:
    """The program has a kernel for few images and one for many."""
    case = replace(LARGE, dynamic=(("a", 0), ("c", 0)))
    problem = problem_of(case)
    assert problem.m is None
    first, *_ = choose(problem, [HOPPER])
    assert first.family is IMPLICIT_WGMMA_TABLE
    able = IMPLICIT_WGMMA.legal_variants(problem)
    for images in (1, 64):
        best = min(able, key=lambda one: IMPLICIT_WGMMA.clocks_of_images(problem, one, images))
        assert best in first.variant.variants
    assert len(first.variant.variants) > 1


def test_choice() -> None:
    """Hopper's kernel stands before the one for all GPUs, where the model says that it gains."""
    problem = problem_of(LARGE)
    first, second, *_ = choose(problem, [HOPPER])
    assert (first.family, first.target, second.target) == (IMPLICIT_WGMMA, "sm_90a", ANY_GPU)
    assert all(one.target == ANY_GPU for one in choose(problem, [Chip("sm_80")]))


def test_convolution_in_an_image(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """The map is encoded by aotc's runtime, of steps and corners; the image is read only; nothing
    is divided while MMAs are under way, and nothing is in local memory."""
    path, out = mlir_file(LARGE.module), tmp_path / "out"
    emit = "ptx,cubin,host-ll,manifest"
    command = ("build", path, "--chip", "sm_90a", "--no-cpu-kernels", "--emit", emit)
    assert "warning" not in aotc(*command, "-o", f"{out}/").succeeded().stderr
    host = next(out.rglob("*.ll")).read_text()
    assert re.search(r"declare extern_weak ptr @\w*tensor_map_encode_im2col\(", host)
    assert host.count("call ptr @aotc_tensor_map_encode_im2col(") == 1
    said = aotc("inspect", next(out.rglob("*wgmma*.cubin"))).succeeded().stdout
    [(_, stack)] = re.findall(r"_wgmma_\w+ +(\d+) +\d+ +(\d+)", said)
    assert stack == "0"
    ptx = next(
        one.read_text() for one in out.rglob("*.ptx") if "wgmma.mma_async" in one.read_text()
    )
    assert re.search(r"cp\.async\.bulk\.tensor\.4d\.\S*\.im2col\.", ptx)
    parts = re.findall(r"wgmma\.mma_async.*?wgmma\.wait_group\.sync\.aligned\s+0", ptx, re.DOTALL)
    assert parts
    assert not any(re.search(r"\b(div|rem)\.", part) for part in parts)
