"""What a program says when there is no device for it: exit code 3, and all that there is."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome
from helpers.fake_gpu import build_fake_driver, fake_fatbinary

from aotc.cli import run

HAS_DRIVER = ctypes.util.find_library("cuda") is not None
needs_no_driver = pytest.mark.skipif(HAS_DRIVER, reason="this machine has an NVIDIA driver")


def _program(sample: str, folder: Path) -> Path:
    place = folder / sample
    command = ["build", str(SAMPLES / f"{sample}.mlir"), "--chip", "sm_80", "-o", str(place)]
    assert run([*command, "-O1"]) == 0
    return place


def _run(program: Path, *arguments: str, **env: str) -> Outcome:
    plain = {key: value for key, value in os.environ.items() if key != "AOTC_DEVICE"}
    done = subprocess.run(
        [program, *arguments], env={**plain, **env}, capture_output=True, text=True, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def stencil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _program("stencil", tmp_path_factory.mktemp("stencil"))


@pytest.fixture(scope="module")
def hopper_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose kernel only a GPU can run."""
    folder = tmp_path_factory.mktemp("fence")
    source = folder / "fence.mlir"
    source.write_text(
        """
func.func @fence() attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    nvvm.wgmma.fence.aligned
    gpu.terminator
  }
  return
}
"""
    )
    place = folder / "fence"
    assert run(["build", str(source), "--chip", "sm_90a", "-o", str(place)]) == 0
    return place


@needs_no_driver
@pytest.mark.parametrize("wanted", ["cuda", "cuda:0"])
def test_a_gpu_is_asked_for_and_there_is_none(wanted: str, stencil: Path) -> None:
    done = _run(stencil, AOTC_DEVICE=wanted)
    assert done == Outcome(
        3,
        "",
        f"stencil: error: aotc_device_resolve: device '{wanted}' cannot be used: no NVIDIA driver: "
        "libcuda.so.1: cannot open shared object file: No such file or directory\n",
    )


@needs_no_driver
def test_without_a_gpu_the_cpu_is_taken_and_named(stencil: Path) -> None:
    done = _run(stencil)
    assert done.code == 0
    assert done.stderr == (
        "stencil: note: running on the cpu: no NVIDIA driver: libcuda.so.1: cannot open shared "
        "object file: No such file or directory\n"
    )


@pytest.mark.parametrize("wanted", ["gpu", "cuda:x", "cuda:-1", "CPU", "cuda:0 "])
def test_a_device_that_cannot_be_meant(wanted: str, stencil: Path) -> None:
    assert _run(stencil, AOTC_DEVICE=wanted) == Outcome(
        2,
        "",
        f"stencil: error: aotc_device_request: AOTC_DEVICE is '{wanted}'; expected auto, cuda, "
        "cuda:N or cpu\n",
    )


def test_a_device_that_cannot_be_meant_and_a_main(tmp_path: Path) -> None:
    """The same in a program of its own, once it comes to a launch."""
    done = _run(_program("small_language", tmp_path), AOTC_DEVICE="gpu")
    assert done.code == 2
    assert done.stderr.endswith(": AOTC_DEVICE is 'gpu'; expected auto, cuda, cuda:N or cpu\n")


@pytest.mark.parametrize("device", ["cpu", pytest.param("auto", marks=needs_no_driver)])
def test_a_kernel_without_a_cpu_form(device: str, hopper_alone: Path) -> None:
    """Never a wrong number: the kernel and the reason are named."""
    done = _run(hopper_alone, AOTC_DEVICE=device)
    assert (done.code, done.stdout) == (3, "")
    assert (
        "fence: error: mgpuLaunchKernel: kernel 'fence_kernel' of module 'fence_kernels' cannot "
        "run on the CPU: nvvm.wgmma.fence.aligned at fence.mlir:7:5: "
    ) in done.stderr


# --- A GPU that the image does not fit: the fake driver of runtime_c/tests stands for it ---


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake_driver(tmp_path_factory.mktemp("driver"))


def _program_with_fake_image(chip: str, folder: Path) -> Path:
    """vector_add, with an image that the fake driver reads, for `sm_{chip}`."""
    fatbinary = fake_fatbinary(folder, "vector_add_kernel", chip=chip)
    place = folder / "vector_add"
    command = ["build", str(SAMPLES / "vector_add.mlir"), "--chip", f"sm_{chip}"]
    assert run([*command, "--fatbinary", str(fatbinary), "-o", str(place)]) == 0
    return place


SIZES = ("--dim", "x=1000", "--dim", "y=1000", "--dim", "z=1000")


def test_an_image_that_does_not_fit_the_gpu(fake_driver: Path, tmp_path: Path) -> None:
    """Says what was built, and what is there."""
    program = _program_with_fake_image("80", tmp_path)
    done = _run(program, *SIZES, AOTC_DEVICE="cuda", LD_LIBRARY_PATH=str(fake_driver))
    assert (done.code, done.stdout) == (3, "")
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in done.stderr
    assert "module 'vector_add_kernels', built for sm_80" in done.stderr
    assert "device cuda:0 (Fake 0, sm_90)" in done.stderr


def test_an_image_that_does_not_fit_and_a_cpu_that_does(fake_driver: Path, tmp_path: Path) -> None:
    """Where nobody asked for the GPU, the CPU is taken, and the reason is told."""
    program = _program_with_fake_image("80", tmp_path)
    done = _run(program, *SIZES, LD_LIBRARY_PATH=str(fake_driver))
    assert done.code == 0
    assert done.stdout.startswith("vector_add on cpu\n")
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in done.stderr
    assert "built for sm_80" in done.stderr
    assert "sm_90" in done.stderr


def test_an_image_that_fits_the_gpu(fake_driver: Path, tmp_path: Path) -> None:
    """The counterpart: the same way, with the right chip, reaches the GPU."""
    program = _program_with_fake_image("90", tmp_path)
    done = _run(program, *SIZES, LD_LIBRARY_PATH=str(fake_driver))
    assert (done.code, done.stderr) == (0, "")
    assert "Fake 0" in done.stdout.splitlines()[0]
