"""Matmuls in whole modules: which are found, what they become, what they compute."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.command import aotc_command, process_environment
from helpers.kernel_targets import kernel_targets

import aotc

MATMUL = """
func.func @{name}(%A: memref<{a}>, %B: memref<{b}>, %C: memref<{c}>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant {zero} : {element}
  linalg.fill ins(%zero : {element}) outs(%C : memref<{c}>)
  linalg.{operation} ins(%A, %B : memref<{a}>, memref<{b}>) outs(%C : memref<{c}>)
  return
}}
"""
TRANSPOSED_A = """matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>]"""
TRANSPOSED_B = """matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]"""


def module(a: str, b: str, c: str, operation: str = "matmul", name: str = "product") -> str:
    element = c.split("x")[-1].split(",")[0]
    zero = "0" if element.startswith("i") else "0.0"
    return MATMUL.format(name=name, a=a, b=b, c=c, zero=zero, element=element, operation=operation)


def kernels(text: str, folder: Path, **options: object) -> dict[str, tuple[str, ...]]:
    """See `kernel_targets`."""
    return kernel_targets(
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", **options)
    )


@pytest.mark.parametrize(
    ("a", "b", "c", "operation"),
    [
        ("64x96xf32", "96x80xf32", "64x80xf32", "matmul"),
        ("96x64xf16", "96x80xf16", "64x80xf32", TRANSPOSED_A),
        ("64x96xbf16", "80x96xbf16", "64x80xf32", TRANSPOSED_B),
        ("3x64x96xf32", "3x96x80xf32", "3x64x80xf32", "batch_matmul"),
        ("?x?xf16", "?x?xf16", "?x?xf16", "matmul"),
        ("64x96xi8", "96x80xi8", "64x80xi32", "matmul"),
        ("64x96xf64", "96x80xf64", "64x80xf64", "matmul"),
        # Columns do not follow each other.
        ("64x96xf32, strided<[1, 64]>", "96x80xf32", "64x80xf32", "matmul"),
    ],
)
def test_products_are_found(a: str, b: str, c: str, operation: str, tmp_path: Path) -> None:
    found = kernels(module(a, b, c, operation), tmp_path, chips=("sm_80",))
    assert found == {"gpu": ("sm_80",), "cpu": ()}


def test_hopper_has_a_kernel_of_its_own(tmp_path: Path) -> None:
    text = module("256x256xf16", "256x256xf16", "256x256xf16")
    found = kernels(text, tmp_path, chips=("sm_80", "sm_90"))
    assert found == {
        "sm_90a": ("sm_90a",),
        "gpu": ("sm_80", "sm_90"),
        "cpu": (),
    }


def test_hopper_has_kernels_of_its_own_for_f64(tmp_path: Path) -> None:
    """At any address: the instructions of other chips have half of their rate."""
    file = tmp_path / "product.mlir"
    file.write_text(module("?x?xf64", "?x?xf64", "?x?xf64"))
    said = explanation(file)
    assert said.count(". mma.sync of 16 rows") == 4  # of many tiles, of few, else, at any address
    text = module("255x255xf64", "255x255xf64", "255x255xf64")
    assert kernels(text, tmp_path, chips=("sm_80", "sm_90"), cpu_kernels=False) == {
        "sm_90a": ("sm_90a",),
        "gpu": ("sm_80", "sm_90"),
    }


@pytest.mark.parametrize(("rows", "count"), [(64, 2), (1024, 4)])
def test_few_rows_have_no_kernel_for_large_matrices(rows: int, count: int, tmp_path: Path) -> None:
    """Most of a large tile would be unused, for any number of columns."""
    file = tmp_path / "product.mlir"
    file.write_text(module(f"{rows}x{rows}xf32", f"{rows}x?xf32", f"{rows}x?xf32"))
    said = explanation(file)
    assert said.count(". multiply-adds with tiles of") == count
    assert said.count(". multiply-adds with tiles of 128x256") == (rows == 1024)


def test_without_the_cpu_there_is_no_kernel_for_it(tmp_path: Path) -> None:
    text = module("256x256xf32", "256x256xf32", "256x256xf32")
    found = kernels(text, tmp_path, chips=("sm_80",), cpu_kernels=False)
    assert found == {"gpu": ("sm_80",)}


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        # A launch costs as much.
        (module("8x8xf32", "8x8xf32", "8x8xf32"), ("sm_80",)),
        # No type that kernels have.
        (module("64x64xi64", "64x64xi64", "64x64xi64"), ("sm_80",)),
        # Nothing to multiply: C is filled.
        (module("64x0xf32, strided<[1, 64]>", "0x64xf32", "64x64xf32"), ("sm_80",)),
    ],
)
def test_other_products_stay_loops(text: str, chips: tuple[str, ...], tmp_path: Path) -> None:
    assert kernels(text, tmp_path, chips=chips) == {"any": chips}


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        # GPUs have no asynchronous copies.
        (module("64x64xf32", "64x64xf32", "64x64xf32"), ("sm_75", "sm_80")),
        # Each product alone is small.
        (module("64x8x32xf32", "64x32x32xf32", "64x8x32xf32", "batch_matmul"), ("sm_80",)),
        # Loops have no vectors for rows of 7.
        (module("96x64xf32", "64x7xf32", "96x7xf32"), ("sm_80",)),
    ],
)
def test_the_cpu_alone_has_a_kernel(text: str, chips: tuple[str, ...], tmp_path: Path) -> None:
    found = kernels(text, tmp_path, chips=chips)
    assert found == {"any": chips, "cpu": ()}


def test_equal_products_share_a_kernel(tmp_path: Path) -> None:
    types = ("64x64xf32", "64x64xf32", "64x64xf32")
    text = module(*types, name="one") + module(*types, name="other")
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="both", chips=("sm_80",))
    own = [kernel for kernel in artifact.manifest.kernels if kernel.module.endswith("_gpu")]
    assert len(own) == 2  # with rows at multiples of 16 bytes, and at any address


def test_explain_says_which_kernels(tmp_path: Path) -> None:
    file = tmp_path / "product.mlir"
    file.write_text(module("256x256xf16", "256x256xf16", "256x256xf16"))
    said = explanation(file)
    assert "matmul: wgmma with tiles of 64x" in said


def test_few_rows_are_made_on_tensor_cores_or_in_one_pass(tmp_path: Path) -> None:
    file = tmp_path / "product.mlir"
    file.write_text(module("4x512xf16", "512x512xf16", "4x512xf16"))
    said = explanation(file)
    assert "tiles of 64x64 on sm_90a, else one pass over the large matrix on GPUs" in said


def test_another_runtime_need_not_know_the_capability(tmp_path: Path) -> None:
    text = module("64x64xf32", "64x64xf32", "64x64xf32")
    artifact = aotc.build(text, emit="host-ll", out=tmp_path / "host.ll", chips=("sm_80",))
    assert "declare extern_weak i32 @aotc_compute_capability()" in artifact.path.read_text()


def explanation(file: Path) -> str:
    command = aotc_command("build", file, "--chip", "sm_90", "--explain", "-o", file.parent / "out")
    done = subprocess.run(
        command, env=process_environment(), capture_output=True, text=True, check=True
    )
    return done.stderr + done.stdout


@pytest.mark.parametrize(
    "element",
    ["f32", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("f16", "f64"))],
)
def test_the_cpu_has_a_kernel_of_its_own(element: str, tmp_path: Path) -> None:
    text = module(f"?x?x{element}", f"?x?x{element}", f"?x?x{element}")
    library = aotc.load(aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built").path)
    dtype = {"f32": np.float32, "f16": np.float16, "f64": np.float64}[element]
    random = np.random.default_rng(7)
    for m, n, k in ((1, 1, 1), (33, 65, 17), (64, 48, 100), (0, 5, 3), (4, 4, 0)):
        a = random.random((m, k)).astype(dtype) - dtype(0.5)
        b = random.random((k, n)).astype(dtype) - dtype(0.5)
        c = np.full((m, n), np.nan, dtype)
        library.product(a, b, c)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, exact, rtol=0, atol=0.05 if element == "f16" else 1e-5)


HEAD = """
func.func @product(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %D: memref<64x64xf32>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
"""
TYPES = "memref<64x64xf32>, memref<64x64xf32>"
# What stands in front of a product without being what C begins from, and what C begins from.
BEGINNINGS = {
    "a view is written after the fill": (
        """
  %C = memref.alloc() : memref<64x64xf32>
  %V = memref.subview %C[0, 0] [32, 64] [1, 1]
      : memref<64x64xf32> to memref<32x64xf32, strided<[64, 1]>>
  linalg.fill ins(%zero : f32) outs(%C : memref<64x64xf32>)
  linalg.fill ins(%one : f32) outs(%V : memref<32x64xf32, strided<[64, 1]>>)
""",
        np.repeat(np.array([[1.0], [0.0]]), 32, axis=0),
    ),
    "the diagonal alone is filled": (
        """
  %C = memref.alloc() : memref<64x64xf32>
  linalg.fill ins(%one : f32) outs(%C : memref<64x64xf32>)
  linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      outs(%C : memref<64x64xf32>) {
  ^bb0(%c: f32):
    linalg.yield %zero : f32
  }
""",
        1.0 - np.eye(64),
    ),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_what_c_begins_from(name: str, tmp_path: Path) -> None:
    front, beginning = BEGINNINGS[name]
    text = f"""{HEAD}{front}
  linalg.matmul ins(%A, %B : {TYPES}) outs(%C : memref<64x64xf32>)
  memref.copy %C, %D : memref<64x64xf32> to memref<64x64xf32>
  memref.dealloc %C : memref<64x64xf32>
  return
}}
"""
    assert_product(text, beginning, tmp_path)


def test_a_product_that_parallel_code_calls_stays_a_loop(tmp_path: Path) -> None:
    text = f"""
func.func private @inner(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %D: memref<64x64xf32>) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%D : memref<64x64xf32>)
  linalg.matmul ins(%A, %B : {TYPES}) outs(%D : memref<64x64xf32>)
  return
}}
{HEAD}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {{
    func.call @inner(%A, %B, %D) : ({TYPES}, memref<64x64xf32>) -> ()
  }}
  return
}}
"""
    assert_product(text, np.zeros(1), tmp_path)


def assert_product(text: str, beginning: np.ndarray, folder: Path) -> None:
    artifact = aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_80",))
    random = np.random.default_rng(5)
    a, b = (random.random((64, 64)).astype(np.float32) for _ in "ab")
    d = np.full((64, 64), np.nan, np.float32)
    aotc.load(artifact.path).product(a, b, d)
    exact = a.astype(np.float64) @ b.astype(np.float64) + beginning
    np.testing.assert_allclose(d, exact, rtol=1e-5)


@pytest.mark.parametrize(
    ("layout", "widest"),
    [
        ("strided<[8192, 128, 1]>", True),
        ("strided<[8196, 128, 1]>", False),  # the second matrix is at no multiple of 16 bytes
        ("strided<[0, 128, 1]>", False),  # TMA has no distance of 0
    ],
)
def test_wide_copies_need_every_matrix_aligned(layout: str, widest: bool, tmp_path: Path) -> None:
    text = module("4x64x64xf16", f"4x64x128xf16, {layout}", "4x64x128xf16", "batch_matmul")
    found = kernels(text, tmp_path, chips=("sm_90",))
    assert ("sm_90a" in found) == widest


def test_what_an_operation_loads_by_itself_is_seen(tmp_path: Path) -> None:
    """Between a fill and the product, a body reads C, which its operation is not given."""
    text = """
func.func @product(%A: memref<96x64xf32>, %B: memref<64x128xf32>, %C: memref<96x128xf32>,
                   %D: memref<96x128xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<96x128xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} outs(%D : memref<96x128xf32>) {
  ^bb0(%d: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = memref.load %C[%i, %j] : memref<96x128xf32>
    linalg.yield %c : f32
  }
  linalg.matmul ins(%A, %B : memref<96x64xf32>, memref<64x128xf32>)
      outs(%C : memref<96x128xf32>)
  return
}
"""
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",))
    library = aotc.load(artifact.path)
    library.set_device("cpu")
    rng = np.random.default_rng(3)
    a, b = (rng.random(shape, np.float32) for shape in ((96, 64), (64, 128)))
    c, d = (np.full((96, 128), np.nan, np.float32) for _ in range(2))
    library.product(a, b, c, d)
    np.testing.assert_array_equal(d, np.zeros_like(d))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5)


BY_HAND = """module attributes {gpu.container_module} {
  gpu.module @aotc_runs_on_mine {
    memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
    gpu.func @k(%x: memref<4xf32>) kernel {
      %i = gpu.thread_id x
      %table = memref.get_global @table : memref<4xf32>
      %v = memref.load %table[%i] : memref<4xf32>
      memref.store %v, %x[%i] : memref<4xf32>
      gpu.return
    }
  }
  func.func @f(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>,
      %x: memref<4xf32>) attributes {llvm.emit_c_interface} {
    linalg.matmul ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @aotc_runs_on_mine::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%x : memref<4xf32>)
    return
  }
}
"""


def test_a_module_of_the_users_may_be_named_like_the_librarys(tmp_path: Path) -> None:
    """The library's kernels are set aside by name; others' are whatever they are."""
    built = aotc.build(
        BY_HAND, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",), optimization=1
    )
    library = aotc.load(built)
    library.set_device("cpu")
    a, b = (np.eye(64, dtype=np.float32) * factor for factor in (2, 3))
    c, x = np.zeros((64, 64), np.float32), np.zeros(4, np.float32)
    library["f"](a, b, c, x)
    assert np.array_equal(c, np.eye(64) * 6)
    assert x.tolist() == [1, 2, 3, 4]


SEQUENCES = """
#a = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @product(%x: tensor<?x{tokens}x512xf32>, %w: tensor<512x4096xf32>)
    -> tensor<?x{tokens}x4096xf32> attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %batch = tensor.dim %x, %first : tensor<?x{tokens}x512xf32>
  %empty = tensor.empty(%batch) : tensor<?x{tokens}x4096xf32>
  %from = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{tokens}x4096xf32>)
      -> tensor<?x{tokens}x4096xf32>
  %c = linalg.generic {{indexing_maps = [#a, #w, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<?x{tokens}x512xf32>, tensor<512x4096xf32>)
      outs(%from : tensor<?x{tokens}x4096xf32>) {{
    ^bb0(%left: f32, %right: f32, %sum: f32):
      %product = arith.mulf %left, %right : f32
      %more = arith.addf %sum, %product : f32
      linalg.yield %more : f32
  }} -> tensor<?x{tokens}x4096xf32>
  return %c : tensor<?x{tokens}x4096xf32>
}}
"""


@pytest.mark.parametrize(("tokens", "passes"), [(1, 2), (8, 1), (64, 0)])
def test_sequences_have_no_kernels_for_fewer_rows(tokens: int, passes: int, tmp_path: Path) -> None:
    """Than those of one of them; a batch of any size has one or more."""
    file = tmp_path / "product.mlir"
    file.write_text(SEQUENCES.format(tokens=tokens))
    assert explanation(file).count(". one pass over the large matrix on") == passes
