"""GPUs of little shared memory: each is launched what it has room for."""

from __future__ import annotations

from pathlib import Path

import pytest
from contractions.contracted import convolution
from helpers.command import build_here
from helpers.fake_gpu import build_fake_driver, fake_fatbinary
from helpers.launched import launches_on
from helpers.shared import made_once, shared_folder

# Of a large depth, for which a table in shared memory says where elements are.
CONVOLUTION = convolution(
    "deep", (64, 1536, 16, 16), (256, 3, 3), layout="nhwc", element="f16", result="f32"
)
# As 64x32, whose table is of half the depth.
SMALL, LARGE = 88064, 160768
BYTES = [64 * 18 * 18 * 1536 * 2, 3 * 3 * 1536 * 256 * 2, 64 * 16 * 16 * 256 * 4]
ROOMY, SCARCE = (80, 87, 90, 100, 103), (86, 89, 120, 121)
LATER = 130  # a GPU that nobody knows yet, on which the driver compiles PTX


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The convolution's library, with images for every GPU of the fake driver beside it."""

    def build(folder: Path) -> None:
        chips = ",".join(map(str, (*ROOMY, *SCARCE, LATER)))
        kernels = ["deep_kernel", *(f"deep_kernel_{number}" for number in range(12))]
        fatbinary = fake_fatbinary(folder, *kernels, chip=chips)
        source = folder / "deep.mlir"
        source.write_text(CONVOLUTION.module)
        images = ("--chip", "sm_80", "--ptx", "compute_80", "--fatbinary", fatbinary, "-O0")
        build_here(source, "--emit", "shared", "--no-cpu-kernels", *images, "-o", f"{folder}/")
        build_fake_driver(folder)

    return made_once(shared_folder(tmp_path_factory) / "deep", build)


@pytest.mark.parametrize("capability", [*ROOMY, *SCARCE, LATER])
def test_each_gpu_is_launched_what_it_has_room_for(library: Path, capability: int) -> None:
    """The fake driver refuses more shared memory than GPUs of its compute capability have."""
    found = launches_on(capability, library / "lib" / "libdeep.so", "deep", BYTES, library)
    assert (found["status"], found["error"]) == (0, "")
    product, *_ = found["launches"]
    assert product[2] == (LARGE if capability in ROOMY else SMALL)
