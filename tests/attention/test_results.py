"""Attention on the CPU device: its kernel, and the operations as they were written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from attention.written import CAUSAL, attention, multiplied
from helpers.shared import made_once, shared_folder

import aotc

INPUTS = Path(__file__).parent / "inputs"


def exact(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    causal: bool,
    mask: np.ndarray | None = None,
    replaces: bool = False,
) -> np.ndarray:
    """`replaces`: elements of the mask that are not 0 replace scores."""
    q, k, v = (one.astype(np.float64) for one in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = np.where(mask == 0, scores, mask) if replaces else scores + mask
    if causal:
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1)
        scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ v)


def operands(
    *outer: int, queries: int = 70, keys: int = 131, dtype: type = np.float16
) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    rows = (queries, keys, keys)
    return [random.standard_normal((*outer, n, 64)).astype(dtype) for n in rows]


def heads_of(x: np.ndarray, heads: int) -> list[np.ndarray]:
    """Q, K and V, of rows that have all heads of each beside each other."""
    parts = (part.reshape(*x.shape[:2], heads, -1) for part in np.split(x, 3, axis=2))
    return [np.swapaxes(part, 1, 2) for part in parts]


def build(text: str, folder: Path, chip: str = "sm_90a") -> aotc.Library:
    made = aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=(chip,))
    return aotc.load(made.path)


@pytest.mark.parametrize(
    ("name", "outer", "causal"),
    [
        ("pytorch", (1, 3), False),
        ("pytorch_causal", (2, 2), True),
        ("pytorch_by_hand", (2, 2), False),
        ("pytorch_masked_by_hand", (1, 2), True),
    ],
)
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_pytorchs_attention_is_right(
    name: str, outer: tuple[int, int], causal: bool, chip: str, tmp_path: Path
) -> None:
    """And the same with and without the kernel of another device beside it."""
    text = (INPUTS / f"{name}.mlir").read_text()
    library = build(text, tmp_path, chip)
    q, k, v = operands(*outer)
    result = np.full(q.shape, np.nan, np.float16)
    library.attention(q, k, v, result)
    np.testing.assert_allclose(result, exact(q, k, v, causal=causal), rtol=0, atol=4e-3)


@pytest.mark.parametrize(
    ("factor", "element"), [("b", "f32"), ("", "f32"), ("i", "f32"), ("b", "f16"), ("i", "f16")]
)
def test_scores_are_multiplied(factor: str, element: str, tmp_path: Path) -> None:
    """By a number of each head, which is made behind the scores; by one; and by one of a query."""
    library = build(multiplied(factor=factor, element=element), tmp_path)
    q, k, v = operands(2, dtype=np.dtype(element.replace("f", "float")).type)
    sizes = {"b": (2,), "": (), "i": (70,)}[factor]
    given = np.random.default_rng(8).uniform(-2, 2, sizes).astype(np.float32)
    result = np.full(q.shape, np.nan, q.dtype)
    library.attention(given, q, k, v, result)
    turned = given.reshape(-1, 1, 1) if factor == "b" else given.reshape(-1, 1)
    expected = exact(q * np.float64(2 * turned), k, v, causal=False)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-2 if element == "f16" else 2e-5)


@pytest.mark.parametrize(
    ("name", "batch"), [("pytorch_heads_in_rows", 2), ("pytorch_heads_in_rows_of_one", 1)]
)
def test_heads_beside_each_other_are_right(name: str, batch: int, tmp_path: Path) -> None:
    text = (INPUTS / f"{name}.mlir").read_text()
    library = build(text, tmp_path)
    random = np.random.default_rng(6)
    x = random.standard_normal((batch, 70, 3 * 2 * 64)).astype(np.float16)
    result = np.full((batch, 70, 2 * 64), np.nan, np.float16)
    library.attention(x, result)
    expected = np.swapaxes(exact(*heads_of(x, 2), causal=True), 1, 2).reshape(result.shape)
    np.testing.assert_allclose(result, expected, rtol=0, atol=4e-3)


@pytest.mark.parametrize(("name", "outer"), [("no_batch", ()), ("batch_and_heads", (2, 3))])
def test_a_batch_has_any_dimensions(name: str, outer: tuple[int, ...], tmp_path: Path) -> None:
    text = (INPUTS / f"{name}.mlir").read_text()
    library = build(text, tmp_path)
    q, k, v = operands(*outer)
    result = np.full(q.shape, np.nan, np.float16)
    library.attention(q, k, v, result)
    np.testing.assert_allclose(result, exact(q, k, v, causal=False), rtol=0, atol=4e-3)


def test_heads_in_rows_of_any_size_are_right(tmp_path: Path) -> None:
    text = (INPUTS / "pytorch_heads_in_rows_of_any_size.mlir").read_text()
    library = build(text, tmp_path)
    random = np.random.default_rng(6)
    for batch, tokens in ((2, 70), (1, 2), (3, 131)):
        x = random.standard_normal((batch, tokens, 3 * 2 * 64)).astype(np.float16)
        expected = exact(*heads_of(x, 2), causal=True)
        expected = np.swapaxes(expected, 1, 2).reshape(batch, tokens, 2 * 64)
        np.testing.assert_allclose(library.attention(x), expected, rtol=0, atol=4e-3)


def test_rows_in_front_of_the_batch_are_right(tmp_path: Path) -> None:
    """As `nn.MultiheadAttention` has them."""
    text = (INPUTS / "pytorch_rows_first_of_any_batch.mlir").read_text()
    library = build(text, tmp_path)
    random = np.random.default_rng(6)
    for batch in (2, 3):
        x = random.standard_normal((70, batch, 3 * 2 * 64)).astype(np.float16)
        heads = exact(*heads_of(np.swapaxes(x, 0, 1), 2), causal=False)
        expected = np.moveaxis(heads, 2, 0).reshape(70, batch, 2 * 64)
        np.testing.assert_allclose(library.attention(x), expected, rtol=0, atol=4e-3)


def test_a_mask_is_added(tmp_path: Path) -> None:
    """And rows that are masked throughout are 0, as PyTorch has them."""
    text = (INPUTS / "pytorch_mask.mlir").read_text()
    library = build(text, tmp_path)
    q, k, v = operands(1, 2)
    mask = np.random.default_rng(4).standard_normal((70, 131)).astype(np.float16)
    mask[:, ::3] = mask[2] = -np.inf
    result = np.full(q.shape, np.nan, np.float16)
    library.attention(q, k, v, mask, result)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(exact(q, k, v, causal=False, mask=mask))
    np.testing.assert_allclose(result, expected, rtol=0, atol=4e-3)


@pytest.mark.parametrize("mask", [None, CAUSAL])
def test_attention_of_unknown_sizes_is_right(mask: str | None, tmp_path: Path) -> None:
    text = attention(None, None, None, mask=mask)
    library = build(text, tmp_path)
    for batch, queries, keys in ((1, 1, 1), (2, 33, 65), (1, 130, 70), (0, 4, 4)):
        q, k, v = operands(batch, queries=queries, keys=keys)
        result = library.attention(q, k, v)
        expected = exact(q, k, v, causal=mask is not None)
        np.testing.assert_allclose(result, expected, rtol=0, atol=4e-3)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_f32_is_not_rounded(chip: str, tmp_path: Path) -> None:
    text = attention(element="f32", mask=CAUSAL)
    library = build(text, tmp_path, chip)
    q, k, v = operands(2, dtype=np.float32)
    result = np.full(q.shape, np.nan, np.float32)
    library.attention(q, k, v, result)
    np.testing.assert_allclose(result, exact(q, k, v, causal=True), rtol=0, atol=2e-6)


# Elements of a head, queries and keys: less than a vector, a vector and more, several tiles.
SIZES = ((8, 7, 3), (24, 41, 300), (64, 100, 257), (80, 6, 16), (320, 33, 130))


def name_of(size: tuple[int, int, int], *, causal: bool) -> str:
    return "_".join(["causal" if causal else "all", *map(str, size)])


@pytest.fixture(scope="module")
def sizes_of_f32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library with an entry for each size."""

    def build(folder: Path) -> None:
        texts = []
        for causal in (False, True):
            for size in SIZES:
                head_dim, queries, keys = size
                text = attention(
                    *(3, queries, keys, head_dim),
                    element="f32",
                    scale=head_dim**-0.5,
                    mask=CAUSAL if causal else None,
                )
                texts.append(text.replace("@attention", f"@{name_of(size, causal=causal)}"))
        aotc.build(
            "\n".join(texts), emit="shared", out=f"{folder}/", name="built", chips=("sm_90a",)
        )

    return made_once(shared_folder(tmp_path_factory) / "attention_sizes", build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
@pytest.mark.parametrize("causal", [False, True])
def test_tiles_have_edges(
    level: str, causal: bool, sizes_of_f32: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each level of x86-64, which a library asks for once."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    own = shutil.copytree(sizes_of_f32, tmp_path / "own")
    library = aotc.load(own)
    random = np.random.default_rng(7)
    for size in SIZES:
        head_dim, queries, keys = size
        q, k, v = (
            random.standard_normal((3, n, head_dim)).astype(np.float32)
            for n in (queries, keys, keys)
        )
        result = np.full(q.shape, np.nan, np.float32)
        getattr(library, name_of(size, causal=causal))(q, k, v, result)
        expected = exact(q, k, v, causal=causal)
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6, err_msg=str(size))


def test_windows_add_a_bias_and_a_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Swin's: Q, K and V are parts of one tensor, the bias is a head's, the mask a window's, of
    which each of two images has four. At each level of x86-64."""
    text = (INPUTS / "pytorch_windows.mlir").read_text()
    built = aotc.build(
        text, emit="shared", out=f"{tmp_path}/built/", name="built", chips=("sm_80",)
    )
    names = [kernel.name for kernel in built.manifest.kernels]
    assert "attention_f32_d8_mask_cpu_96x256_align4" in names
    random = np.random.default_rng(8)
    x, bias, mask = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((8, 9, 48), (2, 9, 9), (4, 9, 9))
    )
    added = bias + np.tile(mask, (2, 1, 1))[:, None]
    expected = np.swapaxes(exact(*heads_of(x, 2), causal=False, mask=added), 1, 2)
    for level in ("1", "3", "4"):
        monkeypatch.setenv("AOTC_CPU_LEVEL", level)
        own = shutil.copytree(tmp_path / "built", tmp_path / level)
        result = np.full((8, 9, 16), np.nan, np.float32)
        aotc.load(own).attention(x, bias, mask, result)
        np.testing.assert_allclose(result, expected.reshape(8, 9, 16), rtol=0, atol=2e-6)
