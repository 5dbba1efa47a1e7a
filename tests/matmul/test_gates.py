"""Products whose columns are gates, which the CPU's kernel joins: against NumPy in f64."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.shared import made_once, shared_folder

import aotc

# Of the LSTM: rows, K and columns of a gate. A tile's rows and more, several steps along K.
CELLS = ((8, 128, 64), (201, 330, 48))
PAIR = (24, 64, 112)
ROW = "affine_map<(i, j) -> (i, j)>"
PARALLEL = 'iterator_types = ["parallel", "parallel"]'


def weights(k: int, n: int) -> np.ndarray:
    return np.random.default_rng(k).standard_normal((k, n)).astype(np.float32) / 16


def constant(k: int, n: int) -> str:
    data = weights(k, n).tobytes().hex().upper()
    return f'arith.constant dense<"0x{data}"> : tensor<{k}x{n}xf32>'


def joined(name: str, operands: dict[str, str], result: str, body: str) -> str:
    """An elementwise operation: `operands` and their types, the result's type."""
    types = [*operands.values(), result]
    maps = ", ".join([ROW] * len(types))
    arguments = ", ".join(f"%x{i}: f32" for i in range(len(types)))
    return f"""
  %{name} = linalg.generic {{indexing_maps = [{maps}], {PARALLEL}}}
      ins({", ".join(operands)} : {", ".join(operands.values())})
      outs(%{name}_empty : {result}) {{
  ^bb0({arguments}):
    {body}
  }} -> {result}"""


def sigmoid(value: str, name: str) -> str:
    return f"""%{name}n = arith.negf {value} : f32
    %{name}e = math.exp %{name}n : f32
    %{name}s = arith.addf %{name}e, %one : f32
    %{name} = arith.divf %one, %{name}s : f32"""


def slices(count: int, rows: str, columns: int, source: str) -> str:
    """The gates of a product `%source`, as `%gate0` and so on; `rows` is a number or a value."""
    size = "?" if rows.startswith("%") else rows
    whole = f"tensor<{size}x{count * columns}xf32>"
    return "\n".join(
        f"  %gate{i} = tensor.extract_slice %{source}[0, {i * columns}] [{rows}, {columns}] [1, 1]"
        f" : {whole} to tensor<{size}x{columns}xf32>"
        for i in range(count)
    )


def lstm(m: int, k: int, columns: int) -> str:
    """A step: what the gates are without h is %x, the weights are constant."""
    n = 4 * columns
    each, whole = f"tensor<{m}x{columns}xf32>", f"tensor<{m}x{n}xf32>"
    new = joined(
        "new",
        {"%gate0": each, "%gate1": each, "%gate2": each, "%c": each},
        each,
        f"""{sigmoid("%x0", "i")}
    {sigmoid("%x1", "f")}
    %g = math.tanh %x2 : f32
    %kept = arith.mulf %f, %x3 : f32
    %more = arith.mulf %i, %g : f32
    %sum = arith.addf %kept, %more : f32
    linalg.yield %sum : f32""",
    )
    out = joined(
        "out",
        {"%gate3": each, "%new": each},
        each,
        f"""{sigmoid("%x0", "o")}
    %t = math.tanh %x1 : f32
    %shown = arith.mulf %o, %t : f32
    linalg.yield %shown : f32""",
    )
    return f"""
func.func @lstm_{m}(%h: tensor<{m}x{k}xf32>, %x: {whole}, %c: {each}) -> ({each}, {each})
    attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %w = {constant(k, n)}
  %empty = tensor.empty() : {whole}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {whole}) -> {whole}
  %product = linalg.matmul ins(%h, %w : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%zeros : {whole}) -> {whole}
  %all = linalg.add ins(%product, %x : {whole}, {whole}) outs(%empty : {whole}) -> {whole}
{slices(4, str(m), columns, "all")}
  %new_empty = tensor.empty() : {each}
  %out_empty = tensor.empty() : {each}{new}{out}
  return %new, %out : {each}, {each}
}}"""


def unit(name: str, k: int, columns: int, *, is_read: bool = False) -> str:
    """A gated linear unit of any number of rows, whose weights are an argument. `is_read`: the
    first gate is a result, too."""
    n = 2 * columns
    each, whole = f"tensor<?x{columns}xf32>", f"tensor<?x{n}xf32>"
    half = joined(
        "half",
        {"%gate0": each, "%gate1": each},
        each,
        f"""{sigmoid("%x1", "s")}
    %r = arith.mulf %x0, %s : f32
    linalg.yield %r : f32""",
    )
    results = f"{each}, {each}" if is_read else each
    values = "%half, %gate0" if is_read else "%half"
    return f"""
func.func @{name}(%a: tensor<?x{k}xf32>, %w: tensor<{k}x{n}xf32>) -> ({results})
    attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x{k}xf32>
  %empty = tensor.empty(%m) : {whole}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {whole}) -> {whole}
  %product = linalg.matmul ins(%a, %w : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%zeros : {whole}) -> {whole}
{slices(2, "%m", columns, "product")}
  %half_empty = tensor.empty(%m) : {each}{half}
  return {values} : {results}
}}"""


def pair(m: int, k: int, columns: int) -> str:
    """Two products whose gates one operation joins, as those of a GRU's cell."""
    n = 2 * columns
    each, whole = f"tensor<{m}x{columns}xf32>", f"tensor<{m}x{n}xf32>"
    halves = {f"%{name}{i}": each for name in ("p", "q") for i in (0, 1)}
    half = joined(
        "half",
        halves,
        each,
        f"""%u = arith.addf %x0, %x2 : f32
    {sigmoid("%u", "s")}
    %v = arith.addf %x1, %x3 : f32
    %r = arith.mulf %s, %v : f32
    linalg.yield %r : f32""",
    )
    products = "".join(
        f"""
  %{name}_empty = tensor.empty() : {whole}
  %{name}_zeros = linalg.fill ins(%zero : f32) outs(%{name}_empty : {whole}) -> {whole}
  %{name}_product = linalg.matmul ins(%{matrix}, %w : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%{name}_zeros : {whole}) -> {whole}
  %{name} = math.absf %{name}_product : {whole}
{slices(2, str(m), columns, name).replace("gate", name)}"""
        for name, matrix in (("p", "a"), ("q", "b"))
    )
    return f"""
func.func @pair(%a: tensor<{m}x{k}xf32>, %b: tensor<{m}x{k}xf32>) -> {each}
    attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %w = {constant(k, n)}{products}
  %half_empty = tensor.empty() : {each}{half}
  return %half : {each}
}}"""


def in_place(target: str) -> str:
    """Gates on buffers, whose result is written over `%a` of the product or to `%b`."""
    each, whole = "memref<8x128xf32>", "memref<8x256xf32>"
    views = [f"memref<8x128xf32, strided<[256, 1], offset: {i * 128}>>" for i in (0, 1)]
    gates = "\n".join(
        f"  %gate{i} = memref.subview %c[0, {i * 128}] [8, 128] [1, 1] : {whole} to {view}"
        for i, view in enumerate(views)
    )
    return f"""
func.func @in_place(%a: {each}, %w: memref<128x256xf32>, %b: {each})
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : {whole}
  linalg.fill ins(%zero : f32) outs(%c : {whole})
  linalg.matmul ins(%a, %w : {each}, memref<128x256xf32>) outs(%c : {whole})
{gates}
  linalg.generic {{indexing_maps = [{ROW}, {ROW}, {ROW}], {PARALLEL}}}
      ins(%gate0, %gate1 : {views[0]}, {views[1]}) outs({target} : {each}) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
    %r = arith.mulf %x, %y : f32
    linalg.yield %r : f32
  }}
  memref.dealloc %c : {whole}
  return
}}"""


def lowered(text: str, folder: Path, **options: object) -> str:
    out = folder / "built.mlir"
    aotc.build(text, emit="mlir", out=str(out), chips=("sm_90a",), **options)
    return out.read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        cells = [lstm(*cell) for cell in CELLS]
        text = "\n".join([*cells, unit("unit", 40, 96), pair(*PAIR)])
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_90a",))

    return made_once(shared_folder(tmp_path_factory) / "gates", build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_gates_are_right(
    built: Path, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each level of x86-64, of constant weights and of others, of any number of rows."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    monkeypatch.setenv("AOTC_CPU_THREADS", "2")
    library = aotc.load(shutil.copytree(built, tmp_path / "own"))
    random = np.random.default_rng(0)
    for m, k, columns in CELLS:
        sizes = (m, k), (m, 4 * columns), (m, columns)
        h, x, c = (random.standard_normal(size).astype(np.float32) for size in sizes)
        new, out = map(np.asarray, getattr(library, f"lstm_{m}")(h, x, c))
        product = h.astype(np.float64) @ weights(k, 4 * columns) + x
        i, f, g, o = np.split(product, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        expected = f * c + i * np.tanh(g)
        np.testing.assert_allclose(new, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(out, o * np.tanh(expected), rtol=0, atol=1e-5)
    m, k, columns = PAIR
    a, b = (random.standard_normal((m, k)).astype(np.float32) for _ in range(2))
    first, second = (
        np.split(abs(one.astype(np.float64) @ weights(k, 2 * columns)), 2, axis=1) for one in (a, b)
    )
    expected = (first[1] + second[1]) / (1 + np.exp(-first[0] - second[0]))
    np.testing.assert_allclose(np.asarray(library.pair(a, b)), expected, rtol=0, atol=1e-5)
    for m in (1, 7, 400):
        a = random.standard_normal((m, 40)).astype(np.float32)
        w = random.standard_normal((40, 192)).astype(np.float32)
        first, second = np.split(a.astype(np.float64) @ w, 2, axis=1)
        expected = first / (1 + np.exp(-second))
        np.testing.assert_allclose(np.asarray(library.unit(a, w)), expected, rtol=0, atol=1e-4)


def test_a_step_is_one_kernel_on_the_cpu(tmp_path: Path) -> None:
    """And the product, and what joins the gates, on GPUs."""
    text = lowered(lstm(*CELLS[0]), tmp_path)
    launched = re.findall(r"gpu\.launch_func +@(\w+)::", text)
    assert [name for name in launched if name.endswith("_cpu")] == [
        "matmul_f32_tt_cpu_packed_192x192_gates_cpu"
    ]
    assert sum("matmul" not in name for name in launched) == 1


def test_a_step_is_one_kernel_on_the_cpu_where_gpus_have_loops(tmp_path: Path) -> None:
    out = tmp_path / "built.mlir"
    aotc.build(lstm(*CELLS[0]), emit="mlir", out=str(out), chips=("sm_75",))
    launched = re.findall(r"gpu\.launch_func +@(\w+)::", out.read_text())
    assert "matmul_f32_tt_cpu_packed_192x192_gates_cpu" in launched


def test_one_of_two_products_takes_what_joins_their_gates(tmp_path: Path) -> None:
    launched = re.findall(r"gpu\.launch_func +@(\w+)::", lowered(pair(*PAIR), tmp_path))
    assert sum("_gates" in name for name in launched) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(unit("unit", 40, 96, is_read=True), id="a gate that others read"),
        pytest.param(unit("unit", 40, 100), id="gates that are no whole vectors"),
        pytest.param(in_place("%a"), id="a result that is written over what the product reads"),
    ],
)
def test_gates_that_stay_apart(text: str, tmp_path: Path) -> None:
    assert "_gates" not in lowered(text, tmp_path)


def test_gates_on_buffers(tmp_path: Path) -> None:
    assert "_gates" in lowered(in_place("%b"), tmp_path)
