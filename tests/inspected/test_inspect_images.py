"""Device images of ptxas, fatbinary and nvcc: what they need, beside what the tools say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome
from inspected.support import Built, pack

from aotc.images.view import View
from aotc.inspect import inspect, opened
from aotc.inspect.images import image_texts
from aotc.inspect.report import report_of
from aotc.targets.cuda.compile import parse_resources
from aotc.targets.cuda.images.cubin import read_cubin
from aotc.targets.cuda.images.ptx import read_ptx
from aotc.toolchain import Toolchain

DATA = Path(__file__).parent / "data"

# Forty values in 24 registers: some must be spilled.
_COUNT = 40
_LOADS = "".join(f"  ld.global.f32 %f{i}, [%rd1+{4 * i}];\n" for i in range(_COUNT))
_PRODUCTS = "".join(f"  mul.f32 %f{i}, %f{i}, %f{(i * 7 + 3) % _COUNT};\n" for i in range(_COUNT))
_STORES = "".join(f"  st.global.f32 [%rd1+{4 * i}], %f{i};\n" for i in range(_COUNT))
COMMENTS = "// A comment, and .version 1.0 in it\n/* and another */ "
PTX = f"""\
.version 8.8
.target CHIP
.address_size 64
.visible .entry spills(.param .u64 p)
.maxntid 128, 2, 1
.maxnreg 24
{{
  .reg .f32 %f<{_COUNT}>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [p];
{_LOADS}  bar.sync 0;
{_PRODUCTS}{_PRODUCTS}{_STORES}  ret;
}}
.visible .entry shares(.param .u64 p)
.reqntid 32, 4, 2
{{
  .shared .align 4 .b8 tile[4160];
  .reg .u32 %r<4>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, tile;
  ld.global.u32 %r2, [%rd1];
  st.shared.u32 [%r1+8], %r2;
  bar.sync 0;
  bar.sync 3;
  ld.shared.u32 %r3, [%r1+16];
  st.global.u32 [%rd1], %r3;
  ret;
}}
"""
CHIPS = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a")


def _assemble(folder: Path, chip: str) -> tuple[Path, str]:
    source, cubin = folder / f"{chip}.ptx", folder / f"{chip}.cubin"
    source.write_text(PTX.replace("CHIP", chip))
    command = [
        *Toolchain(os.environ).tool("ptxas").command,
        "-v",
        f"-arch={chip}",
        source,
        "-o",
        cubin,
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return cubin, done.stdout + done.stderr


@pytest.mark.parametrize("chip", CHIPS)
def test_cubin_says_what_ptxas_said(tmp_path: Path, chip: str) -> None:
    cubin, said = _assemble(tmp_path, chip)
    found = read_cubin(View(cubin.read_bytes(), "it"))
    assert found.chip == chip
    assert found.made_by == f"ptxas {Toolchain(os.environ).tool('ptxas').version}"
    kernels = {kernel.name: kernel for kernel in found.kernels}
    told = dict(parse_resources(said, chip))
    assert kernels.keys() == told.keys() == {"spills", "shares"}
    assert told["spills"].spill_stores > 0
    assert told["shares"].shared_bytes == 4160
    for name, resources in told.items():
        kernel = kernels[name]
        assert (kernel.registers, kernel.shared_bytes, kernel.stack_bytes, kernel.barriers) == (
            resources.registers,
            resources.shared_bytes,
            resources.stack_bytes,
            resources.barriers,
        ), name
        assert kernel.parameter_bytes == 8
    assert kernels["spills"].max_threads == 256
    assert kernels["spills"].required_block is None
    assert kernels["shares"].required_block == (32, 4, 2)


def test_ptx_kernels() -> None:
    found = read_ptx(View((COMMENTS + PTX.replace("CHIP", "sm_90a")).encode(), "it"))
    assert (found.version, found.target) == ("8.8", "sm_90a")
    spills, shares = found.kernels
    assert (spills.name, spills.max_threads, spills.required_block) == ("spills", 256, None)
    assert (shares.name, shares.max_threads, shares.required_block) == ("shares", 256, (32, 4, 2))


@pytest.mark.parametrize(
    ("mode", "compressions"),
    [
        ("none", [None, None]),
        ("default", ["zstd", "zstd"]),
        ("size", ["zstd", "zstd"]),
        ("speed", ["lz4", "lz4"]),
        ("balance", ["zstd", "zstd"]),
    ],
)
def test_compressed_images(
    built: Built, tmp_path: Path, mode: str, compressions: list[str | None]
) -> None:
    """Each is what it was before fatbinary packed it."""
    cubin, _ = _assemble(tmp_path, "sm_80")
    images = [("elf", "80", cubin), ("ptx", "80", tmp_path / "sm_80.ptx")]
    plain = pack(images, tmp_path / "plain.fatbin", "none")
    packed = pack(images, tmp_path / "packed.fatbin", mode)
    report = inspect(packed)
    assert [image.compression for image in report.images] == compressions
    assert [image.kernels for image in report.images] == [i.kernels for i in inspect(plain).images]
    with opened(packed) as one, opened(plain) as other:
        texts = [
            "".join(image_texts(view, "ptx", None, {}, {})).split("\n", 1)[1]
            for view in (one, other)
        ]
    assert texts[0] == texts[1]
    assert "mul.f32 %f39" in texts[0]


def test_nvcc_object(aotc: Callable[..., Outcome]) -> None:
    """An object of nvcc's, which ptxas -v told of: 10 registers, 1 barrier, 1024 bytes smem."""
    report = inspect(DATA / "nvcc_object.o")
    assert report.format == "object"
    assert report.modules == ()
    cubin, ptx = report.images
    (kernel,) = cubin.kernels
    assert (cubin.chip, kernel.name, kernel.registers) == ("sm_80", "_Z7reversePi", 10)
    assert (kernel.shared_bytes, kernel.barriers, kernel.max_threads) == (1024, 1, 256)
    assert cubin.made_by == "ptxas 13.0.88"
    assert (ptx.chip, ptx.ptx_version, ptx.compression) == ("compute_80", "9.0", "zstd")
    said = aotc("inspect", DATA / "nvcc_object.o").succeeded().stdout
    assert "It was not built by aotc" in said


def test_image_among_other_bytes(built: Built) -> None:
    """As upstream's MLIR has them: a cubin, or PTX, as a constant of a program."""
    around = b"\x7fELF text \x50\xed\x55\xba .version \0"
    ptx = PTX.replace("CHIP", "sm_80").encode()
    program = built.object.read_bytes() + around
    program += built.cubin("sm_90").read_bytes() + around + ptx + b"\0" + around
    images = report_of(View(program, "program")).images[3:]
    assert [(image.kind, image.chip, image.problem) for image in images] == [
        ("cubin", "sm_90", None),
        ("ptx", "compute_80", None),
    ]
    assert [len(image.kernels) for image in images] == [1, 2]


def test_file_without_device_code(aotc: Callable[..., Outcome]) -> None:
    said = aotc("inspect", Path(sys.executable).resolve()).succeeded().stdout
    assert said.endswith("There is no device code in it.\n")
