"""Packages and compilers for the tests of programs that link a library of aotc's."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.command import SAMPLES, build_here

from aotc.toolchain import Toolchain

CONSUMERS = SAMPLES / "consumers"
DATA = Path(__file__).resolve().parent / "data"
# What a strict project compiles with. A header that warns is a header that is not included.
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
STRICT_C = ("-std=c11", *STRICT, "-Wstrict-prototypes", "-Wmissing-prototypes")
SYSTEM_LIBRARIES = ("-lpthread", "-ldl", "-lm")


@dataclass(frozen=True)
class Package:
    """What `aotc build --emit shared,static -o root/` made, for one library of it."""

    root: Path
    name: str

    @property
    def include(self) -> str:
        return f"-I{self.root / 'include'}"

    @property
    def header(self) -> Path:
        return self.root / "include" / f"{self.name}.h"

    @property
    def shared(self) -> Path:
        return self.root / "lib" / f"lib{self.name}.so"

    @property
    def static(self) -> Path:
        return self.root / "lib" / f"lib{self.name}.a"

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.root / f"{self.name}.json").read_text()))

    def link(self, kind: str) -> list[str]:
        """The words that link the static or the shared library into a program."""
        if kind == "static":
            return [str(self.static), *SYSTEM_LIBRARIES]
        folder = self.shared.parent
        return [f"-L{folder}", f"-l{self.name}", f"-Wl,-rpath,{folder}"]


class Packages:
    """Builds packages into a folder that all workers share, each once, and moves them once: none
    is used where aotc put it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(
        self,
        *sources: Path,
        prefix: str = "",
        runtime: str = "static",
        emit: str = "shared,static",
    ) -> list[Package]:
        """A package with a library of each source."""
        words = [*map(str, sources), prefix, runtime, emit]
        key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
        folder = self._folder / key
        folder.mkdir(parents=True, exist_ok=True)
        moved = folder / "moved here"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not moved.exists():
                made = folder / "made"
                shutil.rmtree(made, ignore_errors=True)
                for source in sources:
                    _build(source, made, prefix, runtime, emit)
                made.rename(moved)
        return [Package(moved, f"{prefix}{source.stem}") for source in sources]


def _build(source: Path, out: Path, prefix: str, runtime: str, emit: str) -> None:
    # One chip: kernels run on the CPU here, and the other images would only cost time.
    options = ("--chip", "sm_90", "--ptx", "none", "--runtime", runtime)
    names = ("--prefix", prefix) if prefix else ()
    build_here(source, "--emit", emit, *options, *names, "-o", f"{out}/")


@dataclass(frozen=True)
class Compiler:
    """A C and a C++ compiler, each one file."""

    name: str
    c: Path
    cxx: Path

    def program(
        self,
        folder: Path,
        source: Path,
        *words: str,
        name: str = "program",
    ) -> Path:
        """The program of one source file; `words` are options and what it is linked with.

        A .c file is compiled as C++ if the words have a C++ standard.
        """
        is_cxx = any(word.startswith("-std=c++") for word in words)
        place = folder / name
        # Libraries come behind what needs them.
        options = [word for word in words if _is_for_compiler(word)]
        libraries = [word for word in words if not _is_for_compiler(word)]
        run(
            [
                *(self.cxx if is_cxx else self.c, *options),
                *("-x", "c++" if is_cxx else "c", source, "-x", "none"),
                *(*libraries, "-o", place),
            ],
            cwd=folder,
        )
        return place


def _is_for_compiler(word: str) -> bool:
    return word.startswith(("-std", "-W", "-f", "-I", "-D")) and not word.startswith("-Wl,")


def find_gcc() -> Compiler | None:
    c, cxx = shutil.which("gcc"), shutil.which("g++")
    return Compiler("gcc", Path(c), Path(cxx)) if c and cxx else None


def zig_compiler(folder: Path) -> Compiler:
    """`zig cc` and `zig c++` as two scripts in `folder`: build systems want one word."""
    zig = Toolchain(os.environ).zig.path
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    for name, word in (("zig-cc", "cc"), ("zig-c++", "c++")):
        place = folder / name
        place.write_text(f'#!/bin/sh\nexec {shlex.quote(str(zig))} {word} "$@"\n')
        place.chmod(0o755)
        places.append(place)
    return Compiler("zig", *places)


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """What the command prints; fails the test with all its words if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        env=dict(env) if env is not None else None,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def run_program(program: Path, *arguments: str | Path) -> str:
    """Runs a program on the CPU device, in an environment that says nothing else."""
    return run([program, *arguments], env={"AOTC_DEVICE": "cpu"})
