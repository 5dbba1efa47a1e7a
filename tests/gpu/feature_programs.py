"""One module of small entries, of what MLIR has beside loops of f32: conversions of f8, masks,
sparse matrices, reductions with places and by columns, loops that are a matmul.

`source()` is its text, `CASES` what its entries are called with and what must come out, by NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from samples import F32_RTOL, F64_RTOL, Array, Case, Values, rng, uniform

PROGRAM = "features"
_ENTRY = "attributes {llvm.emit_c_interface}"
_F8 = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
# As the bits of NaN behind the sign.
_NAN = {"f8E4M3FN": 0x7F, "f8E5M2": 0x7E}
_FLOATS: dict[str, Any] = {"f32": np.float32, "f16": np.float16}
_FROM_NAN = 12345.0


def _loop(name: str, arguments: str, body: str, step: int = 1) -> str:
    """An entry with a kernel over the elements of `%x`, `step` at a time."""
    element = arguments.split("x: memref<?x")[1].split(">")[0]
    return f"""
func.func @{name}({arguments}) {_ENTRY} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {step} : index
  %n = memref.dim %x, %c0 : memref<?x{element}>
  scf.parallel (%i) = (%c0) to (%n) step (%step) {{{body}
  }}
  return
}}"""


def _narrow(name: str, element: str) -> str:
    return _loop(
        f"narrow_{name}_{element}",
        f"%x: memref<?x{element}>, %y: memref<?xi8>",
        f"""
    %v = memref.load %x[%i] : memref<?x{element}>
    %small = arith.truncf %v : {element} to {name}
    %bits = arith.bitcast %small : {name} to i8
    memref.store %bits, %y[%i] : memref<?xi8>""",
    )


def _narrow_vectors(name: str) -> str:
    """Vectors of five: two pairs, and one element."""
    return _loop(
        f"narrow_{name}_vectors",
        "%x: memref<?xf32>, %y: memref<?xi8>",
        f"""
    %v = vector.load %x[%i] : memref<?xf32>, vector<5xf32>
    %small = arith.truncf %v : vector<5xf32> to vector<5x{name}>
    %bits = arith.bitcast %small : vector<5x{name}> to vector<5xi8>
    vector.store %bits, %y[%i] : memref<?xi8>, vector<5xi8>""",
        step=5,
    )


def _widen(name: str, element: str) -> str:
    """NaN becomes a number: its bits are not defined."""
    return _loop(
        f"widen_{name}_{element}",
        f"%x: memref<?xi8>, %y: memref<?x{element}>",
        f"""
    %bits = memref.load %x[%i] : memref<?xi8>
    %small = arith.bitcast %bits : i8 to {name}
    %wide = arith.extf %small : {name} to {element}
    %is_nan = arith.cmpf uno, %wide, %wide : {element}
    %number = arith.constant {_FROM_NAN} : {element}
    %v = arith.select %is_nan, %number, %wide : {element}
    memref.store %v, %y[%i] : memref<?x{element}>""",
    )


_MASKS = _loop(
    "masks",
    "%x: memref<?xf32>, %y: memref<?xf32>",
    """
    %zero = arith.constant 0.0 : f32
    %left = arith.subi %n, %i : index
    %mask = vector.create_mask %left : vector<8xi1>
    %v = vector.mask %mask { vector.transfer_read %x[%i], %zero {in_bounds = [true]}
      : memref<?xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
    %s = arith.addf %v, %v : vector<8xf32>
    vector.mask %mask { vector.transfer_write %s, %y[%i] {in_bounds = [true]}
      : vector<8xf32>, memref<?xf32> } : vector<8xi1>""",
    step=8,
)
_ROWS, _COLUMNS = 300, 70
_OTHERS = f"""
#CSR = #sparse_tensor.encoding<{{
  map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 32
}}>
func.func @sparse(%a: tensor<50x90xf32, #CSR>, %v: tensor<90xf32>, %s: tensor<50xf32>)
    -> tensor<50xf32> {_ENTRY} {{
  %r = linalg.matvec ins(%a, %v : tensor<50x90xf32, #CSR>, tensor<90xf32>)
    outs(%s : tensor<50xf32>) -> tensor<50xf32>
  return %r : tensor<50xf32>
}}
func.func @ragged(%a: tensor<?x?xf64, #CSR>, %v: tensor<?xf64>, %s: tensor<?xf64>)
    -> tensor<?xf64> {_ENTRY} {{
  %r = linalg.matvec ins(%a, %v : tensor<?x?xf64, #CSR>, tensor<?xf64>)
    outs(%s : tensor<?xf64>) -> tensor<?xf64>
  return %r : tensor<?xf64>
}}
func.func @columns(%a: tensor<{_ROWS}x{_COLUMNS}xf32>) -> tensor<{_COLUMNS}xf32> {_ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{_COLUMNS}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{_COLUMNS}xf32>)
    -> tensor<{_COLUMNS}xf32>
  %r = linalg.reduce {{arith.addf}} ins(%a : tensor<{_ROWS}x{_COLUMNS}xf32>)
    outs(%zeros : tensor<{_COLUMNS}xf32>) dimensions = [0]
  return %r : tensor<{_COLUMNS}xf32>
}}
func.func @places(%a: memref<{_ROWS}x{_COLUMNS}xf32>, %v: memref<{_ROWS}xf32>,
                  %p: memref<{_ROWS}xi64>) {_ENTRY} {{
  %start = arith.constant 0xFF800000 : f32
  %nowhere = arith.constant -1 : i64
  affine.parallel (%i) = (0) to ({_ROWS}) {{
    %best:2 = affine.for %j = 0 to {_COLUMNS} iter_args(%old = %start, %at = %nowhere)
        -> (f32, i64) {{
      %new = affine.load %a[%i, %j] : memref<{_ROWS}x{_COLUMNS}xf32>
      %here = arith.index_cast %j : index to i64
      %c = arith.cmpf ogt, %new, %old : f32
      %value = arith.select %c, %new, %old : f32
      %place = arith.select %c, %here, %at : i64
      affine.yield %value, %place : f32, i64
    }}
    affine.store %best#0, %v[%i] : memref<{_ROWS}xf32>
    affine.store %best#1, %p[%i] : memref<{_ROWS}xi64>
  }}
  return
}}
// A batch of products between other statements, and products in steps that follow each other.
func.func @statements(%a: memref<3x64x48xf32>, %b: memref<3x48x80xf32>, %v: memref<80xf32>,
                      %c: memref<3x64x80xf32>, %d: memref<3x64x80xf32>) {_ENTRY} {{
  %zero = arith.constant 0.0 : f32
  affine.for %n = 0 to 3 {{
    affine.for %i = 0 to 64 {{
      affine.for %j = 0 to 80 {{
        %start = affine.load %v[%j] : memref<80xf32>
        affine.store %start, %c[%n, %i, %j] : memref<3x64x80xf32>
        affine.for %k = 0 to 48 {{
          %x = affine.load %a[%n, %i, %k] : memref<3x64x48xf32>
          %y = affine.load %b[%n, %k, %j] : memref<3x48x80xf32>
          %z = affine.load %c[%n, %i, %j] : memref<3x64x80xf32>
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %z, %p : f32
          affine.store %s, %c[%n, %i, %j] : memref<3x64x80xf32>
        }}
      }}
    }}
    affine.for %i = 0 to 64 {{
      affine.for %j = 0 to 80 {{
        %z = affine.load %c[%n, %i, %j] : memref<3x64x80xf32>
        %r = arith.maximumf %z, %zero : f32
        affine.store %r, %d[%n, %i, %j] : memref<3x64x80xf32>
      }}
    }}
  }}
  return
}}
func.func @steps(%a: memref<64x64xf32>, %x: memref<64x48xf32>, %y: memref<64x48xf32>,
                 %n: index) {_ENTRY} {{
  %zero = arith.constant 0.0 : f32
  affine.for %t = 0 to %n {{
    affine.for %i = 0 to 64 {{
      affine.for %j = 0 to 48 {{
        affine.store %zero, %y[%i, %j] : memref<64x48xf32>
        affine.for %k = 0 to 64 {{
          %u = affine.load %a[%i, %k] : memref<64x64xf32>
          %v = affine.load %x[%k, %j] : memref<64x48xf32>
          %z = affine.load %y[%i, %j] : memref<64x48xf32>
          %p = arith.mulf %u, %v : f32
          %s = arith.addf %z, %p : f32
          affine.store %s, %y[%i, %j] : memref<64x48xf32>
        }}
      }}
    }}
    affine.for %i = 0 to 64 {{
      affine.for %j = 0 to 48 {{
        %z = affine.load %y[%i, %j] : memref<64x48xf32>
        affine.store %z, %x[%i, %j] : memref<64x48xf32>
      }}
    }}
  }}
  return
}}
func.func @raised(%a: memref<96x80xf32>, %b: memref<80x112xf32>, %c: memref<96x112xf32>) {_ENTRY} {{
  affine.for %i = 0 to 96 {{
    affine.for %j = 0 to 112 {{
      affine.for %k = 0 to 80 {{
        %x = affine.load %a[%i, %k] : memref<96x80xf32>
        %y = affine.load %b[%k, %j] : memref<80x112xf32>
        %z = affine.load %c[%i, %j] : memref<96x112xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %z, %p : f32
        affine.store %s, %c[%i, %j] : memref<96x112xf32>
      }}
    }}
  }}
  return
}}
"""


def source() -> str:
    """The module."""
    texts = [_MASKS, _OTHERS]
    for name in _F8:
        texts += [_narrow(name, element) for element in _FLOATS]
        texts += [_widen(name, element) for element in _FLOATS]
        texts.append(_narrow_vectors(name))
    return "\n".join(["// Generated by tests/gpu/feature_programs.py.", *texts])


def _numbers(name: str) -> Array:
    """f32: what is exact, the middles between, their neighbours, NaN, and any bits."""
    exact = np.arange(256, dtype=np.uint8).view(_F8[name]).astype(np.float32)
    exact = np.unique(exact[np.isfinite(exact)])
    middles = (exact[1:] + exact[:-1]) / 2
    beyond = np.array([464, 465, 480, 61439, 61440, 65536, 3e38, 1e-30, 1e-44, np.inf, np.nan])
    numbers = np.concatenate([exact, middles, beyond.astype(np.float32)])
    numbers = np.concatenate([numbers, -numbers])
    near = [np.nextafter(numbers, np.float32(to)) for to in (np.inf, -np.inf)]
    random = rng(f"{PROGRAM} {name}").integers(0, 2**32, 1 << 14, np.uint32).view(np.float32)
    # In f8's range.
    scaled = random.view(np.int32).astype(np.float32) * np.float32(2.0**-20)
    found = np.concatenate([numbers, *near, random, scaled])
    return found[: found.size // 5 * 5]


def _narrowed(name: str, numbers: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        bits = numbers.astype(np.float32).astype(_F8[name]).view(np.uint8)
    is_nan = np.isnan(bits.view(_F8[name]).astype(np.float32))
    signs = np.where(np.signbit(numbers), 0x80, 0)
    made: Array = np.where(is_nan, signs | _NAN[name], bits).astype(np.uint8).view(np.int8)
    return made


def _narrow_values(name: str, element: str) -> Values:
    x = _numbers(name)
    if element == "f16":
        # GPUs widen f16 to f32 first, and make every NaN a positive one.
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        x = x[~(np.isnan(x) & np.signbit(x))]
    return Values({"x": x, "y": x.shape}, {"y": _narrowed(name, x)}, {})


def _widen_values(name: str, element: str) -> Values:
    x = np.arange(256, dtype=np.uint8)
    y = x.view(_F8[name]).astype(np.float32)
    y = np.where(np.isnan(y), _FROM_NAN, y).astype(_FLOATS[element])
    return Values({"x": x.view(np.int8), "y": x.shape}, {"y": y}, {})


def _mask_values() -> Values:
    x = uniform(rng("masks"), 1003, np.float32, -1, 1)
    return Values({"x": x, "y": x.shape}, {"y": x + x}, {})


def _sparse_values() -> Values:
    r = rng("sparse features")
    dense = np.where(r.random((50, 90)) < 0.1, r.random((50, 90)), 0).astype(np.float32)
    dense[::5] = 0
    rows, columns = np.nonzero(dense)
    x, s = (uniform(r, size, np.float32, 0, 1) for size in (90, 50))
    return Values(
        {
            "a_positions1": np.searchsorted(rows, np.arange(51)).astype(np.int32),
            "a_coordinates1": columns.astype(np.int32),
            "a_values": dense[rows, columns],
            "v": x,
            "s": s,
        },
        {"result0": dense.astype(np.float64) @ x + s},
        {"result0": np.float32},
    )


def _ragged_values(lengths: Array) -> Values:
    r = rng(f"ragged {lengths.sum()}")
    count, size = int(lengths.sum()), 400
    columns = r.integers(0, size, count).astype(np.int32)
    values, v, s = (uniform(r, n, np.float64, 0, 1) for n in (count, size, len(lengths)))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return Values(
        {
            "a_positions1": np.r_[0, np.cumsum(lengths)].astype(np.int32),
            "a_coordinates1": columns,
            "a_values": values,
            "a_size0": len(lengths),
            "a_size1": size,
            "v": v,
            "s": s,
        },
        {"result0": s + np.bincount(rows, values * v[columns], len(lengths))},
        {"result0": np.float64},
    )


def _column_values() -> Values:
    a = uniform(rng("columns"), (_ROWS, _COLUMNS), np.float32, 0, 1)
    return Values({"a": a}, {"result0": a.astype(np.float64).sum(0)}, {"result0": np.float32})


def _place_values() -> Values:
    # Few numbers: the first place of several counts.
    a = rng("places").integers(0, 40, (_ROWS, _COLUMNS)).astype(np.float32)
    a[7] = np.nan
    a[8] = -np.inf
    values, places = a.max(1), a.argmax(1).astype(np.int64)
    values[7:9], places[7:9] = -np.inf, -1
    shapes = {"v": (_ROWS,), "p": (_ROWS,)}
    return Values({"a": a, **shapes}, {"v": values, "p": places}, {})


def _raised_values() -> Values:
    r = rng("raised")
    a, b, c = (uniform(r, shape, np.float32, 0, 1) for shape in ((96, 80), (80, 112), (96, 112)))
    product = c + a.astype(np.float64) @ b
    return Values({"a": a, "b": b, "c": c}, {"c": product}, {"c": np.float32})


# Rows of one lane, of several, with rows that are much longer, of a warp, of a block.
_RAGGED = {
    name: partial(_ragged_values, lengths)
    for name, lengths in {
        "short": np.r_[np.arange(5000) % 3, 999, np.arange(100) % 4],
        "power": np.r_[0, 10000 // np.arange(1, 3000), 0, 0],
        "long": np.arange(600) % 211,
        "blocks": np.array([20000, 0, 15000, 3]),
    }.items()
}


def _statement_values() -> Values:
    r = rng("statements")
    shapes = ((3, 64, 48), (3, 48, 80), (80,))
    a, b, v = (uniform(r, shape, np.float32, -1, 1) for shape in shapes)
    product = a.astype(np.float64) @ b + v
    results = {"c": product, "d": np.maximum(product, 0)}
    out = dict.fromkeys(results, product.shape)
    return Values({"a": a, "b": b, "v": v, **out}, results, dict.fromkeys(results, np.float32))


def _step_values() -> Values:
    r = rng("steps")
    a, x = (uniform(r, shape, np.float32, 0, 1 / 32) for shape in ((64, 64), (64, 48)))
    product = np.linalg.matrix_power(a.astype(np.float64), 3) @ x
    return Values({"a": a, "x": x, "y": x.shape, "n": 3}, {"x": product}, {"x": np.float32})


def _cases() -> list[Case]:
    def case(entry: str, make: Any, rtol: float = 0) -> Case:
        return Case(f"{PROGRAM}-{entry}", PROGRAM, make, rtol, entry=entry)

    found = [
        case("masks", _mask_values),
        case("sparse", _sparse_values, F32_RTOL),
        *(
            Case(f"{PROGRAM}-ragged-{name}", PROGRAM, make, F64_RTOL, entry="ragged")
            for name, make in _RAGGED.items()
        ),
        case("columns", _column_values, F32_RTOL),
        case("places", _place_values),
        case("raised", _raised_values, F32_RTOL),
    ]
    # Of products of both signs.
    statements = case("statements", _statement_values, F32_RTOL)
    found += [replace(statements, atol=1e-4), case("steps", _step_values, F32_RTOL)]
    for name in _F8:
        for element in _FLOATS:
            narrow, widen = f"narrow_{name}_{element}", f"widen_{name}_{element}"
            found.append(case(narrow, lambda n=name, e=element: _narrow_values(n, e)))
            found.append(case(widen, lambda n=name, e=element: _widen_values(n, e)))
        vectors = f"narrow_{name}_vectors"
        found.append(case(vectors, lambda n=name: _narrow_values(n, "f32")))
    return found


CASES: Mapping[str, Case] = {case.name: case for case in _cases()}
