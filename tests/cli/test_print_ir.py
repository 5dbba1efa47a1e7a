"""--print-ir-before, --print-ir-after, --print-ir-dir: the module around passes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome
from helpers.filecheck import filecheck

from aotc.mlir import make_context
from aotc.request import BuildRequest, PrintIr
from aotc.stages.print_ir import IrPrinter

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "vector_add.mlir"
EMITTED = ("--emit", "mlir,device-mlir,cpu-mlir,host-mlir", "--chip", "sm_90")
# Tensors, with results to free, and powers and rounding to bf16, for which passes add functions.
TENSORS = """\
func.func @f(%x: tensor<?x8xf32>, %n: tensor<?xi32>) -> (tensor<?x8xbf16>, tensor<?xi32>)
    attributes {llvm.emit_c_interface} {
  %r = math.rsqrt %x : tensor<?x8xf32>
  %s = arith.addf %r, %x : tensor<?x8xf32>
  %b = arith.truncf %s : tensor<?x8xf32> to tensor<?x8xbf16>
  %p = math.ipowi %n, %n : tensor<?xi32>
  return %b, %p : tensor<?x8xbf16>, tensor<?xi32>
}
"""


@pytest.mark.parametrize("name", ["vector_add", "tensors"])
def test_artifacts_are_as_without(aotc: Aotc, name: str, tmp_path: Path) -> None:
    """Each pass runs in a pass manager of its own then, which makes no difference."""
    source = SAMPLE
    if name == "tensors":
        source = tmp_path / "tensors.mlir"
        source.write_text(TENSORS)
    made, again = tmp_path / "made", tmp_path / "again"
    aotc("build", source, *EMITTED, "-o", f"{made}/", "--no-cache").succeeded()
    done = aotc("build", source, *EMITTED, "-o", f"{again}/", "--print-ir-after", "all")
    done.succeeded()
    files = {path.name: path.read_text() for path in made.iterdir()}
    assert {path.name: path.read_text() for path in again.iterdir()} == files
    printed = re.findall(
        r"^// -----// IR Dump After ([\w-]+) \((.*)\) //----- //$", done.stderr, re.MULTILINE
    )
    assert {stage for _, stage in printed} == {"mlir", "device-mlir", "cpu-mlir", "host-mlir"}
    assert len(printed) == done.stderr.count("// IR Dump ")


@pytest.mark.parametrize("name", ["activations", "attention", "block_sums", "stencil"])
def test_each_pass_that_runs_can_be_named(aotc: Aotc, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "ir"
    source = SAMPLES / f"{name}.mlir"
    aotc(
        *("build", source, *EMITTED, "-g", "-o", f"{tmp_path}/out/"),
        *("--print-ir-before", "all", "--print-ir-dir", folder),
    ).succeeded()
    names = {re.split("-mlir-before-|-before-", path.stem)[1] for path in folder.iterdir()}
    assert "ensure-debug-info-scope-on-llvm-func" in names
    IrPrinter(BuildRequest(source, print_ir=PrintIr(after=tuple(names))), make_context())


def test_the_module_is_printed_around_each_run_of_a_pass(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc(
        *("build", SAMPLE, "--emit", "host-mlir", "--chip", "sm_90", "-o", tmp_path / "out"),
        *("--print-ir-before", "gpu-kernel-outlining,aotc-map-parallel-loops"),
        *("--print-ir-after", "gpu-kernel-outlining", "--print-ir-after", "gpu-to-llvm"),
    ).succeeded()
    checks = """
    // CHECK:     // -----// IR Dump Before aotc-map-parallel-loops (mlir) //----- //
    // CHECK-NOT: gpu.launch
    // CHECK:     scf.parallel
    // CHECK:     // -----// IR Dump Before gpu-kernel-outlining (mlir) //----- //
    // CHECK-NOT: gpu.module
    // CHECK:     gpu.launch
    // CHECK:     // -----// IR Dump After gpu-kernel-outlining (mlir) //----- //
    // CHECK:     gpu.launch_func
    // CHECK:     gpu.module
    // CHECK:     // -----// IR Dump After gpu-to-llvm (host-mlir) //----- //
    // CHECK-NOT: // -----//
    """
    filecheck(done.stderr, re.sub(r"^ +", "", checks, flags=re.MULTILINE))


def test_files_are_numbered_in_order(aotc: Aotc, tmp_path: Path) -> None:
    folder = tmp_path / "ir"
    options = (
        *("--print-ir-before", "aotc-place-memory", "--print-ir-dir", folder),
        *("--print-ir-after", "aotc-place-memory,reconcile-unrealized-casts"),
    )
    done = aotc("build", SAMPLE, *EMITTED, *options, "-o", f"{tmp_path}/out/").succeeded()
    assert done.stderr == ""
    assert sorted(path.name for path in folder.iterdir()) == [
        "0001-mlir-before-aotc-place-memory.mlir",
        "0002-mlir-after-aotc-place-memory.mlir",
        "0003-device-mlir-after-reconcile-unrealized-casts.mlir",
        "0004-cpu-mlir-after-reconcile-unrealized-casts.mlir",
        "0005-host-mlir-after-reconcile-unrealized-casts.mlir",
    ]
    first = (folder / "0001-mlir-before-aotc-place-memory.mlir").read_text()
    assert first.startswith("// -----// IR Dump Before aotc-place-memory (mlir) //----- //\nmodule")
    # A file is a module, which is built on.
    again = tmp_path / "again.mlir"
    again.write_text(first)
    aotc("build", again, "--emit", "mlir", "-o", tmp_path / "again.gpu.mlir").succeeded()


def test_each_input_has_its_own_folder(aotc: Aotc, tmp_path: Path) -> None:
    sources = [SAMPLE, SAMPLES / "saxpy.mlir"]
    options = ("--print-ir-after", "aotc-place-memory", "--print-ir-dir", tmp_path / "ir")
    aotc("build", *sources, "--emit", "mlir", *options, "-o", f"{tmp_path}/out/").succeeded()
    files = [str(path.relative_to(tmp_path)) for path in (tmp_path / "ir").rglob("*.mlir")]
    assert sorted(files) == [
        "ir/saxpy/0001-mlir-after-aotc-place-memory.mlir",
        "ir/vector_add/0001-mlir-after-aotc-place-memory.mlir",
    ]


def test_targets_of_a_project_are_printed(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aotc.toml").write_text(f'[target.one]\ninputs = "{SAMPLE}"\nemit = "mlir"\n')
    monkeypatch.chdir(tmp_path)
    options = ("--print-ir-before", "aotc-place-memory", "--print-ir-dir", "ir")
    aotc("build", *options, "--print-ir-after", "aotc-place-memory").succeeded()
    assert sorted(path.name for path in (tmp_path / "ir").iterdir()) == [
        "0001-mlir-before-aotc-place-memory.mlir",
        "0002-mlir-after-aotc-place-memory.mlir",
    ]


def test_a_build_that_was_made_before_is_printed(aotc: Aotc, tmp_path: Path) -> None:
    words = ("build", SAMPLE, "--emit", "mlir", "--cache", tmp_path / "cache", "-o", "-")
    aotc(*words).succeeded()
    done = aotc(*words, "--print-ir-after", "aotc-place-memory", "--explain-cache").succeeded()
    assert "IR Dump After aotc-place-memory" in done.stderr
    assert "--print-ir-before and --print-ir-after want every pass" in done.stderr


def test_passes_of_the_users_pipeline_are_known(aotc: Aotc, tmp_path: Path) -> None:
    pipeline = "builtin.module(func.func(control-flow-sink))"
    done = aotc(
        *("build", SAMPLE, "--emit", "mlir", "--pipeline", pipeline, "-o", tmp_path / "out"),
        *("--print-ir-before", "control-flow-sink"),
    ).succeeded()
    assert done.stderr.count("IR Dump") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--print-ir-after", "canonicalise"),
            "--print-ir-after canonicalise: no pipeline has a pass of this name. Near names: "
            "canonicalize.",
        ),
        (
            ("--print-ir-before", "aotc-place-memroy"),
            "--print-ir-before aotc-place-memroy: no pipeline has a pass of this name. Near names: "
            "aotc-place-memory",
        ),
        (
            ("--print-ir-after", "control-flow-sink"),
            "--print-ir-after control-flow-sink: no pipeline has a pass of this name.",
        ),
        (
            ("--print-ir-dir", "ir"),
            "--print-ir-dir goes with --print-ir-before and --print-ir-after.",
        ),
        (
            ("--print-ir-after", "all", "--print-ir-dir", "/dev/null"),
            "Cannot write into '/dev/null': '/dev/null' is not a directory.",
        ),
    ],
)
def test_wrong_words(aotc: Aotc, options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = aotc("build", SAMPLE, *options, "-o", tmp_path / "out")
    assert done.code == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
