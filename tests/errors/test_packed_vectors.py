"""Vectors whose elements LLVM packs, and memrefs do not: refused wherever one becomes the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

ACCESSES = {
    "vector.load": "%v = vector.load %m[%c0] : memref<16xT>, vector<8xT>",
    "vector.store": "vector.store %w, %m[%c0] : memref<16xT>, vector<8xT>",
    "vector.transfer_read": "%v = vector.transfer_read %m[%c0], %e : memref<16xT>, vector<8xT>",
    "vector.transfer_write": "vector.transfer_write %w, %m[%c0] : vector<8xT>, memref<16xT>",
    "vector.maskedload": "%v = vector.maskedload %m[%c0], %mask, %w "
    ": memref<16xT>, vector<8xi1>, vector<8xT> into vector<8xT>",
    "affine.vector_load": "%v = affine.vector_load %m[%c0] : memref<16xT>, vector<8xT>",
    "vector.type_cast": "%v = vector.type_cast %m : memref<16xT> to memref<vector<16xT>>",
}
MODULE = """func.func @f(%m: memref<16xT>, %w: vector<8xT>, %e: T, %mask: vector<8xi1>) {
  %c0 = arith.constant 0 : index
  ACCESS
  return
}
"""


def _module(element: str, access: str) -> str:
    return (
        MODULE.replace("ACCESS", ACCESSES[access])
        .replace("xT", f"x{element}")
        .replace(": T,", f": {element},")
    )


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("element", ["i1", "i2", "i4", "i5", "i12", "i24", "f4E2M1FN"])
def test_packed_elements_are_refused(
    element: str, access: str, aotc: Aotc, mlir_file: MlirFile
) -> None:
    path = mlir_file(_module(element, access))
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}:3:")
    assert (
        f"error: {access} is not supported here: LLVM packs the bits of vectors of {element}"
        in (done.stderr)
    )


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("element", ["i8", "i16", "f32", "f64", "bf16", "index"])
def test_others_are_not(element: str, access: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    aotc("build", mlir_file(_module(element, access)), "--emit", "mlir", "-o", "-").succeeded()


def test_what_a_schedule_vectorizes_is_refused(aotc: Aotc, mlir_file: MlirFile) -> None:
    """The module has no vector when it is read."""
    path = mlir_file(
        """module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<8xi8>) -> tensor<8xi8> attributes {llvm.emit_c_interface} {
    %a = arith.trunci %x : tensor<8xi8> to tensor<8xi4>
    %b = tensor.empty() : tensor<8xi4>
    %0 = linalg.add ins(%a, %a : tensor<8xi4>, tensor<8xi4>) outs(%b : tensor<8xi4>) -> tensor<8xi4>
    %y = arith.extsi %0 : tensor<8xi4> to tensor<8xi8>
    return %y : tensor<8xi8>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %add = transform.structured.match ops{["linalg.add"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %add : !transform.any_op
    transform.yield
  }
}
"""
    )
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert done.code == 2, done.stdout
    assert "LLVM packs the bits of vectors of i4" in done.stderr
