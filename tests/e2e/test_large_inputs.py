"""Large constants and many kernels: right, and at no price in text, memory or time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from e2e.support import Programs, run
from helpers.command import aotc_command, process_environment
from helpers.native import build_library
from numpy.typing import NDArray

from aotc.cli import run as aotc_run
from aotc.errors import InputError
from aotc.host.constants import Constant, check_reach
from aotc.host.elf import global_symbols
from aotc.input.source import Source
from bench.scale.inputs import CONSTANT_FORMS, many_entries, one_entry, weights, write_constants

MEBIBYTES = 3  # above all thresholds


def constants() -> NDArray[np.float32]:
    return np.concatenate([weights(part) for part in range(MEBIBYTES)])


@pytest.mark.parametrize("form", CONSTANT_FORMS)
def test_large_constants(programs: Programs, tmp_path: Path, form: str) -> None:
    """Text, resources, bytecode, splats: the program adds the right numbers."""
    source = tmp_path / f"constants.{'mlirbc' if form == 'bytecode' else 'mlir'}"
    write_constants(source, MEBIBYTES, form)
    program = programs.build(source, "--chip", "sm_80")
    expected = np.full_like(constants(), 1.5) if form == "splat" else constants()
    np.save(tmp_path / "expected.npy", expected)
    argument = "arg0" if form == "bytecode" else "x"
    words = ["--arg", f"{argument}=zeros", "--expect", f"result0={tmp_path / 'expected.npy'}"]
    result = run(program, *words, "--rtol", "0", "--atol", "0", "--device", "cpu")
    assert (result.stderr, result.returncode) == ("", 0)


VARIABLE = """
memref.global "private" {constant} @table : memref<{n}x{type}> = dense<"0x{digits}">
func.func @get(%out: memref<{n}x{type}>) attributes {{llvm.emit_c_interface}} {{
  %table = memref.get_global @table : memref<{n}x{type}>
  affine.parallel (%i) = (0) to ({n}) {{
    %v = affine.load %table[%i] : memref<{n}x{type}>
    affine.store %v, %out[%i] : memref<{n}x{type}>
  }}
  return
}}
"""


@pytest.mark.parametrize("constant", ["constant", ""])
@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("i1", np.bool_),
        ("i8", np.int8),
        ("i64", np.int64),
        ("index", np.int64),
        ("f64", np.float64),
    ],
)
def test_types_of_large_variables(
    programs: Programs, tmp_path: Path, type_: str, dtype: type, constant: str
) -> None:
    """Elements of every width, of constants and of variables, arrive bit by bit."""
    table = (np.arange(2**20 // np.dtype(dtype).itemsize + 3) % 1000).astype(dtype)
    text = VARIABLE.format(
        constant=constant, n=len(table), type=type_, digits=table.tobytes().hex().upper()
    )
    source = tmp_path / f"{type_}{constant}.mlir"
    source.write_text(text)
    program = programs.build(source, "--chip", "sm_80")
    out = tmp_path / "out.npy"
    result = run(program, "--out", f"out={out}", "--device", "cpu")
    assert (result.stderr, result.returncode) == ("", 0)
    assert np.load(out).tobytes() == table.tobytes()


def test_a_zero_variable_takes_no_room(tmp_path: Path) -> None:
    n = 2**22
    text = VARIABLE.replace('dense<"0x{digits}">', "dense<0.0>")
    text = text.format(constant="", n=n, type="f32")
    library = build_library(text, tmp_path)
    out = np.ones(n, np.float32)
    library.call("get", out)
    assert not out.any()
    assert (tmp_path / "lib" / "libprogram.so").stat().st_size < n


def test_constants_in_an_object(tmp_path: Path) -> None:
    """One object, the same each time, that defines its entry alone; the LLVM IR has no numbers."""
    source = tmp_path / "constants.mlir"
    write_constants(source, MEBIBYTES, "resource")
    objects = []
    for folder in ("a", "b"):
        out = tmp_path / folder
        options = ("--emit", "obj,host-ll", "--chip", "sm_80", "-o", f"{out}/")
        done = subprocess.run(
            aotc_command("build", source, *options, "--save-temps", out / "saved"),
            env=process_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert "host-ll only declares" in done.stderr
        objects.append((out / "constants.o").read_bytes())
    assert objects[0] == objects[1]
    defined = {name for name, is_here in global_symbols(objects[0]).items() if is_here}
    assert defined == {"_mlir_ciface_add", "aotc_call_add"}
    assert weights(0).tobytes() in objects[0]
    texts = [*tmp_path.glob("a/*.ll"), *tmp_path.glob("a/saved/*.mlir")]
    assert len(texts) == 5
    assert all(file.stat().st_size < 2**20 for file in texts)


@pytest.mark.parametrize("level", [0, 3])
def test_unused_private_variables_take_no_room(tmp_path: Path, level: int) -> None:
    source = tmp_path / "unused.mlir"
    source.write_text(
        "llvm.mlir.global private constant @small(dense<[1, 2, 3]> : tensor<3xi32>) "
        ": !llvm.array<3 x i32>\n"
        "llvm.mlir.global internal @large(dense<7> : tensor<65536xi32>) "
        ": !llvm.array<65536 x i32>\n"
        "llvm.mlir.global internal constant @used(5 : i32) : i32\n"
        "func.func @get() -> i32 attributes {llvm.emit_c_interface} {\n"
        "  %a = llvm.mlir.addressof @used : !llvm.ptr\n"
        "  %v = llvm.load volatile %a : !llvm.ptr -> i32\n"
        "  return %v : i32\n}\n"
    )
    out = tmp_path / "unused.o"
    command = ("build", source, "--emit", "obj", f"-O{level}", "--chip", "sm_80", "-o", out)
    subprocess.run(aotc_command(*command), env=process_environment(), check=True)
    content = out.read_bytes()
    assert b"used" in content
    assert b"small" not in content
    assert b"large" not in content
    assert len(content) < 2**16


SPECIAL = """
!T = !llvm.array<20000 x i32>
llvm.mlir.global internal thread_local @each(dense<7> : tensor<20000xi32>) : !T
llvm.mlir.global internal @placed(dense<9> : tensor<20000xi32>) {section = "chosen"} : !T
llvm.mlir.global weak @default_table(dense<3> : tensor<20000xi32>) : !T
llvm.mlir.global external @visible(dense<1> : tensor<2000xi32>) : !llvm.array<2000 x i32>
func.func @swap(%i: i64, %new: i32) -> i32 attributes {llvm.emit_c_interface} {
  %t = llvm.mlir.addressof @each : !llvm.ptr
  %p = llvm.mlir.addressof @placed : !llvm.ptr
  %w = llvm.mlir.addressof @default_table : !llvm.ptr
  %v = llvm.mlir.addressof @visible : !llvm.ptr
  %te = llvm.getelementptr %t[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %pe = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %we = llvm.getelementptr %w[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %ve = llvm.getelementptr %v[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %0 = llvm.load %te : !llvm.ptr -> i32
  %1 = llvm.load %pe : !llvm.ptr -> i32
  %2 = llvm.load %we : !llvm.ptr -> i32
  %3 = llvm.load %ve : !llvm.ptr -> i32
  llvm.store %new, %te : i32, !llvm.ptr
  %4 = arith.addi %0, %1 : i32
  %5 = arith.addi %2, %3 : i32
  %6 = arith.addi %4, %5 : i32
  return %6 : i32
}
"""


def test_large_variables_keep_their_properties(tmp_path: Path) -> None:
    """Each thread has its own, a section is the chosen one, and other objects see and replace what
    they could see and replace if it were small."""
    library = build_library(SPECIAL, tmp_path)
    found = [library.call("swap", 3, 100), library.call("swap", 3, 5)]
    thread = threading.Thread(target=lambda: found.append(library.call("swap", 3, 1)))
    thread.start()
    thread.join()
    assert found == [20, 113, 20]
    source = tmp_path / "program.mlir"
    command = aotc_command("build", source, "--emit", "obj", "--chip", "sm_80")
    subprocess.run([*command, "-o", tmp_path / "program.o"], env=process_environment(), check=True)
    written = (tmp_path / "program.o").read_bytes()
    symbols = global_symbols(written)
    assert symbols["visible"]
    assert symbols["default_table"]
    assert b"\0chosen\0" in written


def test_text_has_constants_of_64_kib(tmp_path: Path) -> None:
    """It can be compiled and linked without the object."""
    table = np.arange(2**14 - 1, dtype=np.int32)
    text = VARIABLE.format(
        constant="constant", n=len(table), type="i32", digits=table.tobytes().hex()
    )
    source = tmp_path / "table.mlir"
    source.write_text(text)
    done = subprocess.run(
        aotc_command("build", source, "--emit", "host-ll", "--chip", "sm_80", "-o", "-"),
        env=process_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "i32 16382]" in done.stdout


def test_constants_of_two_libraries(tmp_path: Path) -> None:
    """Two static libraries with large variables of one name link into one program."""
    out = tmp_path / "out"
    for prefix in ("one_", "two_"):
        source = tmp_path / f"{prefix}.mlir"
        table = np.full(2**19, 1 if prefix == "one_" else 2, np.int8)
        table[0] = 0  # no splat
        source.write_text(
            VARIABLE.format(
                constant="constant", n=len(table), type="i8", digits=table.tobytes().hex()
            )
        )
        command = aotc_command("build", source, "--emit", "static", "--chip", "sm_80")
        subprocess.run(
            [*command, "--prefix", prefix, "-o", f"{out}/{prefix}/"],
            env=process_environment(),
            check=True,
        )
    archives = [file.read_bytes() for file in sorted(out.glob("*/lib/*.a"))]
    assert len(archives) == 2
    for archive in archives:
        start = archive.index(b"\x7fELF")
        assert "table" not in global_symbols(archive[start:])


def test_more_constants_than_code_reaches() -> None:
    """Above what 32-bit distances allow, an error by name rather than the linker's."""
    one = Constant("weights", 2**30, 64, True, None)
    source = Source("model.mlir", (), None)
    check_reach([one], source)
    with pytest.raises(InputError, match=r"weights, weights have 2048 MiB .* reach"):
        check_reach([one, one], source)


def test_wrong_size_of_a_resource(tmp_path: Path) -> None:
    """Data for another number of elements is an input error, not a read beyond its end."""
    source = tmp_path / "constants.mlir"
    write_constants(source, MEBIBYTES, "resource")
    source.write_text(source.read_text().replace(f"{MEBIBYTES * 2**18}x", f"{2**20}x"))
    done = subprocess.run(
        aotc_command("build", source, "--chip", "sm_80"),
        env=process_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"has {MEBIBYTES * 2**20} bytes of data; expected {2**22}" in done.stderr


_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_memory_for_large_constants(tmp_path: Path) -> None:
    """The largest process of a build has less than the text and its content together."""
    mebibytes = 128
    source = tmp_path / "constants.mlir"
    write_constants(source, mebibytes, "dense")
    command = aotc_command("build", source, "--chip", "sm_80", "-o", tmp_path / "program")
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *command],
        env=process_environment(),
        capture_output=True,
        check=True,
    )
    assert int(done.stdout) / 1024 < 3 * mebibytes + 150


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", [many_entries, one_entry])
def test_time_grows_with_the_number_of_kernels(tmp_path: Path, text: Callable[[int], str]) -> None:
    """Ten times the kernels take about ten times as long, not a hundred times."""
    seconds = []
    for count in (30, 300):
        source = tmp_path / f"k{count}.mlir"
        source.write_text(text(count))
        options = ("--emit", "host-ll,device-ll", "--chip", "sm_80", "-o", f"{tmp_path}/")
        start = time.process_time()
        assert aotc_run(["build", str(source), "-q", *options]) == 0
        seconds.append(time.process_time() - start)
    assert seconds[1] < 20 * seconds[0]
