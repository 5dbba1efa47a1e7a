"""The harness compiles for every host target, and takes no names but its own."""

from __future__ import annotations

import re
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness.support import GCC, HARNESS, INCLUDES, TESTS, WARNINGS, ZIG_CC, Build

TARGETS = ("x86_64-linux-gnu.2.28", "aarch64-linux-gnu.2.28")


def zig(*words: object) -> None:
    subprocess.run([*ZIG_CC, *map(str, words)], check=True)


def defined_symbols(path: Path) -> set[str]:
    """The names that an ELF object offers to others."""
    data = path.read_bytes()
    (sections_at,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * size) for i in range(count)
    ]
    names = set()
    for header in headers:
        if header[1] != 2:  # not the symbol table
            continue
        strings_at = headers[header[6]][4]
        for at in range(header[4], header[4] + header[5], 24):
            name_at, info, _, section = struct.unpack_from("<IBBH", data, at)
            if info >> 4 != 0 and section != 0:  # not local, and defined here
                start = strings_at + name_at
                names.add(data[start : data.index(b"\0", start)].decode())
    return names


@pytest.mark.parametrize("target", TARGETS)
def test_compiles_for(tmp_path: Path, target: str) -> None:
    """Without a warning; every name starts with harness_, so that a module's names are free."""
    sources = sorted(HARNESS.glob("*.c"))

    def compile_one(source: Path) -> None:
        path = tmp_path / f"{source.stem}.o"
        zig("-target", target, *WARNINGS, *INCLUDES, "-O2", "-c", source, "-o", path)

    with ThreadPoolExecutor(max_workers=2) as workers:
        list(workers.map(compile_one, sources))
    for source in sources:
        for name in defined_symbols(tmp_path / f"{source.stem}.o"):
            is_main = name == "main" and source.name in ("main.c", "program_main.c")
            assert is_main or name.startswith("harness_"), f"{source.name} defines {name}"


def test_generator_is_not_fused(tmp_path: Path) -> None:
    """aarch64 has fused multiply-add; a draw rounded once would differ from NumPy's."""
    for source in ("generator.c", "compare.c"):
        path = tmp_path / "code.s"
        zig("-target", TARGETS[1], *INCLUDES, "-O2", "-S", HARNESS / source, "-o", path)
        code = path.read_text()
        assert "fmul" in code
        assert not re.search(r"\bfn?m(add|la|sub|ls)\b", code), source


@pytest.mark.parametrize("language", ["-std=c11", "-std=c++17"])
def test_table_header(tmp_path: Path, language: str) -> None:
    """The table's header is C11 and C++17."""
    plus = "++" in language
    source = tmp_path / ("table.cpp" if plus else "table.c")
    source.write_text('#include "harness.h"\nint32_t rank(const aotc_value *value);\n')
    command = [*ZIG_CC[:-1], "c++"] if plus else list(ZIG_CC)
    flags = [language, "-Wall", "-Wextra", "-Werror", "-pedantic", *INCLUDES]
    subprocess.run([*command, *flags, "-c", source, "-o", tmp_path / "table.o"], check=True)


def test_own_main_is_linked_alone(build: Build) -> None:
    """program_main.c needs nothing of the harness, and no table: aotc links it alone."""
    assert build.program("own_main").exists()
    source = (TESTS / "programs" / "own_main.c").read_text()
    assert "harness" not in source


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_gcc_optimized(tmp_path: Path) -> None:
    """gcc finds nothing to warn of when it optimizes, which is when it looks closest."""
    sources = [str(source) for source in sorted(HARNESS.glob("*.c"))]
    command = [str(GCC), *WARNINGS, *INCLUDES, "-O2", "-c", *sources]
    subprocess.run(command, cwd=tmp_path, check=True)
