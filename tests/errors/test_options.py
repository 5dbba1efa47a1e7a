"""What aotc says about a command line that it cannot follow: exit code 2, before any work."""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "vector_add.mlir"
KNOWN_CHIPS = (
    "sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103, sm_103a, sm_120, "
    "sm_120a, sm_121, sm_121a"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--chip", "sm_91"],
            "Unknown chip 'sm_91'. Near names: sm_90, sm_89, sm_90a, sm_121. "
            f"Known: {KNOWN_CHIPS}, native.",
        ),
        (["--chip", "sm_80,hopper"], f"Unknown chip 'hopper'. Known: {KNOWN_CHIPS}, native."),
        (
            ["--ptx", "sm_80"],
            "Unknown PTX target 'sm_80'. Near names: compute_80. "
            f"Known: {KNOWN_CHIPS.replace('sm_', 'compute_')}, none.",
        ),
        (
            ["--target", "riscv64-linux-gnu"],
            "Unknown host target 'riscv64-linux-gnu'. Expected ARCH-linux-gnu[.GLIBC] or "
            "ARCH-linux-musl, with ARCH one of x86_64, aarch64: for example "
            "x86_64-linux-gnu.2.28.",
        ),
        (
            ["--target", "x86_64-linux-musl.1.2"],
            "Unknown host target 'x86_64-linux-musl.1.2': musl takes no version.",
        ),
        (
            ["--emit", "exec"],
            "Unknown --emit 'exec'. Did you mean exe? Known: mlir, device-mlir, device-ll, ptx, "
            "cubin, fatbin, cpu-mlir, host-mlir, manifest, header, package, host-ll, asm, obj, "
            "static, shared, exe.",
        ),
        (["-o", "-"], "-o - is for text, and exe is not: name a file."),
        (
            ["--emit", "manifest,obj,cubin", "-o", "-"],
            "-o - is for text, and obj, cubin is not: name a file.",
        ),
        (
            ["--emit", "mlir,manifest", "-o", "-"],
            "-o - takes one --emit: text of several kinds would run together.",
        ),
    ],
)
def test_values_that_options_cannot_have(
    options: list[str], message: str, aotc: Aotc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert aotc("build", SAMPLE, *options) == Outcome(2, "", f"aotc: error: {message}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument 'INPUT.mlir'."),
        (
            ["run", "a.mlir", "--dim", "x=2"],
            "No such option '--dim'. (Options of the program itself come after '--'.)",
        ),
        (
            ["build", "a.mlir", "-j", "0"],
            "Invalid value for '-j' / '--jobs': 0 is not in the range",
        ),
        (["build", "a.mlir", "--no-such-option"], "No such option '--no-such-option'."),
        (["build", "a.mlir", "--chip"], "Option '--chip' requires an argument."),
        (["build", "a.mlir", "-O4"], "Invalid value for '-O': 4 is not in the range 0<=x<=3."),
        (["build", "a.mlir", "-Ofast"], "Invalid value for '-O': 'fast' is not a valid integer"),
        (["bild", "a.mlir"], "No such command 'bild'. Did you mean 'build'?"),
        (["frobnicate"], "No such command 'frobnicate'.\n"),
        ([str(SAMPLE)], f"No such command '{SAMPLE}'. To build the file: aotc build {SAMPLE}\n"),
    ],
)
def test_usage_errors(arguments: list[str], message: str, aotc: Aotc) -> None:
    done = aotc(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert f"Error: {message}" in done.stderr


def test_several_kinds_go_into_a_directory(aotc: Aotc, tmp_path: Path) -> None:
    """With a slash at its end or without, new or not, unless there is a file."""
    place = tmp_path / "out"
    for out in (str(place), f"{place}/", str(place)):
        aotc("build", SAMPLE, "--emit", "mlir,manifest", "-o", out).succeeded()
        assert len(list(place.iterdir())) == 2
    file = tmp_path / "one.file"
    file.touch()
    done = aotc("build", SAMPLE, "--emit", "mlir,obj", "-o", file)
    said = f"-o {file} is a file, and --emit mlir, obj makes several: name a directory."
    assert done == Outcome(2, "", f"aotc: error: {said}\n")
    assert file.read_bytes() == b""


def test_several_artifacts_for_one_place(aotc: Aotc, tmp_path: Path) -> None:
    """One for each of the chips that are named: nothing is read to say so."""
    place = tmp_path / "out.ptx"
    done = aotc("build", "no.mlir", "--emit", "ptx", "--chip", "sm_80,sm_90", "-o", place)
    assert done == Outcome(
        2,
        "",
        f"aotc: error: -o {place} has room for one file, and --emit ptx makes one for each of "
        "sm_80, sm_90: name a directory (with a / at its end), or one chip.\n",
    )


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_several_artifacts_of_the_default_chips(kind: str, aotc: Aotc, tmp_path: Path) -> None:
    """They are known before a tool runs: one that is not there is not missed."""
    place = tmp_path / "out"
    done = aotc("build", SAMPLE, "--emit", kind, "-o", place, "--ptxas", tmp_path / "no-ptxas")
    chips = ("sm_80", "sm_90", "sm_100", "sm_120")
    names = ", ".join(f"vector_add_kernels.{chip}.{kind}" for chip in chips)
    assert done == Outcome(
        2,
        "",
        f"aotc: error: -o {place} has room for one file, and the build makes 4: {names}. "
        "Name a directory, or fewer chips with --chip.\n",
    )
    assert not place.exists()


def test_a_prefix_that_no_file_name_has_room_for(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc("build", SAMPLE, "--emit", "shared", "--prefix", "p" * 300, "-o", f"{tmp_path}/")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: The name 'pppppppppppppppppppp...', which a file would have, has 310 bytes"
    )


def test_an_input_whose_name_is_not_utf8(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc("build", os.fsdecode(b"b\xff.mlir"), "-o", f"{tmp_path}/")
    assert done == Outcome(
        2, "", "aotc: error: The name of the input, 'b\\udcff.mlir', is not UTF-8.\n"
    )


def test_a_long_name_of_other_letters(aotc: Aotc, tmp_path: Path) -> None:
    """As an identifier it has nine times as many characters: more than a file's name may have."""
    source = tmp_path / ("\u5b57" * 60 + ".mlir")
    source.write_bytes(SAMPLE.read_bytes())
    aotc(
        "build", source, "--emit", "cubin", "--chip", "sm_80", "-o", f"{tmp_path}/out/"
    ).succeeded()
    (made,) = (tmp_path / "out").iterdir()
    assert made.name.endswith(".sm_80.cubin")


def test_a_folder_for_temporary_files_that_is_not_there(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", f"{tmp_path}/nothing")
    done = aotc("build", SAMPLE, "-o", f"{tmp_path}/")
    assert done == Outcome(
        2,
        "",
        f"aotc: error: TMPDIR is '{tmp_path}/nothing', which is no directory that can be "
        "written.\n",
    )


@pytest.mark.skipif(
    ctypes.util.find_library("cuda") is not None, reason="this machine has an NVIDIA driver"
)
def test_the_native_chip_without_a_driver(aotc: Aotc) -> None:
    done = aotc("build", SAMPLE, "--chip", "native", "-o", "/dev/null")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "aotc: error: --chip native asks the driver for this machine's GPU, and there is none: "
    )
    assert done.stderr.endswith(
        "Name the chip (--chip sm_90a), or leave --chip out for code that runs on every GPU from "
        "Ampere on.\n"
    )


def test_running_a_program_for_another_machine(aotc: Aotc) -> None:
    other = "x86_64" if os.uname().machine == "aarch64" else "aarch64"
    assert aotc("run", SAMPLE, "--target", f"{other}-linux-gnu") == Outcome(
        2,
        "",
        f"aotc: error: Cannot run a program for {other}-linux-gnu.2.28 on this machine.\n",
    )


# --- Places that cannot be written -----------------------------------------------------


def test_a_file_where_the_output_folder_should_be(aotc: Aotc, tmp_path: Path) -> None:
    blocked = tmp_path / "taken"
    blocked.write_text("mine")
    assert aotc("build", SAMPLE, "-o", blocked / "below" / "program") == Outcome(
        2,
        "",
        f"aotc: error: Cannot write into '{blocked}/below': '{blocked}' is not a directory.\n",
    )
    assert blocked.read_text() == "mine"


def test_a_folder_where_the_output_file_should_be(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program's name is that of a folder of the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vector_add").mkdir()
    assert aotc("build", SAMPLE, "--chip", "sm_80") == Outcome(
        2, "", f"aotc: error: Cannot write '{tmp_path}/vector_add': it is a directory.\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_an_output_folder_without_permission(aotc: Aotc, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    assert aotc("build", SAMPLE, "-o", f"{locked}/") == Outcome(
        2, "", f"aotc: error: Cannot write into '{locked}': permission denied.\n"
    )


def test_a_file_where_save_temps_should_go(aotc: Aotc, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    done = aotc("build", SAMPLE, "-o", tmp_path / "program", "--save-temps", taken)
    assert done == Outcome(
        2, "", f"aotc: error: Cannot write into '{taken}': '{taken}' is not a directory.\n"
    )
    assert taken.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("matmul", []),
        ("matmul.gpu.mlir", ["--emit", "mlir"]),
        ("matmul.mlir", ["--emit", "manifest", "-o", "matmul.mlir"]),
        ("matmul.mlir", ["--emit", "manifest", "-o", "./link"]),
    ],
)
def test_an_output_never_overwrites_the_input(
    name: str,
    options: list[str],
    aotc: Aotc,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (SAMPLES / "matmul.mlir").read_text()
    (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to(name)
    done = aotc("build", name, "--chip", "sm_80", *options)
    assert done.code == 2
    assert "would overwrite the input" in done.stderr
    assert (tmp_path / name).read_text() == text
