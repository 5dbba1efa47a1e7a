"""What is folded leaves nothing that uses what was erased."""

from __future__ import annotations

import numpy as np

from aotc import mlir
from aotc.lower.tensors.constants import fold_constants
from aotc.lower.tensors.known_tensors import KnownTensors
from aotc.mlir import ir

_MAP = "affine_map<(i) -> (i)>"
# Twice a constant, as a row.
_ROW = f"""
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %twice = linalg.generic {{indexing_maps = [{_MAP}, {_MAP}], iterator_types = ["parallel"]}}
      ins(%w : tensor<2xf32>) outs(%e : tensor<2xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }} -> tensor<2xf32>
  %row = tensor.expand_shape %twice [[0, 1]] output_shape [1, 2]
      : tensor<2xf32> into tensor<1x2xf32>"""


def test_a_reshape_that_nothing_uses_goes_with_what_it_reshapes() -> None:
    text = f"""
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
{_ROW}
  %again = tensor.collapse_shape %row [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>
  return %x : tensor<4xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        left = str(module)
    assert "linalg.generic" not in left
    assert "shape" not in left


def test_checks_that_always_hold_are_gone() -> None:
    """Also of a loop that reads what is not known; one that does not hold stays, to fail."""
    maps = f"[{_MAP}, {_MAP}]"
    text = """
func.func @f(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %good = arith.constant dense<[3, 0]> : tensor<2xi64>
  %bad = arith.constant dense<[3, 4]> : tensor<2xi64>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<2xf32>
"""
    for name in ("good", "bad"):
        text += f"""
  %of_{name} = linalg.generic {{indexing_maps = {maps}, iterator_types = ["parallel"]}}
      ins(%{name} : tensor<2xi64>) outs(%e : tensor<2xf32>) {{
  ^bb0(%a: i64, %b: f32):
    %i = arith.index_cast %a : i64 to index
    %is_within = arith.cmpi ult, %i, %c4 : index
    %checked = arith.select %is_within, %i, %c0 {{aotc.check = "{name}"}} : index
    %v = tensor.extract %x[%checked] : tensor<4xf32>
    linalg.yield %v : f32
  }} -> tensor<2xf32>
"""
    text += "  return %of_good, %of_bad : tensor<2xf32>, tensor<2xf32>\n}"
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        left = str(module)
    assert 'aotc.check = "good"' not in left
    assert 'aotc.check = "bad"' in left


def test_long_chains_are_not_followed_to_their_end() -> None:
    """The steps of a recurrent layer are each made of the one before."""
    steps = [
        f"%x{i + 1} = tensor.expand_shape %y{i} [[0, 1]] output_shape [4, 1]\n"
        f"    : tensor<4xf32> into tensor<4x1xf32>\n"
        f"%y{i + 1} = tensor.collapse_shape %x{i + 1} [[0, 1]]\n"
        f"    : tensor<4x1xf32> into tensor<4xf32>"
        for i in range(1000)
    ]
    lines = "\n".join(steps)
    text = f"""
func.func @f(%y0: tensor<4xf32>) -> tensor<4xf32> {{
  {lines}
  return %y1000 : tensor<4xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        known = KnownTensors()
        last = module.body.operations[0].regions[0].blocks[0].operations[1999]
        assert not known.has(last.operation.results[0])


def test_slices_that_were_erased_are_forgotten() -> None:
    """Operations that are made later may be in their memory, and have other elements."""
    names = range(60)
    lines = []
    for n in names:
        numbers = [[100 * n + i, 0, 100 * n + 10 + i, 0] for i in range(1 + n % 3)]
        whole, part = (f"tensor<{len(numbers)}x{size}xf32>" for size in (4, 2))
        values = ", ".join(f"[{', '.join(f'{one}.0' for one in row)}]" for row in numbers)
        maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * 2)
        kinds = ", ".join(['"parallel"'] * 2)
        lines.append(f"""
  %w{n} = arith.constant dense<[{values}]> : {whole}
  %s{n} = tensor.extract_slice %w{n}[0, 0] [{len(numbers)}, 2] [1, 2] : {whole} to {part}
  %e{n} = tensor.empty() : {part}
  %y{n} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%s{n} : {part}) outs(%e{n} : {part}) {{
  ^bb0(%a: f32, %b: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  }} -> {part}""")
    results = ", ".join(f"%y{n}" for n in names)
    types = ", ".join(f"tensor<{1 + n % 3}x2xf32>" for n in names)
    text = (
        f"func.func @f(%x: f32) -> ({types}) {{{''.join(lines)}\n  return {results} : {types}\n}}"
    )
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        returned = module.body.operations[0].regions[0].blocks[0].operations
        found = [
            list(ir.DenseFPElementsAttr(value.owner.attributes["value"]))
            for value in returned[len(returned) - 1].operands
        ]
    for n, one in zip(names, found, strict=True):
        expected = [2.0 * (100 * n + 10 * j + i) for i in range(1 + n % 3) for j in range(2)]
        assert one == expected


def test_standardized_weights_are_folded() -> None:
    """Those of 16 bits, too, which are widened for it. A matmul widens its own weights: as f32,
    they would take twice the memory."""
    rng = np.random.default_rng(5)
    weights = {name: rng.uniform(-1, 1, (256, 256)).astype(np.float16) for name in ("w", "v")}
    square, row = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"
    both = 'iterator_types = ["parallel", "parallel"]'

    def constant(name: str) -> str:
        text = weights[name].tobytes().hex().upper()
        return f'%{name} = arith.constant dense<"0x{text}"> : tensor<256x256xf16>'

    def widened(name: str) -> str:
        return f"""
  %wide_{name} = linalg.generic {{indexing_maps = [{square}, {square}], {both}}}
      ins(%{name} : tensor<256x256xf16>) outs(%e : tensor<256x256xf32>) {{
  ^bb0(%in: f16, %old: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  }} -> tensor<256x256xf32>"""

    text = f"""
func.func @f(%x: tensor<8x256xf32>) -> (tensor<256x256xf16>, tensor<256x256xf32>) {{
  {constant("w")}
  {constant("v")}
  %e = tensor.empty() : tensor<256x256xf32>
  %h = tensor.empty() : tensor<256x256xf16>
  %zeros = arith.constant dense<0.0> : tensor<256xf32>
{widened("w")}
{widened("v")}
  %sums = linalg.generic {{
      indexing_maps = [{square}, {row}], iterator_types = ["parallel", "reduction"]}}
      ins(%wide_w : tensor<256x256xf32>) outs(%zeros : tensor<256xf32>) {{
  ^bb0(%in: f32, %sum: f32):
    %0 = arith.addf %sum, %in : f32
    linalg.yield %0 : f32
  }} -> tensor<256xf32>
  %less = linalg.generic {{indexing_maps = [{square}, {row}, {square}], {both}}}
      ins(%wide_w, %sums : tensor<256x256xf32>, tensor<256xf32>) outs(%h : tensor<256x256xf16>) {{
  ^bb0(%in: f32, %sum: f32, %old: f16):
    %0 = arith.subf %in, %sum : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  }} -> tensor<256x256xf16>
  return %less, %wide_v : tensor<256x256xf16>, tensor<256x256xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        (function,) = module.body.operations
        *_, end = function.regions[0].blocks[0].operations
        less, wide = (value.owner.operation for value in end.operands)
        assert less.name == "arith.constant"
        assert wide.name == "linalg.generic"
        found = KnownTensors().of(less.results[0])
    exact = weights["w"].astype(np.float64)
    assert found is not None
    np.testing.assert_allclose(found, exact - exact.sum(1, keepdims=True), rtol=2e-3)


def test_a_folded_constant_has_the_shape_that_is_read() -> None:
    text = f"""
func.func @f(%x: tensor<4xf32>) -> tensor<1x2xf32> {{
{_ROW}
  return %row : tensor<1x2xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        (function,) = module.body.operations
        *_, end = function.regions[0].blocks[0].operations
        made = end.operands[0].owner
        assert made.operation.name == "arith.constant"
        assert KnownTensors().of(end.operands[0]).tolist() == [[2.0, 4.0]]
        assert "linalg.generic" not in str(module)


def _constant(name: str, array: np.ndarray, type_: str) -> str:
    return f'  %{name} = arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {type_}\n'


def _widened(name: str, shape: str) -> str:
    both = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>"
    return f"""
  %e_{name} = tensor.empty() : tensor<{shape}xf32>
  %wide_{name} = linalg.generic {{indexing_maps = [{both}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%{name} : tensor<{shape}xf16>) outs(%e_{name} : tensor<{shape}xf32>) {{
  ^bb0(%in: f16, %old: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  }} -> tensor<{shape}xf32>"""


def _product(name: str, left: str, right: str, sizes: tuple[int, int, int]) -> str:
    """The generic that multiplies two tensors of f32, of rows, columns and summands."""
    rows, columns, summands = sizes
    one, other = (f"tensor<{rows}x{summands}xf32>", f"tensor<{summands}x{columns}xf32>")
    type_ = f"tensor<{rows}x{columns}xf32>"
    maps = ("(i, k)", "(k, j)", "(i, j)")
    return f"""
  %zeros_{name} = arith.constant dense<0.0> : {type_}
  %{name} = linalg.generic {{
      indexing_maps = [{", ".join(f"affine_map<(i, j, k) -> {places}>" for places in maps)}],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({left}, {right} : {one}, {other}) outs(%zeros_{name} : {type_}) {{
  ^bb0(%l: f32, %r: f32, %sum: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  }} -> {type_}"""


def test_products_of_constants_are_folded() -> None:
    """But not a product that takes more memory than it is worth."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((40, 96)).astype(np.float16)
    b = rng.standard_normal((96, 130)).astype(np.float16)
    row = rng.standard_normal((600, 1)).astype(np.float32)
    text = f"""
func.func @f(%x: tensor<1xf32>) -> (tensor<40x130xf32>, tensor<600x600xf32>) {{
{_constant("a", a, "tensor<40x96xf16>")}
{_constant("b", b, "tensor<96x130xf16>")}
{_constant("column", row, "tensor<600x1xf32>")}
{_constant("row", row, "tensor<1x600xf32>")}
{_widened("a", "40x96")}
{_widened("b", "96x130")}
{_product("product", "%wide_a", "%wide_b", (40, 130, 96))}
{_product("large", "%column", "%row", (600, 600, 1))}
  return %product, %large : tensor<40x130xf32>, tensor<600x600xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        (function,) = module.body.operations
        *_, end = function.regions[0].blocks[0].operations
        made = [value.owner.operation for value in end.operands]
        assert [one.name for one in made] == ["arith.constant", "linalg.generic"]
        found = KnownTensors().of(made[0].results[0])
    assert found is not None
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-6)


def test_the_factor_of_a_matmul_stays_narrow() -> None:
    """Kernels multiply numbers of 16 bits faster than those of 32. Its transpose is folded."""
    weights = np.arange(6, dtype=np.float16).reshape(2, 3)
    text = f"""
func.func @f(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {{
{_constant("w", weights, "tensor<2x3xf16>")}
  %e = tensor.empty() : tensor<3x2xf16>
  %turned = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%w : tensor<2x3xf16>) outs(%e : tensor<3x2xf16>) {{
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }} -> tensor<3x2xf16>
{_widened("turned", "3x2")}
{_product("product", "%x", "%wide_turned", (4, 2, 3))}
  return %product : tensor<4x2xf32>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        (function,) = module.body.operations
        *_, end = function.regions[0].blocks[0].operations
        widening = end.operands[0].owner.operands[1].owner
        assert widening.operation.name == "linalg.generic"
        assert KnownTensors().of(widening.operands[0]).tolist() == weights.T.tolist()
        assert widening.operands[0].owner.operation.name == "arith.constant"


def test_products_of_bf16_are_not_folded() -> None:
    """NumPy has their bits alone."""
    rng = np.random.default_rng(5)
    shapes = {"a": (40, 96), "b": (96, 130), "start": (40, 130)}
    bits = {name: rng.integers(0x3F00, 0x4000, sizes) for name, sizes in shapes.items()}
    lines = [
        f"  %{name} = arith.constant dense_resource<{name}> : tensor<{rows}x{columns}xbf16>"
        for name, (rows, columns) in shapes.items()
    ]
    # The alignment comes first.
    blobs = [
        f'{name}: "0x02000000{one.astype(np.uint16).tobytes().hex()}"' for name, one in bits.items()
    ]
    constants = "\n".join(lines)
    product = _product("product", "%a", "%b", (40, 130, 96)).replace("f32", "bf16")
    text = f"""
func.func @f(%x: tensor<1xf32>) -> tensor<40x130xbf16> {{
{constants}
{product.replace("outs(%zeros_product", "outs(%start")}
  return %product : tensor<40x130xbf16>
}}
{{-# dialect_resources: {{ builtin: {{ {", ".join(blobs)} }} }} #-}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert "linalg.generic" in str(module)


def test_differences_of_positions_are_no_constant() -> None:
    """They are far larger than the positions, of which a sum is computed only until the embedding
    of the positions is a constant."""
    table = np.random.default_rng(7).standard_normal((512, 8)).astype(np.float32)
    row, column = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (j)>"
    both, parallel = "affine_map<(i, j) -> (i, j)>", '["parallel", "parallel"]'
    text = f"""
func.func @f(%x: tensor<512x8xf32>, %zeros: tensor<512xf32>)
    -> (tensor<512xf32>, tensor<512x512xi1>) {{
  %zero = arith.constant 0 : i64
  %table = arith.constant dense<"0x{table.tobytes().hex().upper()}"> : tensor<512x8xf32>
  %e = tensor.empty() : tensor<512xi64>
  %positions = linalg.generic {{indexing_maps = [{_MAP}], iterator_types = ["parallel"]}}
      outs(%e : tensor<512xi64>) {{
  ^bb0(%old: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  }} -> tensor<512xi64>
  %h = tensor.empty() : tensor<512x8xf32>
  %embedded = linalg.generic {{indexing_maps = [{row}, {both}], iterator_types = {parallel}}}
      ins(%positions : tensor<512xi64>) outs(%h : tensor<512x8xf32>) {{
  ^bb0(%at: i64, %old: f32):
    %0 = arith.index_cast %at : i64 to index
    %1 = linalg.index 1 : index
    %2 = tensor.extract %table[%0, %1] : tensor<512x8xf32>
    linalg.yield %2 : f32
  }} -> tensor<512x8xf32>
  %added = linalg.generic {{
      indexing_maps = [{both}, {both}, {both}], iterator_types = {parallel}}}
      ins(%x, %embedded : tensor<512x8xf32>, tensor<512x8xf32>) outs(%h : tensor<512x8xf32>) {{
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }} -> tensor<512x8xf32>
  %sums = linalg.generic {{
      indexing_maps = [{both}, {row}], iterator_types = ["parallel", "reduction"]}}
      ins(%added : tensor<512x8xf32>) outs(%zeros : tensor<512xf32>) {{
  ^bb0(%in: f32, %sum: f32):
    %0 = arith.addf %sum, %in : f32
    linalg.yield %0 : f32
  }} -> tensor<512xf32>
  %d = tensor.empty() : tensor<512x512xi64>
  %apart = linalg.generic {{
      indexing_maps = [{column}, {row}, {both}], iterator_types = {parallel}}}
      ins(%positions, %positions : tensor<512xi64>, tensor<512xi64>)
      outs(%d : tensor<512x512xi64>) {{
  ^bb0(%a: i64, %b: i64, %old: i64):
    %0 = arith.subi %a, %b : i64
    linalg.yield %0 : i64
  }} -> tensor<512x512xi64>
  %m = tensor.empty() : tensor<512x512xi1>
  %mask = linalg.generic {{indexing_maps = [{both}, {both}], iterator_types = {parallel}}}
      ins(%apart : tensor<512x512xi64>) outs(%m : tensor<512x512xi1>) {{
  ^bb0(%a: i64, %old: i1):
    %0 = arith.cmpi sle, %a, %zero : i64
    linalg.yield %0 : i1
  }} -> tensor<512x512xi1>
  return %sums, %mask : tensor<512xf32>, tensor<512x512xi1>
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        fold_constants(module)
        assert module.operation.verify()
        left = str(module)
    assert "tensor.extract" not in left
    assert "arith.subi" in left
