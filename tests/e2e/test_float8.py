"""Elements of f8: widened on the CPU, handed in and out by files and arrays."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers.command import build_here

import aotc

FLOAT8: dict[str, Any] = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
WIDE: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


def widen(source: str, target: str) -> str:
    """By points, and by vectors of 4, of 256 elements."""
    return f"""
func.func @points_{source}_{target}(%x: memref<256x{source}>, %y: memref<256x{target}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  scf.parallel (%i) = (%c0) to (%c256) step (%c1) {{
    %narrow = memref.load %x[%i] : memref<256x{source}>
    %wide = arith.extf %narrow : {source} to {target}
    memref.store %wide, %y[%i] : memref<256x{target}>
  }}
  return
}}
func.func @vectors_{source}_{target}(%x: memref<256x{source}>, %y: memref<256x{target}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  scf.for %i = %c0 to %c256 step %c4 {{
    %narrow = vector.load %x[%i] : memref<256x{source}>, vector<4x{source}>
    %wide = arith.extf %narrow : vector<4x{source}> to vector<4x{target}>
    vector.store %wide, %y[%i] : memref<256x{target}>, vector<4x{target}>
  }}
  return
}}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("float8")
    source = folder / "float8.mlir"
    source.write_text("".join(widen(one, other) for one in FLOAT8 for other in WIDE))
    build_here(source, "--chip", "sm_80", "-o", folder / "float8")
    return folder / "float8"


@pytest.mark.parametrize("how", ["points", "vectors"])
@pytest.mark.parametrize("target", WIDE)
@pytest.mark.parametrize("source", FLOAT8)
def test_every_value_is_widened_exactly(
    source: str, target: str, how: str, program: Path, tmp_path: Path
) -> None:
    every = np.arange(256, dtype=np.uint8).view(FLOAT8[source])
    np.save(tmp_path / "x.npy", every)
    command = [program, f"{how}_{source}_{target}", f"--x={tmp_path / 'x.npy'}"]
    options = ["--device", "cpu", "-q", "--out", f"y={tmp_path / 'y.npy'}"]
    subprocess.run([*command, *options], check=True, timeout=60)
    with np.errstate(invalid="ignore"):  # NaN that signal stay such
        got = np.load(tmp_path / "y.npy").view(WIDE[target]).astype(np.float64)
    np.testing.assert_array_equal(got, every.astype(np.float64))
    numbers = ~np.isnan(got)
    assert np.array_equal(np.signbit(got[numbers]), np.signbit(every.astype(float)[numbers]))


@pytest.mark.parametrize("source", FLOAT8)
def test_harness_rounds_as_ml_dtypes(source: str, program: Path, tmp_path: Path) -> None:
    """What the command line fills a buffer with: halves of the last place, subnormals, the largest
    number and what is too large."""
    dtype = FLOAT8[source]
    for number in (0.0, -0.3, 1.0625, 1.1875, 0.001, 2.0**-10, 3 * 2.0**-10, 250.0, 448.0, 464.0):
        out = tmp_path / "y.npy"
        command = [program, f"points_{source}_f32", f"--x={number!r}", "--device", "cpu", "-q"]
        subprocess.run([*command, "--out", f"y={out}"], check=True, timeout=60)
        assert np.load(out)[0] == np.float64(number).astype(dtype).astype(np.float32), number


@pytest.mark.parametrize(
    ("source", "number", "is_taken"),
    [
        ("f8E4M3FN", "464", True),  # rounds to 448
        ("f8E4M3FN", "465", False),
        ("f8E4M3FN", "-1e9", False),
        ("f8E4M3FN", "inf", False),
        ("f8E4M3FN", "nan", True),
        ("f8E5M2", "61439", True),
        ("f8E5M2", "1e9", False),
        ("f8E5M2", "-inf", True),
    ],
)
def test_harness_takes_numbers_of_the_type_alone(
    source: str, number: str, is_taken: bool, program: Path
) -> None:
    """What has no value in the type would be NaN: f8E4M3FN has no infinity."""
    ran = subprocess.run(
        [program, f"points_{source}_f32", "--x", number, "--device", "cpu"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (ran.returncode == 0) == is_taken, ran.stderr
    if not is_taken:
        assert f"--x: {number} does not fit float8_" in ran.stderr


@pytest.mark.parametrize("source", FLOAT8)
def test_arrays_of_ml_dtypes_are_taken(source: str, tmp_path: Path) -> None:
    artifact = aotc.build(
        widen(source, "f32"), name="one", emit="shared", out=tmp_path / "libone.so", chips="sm_80"
    )
    library = aotc.load(artifact)
    every = np.arange(256, dtype=np.uint8)
    for given in (every.view(FLOAT8[source]), every):
        y = np.zeros(256, np.float32)
        getattr(library, f"points_{source}_f32")(given, y)
        np.testing.assert_array_equal(y, every.view(FLOAT8[source]).astype(np.float32))


def test_tiles_in_shared_memory(tmp_path: Path) -> None:
    """A transposition goes through them."""
    text = """
func.func @turn(%x: memref<65x100xf8E5M2>, %y: memref<100x65xf8E5M2>)
    attributes {llvm.emit_c_interface} {
  linalg.transpose ins(%x : memref<65x100xf8E5M2>) outs(%y : memref<100x65xf8E5M2>)
    permutation = [1, 0]
  return
}
"""
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="turn", chips="sm_80")
    library = aotc.load(artifact)
    library.set_device("cpu")
    x = np.arange(6500).astype(np.uint8).reshape(65, 100)
    y = np.zeros((100, 65), np.uint8)
    library.turn(x, y)
    np.testing.assert_array_equal(y, x.T)
