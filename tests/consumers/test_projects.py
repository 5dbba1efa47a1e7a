"""The projects of samples/consumers, as a stranger uses them: each is built and run."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from consumers.support import (
    CONSUMERS,
    STRICT,
    STRICT_C,
    Compiler,
    Package,
    Packages,
    run,
    run_program,
)
from helpers.command import SAMPLES

PROGRAMS = {
    "c_shared": "C: 4096 sums are right\n",
    "c_static": "C: 4096 sums are right\n",
    "cxx_shared": "C++: 4096 sums are right\n",
    "cxx_static": "C++: 4096 sums are right\n",
}


@pytest.fixture
def consumers(tmp_path: Path) -> Path:
    """A copy of samples/consumers: what is built stays out of the repository."""
    return Path(shutil.copytree(CONSUMERS, tmp_path / "consumers"))


def environment(**more: str) -> dict[str, str]:
    """This one, without what would say where libraries and packages are."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LD_", "PKG_CONFIG", "CMAKE", "MAKE"))
        and key not in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPATH", "LIBRARY_PATH")
    }
    return {**kept, **more}


def check_programs(folder: Path) -> None:
    assert {name: run_program(folder / name) for name in PROGRAMS} == PROGRAMS


# --- Build systems -------------------------------------------------------------------


def cmake(source: Path, package: Path, compiler: Compiler, *options: str) -> Path:
    """Configures and builds; where the programs are."""
    cmake_module = pytest.importorskip("cmake")
    program = Path(cmake_module.CMAKE_BIN_DIR) / "cmake"
    build = source / "build"
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    configure = [
        *(program, "-S", source, "-B", build, "-G", generator, f"-DCMAKE_PREFIX_PATH={package}"),
        *(f"-DCMAKE_C_COMPILER={compiler.c}", f"-DCMAKE_CXX_COMPILER={compiler.cxx}"),
    ]
    run([*configure, "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", *options], env=environment())
    run([program, "--build", build], env=environment())
    return build


@pytest.mark.exhaustive
def test_cmake(consumers: Path, package: Package, compiler: Compiler) -> None:
    check_programs(cmake(consumers / "cmake", package.root, compiler))


def test_cmake_finds_the_package_by_its_own_variable(
    consumers: Path, package: Package, any_compiler: Compiler
) -> None:
    folder = package.root / "lib" / "cmake" / "vector_add"
    build = cmake(consumers / "cmake", Path("/"), any_compiler, f"-Dvector_add_DIR={folder}")
    check_programs(build)


def test_cmake_with_a_static_library_alone(
    consumers: Path, packages: Packages, any_compiler: Compiler
) -> None:
    """`NAME::NAME` is then the static one."""
    (package,) = packages.build(SAMPLES / "vector_add.mlir", emit="static")
    assert not package.shared.exists()
    check_programs(cmake(consumers / "cmake", package.root, any_compiler))


def test_cmake_with_the_runtime_as_a_library(
    consumers: Path, packages: Packages, any_compiler: Compiler
) -> None:
    (package,) = packages.build(SAMPLES / "vector_add.mlir", runtime="shared")
    check_programs(cmake(consumers / "cmake", package.root, any_compiler))


def make(folder: Path, package: Package, compiler: Compiler) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    pytest.importorskip("pkgconf")
    words = [f"PKG_CONFIG={sys.executable} -m pkgconf", f"CC={compiler.c}", f"CXX={compiler.cxx}"]
    path = str(package.root / "lib" / "pkgconfig")
    run(["make", "-C", folder, *words], env=environment(PKG_CONFIG_PATH=path))


@pytest.mark.exhaustive
def test_make_with_pkg_config(consumers: Path, package: Package, compiler: Compiler) -> None:
    make(consumers / "make", package, compiler)
    check_programs(consumers / "make")


def test_make_with_the_runtime_as_a_library(
    consumers: Path, packages: Packages, any_compiler: Compiler
) -> None:
    """The shared library finds it; who links the static one says where it is."""
    (package,) = packages.build(SAMPLES / "vector_add.mlir", runtime="shared")
    make(consumers / "make", package, any_compiler)
    for name in ("c_shared", "cxx_shared"):
        assert run_program(consumers / "make" / name) == PROGRAMS[name]


def test_pkg_config_with_a_static_library_alone(
    packages: Packages, any_compiler: Compiler, tmp_path: Path
) -> None:
    """`pkg-config --static --libs` is then enough."""
    pytest.importorskip("pkgconf")
    (package,) = packages.build(SAMPLES / "vector_add.mlir", emit="static")
    path = str(package.root / "lib" / "pkgconfig")
    command = [sys.executable, "-m", "pkgconf", "--static", "--cflags", "--libs", "vector_add"]
    words = shlex.split(run(command, env=environment(PKG_CONFIG_PATH=path)))
    program = any_compiler.program(tmp_path, CONSUMERS / "main.c", *words)
    assert run_program(program) == PROGRAMS["c_static"]


@pytest.mark.exhaustive
def test_scons(consumers: Path, package: Package, compiler: Compiler) -> None:
    command = [sys.executable, "-m", "SCons", "-Q", "-C", consumers / "scons"]
    words = [f"package={package.root}", f"CC={compiler.c}", f"CXX={compiler.cxx}"]
    run([*command, *words], env=environment())
    check_programs(consumers / "scons")


def test_ctypes(package: Package) -> None:
    """Needs NumPy and nothing of aotc's: Python is told to find no more than it brings itself."""
    assert "aotc" not in (CONSUMERS / "ctypes" / "add.py").read_text().partition('"""\n\n')[2]
    out = run(
        [sys.executable, CONSUMERS / "ctypes" / "add.py", package.root],
        env={"AOTC_DEVICE": "cpu"},
        cwd=package.root,
    )
    refusal, sums = out.splitlines()
    assert "'x'" in refusal
    assert "-1" in refusal
    assert sums == "Python: 4096 sums are right"


# --- Languages -----------------------------------------------------------------------


def test_c11_without_a_warning(package: Package, compiler: Compiler, tmp_path: Path) -> None:
    words = (*STRICT_C, package.include, *package.link("shared"))
    program = compiler.program(tmp_path, CONSUMERS / "main.c", *words)
    assert run_program(program) == PROGRAMS["c_shared"]


@pytest.mark.parametrize(
    "words",
    [("-std=c++17",), ("-std=c++20",), ("-std=c++23",), ("-std=c++17", "-fno-exceptions")],
    ids=" ".join,
)
def test_cxx_without_a_warning(
    words: tuple[str, ...], package: Package, compiler: Compiler, tmp_path: Path
) -> None:
    options = (*words, *STRICT, "-Wold-style-cast", package.include, *package.link("static"))
    program = compiler.program(tmp_path, CONSUMERS / "main.cpp", *options)
    assert run_program(program) == PROGRAMS["cxx_static"]


def test_programs_fail_in_words(package: Package, any_compiler: Compiler, tmp_path: Path) -> None:
    """Without a device that there is: no crash, but the library's words and an exit code."""
    sources = ((CONSUMERS / "main.c", "-std=c11"), (CONSUMERS / "main.cpp", "-std=c++17"))
    for source, standard in sources:
        words = (standard, package.include, *package.link("static"))
        program = any_compiler.program(tmp_path, source, *words)
        with pytest.raises(AssertionError, match="AOTC_DEVICE"):
            run([program], env={"AOTC_DEVICE": "abacus"})
