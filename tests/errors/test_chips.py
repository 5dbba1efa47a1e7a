"""Operations that a chip lacks: the message names operation, place and chips."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]


KERNEL = """
module attributes {{gpu.container_module}} {{
  gpu.module @device {{
    gpu.func @kernel() kernel {{
      {body}
      gpu.return
    }}
  }}
  func.func @f() attributes {{llvm.emit_c_interface}} {{
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }}
}}
"""


def test_an_operation_that_the_chip_lacks(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """Names the operation, its place, the chip, and one that has it."""
    path = mlir_file(KERNEL.format(body="nvvm.wgmma.fence.aligned"))
    command = ("build", path, "--emit", "cubin", "-o", f"{tmp_path}/")
    assert aotc(*command, "--chip", "sm_90") == Outcome(
        2,
        "",
        f"{path}:5:7: error: nvvm.wgmma.fence.aligned needs sm_90a: sm_90 lacks it\n"
        "        nvvm.wgmma.fence.aligned\n"
        "        ^\n"
        "aotc: hint: --chip sm_90a\n",
    )
    assert aotc(*command, "--chip", "sm_90a").code == 0


def test_operations_that_several_chips_lack(aotc: Aotc, mlir_file: MlirFile) -> None:
    """All of them in one message, and a chip that has both."""
    path = mlir_file(KERNEL.format(body="nvvm.cluster.arrive\n nvvm.setmaxregister increase 240"))
    done = aotc("build", path, "--emit", "ptx", "--chip", "sm_80,sm_90,sm_100a", "-o", "-")
    assert done.code == 2
    lines = done.stderr.splitlines()
    assert lines[0::3] == [
        f"{path}:5:7: error: nvvm.cluster.arrive needs sm_90 or later: sm_80 lacks it",
        f"{path}:6:2: error: nvvm.setmaxregister needs sm_90a or sm_100a or sm_103a or sm_120a or "
        "sm_121a: sm_80, sm_90 lacks it",
        "aotc: hint: --chip sm_90a",
    ]


# Operation → a chip that lacks it, and one that has it.
LACKING = {
    "nvvm.cp.async.commit.group": ("sm_75", "sm_80"),
    "nvvm.cp.async.bulk.commit.group": ("sm_89", "sm_90"),
    "nvvm.cluster.arrive": ("sm_89", "sm_90"),
    "nvvm.wgmma.fence.aligned": ("sm_100a", "sm_90a"),
    "nvvm.setmaxregister increase 240": ("sm_90", "sm_120a"),
    "nvvm.fence.mbarrier.init": ("sm_89", "sm_90"),
    "nvvm.griddepcontrol wait": ("sm_89", "sm_90"),
    "nvvm.tcgen05.wait <load>": ("sm_120a", "sm_100a"),
    '%0 = nvvm.read.ptx.sreg.cluster.ctaid.x : i32\ngpu.printf "%d", %0 : i32': ("sm_80", "sm_90"),
    "%0 = nvvm.elect.sync -> i1": ("sm_80", "sm_90"),
    '%0 = gpu.cluster_id x\ngpu.printf "%d", %0 : index': ("sm_80", "sm_90"),
    "%m = llvm.mlir.constant(-1 : i32) : i32\n%0 = nvvm.redux.sync add %m, %m : i32 -> i32": (
        "sm_75",
        "sm_80",
    ),
    "%m = llvm.mlir.constant(-1 : i32) : i32\n%x = llvm.mlir.constant(1.0 : f32) : f32\n"
    "%0 = nvvm.redux.sync fmin %x, %m : f32 -> f32": ("sm_90a", "sm_100a"),
}


@pytest.mark.parametrize("body", LACKING)
def test_the_table_of_chips(
    body: str,
    aotc: Aotc,
    mlir_file: MlirFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it says a chip lacks, clang or ptxas refuses; what it says another has, they take."""
    lacking, having = LACKING[body]
    path = mlir_file(KERNEL.format(body=body))
    command = ("build", path, "--emit", "cubin", "-o", tmp_path / "cubin", "--chip")
    said = aotc(*command, lacking)
    assert said.code == 2
    assert f": {lacking} lacks it\n" in said.stderr
    aotc(*command, having).succeeded()
    monkeypatch.setattr("aotc.targets.cuda.stages.find_needs", lambda gpu_module: ())
    assert aotc(*command, lacking).code != 0


def test_the_default_chips_leave_out_those_that_lack_it(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """Without --chip nobody asked for sm_80: a warning, and code for those that can run it. The
    architecture's own variant is taken where that alone has it."""
    path = mlir_file(KERNEL.format(body="nvvm.wgmma.fence.aligned"))
    done = aotc("build", path, "--emit", "cubin", "-o", f"{tmp_path}/out/")
    assert done == Outcome(
        0,
        "",
        f"{path}:5:7: warning: nvvm.wgmma.fence.aligned needs sm_90a: no code for sm_80, "
        "sm_100, sm_120 in device [-Wchip-left-out]\n"
        "        nvvm.wgmma.fence.aligned\n"
        "        ^\n",
    )
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["input.device.sm_90a.cubin"]


def test_no_chip_of_the_default_set_has_it(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(KERNEL.format(body="nvvm.wgmma.fence.aligned\n nvvm.tcgen05.wait <load>"))
    done = aotc("build", path, "--emit", "cubin", "-o", f"{path.parent}/out/")
    assert done.code == 2
    places = ("5:7: error: nvvm.wgmma.fence.aligned needs", "6:2: error: nvvm.tcgen05.wait needs")
    for place in places:
        assert f"{path}:{place} " in done.stderr
    assert "hint" not in done.stderr  # no chip has both
    assert not (path.parent / "out").exists()


def test_instructions_that_only_the_assembler_knows_are_warned_of(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """Where the operation's name does not tell: of each chip of the default set, why not."""
    body = 'llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;", "" : () -> ()'
    done = aotc(
        "build", mlir_file(KERNEL.format(body=body)), "--emit", "cubin", "-o", f"{tmp_path}/out/"
    ).succeeded()
    warnings = done.stderr.splitlines()
    assert [line.split(":")[2] for line in warnings] == [
        f" No code for {chip} in device" for chip in ("sm_80", "sm_100", "sm_120")
    ]
    assert all(line.endswith("[-Wchip-left-out]") for line in warnings)


def test_an_instruction_that_only_the_assembler_knows_to_be_lacking(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    body = 'llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;", "" : () -> ()'
    path = mlir_file(KERNEL.format(body=body))
    done = aotc("build", path, "--emit", "cubin", "--chip", "sm_80", "-o", f"{tmp_path}/out/")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: The kernel code has an instruction that sm_80 lacks: Instruction "
        "'wgmma.fence' not supported on .target 'sm_80'"
    )
    assert not (tmp_path / "out").exists()
