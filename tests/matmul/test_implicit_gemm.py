"""Contractions that are no plain matmuls: convolutions and others, against NumPy."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers.command import build_here
from helpers.guarded import at_end_of_page
from helpers.kernel_targets import kernel_targets
from helpers.native import Library, build_for_gpus, build_library
from helpers.shared import made_once, shared_folder
from matmul.contracted import Contraction, convolution
from matmul.scalar_products import entry

import aotc
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.epilogue import Epilogue, Step
from aotc.kernels.matmul.implicit_gemm.cpu import strips
from aotc.kernels.matmul.implicit_gemm.cpu.copied import copy_of
from aotc.kernels.matmul.implicit_gemm.cpu.family import IMPLICIT_CPU
from aotc.kernels.matmul.implicit_gemm.cpu.image import image_of
from aotc.kernels.matmul.implicit_gemm.cpu.lines import lines_of
from aotc.kernels.matmul.implicit_gemm.cpu.strips import can_copy_strips
from aotc.kernels.matmul.implicit_gemm.direct import IMPLICIT_DIRECT
from aotc.kernels.matmul.implicit_gemm.mma_sync import IMPLICIT_MMA_SYNC
from aotc.kernels.matmul.implicit_gemm.simt import IMPLICIT_SIMT
from aotc.request import Chip

HALF = {"element": "f16", "result": "f32"}
BYTES = {"element": "i8", "result": "i32"}
# Small tiles: several on a side, soon compiled.
COPIES = IMPLICIT_SIMT.variant_type(32, 32, 8, 32, 16, 4, 4, 3, 16)
PARTS = IMPLICIT_SIMT.variant_type(32, 32, 8, 32, 16, 4, 4, 3, 4, split_k=3)
LOADS = IMPLICIT_SIMT.variant_type(32, 32, 8, 32, 16, 4, 4, 2, 0)
SLICED = IMPLICIT_SIMT.variant_type(32, 96, 16, 32, 96, 8, 12, 3, 16, sliced_k=4)
SLICED_PARTS = msgspec.structs.replace(SLICED, split_k=2)
# Parts of K, as many as the program chooses.
CHOSEN_PARTS = msgspec.structs.replace(SLICED, copy_bytes=4, split_k=0)
ELEMENTS = IMPLICIT_MMA_SYNC.variant_type(32, 32, 32, 2, 2, 2, 1)
ELEMENT_PARTS = msgspec.structs.replace(ELEMENTS, split_k=2)
CHOSEN_ELEMENT_PARTS = msgspec.structs.replace(ELEMENTS, split_k=0)
CHUNKS = IMPLICIT_MMA_SYNC.variant_type(32, 32, 32, 2, 2, 3, 16)
CHUNK_PARTS = msgspec.structs.replace(CHUNKS, split_k=3)
HALF_CHUNKS = msgspec.structs.replace(CHUNKS, copy_bytes=8)
HALF_CHUNK_PARTS = msgspec.structs.replace(HALF_CHUNKS, split_k=2)
NARROW = IMPLICIT_MMA_SYNC.variant_type(128, 32, 32, 4, 1, 3, 8)
DIRECT = IMPLICIT_DIRECT.variant_type(7, 4, 4)
TF32 = msgspec.structs.replace(ELEMENTS, k=16)
TF32_PARTS = msgspec.structs.replace(TF32, split_k=2)
TF32_CHUNKS = msgspec.structs.replace(CHUNKS, k=16)
OF_BYTES = IMPLICIT_MMA_SYNC.variant_type(32, 32, 64, 2, 2, 2, 1)
BLOCKS = CPU_BLOCKED.variant_type(6, 1, 24, 192, 32)
VARIANTS = (
    BLOCKS,
    COPIES,
    PARTS,
    LOADS,
    ELEMENTS,
    ELEMENT_PARTS,
    CHUNKS,
    CHUNK_PARTS,
    OF_BYTES,
    TF32,
    TF32_PARTS,
    TF32_CHUNKS,
    SLICED,
    SLICED_PARTS,
    HALF_CHUNKS,
    HALF_CHUNK_PARTS,
    NARROW,
    DIRECT,
    CHOSEN_PARTS,
    CHOSEN_ELEMENT_PARTS,
)

PLAIN = convolution("plain", (2, 5, 6, 11), (35, 3, 3))
STRIDED = convolution("strided", (3, 4, 7, 7), (33, 3, 3), strides=(2, 2))
LAST = convolution("last", (2, 5, 5, 7), (34, 3, 2), dilations=(2, 1), layout="nhwc")
DEEP = convolution("deep", (1, 24, 4, 5), (40, 3, 3))
DEEP_LAST = convolution("deep_last", (2, 16, 5, 6), (40, 3, 3), strides=(2, 1), layout="nhwc")
# Rows of images, with gaps in B and without: on the CPU, what is behind the last whole vector is
# packed, or single columns.
IMAGE = convolution("image", (1, 5, 6, 30), (35, 3, 3))
IMAGE_APART = convolution("image_apart", (1, 5, 6, 31), (35, 3, 3))
IMAGES = convolution("images_in_place", (3, 23, 7, 28), (35, 1, 1))
POINTS = convolution("points", (3, 23, 7, 7), (35, 1, 1))
DYNAMIC_IMAGES = replace(IMAGES, name="dynamic_images", dynamic=(("a", 0), ("c", 0)), adds=True)
GROUPED_IMAGES = Contraction(
    *("grouped_images", {"n": 2, "g": 3, "f": 12, "h": 6, "w": 31, "c": 5, "p": 3, "q": 3}),
    *(("n", "g", "c", "h + p", "w + q"), ("g", "f", "c", "p", "q"), ("n", "g", "f", "h", "w")),
)
GROUPED_POINTS = Contraction(
    *("grouped_points", {"n": 2, "g": 3, "f": 12, "h": 9, "w": 7, "c": 5}),
    *(("n", "g", "c", "h", "w"), ("g", "f", "c"), ("n", "g", "f", "h", "w")),
)
IN_PLACE = (
    *(IMAGE, IMAGE_APART, IMAGES, POINTS, DYNAMIC_IMAGES),
    *(GROUPED_IMAGES, GROUPED_POINTS),
)
# Every second pixel, in runs of a vector, of two vectors and more, and of less.
WIDE = convolution("wide", (1, 3, 5, 33), (35, 3, 3), strides=(2, 2))
STEM = convolution("stem", (1, 3, 3, 16), (12, 7, 7), strides=(2, 2))
# Every fourth pixel, which AVX-512 packs as vectors.
QUARTERS = convolution("quarters", (2, 3, 3, 37), (12, 8, 8), strides=(4, 4))
GATHERED = (WIDE, STEM, QUARTERS, replace(WIDE, name="wide_f64", element="f64", result="f64"))
# Lines of 2, 4 and 8 columns, and of every second pixel: a vector has several.
SHORT = (
    convolution("short", (5, 40, 4, 4), (35, 2, 2)),
    convolution("short_strided", (3, 5, 3, 8), (35, 3, 3), strides=(2, 2)),
    convolution("short_pairs", (11, 5, 3, 2), (35, 3, 3)),
    convolution("short_f64", (5, 5, 3, 4), (35, 2, 2), element="f64", result="f64"),
)
# Lines of an image, which end with whole vectors, and with 8, 4 and 1 columns that are none.
LINE_GROUPS = Contraction(
    *("line_groups", {"n": 2, "g": 3, "f": 12, "h": 4, "w": 30, "c": 3, "p": 2, "q": 7}),
    *(("n", "g", "c", "h + p", "w + q"), ("g", "f", "c", "p", "q"), ("n", "g", "f", "h", "w")),
)
LINES = (
    STEM,
    convolution("lines", (2, 3, 7, 29), (35, 3, 3), strides=(2, 2)),
    convolution("lines_apart", (1, 5, 6, 30), (35, 3, 3), dilations=(1, 3)),
    replace(
        convolution("dynamic_lines", (2, 3, 5, 29), (9, 3, 3), strides=(1, 2)),
        dynamic=(("a", 0), ("c", 0)),
        adds=True,
    ),
    replace(WIDE, name="lines_f64", element="f64", result="f64", sizes={**WIDE.sizes, "w": 31}),
    LINE_GROUPS,
    Contraction(
        *("line", {"f": 9, "w": 27, "c": 5, "q": 3}), ("c", "w + q"), ("f", "c", "q"), ("f", "w")
    ),
)
# Of more rows than a block has: B is copied, once for all vertical taps if strides are 1.
COPIED_IMAGES = convolution("copied_images", (2, 5, 10, 19), (97, 3, 3), strides=(2, 2))
COPIED_GROUPS = Contraction(
    *("copied_groups", {"g": 2, "f": 97, "h": 4, "w": 6, "c": 3, "p": 3, "q": 2}),
    *(("g", "c", "h + p", "w + q"), ("g", "f", "c", "p", "q"), ("g", "f", "h", "w")),
)
COPIED = (
    convolution("copied", (1, 5, 6, 7), (97, 3, 3)),
    COPIED_IMAGES,
    replace(
        convolution("copied_dynamic", (2, 5, 6, 19), (193, 3, 3), strides=(2, 2)),
        dynamic=(("a", 0), ("c", 0)),
        adds=True,
    ),
    COPIED_GROUPS,
    convolution("copied_points", (1, 9, 5, 7), (97, 1, 1), strides=(2, 2)),
    convolution("copied_thirds", (1, 9, 5, 7), (97, 1, 1), strides=(3, 3)),
    convolution("copied_half", (1, 4, 6, 7), (97, 3, 3), dilations=(2, 1), **HALF),
)
# Two dimensions of a batch, whose matrices lie between each other.
HEADS = Contraction(
    *("heads", {"b": 2, "h": 3, "i": 9, "j": 35, "d": 32}),
    *(("b", "i", "h", "d"), ("b", "j", "h", "d"), ("b", "h", "i", "j")),
)
# Several dimensions of rows, of columns and of K, none of which follow each other.
SPREAD = Contraction(
    *("spread", {"i": 3, "j": 5, "k": 4, "l": 3, "m": 6, "n": 7}),
    *(("k", "j", "l", "i"), ("n", "l", "m", "k"), ("m", "j", "n", "i")),
)
GROUPED = Contraction(
    *("grouped", {"n": 2, "g": 3, "f": 12, "h": 4, "w": 9, "c": 5, "p": 3, "q": 3}),
    *(("n", "g", "c", "h + p", "w + q"), ("g", "f", "c", "p", "q"), ("n", "g", "f", "h", "w")),
)
# Copies of 8 bytes: groups of 4 channels, and 12 channels.
GROUPED_LAST = Contraction(
    *("grouped_last", {"n": 2, "g": 3, "f": 4, "h": 5, "w": 9, "c": 4, "p": 3, "q": 3}),
    *(("n", "h + p", "w + q", "g", "c"), ("g", "f", "p", "q", "c"), ("n", "h", "w", "g", "f")),
)
TWELVE = convolution("twelve", (2, 12, 5, 6), (40, 3, 3), strides=(2, 1), layout="nhwc")
# Images of any height and width: offsets along K may not fit 32 bits.
_SIZES = tuple((name, dimension) for name in "ac" for dimension in (2, 3))
ANY_SIZE = convolution("any_size", (2, 5, 6, 11), (35, 3, 3), dynamic=_SIZES)
ANY_DEEP = convolution("any_deep", (2, 60, 6, 11), (35, 3, 3), dynamic=_SIZES)
ANY_SIZE_LAST = convolution(
    *("any_size_last", (2, 16, 5, 6), (40, 3, 3)),
    layout="nhwc",
    dynamic=tuple((name, dimension) for name in "ac" for dimension in (1, 2)),
)
# The program finds out how long lines are.
ANY_LINES = tuple(
    replace(case, dynamic=_SIZES, adds=adds)
    for case, adds in (
        (convolution("any_lines", (2, 3, 7, 29), (35, 3, 3), strides=(2, 2)), False),
        (convolution("any_lines_apart", (1, 5, 6, 30), (12, 3, 3), dilations=(1, 3)), True),
        (convolution("any_strips", (2, 12, 6, 19), (193, 3, 3), strides=(2, 2)), False),
        (convolution("any_strips_apart", (1, 5, 6, 30), (193, 3, 3), dilations=(1, 3)), True),
    )
)
TURNED = Contraction(
    *("turned", {"i": 33, "j": 37, "k": 10}), ("k", "i"), ("j", "k"), ("j", "i"), reversed=True
)
CASES: list[tuple[Contraction, Any]] = [
    *((PLAIN, variant) for variant in (COPIES, PARTS, LOADS)),
    *((STRIDED, variant) for variant in (COPIES, PARTS, SLICED_PARTS)),
    *((SPREAD, SLICED), (HEADS, SLICED), (replace(PLAIN, name="adds", adds=True), SLICED)),
    *((LAST, variant) for variant in (COPIES, LOADS)),
    (replace(PLAIN, name="adds", adds=True), PARTS),
    (replace(PLAIN, name="images", dynamic=(("a", 0), ("c", 0))), PARTS),
    *((HEADS, variant) for variant in (COPIES, PARTS)),
    *((SPREAD, variant) for variant in (COPIES, LOADS)),
    (TURNED, COPIES),
    *((GROUPED, variant) for variant in (COPIES, PARTS)),
    (replace(STRIDED, name="f16_loads", **HALF), LOADS),
    (replace(SPREAD, name="f64", element="f64", result="f64"), COPIES),
    (replace(PLAIN, name="i8", **BYTES), LOADS),
    (replace(PLAIN, name="half", **HALF), ELEMENTS),
    (replace(STRIDED, name="half_strided", **HALF), ELEMENT_PARTS),
    (replace(PLAIN, name="half_images", dynamic=(("a", 0), ("c", 0)), **HALF), ELEMENTS),
    *((replace(DEEP, name="half_deep", **HALF), one) for one in (ELEMENTS, ELEMENT_PARTS)),
    *((replace(DEEP_LAST, name="half_last", **HALF), one) for one in (ELEMENTS, CHUNKS)),
    (replace(DEEP_LAST, name="half_adds", adds=True, **HALF), CHUNK_PARTS),
    (replace(HEADS, name="half_heads", **HALF), CHUNKS),
    *(
        (replace(GROUPED_LAST, **HALF), one)
        for one in (HALF_CHUNKS, HALF_CHUNK_PARTS, NARROW, DIRECT)
    ),
    (replace(GROUPED_LAST, name="grouped_adds", adds=True, **HALF), DIRECT),
    *((replace(TWELVE, **HALF), one) for one in (HALF_CHUNKS, NARROW)),
    (replace(DEEP_LAST, name="half_last", **HALF), HALF_CHUNKS),
    *((ANY_SIZE, variant) for variant in (PARTS, LOADS)),
    *((replace(ANY_SIZE, name="any_half", **HALF), one) for one in (ELEMENTS, ELEMENT_PARTS)),
    (replace(ANY_SIZE_LAST, name="any_half_last", **HALF), ELEMENTS),
    (ANY_SIZE_LAST, LOADS),
    *((ANY_SIZE, CHOSEN_PARTS), (ANY_DEEP, CHOSEN_PARTS)),
    (replace(ANY_DEEP, name="any_deep_adds", adds=True), CHOSEN_PARTS),
    (replace(ANY_DEEP, name="any_deep_half", **HALF), CHOSEN_ELEMENT_PARTS),
    (replace(SPREAD, name="half_spread", **HALF), ELEMENTS),
    (replace(STRIDED, name="bf16", element="bf16", result="f32"), ELEMENTS),
    (replace(STRIDED, name="bytes", **BYTES), OF_BYTES),
    (replace(GROUPED, name="half_grouped", **HALF), ELEMENTS),
    *((replace(STRIDED, name="tf32", allow_tf32=True), one) for one in (TF32, TF32_PARTS)),
    (replace(DEEP_LAST, name="tf32_last", allow_tf32=True), TF32_CHUNKS),
]


# The CPU's blocks take all of them.
CASES += [(case, BLOCKS) for case in {case.name: case for case, _ in CASES}.values()]
CASES += [
    (case, BLOCKS) for case in (*IN_PLACE, *GATHERED, *SHORT, *LINES[1:], *COPIED, *ANY_LINES)
]


def family_of(variant: Any) -> Any:
    if isinstance(variant, CPU_BLOCKED.variant_type):
        return IMPLICIT_CPU
    families = (IMPLICIT_SIMT, IMPLICIT_DIRECT, IMPLICIT_MMA_SYNC)
    return next(family for family in families if isinstance(variant, family.variant_type))


def name_of(case: Contraction, variant: Any) -> str:
    return f"{case.name}_{VARIANTS.index(variant)}"


def text_of(case: Contraction, variant: Any, epilogue: Epilogue | None = None) -> str:
    problem = case.problem
    assert problem is not None
    family = family_of(variant)
    assert family.can_implement(problem, variant)
    finish = None if epilogue is None else epilogue
    return entry(family.function(problem, variant, name_of(case, variant), finish))


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu() -> None:
    os.environ["AOTC_DEVICE"] = "cpu"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """All cases, built once for all workers: kernels for GPUs, which the CPU device runs."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(strips, "MOST_BYTES", 1)  # several strips
            texts = [text_of(*case) for case in CASES]
        build_library("\n".join(texts), folder, name="implicit_gemm")

    folder = made_once(shared_folder(tmp_path_factory) / "implicit_gemm", make)
    return Library(folder / "lib" / "libimplicit_gemm.so", folder / "implicit_gemm.json")


def check(library: Library, case: Contraction, entry_name: str, *, is_turned: bool) -> None:
    """`is_turned`: the entry's A is the operation's second operand."""
    a, b, before = case.operands()
    expected, size = case.expected(a, b, before)
    found = []
    for _ in range(2):
        c = before.copy()
        library.call(entry_name, *((b, a) if is_turned else (a, b)), c)
        found.append(c)
    assert found[0].tobytes() == found[1].tobytes()
    exact = case.result in ("i32", "f64")
    is_rounded = case.allow_tf32 and not entry_name.endswith("_0")  # not by the CPU's blocks
    allowed = size * (1e-14 if exact else 1e-3 if is_rounded else 1e-6)
    assert np.all(np.abs(found[0].astype(np.float64) - expected) <= allowed)


def is_turned(case: Contraction) -> bool:
    problem = case.problem
    assert problem is not None
    return problem.a.type == case.type("b") and case.type("a") != case.type("b")


@pytest.mark.parametrize(("case", "variant"), CASES, ids=[name_of(*case) for case in CASES])
def test_result_is_numpys(library: Library, case: Contraction, variant: Any) -> None:
    check(library, case, name_of(case, variant), is_turned=is_turned(case))


@pytest.mark.parametrize(
    "case", [*IN_PLACE, *GATHERED, *LINES[1:], *COPIED, PLAIN], ids=lambda case: case.name
)
def test_nothing_is_read_behind_the_operands(library: Library, case: Contraction) -> None:
    """On the CPU, whose kernels read vectors: the last elements are the last of a page."""
    a, b, c = case.operands()
    expected, size = case.expected(a, b, c)
    operands = [at_end_of_page(one) for one in ((b, a) if is_turned(case) else (a, b))]
    library.call(name_of(case, BLOCKS), *operands, c)
    assert np.all(np.abs(c.astype(np.float64) - expected) <= size * 1e-6)


@pytest.mark.parametrize("case", ANY_LINES, ids=lambda case: case.name)
@pytest.mark.parametrize("width", [1, 3, 15, 16, 17, 20, 31, 32, 47, 61])
def test_lines_of_any_length_are_read(library: Library, case: Contraction, width: int) -> None:
    """Short ones, or those of which much would be computed again, are packed."""
    sized = replace(case, sizes={**case.sizes, "w": width, "h": width % 5 + 1})
    a, b, c = sized.operands()
    expected, size = sized.expected(a, b, c)
    operands = [at_end_of_page(one) for one in ((b, a) if is_turned(case) else (a, b))]
    c = at_end_of_page(c)
    library.call(name_of(case, BLOCKS), *operands, c)
    assert np.all(np.abs(c.astype(np.float64) - expected) <= size * 1e-6)


def test_direct_kernels_have_operands_of_one_type_and_neighbouring_groups() -> None:
    """And sums that are short."""
    groups = replace(GROUPED_LAST, sizes={**GROUPED_LAST.sizes, "g": 8}, **HALF)
    assert groups.problem is not None
    assert IMPLICIT_DIRECT.variants(groups.problem)
    wider = msgspec.structs.replace(groups.problem.b, element="f32")
    apart = (*groups.problem.strides[0][:-2], 8, 1)
    for problem in (
        msgspec.structs.replace(groups.problem, b=wider),
        msgspec.structs.replace(groups.problem, strides=(apart, *groups.problem.strides[1:])),
        replace(groups, sizes={**groups.sizes, "p": 65}).problem,
    ):
        assert problem is not None
        assert not IMPLICIT_DIRECT.variants(problem)


def test_images_are_read_in_place() -> None:
    """What has too many columns that are dropped, or small images, is packed."""
    small = convolution("small", (3, 5, 3, 10), (35, 1, 1))
    for case in (*IN_PLACE, *GATHERED, *SHORT, PLAIN, small):
        problem = case.problem
        assert problem is not None
        assert (image_of(problem) is not None) == (case in IN_PLACE), case.name


def test_lines_are_read_in_place() -> None:
    """If they are about whole vectors, and read by few rows: by fewer if more is computed again."""
    many_rows = convolution("many_rows", (1, 3, 3, 16), (96, 3, 3), strides=(2, 2))
    thirds = convolution("thirds", (1, 3, 3, 16), (12, 3, 3), strides=(3, 3))
    # Of 28 columns, four are computed again.
    again = convolution("again", (1, 3, 3, 28), (48, 3, 3), strides=(2, 2))
    for case in (*LINES, *SHORT, WIDE, COPIED_GROUPS, many_rows, thirds, again):
        problem = case.problem
        assert problem is not None
        lines = lines_of(problem, case.sizes["w"])
        assert problem.m is not None
        is_read = lines is not None and lines.are_faster(problem.m)
        assert is_read == (case in LINES), case.name


def test_what_several_blocks_would_pack_is_copied_by_strips_if_it_is_of_any_size() -> None:
    for case in (*ANY_LINES, *COPIED, ANY_SIZE, ANY_SIZE_LAST, IMAGES, DYNAMIC_IMAGES):
        problem = case.problem
        assert problem is not None
        is_copied = copy_of(problem) is None and can_copy_strips(problem)
        assert is_copied == case.name.startswith("any_strips"), case.name


def test_what_several_blocks_would_pack_is_copied() -> None:
    few_rows = convolution("few_rows", (1, 5, 6, 7), (95, 3, 3))
    whole_rows = convolution("whole_rows", (1, 5, 6, 14), (97, 1, 1))
    for case in (*COPIED, *SHORT, few_rows, whole_rows):
        problem = case.problem
        assert problem is not None
        assert (copy_of(problem) is not None) == (case in COPIED), case.name


@pytest.mark.parametrize("variant", [BLOCKS, PARTS, COPIES, ELEMENTS, ELEMENT_PARTS], ids=str)
def test_what_is_stored_is_finished(variant: Any, tmp_path: Path) -> None:
    """Once, whether K is made in parts or not: with the row, and the column among all images'."""

    steps = (
        Step("thousand", "arith.constant", (), "{value = 1000 : index}", "() -> index"),
        Step("scaled", "arith.muli", ("row", "thousand"), "{}", "(index, index) -> index"),
        Step("number", "arith.addi", ("scaled", "column"), "{}", "(index, index) -> index"),
        Step("integer", "arith.index_cast", ("number",), "{}", "(index) -> i32"),
        Step("result", "arith.sitofp", ("integer",), "{}", "(i32) -> f32"),
    )
    case = replace(
        STRIDED, name="finished", **(HALF if family_of(variant) is IMPLICIT_MMA_SYNC else {})
    )
    library = build_library(text_of(case, variant, Epilogue(steps, "result")), tmp_path)
    a, b, c = case.operands()
    library.call(name_of(case, variant), b, a, c)
    image, row, y, x = np.indices(c.shape)
    np.testing.assert_array_equal(c, row * 1000 + image * 49 + y * 7 + x)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("types", [{}, HALF], ids=["f32", "f16"])
def test_variants_build(chip: str, types: dict[str, str], tmp_path: Path) -> None:
    """The first one and the last one as machine code; all can be taken."""
    case = convolution("large", (8, 64, 28, 28), (128, 3, 3), strides=(2, 2), **types)
    problem = case.problem
    family = IMPLICIT_MMA_SYNC if types else IMPLICIT_SIMT
    assert problem is not None
    found = family.variants(problem)
    assert found
    for number in (0, -1):
        source = tmp_path / f"convolution{number}.mlir"
        source.write_text(family.function(problem, found[number], "convolution"))
        options = ("--chip", chip, "--no-cpu-kernels", "--emit", "cubin", "--entry", "convolution")
        build_here(source, *options, "-o", tmp_path / "convolution.cubin")


@pytest.mark.parametrize(
    ("batch", "channels", "side", "tile"),
    [
        *((64, 64, 56, "64x256x16"), (64, 128, 28, "128x192x16"), (64, 256, 14, "128x192x16")),
        *((64, 512, 7, "128x96x32"), (8, 320, 64, "64x256x16"), (8, 64, 56, "64x96x32")),
    ],
)
def test_many_pixels_have_large_tiles(batch: int, channels: int, side: int, tile: str) -> None:
    """On an H200, the first three took 342, 330 and 344 us instead of 469, 407 and 391 with tiles
    of 64x96."""
    case = convolution("same", (batch, channels, side, side), (channels, 3, 3))
    problem = case.problem
    assert problem is not None
    best = min(
        IMPLICIT_SIMT.variants(problem),
        key=lambda one: IMPLICIT_SIMT.expected_clocks(problem, one, (1, 1, 1), Chip("sm_90")),
    )
    assert f"{best.m}x{best.n}x{best.k}, {best.split_k}" == f"{tile}, 1"


@pytest.mark.parametrize("family", [IMPLICIT_SIMT, IMPLICIT_MMA_SYNC], ids=["f32", "f16"])
def test_tiles_are_no_wider_than_matrices(family: Any) -> None:
    """Those of a batch lie beside each other, and share no tile."""
    case = replace(
        HEADS,
        sizes={"b": 8, "h": 12, "i": 1024, "j": 64, "d": 1024},
        **(HALF if family is IMPLICIT_MMA_SYNC else {}),
    )
    problem = case.problem
    assert problem is not None
    best = min(
        family.variants(problem),
        key=lambda one: family.expected_clocks(problem, one, (1, 1, 1), Chip("sm_90")),
    )
    assert best.n <= 64


@pytest.mark.parametrize(
    "case",
    [
        # B is the same for all of K.
        Contraction("same", {"i": 8, "j": 8, "k": 4}, ("i", "k"), ("j",), ("i", "j")),
        Contraction("scaled", {"i": 8, "j": 8}, ("i", "j"), ("j",), ("i",)),
        Contraction("outer", {"i": 8, "j": 8}, ("i",), ("j",), ("i", "j")),
    ],
    ids=["no k in B", "a vector", "no K"],
)
def test_other_contractions_stay_loops(case: Contraction) -> None:
    assert case.problem is None


def test_images_of_any_size_have_parts_of_k_if_c_has_few_tiles() -> None:
    """The sums of a large C could take any amount of memory."""
    for case, family in ((ANY_SIZE, IMPLICIT_SIMT), (replace(ANY_SIZE, **HALF), IMPLICIT_MMA_SYNC)):
        problem = case.problem
        assert problem is not None
        found = family.variants(problem)
        assert found
        assert {variant.split_k for variant in found} == {1}
        deep = replace(case, sizes={**case.sizes, "c": 60}).problem
        assert deep is not None
        few, plain = family.few_tiles(deep), family.few_tiles(problem)
        assert few is not None
        assert plain is not None
        assert (few.variant.split_k, plain.variant.split_k) == (0, 1)


def test_a_table_of_k_needs_its_sizes() -> None:
    problem = replace(PLAIN, dynamic=(("a", 1), ("b", 1))).problem
    assert problem is not None
    assert not any(family.variants(problem) for family in (IMPLICIT_SIMT, IMPLICIT_MMA_SYNC))


def test_convolutions_are_found(tmp_path: Path) -> None:
    """In whole modules, padded ones too, they have kernels on GPUs and loops on the CPU."""
    text = """
func.func @convolve(%x: tensor<2x16x14x14xf32>, %w: tensor<32x16x3x3xf32>)
    -> tensor<2x32x7x7xf32> attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %zero : f32
  } : tensor<2x16x14x14xf32> to tensor<2x16x16x16xf32>
  %empty = tensor.empty() : tensor<2x32x7x7xf32>
  %y = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x32x7x7xf32>) -> tensor<2x32x7x7xf32>
  %r = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>}
      ins(%padded, %w : tensor<2x16x16x16xf32>, tensor<32x16x3x3xf32>)
      outs(%y : tensor<2x32x7x7xf32>) -> tensor<2x32x7x7xf32>
  return %r : tensor<2x32x7x7xf32>
}
"""
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",))
    assert "gpu" in kernel_targets(artifact)
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (2, 16, 14, 14)).astype(np.float32)
    w = rng.uniform(-1, 1, (32, 16, 3, 3)).astype(np.float32)
    y = np.full((2, 32, 7, 7), np.nan, np.float32)
    aotc.load(artifact.path).convolve(x, w, y)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    np.testing.assert_allclose(y, np.einsum("nchwpq,fcpq->nfhw", windows, w), rtol=0, atol=1e-5)


def test_images_that_are_larger_than_their_windows(tmp_path: Path) -> None:
    """Loops are merged if the second one goes through all of its dimension: not of an image, which
    may be larger than what windows of one pixel cover."""
    text = """
func.func @f(%x: memref<?x?x?x8xf32>, %w: memref<1x3x8x16xf32>, %y: memref<?x?x?x16xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.conv_2d_nhwc_hwcf
    ins(%x, %w : memref<?x?x?x8xf32>, memref<1x3x8x16xf32>) outs(%y : memref<?x?x?x16xf32>)
  return
}
"""
    module, library = build_for_gpus(text, tmp_path)
    assert "implicit_gemm" in module
    random = np.random.default_rng(0)
    for height, width in ((6, 8), (7, 8), (7, 9)):
        x = random.standard_normal((2, height, width, 8)).astype(np.float32)
        w = random.standard_normal((1, 3, 8, 16)).astype(np.float32)
        y = np.zeros((2, 6, 6, 16), np.float32)
        library.call("f", x, w, y)
        windows = (x[:, :6, at : at + 6] @ w[0, at] for at in range(3))
        np.testing.assert_allclose(y, sum(windows), rtol=1e-4, atol=1e-5)
