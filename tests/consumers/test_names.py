"""What libraries show, and that several in one program are nothing to each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from consumers.support import (
    DATA,
    STRICT,
    STRICT_C,
    Compiler,
    Package,
    Packages,
    run_program,
    zig_compiler,
)
from helpers.command import SAMPLES, Outcome
from helpers.elf import Elf, archive_members

from aotc.host.elf import global_symbols

VECTOR_ADD = SAMPLES / "vector_add.mlir"
DOT = SAMPLES / "dot.mlir"
LANGUAGES = {"c": STRICT_C, "cxx": ("-std=c++17", *STRICT)}
RUNTIME = "libmlir_cuda_runtime.so"


def names_in_manifest(package: Package) -> set[str]:
    manifest = package.manifest
    entries = (name for entry in manifest["entries"] for name in entry["functions"].values())
    return {*manifest["functions"].values(), *entries}


def defined(package: Package) -> set[str]:
    """What the static library defines for others."""
    (content,) = archive_members(package.static.read_bytes()).values()
    return {name for name, is_here in global_symbols(content).items() if is_here}


# --- What is shown -------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "one_"])
@pytest.mark.parametrize("source", [VECTOR_ADD, DOT], ids=lambda source: source.stem)
def test_a_library_shows_what_its_manifest_names(
    source: Path, prefix: str, packages: Packages
) -> None:
    (package,) = packages.build(source, prefix=prefix)
    names = names_in_manifest(package)
    assert Elf(package.shared).exports == names
    assert defined(package) == names


def test_the_names_of_a_library(package: Package) -> None:
    assert names_in_manifest(package) == {
        *("vector_add", "vector_add_async", "vector_add_memref", "_mlir_ciface_vector_add"),
        *("vector_add_last_error", "vector_add_status", "vector_add_clear_error"),
        *("vector_add_set_device", "vector_add_set_error_hook", "vector_add_free"),
        *("vector_add_free_async", "vector_add_copy", "vector_add_set_allocator"),
        *("vector_add_set_workspace", "vector_add_unload"),
    }


def test_everything_carries_the_prefix(packages: Packages) -> None:
    (package,) = packages.build(VECTOR_ADD, prefix="one_")
    assert names_in_manifest(package) == {
        *("one_vector_add", "one_vector_add_async", "one_vector_add_memref"),
        *("_mlir_ciface_one_vector_add", "one_last_error", "one_status", "one_clear_error"),
        *("one_set_device", "one_set_error_hook", "one_free", "one_unload"),
        *("one_free_async", "one_copy", "one_set_allocator", "one_set_workspace"),
    }
    assert Elf(package.shared).soname == "libone_vector_add.so"
    assert package.header.is_file()


def test_a_static_library_needs_the_c_library_alone(package: Package) -> None:
    """Nothing of ours is left for the linker to find."""
    (content,) = archive_members(package.static.read_bytes()).values()
    undefined = {name for name, is_here in global_symbols(content).items() if not is_here}
    assert "malloc" in undefined
    assert [name for name in undefined if name.startswith(("aotc", "mgpu", "_mlir"))] == []


# --- Names that C and C++ have for other things --------------------------------------

ENTRY = """
func.func @f(%stream: memref<?xf32>, %m0: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %m0, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %stream[%i] : memref<?xf32>
    memref.store %a, %m0[%i] : memref<?xf32>
  }
  return
}
"""


def test_libraries_may_be_called_as_anything(
    aotc: Callable[..., Outcome], any_compiler: Compiler, tmp_path: Path
) -> None:
    """As what their headers share, as a namespace, as a keyword; all in one program."""
    includes = ""
    for name in ("buffer", "status", "std", "int", "2 d"):
        source = tmp_path / f"{name}.mlir"
        entry = f"f_{name.replace(' ', '_')}"
        source.write_text(ENTRY.replace("@f", f"@{entry}").replace("%stream", "%queue"))
        aotc("build", source, "--emit", "header", "-o", f"{tmp_path}/").succeeded()
        includes += f'#include "{name}.h"\n'
    program = tmp_path / "main.c"
    program.write_text(f"{includes}int main(void) {{\n  return 0;\n}}\n")
    for words in LANGUAGES.values():
        any_compiler.program(tmp_path, program, *words, f"-I{tmp_path}")


def test_an_argument_may_be_called_stream(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    options = ("--emit", "shared", "--chip", "sm_90", "--ptx", "none", "-o", f"{tmp_path}/")
    aotc("build", mlir_file(ENTRY), *options).succeeded()


# --- Two libraries in one program ----------------------------------------------------

MODES = [("static", "static"), ("shared", "shared"), ("static", "shared"), ("shared", "static")]


@pytest.mark.parametrize("modes", MODES, ids="+".join)
@pytest.mark.parametrize("language", LANGUAGES)
def test_one_module_under_two_prefixes(
    modes: tuple[str, str],
    language: str,
    packages: Packages,
    any_compiler: Compiler,
    tmp_path: Path,
) -> None:
    both = [packages.build(VECTOR_ADD, prefix=prefix)[0] for prefix in ("one_", "two_")]
    check_two_libraries(both, modes, [*LANGUAGES[language]], any_compiler, tmp_path)


@pytest.mark.parametrize("modes", MODES, ids="+".join)
def test_two_modules(
    modes: tuple[str, str], packages: Packages, any_compiler: Compiler, tmp_path: Path
) -> None:
    both = [packages.build(source)[0] for source in (VECTOR_ADD, DOT)]
    check_two_libraries(both, modes, [*STRICT_C, "-DWITH_DOT"], any_compiler, tmp_path)


@pytest.mark.exhaustive
def test_two_static_libraries_with_zig(packages: Packages, tmp_path: Path) -> None:
    """lld is not ld: it has its own idea of what two archives may both have."""
    both = [packages.build(source)[0] for source in (VECTOR_ADD, DOT)]
    words = [*STRICT_C, "-DWITH_DOT"]
    check_two_libraries(both, ("static", "static"), words, zig_compiler(tmp_path), tmp_path)


def check_two_libraries(
    both: list[Package], modes: tuple[str, str], words: list[str], compiler: Compiler, folder: Path
) -> None:
    for package, mode in zip(both, modes, strict=True):
        words += [package.include, *package.link(mode)]
    program = compiler.program(folder, DATA / "two_libraries.c", *words)
    assert run_program(program) == "both are right\n"


@pytest.mark.parametrize("prefixes", [("", ""), ("one_", "two_")], ids=["copies", "prefixes"])
def test_two_libraries_that_are_loaded(
    prefixes: tuple[str, str], packages: Packages, any_compiler: Compiler, tmp_path: Path
) -> None:
    """Two copies of one file have the same names, and still are two libraries."""
    words: list[str | Path] = []
    for i, prefix in enumerate(prefixes):
        (package,) = packages.build(VECTOR_ADD, prefix=prefix)
        place = tmp_path / str(i) / package.shared.name
        place.parent.mkdir()
        shutil.copy(package.shared, place)
        words += [place, f"{prefix}vector_add", package.manifest["functions"]["last_error"]]
    # dlsym's pointer becomes a function's, which ISO C does not have.
    options = ("-std=c11", "-Wall", "-Werror", "-ldl")
    program = any_compiler.program(tmp_path, DATA / "two_loaded.c", *options)
    assert run_program(program, *words) == "both are right\n"


# --- The runtime as a library --------------------------------------------------------


def test_libraries_share_a_runtime_beside_them(
    packages: Packages, any_compiler: Compiler, tmp_path: Path
) -> None:
    """The package was moved since it was made, and nothing says where it is now but $ORIGIN."""
    both = packages.build(VECTOR_ADD, DOT, runtime="shared")
    words = [*STRICT_C, both[0].include]
    for package in both:
        assert RUNTIME in Elf(package.shared).needed
        assert Elf(package.shared).exports == names_in_manifest(package)
        words += package.link("shared")
    assert (both[0].shared.parent / RUNTIME).is_file()
    program = any_compiler.program(tmp_path, DATA / "one_runtime.c", *words)
    assert run_program(program) == "runtimes: 1\n"


def test_static_libraries_share_a_runtime(
    packages: Packages, any_compiler: Compiler, tmp_path: Path
) -> None:
    """The runtime is then the program's to find."""
    both = packages.build(VECTOR_ADD, DOT, runtime="shared")
    folder = both[0].shared.parent
    for package in both:
        assert defined(package) == names_in_manifest(package)
    static = [str(package.static) for package in both]
    runtime = [str(folder / RUNTIME), f"-Wl,-rpath,{folder}"]
    words = [*STRICT_C, both[0].include, *static, *runtime]
    program = any_compiler.program(tmp_path, DATA / "one_runtime.c", *words)
    assert run_program(program) == "runtimes: 1\n"


def test_the_runtime_is_no_part_of_other_libraries(package: Package) -> None:
    assert RUNTIME not in Elf(package.shared).needed
    assert not (package.shared.parent / RUNTIME).exists()
