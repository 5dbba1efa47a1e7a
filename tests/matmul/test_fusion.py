"""What is done with a product is fused to it, where that is right; and it computes the same."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers.shared import made_once, shared_folder
from numpy.typing import NDArray

import aotc

Array = NDArray[Any]

DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}
TOLERANCES = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
M, N, K = 72, 96, 64
IDENTITY = "(i, j) -> (i, j)"
FILL = """
  %zero = arith.constant 0.0 : {t}
  linalg.fill ins(%zero : {t}) outs(%T : memref<{m}x{n}x{t}>)"""
PRODUCT = """
  linalg.matmul ins(%A, %B : memref<{m}x{k}x{e}>, memref<{k}x{n}x{e}>)
      outs(%T : memref<{m}x{n}x{t}>)"""


@dataclass(frozen=True)
class EpilogueOperand:
    """An operand of the function that the elementwise operation reads: its map's results, and how
    NumPy spreads it over C."""

    map: str
    shape: tuple[int, ...]
    element: str = "f32"
    spread: Callable[[Array], Array] = lambda array: array


ROW = EpilogueOperand("(i, j) -> (j)", (N,))
COLUMN = EpilogueOperand("(i, j) -> (i)", (M,), spread=lambda array: array[:, None])
WHOLE = EpilogueOperand(IDENTITY, (M, N))
TURNED = EpilogueOperand("(i, j) -> (j, i)", (N, M), spread=lambda array: array.T)


@dataclass(frozen=True)
class Case:
    """`body`: of %s, the product's element, and %e0 and so on; `exact`: the same in f64."""

    name: str
    body: str
    exact: Callable[..., Array]
    epilogue_operands: tuple[EpilogueOperand, ...] = ()
    element: str = "f32"
    total: str = "f32"
    result: str = "f32"
    dynamic: bool = False

    def text(self, name: str = "", m: int = M, n: int = N, k: int = K) -> str:
        sizes: dict[str, Any] = {"m": m, "n": n, "k": k}
        if self.dynamic:
            sizes = dict.fromkeys("mnk", "?")
        known = {**sizes, "e": self.element, "t": self.total}
        rows, columns = sizes["m"], sizes["n"]
        types = [f"memref<{rows}x{sizes['k']}x{self.element}>"]
        types.append(f"memref<{sizes['k']}x{columns}x{self.element}>")
        types.append(f"memref<{rows}x{columns}x{self.result}>")
        for extra in self.epilogue_operands:
            shape = "".join(f"{'?' if self.dynamic else size}x" for size in extra.shape)
            types.append(f"memref<{shape}{extra.element}>")
        names = ["A", "B", "D", *(f"E{i}" for i in range(len(self.epilogue_operands)))]
        arguments = ", ".join(f"%{n}: {t}" for n, t in zip(names, types, strict=True))
        dims, room = "", ""
        if self.dynamic:
            dims = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %D, %c0 : {types[2]}
  %n = memref.dim %D, %c1 : {types[2]}"""
            room = "%m, %n"
        temporary = f"memref<{rows}x{columns}x{self.total}>"
        return f"""
func.func @{name or self.name}({arguments}) attributes {{llvm.emit_c_interface}} {{{dims}
  %T = memref.alloc({room}) : {temporary}
{FILL.format(**known)}{PRODUCT.format(**known)}
{self.elementwise("%T", temporary, "%D", types[2], types[3:])}
  memref.dealloc %T : {temporary}
  return
}}
"""

    def elementwise(self, source: str, type_: str, target: str, result: str, types: Any) -> str:
        maps = [IDENTITY, *(extra.map for extra in self.epilogue_operands), IDENTITY]
        values = [source, *(f"%E{i}" for i in range(len(types)))]
        inputs = ", ".join(values)
        elements = [self.total, *(extra.element for extra in self.epilogue_operands)]
        names = ["%s", *(f"%e{i}" for i in range(len(types)))]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, elements, strict=True))
        return f"""
  linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}],
                  iterator_types = ["parallel", "parallel"]}}
      ins({inputs} : {", ".join([type_, *types])}) outs({target} : {result}) {{
  ^bb0({arguments}, %out: {self.result}):
    {self.body}
    linalg.yield %r : {self.result}
  }}"""


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def gelu_tanh(x: Array) -> Array:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


BIAS = "%x = arith.addf %s, %e0 : f32\n"
HALF_BIAS = "%w = arith.extf %e0 : f16 to f32\n %x = arith.addf %s, %w : f32\n"
ERF = """
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.70710678 : f32
    %y = arith.mulf %x, %root : f32
    %z = math.erf %y : f32
    %u = arith.addf %z, %one : f32
    %v = arith.mulf %u, %half : f32
    %g = arith.mulf %x, %v : f32
"""
TANH = """
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %c = arith.constant 0.044715 : f32
    %d = arith.constant 0.7978845608 : f32
    %x2 = arith.mulf %x, %x : f32
    %x3 = arith.mulf %x2, %x : f32
    %y = arith.mulf %x3, %c : f32
    %y2 = arith.addf %x, %y : f32
    %y3 = arith.mulf %y2, %d : f32
    %z = math.tanh %y3 : f32
    %u = arith.addf %z, %one : f32
    %v = arith.mulf %u, %half : f32
    %g = arith.mulf %x, %v : f32
"""
SIGMOID = """
    %one = arith.constant 1.0 : f32
    %y = arith.negf %x : f32
    %z = math.exp %y : f32
    %u = arith.addf %z, %one : f32
    %v = arith.divf %one, %u : f32
"""
HALVES = {"element": "f16", "result": "f16"}
F16_ROW, F16_WHOLE = (
    EpilogueOperand(ROW.map, ROW.shape, "f16"),
    EpilogueOperand(IDENTITY, (M, N), "f16"),
)
CASES = (
    Case("bias_row", BIAS.replace("%x", "%r"), lambda p, b: p + b, (ROW,)),
    Case("bias_column", BIAS.replace("%x", "%r"), lambda p, b: p + b, (COLUMN,)),
    Case("residual", BIAS.replace("%x", "%r"), lambda p, b: p + b, (WHOLE,)),
    Case("turned", BIAS.replace("%x", "%r"), lambda p, b: p + b, (TURNED,)),
    Case(
        "scale",
        "%k = arith.constant 0.125 : f32\n %r = arith.mulf %s, %k : f32",
        lambda p: p / 8,
    ),
    Case(
        "relu",
        BIAS + "%zero2 = arith.constant 0.0 : f32\n %r = arith.maximumf %x, %zero2 : f32",
        lambda p, b: relu(p + b),
        (ROW,),
    ),
    Case(
        "gelu",
        HALF_BIAS + ERF + "%r = arith.truncf %g : f32 to f16",
        lambda p, b: gelu(p + b),
        (F16_ROW,),
        **HALVES,
    ),
    Case(
        "gelu_tanh",
        HALF_BIAS + TANH + "%r = arith.truncf %g : f32 to f16",
        lambda p, b: gelu_tanh(p + b),
        (F16_ROW,),
        dynamic=True,
        **HALVES,
    ),
    Case(
        "silu",
        BIAS + SIGMOID + "%r = arith.mulf %x, %v : f32",
        lambda p, b: (p + b) * sigmoid(p + b),
        (ROW,),
        dynamic=True,
    ),
    Case("cast", "%r = arith.truncf %s : f32 to f16", lambda p: p, **HALVES),
    Case(
        "chain",
        HALF_BIAS
        + SIGMOID
        + """
    %f = arith.extf %e1 : f16 to f32
    %h = arith.mulf %v, %f : f32
    %t = arith.addf %h, %e2 : f32
    %r = arith.truncf %t : f32 to f16
""",
        lambda p, b, f, c: sigmoid(p + b) * f + c,
        (F16_ROW, F16_WHOLE, COLUMN),
        **HALVES,
    ),
    Case(
        "place",
        """
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %below = arith.cmpi ule, %j, %i : index
    %low = arith.constant -1.0e+30 : f32
    %r = arith.select %below, %s, %low : f32
""",
        lambda p: np.where(np.tri(*p.shape, dtype=bool), p, -1e30),
    ),
    Case("doubles", "%r = arith.mulf %s, %e0 : f64", lambda p, b: p * b,
         (EpilogueOperand(ROW.map, ROW.shape, "f64"),), "f64", "f64", "f64"),
)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A library of all cases, built once for all workers, with kernels for GPUs."""

    def make(folder: Path) -> None:
        built("".join(case.text() for case in CASES), folder)

    folder = made_once(shared_folder(tmp_path_factory) / "matmul_fusion", make)
    return aotc.load(folder / "lib" / "libbuilt.so")


def built(text: str, folder: Path, **options: Any) -> Any:
    options.setdefault("chips", ("sm_80", "sm_90a"))
    artifact = aotc.build(text, emit="shared", out=f"{folder}/", name="built", **options)
    return aotc.load(artifact.path)


def kernels(text: str, folder: Path) -> int:
    """How many kernels of loops there are: of what is not fused."""
    artifact = aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_80",))
    return sum(kernel.module == "built_kernels" for kernel in artifact.manifest.kernels)


def random(shape: tuple[int, ...], element: str, seed: int) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(DTYPES[element])


def check(case: Case, function: Any, m: int = M, n: int = N, k: int = K) -> None:
    a, b = random((m, k), case.element, 1), random((k, n), case.element, 2)
    sizes = {M: m, N: n}
    epilogue_operands = [
        random(tuple(sizes[size] for size in extra.shape), extra.element, 3 + i)
        for i, extra in enumerate(case.epilogue_operands)
    ]
    d = np.full((m, n), np.nan, DTYPES[case.result])
    function(a, b, d, *epilogue_operands)
    wide = [
        extra.spread(array.astype(np.float64))
        for extra, array in zip(case.epilogue_operands, epilogue_operands, strict=True)
    ]
    exact = case.exact(a.astype(np.float64) @ b.astype(np.float64), *wide)
    tolerance = TOLERANCES[case.result]
    np.testing.assert_allclose(d.astype(np.float64), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_product_and_what_is_done_with_it(case: Case, library: Any) -> None:
    check(case, getattr(library, case.name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("sizes", [(1, 96, 70), (72, 1, 33), (5, 7, 0), (130, 35, 17), (0, 4, 4)])
def test_sizes_that_are_not_known(library: Any, sizes: tuple[int, int, int]) -> None:
    for case in CASES:
        if case.dynamic:
            check(case, getattr(library, case.name), *sizes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_kernel_is_left_beside_the_product(case: Case, tmp_path: Path) -> None:
    assert kernels(case.text(), tmp_path) == 0


@pytest.mark.parametrize("element", ["i64", "i16", "i1"])
def test_what_is_read_may_be_of_types_that_no_product_has(element: str, tmp_path: Path) -> None:
    """A weight for each column, given as a number that no matrix of a product is made of."""
    convert = "arith.uitofp" if element == "i1" else "arith.sitofp"
    text = f"""
func.func @scaled(%A: memref<96x80xf32>, %B: memref<80x128xf32>, %V: memref<128x{element}>,
                  %C: memref<96x128xf32>) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<96x128xf32>
  linalg.fill ins(%zero : f32) outs(%T : memref<96x128xf32>)
  linalg.matmul ins(%A, %B : memref<96x80xf32>, memref<80x128xf32>) outs(%T : memref<96x128xf32>)
  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                   affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}}
      ins(%T, %V : memref<96x128xf32>, memref<128x{element}>) outs(%C : memref<96x128xf32>) {{
  ^bb0(%t: f32, %v: {element}, %c: f32):
    %w = {convert} %v : {element} to f32
    %p = arith.mulf %t, %w : f32
    linalg.yield %p : f32
  }}
  memref.dealloc %T : memref<96x128xf32>
  return
}}
"""
    artifact = aotc.build(
        text, emit="shared", name="scaled", chips=("sm_80", "sm_90a"), out=f"{tmp_path}/"
    )
    rng = np.random.default_rng(5)
    a, b = (rng.random(shape, np.float32) - 0.5 for shape in ((96, 80), (80, 128)))
    dtype = {"i64": np.int64, "i16": np.int16, "i1": np.bool_}[element]
    v = rng.integers(0, 2, 128).astype(dtype)
    c = np.full((96, 128), np.nan, np.float32)
    library = aotc.load(artifact.path)
    library.set_device("cpu")
    library.scaled(a, b, v, c)
    exact = a.astype(np.float64) @ b * v
    np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5)


def test_steps_of_a_recurrent_network_share_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of one tensor is added to each product of a vector, as a part of the product's kernel.
    At each level of x86-64."""
    width, gates, steps = 260, 1040, 4
    state, row, all_rows = f"{width}xf32>", f"{gates}xf32>", f"{steps}x{gates}xf32>"
    lines = []
    for step in range(1, steps):
        lines.append(f"""
  %x{step} = tensor.extract_slice %x[{step}, 0] [1, {gates}] [1, 1]
      : tensor<{all_rows} to tensor<{row}
  %p{step} = linalg.vecmat ins(%h{step - 1}, %w : tensor<{state}, tensor<{width}x{row})
      outs(%zeros : tensor<{row}) -> tensor<{row}
  %g{step} = arith.addf %p{step}, %x{step} : tensor<{row}
  %a{step} = tensor.extract_slice %g{step}[0] [{width}] [1] : tensor<{row} to tensor<{state}
  %b{step} = tensor.extract_slice %g{step}[{width}] [{width}] [1]
      : tensor<{row} to tensor<{state}
  %h{step} = arith.mulf %a{step}, %b{step} : tensor<{state}""")
    text = f"""
func.func @steps(%x: tensor<{all_rows}, %w: tensor<{width}x{row}, %h0: tensor<{state})
    -> tensor<{state} attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{row}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{row}) -> tensor<{row}
{"".join(lines)}
  return %h{steps - 1} : tensor<{state}
}}"""
    built = aotc.build(
        text, emit="shared", out=f"{tmp_path}/built/", name="built", chips=("sm_80",)
    )
    names = {kernel.name for kernel in built.manifest.kernels}
    assert names == {
        "matmul_f32_tt_gemv_m1_w16_b16_epilogue",
        "matmul_f32_tt_gemv_m1_w16_b4_epilogue",
        "matmul_f32_tt_cpu_gemv_8x1024_epilogue",
        "steps_kernel",
    }
    x, w, h = (random(shape, "f32", 1) for shape in ((steps, gates), (width, gates), (width,)))
    expected = h.astype(np.float64)
    for one in x[1:]:
        sums = expected @ (w.astype(np.float64) / width**0.5) + one
        expected = sums[:width] * sums[width : 2 * width]
    w /= np.float32(width**0.5)
    for level in ("1", "3", "4"):
        monkeypatch.setenv("AOTC_CPU_LEVEL", level)
        result = np.full(width, np.nan, np.float32)
        aotc.load(shutil.copytree(tmp_path / "built", tmp_path / level)).steps(x, w, h, result)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 * scale)
