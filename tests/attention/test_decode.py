"""Attention of one query: its kernels' numbers on the CPU device, and what they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attention import problems
from attention.problems import matrix
from attention.test_results import exact
from helpers.command import Outcome
from helpers.shared import made_once, shared_folder
from msgspec.structs import replace

import aotc as package
from aotc.kernels.attention.choice import choose, choose_for_cpu
from aotc.kernels.attention.decode.family import DECODE, DECODE_ON_HOPPER
from aotc.kernels.attention.pages import Pages
from aotc.kernels.attention.problem import Attention, Mask
from aotc.request import Chip

INPUTS = Path(__file__).parent / "inputs"
KEYS = Mask("memref<?xf32>", "f32", ("j",))
OF_BATCH = Mask("memref<?x?xf16>", "f16", ("b/2", "j"))


def decode(
    group: int,
    head_dim: int = 64,
    batch: int | None = None,
    keys: int | None = None,
    *,
    element: str = "f16",
    mask: Mask | None = None,
) -> Attention:
    shared = None if batch is None else batch // group
    return Attention(
        q=matrix(batch, 1, head_dim, element),
        k=matrix(shared, keys, head_dim, element),
        v=matrix(shared, keys, head_dim, element),
        o=matrix(batch, 1, head_dim, element),
        scale=head_dim**-0.5,
        batch=batch,
        mask=mask,
        group=group,
    )


def unaligned(p: Attention) -> Attention:
    q, k, v, o = (replace(one, alignment=2) for one in (p.q, p.k, p.v, p.o))
    return replace(p, q=q, k=k, v=v, o=o)


def in_rows(p: Attention, heads: int) -> Attention:
    """With heads of K and V beside each other in rows."""
    width = heads * (p.head_dim or 0)
    k = replace(p.k, type=f"memref<?x?x{width}xf16>", sizes=(None, width), pitch=width)
    return replace(p, k=k, v=k, heads=(0, heads, heads, 0))


def in_pages(p: Attention, pages: Pages) -> Attention:
    """With K and V in the pages of a cache."""
    head_dim, element = p.head_dim or 0, p.q.element
    of_rows = pages.heads if pages.has_head_rows else 0
    k = matrix(None, pages.rows, head_dim * max(of_rows, 1), element)
    return replace(p, k=k, v=k, heads=(0, of_rows, of_rows, 0), pages=pages)


CASES = {
    "whole_tiles": decode(4, 128, 8, 256),
    "one_key": decode(1, 64, 3, 1),
    "any_size": decode(1),
    "group_of_12": decode(12, 32),
    "mask": decode(4, 64, 8, 300, mask=KEYS),
    "mask_of_batch": replace(decode(2, mask=OF_BATCH), masked_rows_are_zero=True),
    "f32": decode(2, 128, element="f32", mask=KEYS),
    "unaligned": unaligned(decode(2, 16)),
    "heads_in_rows": in_rows(decode(2), 2),
    "256_columns": decode(2, 256),
    "8_columns": decode(2, 8),
    "select": problems.replacing(decode(4, 64, 8, 300, mask=KEYS)),
    "pages": in_pages(decode(2, mask=KEYS), Pages(16, 2, has_head_rows=True)),
    "pages_of_a_head": in_pages(decode(4, 32, 8), Pages(1, 1, has_head_rows=False, count=77)),
    "pages_of_heads": in_pages(
        decode(1, 128, 6, element="f32"), Pages(24, 3, has_head_rows=False, count=9)
    ),
}
DTYPES = {"f16": np.float16, "f32": np.float32}


def _text(name: str) -> str:
    p = CASES[name]
    (variant,) = DECODE.variants(p)
    module = problems.module(DECODE.function(p, variant, "kernel"), p)
    return module.replace("kernel", f"kernel_{name}").replace("@attention", f"@a_{name}")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> package.Library:
    def make(folder: Path) -> None:
        text = "\n".join(map(_text, CASES))
        package.build(text, emit="shared", out=f"{folder}/", name="decode", chips=("sm_80",))

    folder = made_once(shared_folder(tmp_path_factory) / "attention_decode", make)
    loaded = package.load(folder / "lib" / "libdecode.so")
    loaded.set_device("cpu")
    return loaded


def paged(
    x: np.ndarray, pages: Pages, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The matrices in a cache whose pages are in any order, with others of NaN between them; and
    the table."""
    batch, keys, columns = x.shape
    sequences, count = batch // pages.heads, keys // pages.rows
    cut = x.reshape(sequences, pages.heads, count, pages.rows, columns).swapaxes(1, 2)
    table = random.permutation(2 * sequences * count)[: sequences * count].reshape(sequences, count)
    cache = np.full((2 * sequences * count, *cut.shape[2:]), np.nan, x.dtype)
    cache[table] = cut
    if pages.has_head_rows:
        cache = cache.swapaxes(1, 2).reshape(len(cache), pages.rows, -1)
    else:
        cache = cache.reshape(-1, pages.rows, columns)
    return np.ascontiguousarray(cache), table.astype(np.int64)


@pytest.mark.parametrize("name", CASES)
def test_attention_is_right(library: package.Library, name: str) -> None:
    """As f64 has it, in an O of NaN, and every time the same."""
    p = CASES[name]
    dtype, head_dim = DTYPES[p.q.element], p.head_dim or 0
    heads = max(p.heads[1], 1) if p.pages is None else p.pages.heads
    batch = p.batch or 2 * p.group * heads
    keys = p.keys or (333 if p.pages is None else 21 * p.pages.rows)
    random = np.random.default_rng(len(name))
    shapes = [(batch, 1, head_dim), *[(batch // p.group, keys, head_dim)] * 2]
    q, k, v = (random.standard_normal(shape).astype(dtype) for shape in shapes)
    masks, mask = [], None
    if p.mask is not None:
        outer = (batch // 2,) if len(p.mask.places) > 1 else ()
        given = random.standard_normal((*outer, keys)).astype(DTYPES[p.mask.element])
        if p.mask.replaces:
            given[given > -0.5] = 0
        given[..., keys // 2 :] = -np.inf
        if outer:
            given[0] = -np.inf
        masks = [given]
        mask = given[np.arange(batch) // 2][:, None] if outer else given
    lying, tables = [k, v], []
    if p.pages is not None:
        lying, tables = zip(*(paged(one, p.pages, random) for one in (k, v)), strict=True)
    elif p.heads[1]:
        apart = (one.reshape(-1, heads, keys, head_dim).swapaxes(1, 2) for one in lying)
        lying = [np.ascontiguousarray(one.reshape(-1, keys, heads * head_dim)) for one in apart]
    results = []
    for _ in range(2):
        result = np.full(q.shape, np.nan, dtype)
        library[f"a_{name}"](q, *lying, result, *masks, *tables)
        results.append(result)
    shared = [np.repeat(one, p.group, axis=0) for one in (k, v)]
    with np.errstate(invalid="ignore"):
        replaces = p.mask is not None and p.mask.replaces
        expected = exact(q, *shared, causal=False, mask=mask, replaces=replaces)
    if p.masked_rows_are_zero:
        expected = np.nan_to_num(expected)
    tolerance = 2e-6 if p.q.element == "f32" else 2e-3
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("why", "p"),
    [
        ("lanes of a row are no power of two", decode(1, 96)),
        ("more lanes than a warp has", decode(1, 512)),
        ("its one key would be the first", replace(decode(1), causal=True)),
    ],
)
def test_what_it_cannot_is_refused(why: str, p: Attention) -> None:
    assert choose(p, [Chip("sm_90a")]) == [], why


def test_other_families_take_no_single_rows() -> None:
    found = choose(decode(4, 64, 8, 256), [Chip("sm_90a"), Chip("sm_80")])
    assert [one.family for one in found] == [DECODE_ON_HOPPER, DECODE, DECODE]
    assert choose_for_cpu(decode(4, 64, 8, 256)) is None


def test_pytorchs_decode_step_is_one_kernel(aotc: Callable[..., Outcome], tmp_path: Path) -> None:
    """Heads that share keys are read once: nothing repeats them. On the CPU device, the operations
    are what they were."""
    path = INPUTS / "pytorch_decode.mlir"
    arguments = ("--chip", "sm_90a", "--emit", "shared", "--explain", "-o", f"{tmp_path}/")
    said = aotc("build", path, *arguments).succeeded()
    found = re.findall(r": (attention.*: one kernel,)", said.stderr + said.stdout)
    expected = "attention of one query for each 4 heads that share keys with a mask: one kernel,"
    assert found == [expected]
    random = np.random.default_rng(9)
    shapes = [(1, 8, 1, 64), (1, 2, 150, 64), (1, 2, 150, 64), (150,)]
    q, k, v, mask = (random.standard_normal(shape).astype(np.float16) for shape in shapes)
    mask[100:] = -np.inf
    result = np.full(q.shape, np.nan, np.float16)
    library = package.load(tmp_path)
    library.set_device("cpu")
    library.attention(q, k, v, mask, result)
    shared = [np.repeat(one, 4, axis=1) for one in (k, v)]
    wanted = exact(q, *shared, causal=False, mask=mask.astype(np.float64))
    np.testing.assert_allclose(result, wanted, rtol=0, atol=2e-3)
