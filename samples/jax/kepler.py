"""Kepler's equation, E - e sin E = M, by Newton's method: JAX makes the derivative and the loop.

python samples/jax/kepler.py      writes kepler.stablehlo
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export


def solve(mean: jax.Array, eccentricity: jax.Array) -> jax.Array:
    """The eccentric anomaly of each mean one, in radians."""

    def rest(x: jax.Array, m: jax.Array) -> jax.Array:
        return x - eccentricity * jnp.sin(x) - m

    slope = jax.vmap(jax.grad(rest))

    def is_rough(x: jax.Array) -> jax.Array:
        return jnp.max(jnp.abs(rest(x, mean))) > 1e-6

    return jax.lax.while_loop(is_rough, lambda x: x - rest(x, mean) / slope(x, mean), mean)


def main() -> None:
    mean, eccentricity = jnp.zeros(4), jnp.float32(0)  # their shapes alone count
    exported = export.export(jax.jit(solve))(mean, eccentricity)
    Path("kepler.stablehlo").write_text(exported.mlir_module())


if __name__ == "__main__":
    main()
