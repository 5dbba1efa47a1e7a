"""The harness's table: C that compiles without a warning, whatever the names are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from helpers.command import REPOSITORY

from aotc.emit.table import generate_table, packed_symbol
from aotc.manifest import Dtype, Entry, Kernel, Manifest, Memory, Value
from aotc.toolchain import Toolchain

ODD = 'x"y\\z??/é\n%d'


def manifest(*entries: Entry, kernels: tuple[Kernel, ...] = (), name: str = "program") -> Manifest:
    return Manifest(name, name, {}, "1.2.3", "x86_64-linux-gnu.2.28", entries, kernels, 3)


ENTRIES = {
    "nothing": Entry("f", (), ()),
    "every_dtype": Entry(
        "f",
        tuple(Value(f"a{d.value}", d.value, d) for d in Dtype),
        tuple(Value(f"result{i}", d.value, d, shape=(i,)) for i, d in enumerate(Dtype)),
    ),
    "layouts": Entry(
        "f",
        (
            Value("scalar", "f32", Dtype.F32),
            Value("rank0", "memref<f32>", Dtype.F32, shape=()),
            Value("plain", "memref<?x4xf32>", Dtype.F32, shape=(None, 4)),
            Value("strided", "m", Dtype.F32, shape=(2, 3), strides=(None, -1), offset=None),
            Value("wide", "m", Dtype.I8, shape=(2**40,), strides=(2**33,), offset=-(2**35)),
        ),
        (
            Value("r", "m", Dtype.F32, shape=(1,), memory=Memory.MANAGED, is_owned=True),
            Value("s", "m", Dtype.F32, shape=(1,), aliases=2),
        ),
        touches_memory_on_host=True,
    ),
    "odd_names": Entry(ODD, (Value(ODD, ODD, Dtype.F32),), ()),
}


def compile_and_run(table: str, check: str, folder: Path) -> None:
    """Compiles the table with a main that returns 0 where `check`, a C expression, holds."""
    (folder / "table.c").write_text(
        f"{table}\n"
        + "\n".join(
            f"void {symbol}(void **values) {{ (void)values; }}"
            for symbol in sorted({packed_symbol(entry) for entry in ENTRIES.values()})
            if f"void {symbol}(" in table
        )
        + f"\n#include <string.h>\nint main(void) {{\n"
        f"  const harness_program *p = &aotc_harness_program;\n  return ({check}) ? 0 : 1;\n}}\n"
    )
    command = [
        *(*Toolchain(os.environ).zig_cc.command, "-std=c11", "-Wall", "-Wextra", "-Werror"),
        *("-pedantic", f"-I{REPOSITORY / 'templates' / 'harness'}"),
        *(f"-I{REPOSITORY / 'runtime_c' / 'include'}", str(folder / "table.c")),
    ]
    subprocess.run([*command, "-o", str(folder / "table")], check=True)
    assert subprocess.run([folder / "table"], check=False).returncode == 0, check


CHECKS = {
    "nothing": "p->entry_count == 1 && p->entries[0].arguments == NULL && p->kernels == NULL && "
    'p->entries[0].result_count == 0 && strcmp(p->version, "1.2.3") == 0',
    "every_dtype": "p->entries[0].argument_count == 17 && p->entries[0].results[0].rank == 1 && "
    "p->entries[0].arguments[0].dtype == AOTC_DTYPE_BOOL && "
    "p->entries[0].arguments[14].dtype == AOTC_DTYPE_C128 && "
    "p->entries[0].arguments[16].dtype == AOTC_DTYPE_F8E5M2 && "
    "p->entries[0].arguments[0].rank == -1",
    "layouts": "p->entries[0].arguments[1].rank == 0 && "
    "p->entries[0].arguments[1].shape == NULL && "
    "p->entries[0].arguments[2].shape[0] == AOTC_DYNAMIC && "
    "p->entries[0].arguments[2].shape[1] == 4 && p->entries[0].arguments[2].strides == NULL && "
    "p->entries[0].arguments[3].strides[0] == AOTC_DYNAMIC && "
    "p->entries[0].arguments[3].strides[1] == -1 && "
    "p->entries[0].arguments[3].offset == AOTC_DYNAMIC && "
    "p->entries[0].arguments[4].shape[0] == INT64_C(1) << 40 && "
    "p->entries[0].arguments[4].offset == -(INT64_C(1) << 35) && "
    "p->entries[0].results[0].memory == AOTC_MEMORY_MANAGED && p->entries[0].results[0].is_owned "
    "&& p->entries[0].results[0].aliases == -1 && p->entries[0].results[1].aliases == 2 && "
    "p->entries[0].touches_memory_on_host",
    "odd_names": 'strcmp(p->entries[0].name, "x\\"y\\\\z?" "?/\\303\\251\\n%d") == 0 && '
    "strcmp(p->entries[0].arguments[0].name, p->entries[0].name) == 0",
}


@pytest.mark.parametrize("case", ENTRIES)
def test_a_table_means_the_manifest(case: str, tmp_path: Path) -> None:
    name, text = generate_table(manifest(ENTRIES[case]))
    assert name == "program_table.c"
    compile_and_run(text, CHECKS[case], tmp_path)


def test_kernels(tmp_path: Path) -> None:
    kernels = (
        Kernel("m", "runs", ("sm_80", "compute_80"), None),
        Kernel("m", "waits", ("sm_90a",), "gpu.barrier at a.mlir:1:2: threads wait"),
    )
    _, text = generate_table(manifest(ENTRIES["nothing"], kernels=kernels))
    check = (
        "p->kernel_count == 2 && p->kernels[0].has_cpu_form && !p->kernels[1].has_cpu_form && "
        "p->kernels[0].why_no_cpu_form == NULL && "
        'strstr(p->kernels[1].why_no_cpu_form, "gpu.barrier") != NULL && '
        'strcmp(p->kernels[0].built_for, "sm_80, PTX compute_80") == 0 && '
        'strcmp(p->kernels[1].built_for, "sm_90a") == 0'
    )
    compile_and_run(text, check, tmp_path)


def test_the_file_is_called_after_the_program() -> None:
    name, text = generate_table(manifest(name="my kernel"))
    assert name == "my_20kernel_table.c"
    assert text.startswith("// Generated by aotc 1.2.3 from my kernel. Do not edit.\n")


def test_a_name_cannot_end_the_comment() -> None:
    _, text = generate_table(manifest(name="a\n#error\\"))
    assert text.splitlines()[0] == "// Generated by aotc 1.2.3 from a #error/. Do not edit."
