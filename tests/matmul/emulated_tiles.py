"""Libraries whose instructions on tile registers (AMX) are calls of functions that emulate them, so
that kernels that use them run on processors that lack them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from runtime.support import HOST_TARGET, compile_c, include_flags, runner, toolchain

from aotc.host.compile import HostCompiler
from aotc.kernels.cpu.levels import AMX
from aotc.request import HostTarget
from aotc.toolchain.runtime import runtime_library

_FUNCTIONS = Path(__file__).parent / "emulated_tiles.c"
_INTRINSIC = re.compile(r"@llvm\.x86\.(tile\w+|ldtilecfg|tdp\w+)\(")
_LEVEL = re.compile(rf"(icmp sge i64 %\d+), {AMX}$", re.MULTILINE)
_ALLOWS = re.compile(r"= call i32 %\d+\(ptr %1\)$", re.MULTILINE)
_FEATURES = re.compile(r'"target-features"="[^"]*\+amx-tile[^"]*"')

# What the copies of kernels need in addition.
needs_avx512 = pytest.mark.skipif(
    " avx512vl " not in Path("/proc/cpuinfo").read_text(), reason="this processor lacks AVX-512"
)


def emulate_tiles(
    host_ll: Path, library: Path, constants: Mapping[str, bytes] | None = None
) -> None:
    """Makes a shared library of what `aotc build --emit host-ll` wrote, and of its large constants,
    by their names. It always runs the copies of kernels for AMX."""
    text = host_ll.read_text().replace(" immarg", "")
    for pattern, replacement in (
        (_INTRINSIC, r"@emulated_\1("),
        (_LEVEL, r"\1, 1"),
        (_ALLOWS, "= add i32 0, 1"),
        (_FEATURES, ""),
    ):
        text, count = pattern.subn(replacement, text)
        assert count > 0, pattern
    folder = library.parent
    (folder / "changed.ll").write_text(text)
    compiler = HostCompiler(toolchain(), runner(), folder, HostTarget.parse(HOST_TARGET), 1, False)
    compiler.compile_ir("changed.ll", "changed.o")
    data = [".section .rodata"]
    for name, content in (constants or {}).items():
        (folder / f"{name}.bin").write_bytes(content)
        data += [f".globl {name}", f".hidden {name}", ".p2align 6", f"{name}:"]
        data.append(f'.incbin "{folder}/{name}.bin"')
    (folder / "constants.s").write_text("\n".join([*data, ""]))
    runtime = runtime_library(toolchain(), runner(), HOST_TARGET, kind="static")
    compile_c(
        [
            *("-shared", "-fPIC", "-O1", *include_flags(), folder / "changed.o", _FUNCTIONS),
            *(folder / "constants.s", runtime, "-pthread", "-ldl", "-lm", "-o", library),
        ],
        making=library.name,
    )
