"""`aotc upgrade`: text of older MLIR becomes text that builds, and computes what it did."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

# As LLVM 14 to 19 read it: each statement has an old form.
OLD = """\
#CSR = #sparse_tensor.encoding<{
  dimLevelType = [ "dense", "compressed" ],
  dimOrdering = affine_map<(i,j) -> (j,i)>
}>
!row = vector<4xi32>
module {
  llvm.mlir.global internal @ten(10 : i32) : i32
  llvm.mlir.global_ctors {ctors = [@begin], priorities = [0 : i32]}
  func.func private @printI64(i64)
  func.func private @csr() -> tensor<4x8xf32, #CSR>
  llvm.func @begin() {
    %p = llvm.mlir.addressof @ten : !llvm.ptr<i32>
    %one = llvm.mlir.constant(1 : i32) : i32
    // ptr<i32> of comments stays
    %ten = llvm.load %p : !llvm.ptr<i32>
    %eleven = llvm.add %ten, %one : i32
    llvm.store %eleven, %p : !llvm.ptr<i32>
    llvm.return
  }
  func.func @main() -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n1 = arith.constant 1 : i32
    %p = llvm.mlir.addressof @ten : !llvm.ptr<i32>
    %q = llvm.getelementptr %p[0] : (!llvm.ptr<i32>) -> !llvm.ptr<i32>
    %eleven = llvm.load %q : !llvm.ptr<i32>
    %v = vector.splat %eleven : !row
    %w = vector.insertelement %n1, %v[%n1 : i32] : !row
    %x = vector.extractelement %w[%c0 : index] : !row
    %y = vector.extract %w[1] : !row
    %sum = addi %x, %y : i32
    %a = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
    %e = linalg.init_tensor [1, 2, 2, 1] : tensor<1x2x2x1xi32>
    %packed = tensor.pack %a inner_dims_pos = [0, 1] inner_tiles = [2, 1]
      into %e : tensor<2x2xi32> -> tensor<1x2x2x1xi32>
    %three = tensor.extract %packed[%c0, %c0, %c1, %c0] : tensor<1x2x2x1xi32>
    %total = arith.addi %sum, %three : i32
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      gpu.printf "%d of %d\\n"
        %total,
        %eleven
        : i32, i32
      gpu.terminator
    }
    return %total : i32
  }
}
"""


def test_values(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """11 + 1 + 3: the text is shown, then written, and its program computes that."""
    path = mlir_file(OLD)
    shown = aotc("upgrade", path).succeeded()
    assert path.read_text() == OLD
    assert "-    %v = vector.splat %eleven : !row\n" in shown.stdout
    assert "+    %v = vector.broadcast %eleven : i32 to !row\n" in shown.stdout
    assert f"{path}: addi is arith.addi\n" in shown.stderr
    aotc("upgrade", "--write", path).succeeded()
    text = path.read_text()
    assert "// ptr<i32> of comments stays" in text
    assert "{ map = (i, j) -> (j : dense, i : compressed) }" in text
    assert "data = [#llvm.zero]" in text
    again = aotc("upgrade", path).succeeded()
    assert (again.stdout, again.stderr) == ("", "")
    program = tmp_path / "program"
    aotc("build", path, "--chip", "sm_80", "-O1", "-q", "-o", program).succeeded()
    done = subprocess.run([program], env={"AOTC_DEVICE": "cpu"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (15, "15 of 11\n")


def test_what_needs_a_person(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """Derivable changes are applied; the rest is an error with its location in the new text."""
    path = mlir_file(
        "func.func @f(%t: tensor<?xf32>, %a: f32) -> tensor<?x2xf32> {\n"
        "  %b = addf %a, %a : f32\n"
        "  %r = tensor.expand_shape %t [[0, 1]] : tensor<?xf32> into tensor<?x2xf32>\n"
        "  return %r : tensor<?x2xf32>\n"
        "}\n"
    )
    done = aotc("upgrade", path, "-o", tmp_path / "new.mlir")
    assert done.code == 2
    assert f"{path}:3:40: error: " in done.stderr
    assert "names the sizes of its result" in done.stderr
    assert "arith.addf %a" in (tmp_path / "new.mlir").read_text()
    assert "%b = addf" in path.read_text()


def test_refusals(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    path = mlir_file("func.func @f() {\n  return\n}\n")
    assert aotc("upgrade", path).succeeded().stdout == ""
    bytecode = tmp_path / "module.mlirbc"
    bytecode.write_bytes(b"ML\xefR\x0d")
    assert "text alone can be upgraded" in aotc("upgrade", bytecode).stderr
    assert aotc("upgrade", tmp_path / "none.mlir").code == 2
    assert "-o is for one file" in aotc("upgrade", path, path, "-o", "x").stderr
