"""The kernel for Hopper, as far as a machine without such a GPU can tell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attention import problems
from attention.evaluation import arguments, evaluate
from attention.problems import problem
from helpers.command import Outcome
from msgspec.structs import replace

from aotc.builder.numbers import Scalar
from aotc.kernels.attention.choice import choose
from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.attention.wgmma.family import WGMMA
from aotc.kernels.attention.wgmma.kernel import Kernel, Variant
from aotc.mlir import ir
from aotc.request import Chip

Aotc = Callable[..., Outcome]

MASK = Mask("memref<?x1x?x?xf16>", "f16", ("b/4", "0", "i", "j"), 2)
ALIGNED_MASK = Mask("memref<?x1x?x136xf16>", "f16", ("b/4", "0", "i", "j"), 16)


def chosen(p: Attention) -> list[Variant]:
    """Hopper's kernels for it."""
    choices = [one for one in choose(p, [Chip("sm_90a")]) if one.family is WGMMA]
    return [variant for choice in choices for variant in choice.variants]


def module(p: Attention, variant: Variant) -> str:
    return problems.module(WGMMA.function(p, variant, "kernel"), p)


@pytest.mark.parametrize(
    ("why", "p"),
    [
        ("f32 is not for these kernels", problem(element="f32", result="f32")),
        ("rows are not aligned", problem(head_dim=36)),
        ("columns are not known", problem(head_dim=None)),
        ("the largest score would be the least", problem(scale=-1.0)),
        ("O is no integer", problem(result="i32")),
        ("there is no room", problem(head_dim=512)),
    ],
)
def test_what_it_cannot_is_refused(why: str, p: Attention) -> None:
    assert chosen(p) == [], why


@pytest.mark.parametrize(
    "variant",
    [Variant(keys=100), Variant(keys=272), Variant(consumers=5), Variant(stages=1)],
)
def test_impossible_variants_are_refused(variant: Variant) -> None:
    assert WGMMA.can_implement(problem(), Variant())
    assert not WGMMA.can_implement(problem(), variant)


def test_tiles_are_chosen_by_their_number() -> None:
    """Few, and then smaller ones; of numbers that are not known, each size there is."""
    rows = {
        tokens: [variant.m for variant in chosen(problem(16, tokens, tokens))]
        for tokens in (512, 1024, 4096)
    }
    assert rows == {512: [64], 1024: [128], 4096: [256]}
    assert [variant.m for variant in chosen(problem())] == [256, 192, 128, 64]
    assert [variant.m for variant in chosen(problem(causal=True))] == [192, 128, 64]
    assert [variant.m for variant in chosen(problem(head_dim=80))] == [192, 128, 64]
    assert [variant.m for variant in chosen(problem(head_dim=128))] == [128, 64]


def test_tiles_of_keys_are_as_full_as_can_be() -> None:
    """If all rows see a known number of keys; one tile more costs as much as some keys."""
    found = [
        chosen(problem(512, 1024, count, columns))[0].keys
        for columns, count in ((40, 77), (40, 4096), (64, 49), (64, 8192), (128, 197), (160, 256))
    ]
    assert found == [80, 80, 64, 64, 112, 64]
    assert chosen(problem(512, 1024, 77, 40, causal=True))[0].keys == 128


PROBLEMS = {
    "40": problem(head_dim=40),
    "40, 77 keys": problem(64, 4096, 77, 40),
    "64": problem(),
    "64, causal": problem(causal=True),
    "80": problem(head_dim=80, element="bf16", result="f32"),
    "64, a mask": problem(mask=ALIGNED_MASK),
    "96": problem(head_dim=96),
    "96, a mask that threads read": problem(head_dim=96, mask=MASK),
    "128, a mask that replaces": problems.replacing(problem(head_dim=128, mask=ALIGNED_MASK)),
    "128, causal": problem(3, 100, 200, 128, causal=True),
    "96, causal, and a mask of f32": problem(
        head_dim=96, causal=True, mask=Mask("memref<?x136xf32>", "f32", ("i", "j"), 16)
    ),
    "128, a mask": problem(head_dim=128, mask=replace(ALIGNED_MASK, places=("0", "0", "0", "j"))),
    "256": problem(head_dim=256),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_text_is_a_module(name: str) -> None:
    variants = chosen(PROBLEMS[name])
    assert variants
    for variant in variants:
        with ir.Context(), ir.Location.unknown():
            ir.Module.parse(module(PROBLEMS[name], variant)).operation.verify()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("40", 0), ("40, 77 keys", 0), ("96", 0)),
        *(("64", 0), ("64, causal", 0), ("64, a mask", 0), ("96, a mask that threads read", 0)),
        *(("96, causal, and a mask of f32", 0), ("128, causal", -1), ("128, a mask", 0)),
        ("128, a mask that replaces", 0),
    ],
)
def test_sums_stay_in_registers(
    name: str, number: int, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """ptxas takes it with the registers that there are, without stack, and says nothing of
    products that wait for each other. There is no division while MMAs are under way, as for those
    of matrices."""
    p = PROBLEMS[name]
    variant = chosen(p)[number]
    path, out = mlir_file(module(p, variant)), tmp_path / "out"
    command = ("build", path, "--chip", "sm_90a", "--emit", "ptx,cubin", "-o", f"{out}/")
    assert "warning" not in aotc(*command).succeeded().stderr
    said = aotc("inspect", next(out.glob("*.cubin"))).succeeded().stdout
    registers, shared, stack = map(int, re.findall(r" [a-z]\w+ +(\d+) +(\d+) +(\d+)", said)[0])
    assert registers <= {4: 96, 3: 128, 2: 168, 1: 255}[variant.consumers]
    assert (shared, stack) == (1024, 0)
    # The second product's A is in registers, and its sums are as wide as V.
    ptx = next(out.glob("*.ptx")).read_text()
    # The first one's K is as many columns as there are, in whole steps.
    first = rf"m64n{variant.keys}k16\.f32\.f16\.f16 \{{[^}}]+\}}, %rd\d+, %rd\d+, p, "
    assert len(re.findall(first, ptx)) % -(-(p.head_dim or 0) // 16) == 0
    second = rf"m64n{p.head_dim}k16.f32.f16.f16 \{{[^}}]+\}}, \{{%r\d+, "
    assert len(re.findall(second, ptx)) >= variant.keys // 16
    under_way = re.findall(
        r"wgmma\.mma_async.*?wgmma\.wait_group\.sync\.aligned\s+0", ptx, re.DOTALL
    )
    assert under_way
    assert not any(re.search(r"\b(div|rem)\.[su]", text) for text in under_way)


@contextmanager
def kernel_of(p: Attention, variant: Variant) -> Iterator[tuple[Kernel, list[Scalar]]]:
    """One to build parts of, and some numbers (i32)."""
    with arguments([*p.arguments.values(), *["i32"] * 4]) as (b, values):
        yield Kernel(b, p, variant, values[:-4]), values[-4:]


def signed(number: int) -> int:
    """Of an i32."""
    return number - (number >> 31 << 32)


@pytest.mark.parametrize("consumers", [1, 2, 3])
@pytest.mark.parametrize("queries", [1, 64, 190, 1024])
@pytest.mark.parametrize("causal", [False, True])
def test_each_row_is_in_one_tile(consumers: int, queries: int, causal: bool) -> None:
    """Those of a warpgroup are all in front of a matrix, or none is; and what sees the most keys is
    first."""
    variant = Variant(consumers=consumers, group=2)
    down = -(-queries // variant.m)
    seen, firsts = [], []
    with kernel_of(problem(causal=causal), variant) as (kernel, numbers):
        number, kernel.batch, kernel.down, kernel.queries = numbers
        tile = kernel._tile(number)
        for i in range(3 * down):
            given = {number: i, kernel.batch: 3, kernel.down: down, kernel.queries: queries}
            assert tile.batch is not None
            first = signed(evaluate(tile.row, given))
            assert first % 64 == 0
            firsts.append(first)
            rows = range(max(first, 0), min(first + variant.m, queries))
            seen += [(evaluate(tile.batch, given), row) for row in rows]
    assert sorted(seen) == sorted(itertools.product(range(3), range(queries)))
    assert not causal or firsts[: 2 * down] == sorted(firsts[: 2 * down], reverse=True)


def test_tiles_of_k_are_where_they_are_copied() -> None:
    """The ring has K, K, V, K, V and so on."""
    with kernel_of(problem(), Variant()) as (kernel, numbers):
        j, kernel.count, *_ = numbers
        count = kernel._k_count(j)
        places = [evaluate(count, {kernel.count: 100, j: number}) for number in range(4)]
    assert places == [100, 101, 103, 105]
