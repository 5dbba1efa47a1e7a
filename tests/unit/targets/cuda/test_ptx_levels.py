"""For which chips clang compiles, and what the others are given."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

from aotc.request import Chip
from aotc.targets.cuda.compile import DeviceCompiler
from aotc.targets.cuda.ptx_levels import level_of, retarget
from aotc.targets.cuda.ptx_waits import add_waits
from aotc.targets.cuda.requirements import Need
from aotc.toolchain import Runner, Toolchain

SAMPLES = Path(__file__).resolve().parents[4] / "samples"

PLAIN = "%2 = fadd contract float %0, %1"
BF16 = "%2 = fadd contract bfloat %0, %1"
F8 = "call i16 @llvm.nvvm.ff.to.e4m3x2.rn(float %0, float %1)"
CLUSTER = Need("nvvm.cluster.arrive", None, least=90)
WGMMA = Need("nvvm.wgmma.fence.aligned", None, only=("sm_90a",))


@pytest.mark.parametrize(
    ("chip", "llvm_ir", "needs", "level"),
    [
        ("sm_80", PLAIN, (), "sm_80"),
        ("sm_86", PLAIN, (), "sm_80"),
        ("sm_90a", PLAIN, (), "sm_80"),
        ("sm_120", PLAIN, (), "sm_80"),
        ("sm_75", PLAIN, (), "sm_75"),
        ("sm_89", BF16, (), "sm_80"),
        ("sm_90", BF16, (), "sm_90"),
        ("sm_100", BF16, (), "sm_90"),
        ("sm_89", F8, (), "sm_89"),
        ("sm_120", F8, (), "sm_89"),
        ("sm_90", PLAIN, (CLUSTER,), "sm_90"),
        ("sm_120", PLAIN, (CLUSTER,), "sm_90"),
        ("sm_90a", PLAIN, (WGMMA,), "sm_90a"),
    ],
)
def test_the_level_is_the_first_chip_with_the_same_instructions(
    chip: str, llvm_ir: str, needs: tuple[Need, ...], level: str
) -> None:
    assert level_of(Chip(chip), llvm_ir, needs) == Chip(level)


def test_the_target_alone_is_replaced() -> None:
    ptx = b".version 8.8\n.target sm_80, debug\n.entry f // .target sm_80\n"
    assert retarget(ptx, Chip("sm_90a")) == ptx.replace(b"sm_80, debug", b"sm_90a, debug")


@pytest.mark.parametrize("name", ["matmul", "dot", "layer"])
def test_clang_writes_the_same_for_each_chip(
    name: str, aotc: Callable[..., Outcome], tmp_path: Path
) -> None:
    """What is made of sm_80's PTX is what clang makes for a later chip by itself."""
    out, chips = tmp_path / "out", ("sm_80", "sm_86", "sm_90")
    command = ("build", SAMPLES / f"{name}.mlir", "--chip", ",".join(chips))
    aotc(*command, "--emit", "device-ll,ptx", "-o", f"{out}/", "--no-cache").succeeded()
    compiler = DeviceCompiler(Toolchain(os.environ), Runner({}), out, 3, debug=False)
    for chip in chips:
        for ptx in out.glob(f"*.{chip}.ptx"):
            stem = ptx.name.removesuffix(f".{chip}.ptx")
            compiler.compile_ptx(f"{stem}.device.ll", Chip(chip), "own.ptx")
            own = (out / "own.ptx").read_bytes()
            kernels = [name.decode() for name in re.findall(rb"\.entry (\w+)", own)]
            assert ptx.read_bytes() == add_waits(own, Chip(chip), kernels)
