"""Every element type that C has a type for goes the whole way, and computes right on the CPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import build_library

Aotc = Callable[..., Outcome]

# bf16 has no NumPy type: its values are kept as the upper half of a float32.
BF16 = "bf16"
TYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "si8": np.int8,
    "si64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": BF16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}
SIZE = 300


def _operation(type_: str) -> str | None:
    """What the kernels compute from %a and %b: a product; None where arith has none."""
    if type_.startswith(("si", "ui")):
        return None
    if type_.startswith("complex"):
        return f"complex.mul %a, %b : {type_}"
    return f"arith.{'mulf' if 'f' in type_ else 'muli'} %a, %b : {type_}"


def _module(type_: str) -> str:
    """`device` computes by a kernel, `host` in a loop of the host."""
    operation = _operation(type_)
    compute = f"%c = {operation}" if operation else ""
    result = "%c" if operation else "%b"
    memref = f"memref<?x{type_}>"
    body = f"""
    %a = memref.load %x[%i] : {memref}
    %b = memref.load %y[%i] : {memref}
    {compute}
    memref.store {result}, %z[%i] : {memref}"""
    return "".join(
        f"""
func.func @{name}(%x: {memref}, %y: {memref}, %z: {memref}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : {memref}
  {loop} {{{body}
  }}
  return
}}
"""
        for name, loop in (
            ("device", "scf.parallel (%i) = (%c0) to (%n) step (%c1)"),
            ("host", "scf.for %i = %c0 to %n step %c1"),
        )
    )


def _inputs(dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two operands and their product, in the type."""
    generator = np.random.default_rng(5)
    if dtype is BF16:
        x, y = (_to_bf16(generator.uniform(-8, 8, SIZE)) for _ in range(2))
        return x, y, _to_bf16(_from_bf16(x) * _from_bf16(y))
    kind = np.dtype(dtype).kind
    if kind == "b":
        x, y = (generator.integers(0, 2, SIZE).astype(dtype) for _ in range(2))
        return x, y, x & y
    if kind in "iu":
        low = -11 if kind == "i" else 0
        x, y = (generator.integers(low, 12, SIZE).astype(dtype) for _ in range(2))
        return x, y, x * y
    x, y = (generator.uniform(-8, 8, SIZE).astype(dtype) for _ in range(2))
    if kind == "c":
        x = x + np.asarray(1j * generator.uniform(-8, 8, SIZE), dtype)
        y = y - np.asarray(1j * generator.uniform(-8, 8, SIZE), dtype)
    return x, y, x * y


def _to_bf16(values: np.ndarray) -> np.ndarray:
    """Rounds to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _from_bf16(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("type_", TYPES)
def test_elements_of_memrefs(type_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel and host loop give NumPy's result, to the bit but for complex numbers."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    library = build_library(_module(type_), tmp_path)
    x, y, product = _inputs(TYPES[type_])
    expected = product if _operation(type_) else y
    for entry in ("device", "host"):
        z = np.zeros_like(x)
        library.call(entry, x, y, z)
        if z.dtype.kind == "c":
            np.testing.assert_allclose(z, expected, rtol=1e-5 if z.itemsize == 8 else 1e-12)
        else:
            np.testing.assert_array_equal(z, expected, err_msg=entry)


@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "aarch64-linux-gnu"])
def test_all_types_in_one_module_for_both_hosts(
    target: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """Links: no type needs a function that only some compiler's support library has."""
    text = "".join(
        _module(type_).replace("@device", f"@device_{i}").replace("@host", f"@host_{i}")
        for i, type_ in enumerate(TYPES)
    )
    options = ("--emit", "exe,shared", "--target", target, "--chip", "sm_80", "-O1")
    aotc("build", mlir_file(text), *options, "-o", f"{tmp_path}/out/").succeeded()


SCALARS: dict[str, tuple[str, Any]] = {
    "i1": ("1", True),
    "i8": ("-7", -7),
    "i16": ("-300", -300),
    "i32": ("-70000", -70000),
    "i64": ("-5000000000", -5000000000),
    "ui8": ("200", 200),
    "ui64": ("18446744073709551615", 18446744073709551615),
    "index": ("123456789012", 123456789012),
    "f16": ("1.5", 1.5),
    "bf16": ("-2.5", -2.5),
    "f32": ("0.25", 0.25),
    "f64": ("0.1", 0.1),
    "complex<f32>": ("1.5-2j", None),
    "complex<f64>": ("1.5-2j", None),
}


@pytest.mark.parametrize("type_", SCALARS)
def test_scalars_in_and_out(
    type_: str, aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    """A scalar comes back as it went in, alone and with others beside it."""
    text = f"""
func.func @alone(%s: {type_}) -> {type_} attributes {{llvm.emit_c_interface}} {{
  return %s : {type_}
}}
func.func @beside(%m: memref<2xf32>, %s: {type_}) -> (memref<2xf32>, {type_}, {type_})
    attributes {{llvm.emit_c_interface}} {{
  return %m, %s, %s : memref<2xf32>, {type_}, {type_}
}}
"""
    program = tmp_path / "program"
    aotc("build", mlir_file(text), "-o", program).succeeded()
    word, value = SCALARS[type_]
    for entry in ("alone", "beside"):
        done = subprocess.run(
            [program, entry, "--arg", f"s={word}", "--device", "cpu", "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        results = [r for r in json.loads(done.stdout)["results"] if r["type"] == type_]
        assert len(results) == (1 if entry == "alone" else 2)
        for result in results:
            if value is None:
                assert result["mean"] in ([1.5, -2], "(1.5-2j)", {"re": 1.5, "im": -2})
            else:
                assert result["min"] == result["max"] == value
