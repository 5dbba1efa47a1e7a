"""Functions of JAX that are exported with symbolic sizes, against JAX for several sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.support import call

import aotc
from aotc.errors import InputError
from aotc.frontends.stablehlo.dynamic import _segments

pytest.importorskip("jax", reason="JAX is not installed: pip install 'aotc[jax]'")

import jax
from jax import export, lax
from jax import numpy as jnp

NUMBERS = np.random.default_rng(0)
SIZES = ({"n": 1, "m": 1}, {"n": 3, "m": 5}, {"n": 2, "m": 70})
INTEGERS = np.int32


def _recurrence(x: Any, w: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        return jnp.tanh(jnp.concatenate([state, row], -1) @ w), state.sum()

    return lax.scan(step, jnp.zeros((x.shape[1], 4)), x)[1]


def _network(x: Any, kernel: Any, w: Any) -> Any:
    order = ("NHWC", "HWIO", "NHWC")
    image = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=order)
    window = (1, 2, 2, 1)
    pooled = lax.reduce_window(jax.nn.relu(image), -jnp.inf, lax.max, window, window, "VALID")
    return jax.nn.softmax(pooled.reshape(x.shape[0], -1) @ w)


def _loss(w: Any, x: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(x @ w), labels[:, None], 1)
    return -jnp.mean(chosen)


def _pooled(x: Any) -> Any:
    """Of windows that overlap, and of which several may have the same maximum."""
    padding = [(0, 0), (1, 1), (0, 2), (0, 0)]
    window = lax.reduce_window(jnp.round(x), -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 1, 1), padding)
    return jnp.sum(x) + jnp.sum(jnp.sin(window + jax.nn.relu(x[:, :1, :1])))


def _windows(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def _of_several_types(x: Any) -> Any:
    numbers = [jnp.arange(x.shape[0], dtype=kind) for kind in (np.uint32, np.float16, np.int8)]
    return *numbers, jnp.zeros((x.shape[0], 2), bool), jnp.full((3, x.shape[0]), 7, jnp.uint8)


LAST = ("NHWC", "HWIO", "NHWC")


def _convolved(*window: Any, **options: Any) -> Callable[..., Any]:
    return lambda x, kernel: lax.conv_general_dilated(x, kernel, *window, **options)


# A function, and the shapes and types of its arguments. Sizes are those that JAX parses.
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "softmax": (jax.nn.softmax, ["n, m"]),
    "means": (lambda x: (x.mean(0), x.var(1), x.max(0)), ["n, m"]),
    "flat": (lambda x: x.reshape(-1), ["n, m"]),
    "merged": (lambda x: x.reshape(-1, 8).reshape(x.shape) + 1, ["n, m, 8"]),
    "heads": (
        lambda x: jnp.swapaxes(x.reshape(*x.shape[:2], 2, 4), 1, 2).reshape(-1, x.shape[1], 4),
        ["n, m, 8"],
    ),
    "halves": (lambda x: (x[: x.shape[0] // 2], x.reshape(2, -1, 3)), ["2*n, 3"]),
    "middle": (lambda x: x[1:-1, ::2], ["n+1, m"]),
    "vectors": (
        jax.vmap(lambda x, i: x[i, :2] + lax.dynamic_slice(x, (i, 0), (1, x.shape[1]))[0, :2]),
        ["n, 4, m+1", ("n", INTEGERS)],
    ),
    "padded": (lambda x: jnp.pad(x, ((1, 8 - x.shape[0] % 8), (0, 0))), ["n, m"]),
    "last": (lambda x: x[:, -1], ["n, m, 3"]),
    "joined": (lambda x, y: jnp.concatenate([x, y, x[:1]]).reshape(-1), ["n, 3", "m, 3"]),
    "around": (lambda x: (jnp.roll(x, 1, 0), x[::-1], jnp.tile(x, (2, 3))), ["n, m"]),
    "outer": (lambda x, y: (jnp.outer(x, y), x[:, None] - y[None]), ["n", "m"]),
    "types": (_of_several_types, ["n"]),
    "attention": (
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        ["n, m, 2, 4"] * 3,
    ),
    "rows": (lambda x, i, y: (x[i], x.at[i].add(y)), ["n, 3", ("m", INTEGERS), "m, 3"]),
    "cache": (
        lambda x, y, at: lax.dynamic_update_slice(x, y, (0, at, 0)),
        ["n, m, 3", "n, 1, 3", ("", INTEGERS)],
    ),
    "recurrence": (_recurrence, ["m, n, 3", "7, 4"]),
    "network": (_network, ["n, 8, 8, 2", "3, 3, 2, 4", "64, 10"]),
    "images": (
        _convolved((2, 1), [(1, 2), (0, 1)], rhs_dilation=(1, 2)),
        ["n, 3, m+4, n+5", "4, 3, 3, 2"],
    ),
    "depthwise": (
        _convolved((1, 2), [(1, 1), (0, 3)], dimension_numbers=LAST, feature_group_count=6),
        ["n, m+4, n+5, 6", "3, 3, 1, 6"],
    ),
    "whole": (
        _convolved((1, 1), "SAME", dimension_numbers=LAST, preferred_element_type=INTEGERS),
        [("n, m+4, 9, 2", np.int8), ("3, 3, 2, 4", np.int8)],
    ),
    "halved": (
        _convolved((1, 1), "SAME", preferred_element_type=np.float32),
        [("n, 2, 8, 8", np.float16), ("4, 2, 3, 3", np.float16)],
    ),
    "smaller than the window": (_convolved((2, 2), "VALID"), ["2, 2, n, 5", "3, 2, 3, 3"]),
    "groups": (
        _convolved((1, 2), "SAME", dimension_numbers=LAST, feature_group_count=2),
        ["n, m, 9, 6", "3, 3, 3, 8"],
    ),
    "several channels of each": (
        _convolved((1,), "SAME", feature_group_count=4),
        ["n, 4, m", "8, 1, 3"],
    ),
    "volumes": (_convolved((1, 1, 1), "SAME"), ["n, 2, 5, m, 7", "3, 2, 3, 3, 3"]),
    "computed padding": (
        _convolved((2, 2), "SAME", dimension_numbers=LAST),
        ["2, n, m, 3", "3, 3, 3, 4"],
    ),
    "transposed": (
        lambda x, kernel: lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=LAST),
        ["2, n, m, 3", "3, 3, 3, 4"],
    ),
    "cut": (
        _convolved((1, 1), [(-1, 2), (2, -2)], dimension_numbers=LAST, lhs_dilation=(2, 1)),
        ["2, n+3, m+4, 3", "2, 2, 3, 4"],
    ),
    "cut and padded": (lambda x: lax.pad(x, 2.0, [(-1, 2, 1), (1, -2, 0)]), ["n+3, m+3"]),
    "slope of a filter": (
        jax.grad(
            lambda kernel, x: jnp.sum(
                _convolved((1, 2), "SAME", dimension_numbers=LAST, feature_group_count=2)(x, kernel)
                ** 2
            )
        ),
        ["3, 3, 1, 4", "n, 4, 6, 2"],
    ),
    "cumulative": (
        lambda x: (
            jnp.cumsum(x, 0),
            jnp.cumprod(x, 1),
            lax.cumsum(x, 1, reverse=True),
            lax.cummax(x, 0),
            jnp.cumsum((x > 0).astype(np.int32), 2),
        ),
        ["n, m, 3"],
    ),
    "slope of computed windows": (
        jax.grad(lambda x: jnp.sum(_windows(x)) ** 2 / x.size),
        ["2, n, m, 2"],
    ),
    "rows of windows": (
        lambda x: lax.reduce_window(
            x, 0.0, lax.add, (1, 3), (1, 2), [(0, 0), (-1, 2)], (1, 2), (1, 2)
        ),
        ["n, m+4"],
    ),
    "whole images": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, x.shape[:2], (1, 1), "VALID"),
        ["n, m"],
    ),
    "slope": (jax.grad(_loss), ["4, 5", "n, 4", ("n", INTEGERS)]),
    "sorted": (lambda x: (jnp.sort(x, 0), jnp.argmax(x, 0)), ["n, m"]),
    "random": (lambda x: x + jax.random.normal(jax.random.key(0), x.shape), ["n, m"]),
    "branch": (
        lambda p, x: lax.cond(p > 0, lambda y: y * x.shape[0], lambda y: y[::-1], x),
        [("", INTEGERS), "n"],
    ),
    "windows": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
        ["n, 7, 7, 2"],
    ),
    "slope of a pool": (jax.grad(_pooled), ["n, 8, 7, 2"]),
    "slope of a pool of any images": (jax.grad(_pooled), ["2, n, m+3, 3"]),
}


def exported(function: Any, arguments: list[Any], path: Path) -> list[tuple[str, Any]]:
    """Writes the function's StableHLO. Returns the sizes and types of the arguments."""
    scope = export.SymbolicScope()
    known = [one if isinstance(one, tuple) else (one, np.float32) for one in arguments]
    shaped = [
        jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), dtype)
        for text, dtype in known
    ]
    path.write_text(export.export(jax.jit(function, keep_unused=True))(*shaped).mlir_module())
    return known


def array(text: str, dtype: Any, sizes: dict[str, int]) -> np.ndarray:
    shape = tuple(eval(f"[{text}]", {}, sizes))
    if dtype is INTEGERS:
        return np.asarray(NUMBERS.integers(0, sizes["n"], shape), INTEGERS)
    if dtype is np.int8:
        return NUMBERS.integers(-128, 128, shape).astype(dtype)
    return NUMBERS.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", CASES)
def test_any_sizes(name: str, tmp_path: Path) -> None:
    function, arguments = CASES[name]
    known = exported(function, arguments, tmp_path / f"{name}.stablehlo")
    built = aotc.build(
        tmp_path / f"{name}.stablehlo", emit="shared", out=f"{tmp_path}/", chips="sm_90"
    )
    for sizes in SIZES:
        inputs = [array(text, dtype, sizes) for text, dtype in known]
        expected = [np.asarray(one) for one in jax.tree.leaves(jax.jit(function)(*inputs))]
        for got, wanted in zip(call(built, name, inputs, expected), expected, strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "shapes", "message"),
    [
        (["n, 3", "n, 3"], [(2, 3), (1, 3)], "'arg0' has another size in dimension 0 than 'arg1'"),
        (["2*n", "2*n"], [(3,), (3,)], "Division had remainder when computing the value of 'n'"),
        (["n", "n+1"], [(3,), (5,)], "expected arg1.shape[0] == arg0.shape[0] + 1"),
    ],
)
def test_sizes_are_checked(
    arguments: list[str], shapes: list[tuple[int, ...]], message: str, tmp_path: Path
) -> None:
    def function(x: Any, y: Any) -> Any:
        return x.sum() + y.sum()

    exported(function, arguments, tmp_path / "net.stablehlo")
    built = aotc.build(tmp_path / "net.stablehlo", emit="shared", out=f"{tmp_path}/", chips="sm_90")
    library = aotc.load(built)
    library.set_device("cpu")
    with pytest.raises(aotc.LibraryError) as raised:
        library["net"](*(np.zeros(shape, np.float32) for shape in shapes))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("axis", "name"),
    [(0, 'custom_call of "stablehlo.dynamic_reduce_window"'), (1, "reduce_window")],
)
def test_what_has_no_lowering(axis: int, name: str, tmp_path: Path) -> None:
    """One line names the operation: none is of the end of its region."""
    exported(lambda x: lax.cumlogsumexp(x, axis), ["n, 3"], tmp_path / "net.stablehlo")
    with pytest.raises(InputError) as raised:
        aotc.build(tmp_path / "net.stablehlo", out=tmp_path / "x")
    assert f"error: stablehlo.{name} has no lowering to linalg" in str(raised.value)
    assert str(raised.value).count("has no lowering") == 1


def test_parts_of_a_reshape() -> None:
    n, m = ("tensor.dim", "x", 0), ("tensor.dim", "x", 1)
    product = ("arith.muli", n, m)
    cases = [
        ([n, m, 8], [n, m, 2, 4], [(1, 1), (1, 1), (1, 2)]),
        ([n, m, 8], [("arith.muli", m, n), 8], [(2, 1), (1, 1)]),
        ([product], [n, m, 1], [(1, 3)]),
        ([1, n], [n], [(2, 1)]),
        ([n, 4], [m, 2], [(2, 2)]),
    ]
    for given, made, counts in cases:
        assert [(len(a), len(b)) for a, b in _segments(given, made)] == counts
