"""What was measured, read again: which kernels products get by it, and what of it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Outcome
from msgspec import to_builtins
from msgspec.structs import replace

import aotc as package
from aotc.errors import InputError
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.choice import candidates, choose
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.kernels.matmul.simt.family import SIMT
from aotc.kernels.matmul.tuned import (
    LARGE,
    SMALL,
    Entry,
    parse_tuned,
    problem_words,
    timed_sizes,
)
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.request import Chip
from aotc.tuning.candidates import label

Aotc = Callable[..., Outcome]
HOPPER, AMPERE = Chip("sm_90a"), Chip("sm_80")


def matrix(size: int | None, element: str = "f16") -> Matrix:
    shape = f"{size or '?'}x{size or '?'}"
    return Matrix(f"memref<{shape}x{element}>", element, (size, size), size, 16)


def square(size: int | None, element: str = "f16") -> Problem:
    accumulator = "f32" if element in ("f16", "bf16") else element
    return Problem(*(matrix(size, element) for _ in "abc"), accumulator)


def entry(problem: Problem, chip: Chip, size: int, family: Any, variant: Any) -> Entry:
    return Entry(
        chip=chip.name,
        problem=problem_words(problem),
        sizes=(size, size, size),
        kernel=family.name,
        variant=to_builtins(variant),
        microseconds=1.5,
        candidates=3,
        gpu="a GPU",
    )


def file_of(path: Path, *entries: Entry) -> Path:
    path.write_text(json.dumps({"format": 1, "products": to_builtins(entries)}))
    return path


# --- Choices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", [AMPERE, HOPPER], ids=str)
@pytest.mark.parametrize("size", [128, 1024])
def test_each_candidate_has_a_label_of_its_own(size: int, chip: Chip) -> None:
    """Also those that only split-K or the arrangement of warps tells apart."""
    wide = Matrix(f"memref<{size}x8192xf16>", "f16", (size, 8192), 8192, 16)
    tall = Matrix(f"memref<8192x{size}xf16>", "f16", (8192, size), size, 16)
    problem = Problem(wide, tall, matrix(size), "f32")
    labels = [label(kernel) for kernel in candidates(problem, chip, timed_sizes(problem)[0])]
    assert len(labels) > 1
    assert [one for one in labels if labels.count(one) > 1] == []


def test_what_was_measured_is_chosen() -> None:
    problem = square(1024)
    slowest = WGMMA.variants(problem)[-1]
    measured = [entry(problem, HOPPER, 1024, WGMMA, slowest)]
    first, second, *_ = choose(problem, [HOPPER, AMPERE], measured)
    assert (first.family, first.variant, first.target) == (WGMMA, slowest, "sm_90a")
    assert first.entry == measured[0]
    assert (second.family, second.target, second.entry) == (MMA_SYNC, ANY_GPU, None)
    assert choose(problem, [HOPPER, AMPERE])[0].variant != slowest


def test_another_family_may_be_the_fastest() -> None:
    problem = square(1024)
    variant = MMA_SYNC.variants(problem)[3]
    measured = [entry(problem, HOPPER, 1024, MMA_SYNC, variant)]
    first = choose(problem, [Chip("sm_90")], measured)[0]
    assert (first.family, first.variant, first.target) == (MMA_SYNC, variant, "sm_90a")


def test_a_chip_without_kernels_of_its_own_gets_one() -> None:
    problem = square(1024, "f32")
    variant = SIMT.variants(problem)[4]
    measured = [entry(problem, AMPERE, 1024, SIMT, variant)]
    choices = choose(problem, [AMPERE, Chip("sm_86")], measured)
    assert [one.target for one in choices] == ["sm_80", ANY_GPU, ANY_GPU]
    assert choices[0].variant == variant


def test_what_was_measured_on_other_chips_makes_no_difference() -> None:
    problem = square(1024)
    measured = [entry(problem, HOPPER, 1024, WGMMA, WGMMA.variants(problem)[-1])]
    assert choose(problem, [AMPERE], measured) == choose(problem, [AMPERE])


def test_of_unknown_sizes_large_ones_and_small_ones_are_measured() -> None:
    problem = square(None)
    assert timed_sizes(problem) == [(LARGE,) * 3, (SMALL,) * 3]
    large, small = MMA_SYNC.variants(problem)[3:5]
    both = [
        entry(problem, AMPERE, SMALL, MMA_SYNC, small),
        entry(problem, AMPERE, LARGE, MMA_SYNC, large),
    ]
    # The kernel for few tiles is not timed.
    found = [one for one in choose(problem, [AMPERE], both) if not one.most_tiles]
    assert [one.variant for one in found[:2]] == [large, small]
    assert found[0].least_tiles > 0 == found[1].least_tiles
    # What is said of the other one alone leaves this one as it is.
    expected = MMA_SYNC.variants(problem)[0]
    found = [one for one in choose(problem, [AMPERE], both[:1]) if not one.most_tiles]
    assert [one.variant for one in found[:2]] == [expected, small]


def test_where_the_program_chooses_itself_nothing_is_measured() -> None:
    problem = square(None)
    assert candidates(problem, HOPPER, (LARGE,) * 3) == []
    measured = [entry(problem, HOPPER, LARGE, WGMMA, WGMMA.variants(problem)[-1])]
    assert choose(problem, [HOPPER], measured) == choose(problem, [HOPPER])


@pytest.mark.parametrize(
    ("problem", "chip"),
    [
        (square(1024), HOPPER),
        (square(None), AMPERE),
        (square(None, "f32"), HOPPER),
        (square(768, "f64"), AMPERE),
        (square(1024, "f32"), Chip("sm_120")),
    ],
)
def test_candidates_begin_with_the_models_choice(problem: Problem, chip: Chip) -> None:
    for sizes in timed_sizes(problem):
        found = candidates(problem, chip, sizes)
        chosen = next(one for one in choose(problem, [chip]) if one.sizes == sizes)
        assert (found[0].family, found[0].variant) == (chosen.family, chosen.variant)
        assert len({(one.family.name, one.variant) for one in found}) == len(found) > 1
        assert all(one.family.can_implement(problem, one.variant) for one in found)
        assert {one.target for one in found} == {chip.name}


# --- The key -----------------------------------------------------------------------------------


def test_all_that_kernels_depend_on_is_in_the_key() -> None:
    """Of a problem with one more field the words must tell that, too. (`exact_accumulation` follows
    from what is allowed; what is done with sums, `epilogue_operands`, is not told apart.)"""
    assert Problem.__struct_fields__ == (
        *("a", "b", "c", "accumulator", "adds", "batched", "allow_tf32", "allow_3xtf32"),
        *("exact_accumulation", "epilogue_operands"),
    )
    assert Matrix.__struct_fields__ == (
        *("type", "element", "sizes", "pitch", "alignment", "transposed", "unsigned"),
    )
    problem = square(64)
    a = problem.a
    others = [
        problem,
        replace(problem, a=replace(a, element="bf16")),
        replace(problem, a=replace(a, sizes=(64, 32))),
        replace(problem, a=replace(a, pitch=128)),
        replace(problem, a=replace(a, pitch=None)),
        replace(problem, a=replace(a, alignment=8)),
        replace(problem, a=replace(a, transposed=True)),
        replace(problem, a=replace(a, unsigned=True)),
        replace(problem, b=replace(problem.b, unsigned=True)),
        replace(problem, accumulator="f16"),
        replace(problem, adds=True),
        replace(problem, batched=True),
        replace(problem, allow_tf32=True),
        square(None),
    ]
    assert len({problem_words(one) for one in others}) == len(others)


def test_the_key_is_read_by_people() -> None:
    assert problem_words(square(64)) == ("f16 nn 64x64x64 -> f16, sums f32, rows at 16/16/16 bytes")


# --- The file ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing", "Expecting value"),
        ("[]", "it has no 'format'"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"format": 2, "products": []}', "its format is 2, and this aotc knows 1"),
        ('{"format": 1}', "missing required field `products`"),
        ('{"format": 1, "products": [{"chip": "sm_90a"}]}', "missing required field `problem`"),
        ('{"format": 1, "products": [{"chip": "hopper"}]}', "Expected `str` matching regex"),
    ],
)
def test_another_file_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match="'x' is not what aotc tune writes: ") as caught:
        parse_tuned(text, "'x'")
    assert reason in caught.value.message


MATMUL = """
func.func @product(%A: memref<256x256xf16>, %B: memref<256x256xf16>, %C: memref<256x256xf16>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%C : memref<256x256xf16>)
  linalg.matmul ins(%A, %B : memref<256x256xf16>, memref<256x256xf16>)
      outs(%C : memref<256x256xf16>)
  return
}
"""
QUICK = ("--chip", "sm_90a", "--emit", "mlir", "--no-cpu-kernels")


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a file that says the model's last choice to be the fastest, with changes."""
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(MATMUL)

    def write(**changes: Any) -> Path:
        problem = square(256)
        last = entry(problem, HOPPER, 256, WGMMA, WGMMA.variants(problem)[-1])
        return file_of(tmp_path / "tune.json", replace(last, **changes))

    return write


def test_a_build_takes_what_was_measured(aotc: Aotc, measured: Callable[..., Path]) -> None:
    said = aotc("build", "in.mlir", *QUICK, "--explain", "--tuned", measured(), "-o", "a.mlir")
    assert said.code == 0, said.stderr
    last = WGMMA.variants(square(256))[-1]
    assert f"1. wgmma with tiles of {last.m}x{last.n} on sm_90a, " in said.stdout
    assert "bytes; the fastest of 3 on a GPU (1.5 us at 256x256x256); expected: 0." in said.stdout
    aotc("build", "in.mlir", *QUICK, "-o", "b.mlir").succeeded()
    assert Path("a.mlir").read_text() != Path("b.mlir").read_text()


def test_the_function_takes_it_too(measured: Callable[..., Path]) -> None:
    def text(**options: Any) -> str:
        artifact = package.build(
            "in.mlir", emit="mlir", out="x.mlir", chips="sm_90a", cache=False, **options
        )
        return artifact.path.read_text()

    assert text(tuned=measured()) != text()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kernel": "magic"}, "there is no kernel 'magic'"),
        ({"variant": {"n": 64}}, "'wgmma' has parameters n, consumers"),
        (
            {"variant": {**to_builtins(WGMMA.variant_type()), "n": "wide"}},
            "Expected `int`, got `str`",
        ),
        (
            {"variant": {**to_builtins(WGMMA.variant_type()), "n": 24}},
            "cannot take it",
        ),
        (  # no kernel that would be timed
            {"variant": {**to_builtins(WGMMA.variants(square(256))[-1]), "blocks": 10**9}},
            "cannot take it",
        ),
    ],
)
def test_what_is_stale_is_left_out_with_a_warning(
    changes: dict[str, Any], reason: str, aotc: Aotc, measured: Callable[..., Path]
) -> None:
    file = measured(**changes)
    done = aotc("build", "in.mlir", *QUICK, "--tuned", file, "-o", "a.mlir").succeeded()
    assert "in.mlir:6:3: warning: what was measured on a GPU is left out: " in done.stderr
    assert reason in done.stderr
    assert "[-Wstale-tuning]" in done.stderr
    aotc("build", "in.mlir", *QUICK, "-o", "b.mlir").succeeded()
    assert Path("a.mlir").read_text() == Path("b.mlir").read_text()
    options = ("--tuned", file, "-Werror=stale-tuning", "-o", "c.mlir")
    assert aotc("build", "in.mlir", *QUICK, *options).code == 2


@pytest.mark.parametrize(
    "changes", [{"chip": "sm_80"}, {"problem": "another"}, {"sizes": (1, 2, 3)}]
)
def test_what_is_of_others_makes_no_difference(
    changes: dict[str, Any], aotc: Aotc, measured: Callable[..., Path]
) -> None:
    done = aotc("build", "in.mlir", *QUICK, "--tuned", measured(**changes), "-o", "a.mlir")
    assert (done.code, done.stderr) == (0, "")
    aotc("build", "in.mlir", *QUICK, "-o", "b.mlir").succeeded()
    assert Path("a.mlir").read_text() == Path("b.mlir").read_text()


def test_the_cache_tells_files_apart(
    aotc: Aotc, measured: Callable[..., Path], tmp_path: Path
) -> None:
    """By what is in them: a build with another one, or with none, is another build."""

    def build(*words: str | Path) -> tuple[str, str]:
        options = (*QUICK, "--cache", tmp_path / "cache", "--explain-cache", "-o", "a.mlir")
        said = aotc("build", "in.mlir", *options, *words).succeeded().stderr
        return Path("a.mlir").read_text(), said

    plain, _ = build()
    other, said = build("--tuned", measured())
    assert other != plain
    assert "tuned" in said
    again, said = build("--tuned", measured())
    assert (again, "found" in said) == (other, True)
    assert build("--tuned", measured(chip="sm_80"))[0] == plain
    assert build()[0] == plain


def test_a_depfile_names_it(aotc: Aotc, measured: Callable[..., Path]) -> None:
    measured()
    aotc("build", "in.mlir", *QUICK, "--tuned", "tune.json", "-MD", "-o", "a.mlir").succeeded()
    assert Path("a.d").read_text().split()[1:4:2] == ["in.mlir", "tune.json"]


def test_a_project_names_it(aotc: Aotc, measured: Callable[..., Path]) -> None:
    measured()
    Path("aotc.toml").write_text(
        '[target.one]\ninputs = "in.mlir"\ntuned = "tune.json"\nemit = "mlir"\n'
        'chips = "sm_90a"\nout = "out/"\ncpu_kernels = false\n'
    )
    aotc("build", "-MD").succeeded()
    aotc("build", "in.mlir", *QUICK, "--tuned", "tune.json", "-o", "a.mlir").succeeded()
    (made,) = Path("out").glob("*.mlir")
    assert made.read_text() == Path("a.mlir").read_text()
    assert "tune.json" in Path("out/in.d").read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--tuned", "missing"), "Cannot read 'missing' of --tuned: No such file or directory."),
        (("--tuned", "in.mlir"), "'in.mlir' is not what aotc tune writes: Expecting value"),
    ],
)
def test_what_cannot_be_read_is_an_error(
    words: tuple[str, ...], reason: str, aotc: Aotc, measured: Callable[..., Path]
) -> None:
    done = aotc("build", "in.mlir", *QUICK, *words, "-o", "a.mlir")
    assert done.code == 2
    assert reason in done.stderr
