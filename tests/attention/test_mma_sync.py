"""The kernel by mma.sync: on the CPU device against NumPy's f64, and what ptxas makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention import problems
from attention.test_results import exact
from attention.test_wgmma import MASK, problem
from helpers.command import Outcome
from msgspec.structs import replace

import aotc as aotc_
from aotc.builder.numbers import Float, Scalar
from aotc.kernels.attention.choice import choose
from aotc.kernels.attention.mma_sync.family import MMA_SYNC
from aotc.kernels.attention.mma_sync.tiles import Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.softmax import Softmax
from aotc.request import Chip

Aotc = Callable[..., Outcome]

DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
# Of one block of keys and less, of some, and of rows that end with a tile and that do not.
SIZES = ((1, 1, 1), (3, 33, 70), (1, 130, 72), (0, 4, 4), (2, 0, 5))


def unaligned(p: Attention) -> Attention:
    q, k, v, o = (replace(one, alignment=2) for one in (p.q, p.k, p.v, p.o))
    return replace(p, q=q, k=k, v=v, o=o)


def module(p: Attention, variant: Variant) -> str:
    return problems.module(MMA_SYNC.function(p, variant, "kernel"), p)


@pytest.fixture
def without_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU device has no PTX: what the kernel has of it, as operations."""

    def exp2(softmax: Softmax, power: Float) -> Float:
        found: Float = softmax.b.op("math.exp2", [power], "f32")
        return found

    def pack_two(softmax: Softmax, low: Float, high: Float) -> Scalar:
        b, element = softmax.b, softmax.element
        both = b.from_elements(
            [b.convert(one, element) for one in (low, high)], f"vector<2x{element}>"
        )
        found: Scalar = b.op("llvm.bitcast", [both], "i32")
        return found

    monkeypatch.setattr(Softmax, "exp2", exp2)
    monkeypatch.setattr(Softmax, "pack_two", pack_two)


def check(p: Attention, variant: Variant, folder: Path, sizes: tuple[int, int, int]) -> None:
    batch, queries, keys = sizes
    random = np.random.default_rng(sizes)
    shapes = [(batch, rows, p.head_dim) for rows in (queries, keys, keys)]
    q, k, v = (random.standard_normal(shape).astype(DTYPES[p.q.element]) for shape in shapes)
    result = np.full(q.shape, np.nan, DTYPES[p.o.element])
    masks = []
    if p.mask is not None:
        masks = [random.standard_normal((-(-batch // 4), 1, queries, keys)).astype(np.float16)]
        if p.mask.replaces:
            masks[0][masks[0] > -0.5] = 0
        masks[0][..., 1::3] = -np.inf
    library = aotc_.load(folder / "lib" / "libattention.so")
    library.attention(q, k, v, result, *masks)
    if not result.size:
        return
    added = None if p.mask is None else np.repeat(masks[0][:, 0], 4, 0)[:batch].astype(float)
    replaces = p.mask is not None and p.mask.replaces
    expected = exact(q, k, v, causal=p.causal, mask=added, replaces=replaces)
    bound = 2e-2 if p.q.element == "bf16" else 4e-3
    np.testing.assert_allclose(result.astype(float), expected, rtol=0, atol=bound)


# Of each kind of element, of columns, and of variant some: small ones, which are built sooner.
SMALL = Variant(warps=2, tiles=1, keys=16)
RUN = {
    "64": (problem(), replace(SMALL, keys=32)),
    "64, causal, two tiles": (problem(causal=True), replace(SMALL, tiles=2, group=2)),
    "64, Q in registers": (problem(causal=True), replace(SMALL, warps=4, holds_q=True)),
    "64, not aligned": (unaligned(problem()), SMALL),
    "16, bf16": (
        problem(head_dim=16, element="bf16", result="bf16", scale=0.25),
        replace(SMALL, tiles=2),
    ),
    "40, causal": (
        problem(head_dim=40, causal=True, scale=40**-0.5),
        replace(SMALL, holds_q=True),
    ),
    "48, f32": (problem(head_dim=48, result="f32", scale=48**-0.5), SMALL),
    "72, a causal mask": (problem(head_dim=72, mask=MASK, causal=True, scale=72**-0.5), SMALL),
    "80, a mask": (problem(head_dim=80, mask=MASK, scale=80**-0.5), SMALL),
    "36, Q in registers": (problem(head_dim=36, scale=36**-0.5), replace(SMALL, holds_q=True)),
    "60, causal, two tiles, f32": (
        problem(head_dim=60, causal=True, result="f32", scale=60**-0.5),
        replace(SMALL, tiles=2, group=2),
    ),
    "20, a mask": (problem(head_dim=20, mask=MASK, scale=20**-0.5), SMALL),
    "44, not aligned": (unaligned(problem(head_dim=44, scale=44**-0.5)), SMALL),
    "64, a mask that replaces": (problems.replacing(problem(mask=MASK)), SMALL),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RUN)
@pytest.mark.usefixtures("without_ptx")
def test_results_are_right(name: str, tmp_path: Path) -> None:
    p, variant = RUN[name]
    assert MMA_SYNC.can_implement(p, variant)
    text = module(p, variant)
    assert "inline_asm" not in text
    aotc_.build(text, name="attention", emit="shared", chips=("sm_80",), out=f"{tmp_path}/")
    for sizes in SIZES:
        check(p, variant, tmp_path, sizes)


@pytest.mark.parametrize(
    ("why", "p"),
    [
        ("f32 is not for these kernels", problem(element="f32", result="f32")),
        ("a row is of whole chunks", problem(head_dim=38)),
        ("columns are not known", problem(head_dim=None)),
        ("the largest score would be the least", problem(scale=-1.0)),
        ("O is no integer", problem(result="i32")),
        ("there are too few registers", problem(head_dim=512)),
    ],
)
def test_what_it_cannot_is_refused(why: str, p: Attention) -> None:
    assert MMA_SYNC.variants(p) == (), why


@pytest.mark.parametrize(
    "variant", [Variant(keys=40), Variant(keys=256), Variant(tiles=4, warps=8)]
)
def test_impossible_variants_are_refused(variant: Variant) -> None:
    assert MMA_SYNC.can_implement(problem(head_dim=128), Variant())
    assert not MMA_SYNC.can_implement(problem(head_dim=128), variant)


@pytest.mark.parametrize(
    ("chips", "said"),
    [
        (("sm_80",), ["mma.sync, 16", "mma.sync, 2"]),
        (("sm_90a",), ["wgmma, 16", "mma.sync, 2"]),
        (("sm_80", "sm_90a"), ["wgmma, 16", "mma.sync, 16", "mma.sync, 2"]),
        (("sm_75", "sm_90a"), ["wgmma, 16"]),
        (("sm_75",), []),
    ],
)
def test_chips_of_the_build_have_their_kernels(chips: tuple[str, ...], said: list[str]) -> None:
    """And all of them one for matrices at any address."""
    choices = choose(problem(), [Chip(name) for name in chips])
    assert [f"{one.family.name}, {one.problem.q.alignment}" for one in choices] == said


FITTING = {
    "64": problem(),
    "64, causal, a mask": problem(causal=True, mask=MASK),
    "96": problem(head_dim=96),
    "128": problem(head_dim=128),
    "128, causal": problem(3, 100, 200, 128, causal=True),
    "128, a mask": problem(head_dim=128, mask=MASK),
    "128, not aligned": unaligned(problem(head_dim=128)),
    "256, causal": problem(head_dim=256, causal=True),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("chip", ["sm_80", "sm_89"])
@pytest.mark.parametrize("name", FITTING)
def test_sums_stay_in_registers(
    name: str, chip: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """ptxas takes every kernel of the menu without a stack."""
    for number, variant in enumerate(MMA_SYNC.variants(FITTING[name])):
        path = mlir_file(module(FITTING[name], variant), name=f"kernel_{number}.mlir")
        out = tmp_path / f"out{number}"
        aotc("build", path, "--chip", chip, "--emit", "cubin", "-o", f"{out}/").succeeded()
        said = aotc("inspect", next(out.glob("*.cubin"))).succeeded().stdout
        _, shared, stack = map(int, re.findall(r" [a-z]\w+ +(\d+) +(\d+) +(\d+)", said)[0])
        assert (shared, stack) == (0, 0)
