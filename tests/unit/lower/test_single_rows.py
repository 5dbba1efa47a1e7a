"""What is done to one vector is one kernel: no reduction goes through the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library

from aotc import build

ENTRY = "attributes {llvm.emit_c_interface}"
LENGTHS = (3, 100, 16384, 20000)


def reduced(how: str, of: str, n: int, start: str, result: str) -> str:
    return f"""
  %{result}_e = tensor.empty() : tensor<f32>
  %{result}_s = linalg.fill ins({start} : f32) outs(%{result}_e : tensor<f32>) -> tensor<f32>
  %{result} = linalg.reduce {{{how}}} ins({of} : tensor<{n}xf32>) outs(%{result}_s : tensor<f32>)
      dimensions = [0]"""


def spread(body: str, by: str, n: int, result: str, of: str = "%x") -> str:
    return f"""
  %{result}_e = tensor.empty() : tensor<{n}xf32>
  %{result} = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins({of}, {by} : tensor<{n}xf32>, tensor<f32>) outs(%{result}_e : tensor<{n}xf32>) {{
  ^bb0(%v: f32, %r: f32, %unused: f32):
    {body}
    linalg.yield %o : f32
  }} -> tensor<{n}xf32>"""


def softmax(n: int) -> str:
    return f"""
func.func @softmax_{n}(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  {reduced("arith.maximumf", "%x", n, "%least", "most")}
  {spread("%d = arith.subf %v, %r : f32 %o = math.exp %d : f32", "%most", n, "e")}
  {reduced("arith.addf", "%e", n, "%zero", "sum")}
  {spread("%o = arith.divf %v, %r : f32", "%sum", n, "y", "%e")}
  return %y : tensor<{n}xf32>
}}"""


def norm(n: int) -> str:
    """What becomes of the sums is computed between the loops."""
    return f"""
func.func @norm_{n}(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %count = arith.constant dense<{float(n)}> : tensor<f32>
  {reduced("arith.addf", "%x", n, "%zero", "sum")}
  %mean = arith.divf %sum, %count : tensor<f32>
  {spread("%o = arith.subf %v, %r : f32", "%mean", n, "d")}
  %squares = arith.mulf %d, %d : tensor<{n}xf32>
  {reduced("arith.addf", "%squares", n, "%zero", "all")}
  %variance = arith.divf %all, %count : tensor<f32>
  %scale = math.rsqrt %variance : tensor<f32>
  {spread("%o = arith.mulf %v, %r : f32", "%scale", n, "y", "%d")}
  return %y : tensor<{n}xf32>
}}"""


def quotient(n: int) -> str:
    """A mean of squares whose number of elements is a sum, too, and a sum of distances to it: each
    reduction uses the result of the one before."""
    return f"""
func.func @quotient_{n}(%x: tensor<{n}xf32>) -> tensor<f32> {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %ones = arith.cmpf ord, %x, %x : tensor<{n}xf32>
  %numbers = arith.uitofp %ones : tensor<{n}xi1> to tensor<{n}xf32>
  {reduced("arith.addf", "%numbers", n, "%zero", "count")}
  %squares = arith.mulf %x, %x : tensor<{n}xf32>
  {reduced("arith.addf", "%squares", n, "%zero", "sum")}
  %mean = arith.divf %sum, %count : tensor<f32>
  {spread("%d = arith.subf %v, %r : f32 %o = math.absf %d : f32", "%mean", n, "away")}
  {reduced("arith.addf", "%away", n, "%zero", "all")}
  %both = arith.addf %all, %mean : tensor<f32>
  return %both : tensor<f32>
}}"""


# The host wants the sum, too.
BOTH = f"""
func.func @both(%x: tensor<100xf32>) -> (tensor<100xf32>, f32) {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  {reduced("arith.addf", "%x", 100, "%zero", "sum")}
  {spread("%o = arith.mulf %v, %r : f32", "%sum", 100, "y")}
  %s = tensor.extract %sum[] : tensor<f32>
  return %y, %s : tensor<100xf32>, f32
}}"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = "\n".join([*map(softmax, LENGTHS), *map(norm, LENGTHS), *map(quotient, LENGTHS), BOTH])
    return build_library(text, tmp_path_factory.mktemp("rows"), "-O1")


def lowered(text: str, folder: Path) -> str:
    return build(text, emit="mlir", out=folder / "x.mlir", chips="sm_90").path.read_text()


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("n", LENGTHS)
def test_softmax(n: int, library: Library) -> None:
    x = numbers(n)
    y = np.zeros_like(x)
    library.call(f"softmax_{n}", x, y)
    e = np.exp(x.astype(np.float64) - x.max())
    np.testing.assert_allclose(y, e / e.sum(), rtol=1e-5)


@pytest.mark.parametrize("n", LENGTHS)
def test_norm(n: int, library: Library) -> None:
    x = numbers(n)
    y = np.zeros_like(x)
    library.call(f"norm_{n}", x, y)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y, (wide - wide.mean()) / wide.std(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_that_use_sums(n: int, library: Library, tmp_path: Path) -> None:
    x = numbers(n)
    y = np.zeros((), np.float32)
    library.call(f"quotient_{n}", x, y)
    mean = (x.astype(np.float64) ** 2).mean()
    np.testing.assert_allclose(y, np.abs(x - mean).sum() + mean, rtol=1e-5)
    text = lowered(quotient(n), tmp_path)
    assert "aotc_wait" not in text
    assert "gpu.memcpy" not in text


@pytest.mark.parametrize("program", [softmax, norm])
@pytest.mark.parametrize("n", [10, 2048, 16384])
def test_one_kernel_and_no_wait(program: object, n: int, tmp_path: Path) -> None:
    assert callable(program)
    text = lowered(program(n), tmp_path)
    # A GPU's, and the CPU's.
    assert text.count("gpu.launch_func") == 2
    assert "aotc_wait" not in text
    assert "gpu.memcpy" not in text


def test_what_the_host_wants_it_gets(library: Library, tmp_path: Path) -> None:
    x = numbers(100)
    y = np.zeros_like(x)
    total = library.call("both", x, y)
    np.testing.assert_allclose(total, x.sum(), rtol=1e-5)
    np.testing.assert_allclose(y, x * total, rtol=1e-6)
    assert lowered(BOTH, tmp_path).count("aotc_wait") > 0
