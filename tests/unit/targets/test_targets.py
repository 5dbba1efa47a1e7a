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
    # aotc inspect --ptx.
    ("aotc/inspect/images.py", "aotc.targets.cuda.images.ptx"),
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

    entries = ", ".join(entry.name for entry in outlined.entries)
    return KernelCode(files=build.texts(CODE, f"{entries}\\n"))


class Third:
    kinds, described, embedded, linked = (CODE,), CODE, CODE, ()
    tools = (ToolSpec("third-linker", "links", ("third",), ("bin/third",)),)
    given_binaries = lambda self, source: ()


sys.modules["aotc.targets.third"] = module = ModuleType("aotc.targets.third")
module.make = make
target.TARGETS += (Third(),)

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


def test_a_third_target_is_a_folder_and_a_row() -> None:
    """Its kinds, stages and tools are there by what the target says, and by nothing else."""

    def run(*arguments: str | Path) -> str:
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *map(str, arguments)],
            env=process_environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    told = run("build", SAMPLES / "saxpy.mlir", "--emit", "third-code", "-o", "-")
    assert told == "saxpy\n"
    listed = "".join(run("build", "-h").split())  # which breaks lines at hyphens
    assert "host-mlir,third-code,cpu-mlir" in listed
    assert "--third-linker" in listed
