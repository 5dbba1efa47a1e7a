"""`find_package(aotc)`, by CMake itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from consumers.support import run, run_program
from helpers.command import SAMPLES, Outcome

import aotc as package

FOLDER = Path(package.__file__).parent / "cmake"
START = "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\n"


@pytest.fixture
def cmake(environment: dict[str, str]) -> Callable[..., str]:
    program = Path(pytest.importorskip("cmake").CMAKE_BIN_DIR) / "cmake"

    def call(*words: str | Path) -> str:
        return run([program, *words], env=environment)

    return call


def _project(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(START + text)
    return folder


def _generator(name: str) -> tuple[str, ...]:
    if name == "Ninja":
        ninja = Path(pytest.importorskip("ninja").BIN_DIR) / "ninja"
        return ("-G", name, f"-DCMAKE_MAKE_PROGRAM={ninja}")
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    return ("-G", name)


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_the_sample(
    generator: str,
    sample: Callable[[str], Path],
    cmake: Callable[..., str],
    cc: dict[str, Path],
) -> None:
    """Builds and runs; not again; again for a changed module, and for other options; cleans."""
    folder = sample("cmake-from-source")
    build = folder / "build"
    options = [
        *("-S", folder, "-B", build, f"-Daotc_DIR={FOLDER}", "-DCHIPS=sm_90"),
        *_generator(generator),
        *(f"-DCMAKE_C_COMPILER={cc['CC']}", f"-DCMAKE_CXX_COMPILER={cc['CXX']}"),
    ]
    cmake(*options)
    assert "Building dot from ../../dot.mlir" in cmake("--build", build, "-j2")
    assert run_program(build / "c_shared") == "C: 4096 sums are right\n"
    assert run_program(build / "cxx_static") == "C++: 4096 sums are right\n"
    run_program(build / "dot", "--dim", "x=4", "--dim", "y=4")
    assert "Building" not in cmake("--build", build)

    os.utime(folder / "../../dot.mlir")
    again = cmake("--build", build)
    assert "Building dot" in again
    assert "Building vector_add" not in again

    cmake(*options, "-DCHIPS=sm_80;sm_90")
    assert cmake("--build", build, "--target", "sums_build").count("Building vector_add") == 1
    assert b"sm_80" in (build / "sums.aotc" / "vector_add.json").read_bytes()
    cmake("--build", build, "--target", "clean")
    assert not (build / "dot").exists()
    assert not (build / "sums.aotc/lib/libvector_add.so").exists()


def test_files_that_options_name(tmp_path: Path, cmake: Callable[..., str]) -> None:
    """They are in the depfile, so that a change of one builds again; options with blanks work."""
    shutil.copy(SAMPLES / "vector_add.mlir", tmp_path / "add.mlir")
    passes = tmp_path / "my passes"
    folder = _project(
        tmp_path / "a project",
        "find_package(aotc REQUIRED)\n"
        f'aotc_add_executable(add SOURCE ../add.mlir CHIPS sm_90 OUTPUT_NAME "x y"\n'
        f'  OPTIONS --save-temps temps --ptxas "{passes}")\n',
    )
    passes.write_text('#!/bin/sh\nexec ptxas "$@"\n')
    shutil.copy(_ptxas(), passes)
    build = folder / "build"
    cmake("-S", folder, "-B", build, f"-Daotc_DIR={FOLDER}", *_generator("Ninja"))
    cmake("--build", build)
    assert (build / "x y").is_file()
    assert "no work" in cmake("--build", build)
    os.utime(passes)
    assert "Building x y" in cmake("--build", build)


def _ptxas() -> Path:
    from aotc.toolchain import Toolchain

    return Toolchain(os.environ).tool("ptxas").path


def test_the_folder_is_told(aotc: Callable[..., Outcome]) -> None:
    assert aotc("--cmake-dir") == Outcome(0, f"{FOLDER}\n", "")


@pytest.mark.parametrize(
    ("wanted", "is_found"), [("", True), ("0.1", True), ("0", True), ("0.2", False), ("1", False)]
)
def test_versions(wanted: str, is_found: bool, tmp_path: Path, cmake: Callable[..., str]) -> None:
    """Before 1.0, versions of the same minor number fit."""
    text = f"find_package(aotc {wanted} QUIET)\nmessage(STATUS found=${{aotc_FOUND}})\n"
    folder = _project(tmp_path / "p", text)
    said = cmake("-S", folder, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={FOLDER.parent}/cmake")
    assert f"found={int(is_found)}" in said


def test_the_prefix_of_an_environment(tmp_path: Path, cmake: Callable[..., str]) -> None:
    """share/cmake/aotc of the wheel asks the command beside it where the package is."""
    prefix = tmp_path / "prefix"
    shutil.copytree(FOLDER / "prefix", prefix / "share" / "cmake" / "aotc")
    (prefix / "bin").mkdir()
    script = prefix / "bin" / "aotc"
    script.write_text(f"#!/bin/sh\necho {FOLDER}\n")
    script.chmod(0o755)
    text = "find_package(aotc 0.1 REQUIRED)\nmessage(STATUS ${aotc_VERSION} ${AOTC_EXECUTABLE})\n"
    folder = _project(tmp_path / "p", text)
    said = cmake("-S", folder, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert f"{package.__version__}{script}" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aotc_add_library(x CHIPS sm_90)", "aotc_add_library(x): name SOURCES."),
        ("aotc_add_library(x SHARED STATIC SOURCES a)", "SHARED or STATIC, not both"),
        ("aotc_add_library(x SOURCE a)", "unknown arguments: SOURCE;a"),
        ("aotc_add_executable(x SOURCE)", "no value for SOURCE"),
    ],
)
def test_refusals(text: str, words: str, tmp_path: Path, cmake: Callable[..., str]) -> None:
    folder = _project(tmp_path / "p", f"find_package(aotc REQUIRED)\n{text}\n")
    with pytest.raises(AssertionError) as failure:
        cmake("-S", folder, "-B", tmp_path / "b", f"-Daotc_DIR={FOLDER}")
    assert words in str(failure.value)


def test_without_the_command(tmp_path: Path, cmake: Callable[..., str]) -> None:
    copy = shutil.copytree(FOLDER, tmp_path / "lonely" / "cmake")
    shutil.copy(FOLDER.parent / "version.py", tmp_path / "lonely")
    folder = _project(tmp_path / "p", "find_package(aotc REQUIRED)\n")
    with pytest.raises(AssertionError, match="AOTC_EXECUTABLE=/path/to/bin/aotc"):
        cmake(
            *("-S", folder, "-B", tmp_path / "b", f"-Daotc_DIR={copy}"),
            *("-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF", *_generator("Ninja")),
        )
