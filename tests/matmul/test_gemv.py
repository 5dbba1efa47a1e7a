from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.command import build_here
from helpers.shared import shared_folder
from matmul.scalar_products import CLAMPED, Product, build, call, check_clamped

from aotc.kernels.matmul.gemv.family import GEMV
from aotc.kernels.matmul.gemv.shape import Variant

# Loads of an element or of several, k divided by lanes, warps, blocks. `small` differs from sizes.
ONE = Variant(small=2, warps=2, load_bytes=4, unroll=2, rows=2, lanes=8)
WIDE = Variant(small=3, warps=4, load_bytes=16, unroll=2, rows=1, warps_along=2, lanes=4)
SPLIT = Variant(small=4, warps=2, load_bytes=4, unroll=2, rows=2, warps_along=2, lanes=8, split_k=3)
HALF = Variant(small=1, warps=2, load_bytes=2, unroll=1, rows=3, lanes=32)

SIZES = [(1, 1, 1), (1, 70, 9), (2, 33, 200), (3, 64, 16), (5, 67, 131), (2, 3, 0)]


def _products() -> list[tuple[Product, Variant]]:
    made = []
    for ta, tb, right in itertools.product((False, True), repeat=3):
        name = f"{'nt'[ta]}{'nt'[tb]}{'_right' * right}"
        m, n = (45, 5) if right else (5, 45)
        product = Product(name, m, n, 150, transposed_a=ta, transposed_b=tb)
        wide = replace(product, name=f"{name}_wide", m=m + m % 2 * 3, n=n + n % 2 * 3, k=148)
        made += [
            (product, _of(ONE, right)),
            (replace(wide, dynamic="", adds=True), _of(WIDE, right)),
        ]
    f64 = {"element": "f64", "accumulator": "f64", "result": "f64"}
    f16, bf16 = ({"element": e, "result": e} for e in ("f16", "bf16"))
    strided = Product("strided", 3, 38, 150, dynamic="", pitches={"a": 152, "b": 40, "c": 44})
    batched = Product("batched", 3, 38, 150, batches=3)
    made += [
        (Product("sizes", 1, 1, 1), ONE),
        (Product("no_rows", 0, 9, 5, dynamic="nk"), ONE),
        (Product("sizes_turned", 1, 1, 1, transposed_b=True), ONE),
        (Product("sizes_split", 1, 1, 1), SPLIT),
        (strided, WIDE),
        (replace(strided, name="strided_dynamic", dynamic="mnk"), WIDE),
        (replace(strided, name="strided_turned", transposed_b=True, pitches={"b": 156}), WIDE),
        (batched, ONE),
        (replace(batched, name="batched_split", adds=True), SPLIT),
        (replace(batched, name="batched_turned", transposed_b=True), SPLIT),
        (Product("f16", 3, 80, 296, **f16, dynamic=""), WIDE),
        (Product("f16_turned", 3, 80, 300, **f16, dynamic="", transposed_b=True), HALF),
        (Product("bf16", 3, 80, 296, **bf16, dynamic="m", transposed_b=True), WIDE),
        (Product("f64", 3, 20, 70, **f64, transposed_b=True), _of(ONE, False, load_bytes=8)),
        (Product("i8", 3, 40, 70, "i8", "i32", "i32"), _of(ONE, False, load_bytes=1)),
    ]
    return made


def _of(variant: Variant, is_right: bool, **changes: int) -> Variant:
    fields = {name: getattr(variant, name) for name in variant.__struct_fields__}
    return Variant(**{**fields, "is_right": is_right, **changes})


PRODUCTS = _products()
VARIANTS = {product.name: variant for product, variant in PRODUCTS}


def _text(product: Product) -> str:
    variant = VARIANTS[product.name]
    assert GEMV.can_implement(product.problem, variant), product.name
    return GEMV.function(product.problem, variant, product.name)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared_folder(tmp_path_factory) / "gemv"
    return build([product for product, _ in PRODUCTS], _text, folder, "--chip", "sm_80", "-O1")


@pytest.mark.parametrize("product", [product for product, _ in PRODUCTS], ids=lambda p: p.name)
def test_products_are_right(program: Path, product: Product, tmp_path: Path) -> None:
    """As f64 has it, in a C of NaN, and every time the same."""
    assert call(program, product, tmp_path) == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "size"),
    [
        *itertools.product(("sizes", "sizes_turned", "sizes_split"), SIZES),
        ("sizes", (0, 3, 4)),
        ("sizes_split", (3, 0, 4)),
    ],
    ids=str,
)
def test_any_sizes_are_right(
    program: Path, name: str, size: tuple[int, int, int], tmp_path: Path
) -> None:
    product = Product(name, *size, transposed_b="turned" in name)
    assert call(program, product, tmp_path) == ""


@pytest.mark.parametrize("is_right", [False, True])
def test_what_is_stored_is_finished(is_right: bool, tmp_path: Path) -> None:
    """The epilogue is given the accumulator, its row and its column."""
    product = Product("finished", 35, 34, 3)
    variant = _of(SPLIT, is_right)
    text = GEMV.function(product.problem, variant, product.name, CLAMPED)
    check_clamped(product, text, tmp_path)


@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_variants_build(element: str, transposed: bool, tmp_path: Path) -> None:
    """The first one as machine code; all can be taken."""
    sizes = {"dynamic": "", "element": element, "result": element}
    product = Product("product", 8, 4096, 4096, transposed_b=transposed, **sizes)
    found = GEMV.variants(product.problem)
    assert found
    assert all(GEMV.can_implement(product.problem, variant) for variant in found)
    source = tmp_path / "product.mlir"
    source.write_text(GEMV.function(product.problem, found[0], product.name))
    options = ("--chip", "sm_90a", "--no-cpu-kernels", "--emit", "cubin", "--entry", product.name)
    build_here(source, *options, "-o", tmp_path / "product.cubin")


def test_what_it_cannot_do_is_refused() -> None:
    problem = Product("dynamic", 3, 64, 64).problem
    assert not GEMV.can_implement(problem, WIDE)  # rows may begin anywhere
    assert GEMV.variants(Product("large", 64, 64, 64, dynamic="").problem) == ()
