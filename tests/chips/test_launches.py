"""GPUs of little shared memory: each is launched what it has room for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome, build_here
from helpers.fake_gpu import build_fake_driver, fake_fatbinary
from helpers.launched import launches_on
from helpers.shared import made_once, shared_folder
from matmul.contracted import convolution

from aotc import build
from aotc.errors import InternalError

# Of a large depth, for which a table in shared memory says where elements are.
CONVOLUTION = convolution(
    "deep", (64, 1536, 16, 16), (256, 3, 3), layout="nhwc", element="f16", result="f32"
)
# As 64x32, whose table is of half the depth.
SMALL, LARGE = 88064, 160768
BYTES = [64 * 18 * 18 * 1536 * 2, 3 * 3 * 1536 * 256 * 2, 64 * 16 * 16 * 256 * 4]
ROOMY, SCARCE = (80, 87, 90, 100, 103), (86, 89, 120, 121)
LAUNCH_FAILED = 6
LATER = 130  # a GPU that nobody knows yet, on which the driver compiles PTX

# A kernel of the user's: 150 KiB in a launch, beside one that asks for none.
BY_HAND = """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @small() kernel {
      gpu.return
    }
    gpu.func @large() kernel {
      %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
  func.func @small() attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@small blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  func.func @large() attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %bytes = arith.constant 153600 : i32
    gpu.launch_func @device::@large blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        dynamic_shared_memory_size %bytes
    return
  }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The convolution's library, with images for every GPU of the fake driver beside it."""

    def make(folder: Path) -> None:
        chips = ",".join(map(str, (*ROOMY, *SCARCE, LATER)))
        source = folder / "deep.mlir"
        source.write_text(CONVOLUTION.module)
        options = ("--emit", "manifest", "--no-cpu-kernels", "--chip", "sm_80", "-O0")
        build_here(source, *options, "-o", f"{folder}/deep.json")
        manifest = json.loads((folder / "deep.json").read_text())
        kernels = [kernel["name"] for kernel in manifest["kernels"]]
        fatbinary = fake_fatbinary(folder, *kernels, chip=chips)
        images = ("--chip", "sm_80", "--ptx", "compute_80", "--fatbinary", fatbinary, "-O0")
        build_here(source, "--emit", "shared", "--no-cpu-kernels", *images, "-o", f"{folder}/")
        build_fake_driver(folder)

    return made_once(shared_folder(tmp_path_factory) / "deep", make)


@pytest.mark.exhaustive
@pytest.mark.parametrize("capability", [*ROOMY, *SCARCE, LATER])
def test_each_gpu_is_launched_what_it_has_room_for(library: Path, capability: int) -> None:
    """The fake driver refuses more shared memory than GPUs of its compute capability have."""
    found = launches_on(capability, library / "lib" / "libdeep.so", "deep", BYTES, library)
    assert (found["status"], found["error"]) == (0, "")
    product, *_ = found["launches"]
    assert product[2] == (LARGE if capability in ROOMY else SMALL)


def test_a_launch_that_a_gpu_would_refuse_is_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a kernel chosen for GPUs without room for it, the build would end."""
    monkeypatch.setattr("aotc.kernels.matmul.choice._fit_shared_memory", lambda choices, _: choices)
    with pytest.raises(InternalError, match="160768 bytes of shared memory: sm_86 has 101376"):
        build(CONVOLUTION.module, emit="host-mlir", out=f"{tmp_path}/", cpu_kernels=False)


def test_a_kernel_of_the_users_fails_where_there_is_no_room(
    aotc: Callable[..., Outcome], tmp_path: Path
) -> None:
    """The default chips are all built for, with a warning that names those that lack the memory.
    There the launch fails, and says of what; other kernels run."""
    fatbinary = fake_fatbinary(tmp_path, "small", "large", chip="80,86")
    source = tmp_path / "by_hand.mlir"
    source.write_text(BY_HAND)
    options = ("--emit", "shared", "--no-cpu-kernels", "--fatbinary", fatbinary)
    done = aotc("build", source, *options, "-o", f"{tmp_path}/").succeeded()
    assert done.stderr.splitlines()[0] == (
        f"{source}:20:5: warning: a block is given 153600 bytes of dynamic shared memory: sm_86 "
        "has 101376, sm_89 has 101376, sm_120 has 101376, sm_121 has 101376 "
        "[-Wchip-shared-memory]"
    )
    build_fake_driver(tmp_path)
    library = tmp_path / "lib" / "libby_hand.so"
    for entry, capability in (("large", 80), ("small", 86)):
        assert launches_on(capability, library, entry, [], tmp_path)["status"] == 0
    found = launches_on(86, library, "large", [], tmp_path)
    assert found["status"] == LAUNCH_FAILED
    assert found["launches"] == []
    assert "the device may not have that much shared memory: kernel 'large'" in found["error"]
    assert "153600 bytes of dynamic shared memory; device cuda:0 (Fake 0, sm_86)" in found["error"]
