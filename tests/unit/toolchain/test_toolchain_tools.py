"""Finding tools: packages and what the user names, never PATH."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest

from aotc.errors import EXIT_TOOL, InputError, ToolError
from aotc.toolchain import Tool, Toolchain
from aotc.toolchain import tools as tools_module
from aotc.toolchain.tools import OPTIONAL_TOOLS
from aotc.toolchain.version import UNKNOWN, Version

REQUIRED = ("zig", "clang", "ptxas", "fatbinary", "libdevice", "cuda-include")


def script(place: Path, says: str, *, code: int = 0) -> Path:
    """A program that only speaks."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\nprintf '%s\\n' '{says}'\nexit {code}\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def old_cuda(tmp_path: Path) -> Path:
    """An old CUDA toolkit, as development machines have it, and an old clang and zig."""
    home = tmp_path / "old-cuda"
    for name in ("ptxas", "fatbinary", "nvcc", "zig", "clang", "nvdisasm", "cuobjdump"):
        script(home / "bin" / name, "release 9.0, V9.0.1")
    (home / "nvvm" / "libdevice").mkdir(parents=True)
    (home / "nvvm" / "libdevice" / "libdevice.10.bc").write_bytes(b"BC")
    (home / "include").mkdir()
    (home / "include" / "cuda.h").write_text("#error old\n")
    return home


def test_tools_come_from_the_packages_whatever_the_environment_says(
    old_cuda: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promise of the toolchain: an older CUDA on PATH, in CUDA_HOME or in conda is not taken."""
    environment = {
        **os.environ,
        "PATH": f"{old_cuda / 'bin'}:{os.environ['PATH']}",
        "CUDA_HOME": str(old_cuda),
        "CUDA_PATH": str(old_cuda),
        "CONDA_PREFIX": str(old_cuda),
        "LD_LIBRARY_PATH": str(old_cuda),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    tools_module._package_file.cache_clear()
    toolchain = Toolchain(environment)
    for name in REQUIRED:
        tool = toolchain.tool(name)
        assert not tool.path.is_relative_to(old_cuda)
        assert "site-packages" in tool.path.parts or "dist-packages" in tool.path.parts
        assert tool.source == "package"
        assert tool.version > Version(9, 0, 1) or name == "zig"


def test_no_tool_is_run_through_path(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = Toolchain({"PATH": "/nowhere", "HOME": os.environ["HOME"]})
    for name in REQUIRED:
        assert Path(toolchain.tool(name).command[0]).is_absolute()


def test_a_missing_package_is_not_made_up_for_by_path(
    old_cuda: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_packages(monkeypatch)
    environment = {"PATH": str(old_cuda / "bin"), "CUDA_HOME": str(old_cuda)}
    toolchain = Toolchain(environment)
    with pytest.raises(ToolError) as caught:
        _ = toolchain.tool("ptxas")
    assert str(caught.value) == (
        "ptxas is missing, which assembles PTX. The package 'nvidia-cuda-nvcc' brings it: "
        "it is not installed beside aotc, or it lacks the file."
    )
    assert caught.value.hint == (
        "pip install nvidia-cuda-nvcc, or name another with --ptxas or AOTC_PTXAS"
    )
    assert caught.value.exit_code == EXIT_TOOL
    assert toolchain.look_for("nvdisasm") is None
    assert toolchain.look_for("cuobjdump") is None


def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    tools_module._package_file.cache_clear()
    monkeypatch.setattr(tools_module, "files_of", lambda name: None)
    monkeypatch.setattr(tools_module.PathFinder, "find_spec", lambda name: None)


@pytest.fixture(autouse=True)
def forget() -> None:
    """What one test made missing must not stay so."""
    tools_module._package_file.cache_clear()


def test_every_missing_tool_says_what_it_is_for_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_packages(monkeypatch)
    found = Toolchain({}).tools()
    assert len(found) == len(REQUIRED)
    for error, name in zip(found, REQUIRED, strict=True):
        assert isinstance(error, ToolError)
        assert str(error).startswith(f"{name} is missing, which ")
        assert error.hint is not None
        assert f"--{name} or AOTC_{name.upper().replace('-', '_')}" in error.hint


def test_tools_lists_all_with_version_path_and_source() -> None:
    found = Toolchain(os.environ).tools()
    names = [tool.name for tool in found if isinstance(tool, Tool)]
    assert [name for name in names if name not in OPTIONAL_TOOLS] == list(REQUIRED)
    for tool in found:
        assert isinstance(tool, Tool)
        assert tool.version != UNKNOWN
        assert tool.path.exists()


@pytest.mark.parametrize("asks", [False, True])
def test_versions_are_those_of_the_programs(*, asks: bool) -> None:
    toolchain = Toolchain(os.environ, asks=asks)
    package = Version.parse(importlib.metadata.version("nvidia-cuda-nvcc"))
    assert toolchain.tool("ptxas").version == package
    assert toolchain.tool("fatbinary").version == package
    assert toolchain.clang.version >= Version(22)
    assert str(toolchain.zig.version) == importlib.metadata.version("ziglang")


def test_an_option_wins_over_a_variable_and_both_over_the_package(tmp_path: Path) -> None:
    first = script(tmp_path / "first", "Cuda compilation tools, release 12.8, V12.8.93")
    second = script(tmp_path / "second", "Cuda compilation tools, release 12.9, V12.9.1")
    environment = {"AOTC_PTXAS": str(first), "HOME": str(tmp_path)}
    named = Toolchain(environment).tool("ptxas")
    assert named == Tool("ptxas", first, Version(12, 8, 93), "AOTC_PTXAS")
    chosen = Toolchain(environment, {"ptxas": second}).tool("ptxas")
    assert chosen == Tool("ptxas", second, Version(12, 9, 1), "--ptxas")


def test_an_empty_variable_names_nothing() -> None:
    assert Toolchain({**os.environ, "AOTC_PTXAS": ""}).tool("ptxas").source == "package"


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools run in other folders than the one that the user named them in."""
    script(tmp_path / "mine", "release 1.2, V1.2.3")
    monkeypatch.chdir(tmp_path)
    tool = Toolchain({"HOME": str(tmp_path)}, {"fatbinary": Path("mine")}).tool("fatbinary")
    assert tool.command == (str(tmp_path / "mine"),)


def test_what_the_user_names_must_be_there(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    cases: dict[str, tuple[Path, str]] = {
        "ptxas": (tmp_path / "none", "which does not exist"),
        "fatbinary": (plain, "which is not executable"),
        "clang": (tmp_path, "which is no file"),
        "libdevice": (tmp_path, "which is no file"),
        "cuda-include": (tmp_path, "which has no cuda.h"),
    }
    for name, (path, problem) in cases.items():
        toolchain = Toolchain({"HOME": str(tmp_path)}, {name: path})
        with pytest.raises(ToolError) as caught:
            toolchain.tool(name)
        assert str(caught.value) == f"--{name} names '{path}' as {name}, {problem}."


def test_a_tool_that_does_not_answer_is_an_error_with_its_words(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    bad.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        _ = Toolchain({"HOME": str(tmp_path)}, {"ptxas": bad}).tool("ptxas")
    assert "ptxas" in str(caught.value)
    assert "does not say its version" in str(caught.value)
    assert caught.value.stderr == "no licence\n"
    mute = script(tmp_path / "mute", "hello")
    with pytest.raises(ToolError, match="does not say its version"):
        _ = Toolchain({"HOME": str(tmp_path)}, {"ptxas": mute}).tool("ptxas")


def test_files_that_the_user_names_have_no_version(tmp_path: Path) -> None:
    bitcode = tmp_path / "libdevice.bc"
    bitcode.write_bytes(b"BC")
    tool = Toolchain({"AOTC_LIBDEVICE": str(bitcode)}).tool("libdevice")
    assert tool == Tool("libdevice", bitcode, UNKNOWN, "AOTC_LIBDEVICE")
    assert str(tool.version) == "unknown"


def test_the_clang_of_another_zig_is_taken_with_it() -> None:
    zig = Toolchain(os.environ).zig.path
    toolchain = Toolchain(os.environ, {"zig": zig})
    assert toolchain.clang.source == "--zig"
    assert toolchain.clang.command == (str(zig), "clang")
    assert toolchain.zig_cc.command == (str(zig), "cc")
    assert toolchain.zig_ar.command == (str(zig), "ar")
    assert toolchain.zig_ld.command == (str(zig), "ld.lld")


def test_another_clang_is_run_as_itself(tmp_path: Path) -> None:
    clang = script(tmp_path / "clang-23", "clang version 23.1.0 (somewhere 17.2)")
    tool = Toolchain({"HOME": str(tmp_path)}, {"clang": clang}).clang
    assert tool == Tool("clang", clang, Version(23, 1, 0), "--clang")
    assert tool.command == (str(clang),)


def test_unknown_overrides_are_a_bug_of_the_caller() -> None:
    with pytest.raises(InputError, match="No such tools: nvcc"):
        Toolchain({}, {"nvcc": Path("/x")})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("24.0.0git", Version(24)),
        ("clang version 22.1.8 (https://x 1.2)", Version(22, 1, 8)),
        ("0.17", Version(0, 17)),
        ("20261001", Version(20261001)),
        ("0.13.0.post1", Version(0, 13)),
    ],
)
def test_versions_are_read(text: str, version: Version) -> None:
    assert Version.parse(text) == version


def test_versions_are_ordered_by_number() -> None:
    assert Version(22, 1, 8) < Version(22, 10) < Version(24)
    assert str(Version(22, 1, 8)) == "22.1.8"
    with pytest.raises(ValueError, match="no version number in 'git'"):
        Version.parse("git")
