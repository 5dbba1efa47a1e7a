"""Attention of PyTorch's programs: it has kernels, and right values on the CPU device."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402
from frontends.torch_builds import build, check  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402


class Attention(torch.nn.Module):
    def __init__(self, **options: bool) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **self.options)


def test_sizes_of_one_symbol_are_one(tmp_path: Path) -> None:
    """Others are an error, where a batch of 1 would else be broadcast."""
    batch, queries, keys = (torch.export.Dim(name, max=4096) for name in ("b", "i", "j"))
    shapes = ({0: batch, 2: queries}, {0: batch, 2: keys}, {0: batch, 2: keys})

    def inputs(batch: int, queries: int, keys: int) -> Any:
        sizes = ((batch, 2, rows, 64) for rows in (queries, keys, keys))
        return tuple(torch.randn(one, dtype=torch.float16) for one in sizes)

    module, given = Attention(), inputs(2, 70, 131)
    artifact = build(module, given, "attention", tmp_path, dynamic_shapes=shapes)
    for one in (given, inputs(1, 3, 5)):
        check(artifact, "attention", module, one, torch.float16)
    q, (k, v) = inputs(2, 8, 8)[0], inputs(1, 8, 8)[1:]
    message = "'k' has another size in dimension 0 than 'q' in dimension 0"
    with pytest.raises(aotc.LibraryError, match=message):
        aotc.load(artifact.path).attention(q.numpy(), k.numpy(), v.numpy())


class _Heads(torch.nn.Module):
    """Attention whose heads are parts of rows, as in Whisper."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Linear(48, 48) for _ in range(3))

    def forward(self, x: Any) -> Any:
        heads = (part(x).view(1, 50, 3, 16).transpose(1, 2) for part in self.parts)
        found = torch.nn.functional.scaled_dot_product_attention(*heads)
        return found.transpose(1, 2).reshape(1, 50, 48)


def test_attention_of_heads_has_a_kernel_on_the_cpu(tmp_path: Path) -> None:
    """Which reads the heads where they are, of operands whose strides it does not know."""
    torch.manual_seed(0)
    module, x = _Heads().eval(), torch.randn(1, 50, 48)
    artifact = build(module, (x,), "heads", tmp_path)
    kernels = {kernel.name for kernel in artifact.manifest.kernels}
    assert any(name.startswith("attention") and "_cpu_" in name for name in kernels), kernels
    expected = module(x).detach().numpy()
    (found,) = call(artifact, "heads", [x.numpy()], [expected])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


class _Windows(torch.nn.Module):
    """Attention of windows of images, whose batch has three dimensions, as in Twins."""

    def forward(self, q: Any, k: Any, v: Any, mask: Any, shared: Any) -> Any:
        attention = torch.nn.functional.scaled_dot_product_attention
        # Different scores: those of several attentions would be computed once.
        return (
            attention(q, k, v),
            attention(q * 0.5, k, v, attn_mask=mask),
            attention(q + 0.5, k, v, attn_mask=shared),
            attention(q.exp(), k, v, is_causal=True),
            attention(q - 0.5, k, v, attn_mask=shared[0]),
        )


def test_a_batch_of_three_dimensions_has_a_kernel(tmp_path: Path) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 3, 10, 16).unbind(0)
    module, given = _Windows(), (q, k, v, torch.randn(4, 1, 10, 10), torch.randn(10, 10) > -1)
    artifact = build(module, given, "windows", tmp_path)
    names = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(name.startswith("attention") for name in names), names
    assert not any("matmul" in name for name in names), names
    expected = [one.numpy() for one in module(*given)]
    found = call(artifact, "windows", [one.numpy() for one in given], expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


class _Temperatures(torch.nn.Module):
    """Scores are multiplied by a number of each head. `form`: what else reads scores or Q."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, self.t = form, torch.nn.Parameter(torch.tensor([2.0, 3.0]).reshape(2, 1, 1))

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        if self.form == "of normalized rows":
            q, k = (
                torch.nn.functional.normalize(q, dim=-1),
                torch.nn.functional.normalize(k, dim=-1),
            )
        if self.form == "and Q":
            q = (q + 1).reshape(1, 16, 2, 16).transpose(1, 2).contiguous()
        if self.form == "of one tensor":
            k = q
        scores = q @ k.transpose(-2, -1)
        found = torch.softmax(scores * self.t, -1) @ v
        if self.form == "and scores":
            return found, scores
        if self.form == "twice":
            return found, torch.softmax(scores * (self.t + 1.5), -1) @ v
        return (found, q) if self.form == "and Q" else (found,)


@pytest.mark.parametrize(
    ("form", "dtype", "has_kernel"),
    [
        ("of normalized rows", torch.float16, True),
        ("alone", torch.bfloat16, True),
        ("alone", torch.float32, True),
        ("alone", torch.float16, False),
        ("and scores", torch.float32, False),
        ("twice", torch.float32, False),
        ("and Q", torch.float32, False),
        ("of one tensor", torch.float32, False),
    ],
)
def test_scores_with_temperatures(form: str, dtype: Any, has_kernel: bool, tmp_path: Path) -> None:
    """Q is multiplied if nothing else reads it, and in f16 only if it cannot exceed the range."""
    torch.manual_seed(0)
    module = _Temperatures(form).to(dtype).eval()
    given = tuple(torch.randn(1, 2, 16, 16).to(dtype) for _ in range(3))
    artifact = build(module, given, "temperatures", tmp_path)
    names = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(name.startswith("attention") for name in names) == has_kernel, names
    found = aotc.torch.load(artifact.path)(*given)
    exact = module.double()(*(one.double() for one in given))
    bound = {torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 0.2}[dtype]
    for ours, theirs in zip(found, exact, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=bound)


class _AlternatingHeads(torch.nn.Module):
    """Rows have Q, K and V of one head, then those of the next, as in GPT-NeoX and CodeGen."""

    def forward(self, x: Any) -> Any:
        heads = (part.transpose(1, 2) for part in x.view(2, 12, 4, 48).split(16, -1))
        return torch.nn.functional.scaled_dot_product_attention(*heads)


def test_attention_of_heads_with_others_in_between(tmp_path: Path) -> None:
    """They are put beside each other for the kernel."""
    torch.manual_seed(0)
    x = torch.randn(2, 12, 4 * 48)
    artifact = build(_AlternatingHeads(), (x,), "alternating", tmp_path)
    kernels = {kernel.name for kernel in artifact.manifest.kernels}
    assert any(name.startswith("attention") for name in kernels), kernels
    check(artifact, "alternating", _AlternatingHeads(), (x,), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_attention_of_grouped_queries_has_kernels(dtype: Any, tmp_path: Path) -> None:
    """K and V are converted before they are repeated."""
    module = Attention(is_causal=True, enable_gqa=True)
    inputs = tuple(torch.randn(2, heads, 70, 64, dtype=dtype) for heads in (8, 2, 2))
    artifact = build(module, inputs, "grouped", tmp_path)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(re.match(r"attention_\w+_causal_(?!cpu)", name) for name in kernels), kernels
    check(artifact, "grouped", module, inputs, dtype)


def test_attention_of_one_query_of_a_batch_has_a_kernel(tmp_path: Path) -> None:
    """Of grouped queries, where what repeats K and V asks whether there is one key."""
    dtype, dim = torch.float16, torch.export.Dim
    inputs = tuple(
        torch.randn(2, heads, rows, 64, dtype=dtype) for heads, rows in ((8, 1), (2, 80), (2, 80))
    )
    batch, keys = dim("batch", min=2), dim("keys", min=2)
    shapes = {"q": {0: batch}, "k": {0: batch, 2: keys}, "v": {0: batch, 2: keys}}
    module = Attention(enable_gqa=True)
    artifact = build(module, inputs, "grouped", tmp_path, dynamic_shapes=shapes)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(name.startswith("attention_f16_d64_decode_4x") for name in kernels), kernels
    check(artifact, "grouped", module, inputs, dtype)


class _OneQuery(torch.nn.Module):
    """K and V lie as a projection makes them: the heads are parts of rows."""

    def forward(self, q: Any, x: Any) -> Any:
        k, v = x.unflatten(2, (2, 3, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_attention_of_one_query_with_heads_in_rows(dtype: Any, tmp_path: Path) -> None:
    """The queries of all heads and of the batch, in front of each other, are no rows of a matrix
    whose keys they share."""
    torch.manual_seed(0)
    inputs = (torch.randn(2, 3, 1, 16, dtype=dtype), torch.randn(2, 20, 96, dtype=dtype))
    artifact = build(_OneQuery(), inputs, "one_query", tmp_path)
    check(artifact, "one_query", _OneQuery(), inputs, dtype)


class _Continued(torch.nn.Module):
    """Rows after those of a cache of fewer heads; each sees the keys up to its own."""

    def forward(self, x: Any, keys: Any, values: Any) -> Any:
        batch, rows, _ = x.shape
        parts = x.split((256, 128, 128), 2)
        q, k, v = (one.unflatten(2, (-1, 64)).transpose(1, 2) for one in parts)
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        sees = torch.arange(rows)[:, None] + keys.shape[2] >= torch.arange(k.shape[2])
        found = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=sees, enable_gqa=True
        )
        return found.transpose(1, 2).reshape(batch, rows, 256)


def test_attention_after_a_cache_of_unknown_sizes_has_kernels(tmp_path: Path) -> None:
    """K and V of 16 bits are repeated as such, and not broadcast along a size that is a sum."""
    torch.manual_seed(0)

    def inputs(batch: int, rows: int, past: int) -> Any:
        shapes = ((batch, rows, 512), (batch, 2, past, 64), (batch, 2, past, 64))
        return tuple(torch.randn(one, dtype=torch.float16) for one in shapes)

    given, auto = inputs(2, 24, 10), torch.export.Dim.AUTO
    shapes = ({0: auto, 1: auto}, {0: auto, 2: auto}, {0: auto, 2: auto})
    artifact = build(_Continued(), given, "continued", tmp_path, dynamic_shapes=shapes)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any(re.match(r"attention_f16_d64_mask_(?!cpu)", name) for name in kernels), kernels
    for one in (given, inputs(3, 1, 100), inputs(1, 65, 3)):
        check(artifact, "continued", _Continued(), one, torch.float16)


class _Paged(torch.nn.Module):
    """One query for each sequence, with its keys in pages of a cache. `form`: how they lie there,
    and how pages are looked up."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def forward(self, q: Any, *caches_table_lengths: Any) -> Any:
        *caches, table, lengths = caches_table_lengths
        k, v = (self._gathered(cache, table) for cache in caches)
        is_there = torch.arange(k.shape[2]) < lengths[:, None, None, None]
        options = {"attn_mask": is_there, "enable_gqa": True}
        return torch.nn.functional.scaled_dot_product_attention(q[:, :, None], k, v, **options)

    def _gathered(self, cache: Any, table: Any) -> Any:
        if self.form == "heads of a page":
            return cache[table].transpose(1, 2).flatten(2, 3)
        if self.form == "selected":
            rows = cache.index_select(0, table.flatten())
            return rows.view(len(table), -1, *cache.shape[2:]).transpose(1, 2)
        return cache[table].flatten(1, 2).transpose(1, 2)


@pytest.mark.parametrize(
    ("form", "dtype", "sequences"),
    [
        ("rows of heads", torch.float16, 3),
        ("rows of heads", torch.float32, None),
        ("heads of a page", torch.float16, 1),
        ("selected", torch.float16, 2),
    ],
)
def test_pages_of_a_cache_are_read_where_they_are(
    form: str, dtype: Any, sequences: int | None, tmp_path: Path
) -> None:
    """Without a copy in the order of the keys; of a number of sequences that is known, or is not. A
    page that there is not is an error."""
    torch.manual_seed(0)
    number = sequences or 2
    page = (2, 16) if form == "heads of a page" else (16, 2)
    caches = [torch.randn(40, *page, 64, dtype=dtype) for _ in "kv"]
    table = torch.randperm(40)[: 8 * number].view(number, 8)
    lengths = torch.tensor([100, 7, 128])[:number]
    inputs = (torch.randn(number, 8, 64, dtype=dtype), *caches, table, lengths)
    any_size = torch.export.Dim.AUTO
    shapes = ({0: any_size}, (None, None, {0: any_size, 1: any_size}, {0: any_size}))
    dynamic = {} if sequences else {"dynamic_shapes": shapes}
    artifact = build(_Paged(form), inputs, "paged", tmp_path, **dynamic)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any("mask_paged_decode" in name for name in kernels), kernels
    check(artifact, "paged", _Paged(form), inputs, dtype)
    table[-1, 3] = 40
    with pytest.raises(aotc.LibraryError, match="an index is out of bounds"):
        aotc.torch.load(artifact.path)(*inputs)


class _ByHand(torch.nn.Module):
    """`masked_fill` of scores, as in models that are older than PyTorch's attention."""

    def __init__(self, value: float, *, causal: bool) -> None:
        super().__init__()
        self.value, self.causal = value, causal

    def forward(self, q: Any, k: Any, v: Any, is_seen: Any) -> Any:
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.causal:
            later = torch.triu(torch.ones(scores.shape[-2:], dtype=torch.bool), 1)
            scores = scores.masked_fill(later, float("-inf"))
        scores = scores.masked_fill(is_seen == 0, self.value)
        return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize(
    ("value", "causal", "known"), [(float("-inf"), False, False), (-1e9, True, True)]
)
def test_scores_that_are_replaced(value: float, causal: bool, known: bool, tmp_path: Path) -> None:
    """Not added to: scores that are NaN have no effect where they are replaced, and a row that has
    but one finite number is the average of all."""
    torch.manual_seed(0)
    module = _ByHand(value, causal=causal)
    q, k, v = (torch.randn(2, 3, 70, 32) for _ in "qkv")
    k[1, :, 5] = torch.nan
    is_seen = (torch.rand(2, 1, 70, 70) > 0.3).int()
    is_seen[1, ..., 5] = 0
    is_seen[..., 0] = 1
    if value > -torch.inf:
        is_seen[0, 0, 9] = 0
    any_size = torch.export.Dim.AUTO
    of_rows, of_mask = {0: any_size, 2: any_size}, {0: any_size, 2: any_size, 3: any_size}
    shapes = {} if known else {"dynamic_shapes": (of_rows, of_rows, of_rows, of_mask)}
    artifact = build(module, (q, k, v, is_seen), "hidden", tmp_path, **shapes)
    kernels = [kernel.name for kernel in artifact.manifest.kernels]
    assert any("_select_cpu_" in name for name in kernels), kernels
    check(artifact, "hidden", module, (q, k, v, is_seen), torch.float32)
