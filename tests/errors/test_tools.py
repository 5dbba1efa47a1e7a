"""What aotc says when a tool is missing or fails: exit code 3, the tool's words untouched."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, own_process

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "vector_add.mlir"


@pytest.fixture
def failing_ptxas(tmp_path: Path) -> Path:
    """Says a version, and fails at everything else."""
    script = tmp_path / "broken ptxas"
    script.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "--version) echo 'Cuda compilation tools, release 13.5, V13.5.37'; exit 0 ;;\n"
        "esac\n"
        "echo 'first line of trouble' >&2\n"
        "echo '  second:   as  is' >&2\n"
        "exit 7\n"
    )
    script.chmod(0o755)
    return script


def test_ptxas_fails(aotc: Aotc, failing_ptxas: Path, tmp_path: Path) -> None:
    """What was being made, the exit code, the tool's stderr, the quoted command, a next step."""
    out = tmp_path / "out"
    done = aotc(
        "build", SAMPLE, "--chip", "sm_80", "--ptxas", failing_ptxas, "-O2", "-o", f"{out}/"
    )
    command = [
        *(str(failing_ptxas), "-arch=sm_80", "-O2", "-v"),
        *("vector_add_kernels.sm_80.ptx", "-o", "vector_add_kernels.sm_80.cubin"),
    ]
    assert done == Outcome(
        3,
        "",
        "aotc: error: broken ptxas could not make the cubin for sm_80: exit code 7\n"
        "first line of trouble\n"
        "  second:   as  is\n"
        f"aotc: the command was: {shlex.join(command)}\n"
        "aotc: hint: keep the intermediates with --save-temps DIR\n",
    )
    assert not out.exists()


@pytest.mark.parametrize(("options", "code"), [((), 0), (("-O1",), 3)])
def test_ptxas_crashes(aotc: Aotc, tmp_path: Path, options: tuple[str, ...], code: int) -> None:
    """With less optimization it is tried again, which is told."""
    from aotc.toolchain import Toolchain

    script = tmp_path / "ptxas"
    pattern = "*-arch*" if code else "*-O2*|*-O3*"
    crash = f'case "$*" in {pattern}) kill -SEGV $$ ;; esac'
    path = Toolchain({}).tool("ptxas").path
    script.write_text(f'#!/bin/sh\n{crash}\nexec {path} "$@"\n')
    script.chmod(0o755)
    out = f"{tmp_path / 'out'}/"
    done = aotc("build", SAMPLE, "--chip", "sm_80", "--ptxas", script, *options, "-o", out)
    assert done.code == code
    if code:
        assert "could not make the cubin for sm_80: killed by SIGSEGV" in done.stderr
    else:
        assert done.stderr == (
            "aotc: warning: ptxas crashed on vector_add_kernels for sm_80: its kernels are "
            "assembled with -O1, and may be slower. [-Wassembler-crash]\n"
        )


def test_ptxas_fails_for_one_of_several_chips(
    aotc: Aotc, failing_ptxas: Path, tmp_path: Path
) -> None:
    """Tools run side by side: one failure is told, and those beside it are stopped."""
    done = aotc(
        *("build", SAMPLE, "--chip", "sm_80,sm_86,sm_90", "--emit", "cubin"),
        *("--ptxas", failing_ptxas, "-o", f"{tmp_path}/out/"),
    )
    assert done.code == 3
    first, *rest = done.stderr.splitlines()
    assert re.fullmatch(
        r"aotc: error: broken ptxas could not make the cubin for sm_(80|86|90): exit code 7", first
    )
    assert [line.split(":")[0] for line in rest if line.startswith("aotc")] == ["aotc", "aotc"]
    assert not (tmp_path / "out").exists()


def test_the_intermediates_of_a_failed_build_are_kept_when_asked(
    aotc: Aotc, failing_ptxas: Path, tmp_path: Path
) -> None:
    temps = tmp_path / "temps"
    done = aotc(
        *("build", SAMPLE, "--chip", "sm_80", "--ptxas", failing_ptxas),
        *("--save-temps", temps, "-o", tmp_path / "program"),
    )
    assert done.code == 3
    assert (temps / "04-ptx.vector_add_kernels.sm_80.ptx").is_file()


def test_a_kernel_that_ptxas_cannot_read(aotc: Aotc, tmp_path: Path) -> None:
    """The assembly is the input's, and so is the fault."""
    path = tmp_path / "input.mlir"
    path.write_text(
        """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @kernel() kernel {
      llvm.inline_asm has_side_effects "no.such.thing;", "" : () -> ()
      gpu.return
    }
  }
  func.func @f() attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
}
"""
    )
    done = aotc("build", path, "--chip", "sm_80", "-o", tmp_path / "program")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: ptxas does not take the inline assembly of a kernel:\n  no.such.thing;\n"
    )


@pytest.mark.parametrize("tool", ["zig", "clang", "ptxas", "fatbinary", "libdevice"])
def test_a_tool_that_an_option_names_is_not_there(tool: str, aotc: Aotc, tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / tool
    done = aotc("build", SAMPLE, "--chip", "sm_80", f"--{tool}", place, "-o", f"{tmp_path}/out/")
    assert done == Outcome(
        3, "", f"aotc: error: --{tool} names '{place}' as {tool}, which does not exist.\n"
    )


def test_a_tool_that_a_variable_names_is_not_there(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AOTC_PTXAS", "/nowhere/ptxas")
    assert aotc("build", SAMPLE, "-o", tmp_path / "program") == Outcome(
        3, "", "aotc: error: AOTC_PTXAS names '/nowhere/ptxas' as ptxas, which does not exist.\n"
    )


def test_a_tool_that_is_not_executable(aotc: Aotc, tmp_path: Path) -> None:
    plain = tmp_path / "ptxas"
    plain.write_text("")
    assert aotc("build", SAMPLE, "--ptxas", plain, "-o", tmp_path / "program") == Outcome(
        3, "", f"aotc: error: --ptxas names '{plain}' as ptxas, which is not executable.\n"
    )


def test_a_tool_that_does_not_say_its_version(aotc: Aotc, tmp_path: Path) -> None:
    script = tmp_path / "ptxas"
    script.write_text("#!/bin/sh\necho 'libfoo.so: cannot open' >&2\nexit 127\n")
    script.chmod(0o755)
    done = aotc("build", SAMPLE, "--ptxas", script, "-o", tmp_path / "program")
    assert done.code == 3
    assert done.stderr.startswith(f"aotc: error: ptxas ({script}, from --ptxas) does not say its")
    assert "\nlibfoo.so: cannot open\n" in done.stderr


def test_the_exit_codes_are_the_process_s(tmp_path: Path) -> None:
    """The same through a process of its own: what a shell sees."""
    done = own_process(
        ["build", SAMPLE, "-o", tmp_path / "program"], env={"AOTC_PTXAS": "/nowhere"}
    )
    assert done == Outcome(
        3, "", "aotc: error: AOTC_PTXAS names '/nowhere' as ptxas, which does not exist.\n"
    )
    assert own_process(["build", "/nowhere.mlir"]).code == 2
    assert own_process(["build"]).code == 2
    assert own_process(["--help"]).code == 0


@pytest.mark.parametrize(
    ("option", "words"), [("--ptxas", "true"), ("--clang", "true"), ("--zig", "echo")]
)
def test_another_program_is_not_the_tool(
    aotc: Aotc, tmp_path: Path, option: str, words: str
) -> None:
    """Its answer to the question for its version shows it; nothing that comes later is blamed."""
    done = aotc("build", SAMPLE, option, f"/bin/{words}", "--chip", "sm_80", "-o", tmp_path / "out")
    assert done.code == 3
    assert f"(/bin/{words}, from {option}) does not say its version: it answers '" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_tool_that_makes_nothing(aotc: Aotc, tmp_path: Path) -> None:
    """It ends with 0: what it should have made is missed at once, not by the next tool."""
    script = tmp_path / "ptxas"
    script.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.5, V13.5.37'\n")
    script.chmod(0o755)
    done = aotc("build", SAMPLE, "--ptxas", script, "--chip", "sm_80", "-o", tmp_path / "out")
    assert done.code == 3
    assert done.stderr.startswith(
        "aotc: error: ptxas ended as if it had made the cubin for sm_80, and there is no "
        "vector_add_kernels.sm_80.cubin: is it the program that it should be?\n"
    )
