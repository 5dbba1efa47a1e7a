"""A corpus through the whole pipeline: clang takes everything that the bindings write.

The bindings' LLVM is newer than clang's. What clang does not know it refuses, or takes for an
external function: both are looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import SAMPLES, Outcome
from helpers.native import build_library

from aotc.toolchain.llvm_text import unknown_intrinsics

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]


# Samples of operations that sm_80 lacks.
_CHIPS = {"warpgroup_gemm": "sm_90a"}


def _build_and_check(
    aotc: Aotc, source: Path, folder: Path, *options: str, emit: str = "ptx,cubin,obj,asm"
) -> None:
    command = ("build", source, "--emit", emit, *options)
    chip = _CHIPS.get(source.stem, "sm_80")
    done = aotc(*command, "--chip", chip, "-o", f"{folder}/")
    assert done == Outcome(0, "", "")
    outputs = [file for file in folder.iterdir() if file.suffix in (".ptx", ".o")]
    assert len(outputs) >= 2
    for file in outputs:
        assert unknown_intrinsics(file.read_bytes()) == [], file.name


# -O3 is what other tests build samples with.
@pytest.mark.exhaustive
@pytest.mark.parametrize("level", ["-O0", "-O1", "-g"])
@pytest.mark.parametrize("sample", sorted(path.stem for path in SAMPLES.glob("*.mlir")))
def test_samples_at_every_level(sample: str, level: str, aotc: Aotc, tmp_path: Path) -> None:
    _build_and_check(aotc, SAMPLES / f"{sample}.mlir", tmp_path, level)


UNARY = (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log "
    "log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh trunc"
).split()
BINARY = "math.atan2 math.copysign math.powf arith.remf arith.divf arith.maximumf arith.minimumf "
BINARY += "arith.maxnumf arith.minnumf"
CLASSES = "isfinite isinf isnan isnormal".split()
INTEGERS = (
    "ceildivsi ceildivui floordivsi divsi divui remsi remui maxsi maxui minsi minui shli shrsi "
    "shrui andi ori xori"
).split()
INTEGER_MATH = "absi ctlz cttz ctpop".split()


def _float_operations(type_: str) -> list[str]:
    """Lines that each turn %v into the next %v."""
    lines = [f"math.{name} %v : {type_}" for name in UNARY]
    lines += [f"{name} %v, %w : {type_}" for name in BINARY.split()]
    lines += [f"math.fma %v, %w, %v : {type_}", f"math.fpowi %v, %three : {type_}, i32"]
    lines += [f"math.clampf %v to [%w, %one] : {type_}"]
    return lines


def _integer_operations(type_: str) -> list[str]:
    lines = [f"arith.{name} %v, %w : {type_}" for name in INTEGERS]
    if type_ != "index":
        lines += [f"math.{name} %v : {type_}" for name in INTEGER_MATH]
    return lines


def _chain(type_: str, operations: list[str]) -> str:
    """A loop body that applies all operations, one after the other."""
    lines, current = [], "%v"
    for i, operation in enumerate(operations):
        lines.append(f"%t{i} = {operation.replace('%v', current)}")
        current = f"%t{i}"
    if "f" in type_:
        for i, name in enumerate(CLASSES):
            lines.append(f"%q{i} = math.{name} {current} : {type_}")
            lines.append(f"%u{i} = arith.select %q{i}, {current}, %w : {type_}")
            current = f"%u{i}"
    lines.append(f"memref.store {current}, %x[%i] : memref<?x{type_}>")
    return "\n    ".join(lines)


@pytest.mark.exhaustive
@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "index"])
def test_arithmetic_of_every_type(
    type_: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """All of arith and math, in a kernel and in a loop of the host."""
    is_float = "f" in type_
    operations = _float_operations(type_) if is_float else _integer_operations(type_)
    one = "1.0" if is_float else "1"
    text = "".join(
        f"""
func.func @{name}(%x: memref<?x{type_}>, %w: {type_}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %three = arith.constant 3 : i32
  %one = arith.constant {one} : {type_}
  %n = memref.dim %x, %c0 : memref<?x{type_}>
  {loop} {{
    %v = memref.load %x[%i] : memref<?x{type_}>
    {_chain(type_, operations)}
  }}
  return
}}
"""
        for name, loop in (
            ("device", "scf.parallel (%i) = (%c0) to (%n) step (%c1)"),
            ("host", "scf.for %i = %c0 to %n step %c1"),
        )
    )
    emit = "ptx,cubin,obj,asm,exe"
    _build_and_check(aotc, mlir_file(text), tmp_path / "out", "-O1", emit=emit)


def test_integer_powers(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    path = mlir_file(
        """
func.func @f(%x: memref<8xi32>) attributes {llvm.emit_c_interface} {
  affine.parallel (%i) = (0) to (8) {
    %v = affine.load %x[%i] : memref<8xi32>
    %w = math.ipowi %v, %v : i32
    affine.store %w, %x[%i] : memref<8xi32>
  }
  return
}
"""
    )
    _build_and_check(aotc, path, tmp_path / "out")


# --- Operations on buffers and vectors, checked against NumPy --------------------------

X = np.random.default_rng(3).uniform(-4, 4, (64, 64)).astype(np.float32)
IOTA = np.arange(64)


def _rows(change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    y = np.zeros_like(X)
    for i, row in enumerate(change(X)):
        y[i, : len(np.atleast_1d(row))] = row
    return y


# name: (what a kernel does for row %i of %x and %y, what %y is then)
BODIES: dict[str, tuple[str, np.ndarray]] = {
    "transfer": (
        """%v = vector.transfer_read %x[%i, %c0], %f0 : memref<64x64xf32>, vector<16xf32>
    %s = vector.reduction <add>, %v : vector<16xf32> into f32
    memref.store %s, %y[%i, %c0] : memref<64x64xf32>""",
        _rows(lambda x: x[:, :16].sum(1, dtype=np.float64)),
    ),
    "transfer_out_of_bounds": (
        """%v = vector.transfer_read %x[%i, %c60], %f1 : memref<64x64xf32>, vector<8xf32>
    vector.transfer_write %v, %y[%i, %c0] : vector<8xf32>, memref<64x64xf32>""",
        _rows(lambda x: np.hstack([x[:, 60:], np.ones((64, 4), np.float32)])),
    ),
    "fma_and_shuffle": (
        """%v = vector.load %x[%i, %c0] : memref<64x64xf32>, vector<4xf32>
    %w = vector.fma %v, %v, %v : vector<4xf32>
    %q = vector.shuffle %v, %w [0, 5, 2, 7] : vector<4xf32>, vector<4xf32>
    vector.store %q, %y[%i, %c0] : memref<64x64xf32>, vector<4xf32>""",
        _rows(
            lambda x: np.stack(
                [x[:, 0], x[:, 1] ** 2 + x[:, 1], x[:, 2], x[:, 3] ** 2 + x[:, 3]], axis=1
            )
        ),
    ),
    "matrix": (
        """%v = vector.transfer_read %x[%i, %c0], %f0 {in_bounds = [true, true]}
      : memref<64x64xf32>, vector<1x4xf32>
    %r = vector.extract %v[0] : vector<4xf32> from vector<1x4xf32>
    %z = vector.broadcast %f0 : f32 to vector<4x4xf32>
    %o = vector.outerproduct %r, %r, %z : vector<4xf32>, vector<4xf32>
    %s = vector.multi_reduction <add>, %o, %r [1] : vector<4x4xf32> to vector<4xf32>
    vector.store %s, %y[%i, %c0] : memref<64x64xf32>, vector<4xf32>""",
        _rows(lambda x: x[:, :4] * x[:, :4].sum(1, keepdims=True) + x[:, :4]),
    ),
    "gather_and_masks": (
        """%ix = vector.step : vector<4xindex>
    %m = vector.constant_mask [3] : vector<4xi1>
    %p = vector.broadcast %f1 : f32 to vector<4xf32>
    %g = vector.gather %x[%i, %c4] [%ix], %m, %p
      : memref<64x64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    vector.maskedstore %y[%i, %c0], %m, %g : memref<64x64xf32>, vector<4xi1>, vector<4xf32>""",
        _rows(lambda x: x[:, 4:7]),
    ),
    "views": (
        """%flat = memref.collapse_shape %x [[0, 1]] : memref<64x64xf32> into memref<4096xf32>
    %cube = memref.expand_shape %flat [[0, 1, 2]] output_shape [16, 4, 64]
      : memref<4096xf32> into memref<16x4x64xf32>
    %turned = memref.transpose %x (r, c) -> (c, r)
      : memref<64x64xf32> to memref<64x64xf32, strided<[1, 64]>>
    %part = memref.subview %x[%i, 4] [1, 8] [1, 2]
      : memref<64x64xf32> to memref<8xf32, strided<[2], offset: ?>>
    %a = memref.load %cube[%c4, %c1, %i] : memref<16x4x64xf32>
    %b = memref.load %turned[%i, %c4] : memref<64x64xf32, strided<[1, 64]>>
    %c = memref.load %part[%c1] : memref<8xf32, strided<[2], offset: ?>>
    memref.store %a, %y[%i, %c0] : memref<64x64xf32>
    memref.store %b, %y[%i, %c1] : memref<64x64xf32>
    memref.store %c, %y[%i, %c2] : memref<64x64xf32>""",
        _rows(lambda x: np.stack([x[17], x[4], x[:, 6]], axis=1)),
    ),
    "local_memory": (
        """%t = memref.alloca() : memref<64xf32>
    scf.for %j = %c0 to %c64 step %c1 {
      %v = memref.load %x[%i, %j] : memref<64x64xf32>
      memref.store %v, %t[%j] : memref<64xf32>
    }
    %w = memref.load %t[%i] : memref<64xf32>
    memref.store %w, %y[%i, %c0] : memref<64x64xf32>""",
        _rows(lambda x: x.diagonal()),
    ),
    "copies": (
        """%s = memref.subview %x[0, %i] [64, 1] [1, 1]
      : memref<64x64xf32> to memref<64x1xf32, strided<[64, 1], offset: ?>>
    %t = memref.subview %y[%i, 0] [1, 64] [1, 1]
      : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %u = memref.transpose %t (r, c) -> (c, r)
      : memref<1x64xf32, strided<[64, 1], offset: ?>>
      to memref<64x1xf32, strided<[1, 64], offset: ?>>
    memref.copy %s, %u : memref<64x1xf32, strided<[64, 1], offset: ?>>
      to memref<64x1xf32, strided<[1, 64], offset: ?>>""",
        X.T,
    ),
    "atomics": (
        """%v = memref.load %x[%i, %c0] : memref<64x64xf32>
    %0 = memref.atomic_rmw maximumf %v, %y[%c0, %c1] : (f32, memref<64x64xf32>) -> f32
    %1 = memref.atomic_rmw addf %f1, %y[%c0, %c0] : (f32, memref<64x64xf32>) -> f32
    %2 = memref.generic_atomic_rmw %y[%c0, %c2] : memref<64x64xf32> {
    ^bb0(%old: f32):
      %new = arith.addf %old, %f1 : f32
      memref.atomic_yield %new : f32
    }""",
        np.pad([[64, X[:, 0].max(), 64]], ((0, 63), (0, 61))).astype(np.float32),
    ),
    "branches": (
        """%r = scf.index_switch %i -> f32
    case 1 {
      scf.yield %f1 : f32
    }
    default {
      %v = memref.load %x[%i, %c0] : memref<64x64xf32>
      scf.yield %v : f32
    }
    %s = scf.execute_region -> f32 {
      %is = arith.cmpi eq, %i, %c2 : index
      cf.cond_br %is, ^two, ^other
    ^two:
      scf.yield %f1 : f32
    ^other:
      scf.yield %r : f32
    }
    memref.store %s, %y[%i, %c0] : memref<64x64xf32>""",
        _rows(lambda x: np.where((IOTA == 1) | (IOTA == 2), 1, x[:, 0])),
    ),
    "calls": (
        """%v = memref.load %x[%i, %c0] : memref<64x64xf32>
    %r = func.call @square(%v) : (f32) -> f32
    func.call @put(%y, %i, %r) : (memref<64x64xf32>, index, f32) -> ()""",
        np.repeat(X[:, :1] ** 2, 64, axis=1),
    ),
}


HELPERS = """
func.func private @square(%v: f32) -> f32 {
  %w = arith.mulf %v, %v : f32
  return %w : f32
}
func.func private @put(%y: memref<64x64xf32>, %i: index, %v: f32) {
  affine.for %j = 0 to 64 {
    affine.store %v, %y[symbol(%i), %j] : memref<64x64xf32>
  }
  return
}
"""


@pytest.mark.parametrize("name", BODIES)
def test_operations_of_kernels(
    name: str, aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Builds for a GPU without an unknown function, and gives NumPy's result on the CPU."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    body, expected = BODIES[name]
    constants = "\n  ".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 4, 60, 64))
    text = f"""{HELPERS if "func.call" in body else ""}
func.func @f(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {{llvm.emit_c_interface}} {{
  {constants}
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {{
    {body}
  }}
  return
}}
"""
    library = build_library(text, tmp_path)
    y = np.zeros_like(X)
    if name == "atomics":
        y[0, 1] = -100
    library.call("f", X, y)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    out = tmp_path / "out"
    options = ("--emit", "ptx", "--chip", "sm_80", "-o", f"{out}/")
    aotc("build", tmp_path / "program.mlir", *options).succeeded()
    for ptx in out.iterdir():
        # What nobody defines would only be missed when the kernel is loaded.
        assert ".extern .func" not in ptx.read_text()


# name: (what the host does, what %y is then)
HOST_BODIES: dict[str, tuple[str, np.ndarray]] = {
    "strided_copy": (
        """%t = memref.transpose %x (r, c) -> (c, r)
    : memref<64x64xf32> to memref<64x64xf32, strided<[1, 64]>>
  memref.copy %t, %y : memref<64x64xf32, strided<[1, 64]>> to memref<64x64xf32>""",
        X.T,
    ),
    "part_copy": (
        """%s = memref.subview %x[4, 8] [16, 32] [1, 1]
    : memref<64x64xf32> to memref<16x32xf32, strided<[64, 1], offset: 264>>
  %t = memref.subview %y[0, 0] [16, 32] [1, 1]
    : memref<64x64xf32> to memref<16x32xf32, strided<[64, 1]>>
  memref.copy %s, %t : memref<16x32xf32, strided<[64, 1], offset: 264>>
    to memref<16x32xf32, strided<[64, 1]>>""",
        np.pad(X[4:20, 8:40], ((0, 48), (0, 32))),
    ),
    "vectors": (
        """%v = vector.transfer_read %x[%c60, %c60], %f1 : memref<64x64xf32>, vector<8x8xf32>
  %t = vector.transpose %v, [1, 0] : vector<8x8xf32> to vector<8x8xf32>
  vector.transfer_write %t, %y[%c0, %c0] : vector<8x8xf32>, memref<64x64xf32>""",
        np.pad(np.pad(X[60:, 60:].T, ((0, 4), (0, 4)), constant_values=1), ((0, 56), (0, 56))),
    ),
    "growing": (
        """%t = memref.alloc(%c4) : memref<?xf32>
  memref.store %f1, %t[%c2] : memref<?xf32>
  %u = memref.realloc %t(%c64) : memref<?xf32> to memref<?xf32>
  %v = memref.load %u[%c2] : memref<?xf32>
  memref.store %v, %y[%c1, %c2] : memref<64x64xf32>
  memref.dealloc %u : memref<?xf32>""",
        np.pad([[1.0]], ((1, 62), (2, 61))).astype(np.float32),
    ),
    # A buffer and an argument change places in a loop: each kernel transposes into the other.
    "double_buffer": (
        """%t = memref.alloc() : memref<64x64xf32>
  %r:2 = scf.for %s = %c0 to %c4 step %c1 iter_args(%a = %x, %b = %t)
      -> (memref<64x64xf32>, memref<64x64xf32>) {
    scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c64) step (%c1, %c1) {
      %v = memref.load %a[%i, %j] : memref<64x64xf32>
      %w = arith.addf %v, %f1 : f32
      memref.store %w, %b[%j, %i] : memref<64x64xf32>
    }
    scf.yield %b, %a : memref<64x64xf32>, memref<64x64xf32>
  }
  memref.copy %r#0, %y : memref<64x64xf32> to memref<64x64xf32>
  memref.dealloc %t : memref<64x64xf32>""",
        X + np.float32(4),
    ),
    "branches_of_blocks": (
        """cf.br ^head(%c0 : index)
^head(%k: index):
  %more = arith.cmpi slt, %k, %c4 : index
  cf.cond_br %more, ^body, ^end
^body:
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %v = memref.load %y[%i, %k] : memref<64x64xf32>
    %w = arith.addf %v, %f1 : f32
    memref.store %w, %y[%i, %k] : memref<64x64xf32>
  }
  %next = arith.addi %k, %c1 : index
  cf.br ^head(%next : index)
^end:""",
        np.pad(np.ones((64, 4), np.float32), ((0, 0), (0, 60))),
    ),
}


@pytest.mark.parametrize("name", HOST_BODIES)
def test_operations_of_hosts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    body, expected = HOST_BODIES[name]
    constants = "\n  ".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 4, 60, 64))
    library = build_library(
        f"""
func.func @f(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {{llvm.emit_c_interface}} {{
  {constants}
  %f1 = arith.constant 1.0 : f32
  {body}
  return
}}
""",
        tmp_path,
    )
    y = np.zeros_like(X)
    library.call("f", X.copy(), y)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
