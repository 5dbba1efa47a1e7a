"""The kernel by multiply-adds: its numbers on the CPU device, and what ptxas makes of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attention import problems
from attention.problems import problem
from attention.test_results import exact
from helpers.command import Outcome
from helpers.shared import made_once, shared_folder
from msgspec.structs import replace

import aotc as package
from aotc.builder.numbers import Float
from aotc.kernels.attention.choice import choose
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.attention.simt.family import SIMT, SIMT_ON_HOPPER
from aotc.kernels.attention.simt.softmax import Softmax
from aotc.kernels.attention.simt.tiles import Variant
from aotc.kernels.matmul.problem import Matrix
from aotc.request import Chip

Aotc = Callable[..., Outcome]

# Few threads, for a CPU that runs one after the other.
SMALL = Variant(warps=1, rows=4, lanes_per_row=8, keys=32, steps=1)
WIDE = Variant(warps=2, rows=4, lanes_per_row=16, keys=32, steps=2)
EIGHT = Variant(warps=1, rows=8, lanes_per_row=4, keys=16, steps=1)
MASK = Mask("memref<?x1x?x?xf32>", "f32", ("b/2", "0", "i", "j"))
SIZES = [(1, 1, 1), (2, 33, 65), (3, 70, 31), (1, 16, 32)]


def f32(
    batch: int | None = None,
    queries: int | None = None,
    keys: int | None = None,
    head_dim: int | None = 64,
    *,
    causal: bool = False,
    mask: Mask | None = None,
) -> Attention:
    p = problem(
        batch, queries, keys, head_dim, element="f32", result="f32", causal=causal, mask=mask
    )
    return replace(p, scale=(head_dim or 1) ** -0.5)


def unaligned(p: Attention) -> Attention:
    def of(matrix: Matrix) -> Matrix:
        return replace(matrix, alignment=4)

    return replace(p, q=of(p.q), k=of(p.k), v=of(p.v), o=of(p.o))


def in_rows(p: Attention, heads: int) -> Attention:
    """With heads beside each other in rows of Q, K, V and O."""
    assert p.head_dim is not None

    def of(matrix: Matrix) -> Matrix:
        width = heads * (p.head_dim or 0)
        type_ = f"memref<?x?x{width}xf32>"
        return replace(matrix, type=type_, sizes=(matrix.sizes[0], width), pitch=width)

    return replace(p, q=of(p.q), k=of(p.k), v=of(p.v), o=of(p.o), heads=(heads,) * 4)


CASES = {
    "whole": (f32(2, 32, 64, 16), SMALL),
    "16": (f32(head_dim=16), SMALL),
    "16_causal": (f32(head_dim=16, causal=True), SMALL),
    "24": (f32(head_dim=24, causal=True), EIGHT),
    "48_wide": (f32(head_dim=48), WIDE),
    "80_wide": (f32(head_dim=80, causal=True), replace(WIDE, steps=1)),
    "few_keys": (f32(head_dim=40), replace(EIGHT, warps=4, lanes_per_row=8, keys=8)),
    "unaligned": (unaligned(f32(head_dim=40, causal=True)), SMALL),
    "heads": (in_rows(f32(head_dim=16, causal=True), 3), SMALL),
    "mask": (f32(head_dim=16, mask=MASK), SMALL),
    "mask_zero": (replace(f32(head_dim=16, mask=MASK), masked_rows_are_zero=True), WIDE),
    "select": (problems.replacing(f32(head_dim=16, mask=MASK)), SMALL),
}


def _text(name: str) -> str:
    p, variant = CASES[name]
    assert SIMT.can_implement(p, variant), name
    module = problems.module(SIMT.function(p, variant, "kernel"), p)
    return module.replace("kernel", f"kernel_{name}").replace("@attention", f"@a_{name}")


def exp2(softmax: Softmax, power: Float) -> Float:
    found: Float = softmax.b.op("math.exp2", [power], "f32")
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> package.Library:
    """With exp2 as the CPU has it."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Softmax, "exp2", exp2)
            text = "\n".join(_text(name) for name in CASES)
        package.build(text, emit="shared", out=f"{folder}/", name="simt", chips=("sm_80",))

    folder = made_once(shared_folder(tmp_path_factory) / "attention_simt", make)
    loaded = package.load(folder / "lib" / "libsimt.so")
    loaded.set_device("cpu")
    return loaded


def _operands(batch: int, queries: int, keys: int, p: Attention) -> list[np.ndarray]:
    random = np.random.default_rng(batch + queries)
    heads = max(p.heads[0], 1)
    shapes = [(batch * heads, rows, p.head_dim) for rows in (queries, keys, keys)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_attention_is_right(
    library: package.Library, name: str, size: tuple[int, int, int]
) -> None:
    """As f64 has it, in an O of NaN, and every time the same."""
    p, _ = CASES[name]
    batch, queries, keys = (2, 32, 64) if name == "whole" else size
    q, k, v = _operands(batch, queries, keys, p)
    masks, mask = [], None
    if p.mask is not None:
        mask = (
            np.random.default_rng(4).standard_normal((batch, 1, queries, keys)).astype(np.float32)
        )
        if p.mask.replaces:
            mask[mask > -0.5] = 0
        mask[:, :, :, ::3] = -np.inf
        mask[:, :, 0] = np.finfo(np.float32).min
        if queries > 1:
            mask[:, :, 1] = -np.inf
        masks, mask = [mask], mask[np.arange(batch) // 2, 0]
    heads = p.heads[0]
    given = [_in_rows(one, heads) if heads else one for one in (q, k, v)]
    results = []
    for _ in range(2):
        result = np.full(given[0].shape, np.nan, np.float32)
        library[f"a_{name}"](*given, result, *masks)
        results.append(result)
    with np.errstate(invalid="ignore"):
        replaces = p.mask is not None and p.mask.replaces
        expected = exact(q, k, v, causal=p.causal, mask=mask, replaces=replaces)
    if p.masked_rows_are_zero:
        expected = np.nan_to_num(expected)
    if heads:
        expected = _in_rows(expected, heads)
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(results[0], results[1])


def _in_rows(matrices: np.ndarray, heads: int) -> np.ndarray:
    count, rows, columns = matrices.shape
    apart = matrices.reshape(count // heads, heads, rows, columns)
    return np.ascontiguousarray(apart.swapaxes(1, 2).reshape(-1, rows, heads * columns))


@pytest.mark.parametrize("name", ["whole", "16", "unaligned"])
def test_nothing_is_read_behind_the_end(library: package.Library, name: str) -> None:
    """Q, K and V end where nobody may read on."""
    p, _ = CASES[name]
    script = BEHIND.format(path=str(library.path), entry=f"a_{name}", head_dim=p.head_dim)
    subprocess.run([sys.executable, "-c", script], check=True)


# In a process of its own, for a wrong read ends that.
BEHIND = """
import ctypes, mmap
import numpy as np
import aotc

PAGE = mmap.PAGESIZE
kept = []

def at_the_end(rows):
    count = 2 * rows * {head_dim}
    size = -(-4 * count // PAGE) * PAGE
    pages = mmap.mmap(-1, size + PAGE)
    kept.append(pages)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + size), PAGE, 0) == 0
    array = np.frombuffer(pages, np.float32, count, size - 4 * count)
    array[:] = 1
    return array.reshape(2, rows, {head_dim})

library = aotc.load({path!r})
library.set_device("cpu")
result = np.zeros((2, 32, {head_dim}), np.float32)
library["{entry}"](at_the_end(32), at_the_end(64), at_the_end(64), result)
assert np.abs(result - 1).max() < 1e-6
"""


@pytest.mark.parametrize(
    ("why", "p"),
    [
        ("16 bits have tensor cores", problem()),
        ("columns are read 4 at once, and rows begin in different banks", f32(head_dim=36)),
        ("columns are not known", f32(head_dim=None)),
        ("the largest score would be the least", replace(f32(), scale=-1.0)),
        ("O is f32", problem(element="f32", result="f16")),
        ("there is no room", f32(head_dim=512)),
    ],
)
def test_what_it_cannot_is_refused(why: str, p: Attention) -> None:
    assert [one for one in choose(p, [Chip("sm_90a")]) if one.family is SIMT] == [], why


@pytest.mark.parametrize(
    "variant",
    [
        Variant(rows=6),
        Variant(lanes_per_row=32),
        Variant(keys=48),
        Variant(warps=3),
        Variant(steps=3),
    ],
)
def test_impossible_variants_are_refused(variant: Variant) -> None:
    possible = Variant(lanes_per_row=16)
    assert SIMT.can_implement(f32(), possible)
    assert not SIMT.can_implement(f32(), variant)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chip", ["sm_80", "sm_89", "sm_90a"])
@pytest.mark.parametrize(
    "p",
    [
        f32(),
        f32(causal=True),
        f32(head_dim=80, mask=MASK),
        f32(96, 1024, 1024, 64, causal=True),
        unaligned(f32(head_dim=128, causal=True)),
        f32(head_dim=256),
    ],
    ids=["any", "causal", "mask", "sizes", "unaligned", "256"],
)
def test_sums_stay_in_registers(
    p: Attention, chip: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """ptxas takes every variant with the registers that there are, and scores and sums are
    multiply-adds. (A few places that are used once in a block of keys may be on the stack, for the
    sake of another block of threads.)"""
    variants = SIMT.variants(p)
    assert variants
    if chip == "sm_90a":
        variants += SIMT_ON_HOPPER.variants(p)
    for number, variant in enumerate(variants):
        text = problems.module(SIMT.function(p, variant, "kernel"), p)
        out = tmp_path / f"out{number}"
        path = mlir_file(text)
        command = ("build", path, "--chip", chip, "--emit", "ptx,cubin", "-o", f"{out}/")
        assert "warning" not in aotc(*command).succeeded().stderr
        said = aotc("inspect", next(out.glob("*.cubin"))).succeeded().stdout
        registers, stack = map(int, re.findall(r" [a-z]\w+ +(\d+) +\d+ +(\d+)", said)[0])
        assert registers <= 255
        assert stack <= 128
        ptx = next(out.glob("*.ptx")).read_text()
        depth = p.head_dim or 0
        each = variant.rows * variant.thread_keys * 4 * variant.steps
        assert ptx.count("fma.rn.f32") >= each + variant.rows * depth // variant.lanes_per_row
