"""TMA, wgmma, clusters: what builds, what the image says, and what the CPU says instead.

The GPU runs the same programs in the bundle (tests/gpu), and compares them with NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e import tma_programs
from e2e.support import Programs, run
from gpu import programs as gpu_programs
from helpers.command import Outcome

from samples import OPTIONS, source_of

Aotc = Callable[..., Outcome]

WARPGROUP_GEMM = source_of("warpgroup_gemm")
WARPGROUP = gpu_programs.source_of("warpgroup")
TMA_SCHEDULE = gpu_programs.source_of("tma_schedule")
CLUSTER = gpu_programs.source_of("cluster")

NO_TENSOR_MAPS = (
    "error: mgpuTensorMapEncodeTiledMemref: the CPU device has no TMA descriptors; they need a "
    "GPU from sm_90 on"
)
NO_CLUSTERS = "error: mgpuLaunchClusterKernel: the CPU device has no thread block clusters: "
SIZES = ("--dim", "A=8x8", "--dim", "B=8x8", "--dim", "C=8x8")
TILES = ("--dim", "a=128x64", "--dim", "b=64x128", "--dim", "d=128x128")


@pytest.mark.parametrize(
    ("source", "chip", "words", "reason"),
    [
        (WARPGROUP_GEMM, "sm_90a", SIZES, NO_TENSOR_MAPS),
        (WARPGROUP, "sm_90a", TILES, NO_TENSOR_MAPS),
        (TMA_SCHEDULE, "sm_90", (), NO_TENSOR_MAPS),
        (CLUSTER, "sm_90", ("places",), NO_CLUSTERS),
    ],
    ids=["wgmma", "warpgroups", "tma", "clusters"],
)
def test_the_cpu_says_what_it_lacks(
    programs: Programs, source: Path, chip: str, words: tuple[str, ...], reason: str
) -> None:
    """Exit code 3 and the reason; never a wrong number."""
    done = run(programs.build(source, "--chip", chip), *words, "--device", "cpu")
    assert (done.returncode, done.stdout) == (3, "")
    assert reason in done.stderr


def test_what_kernels_do_through_descriptors_is_known(programs: Programs) -> None:
    """A load reads its buffer and a store writes it: device memory, copied one way alone."""
    program = programs.build(WARPGROUP_GEMM, *OPTIONS["warpgroup_gemm"])
    said = run(program, "--describe").stdout
    lines = [line.split("  ") for line in said.splitlines() if "device memory" in line]
    uses = {words[1].strip(): next(w for w in words if "read" in w or "written" in w).strip()
            for words in lines}  # fmt: skip
    assert uses == {"A": "read", "B": "read", "C": "written"}
    assert "not on the cpu: nvgpu.mbarrier.create at warpgroup_gemm.mlir:" in said


@pytest.fixture
def ptx(aotc: Aotc) -> Callable[[Path, str], str]:
    def build(source: Path, chip: str) -> str:
        command = ("build", source, "--emit", "ptx", "--chip", chip, "-o", "-")
        return aotc(*command).succeeded().stdout

    return build


def test_a_gemm_is_wgmma_on_tiles_by_tma(ptx: Callable[[Path, str], str]) -> None:
    text = ptx(WARPGROUP_GEMM, "sm_90a")
    # 128 x 128 x 64 is 2 x 4 of 64 x 128 x 16.
    assert text.count("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 8
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" in text
    assert ".extern .shared .align 1024 .b8 __dynamic_shmem__0[];" in text


def test_registers_can_be_moved(aotc: Aotc, tmp_path: Path) -> None:
    """Of a kernel with setmaxnreg, ptxas knows with how many registers a thread begins: else it
    would ignore it, and says so."""
    specialized = next(
        kernel
        for kernel in ptx_of_kernels(aotc, WARPGROUP, tmp_path / "out")
        if "specialized_kernel(" in kernel
    )
    assert "setmaxnreg.inc.sync.aligned.u32 \t232;" in specialized
    assert ".maxntid 256, 1, 1\n.minnctapersm 1\n" in specialized


def ptx_of_kernels(aotc: Aotc, source: Path, folder: Path) -> list[str]:
    """The text of each kernel, of all gpu.modules."""
    command = ("build", source, "--emit", "ptx", "--chip", "sm_90a", "-o", f"{folder}/")
    aotc(*command).succeeded()
    return [
        part for file in folder.iterdir() for part in file.read_text().split(".visible .entry ")
    ]


def test_tiles_are_aligned_for_their_swizzle(
    ptx: Callable[[Path, str], str], tmp_path: Path
) -> None:
    """The swizzle is of shared addresses: a tile begins where its pattern does. A barrier does
    not need that, and a tile of 256 bytes only what TMA wants of every tile."""
    source = tmp_path / "tma.mlir"
    source.write_text(tma_programs.source())
    text = ptx(source, *tma_programs.OPTIONS[1:])
    by_size = {
        (int(alignment), int(size) >= 1024)
        for alignment, size in re.findall(r"\.shared \.align (\d+) \.b8 __wg\w+\[(\d+)\]", text)
    }
    assert by_size == {(1024, True), (128, False)}
    barriers = re.findall(r"\.shared \.align (\d+) \.b8 __mbarrier\w*\[", text)
    assert len(barriers) == len({case.entry for case in tma_programs.CASES.values()})
    assert set(barriers) == {"8"}


@pytest.mark.parametrize("place", ["in the launch", "before the launch"])
def test_workgroup_globals_are_the_kernels(
    place: str, aotc: Aotc, mlir_file: Callable[..., Path]
) -> None:
    """A memref.global of workgroup memory is each block's own: the host gives no address."""
    space = "#gpu.address_space<workgroup>"
    name = f"%s = memref.get_global @s : memref<64xf32, {space}>"
    path = mlir_file(
        f"""
memref.global "private" @s : memref<64xf32, {space}>
func.func @f(%x: memref<64xf32>) attributes {{llvm.emit_c_interface}} {{
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  {name if place == "before the launch" else ""}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {{
    {name if place == "in the launch" else ""}
    %c63 = arith.constant 63 : index
    %v = memref.load %x[%t] : memref<64xf32>
    memref.store %v, %s[%t] : memref<64xf32, {space}>
    gpu.barrier
    %other = arith.subi %c63, %t : index
    %w = memref.load %s[%other] : memref<64xf32, {space}>
    memref.store %w, %x[%t] : memref<64xf32>
    gpu.terminator
  }}
  return
}}
"""
    )
    text = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    host, device = text.split("gpu.module")
    assert "get_global" not in host
    assert "memref.get_global @s" in device
    assert f'memref.global "private" @s : memref<64xf32, {space}>' in device
    program = path.parent / "program"
    aotc("build", path, "--chip", "sm_80", "-o", program).succeeded()
    done = run(program, "--x", "arange", "--print", "x", "--device", "cpu")
    assert done.stdout.split("x = [")[1].split()[:3] == ["63", "62", "61"]


def test_kernels_keep_their_descriptors_until_they_are_lowered(aotc: Aotc) -> None:
    """The outlined module has nvgpu's type; the kernel that is translated takes a pointer."""
    outlined = aotc("build", TMA_SCHEDULE, "--emit", "mlir", "-o", "-").succeeded().stdout
    kernel = next(line for line in outlined.splitlines() if "gpu.func" in line)
    assert kernel.count("!nvgpu.tensormap.descriptor<") == 2
    # The schedule and the module around it are done with.
    assert "transform." not in outlined
    lowered = aotc("build", TMA_SCHEDULE, "--emit", "device-mlir", "-o", "-").succeeded().stdout
    assert "nvgpu" not in lowered


def test_a_buffer_behind_a_descriptor_is_placed(aotc: Aotc) -> None:
    """No kernel is given the buffer, only its descriptor: the GPU must reach it all the same."""
    source = gpu_programs.source_of("tma_memory")
    host = aotc("build", source, "--emit", "mlir", "-o", "-").succeeded().stdout.split("gpu.module")
    assert "memref.alloc" not in host[0]
    assert "gpu.alloc" in host[0]
