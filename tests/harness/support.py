"""Builds programs of the harness, hand-written tables and a fake runtime; data for their tests.

Each program exists twice: built by `zig cc`, as aotc builds it, with undefined behaviour trapped;
and by gcc with the address and undefined-behaviour sanitizers, where gcc is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TESTS = Path(__file__).parent
ROOT = TESTS.parent.parent
HARNESS = ROOT / "templates" / "harness"
RUNTIME = ROOT / "runtime_c"
WARNINGS = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pedantic")
INCLUDES = (f"-I{HARNESS}", f"-I{RUNTIME / 'include'}", f"-I{TESTS}")
ZIG_CC = (sys.executable, "-m", "ziglang", "cc")
GCC = shutil.which("gcc")
SANITIZER_EXIT_CODE = 98

Array = NDArray[Any]


def harness_sources() -> list[Path]:
    """What is linked into a program whose table has entries."""
    return sorted(file for file in HARNESS.glob("*.c") if file.name != "program_main.c")


@dataclass
class Build:
    """One compiler with its flags, and what it has built so far."""

    name: str
    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)
    programs: dict[str, Path] = field(default_factory=dict)

    def compile(self, sources: list[Path]) -> list[str]:
        """One command a file: `zig cc -c` makes fewer objects than it is given files."""

        def compile_one(source: Path) -> str:
            path = str(self.folder / f"{source.stem}.o")
            command = [*self.command, *WARNINGS, *INCLUDES, "-c", str(source), "-o", path]
            subprocess.run(command, check=True)
            return path

        with ThreadPoolExecutor(max_workers=2) as workers:
            return list(workers.map(compile_one, sources))

    def program(self, name: str) -> Path:
        """The executable of programs/NAME.c, linked on first use."""
        if name not in self.programs:
            objects = self.compile([TESTS / "programs" / f"{name}.c"])
            if name == "own_main":
                objects += self.compile([HARNESS / "program_main.c"])
            else:
                # unit has a main of its own.
                without = "main.o" if name == "unit" else ""
                objects += [file for file in self.objects if Path(file).name != without]
            objects += [str(self.folder / "fake_runtime.o")]
            path = self.folder / name
            subprocess.run([*self.command, *objects, "-lm", "-o", str(path)], check=True)
            self.programs[name] = path
        return self.programs[name]


@dataclass(frozen=True)
class Ran:
    """What a program said, and the exit code it said it with."""

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Ran]
# Of an array, as a file of this name in the folder that programs run in.
Save = Callable[..., str]


def report(run: Run, *words: object, **environment: str) -> dict[str, Any]:
    """The JSON object that a program prints; it succeeds."""
    ran = run(*map(str, words), "--json", **environment)
    assert ran.code == 0, ran.stderr
    value = json.loads(ran.stdout)
    assert isinstance(value, dict)
    return value


def make_build(name: str, folder: Path) -> Build:
    if name == "zig":
        # Trapping needs no sanitizer runtime, which zig would have to build first.
        flags = ["-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined"]
        build = Build(name, (*ZIG_CC, *flags), folder)
    else:
        assert GCC is not None
        flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        options = f"exitcode={SANITIZER_EXIT_CODE}:allocator_may_return_null=1"
        build = Build(name, (GCC, *flags), folder, {"ASAN_OPTIONS": options})
    build.objects = build.compile(harness_sources())
    build.compile([TESTS / "fake_runtime.c"])
    return build


def documented_code() -> dict[str, Callable[..., Array]]:
    """The functions that docs/harness.md states the generator with."""
    text = (ROOT / "docs" / "harness.md").read_text()
    names: dict[str, Callable[..., Array]] = {}
    with np.errstate(over="ignore"):
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(block, {"np": np}, names)
    return names


aotc_random = documented_code()["aotc_random"]
bfloat16_bits = documented_code()["bfloat16_bits"]

# The entries copy_NAME of the program kernels, and NumPy's type of their elements; of bfloat16,
# its bits.
COPIED_DTYPES = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    "f16": "float16",
    "bf16": "uint16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}


def sample(dtype: str, shape: tuple[int, ...], seed: int = 1) -> Array:
    """Any bits but NaN, so that byte order and size mistakes show."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    values = generator.standard_normal(shape)
    if kind == "c":
        return (values + 1j * generator.standard_normal(shape)).astype(dtype)
    return values.astype(dtype)


def clean_environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), **more}
