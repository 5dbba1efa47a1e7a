"""What stands around a product: what moves into its kernel, and what must not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import aotc

Array = NDArray[Any]

SIZE = 64
MATRIX = "memref<64x64xf32>"
VECTOR = "memref<64xf32>"
VIEW = "memref<64x64xf32, strided<[64, 1]>>"
MAPS = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#turned = affine_map<(i, j) -> (j, i)>
"""
FILL = "linalg.fill ins(%zero : f32) outs(%T : memref<64x64xf32>)"
PRODUCT = """
  linalg.matmul ins(%A, %B : memref<64x64xf32>, memref<64x64xf32>) outs(%T : memref<64x64xf32>)
"""
ROOM = "%T = memref.alloc() : memref<64x64xf32>"
FREE = "memref.dealloc %T : memref<64x64xf32>"


def generic(
    target: str, *inputs: tuple[str, str, str], body: str, map_: str = "#id", old: str = "%old"
) -> str:
    """An elementwise operation of names, maps and types; its body is of %x0 and so on, and %old."""
    maps = ", ".join([*(one[1] for one in inputs), map_])
    values = ", ".join(one[0] for one in inputs)
    types = ", ".join(one[2] for one in inputs)
    arguments = ", ".join([*(f"%x{i}: f32" for i in range(len(inputs))), f"{old}: f32"])
    ins = f"ins({values} : {types})" if inputs else ""
    return f"""
  linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      {ins} outs({target} : {MATRIX}) {{
  ^bb0({arguments}):
    {body}
    linalg.yield %r : f32
  }}
"""


ADD = "%r = arith.addf %x0, %x1 : f32"
TIMES = "%r = arith.mulf %x0, %x1 : f32"
COPY = generic("%D", ("%T", "#id", MATRIX), body="%r = arith.addf %x0, %x0 : f32")
BIAS = generic("%D", ("%T", "#id", MATRIX), ("%v", "#row", VECTOR), body=ADD)
BIAS_IN_PLACE = generic("%D", ("%v", "#row", VECTOR), body="%r = arith.addf %x0, %old : f32")
SQUARE_IN_PLACE = generic("%D", body="%r = arith.mulf %old, %old : f32")
SPREAD = generic("%T", ("%v", "#row", VECTOR), body="%r = arith.addf %x0, %x0 : f32")


@dataclass(frozen=True)
class Case:
    """`body` of a function of matrices %A, %B, %D, %E and a vector %v; `exact`: what %D is, of all
    of them in f64; `kernels`: how many there are beside the product's."""

    body: str
    exact: Callable[..., Array]
    kernels: int = 0

    @property
    def text(self) -> str:
        arguments = ", ".join(f"%{name}: {MATRIX}" for name in "ABDE")
        return f"""{MAPS}
func.func @product({arguments}, %v: {VECTOR}, %s: f32) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  {self.body}
  return
}}
"""


def in_place(text: str) -> str:
    return text.replace("%T", "%D")


CASES = {
    "in place": Case(
        in_place(FILL + PRODUCT) + BIAS_IN_PLACE, lambda a, b, d, e, v: a @ b + v
    ),
    "one after the other": Case(
        ROOM + FILL + PRODUCT + BIAS + SQUARE_IN_PLACE + FREE,
        lambda a, b, d, e, v: (a @ b + v) ** 2,
    ),
    "through two buffers": Case(
        f"""{ROOM}
  %U = memref.alloc() : {MATRIX}
  {FILL}{PRODUCT}{BIAS.replace("%D", "%U")}{COPY.replace("%T", "%U")}{FREE}
  memref.dealloc %U : {MATRIX}""",
        lambda a, b, d, e, v: 2 * (a @ b + v),
    ),
    "a scalar argument": Case(
        ROOM
        + FILL
        + PRODUCT
        + generic("%D", ("%T", "#id", MATRIX), body="%r = arith.mulf %x0, %s : f32")
        + FREE,
        lambda a, b, d, e, v: 0.5 * (a @ b),
    ),
    "begins from a bias": Case(
        ROOM + SPREAD + PRODUCT + COPY + FREE, lambda a, b, d, e, v: 2 * (a @ b + 2 * v)
    ),
    "is what begins from a bias": Case(
        in_place(SPREAD + PRODUCT), lambda a, b, d, e, v: a @ b + 2 * v
    ),
    "is added, in place": Case(
        in_place(PRODUCT) + SQUARE_IN_PLACE, lambda a, b, d, e, v: (a @ b + d) ** 2
    ),
    "a residual that is overwritten": Case(
        ROOM
        + FILL
        + PRODUCT
        + generic("%D", ("%T", "#id", MATRIX), body="%r = arith.addf %x0, %old : f32")
        + FREE,
        lambda a, b, d, e, v: a @ b + d,
    ),
    "both ways around": Case(
        ROOM
        + FILL
        + PRODUCT
        + generic(
            "%D", ("%T", "#turned", MATRIX), ("%E", "#turned", MATRIX), body=ADD, map_="#turned"
        )
        + FREE,
        lambda a, b, d, e, v: a @ b + e,
    ),
    "work between that has nothing to do with it": Case(
        ROOM
        + FILL
        + PRODUCT
        + generic("%E", body="%r = arith.addf %old, %old : f32")
        + generic("%D", ("%T", "#id", MATRIX), ("%E", "#id", MATRIX), body=ADD)
        + FREE,
        lambda a, b, d, e, v: a @ b + 2 * e,
        kernels=1,
    ),
    "another one reads the product": Case(
        ROOM
        + FILL
        + PRODUCT
        + BIAS
        + generic("%E", ("%T", "#id", MATRIX), ("%D", "#id", MATRIX), body=TIMES)
        + FREE,
        lambda a, b, d, e, v: a @ b + v,
        kernels=1,
    ),
    "written over what the product reads": Case(
        ROOM + FILL + PRODUCT + BIAS.replace("%D", "%A") + FREE
        + f"memref.copy %A, %D : {MATRIX} to {MATRIX}",
        lambda a, b, d, e, v: a @ b + v,
        kernels=1,
    ),
    "what it reads is written before": Case(
        ROOM
        + FILL
        + PRODUCT
        + generic("%A", body="%r = arith.addf %old, %old : f32")
        + BIAS
        + FREE,
        lambda a, b, d, e, v: a @ b + v,
        kernels=2,
    ),
    "a matrix that lies the other way": Case(
        ROOM
        + FILL
        + PRODUCT
        + generic("%D", ("%T", "#id", MATRIX), ("%E", "#turned", MATRIX), body=ADD)
        + FREE,
        lambda a, b, d, e, v: a @ b + e.T,
    ),
    "another view of what is overwritten": Case(
        ROOM
        + FILL
        + PRODUCT
        + f"%V = memref.subview %D[0, 0] [64, 64] [1, 1] : {MATRIX} to {VIEW}"
        + generic("%D", ("%T", "#id", MATRIX), ("%V", "#id", VIEW), body=ADD)
        + FREE,
        lambda a, b, d, e, v: a @ b + d,
        kernels=1,
    ),
    "turned": Case(
        ROOM + FILL + PRODUCT
        + generic("%D", ("%T", "#turned", MATRIX), ("%v", "#row", VECTOR), body=ADD) + FREE,
        lambda a, b, d, e, v: (a @ b).T + v,
        kernels=1,
    ),
    "together with its own transpose": Case(
        ROOM + FILL + PRODUCT
        + generic("%D", ("%T", "#turned", MATRIX), ("%T", "#id", MATRIX), body=ADD) + FREE,
        lambda a, b, d, e, v: (a @ b).T + a @ b,
        kernels=1,
    ),
    "two products": Case(
        f"""{ROOM}
  %U = memref.alloc() : {MATRIX}
  {FILL}{PRODUCT}{(FILL + PRODUCT.replace("%A", "%E")).replace("%T", "%U")}"""
        + generic("%D", ("%T", "#id", MATRIX), ("%U", "#id", MATRIX), body=TIMES)
        + f"{FREE}\n  memref.dealloc %U : {MATRIX}",
        lambda a, b, d, e, v: (a @ b) * (e @ b),
    ),
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_what_moves(name: str, tmp_path: Path) -> None:
    """The kernels that are left beside products, and that all is computed as it stands there."""
    case = CASES[name]
    artifact = aotc.build(
        case.text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",)
    )
    random = np.random.default_rng(11)
    a, b, d, e = (random.uniform(-1, 1, (SIZE, SIZE)).astype(np.float32) for _ in "abde")
    v = random.uniform(-1, 1, SIZE).astype(np.float32)
    exact = case.exact(*(array.astype(np.float64) for array in (a, b, d, e, v)))
    aotc.load(artifact.path).product(a, b, d, e, v, 0.5)
    np.testing.assert_allclose(d, exact, rtol=1e-5, atol=1e-5)
    kernels = [kernel for kernel in artifact.manifest.kernels if kernel.module == "built_kernels"]
    assert len(kernels) == case.kernels


GATE = """
#id = affine_map<(i, j) -> (i, j)>
func.func @product(%x: memref<64x64xf16>, %g: memref<64x64xf16>, %u: memref<64x64xf16>,
                   %d: memref<64x64xf16>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<64x64xf32>
  %U = memref.alloc() : memref<64x64xf32>
  linalg.fill ins(%zero : f32) outs(%T : memref<64x64xf32>)
  linalg.matmul ins(%x, %g : memref<64x64xf16>, memref<64x64xf16>) outs(%T : memref<64x64xf32>)
  linalg.fill ins(%zero : f32) outs(%U : memref<64x64xf32>)
  linalg.matmul ins(%x, %u : memref<64x64xf16>, memref<64x64xf16>) outs(%U : memref<64x64xf32>)
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%T, %U : memref<64x64xf32>, memref<64x64xf32>) outs(%d : memref<64x64xf16>) {
  ^bb0(%a: f32, %b: f32, %o: f16):
    %ra = arith.truncf %a : f32 to f16
    %rb = arith.truncf %b : f32 to f16
    %r = arith.mulf %ra, %rb : f16
    linalg.yield %r : f16
  }
  memref.dealloc %T : memref<64x64xf32>
  memref.dealloc %U : memref<64x64xf32>
  return
}
"""


def test_what_is_rounded_when_it_is_read_is_rounded_when_it_is_written(tmp_path: Path) -> None:
    """Of two products that one operation multiplies, one is stored, in 16 bits."""
    text = tmp_path / "gate.mlir"
    text.write_text(GATE)
    outlined = aotc.build(text, emit="mlir", out=tmp_path / "out.mlir", chips=("sm_80",))
    assert set(re.findall(r"alloc.* : memref<(.*)>", outlined.path.read_text())) == {"64x64xf16"}
    library = aotc.load(aotc.build(text, emit="shared", out=f"{tmp_path}/", chips=("sm_80",)).path)
    random = np.random.default_rng(5)
    x, g, u = (random.uniform(-1, 1, (64, 64)).astype(np.float16) for _ in "xgu")
    d = np.full((64, 64), np.nan, np.float16)
    library.product(x, g, u, d)
    gate, up = ((x.astype(np.float64) @ w.astype(np.float64)).astype(np.float16) for w in (g, u))
    np.testing.assert_allclose(d.astype(np.float64), gate * up, rtol=2e-3, atol=2e-3)


CONVOLUTION = """
#id = affine_map<(n, f, y, x) -> (n, f, y, x)>
#channel = affine_map<(n, f, y, x) -> (f)>
func.func @product(%x: tensor<{n}x8x12x12x{t}>, %w: tensor<48x8x3x3x{t}>,
                   %b: tensor<48x{t}>, %r: tensor<{n}x48x10x10x{t}>)
    -> tensor<{n}x48x10x10x{t}> attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{n}x48x10x10xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{n}x48x10x10xf32>)
      -> tensor<{n}x48x10x10xf32>
  %m = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<{n}x8x12x12x{t}>, tensor<48x8x3x3x{t}>)
      outs(%f : tensor<{n}x48x10x10xf32>) -> tensor<{n}x48x10x10xf32>
  %g = tensor.empty() : tensor<{n}x48x10x10x{t}>
  %h = linalg.generic {{indexing_maps = [#id, #channel, #id, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%m, %b, %r : tensor<{n}x48x10x10xf32>, tensor<48x{t}>, tensor<{n}x48x10x10x{t}>)
      outs(%g : tensor<{n}x48x10x10x{t}>) {{
  ^bb0(%i: f32, %j: {t}, %k: {t}, %o: {t}):
    %s = arith.addf %k, %j : {t}
    %c = arith.{cast} : {casts}
    %q = arith.addf %c, %s : {t}
    linalg.yield %q : {t}
  }} -> tensor<{n}x48x10x10x{t}>
  return %h : tensor<{n}x48x10x10x{t}>
}}
"""


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_a_convolution_takes_what_is_done_with_it(
    element: str, images: int, tmp_path: Path
) -> None:
    """Numbers of channels and a residual, whether images are a dimension or there is one alone."""
    casts = ("truncf %i", "f32 to f16") if element == "f16" else ("negf %i", "f32")
    text = CONVOLUTION.format(n=images, t=element, cast=casts[0], casts=casts[1])
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",))
    assert not any(kernel.module == "built_kernels" for kernel in artifact.manifest.kernels)
    random = np.random.default_rng(3)
    x, w, b, r = (
        random.uniform(-1, 1, size).astype({"f16": np.float16, "f32": np.float32}[element])
        for size in ((images, 8, 12, 12), (48, 8, 3, 3), (48,), (images, 48, 10, 10))
    )
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
    exact = np.einsum("ncyxij,fcij->nfyx", windows, w.astype(np.float64))
    exact = (1 if element == "f16" else -1) * exact + b[:, None, None] + r
    result = np.full(r.shape, np.nan, r.dtype)
    aotc.load(artifact.path).product(x, w, b, r, result)
    tolerance = 2e-2 if element == "f16" else 1e-4
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=tolerance, atol=tolerance)


# --- On tensors: what has more dimensions than a matrix ---------------------------------------

LINEAR = """
#a = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#c = affine_map<(b, s, n, k) -> (b, s, n)>
#id = affine_map<(b, s, n) -> (b, s, n)>
func.func @product(%x: tensor<{b}x{s}x32x{t}>, %w: tensor<32x48x{t}>, %r: tensor<{b}x{s}x48x{t}>,
                   %p: tensor<{q}x{t}>)
    -> tensor<{b}x{s}x48x{t}> attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  {dims}
  %e = tensor.empty({sizes}) : tensor<{b}x{s}x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{b}x{s}x48xf32>) -> tensor<{b}x{s}x48xf32>
  %m = linalg.generic {{indexing_maps = [#a, #w, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{b}x{s}x32x{t}>, tensor<32x48x{t}>)
      outs(%f : tensor<{b}x{s}x48xf32>) {{
  ^bb0(%i: {t}, %j: {t}, %o: f32):
    %iw = arith.extf %i : {t} to f32
    %jw = arith.extf %j : {t} to f32
    %k = arith.mulf %iw, %jw : f32
    %l = arith.addf %o, %k : f32
    linalg.yield %l : f32
  }} -> tensor<{b}x{s}x48xf32>
  %g = tensor.empty({sizes}) : tensor<{b}x{s}x48x{t}>
  %h = linalg.generic {{indexing_maps = [#id, #id, affine_map<(b, s, n) -> ({map})>, #id],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%m, %r, %p : tensor<{b}x{s}x48xf32>, tensor<{b}x{s}x48x{t}>, tensor<{q}x{t}>)
      outs(%g : tensor<{b}x{s}x48x{t}>) {{
  ^bb0(%i: f32, %j: {t}, %p0: {t}, %o: {t}):
    %jw = arith.extf %j : {t} to f32
    %pw = arith.extf %p0 : {t} to f32
    %k = arith.addf %i, %jw : f32
    %l = arith.mulf %k, %pw : f32
    %q = arith.truncf %l : f32 to {t}
    linalg.yield %q : {t}
  }} -> tensor<{b}x{s}x48x{t}>
  return %h : tensor<{b}x{s}x48x{t}>
}}
"""
DIMS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<{b}x{s}x32xf16>
  %s = tensor.dim %x, %c1 : tensor<{b}x{s}x32xf16>
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("map_", "shape"),
    [("n", (48,)), ("s", (40,)), ("b", (5,)), ("s, n", (40, 48)), ("b, s", (5, 40))],
)
@pytest.mark.parametrize("dynamic", ["", "b"])
def test_rows_that_are_counted_twice(
    map_: str, shape: tuple[int, ...], dynamic: str, tmp_path: Path
) -> None:
    """A linear layer on sequences is a product of two matrices, and what is done with it may be
    given numbers for each sequence, place or both."""
    names = {"b": "?" if "b" in dynamic else "5", "s": "40"}
    sizes = {"b": names["b"], "s": "40", "n": "48"}
    text = LINEAR.format(
        **names,
        t="f16",
        q="x".join(sizes[name] for name in map_.split(", ")),
        map=map_,
        dims=DIMS.format(**names) if dynamic else "",
        sizes="%b" if dynamic else "",
    )
    artifact = aotc.build(
        text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80", "sm_90a")
    )
    assert not any(kernel.module == "built_kernels" for kernel in artifact.manifest.kernels)
    random = np.random.default_rng(3)
    x, w, r, p = (
        random.uniform(-1, 1, size).astype(np.float16)
        for size in ((5, 40, 32), (32, 48), (5, 40, 48), shape)
    )
    wide = [array.astype(np.float64) for array in (x, w, r, p)]
    spread = {"s": wide[3][..., None], "b": wide[3][:, None, None], "b, s": wide[3][..., None]}
    exact = (wide[0] @ wide[1] + wide[2]) * spread.get(map_, wide[3])
    library = aotc.load(artifact.path)
    result = np.full((5, 40, 48), np.nan, np.float16)
    given = library.product(x, w, r, p) if dynamic else library.product(x, w, r, p, result)
    got = given if dynamic else result
    np.testing.assert_allclose(np.asarray(got).astype(np.float64), exact, rtol=4e-3, atol=4e-3)
