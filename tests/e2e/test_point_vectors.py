"""A GPU's vectors of neighbouring elements: their values, as the CPU device runs that code."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers.command import build_here
from helpers.native import Library, build_library

from aotc import build, mlir, ops
from aotc.analysis.gpu_modules import gpu_modules
from aotc.mlir import ir
from aotc.rewrites.neighbour_accesses import vectorize_neighbours
from aotc.rewrites.points import take_points_together

TYPES: dict[str, tuple[str, Any]] = {
    "f16": ("arith.addf", np.float16),
    "f32": ("arith.addf", np.float32),
    "i8": ("arith.addi", np.int8),
}
ROWS = {5: 768, 8448: 256}


def _widening(name: str, narrow: str, wide: str) -> str:
    return f"""
func.func @{name}(%x: memref<?x{narrow}>, %y: memref<?x{wide}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x{narrow}>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %v = memref.load %x[%i] : memref<?x{narrow}>
    %w = arith.extf %v : {narrow} to {wide}
    memref.store %w, %y[%i] : memref<?x{wide}>
  }}
  return
}}
"""


WIDENING = (_widening("widen", "f16", "f32"), _widening("eighth", "f8E4M3FN", "f16"))
# The last three have no vectors: rows of 5 elements, points in the other direction, and rows in the
# other direction, of which MLIR has none.
OTHERS = """
func.func @known(%x: memref<70001xf16>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 70001 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<70001xf16>
    %w = arith.addf %v, %v : f16
    memref.store %w, %x[%i] : memref<70001xf16>
  }
  return
}
func.func @rows(%x: memref<700x196xf16>, %y: memref<700x196xf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 700 : index
  %m = arith.constant 196 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<700x196xf16>
    %b = memref.load %x[%c0, %j] : memref<700x196xf16>
    %w = arith.addf %v, %b : f16
    memref.store %w, %y[%i, %j] : memref<700x196xf16>
  }
  return
}
func.func @gather(%t: memref<?x?xf16>, %at: memref<?xi64>, %y: memref<?x?xf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %y, %c0 : memref<?x?xf16>
  %m = memref.dim %y, %c1 : memref<?x?xf16>
  scf.parallel (%i, %j) = (%c0, %c8) to (%n, %m) step (%c1, %c1) {
    %row = memref.load %at[%i] : memref<?xi64>
    %r = arith.index_cast %row : i64 to index
    %k = arith.subi %j, %c8 : index
    %v = memref.load %t[%r, %k] : memref<?x?xf16>
    memref.store %v, %y[%i, %j] : memref<?x?xf16>
  }
  return
}
func.func @eight(%x: memref<?x8xf16>, %y: memref<?x8xf16>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %x, %c0 : memref<?x8xf16>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c8) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x8xf16>
    %w = arith.addf %v, %v : f16
    memref.store %w, %y[%i, %j] : memref<?x8xf16>
  }
  return
}
func.func @short(%x: memref<70000x5xf16>, %b: memref<5xf16>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = arith.constant 70000 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c5) step (%c1, %c1) {
    %v = memref.load %b[%j] : memref<5xf16>
    memref.store %v, %x[%i, %j] : memref<70000x5xf16>
  }
  return
}
func.func @backwards(%x: memref<?xf16>, %y: memref<?xf16>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf16>
  %last = arith.subi %n, %c1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %at = arith.subi %last, %i : index
    %v = memref.load %x[%at] : memref<?xf16>
    memref.store %v, %y[%i] : memref<?xf16>
  }
  return
}
func.func @upwards(%x: memref<?x?xf16, strided<[-64, 1], offset: ?>>, %y: memref<?x?xf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %y, %c0 : memref<?x?xf16>
  %m = memref.dim %y, %c1 : memref<?x?xf16>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf16, strided<[-64, 1], offset: ?>>
    memref.store %v, %y[%i, %j] : memref<?x?xf16>
  }
  return
}
"""

# Too much to compute for a thread to have 16 points.
ADDITIONS = "\n".join(f"    %{i + 1} = arith.addi %{i}, %{i} : i8" for i in range(80))
LONG = f"""
func.func @long(%x: memref<?xi8>, %y: memref<?xi8>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi8>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %0 = memref.load %x[%i] : memref<?xi8>
{ADDITIONS}
    memref.store %80, %y[%i] : memref<?xi8>
  }}
  return
}}
"""

# Few rows have several warps each, and many have one.
SOFTMAX = """
func.func @softmax_{rows}(%x: memref<{rows}x{columns}xf16>, %y: memref<{rows}x{columns}xf16>)
    attributes {{llvm.emit_c_interface}} {{
  linalg.softmax dimension(1) ins(%x : memref<{rows}x{columns}xf16>)
      outs(%y : memref<{rows}x{columns}xf16>)
  return
}}
"""


def _add(element: str, operation: str) -> str:
    matrix = f"memref<?x?x{element}, strided<[?, 1], offset: ?>>"
    row = f"memref<?x{element}, strided<[1], offset: ?>>"
    return f"""
func.func @add_{element}(%x: {matrix}, %b: {row}, %y: {matrix})
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : {matrix}
  %m = memref.dim %x, %c1 : {matrix}
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {{
    %v = memref.load %x[%i, %j] : {matrix}
    %w = memref.load %b[%j] : {row}
    %s = {operation} %v, %w : {element}
    memref.store %s, %y[%i, %j] : {matrix}
  }}
  return
}}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, dict[str, str]]:
    """The programs with the code that GPUs get of their points, and that code by the kernel."""
    folder = tmp_path_factory.mktemp("vectors")
    path = folder / "programs.mlir"
    adds = [_add(element, operation) for element, (operation, _) in TYPES.items()]
    rows = [SOFTMAX.format(rows=rows, columns=ROWS[rows]) for rows in ROWS]
    path.write_text("".join([*adds, *WIDENING, OTHERS, LONG, *rows]))
    outlined = folder / "outlined.mlir"
    build_here(path, "--emit", "mlir", "--no-cpu-kernels", "-o", outlined)
    with mlir.make_context():
        module = ir.Module.parse(outlined.read_text())
        texts = {}
        for gpu_module in gpu_modules(module):
            take_points_together(gpu_module)
            vectorize_neighbours(gpu_module)
            for hidden in ops.find(gpu_module, "llvm.inline_asm"):
                # Says nothing but that LLVM is not to look through it; the CPU device has none.
                hidden.results[0].replace_all_uses_with(hidden.operands[0])
                ops.erase(hidden)
            for kernel in ops.find(gpu_module, "gpu.func"):
                texts[ops.symbol_of(kernel).removesuffix("_kernel")] = str(kernel)
        assert module.operation.verify()
        return build_library(str(module), folder, "-O1"), texts


def _any(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-60, 60, shape).astype(dtype)


def _placed(shape: tuple[int, int], stride: int, start: int, dtype: Any) -> np.ndarray:
    """A matrix of 77s whose first element is `start` behind a multiple of 64 bytes."""
    room = np.full(shape[0] * stride + start + 128, 77, dtype)
    first = -room.ctypes.data % 64 // room.itemsize + start
    return room[first : first + shape[0] * stride].reshape(shape[0], stride)


def test_which_are_vectors(kernels: tuple[Library, dict[str, str]]) -> None:
    _, texts = kernels
    wide = {"add_f16": 8, "add_f32": 4, "add_i8": 16, "widen": 4, "known": 8, "rows": 4}
    wide |= {"gather": 8, "eight": 8, "eighth": 8} | {f"softmax_{rows}": 8 for rows in ROWS}
    for name, text in texts.items():
        assert ("vector.load" in text) == (name in wide), name
        assert "aotc." not in text, name
    for name, count in wide.items():
        assert f"vector<{count}x" in texts[name], name
    # As wide as an access of a GPU can be: a known stride of 392 bytes allows half of that.
    assert texts["rows"].count("alignment = 8") == texts["rows"].count("vector.load") + 1
    assert "alignment = 16" in texts["add_i8"]
    # What moves with its row alone is loaded by points.
    assert "memref.load %arg" in texts["gather"]


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 37, 512, 517])
def test_each_alignment(
    element: str, columns: int, kernels: tuple[Library, dict[str, str]]
) -> None:
    """Strides and begins that are multiples of a vector and that are not; nothing else is
    written."""
    library, _ = kernels
    _, dtype = TYPES[element]
    for extra, start, other in itertools.product((0, 1, 16), (0, 1, 16), (0, 3)):
        stride = (columns + 15) // 16 * 16 + extra
        x = _placed((5, columns), stride, start, dtype)[:, :columns]
        whole = _placed((5, columns), stride, other, dtype)
        y = whole[:, :columns]
        x[:] = _any((5, columns), dtype)
        b = _any((columns,), dtype)
        library.call(f"add_{element}", x, b, y)
        np.testing.assert_array_equal(y, x + b)
        assert (whole[:, columns:] == 77).all()


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("count", [1, 9, 1023, 2051])
def test_one_dimension(count: int, start: int, kernels: tuple[Library, dict[str, str]]) -> None:
    library, _ = kernels
    x = _placed((1, count), count, start, np.float16)[0]
    x[:] = _any((count,), np.float16)
    wide, back = np.zeros(count, np.float32), np.zeros(count, np.float16)
    library.call("widen", x, wide)
    np.testing.assert_array_equal(wide, x)
    small = _placed((1, count), count, start, np.int8)[0].view(ml_dtypes.float8_e4m3fn)
    small[:] = x
    library.call("eighth", small, back)
    np.testing.assert_array_equal(back, small.astype(np.float16))
    library.call("backwards", x, back)
    np.testing.assert_array_equal(back, x[::-1])


@pytest.mark.parametrize("start", [0, 4, 1])
def test_known_sizes(start: int, kernels: tuple[Library, dict[str, str]]) -> None:
    library, _ = kernels
    x = _placed((1, 70001), 70001, start, np.float16)[0]
    x[:] = _any((70001,), np.float16)
    expected = x + x
    library.call("known", x)
    np.testing.assert_array_equal(x, expected)
    rows, sums = (_placed((700, 196), 196, start, np.float16) for _ in range(2))
    rows[:] = _any((700, 196), np.float16)
    library.call("rows", rows, sums)
    np.testing.assert_array_equal(sums, rows + rows[0])
    few, twice = (_placed((300, 8), 8, start, np.float16) for _ in range(2))
    few[:] = _any((300, 8), np.float16)
    library.call("eight", few, twice)
    np.testing.assert_array_equal(twice, few + few)
    table, at = _placed((9, 48), 48, start, np.float16), np.array([3, 0, 8, 8])
    table[:] = _any((9, 48), np.float16)
    upwards = np.zeros((9, 48), np.float16)
    library.call("upwards", _with_stride(table, 64)[::-1], upwards)
    np.testing.assert_array_equal(upwards, table[::-1])
    taken = _placed((4, 48 + start), 48 + start, 0, np.float16)
    library.call("gather", table, at, taken)
    assert (taken[:, :8] == 77).all()
    np.testing.assert_array_equal(taken[:, 8:], table[at][:, : 40 + start])


def _with_stride(matrix: np.ndarray, stride: int) -> np.ndarray:
    rows, columns = matrix.shape
    copied = _placed((rows, columns), stride, 0, matrix.dtype)[:, :columns]
    copied[:] = matrix
    return copied


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("start", [0, 8, 1])
def test_rows(rows: int, start: int, kernels: tuple[Library, dict[str, str]]) -> None:
    """A row of vectors is the same wherever it begins."""
    library, texts = kernels
    assert (
        f"known_block_size = array<i32: {'96, 1' if rows == 5 else '32, 8'}, 1>"
        in (texts[f"softmax_{rows}"])
    )
    shape = rows, ROWS[rows]
    x, y, again = (_placed(shape, shape[1], at, np.float16) for at in (start, 0, start))
    x[:] = _any(shape, np.float16) / 16
    library.call(f"softmax_{rows}", x, y)
    powers = np.exp(x.astype(np.float32))
    np.testing.assert_allclose(y, powers / powers.sum(1, keepdims=True), rtol=1e-2, atol=1e-7)
    library.call(f"softmax_{rows}", x, again)
    np.testing.assert_array_equal(y, again)


SCALED = """
func.func @scaled(%x: tensor<64x256xf16>, %s: tensor<f16>) -> tensor<64x256xf16>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<64xf16>) -> tensor<64xf16>
  %r = linalg.reduce {arith.maximumf} ins(%x : tensor<64x256xf16>) outs(%z : tensor<64xf16>)
      dimensions = [1]
  %o = tensor.empty() : tensor<64x256xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>,
        affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %r, %s : tensor<64x256xf16>, tensor<64xf16>, tensor<f16>)
      outs(%o : tensor<64x256xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %d: f16):
    %p = arith.addf %a, %b : f16
    %q = arith.mulf %p, %c : f16
    linalg.yield %q : f16
  } -> tensor<64x256xf16>
  return %y : tensor<64x256xf16>
}
"""


def test_an_element_without_dimensions_has_no_neighbours(tmp_path: Path) -> None:
    out = build(SCALED, emit="ptx", chips=("sm_90a",), out=tmp_path / "scaled.ptx")
    assert "ld.global.v" in out.path.read_text()
