"""The SCons tool: `env.AotcProgram` and its family, by SCons itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from consumers.support import run_program
from helpers.command import SAMPLES

Scons = Callable[..., str]
UP_TO_DATE = "scons: `.' is up to date.\n"
START = """\
import aotc.scons
env = Environment(tools=["default", "aotc"], toolpath=[aotc.scons.toolpath()])
"""


def _project(folder: Path, text: str, *modules: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "SConstruct").write_text(START + text)
    for module in modules:
        shutil.copy(SAMPLES / "vector_add.mlir", folder / module)
    return folder


def _built(output: str) -> list[str]:
    """The modules that were built, by the lines of the commands."""
    lines = [line for line in output.splitlines() if " -m aotc build " in line]
    return sorted(Path(line.split(" build ")[1].split()[0]).name for line in lines)


def test_the_sample(sample: Callable[[str], Path], scons: Scons, cc: dict[str, Path]) -> None:
    """Builds and runs; not again; again for another module, and for other options; cleans."""
    folder = sample("scons-from-source")
    words = [*(f"{key}={path}" for key, path in cc.items()), "chips=sm_90", "-j2"]
    first = scons(folder, *words)
    assert _built(first) == ["dot.mlir", "vector_add.mlir", "vector_add.mlir"]
    assert run_program(folder / "c_shared") == "C: 4096 sums are right\n"
    assert run_program(folder / "cxx_static") == "C++: 4096 sums are right\n"
    run_program(folder / "dot", "--dim", "x=4", "--dim", "y=4")
    assert scons(folder, *words) == UP_TO_DATE
    with (folder / "../../dot.mlir").open("a") as module:
        module.write("// changed\n")
    assert _built(scons(folder, *words)) == ["dot.mlir"]
    assert _built(scons(folder, *words, "-n", "chips=sm_80")) == [
        *("dot.mlir", "vector_add.mlir", "vector_add.mlir")
    ]
    scons(folder, *words, "-c")
    left = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert left == {"SConstruct", ".sconsign.dblite"}


def test_a_cache_of_scons_gives_back(tmp_path: Path, scons: Scons) -> None:
    """A program, which can be run, and each file of a package."""
    text = """
CacheDir("cache")
env.Replace(AOTCCHIPS="sm_90")
env.AotcProgram("one.mlir")
env.AotcStaticLibrary("package", "two.mlir")
"""
    folder = _project(tmp_path / "project", text, "one.mlir", "two.mlir")
    assert _built(scons(folder)) == ["one.mlir", "two.mlir"]
    scons(folder, "-c")
    assert not (folder / "one").exists()
    again = scons(folder)
    assert _built(again) == []
    assert "Retrieved `one' from cache" in again
    assert "Retrieved `package/include/two.h' from cache" in again
    assert "vector_add on cpu" in run_program(
        folder / "one", *(f"--dim={name}=4" for name in "xyz")
    )


@pytest.mark.parametrize("duplicate", [0, 1])
def test_variant_dirs(duplicate: int, tmp_path: Path, scons: Scons) -> None:
    """Outputs go to the variant's folder, and the source stays alone; names may have blanks."""
    text = f"""
env.Replace(AOTCCHIPS=["sm_90"], AOTCFLAGS=["-O1"])
SConscript("src dir/SConscript", variant_dir="out", duplicate={duplicate}, exports="env")
"""
    folder = _project(tmp_path / "a project", text)
    source = _project(folder / "src dir", "", "one.mlir")
    (source / "SConstruct").unlink()
    (source / "SConscript").write_text(
        'Import("env")\nenv.AotcObject("one.mlir")\nenv.AotcSharedLibrary("pack age", "one.mlir")\n'
    )
    scons(folder, "-j2")
    made = {str(file.relative_to(folder / "out")) for file in (folder / "out").rglob("*.*o")}
    assert made == {"one.o", "pack age/lib/libone.so"}
    assert (folder / "out" / "pack age" / "include" / "one.h").is_file()
    assert sorted(file.name for file in source.iterdir()) == ["SConscript", "one.mlir"]
    assert scons(folder) == UP_TO_DATE


def test_what_a_target_depends_on(tmp_path: Path, scons: Scons, other_aotc: Path) -> None:
    """Files that options name, the chips, and the version that another aotc tells."""
    text = f"""
env.Replace(AOTC="{other_aotc}", AOTCCOMSTR="made $TARGET", AOTCCHIPS=Split(ARGUMENTS["chips"]))
env.AotcProgram("one.mlir", AOTCFLAGS="--pipeline @passes --ptxas assembler")
env.AotcProgram("two.mlir")
"""
    folder = _project(tmp_path / "project", text, "one.mlir", "two.mlir")
    for name in ("passes", "assembler"):
        (folder / name).write_text("1")

    def build(chips: str = "sm_90") -> list[str]:
        lines = scons(folder, f"chips={chips}").splitlines()
        return [line for line in lines if line.startswith("made ")]

    assert [build(), build()] == [["made one", "made two"], []]
    for name in ("passes", "assembler"):
        (folder / name).write_text("2")
        assert build() == ["made one"]
    assert build("sm_80 sm_90") == ["made one", "made two"]
    other_aotc.with_suffix(".version").write_text("2")
    assert build("sm_80 sm_90") == ["made one", "made two"]


def test_another_version_of_aotc_builds_again(tmp_path: Path, scons: Scons) -> None:
    text = """
if "identity" in ARGUMENTS:
    aotc.scons.identity = lambda: ARGUMENTS["identity"]
env.AotcObject("one.mlir", AOTCCHIPS="sm_90")
"""
    folder = _project(tmp_path / "project", text, "one.mlir")
    assert _built(scons(folder)) == ["one.mlir"]
    assert scons(folder) == UP_TO_DATE
    assert _built(scons(folder, "-n", "identity=another")) == ["one.mlir"]


def test_all_outputs_are_known(tmp_path: Path, scons: Scons) -> None:
    """Prefix, shared runtime and weights in $AOTCFLAGS count; `-c` leaves no file."""
    text = """
nodes = env.AotcLibrary("package", "weights.mlir", AOTCCHIPS="sm_90",
                        AOTCFLAGS="--prefix my_ --runtime shared --weights package/lib/numbers")
print(*nodes)
"""
    folder = _project(tmp_path / "project", text)
    numbers = "".join(f"{number:08x}" for number in range(512))
    (folder / "weights.mlir").write_text(
        f"""
memref.global "private" constant @w : memref<512xi32> = dense<"0x{numbers}">
func.func @first(%i: index) -> i32 attributes {{llvm.emit_c_interface}} {{
  %w = memref.get_global @w : memref<512xi32>
  %x = memref.load %w[%i] : memref<512xi32>
  return %x : i32
}}
"""
    )
    told = scons(folder).splitlines()[0].split()
    files = [file for file in (folder / "package").rglob("*") if file.is_file()]
    assert told[0] == "package/lib/libmy_weights.so"
    assert sorted(told) == sorted(str(file.relative_to(folder)) for file in files)
    scons(folder, "-c")
    assert [file for file in (folder / "package").rglob("*") if file.is_file()] == []


def test_options_that_there_are_not(tmp_path: Path, scons: Scons) -> None:
    text = 'env.AotcProgram("one.mlir", AOTCFLAGS="--no-such-option")\n'
    folder = _project(tmp_path / "project", text, "one.mlir")
    with pytest.raises(AssertionError, match="AOTCFLAGS: No such option '--no-such-option'"):
        scons(folder)


def test_what_a_front_end_reads_beside_the_source(
    tmp_path: Path, scons: Scons, other_aotc: Path
) -> None:
    text = f"""
from aotc.frontends import registry
beside = registry.Frontend("x", (".x",), None, beside=lambda path: [path.parent / "weights"])
registry.frontend_for = lambda *_: beside
env.Replace(AOTC="{other_aotc}")
env.AotcProgram("model", "model.x")
"""
    folder = _project(tmp_path / "project", text)
    for name in ("model.x", "weights"):
        (folder / name).write_text("1")
    assert "-o model" in scons(folder, "-j2")
    assert scons(folder) == UP_TO_DATE
    (folder / "weights").write_text("2")
    assert "-o model" in scons(folder)
