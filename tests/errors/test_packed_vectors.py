"""Memrefs that are taken for vectors whose elements LLVM packs, and memrefs do not: refused.

Reads and writes by such vectors are in tests/e2e/test_vectors.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome

from aotc import build, load

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

MODULE = """func.func @f(%m: memref<16xT>) {
  %v = vector.type_cast %m : memref<16xT> to memref<vector<16xT>>
  return
}
"""


def _module(element: str) -> str:
    return MODULE.replace("xT", f"x{element}")


@pytest.mark.parametrize("element", ["i1", "i2", "i4", "i5", "i12", "i24", "f4E2M1FN"])
def test_packed_elements_are_refused(element: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(_module(element))
    done = aotc("build", path, "--emit", "mlir", "-o", "-")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}:2:")
    said = f"vector.type_cast is not supported here: LLVM packs the bits of vectors of {element}"
    assert said in done.stderr


@pytest.mark.parametrize("element", ["i8", "i16", "f32", "f64", "bf16", "index"])
def test_others_are_not(element: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    aotc("build", mlir_file(_module(element)), "--emit", "mlir", "-o", "-").succeeded()


def test_what_a_schedule_vectorizes(mlir_file: MlirFile) -> None:
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
    artifact = build(path, emit="shared", out=f"{path.parent}/", chips="sm_90")
    library = load(artifact)
    library.set_device("cpu")
    x = np.array([1, -2, 3, -4, 5, 6, -7, -8], np.int8)
    np.testing.assert_array_equal(library.f(x), [2, -4, 6, -8, -6, -4, 2, 0])
