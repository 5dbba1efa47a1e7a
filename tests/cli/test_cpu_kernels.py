"""Which kernels of a build run on the CPU, who says so, and builds that leave those forms out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import SAMPLES, Outcome
from helpers.elf import Elf

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "vector_add.mlir"
LEFT_OUT = "it was built with --no-cpu-kernels"

# One kernel that runs anywhere, one that needs a unit of the GPU, and one that is lowered already.
THREE_KERNELS = """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @anywhere(%x: memref<4xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<4xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %x[%i] : memref<4xf32>
      gpu.return
    }
    gpu.func @hopper() kernel {
      nvvm.wgmma.fence.aligned
      gpu.return
    }
  }
  gpu.module @lowered {
    llvm.func @early() attributes {nvvm.kernel} { llvm.return }
  }
  func.func @twice(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @device::@anywhere blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
        args(%x : memref<4xf32>)
    return
  }
  func.func @fence() attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @device::@hopper blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
    return
  }
}
"""
KERNELS = ["anywhere", "hopper", "early"]


def run(program: Path, *arguments: str) -> Outcome:
    plain = {key: value for key, value in os.environ.items() if key != "AOTC_DEVICE"}
    done = subprocess.run(
        [program, *arguments], env=plain, capture_output=True, text=True, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def three_kernels(aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path) -> Callable[..., Any]:
    """Builds THREE_KERNELS; the program, and each kernel's reason in the manifest."""

    def build(*options: str) -> tuple[Path, dict[str, str | None]]:
        command = ("--chip", "sm_90a", "--emit", "exe,manifest", "-o", f"{tmp_path}/out/")
        aotc("build", mlir_file(THREE_KERNELS, "three.mlir"), *command, *options).succeeded()
        manifest = json.loads((tmp_path / "out" / "three.json").read_text())
        reasons = {kernel["name"]: kernel["why_no_cpu_form"] for kernel in manifest["kernels"]}
        return tmp_path / "out" / "three", reasons

    return build


def described(program: Path) -> tuple[dict[str, str | None], dict[str, str]]:
    """Each kernel's reason in --describe --json, and its line of --describe."""
    table = json.loads(run(program, "--describe", "--json").succeeded().stdout)
    for kernel in table["kernels"]:
        assert kernel["has_cpu_form"] == (kernel["why_no_cpu_form"] is None)
    reasons = {kernel["name"]: kernel["why_no_cpu_form"] for kernel in table["kernels"]}
    rows = run(program, "--describe").succeeded().stdout.partition("\nkernels\n")[2].splitlines()
    return reasons, {row.split()[0]: row for row in rows}


def test_each_kernel_says_whether_it_runs_on_the_cpu(three_kernels: Callable[..., Any]) -> None:
    """The manifest, --describe and the failed run give the same reason, with its place."""
    program, reasons = three_kernels()
    assert list(reasons) == KERNELS
    assert reasons["anywhere"] is None
    assert "nvvm.wgmma.fence.aligned at three.mlir:12:7: " in reasons["hopper"]
    assert reasons["early"] == "it was in the LLVM dialect before aotc saw it"
    by_program, rows = described(program)
    assert by_program == reasons
    assert rows["anywhere"].endswith("  runs on the cpu")
    for name in ("hopper", "early"):
        assert rows[name].endswith(f"  not on the cpu: {reasons[name]}")
    twice = run(program, "twice", "--x", "arange", "--print", "x", "--device", "cpu").succeeded()
    assert "[0 2 4 6]" in twice.stdout
    fence = run(program, "fence", "--device", "cpu")
    assert (fence.code, fence.stdout) == (3, "")
    assert f"kernel 'hopper' of module 'device' cannot run on the CPU: {reasons['hopper']}; " in (
        fence.stderr
    )


def test_a_build_without_cpu_kernels_says_so_of_each(three_kernels: Callable[..., Any]) -> None:
    """Never a wrong number or a silence: exit 3, and the option that left the kernel out."""
    program, reasons = three_kernels("--no-cpu-kernels")
    assert reasons == dict.fromkeys(KERNELS, LEFT_OUT)
    by_program, rows = described(program)
    assert by_program == reasons
    assert all(row.endswith(f"  not on the cpu: {LEFT_OUT}") for row in rows.values())
    assert run(program, "twice", "--device", "cpu") == Outcome(
        3,
        "",
        "three: error: mgpuLaunchKernel: kernel 'anywhere' of module 'device' cannot run on the "
        f"CPU: {LEFT_OUT}; the CPU was requested\n",
    )


def test_no_code_of_a_kernel_is_left(aotc: Aotc, tmp_path: Path) -> None:
    """The image for GPUs stays, to the byte; the host function goes."""
    code: dict[str, int] = {}
    images: dict[str, bytes] = {}
    for name, options in (("with", ()), ("without", ("--no-cpu-kernels",))):
        out = tmp_path / name
        kinds = "fatbin,host-ll,obj"
        aotc(
            *("build", SAMPLE, "--chip", "sm_80", "--emit", kinds, "-o", f"{out}/", *options)
        ).succeeded()
        sections = Elf(out / "vector_add.o").sections
        code[name] = sum(len(s.content) for s in sections if s.name.startswith(".text"))
        (image,) = out.glob("*.fatbin")
        images[name] = image.read_bytes()
    assert code["without"] < code["with"]
    assert images["without"] == images["with"]
    assert "fadd" in (tmp_path / "with" / "vector_add.ll").read_text()
    assert "fadd" not in (tmp_path / "without" / "vector_add.ll").read_text()


def test_run_takes_the_option_too(aotc: Aotc) -> None:
    done = aotc("run", SAMPLE, "--chip", "sm_80", "--no-cpu-kernels", "--", "--device", "cpu",
                *(f"--dim={name}=4" for name in "xyz"))  # fmt: skip
    assert done.code == 3
    assert LEFT_OUT in done.stderr


def test_what_is_left_out_cannot_be_asked_for(aotc: Aotc, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kinds = "exe,cpu-mlir"
    done = aotc("build", SAMPLE, "--emit", kinds, "--no-cpu-kernels", "-o", f"{out}/")
    assert done == Outcome(
        2, "", "aotc: error: --emit cpu-mlir asks for what --no-cpu-kernels leaves out.\n"
    )
    assert not out.exists()


def test_musl_without_cpu_kernels_is_warned_of(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """A static program has no GPU either; one without kernels misses nothing."""
    options = ("--target", "x86_64-linux-musl", "--emit", "obj", "--no-cpu-kernels", "--chip")
    done = aotc("build", SAMPLE, *options, "sm_80", "-o", tmp_path / "add.o").succeeded()
    assert done.stderr == (
        "aotc: warning: The kernels have nowhere to run: a program for musl cannot load a GPU's "
        "driver, and --no-cpu-kernels leaves out the CPU's. [-Wnowhere-to-run]\n"
    )
    plain = mlir_file("func.func @f() attributes {llvm.emit_c_interface} { return }")
    done = aotc("build", plain, *options, "sm_80", "-o", tmp_path / "f.o").succeeded()
    assert done.stderr == ""
