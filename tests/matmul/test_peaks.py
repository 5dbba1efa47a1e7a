"""What part of a chip's peak is expected of kernels, and how `--explain` says it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aotc.chips import GPUS, gpu_of
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.explanation import reasons
from aotc.kernels.matmul.peaks import kind_of, peak_of
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.request import DEFAULT_CHIPS, KNOWN_CHIPS, Chip


def square(size: int | None, element: str) -> Problem:
    type_ = f"memref<{size or '?'}x{size or '?'}x{element}>"
    result = {"i8": "i32"}.get(element, element)
    a, c = (Matrix(type_, one, (size, size), size, 16) for one in (element, result))
    return Problem(a, a, c, {"f16": "f32", "bf16": "f32"}.get(result, result))


@pytest.mark.parametrize("capability", GPUS)
def test_the_figures_of_a_gpu_are_of_one_another(capability: int) -> None:
    """What is done in a second is what is done in a clock, at a clock that GPUs have: the same for
    all types, but for the H100's, whose tensor cores of few bits have a slower one."""
    gpu = GPUS[capability]
    clocks = {
        kind: peak.teraflops * 1e12 / 2 / peak.multiply_adds / gpu.multiprocessors
        for kind, peak in gpu.peaks.items()
    }
    assert all(1.3e9 < clock < 2.7e9 for clock in clocks.values()), clocks
    assert max(clocks.values()) / min(clocks.values()) < 1.1, clocks


def test_every_chip_has_a_gpu() -> None:
    chips = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
    assert {name: gpu_of(Chip(name).capability).name for name in chips} == {
        "sm_80": "A100",
        "sm_86": "A40",
        "sm_89": "L40S",
        "sm_90": "H100 SXM",
        "sm_100": "B200",
        "sm_120": "RTX PRO 6000",
    }
    assert all(gpu_of(Chip(name).capability) for name in KNOWN_CHIPS)
    assert gpu_of(121).name == "RTX PRO 6000"
    assert gpu_of(87).name == "A40"


def test_f32_has_the_peak_that_it_may_use() -> None:
    problem = square(1024, "f32")
    assert kind_of(problem) == "f32"
    assert peak_of(replace(problem, allow_tf32=True), Chip("sm_80")).teraflops == 156


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64", "i8"])
@pytest.mark.parametrize("chip", DEFAULT_CHIPS)
def test_no_kernel_is_expected_to_be_faster_than_the_chip(element: str, chip: str) -> None:
    parts = []
    for size in (64, 512, 4096):
        choice = choose(square(size, element), [Chip(chip)])[0]
        part = choice.expected_fraction(Chip(chip))
        assert part is not None
        assert 0 < part <= 1
        parts.append(part)
    assert parts == sorted(parts)


def test_explanation() -> None:
    problem, chips = square(4096, "f16"), [Chip("sm_90a"), Chip("sm_80")]
    first, second, third = reasons(choose(problem, chips), chips)
    assert first.startswith("  1. wgmma with tiles of ")
    assert "on sm_90a, rows at multiples of 16 bytes; of " in first
    assert " the fewest clocks; expected: 0." in first
    assert first.endswith(" of sm_90a's peak of f16 (989 TFLOP/s)")
    assert "sm_90a" not in second
    assert second.endswith(" of sm_80's peak of f16 (312 TFLOP/s)")
    assert ", any address; " in third


def test_explanation_of_unknown_sizes_says_for_which() -> None:
    problem, chips = square(None, "i8"), [Chip("sm_80"), Chip("sm_86")]
    large, few, small, *_ = reasons(choose(problem, chips), chips)
    assert "on GPUs, 100 tiles and more, rows at " in large
    assert "; expected at 4096x4096x4096: 0." in large
    assert "on GPUs, up to 132 tiles, or 64 rows, K of 256 and more, rows at " in few
    assert "; expected at 1024x1024x1024: 0." in small
    assert " of sm_80's peak of i8 (624 TOP/s), 0." in small
    assert small.endswith(" of sm_86 (299.3)")


def test_where_the_program_chooses_it_is_said_for_large_sizes_and_small_ones() -> None:
    problem, chips = square(None, "f16"), [Chip("sm_90a")]
    lines = list(reasons(choose(problem, chips), chips))
    [first] = [line for line in lines if "; the program chooses among " in line]
    assert "; expected at 4096x4096x4096: 0." in first
    assert "; expected at 1024x1024x1024: 0." in first


def test_a_chip_with_few_multiprocessors_gets_other_tiles() -> None:
    """The number of multiprocessors is the chip's own."""
    problem = square(1536, "f16")
    tiles = {
        chip: choose(problem, [Chip(chip)])[0].variant
        for chip in ("sm_80", "sm_86", "sm_89", "sm_120")
    }
    assert len(set(tiles.values())) > 1
