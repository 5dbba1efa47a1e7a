"""Modules of unusual width or depth build in time that grows with them, and not with its square.

The bounds are many times what they take on two idle cores; what they guard against takes minutes.
Deeper ones, and those with very many errors, are refused in a few lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

import aotc

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

ENTRY = "attributes {llvm.emit_c_interface}"
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 1.0 : f32
"""


def _arguments(count: int) -> str:
    values = ", ".join(f"%x{i}: memref<4xf32>" for i in range(count))
    return f"func.func @f({values}) {ENTRY} {{ return }}"


def _results(count: int) -> str:
    types = ", ".join(["memref<4xf32>"] * count)
    made = "".join(f"  %a{i} = memref.alloc() : memref<4xf32>\n" for i in range(count))
    values = ", ".join(f"%a{i}" for i in range(count))
    return f"func.func @f() -> ({types}) {ENTRY} {{\n{made}  return {values} : {types}\n}}"


def _loops(count: int, loop: str) -> str:
    loops = "".join(f"  {loop.format(f'%i{i}')} {{\n" for i in range(count))
    body = f"  memref.store %z, %x[%c0] : memref<4xf32>\n{'}' * count}\n  return\n"
    return f"func.func @f(%x: memref<4xf32>) {ENTRY} {{{CONSTANTS}{loops}{body}}}"


def _accesses(count: int) -> str:
    stores = "    affine.store %z, %x[%i] : memref<4xf32>\n" * count
    body = f"  affine.for %i = 0 to 4 {{\n{stores}  }}\n  return\n"
    return f"func.func @f(%x: memref<4xf32>) {ENTRY} {{{CONSTANTS}{body}}}"


@pytest.mark.parametrize(
    "text",
    [
        _arguments(2000),
        _results(600),
        _loops(200, "scf.for {} = %c0 to %c2 step %c1"),
        _loops(200, "affine.for {} = 0 to 2"),
        _loops(200, "scf.parallel ({}) = (%c0) to (%c2) step (%c1)"),
        _accesses(3000),
    ],
    ids=["arguments", "results", "scf.for", "affine.for", "scf.parallel", "accesses"],
)
def test_it_is_built(text: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    path = mlir_file(text)
    begin = time.monotonic()
    aotc("build", path, "--chip", "sm_80", "-o", f"{tmp_path}/out/").succeeded()
    assert time.monotonic() - begin < 60


def test_arguments_take_time_in_proportion(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """Of twice as many, less than three times the processor time; a square would be four times.
    (To the LLVM IR and the header: what clang makes of them takes a minute.)"""

    def seconds(count: int) -> float:
        path = mlir_file(_arguments(count))
        begin = os.times()
        aotc("build", path, "--emit", "header,host-ll", "-o", f"{tmp_path}/").succeeded()
        end = os.times()
        return sum(end[:4]) - sum(begin[:4])

    seconds(10)  # loads and makes what is made once
    # The least of three: others use the machine, too.
    times = [min(seconds(count) for _ in range(3)) for count in (2500, 5000)]
    assert times[1] < 3 * times[0], times


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # One that the parser does not go on behind.
        ("%x = nothing.at_all\n" * 20_000, 1),
        ("func.func private @f(%x: i32)\n" * 20_000, 1),
        # Verifiers tell of each: types that do not fit, and steps that aotc refuses.
        (
            f"func.func @f() {ENTRY} {{"
            + "%v = scf.execute_region -> i32 { scf.yield }\n" * 20_000
            + "return }",
            20,
        ),
        (
            "".join(
                f"func.func @f{i}(%x: i32) -> f32 {{ return %x : i32 }}\n" for i in range(20_000)
            ),
            20,
        ),
        (
            f"func.func @f() {ENTRY} {{{CONSTANTS}"
            + "scf.for %i = %c0 to %c2 step %c0 { }\n" * 20_000
            + "return }",
            20,
        ),
    ],
    ids=["unknown", "twice", "regions", "results", "steps"],
)
def test_20000_errors_fit_a_screen(text: str, shown: int, aotc: Aotc, mlir_file: MlirFile) -> None:
    done = aotc("build", mlir_file(text), "--emit", "host-mlir", "-o", "-")
    assert done.code == 2
    assert 0 < done.stderr.count(": error: ") <= shown
    assert len(done.stderr.splitlines()) < 80
    assert len(done.stderr) < 10_000


@pytest.mark.parametrize(
    "loop",
    [
        "scf.for {} = %c0 to %c2 step %c1",
        "affine.for {} = 0 to 2",
        "scf.parallel ({}) = (%c0) to (%c2) step (%c1)",
    ],
    ids=["scf.for", "affine.for", "scf.parallel"],
)
def test_8000_loops_are_refused(loop: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(_loops(8000, loop))
    begin = time.monotonic()
    done = aotc("build", path)
    assert done.code == 2
    assert "error: this is nested more than 256 levels deep, which aotc does not take." in (
        done.stderr
    )
    assert len(done.stderr) < 4000
    assert time.monotonic() - begin < 20


def _numbers(count: int) -> str:
    """Entries that return `count` results of several types, hand them on, use them, and fail."""
    types = ", ".join(["index, f32, memref<?xf32>"] * count)
    lines, values = [], []
    for i in range(count):
        lines += [
            f"  %k{i} = arith.constant {i} : index",
            f"  %i{i} = arith.addi %n, %k{i} : index",
            f"  %f{i} = arith.constant {i}.0 : f32",
            f"  %m{i} = memref.alloc(%k{i}) : memref<?xf32>",
        ]
        values += [f"%i{i}", f"%f{i}", f"%m{i}"]
    made = "\n".join(lines)
    last = 3 * (count - 1)
    return f"""
func.func @all(%n: index) -> ({types}) {ENTRY} {{
  %zero = arith.constant 0 : index
  %is_positive = arith.cmpi sge, %n, %zero : index
  cf.assert %is_positive, "negative"
{made}
  return {", ".join(values)} : {types}
}}
func.func @again(%n: index) -> ({types}) {ENTRY} {{
  %r:{3 * count} = func.call @all(%n) : (index) -> ({types})
  return {", ".join(f"%r#{i}" for i in range(3 * count))} : {types}
}}
func.func @some(%n: index) -> (index, f32, index) {ENTRY} {{
  %zero = arith.constant 0 : index
  %r:{3 * count} = func.call @all(%n) : (index) -> ({types})
  %size = memref.dim %r#{last + 2}, %zero : memref<?xf32>
  return %r#{last}, %r#4, %size : index, f32, index
}}"""


def test_many_results(tmp_path: Path) -> None:
    text = _numbers(30).encode()
    library = aotc.load(aotc.build(text, name="many", emit="shared", out=f"{tmp_path}/"))
    for entry in (library.all, library.again):
        results = entry(100)
        assert [100 + i for i in range(30)] == list(results[::3])
        assert [float(i) for i in range(30)] == list(results[1::3])
        assert list(range(30)) == [memory.shape[0] for memory in results[2::3]]
        with pytest.raises(aotc.LibraryError, match="negative"):
            entry(-1)
    assert library.some(7) == (36, 1.0, 29)
