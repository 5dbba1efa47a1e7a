"""What targets bring, and that others ask them for it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from helpers.command import REPOSITORY, SAMPLES, process_environment

from aotc.target import TARGETS

# What imports a module of one target from outside of `aotc/targets`.
NAMES_A_TARGET = {
    # --no-cpu-kernels and --emit cpu-mlir do not go together.
    ("aotc/request_words.py", "aotc.targets.cpu.artifacts"),
}

# A third target: what a folder of its own would have, and the table that has it.
COMMAND = """
import sys
from types import ModuleType

from aotc.artifact_kind import MLIR, ArtifactKind
from aotc import target
from aotc.toolchain.spec import ToolSpec

CODE = ArtifactKind(
    "third-code", "targets.third.make", ("{name}.third",), takes=(MLIR,), needs="module"
)


def make(build, outlined):
    from aotc.building.results import KernelCode

    from aotc.analysis.gpu_modules import gpu_modules, runs_on
    from aotc.building.results import DeviceImage
    from aotc.kernels.family import CPU
    from aotc.ops import symbol_of

    names = [symbol_of(op) for op in gpu_modules(outlined.module) if runs_on(op) != CPU]
    if "imageless" in outlined.source.name:
        names = ()
    for name in names:
        build.write(f"{name}.image", f"the third's image of {name}")
    return KernelCode(
        images=tuple(DeviceImage(name, f"{name}.image") for name in names),
        files=build.texts(CODE, "".join(f"{name}\\n" for name in names)),
    )


class Third:
    kinds, described, embedded, linked = (CODE,), CODE, CODE, ()
    # The runtime has the driver of CUDA, too.
    tools = (
        ToolSpec("third-linker", "links", ("third",), ("bin/third",)),
        ToolSpec("third-packer", "compresses", ("third",), ("bin/pack",), is_optional=True),
        ToolSpec("third-viewer", "shows", ("third",), ("bin/view",), decides_artifacts=False),
        *(target.TARGETS[0].tools if "alone" in sys.argv else ()),
    )
    native_chips = check_devices = passes = lambda self: ()
    gpus_for = lambda self, kernel, chips: ()
    find_abilities = lambda self, checks: ()
    given_binaries = lambda self, source: ()
    image_format = lambda self, view: None
    find_images = lambda self, view: iter(())
    image_text = lambda self, image, content, environment, overrides: ""


sys.modules["aotc.targets.third"] = module = ModuleType("aotc.targets.third")
module.make = make
cuda, cpu = target.TARGETS
target.TARGETS = (*((Third(),) if "alone" in sys.argv else (cuda, Third())), cpu)
if "alone" in sys.argv:
    sys.argv.remove("alone")

from aotc.cli import main

sys.exit(main(sys.argv[1:]))
"""


def test_what_others_take_is_among_the_kinds() -> None:
    for target in TARGETS:
        kinds = set(target.kinds)
        assert {target.described, target.embedded, *target.linked} <= kinds
        # The host's half is lowered in between: see `aotc.artifacts.KINDS`.
        assert all(kind.needs == "module" for kind in kinds - set(target.linked))


def test_others_do_not_name_a_target() -> None:
    named = set()
    prefixes = ("aotc.targets.cuda", "aotc.targets.cpu")
    for path in sorted((REPOSITORY / "aotc").rglob("*.py")):
        place = path.relative_to(REPOSITORY).as_posix()
        if place.startswith("aotc/targets/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            named |= {(place, one) for one in modules if one.startswith(prefixes)}
    assert named == NAMES_A_TARGET


# A kind more of CUDA's: a row of its table and a function.
WITH_SASS = """
import sys

from aotc.artifact_kind import ArtifactKind
from aotc.targets.cuda import artifacts

artifacts.KINDS += (
    ArtifactKind(
        "sass",
        "targets.cuda.stages.disassemble",
        ("{gpu_module}.{chip}.sass",),
        takes=(artifacts.CUBIN,),
        needs="module",
    ),
)

from aotc.cli import main

sys.exit(main(sys.argv[1:]))
"""


def run(*arguments: str | Path, command: str = COMMAND) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", command, *map(str, arguments)],
        env=process_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_third_target_is_a_folder_and_a_row() -> None:
    """Its kinds, stages and tools are there by what the target says, and by nothing else."""
    told = run("build", SAMPLES / "saxpy.mlir", "--emit", "third-code", "-o", "-")
    assert told.stdout == "saxpy_kernels\n", told.stderr
    listed = "".join(run("build", "-h").stdout.split())  # which breaks lines at hyphens
    assert "cpu-mlir,third-code,fatbin" in listed
    # What decides no artifact has no option of a build.
    assert "--third-linker" in listed
    assert "--third-packer" in listed
    assert "--third-viewer" not in listed


def test_a_new_kind_of_images_is_a_row(tmp_path: Path) -> None:
    """The stages before it know that -o has room for one file."""
    place = tmp_path / "out"
    built = run("build", SAMPLES / "saxpy.mlir", "--emit", "sass", "-o", place, command=WITH_SASS)
    chips = ("sm_80", "sm_90", "sm_100", "sm_120")
    names = ", ".join(f"saxpy_kernels.{chip}.sass" for chip in chips)
    assert f"-o {place} has room for one file, and the build makes 4: {names}. " in built.stderr


def test_a_third_targets_image_is_in_the_program(tmp_path: Path) -> None:
    """With the CPU beside it, and without CUDA: the program runs on the CPU here."""
    program = tmp_path / "attention"
    built = run("alone", "build", SAMPLES / "attention.mlir", "-o", program, "--no-cache")
    assert built.returncode == 0, built.stderr
    assert b"the third's image of attention_kernels" in program.read_bytes()
    sizes = [word for name in "qkv" for word in ("--dim", f"{name}=2x8x16")]
    command = [program, "--device", "cpu", "-q", *sizes]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_target_without_an_image_is_no_cpu(tmp_path: Path) -> None:
    """Where nobody made an image of a module for GPUs, it is not the CPU alone in silence."""
    source = tmp_path / "imageless.mlir"
    source.write_bytes((SAMPLES / "saxpy.mlir").read_bytes())
    built = run("alone", "build", source, "-o", tmp_path / "saxpy", "--no-cache")
    assert built.returncode == 4
    assert "No target made an image of saxpy_kernels." in built.stderr


def test_two_targets_make_no_image_of_one_module(tmp_path: Path) -> None:
    """Neither is taken in silence."""
    built = run("build", SAMPLES / "saxpy.mlir", "-o", tmp_path / "saxpy", "--no-cache")
    assert built.returncode == 4
    assert "Two targets made an image of saxpy_kernels." in built.stderr
