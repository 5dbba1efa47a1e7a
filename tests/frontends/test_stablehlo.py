"""StableHLO as text and as a portable artifact; what JAX exports, against JAX."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.support import call

import aotc

CHIP = "sm_90"
TEXT = """\
func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.tanh %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
"""


def test_text_and_portable_artifact(tmp_path: Path) -> None:
    """Without JAX: the bindings carry all that is needed."""
    from torch_mlir._mlir_libs import _stablehlo  # type: ignore[import-untyped, unused-ignore]

    portable = _stablehlo.serialize_portable_artifact_str(TEXT, _stablehlo.get_minimum_version())
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (3, 4)))
    for number, data in enumerate((TEXT.encode(), portable)):
        path = tmp_path / f"net{number}.stablehlo"
        path.write_bytes(data)
        built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
        (got,) = call(built, f"net{number}", [a, b], [np.empty((2, 4), np.float32)])
        np.testing.assert_allclose(got, np.tanh(a @ b), rtol=1e-5, atol=1e-6)


def test_operations_of_chlo(tmp_path: Path) -> None:
    """The text of a module that JAX lowered has CHLO's operations, for example top_k."""
    path = tmp_path / "largest.stablehlo"
    path.write_text(
        "func.func public @main(%x: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {\n"
        "  %0 = chlo.sinh %x : tensor<2x5xf32> -> tensor<2x5xf32>\n"
        "  %values, %indices = chlo.top_k(%0, k = 3)"
        " : tensor<2x5xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)\n"
        "  return %values, %indices : tensor<2x3xf32>, tensor<2x3xi32>\n}\n"
    )
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    x = np.random.default_rng(0).standard_normal((2, 5)).astype(np.float32)
    results = [np.empty((2, 3), np.float32), np.empty((2, 3), np.int32)]
    values, indices = call(built, "largest", [x], results)
    expected = np.argsort(-x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_allclose(
        values, np.sinh(np.take_along_axis(x, expected, axis=1)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main(", "Cannot read the StableHLO of"),
        (
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %0 = stablehlo.custom_call @solve(%x) {sharding = #sdy.none} : "
            "(tensor<4xf32>) -> tensor<4xf32>\n"
            "  return %0 : tensor<4xf32>\n}\n",
            'net.stablehlo:2:8: error: stablehlo.custom_call of "solve" has no lowering to linalg',
        ),
        (
            'sdy.mesh @mesh = <["x"=2]>\n'
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            '  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[]\n'
            "  return %0 : tensor<4xf32>\n}\n",
            "net.stablehlo:3:8: error: sdy.manual_computation has no lowering",
        ),
    ],
)
def test_wrong_input(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "net.stablehlo"
    path.write_text(text)
    with pytest.raises(aotc.InputError) as raised:
        aotc.build(path, out=tmp_path / "x")
    assert message in str(raised.value)


SORT = """\
func.func public @main(%keys: tensor<?x3xf32>, %values: tensor<?x3xi32>)
    -> (tensor<?x3xf32>, tensor<?x3xi32>) {
  %limit = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.sort"(%keys, %values) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %x = stablehlo.maximum %a, %limit : tensor<f32>
    %y = stablehlo.maximum %b, %limit : tensor<f32>
    %less = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true}
    : (tensor<?x3xf32>, tensor<?x3xi32>) -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32>
}
"""


def test_sort(tmp_path: Path) -> None:
    """Of several operands and unknown length, along a dimension that is not the last: equal keys
    (here all that are below 0) keep their order, and those that are no numbers come last."""
    path = tmp_path / "sort.stablehlo"
    path.write_text(SORT)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    numbers = np.random.default_rng(1)
    for length in (0, 1, 2, 3, 64, 1000):
        keys = numbers.standard_normal((length, 3)).astype(np.float32)
        keys[numbers.random(keys.shape) < 0.1] = np.nan
        values = np.arange(3 * length, dtype=np.int32).reshape(length, 3)
        order = np.argsort(np.maximum(keys, 0), axis=0, kind="stable")
        got = call(built, "sort", [keys, values], [keys, values])
        np.testing.assert_array_equal(got[0], np.take_along_axis(keys, order, 0))
        np.testing.assert_array_equal(got[1], np.take_along_axis(values, order, 0))


def test_a_comparison_of_the_same_function_of_both_elements_is_a_key(tmp_path: Path) -> None:
    """The CPU device sorts rows by it in a kernel of its own. Other comparisons are merges."""
    path, out = tmp_path / "sort.stablehlo", tmp_path / "sort.mlir"
    for text, has_key in ((SORT, True), (SORT.replace("maximum %b", "minimum %b"), False)):
        path.write_text(text)
        aotc.build(path, emit="mlir", out=out, chips=CHIP)
        assert ("@sort_kernels_cpu::" in out.read_text()) == has_key


SCATTER = """\
func.func public @main(%x: tensor<250x3xf32>, %at: tensor<6x1xui8>, %by: tensor<6x3xf32>)
    -> tensor<250x3xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = "stablehlo.scatter"(%x, %at, %by) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %half = stablehlo.divide %a, %two : tensor<f32>
    %sum = stablehlo.add %half, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<250x3xf32>, tensor<6x1xui8>, tensor<6x3xf32>) -> tensor<250x3xf32>
  return %0 : tensor<250x3xf32>
}
"""


def test_scatter(tmp_path: Path) -> None:
    """Updates of one place in their order (by a function that depends on it), and none of a place
    that there is not; indices have no sign here."""
    path = tmp_path / "scatter.stablehlo"
    path.write_text(SCATTER)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    numbers = np.random.default_rng(2)
    x, by = (numbers.standard_normal(shape).astype(np.float32) for shape in ((250, 3), (6, 3)))
    at = np.array([[200], [3], [200], [255], [249], [200]], np.uint8)
    expected = x.copy()
    for (row,), update in zip(at, by, strict=True):
        if row < 250:
            expected[row] = expected[row] / 2 + update
    (got,) = call(built, "scatter", [x, at, by], [x])
    np.testing.assert_array_equal(got, expected)


SELECTIONS = """\
func.func public @main(%x: tensor<7xui8>, %by: tensor<4xui8>) -> tensor<7xui8> {
  %initial = stablehlo.constant dense<200> : tensor<ui8>
  %0 = "stablehlo.select_and_scatter"(%x, %by, %initial) <{
      window_dimensions = array<i64: 3>, window_strides = array<i64: 2>,
      padding = dense<[[3, -1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
    %1 = stablehlo.compare LE, %a, %b : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
    %1 = stablehlo.subtract %a, %b : tensor<ui8>
    stablehlo.return %1 : tensor<ui8>
  }) : (tensor<7xui8>, tensor<4xui8>, tensor<ui8>) -> tensor<7xui8>
  return %0 : tensor<7xui8>
}
"""


def test_select_and_scatter(tmp_path: Path) -> None:
    """Windows of padding alone select nothing; of others, the first of the smallest numbers gets
    what its windows give, in their order."""
    path = tmp_path / "selections.stablehlo"
    path.write_text(SELECTIONS)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    x = np.array([9, 3, 250, 3, 200, 201, 1], np.uint8)
    # The windows are: nothing; 9, 3; 3, 250, 3; 3, 200, 201.
    by = np.array([50, 7, 20, 30], np.uint8)
    (got,) = call(built, "selections", [x, by], [x])
    np.testing.assert_array_equal(got, [200, 173, 200, 170, 200, 200, 200])


# {0}: the element type, {1}: zero, {2}: the windows, {3}: the stride, {4}: the comparison.
TIES = """\
func.func public @main(%x: tensor<8x{0}>, %by: tensor<{2}x{0}>) -> tensor<8x{0}> {{
  %initial = stablehlo.constant dense<{1}> : tensor<{0}>
  %0 = "stablehlo.select_and_scatter"(%x, %by, %initial) <{{
      window_dimensions = array<i64: 2>, window_strides = array<i64: {3}>}}> ({{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %1 = stablehlo.compare {4}, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %1 = stablehlo.add %a, %b : tensor<{0}>
    stablehlo.return %1 : tensor<{0}>
  }}) : (tensor<8x{0}>, tensor<{2}x{0}>, tensor<{0}>) -> tensor<8x{0}>
  return %0 : tensor<8x{0}>
}}
"""


def test_the_first_of_equal_elements_is_selected(tmp_path: Path) -> None:
    """Also in windows that do not overlap, which a pass of StableHLO's lowers."""
    path = tmp_path / "ties.stablehlo"
    path.write_text(TIES.format("f32", "0.0", 4, 2, "GE"))
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    x = np.array([1, 3, 0, 0, 2, 2, 5, 4], np.float32)
    by = np.array([1, 2, 3, 4], np.float32)
    (got,) = call(built, "ties", [x, by], [x])
    np.testing.assert_array_equal(got, [0, 1, 2, 0, 3, 0, 4, 0])


def test_complex_elements_are_selected(tmp_path: Path) -> None:
    path = tmp_path / "ties.stablehlo"
    path.write_text(TIES.format("complex<f32>", "(0.0, 0.0)", 7, 1, "EQ"))
    aotc.build(path, emit="mlir", out=tmp_path / "ties.mlir", chips=CHIP)


def test_selections_of_rank_0_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ties.stablehlo"
    text = TIES.format("f32", "0.0", 8, 2, "GE")
    path.write_text(text.replace("8xf32", "f32").replace(": 2>", ">"))
    with pytest.raises(aotc.InputError, match="rank 0"):
        aotc.build(path, emit="mlir", out=tmp_path / "ties.mlir", chips=CHIP)


DOTS = """\
func.func public @main(%x: tensor<2x4xui8>, %y: tensor<2x4xui8>, %z: tensor<2x4xsi8>)
    -> (tensor<2x2xi32>, tensor<2x2xf32>, tensor<2x2xui8>, tensor<2x2xi32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
      : (tensor<2x4xui8>, tensor<2x4xui8>) -> tensor<2x2xi32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
      : (tensor<2x4xui8>, tensor<2x4xui8>) -> tensor<2x2xf32>
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
      : (tensor<2x4xui8>, tensor<2x4xui8>) -> tensor<2x2xui8>
  %3 = stablehlo.dot_general %x, %z, contracting_dims = [1] x [1]
      : (tensor<2x4xui8>, tensor<2x4xsi8>) -> tensor<2x2xi32>
  return %0, %1, %2, %3 : tensor<2x2xi32>, tensor<2x2xf32>, tensor<2x2xui8>, tensor<2x2xi32>
}
"""


def test_products_of_unsigned_integers(tmp_path: Path) -> None:
    path = tmp_path / "dots.stablehlo"
    path.write_text(DOTS.replace("si8", "i8"))
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    x = np.array([[250, 7, 0, 200], [3, 128, 127, 255]], np.uint8)
    y = np.array([[3, 9, 201, 255], [250, 2, 1, 254]], np.uint8)
    z = np.array([[-3, 9, -128, 127], [1, -2, 3, -4]], np.int8)
    exact = x.astype(np.int32) @ y.T.astype(np.int32)
    expected = [
        exact,
        exact.astype(np.float32),
        exact.astype(np.uint8),
        x.astype(np.int32) @ z.T.astype(np.int32),
    ]
    for got, known in zip(call(built, "dots", [x, y, z], expected), expected, strict=True):
        np.testing.assert_array_equal(got, known)


CASES = """\
func.func public @main(%x: tensor<4xf32>, %a: tensor<i32>, %b: tensor<i32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %p = "stablehlo.case"(%a) ({
    %0 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %0 : tensor<4xf32>
  }, {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %0 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %q = "stablehlo.case"(%b) ({
    %0 = stablehlo.abs %x : tensor<4xf32>
    stablehlo.return %0 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %p, %q : tensor<4xf32>, tensor<4xf32>
}
"""


def test_two_switches(tmp_path: Path) -> None:
    """Each result has a buffer of its own."""
    path = tmp_path / "switches.stablehlo"
    path.write_text(CASES)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    x = np.array([1, -2, 3, -4], np.float32)
    for a, b in itertools.product((0, 1), repeat=2):
        numbers = [np.array(one, np.int32) for one in (a, b)]
        p, q = call(built, "switches", [x, *numbers], [x, x])
        np.testing.assert_array_equal(p, 2 * x if a else -x)
        np.testing.assert_array_equal(q, x if b else abs(x))


def _cases() -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    def net(weights: Any, x: Any) -> Any:
        return jax.nn.softmax(jnp.tanh(x @ weights["a"]) @ weights["b"])

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return -jnp.mean(jnp.sum(jnp.log(net(weights, x)) * y, -1))

    def step(weights: Any, x: Any, y: Any) -> Any:
        slope = jax.grad(loss)(weights, x, y)
        return jax.tree.map(lambda w, d: w - 0.1 * d, weights, slope)

    def pooled(x: Any, kernel: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        window = (1, 2, 2, 1)
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, window, window, "VALID")

    def recurrent(weights: Any, x: Any) -> Any:
        def one(state: Any, value: Any) -> Any:
            return jnp.tanh(state @ weights + value), state

        return jnp.sum(jax.lax.scan(one, jnp.zeros(4), x)[0])

    def root(x: Any) -> Any:
        """By Newton, until it is near enough."""
        return jax.lax.while_loop(
            lambda y: jnp.max(jnp.abs(y * y - x)) > 1e-5,
            lambda y: 0.5 * (y + x / y),
            jnp.ones_like(x),
        )

    def chosen(x: Any, number: Any) -> Any:
        ways = [lambda v: v + 1, lambda v: v * 3, lambda v: -v]
        return jax.lax.cond(number > 5, lambda v: v, lambda v: v * 2, x) + jax.lax.switch(
            number, ways, x
        )

    def rounded(x: Any, y: Any) -> Any:
        """A product of bf16 without a kernel. It is accumulated in f32, as XLA does."""
        product = jnp.asarray(x, jnp.bfloat16) @ jnp.asarray(y, jnp.bfloat16)
        barrier: Any = jax.lax.optimization_barrier
        return barrier(product).astype(jnp.float32)

    def transformed(x: Any) -> Any:
        """Lengths with small divisors, and one without, of complex and of real numbers."""
        short = jnp.fft.fft(x[:, :67])
        image = jnp.fft.irfft2(jnp.fft.rfft2(x) * (1 + 2j))
        there = jnp.fft.ifft(jnp.fft.fft(x, axis=0), axis=0)
        return [short.real, short.imag, image, there.real]

    def factored(a: Any, b: Any) -> Any:
        """Calls of LAPACK: a batch, the parts of a triangular system, and what has no factor."""
        positive = a @ a.mT + 4 * jnp.eye(4)
        lower = jnp.linalg.cholesky(positive)
        solutions = [
            jax.lax.linalg.triangular_solve(
                lower[0], b, left_side=left, lower=True, transpose_a=turned, unit_diagonal=unit
            )
            for left in (False, True)
            for turned in (False, True)
            for unit in (False, True)
        ]
        not_positive = positive.at[1, 2, 2].set(-9)
        return [
            *solutions,
            jnp.linalg.solve(a[0], b),
            jnp.linalg.det(a),
            jnp.linalg.inv(positive),
            jnp.linalg.cholesky(not_positive),
            jax.scipy.linalg.lu_factor(a[1])[1],
        ]

    def empty(x: Any, rows: Any) -> Any:
        """Tensors without elements: updates, sums, a padded image, a transform, a slice."""
        image = jax.lax.conv(x.reshape(1, 0, 4, 4), x.reshape(2, 0, 3, 3), (1, 1), "SAME")
        spectrum = jnp.fft.fft(x)
        added = jnp.asarray(x).at[rows].add(jnp.ones((2, 4)))
        return [added, jnp.cumsum(x, 1), image, spectrum.real, spectrum[:0].imag]

    numbers = np.random.default_rng(0)

    def random(*shape: int) -> np.ndarray:
        return numbers.standard_normal(shape).astype(np.float32)

    truth = np.eye(3, dtype=np.float32)[numbers.integers(0, 3, 5)]
    rows = numbers.integers(0, 9, 6).astype(np.int32)
    return {
        "step": (step, ({"a": random(4, 8), "b": random(8, 3)}, random(5, 4), truth)),
        "pooled": (pooled, (random(1, 8, 8, 3), random(3, 3, 3, 4))),
        "taken": (lambda table, i: table[i], (random(9, 4), rows)),
        "summed": (lambda x: jnp.cumsum(x), (random(9),)),
        "recurrent": (jax.grad(recurrent), (random(4, 4), random(6, 4))),
        "root": (root, (abs(random(6)) + 1,)),
        "chosen1": (chosen, (random(7), np.int32(1))),
        "chosen9": (chosen, (random(7), np.int32(9))),
        "slope": (jax.grad(lambda a, b: jnp.sum(jnp.sin(a @ b))), (random(5, 6), random(6, 7))),
        "remat": (jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))), (random(9),)),
        "transformed": (transformed, (random(6, 96),)),
        "factored": (factored, (random(2, 4, 4), random(4, 4))),
        "empty": (empty, (np.zeros((0, 4), np.float32), np.zeros(2, np.int32))),
        "rounded": (rounded, (random(16, 100), random(100, 7))),
    }


@pytest.mark.parametrize(
    "name",
    "step pooled taken summed slope recurrent root chosen1 chosen9".split()
    + "remat rounded transformed factored empty".split(),
)
@pytest.mark.parametrize("portable", [False, True], ids=["text", "portable"])
def test_what_jax_exports(name: str, portable: bool, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'aotc[jax]'")
    from jax import export

    function, arguments = _cases()[name]
    exported = export.export(jax.jit(function))(*arguments)
    path = tmp_path / f"{name}.stablehlo"
    if portable:
        path.write_bytes(exported.mlir_module_serialized)
        if name == "factored":  # its calls have attributes of a dialect that is not registered
            with pytest.raises(aotc.InputError, match="Cannot read the StableHLO") as error:
                aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
            assert "as text" in (error.value.hint or "")
            return
    else:
        path.write_text(exported.mlir_module())
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*arguments))]
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    for got, wanted in zip(call(built, name, inputs, expected), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_unsigned_arguments_and_results(tmp_path: Path) -> None:
    """MLIR's types do not say that they are; the manifest does."""
    path = tmp_path / "unsigned.stablehlo"
    path.write_text("""\
func.func public @main(%x: tensor<?xui8>, %y: tensor<i8>) -> (tensor<?xui8>, tensor<?xi8>) {
  %0 = stablehlo.add %x, %x : tensor<?xui8>
  %1 = stablehlo.convert %0 : (tensor<?xui8>) -> tensor<?xi8>
  return %0, %1 : tensor<?xui8>, tensor<?xi8>
}
""")
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    arguments = json.loads((tmp_path / "unsigned.json").read_text())["entries"][0]["arguments"]
    assert [one["dtype"] for one in arguments[:2]] == ["u8", "i8"]
    inputs = [np.array([100, 3], np.uint8), np.array(0, np.int8)]
    unsigned, signed = call(built, "unsigned", inputs, [])
    assert (unsigned.dtype, unsigned.tolist()) == (np.uint8, [200, 6])
    assert (signed.dtype, signed.tolist()) == (np.int8, [-56, 6])


SLICES = """\
func.func public @main(%x: tensor<?x5xf32>, %from: tensor<2xi32>, %to: tensor<2xi32>)
    -> tensor<?x?xf32> {
  %by = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
  %0 = stablehlo.real_dynamic_slice %x, %from, %to, %by
      : (tensor<?x5xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
"""


def test_slices_of_dynamic_size(tmp_path: Path) -> None:
    path = tmp_path / "part.stablehlo"
    path.write_text(SLICES)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    x = np.random.default_rng(4).standard_normal((7, 5)).astype(np.float32)
    for first, end in (((0, 0), (7, 5)), ((3, 1), (6, 2)), ((2, 4), (2, 5))):
        expected = x[first[0] : end[0] : 2, first[1] : end[1]]
        given = [np.array(one, np.int32) for one in (first, end)]
        (got,) = call(built, "part", [x, *given], [expected])
        np.testing.assert_array_equal(got, expected)


SIZES_THAT_DIFFER = (
    (
        "%r = stablehlo.concatenate %x, %x, %y, dim = 0 : "
        "(tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
    ),
    (
        "%c = stablehlo.concatenate %x, %x, dim = 0 : "
        "(tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<5x?xf32>\n"
        "%r = stablehlo.negate %c : (tensor<5x?xf32>) -> tensor<?x?xf32>"
    ),
    (
        '%r, %s = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64}> ({\n'
        "^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):\n"
        "%l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %l : tensor<i1>\n"
        "}) : (tensor<?x?xf32>, tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>)"
    ),
    (
        '%r = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "stablehlo.return %b : tensor<f32>\n"
        "}) : (tensor<?x?xf32>, tensor<?xi32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
    ),
)


def test_sizes_that_differ(tmp_path: Path) -> None:
    """They are written and read out of bounds otherwise."""
    for number, line in enumerate(SIZES_THAT_DIFFER):
        path = tmp_path / f"net{number}.stablehlo"
        path.write_text(
            "func.func public @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %i: tensor<?xi32>) "
            f"-> tensor<?x?xf32> {{\n{line}\nreturn %r : tensor<?x?xf32>\n}}\n"
        )
        library = aotc.load(aotc.build(path, emit="shared", out=f"{tmp_path}/", chips="sm_90"))
        library.set_device("cpu")
        x, y = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
        with pytest.raises(aotc.LibraryError, match=r"another size|do not fit"):
            library[f"net{number}"](x, y, np.zeros(3, np.int32))
