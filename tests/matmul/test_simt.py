from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from helpers.command import build_here
from helpers.shared import shared_folder
from matmul.scalar_products import CLAMPED, Product, build, call, check_clamped

from aotc.builder import Builder, function_text
from aotc.builder.numbers import Value, minimum
from aotc.chips import BLOCK_SHARED_BYTES, gpu_of
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.problem import Arguments, Matrix, Problem
from aotc.kernels.matmul.simt.family import SIMT, Variant
from aotc.request import Chip

# Small tiles: several on a side, soon compiled.
COPIES = Variant(32, 32, 8, 32, 16, 4, 4, 3, 4)
WIDE = Variant(32, 32, 16, 32, 16, 4, 4, 2, 16)
LOADS = Variant(32, 32, 8, 32, 16, 4, 4, 2, 0)
F64 = Variant(32, 16, 8, 16, 16, 4, 2, 3, 8)
# Slices of K have warps of their own; 96 columns are no power of two.
SLICED = Variant(32, 96, 16, 32, 96, 8, 12, 3, 4, sliced_k=4)

# The kernel for few tiles, with as many parts of K as the program chooses.
FEW_TILES = Variant(64, 64, 32, 64, 32, 8, 8, copy_bytes=4, sliced_k=4, split_k=0)

SIZES = [(1, 1, 1), (1, 70, 9), (33, 1, 40), (32, 32, 8), (37, 65, 31), (64, 96, 24), (5, 3, 0)]
# Of several parts of K, the last one with less.
SIZES.append((33, 20, 300))


def _products() -> list[tuple[Product, Variant]]:
    made = []
    for ta, tb in itertools.product((False, True), repeat=2):
        name = f"{'nt'[ta]}{'nt'[tb]}"
        turned = Product(name, 37, 65, 31, transposed_a=ta, transposed_b=tb)
        made += [
            (turned, COPIES),
            (replace(turned, name=f"{name}_loads", adds=True), LOADS),
            (replace(turned, name=f"{name}_f16", **_halves("f16"), dynamic="m", k=40, n=72), LOADS),
            (replace(turned, name=f"{name}_wide", m=48, n=72, k=20, dynamic=""), WIDE),
        ]
    wide_sliced = msgspec.structs.replace(SLICED, copy_bytes=16)
    made += [
        (Product("sizes_sliced", 1, 1, 1), SLICED),
        (Product("sizes_few", 1, 1, 1), FEW_TILES),
        (Product("sliced_turned", 37, 100, 31, transposed_a=True, transposed_b=True), SLICED),
        (Product("sliced_wide", 48, 200, 36, dynamic="", adds=True), wide_sliced),
        (
            Product("sliced_small", 40, 72, 100, dynamic=""),
            Variant(16, 32, 32, 16, 32, 4, 4, sliced_k=4),
        ),
        (
            Product("sliced_split", 37, 100, 90, batches=2),
            msgspec.structs.replace(SLICED, split_k=2),
        ),
        (
            Product("sliced_f16", 33, 96, 40, **_halves("f16")),
            Variant(32, 32, 8, 32, 16, 4, 4, 2, 0, sliced_k=2),
        ),
        (
            Product("sliced_f64", 33, 18, 21, **_same("f64")),
            msgspec.structs.replace(F64, sliced_k=2),
        ),
    ]
    base = Product("sizes", 1, 1, 1)
    strided = Product("strided", 35, 38, 21, pitches={"a": 24, "b": 40, "c": 44})
    made += [
        (base, COPIES),
        (Product("no_rows", 0, 9, 5, dynamic="nk"), COPIES),
        (replace(base, name="sizes_loads"), LOADS),
        (strided, WIDE),
        (
            replace(strided, name="strided_static", dynamic=""),
            msgspec.structs.replace(WIDE, group=1),
        ),
        (Product("batched", 37, 40, 19, batches=3), COPIES),
        (Product("batched_turned", 37, 40, 19, batches=3, transposed_b=True, adds=True), LOADS),
        (Product("known", 64, 96, 48, dynamic=""), WIDE),
        (Product("f64", 33, 18, 21, **_same("f64"), adds=True), F64),
        (Product("i32", 33, 34, 21, **_same("i32")), COPIES),
        (Product("i8", 33, 34, 21, "i8", "i32", "i32", transposed_a=True), LOADS),
        (Product("half_sums", 33, 34, 21, **_same("f16"), adds=True), LOADS),
        (Product("bf16", 33, 34, 21, **_halves("bf16")), LOADS),
        (
            Product("split", 37, 40, 90, batches=3, transposed_a=True, adds=True),
            msgspec.structs.replace(COPIES, split_k=3),
        ),
        (replace(base, name="sizes_split"), msgspec.structs.replace(COPIES, split_k=4)),
        (replace(base, name="sizes_parts"), msgspec.structs.replace(COPIES, split_k=0)),
        (replace(base, name="sizes_shared"), msgspec.structs.replace(COPIES, split_k=0)),
        (
            Product("batched_parts", 37, 40, 200, batches=3, adds=True),
            msgspec.structs.replace(COPIES, split_k=0),
        ),
        (Product("split_f64", 33, 18, 50, **_same("f64")), msgspec.structs.replace(F64, split_k=2)),
        (
            Product("split_i32", 33, 34, 50, **_same("i32")),
            msgspec.structs.replace(COPIES, split_k=2),
        ),
        (Product("large", 260, 130, 20), Variant(256, 128, 8, 64, 64, 16, 8, 3, 4)),
    ]
    return made


def _halves(element: str) -> dict[str, str]:
    return {"element": element, "result": element}


def _same(element: str) -> dict[str, str]:
    return {"element": element, "accumulator": element, "result": element}


PRODUCTS = _products()
VARIANTS = {product.name: variant for product, variant in PRODUCTS}


def _text(product: Product) -> str:
    variant = VARIANTS[product.name]
    assert SIMT.can_implement(product.problem, variant), product.name
    if product.name == "sizes_shared":
        return _shared(product, variant)
    return SIMT.function(product.problem, variant, product.name)


def _shared(product: Product, others: Variant) -> str:
    """A kernel for the first rows, and another one for the others, of which there may be none."""
    problem = product.problem
    types = {"a": problem.a.type, "b": problem.b.type, "c": problem.c.type}

    def body(b: Builder, operands: list[Value]) -> None:
        rows = b.dim(operands[2], 0)
        first = minimum(rows, COPIES.m)
        for variant, part in ((COPIES, (0, first)), (others, (first, rows - first))):
            SIMT.insert(b, problem, variant, Arguments(*operands, rows=part))

    return function_text(product.name, types, body)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared_folder(tmp_path_factory) / "matmul_simt"
    return build([product for product, _ in PRODUCTS], _text, folder, "--chip", "sm_80", "-O1")


@pytest.mark.parametrize("product", [product for product, _ in PRODUCTS], ids=lambda p: p.name)
def test_products_are_right(program: Path, product: Product, tmp_path: Path) -> None:
    """As f64 has it, in a C of NaN, and every time the same."""
    assert call(program, product, tmp_path) == ""


@pytest.mark.parametrize(
    "name",
    [
        *("sizes", "sizes_loads", "sizes_split", "sizes_parts", "sizes_sliced", "sizes_few"),
        "sizes_shared",
    ],
)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_any_sizes_are_right(
    program: Path, name: str, size: tuple[int, int, int], tmp_path: Path
) -> None:
    m, n, k = size
    assert call(program, Product(name, m, n, k), tmp_path) == ""


def test_parts_of_k_are_as_many_as_a_gpu_has_use_for() -> None:
    """They fill waves, but not more than elements of K are worth, or than a second kernel adds
    soon."""
    across = _of(64, 64, 4096)
    sizes = {(64, 64, 4096): 32, (512, 512, 4096): 2, (1576, 768, 3072): 3, (64, 64, 400): 3}
    for size, splits in {**sizes, (2048, 2048, 4096): 1, (64, 64, 0): 1}.items():
        assert SIMT.for_sizes(across, FEW_TILES, size).split_k == splits, size
    # Where K is contiguous, elements are copied one by one.
    along = Product("along", 64, 64, 4096, transposed_b=True).problem
    assert SIMT.for_sizes(along, FEW_TILES, (256, 256, 4096)).split_k == 16


def _of(m: int, n: int, k: int) -> Problem:
    """A product of a known size, at addresses that allow the widest copies."""
    a, b, c = (
        Matrix(f"memref<{rows}x{columns}xf32>", "f32", (rows, columns), columns, 16)
        for rows, columns in ((m, k), (k, n), (m, n))
    )
    return Problem(a, b, c, "f32")


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "size", [(1024, 768, 768), (1024, 3072, 768), (128, 3072, 768), (128, 768, 3072)], ids=str
)
def test_most_multiprocessors_have_as_much_of_c(size: tuple[int, int, int], chip: str) -> None:
    """Tiles of 128x64 and 64x64 leave a quarter of a GPU idle at these sizes."""
    m, n, k = size
    best = choose(_of(m, n, k), [Chip(chip)])[0]
    variant, multiprocessors = best.variant, gpu_of(Chip(chip).capability).multiprocessors
    blocks = -(-m // variant.m) * -(-n // variant.n) * variant.split_k
    busiest = -(-blocks // multiprocessors) * variant.m * variant.n * k / variant.split_k
    assert m * n * k / multiprocessors / busiest > 0.85, best
    assert "tiles of" in str(best)


def test_a_sliced_tile_has_eight_warps_and_fits_every_gpu() -> None:
    """So no GPU needs a second kernel for a product (`_fit_shared_memory`)."""
    problem = _of(1024, 768, 768)
    sliced = [variant for variant in SIMT.legal_variants(problem) if variant.sliced_k > 1]
    assert sliced
    for variant in sliced:
        assert variant.threads in (128, 256), variant
        assert SIMT.shared_bytes(problem, variant) <= BLOCK_SHARED_BYTES, variant
    described = SIMT.describe(Variant(64, 96, 32, 32, 96, 8, 12, split_k=2, sliced_k=4))
    assert described == (
        "multiply-adds with tiles of 64x96, 4 slices of each tile of K, K in 2 parts"
    )


@pytest.mark.parametrize("size", [(64, 1024, 256), (128, 512, 256), (256, 256, 256)], ids=str)
def test_a_small_product_is_one_kernel(size: tuple[int, int, int]) -> None:
    """Each step of a recurrent layer waits for the one before: the kernel that adds parts of K
    would take as long as the product."""
    m, n, k = size
    variant = choose(_of(m, n, k), [Chip("sm_90a")])[0].variant
    assert variant.split_k == 1, variant
    assert -(-m // variant.m) * -(-n // variant.n) >= 120, variant


def test_the_smallest_tiles_are_for_few_of_them() -> None:
    """The tiles of all batches count."""
    a, b, c = (
        Matrix(f"memref<12x{rows}x{columns}xf32>", "f32", (rows, columns), columns, 16)
        for rows, columns in ((128, 64), (64, 128), (128, 128))
    )
    batched = Problem(a, b, c, "f32", batched=True)
    assert 16 not in {variant.m for variant in SIMT.legal_variants(batched)}
    assert 16 in {variant.m for variant in SIMT.legal_variants(_of(128, 128, 64))}


@pytest.mark.parametrize("size", [(0, 0, 4), (3, 0, 4), (0, 5, 0)], ids=str)
def test_there_may_be_nothing_to_do(
    program: Path, size: tuple[int, int, int], tmp_path: Path
) -> None:
    """No rows or no columns: a grid of no blocks would be an error."""
    assert call(program, Product("sizes", *size), tmp_path) == ""


def test_what_is_stored_is_finished(tmp_path: Path) -> None:
    """The epilogue is given the accumulator, its row and its column."""
    product = Product("finished", 35, 34, 3)
    text = SIMT.function(product.problem, COPIES, product.name, CLAMPED)
    check_clamped(product, text, tmp_path)


@pytest.mark.parametrize(
    ("product", "chip"),
    [
        (Product("f32", 4096, 4096, 4096, dynamic=""), "sm_90a"),
        (Product("f32_turned", 1024, 1024, 1024, dynamic="", transposed_b=True), "sm_80"),
        (Product("f64", 1000, 1000, 1000, **_same("f64"), dynamic=""), "sm_80"),
        (Product("f16", 1000, 1000, 1000, **_halves("f16")), "sm_100"),
    ],
    ids=["f32", "turned", "f64", "f16"],
)
def test_variants_build(product: Product, chip: str, tmp_path: Path) -> None:
    """The first one as machine code; all can be taken."""
    found = SIMT.variants(product.problem)
    assert found
    assert all(SIMT.can_implement(product.problem, variant) for variant in found)
    source = tmp_path / "product.mlir"
    source.write_text(SIMT.function(product.problem, found[0], product.name))
    options = ("--chip", chip, "--no-cpu-kernels", "--emit", "cubin", "--entry", product.name)
    build_here(source, *options, "-o", tmp_path / "product.cubin")


@pytest.mark.parametrize(
    ("product", "variant"),
    [
        (Product("alignment", 64, 64, 64), WIDE),
        (Product("type", 64, 64, 64, **_halves("f16")), COPIES),
        (Product("mixed", 64, 64, 64, "f16", "i32", "i32"), LOADS),
        (Product("lanes", 64, 64, 64), Variant(32, 32, 8, 16, 16, 4, 4, 3, 4)),
        (Product("slices", 96, 96, 64), Variant(96, 96, 32, 96, 96, 24, 12, 3, 4, sliced_k=3)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_it_cannot_do_is_refused(product: Product, variant: Variant) -> None:
    problem: Problem = product.problem
    assert not SIMT.can_implement(problem, variant)


def test_few_tiles_have_slices_of_k() -> None:
    """And parts of K, unless K is known to be short."""
    for fields, split_k in (({}, 0), ({"n": 512, "k": 128, "dynamic": "m"}, 1)):
        few = SIMT.few_tiles(Product("few", **{"m": 64, "n": 512, "k": 512, **fields}).problem)
        assert few is not None
        changed = {"split_k": split_k, "copy_bytes": few.variant.copy_bytes}
        assert few.variant == msgspec.structs.replace(FEW_TILES, **changed)
