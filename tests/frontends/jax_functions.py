"""Functions of JAX: what people write, and what it is called with. Needs JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export, lax
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

NUMBERS = np.random.default_rng(0)


def _floats(*shape: int) -> np.ndarray:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def _below(limit: int, *shape: int) -> np.ndarray:
    return NUMBERS.integers(0, limit, shape).astype(np.int32)


def _with_strange_numbers() -> np.ndarray:
    x = _floats(3, 37)
    x[0, 5], x[1, 3], x[2, 1], x[2, 2] = -np.inf, np.nan, 0.0, -0.0
    return x


def _key(data: Any) -> Any:
    return jax.random.wrap_key_data(data)


def _shifted(x: Any) -> Any:
    """The sorted numbers are not the only ones that are used later."""
    y = jnp.sort(x)
    return y[1:] != y[:-1], y, x + 1


def _loss(weights: Any, x: Any, labels: Any) -> Any:
    hidden = jax.nn.relu(x @ weights["a"] + weights["b"])
    chosen = jax.nn.log_softmax(hidden @ weights["c"])
    return -jnp.mean(jnp.take_along_axis(chosen, labels[:, None], 1))


def _step(weights: Any, x: Any, labels: Any) -> Any:
    """Of training: the loss, and every weight as it is then."""
    loss, slope = jax.value_and_grad(_loss)(weights, x, labels)
    return loss, jax.tree.map(lambda w, d: w - 0.1 * d, weights, slope)


def _convolved(kernel: Any, x: Any) -> Any:
    y = lax.conv_general_dilated(
        x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jnp.sum(jax.nn.relu(y) ** 2)


def _pooled(x: Any) -> Any:
    window = (1, 2, 2, 1)
    return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID") ** 2)


_WINDOWS = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
)
ROWS = np.array([1, 1, 8, -1, 9, 1, -10], np.int32)
STARTS = np.array([[3], [-1], [2], [1], [1]], np.int32)
KEY = np.array([0, 3], np.uint32)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
_POWERS = np.float32(2.0) ** np.array([6, 7, 8, 15, 16, 31, 32, 70], np.float32)
LARGE = np.concatenate([_POWERS, -_POWERS, _POWERS - 1, [-0.7, 1.7, np.inf, -np.inf, np.nan]])
LARGE = LARGE.astype(np.float32)
HALF = np.clip(LARGE, -65504, 65504).astype(np.float16)
WEIGHTS = {"a": _floats(4, 8), "b": _floats(8), "c": _floats(8, 3)}


def _divided(x: Any) -> Any:
    """As in programs for several devices, here in a mesh of one."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("rows",))
    rows = PartitionSpec("rows")

    def part(y: Any) -> Any:
        y = y + lax.psum(y, "rows") * lax.axis_index("rows") + lax.ppermute(y, "rows", [(0, 0)])
        return lax.all_gather(y, "rows", tiled=True) + lax.psum_scatter(y, "rows", tiled=True)

    x = lax.with_sharding_constraint(x * 2, NamedSharding(mesh, rows)) + 1
    return jax.shard_map(part, mesh=mesh, in_specs=rows, out_specs=rows)(x)


def _without_elements(x: Any) -> Any:
    """Slices at the end of a tensor, which `lax.associative_scan` has, too; and sums of nothing."""
    whole = jnp.concatenate([x[3:], x, x[1:1]])
    sums = x[3:].sum(0), x[:, 4:].max(1, initial=2.0)
    return lax.associative_scan(jnp.multiply, whole), *sums, jnp.tril(x[3:])


# By name: the function, and what it is called with.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "divided": (_divided, (_floats(4, 3),)),
    "sort": (jnp.sort, (_with_strange_numbers(),)),
    "sort_down": (partial(jnp.sort, axis=0, descending=True), (_with_strange_numbers(),)),
    "sort_unsigned": (jnp.sort, (NUMBERS.integers(0, 2**32, 1000).astype(np.uint32),)),
    "sort_two": (lambda x: jnp.sort(x), (_floats(2),)),
    "sort_by_two": (lambda a, b: lax.sort((a, b), num_keys=2), (_below(3, 50), _floats(50))),
    "argsort": (partial(jnp.argsort, axis=1), (_floats(3, 130, 5),)),
    "shifted": (_shifted, (_below(6, 40),)),
    "median": (jnp.median, (_floats(37),)),
    "top": (lambda x: lax.top_k(x, 3), (_with_strange_numbers(),)),
    "top_of_many": (lambda x: lax.top_k(x, 40), (_floats(2, 600),)),
    "unique": (partial(jnp.unique, size=6), (_below(6, 40),)),
    "sort_slope": (jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(4.0))), (_floats(9, 4),)),
    "add_at": (lambda x, i, v: x.at[i].add(v), (_floats(9, 4), ROWS, _floats(7, 4))),
    "set_at": (lambda x: x.at[2].set(7.0), (_floats(9, 4),)),
    "max_at": (lambda x, i, v: x.at[i].max(v), (_floats(5), _below(5, 20), _floats(20))),
    "slice_at": (lambda x, v: x.at[2:5, 1].add(v), (_floats(9, 4), _floats(3))),
    "windows_at": (partial(lax.scatter_add, dimension_numbers=_WINDOWS),
                   (_floats(5), STARTS, _floats(5, 3))),
    "each_at": (jax.vmap(lambda x, i, v: x.at[i].add(v)),
                (_floats(3, 9), _below(9, 3, 5), _floats(3, 5))),
    "segments": (partial(jax.ops.segment_sum, num_segments=5), (_floats(20, 3), _below(5, 20))),
    "embedding_slope": (jax.grad(lambda w, i: jnp.sum(jnp.sin(w[i]))),
                        (_floats(50, 16), _below(50, 3, 7))),
    "part_slope": (jax.grad(lambda x, i: jnp.sum(x[i, 1:3] ** 2)), (_floats(9, 4), _below(9, 5))),
    "along_slope": (jax.grad(lambda x, i: jnp.sum(jnp.take_along_axis(x, i, axis=1) ** 2)),
                    (_floats(9, 4), _below(4, 9, 2))),
    "step": (_step, (WEIGHTS, _floats(5, 4), _below(3, 5))),
    "convolved": (jax.grad(_convolved, argnums=(0, 1)), (_floats(3, 3, 2, 4), _floats(2, 8, 8, 2))),
    "pooled": (jax.grad(_pooled), (_floats(2, 6, 6, 3),)),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1])), (_floats(4),)),
    "each": (jax.vmap(lambda x, y: jnp.dot(x, y) / (1 + jnp.linalg.norm(x))),
             (_floats(4, 5), _floats(4, 5))),
    "loop": (lambda x: lax.fori_loop(0, 5, lambda i, y: y * 2 + i, x), (_floats(3),)),
    "argmax": (partial(jnp.argmax, axis=1), (_floats(5, 6),)),
    "without_elements": (_without_elements, (_floats(3, 4),)),
    "integers": (lambda x: [x.astype(one) for one in INTEGERS], (LARGE,)),
    "integers_of_half": (lambda x: [x.astype(one) for one in INTEGERS], (HALF,)),
    "complex": (lambda x: jnp.abs(x * (1 + 2j)), (_floats(4),)),
    "complex_sums": (lambda x: (x @ (x * (1 - 2j)), jnp.sum(x * 1j, 0)), (_floats(4, 4),)),
    "random_bits": (lambda k: jax.random.bits(_key(k), (7,)), (KEY,)),
    "random_normal": (lambda k: jax.random.normal(jax.random.split(_key(k))[0], (3, 4)), (KEY,)),
    "shuffled": (lambda k: jax.random.permutation(_key(k), 9), (KEY,)),
}  # fmt: skip


def export_case(name: str, folder: Path) -> Path:
    """Writes NAME.stablehlo, as text."""
    function, arguments = CASES[name]
    path = folder / f"{name}.stablehlo"
    path.write_text(export.export(jax.jit(function))(*arguments).mlir_module())
    return path


def inputs_and_results(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the built function takes, and what JAX gives."""
    function, arguments = CASES[name]
    return _arrays(arguments), _arrays(jax.jit(function)(*arguments))


def _arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
