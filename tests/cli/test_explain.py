"""--explain: the input's levels, the pipeline as --pipeline takes it back, the decisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

from aotc.errors import InputError
from aotc.lower.passes.map_parallel_loops import MapParallelLoops
from aotc.lower.passes.place_memory import PlaceMemory
from aotc.lower.plan.pipeline import parse_plan, plan_for, plan_text
from aotc.request import MemoryMode

Aotc = Callable[..., Outcome]

LOOP = """\
func.func @double(%x: memref<8xf32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 8 {
    %a = affine.load %x[%i] : memref<8xf32>
    %b = arith.addf %a, %a : f32
    affine.store %b, %x[%i] : memref<8xf32>
  }
  return
}
"""


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "loop.mlir"
    path.write_text(LOOP)
    return path


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.mlir")), ids=lambda path: path.stem)
def test_explained_pipeline_makes_the_same_module(aotc: Aotc, sample: Path, tmp_path: Path) -> None:
    chip = ["--chip", "sm_90a"]
    made, again, plan = tmp_path / "made.mlir", tmp_path / "again.mlir", tmp_path / "plan"
    explained = aotc("build", sample, "--emit", "mlir", "--explain", "-o", made, *chip).succeeded()
    plan.write_text(explained.stdout)
    aotc(
        "build", sample, "--emit", "mlir", "--pipeline", f"@{plan}", "-o", again, *chip
    ).succeeded()
    assert again.read_text() == made.read_text()


def test_explanation_names_levels_steps_and_decisions(
    aotc: Aotc, loop: Path, tmp_path: Path
) -> None:
    done = aotc("build", loop, "--emit", "mlir", "--explain", "-o", tmp_path / "out").succeeded()
    lines = done.stdout.splitlines()
    assert lines[0] == f"// {loop} has affine loops (affine.for at {loop}:2:3)."
    assert "  aotc-parallelize-loops," in lines
    assert any(line.startswith(f"//   {loop}:2:3: a kernel with blocks of ") for line in lines)


def test_explanation_of_text_on_stdout_is_on_stderr(aotc: Aotc, loop: Path) -> None:
    done = aotc("build", loop, "--emit", "mlir", "--explain", "-o", "-").succeeded()
    assert done.stdout.startswith("module attributes {gpu.container_module} {")
    assert "builtin.module(" in done.stderr


def test_failed_build_is_explained_as_far_as_it_came(
    aotc: Aotc, loop: Path, tmp_path: Path
) -> None:
    broken = "builtin.module(canonicalize,aotc-map-parallel-loops{block=64},no-such-pass)"
    done = aotc("build", loop, "--explain", "--pipeline", broken, "-o", tmp_path / "out")
    assert done.code == 2
    assert "'no-such-pass' does not refer to a registered pass" in done.stderr
    assert "  aotc-map-parallel-loops{block=64}," in done.stdout


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("tosa", 'func.func @g() {\n  %0 = "tosa.const"() '
         "<{values = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>\n  return\n}"),
        ("tensors", "func.func @g() {\n  %0 = tensor.empty() : tensor<2xf32>\n  return\n}"),
        ("scf loops", "func.func @g(%n: index) {\n"
         "  scf.forall (%i) in (%n) {\n  }\n  return\n}"),
        ("vectors", "func.func @g() {\n"
         "  %x = arith.constant dense<1.0> : vector<2xf32>\n"
         "  %0 = vector.reduction <add>, %x : vector<2xf32> into f32\n  return\n}"),
        ("gpu.launch", "func.func @g(%n: index) {\n  gpu.launch blocks(%a, %b, %c) in "
         "(%d = %n, %e = %n, %f = %n) threads(%g, %h, %i) in (%j = %n, %k = %n, %l = %n) {\n"
         "    gpu.terminator\n  }\n  return\n}"),
        ("gpu.module", "gpu.module @k {\n  gpu.func @f() kernel {\n    gpu.return\n  }\n}\n"
         "func.func @g() {\n  return\n}"),
        ("nvgpu and nvvm", "gpu.module @k {\n  gpu.func @f() kernel {\n    nvvm.barrier\n"
         "    gpu.return\n  }\n}\nfunc.func @g() {\n  return\n}"),
        ("a transform schedule", "module attributes {transform.with_named_sequence} {\n"
         "func.func @g() {\n  return\n}\n"
         "transform.named_sequence @__transform_main(%m: !transform.any_op "
         "{transform.readonly}) {\n  transform.yield\n}\n}"),
        ("functions alone", "func.func @g() {\n  return\n}"),
    ],
    ids=lambda value: None if "\n" in value else value.replace(" ", "-"),
)  # fmt: skip
def test_levels_are_recognised(aotc: Aotc, level: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(text)
    done = aotc("build", path, "--emit", "mlir", "--explain", "--entry", "g",
                "-o", tmp_path / "out")  # fmt: skip
    assert f" {level}" in done.stdout.splitlines()[0]


def test_own_passes_stand_among_others_in_a_pipeline(
    aotc: Aotc, loop: Path, tmp_path: Path
) -> None:
    passes = (
        "builtin.module(aotc-parallelize-loops, func.func(lower-affine), // loops\n"
        "aotc-map-parallel-loops{block=64}, gpu-kernel-outlining)"
    )
    done = aotc("build", loop, "--emit", "mlir", "--pipeline", passes, "-o", "-").succeeded()
    assert "known_block_size = array<i32: 64, 1, 1>" in done.stdout


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "aotc-nonsense",
            "Unknown pass 'aotc-nonsense'. aotc's own are: aotc-assert-shared-memory,",
        ),
        ("aotc-place-memroy", "Unknown pass 'aotc-place-memroy'. Near names: aotc-place-memory"),
        (
            "func.func(canonicalize),aotc-join-matmuls",
            "The pass 'aotc-join-matmuls' is now called 'aotc-fuse-horizontal-matmuls'.",
        ),
        (
            "canonicalize,aotc-map-parallel-loops{size=3}",
            "Unknown option 'size' of aotc-map-parallel-loops. Known: block.",
        ),
        ("aotc-place-memory{memory=far}", "memory=far is none of auto, explicit, managed."),
        ("aotc-map-parallel-loops{block=2000}", "--block 2000: along x a block has 1 to 1024"),
    ],
)
def test_wrong_own_passes(aotc: Aotc, loop: Path, pipeline: str, message: str) -> None:
    done = aotc("build", loop, "--emit", "mlir", "-o", "-", "--pipeline",
                f"builtin.module({pipeline})")  # fmt: skip
    assert done.code == 2
    assert message in done.stderr


def test_missing_pipeline_file(aotc: Aotc, loop: Path) -> None:
    done = aotc("build", loop, "--pipeline", "@/nowhere/plan")
    assert (done.code, done.stderr) == (
        2,
        "aotc: error: Cannot read the pipeline '/nowhere/plan': No such file or directory.\n",
    )


def test_plan_is_read_back_as_it_was() -> None:
    from aotc.lower.plan.levels import Level

    passes = plan_for(Level, block=(32, 8), memory=MemoryMode.MANAGED)
    text = plan_text(passes)
    read = parse_plan(text)
    assert [one.text for one in read] == [one.text for one in passes]
    assert MapParallelLoops(block=(32, 8)) in read
    assert "aotc-map-parallel-loops{block=32x8}," in text
    assert read[-1] == PlaceMemory(memory=MemoryMode.MANAGED)


def test_pipeline_without_its_frame_is_refused() -> None:
    with pytest.raises(InputError, match=r"expects 'builtin.module"):
        parse_plan("canonicalize")
