"""Compiles runtime_c for tests, with the tools that aotc uses."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from helpers.command import REPOSITORY
from helpers.zig import ZIG_CACHE

from aotc.toolchain import Runner, Toolchain

RUNTIME = REPOSITORY / "runtime_c"
SOURCES = sorted((RUNTIME / "src").rglob("*.c"))
HEADERS = [
    RUNTIME / "include" / name
    for name in (
        *("aotc_runtime.h", "aotc_entry.h", "aotc_state.h", "aotc_weights.h"),
        "mlir_cuda_runtime.h",
    )
]
# What programs call: a library of its own.
UTILITIES = sorted((RUNTIME / "programs").glob("*.c"))
UTILITY_HEADERS = [
    RUNTIME / "include" / name
    for name in (
        *("mlir_runner_utils.h", "mlir_async_runtime.h", "mlir_cuda_sparse.h"),
        "aotc_mpi.h",
    )
]
TESTS = RUNTIME / "tests"
FAKE_DRIVER = sorted((TESTS / "fake_driver").glob("*.c"))
HOST_TARGET = "x86_64-linux-gnu.2.28"
TARGETS = (HOST_TARGET, "aarch64-linux-gnu.2.28")

STRICT_FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O1",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    *("-Wall", "-Wextra", "-Werror", "-pedantic"),
    *("-Wmissing-prototypes", "-Wstrict-prototypes", "-Wshadow", "-Wconversion"),
)
# Undefined behaviour ends the process by a signal; it needs no library for that.
SANITIZE_FLAGS = ("-fsanitize=undefined", "-fsanitize-trap=undefined")


@functools.cache
def toolchain() -> Toolchain:
    return Toolchain(os.environ)


@functools.cache
def runner() -> Runner:
    return Runner(os.environ)


def include_flags(*, with_tests: bool = True) -> list[str]:
    folders = ["include", "src", "tests"] if with_tests else ["include", "src"]
    cuda = toolchain().tool("cuda-include").path
    return [*(f"-I{RUNTIME / folder}" for folder in folders), f"-isystem{cuda}"]


def compile_c(arguments: Sequence[str | Path], *, making: str, target: str = HOST_TARGET) -> None:
    """Runs `zig cc` for `target`; a warning is a failure."""
    command = [*toolchain().zig_cc.command, "-target", target, *map(str, arguments)]
    runner().run(command, making=making, env=ZIG_CACHE)


def exported_functions(headers: Sequence[Path] = HEADERS) -> set[str]:
    """What the headers declare for others: every AOTC_API function, and those of a macro for each
    of its types: LIST(DECLARE)."""
    found: set[str] = set()
    for header in headers:
        text = re.sub(r"//.*", "", header.read_text())
        found.update(re.findall(r"^AOTC_API [^;(]*?(\w+)[(;]", text, re.MULTILINE))
        text = re.sub(r" *\\\n", "\n", text)
        macros = dict(re.findall(r"^#define (\w+)\(.*?\)((?:\n +.*)+)", text, re.MULTILINE))
        for listed, declared in re.findall(r"^(\w+)\((\w+)\)$", text, re.MULTILINE):
            for name in re.findall(r"AOTC_API [^;(]*?(\w+)##type\(", macros[declared]):
                found.update(f"{name}{type_}" for type_ in _types_of(listed, macros))
    return found


def _types_of(listed: str, macros: Mapping[str, str]) -> list[str]:
    """The types of a list, and of the lists in it."""
    inner = re.findall(r"^ +(\w{2,})\(X\)", macros[listed], re.MULTILINE)
    own = re.findall(r"X\((\w+), ", macros[listed])
    return [*own, *(type_ for name in inner for type_ in _types_of(name, macros))]


def program_environment(*libraries: Path, **more: str) -> dict[str, str]:
    """An environment in which a program finds these folders' libraries, and no AOTC_ setting."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AOTC_")}
    return {**kept, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), **more}
