"""Elementary functions of f32 on the CPU device: within 2 units in the last place of the exact
numbers, for each level of the processor's instructions."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aotc

Array = np.ndarray[Any, Any]
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    # Of an exponential that nothing else reads.
    "exp_plus_one": lambda x: 1 + np.exp(x),
}
BODY = """\
func.func @f_{name}(%x: tensor<?xf32>) -> tensor<?xf32> attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %t = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  }} ins(%x : tensor<?xf32>) outs(%t : tensor<?xf32>) {{
  ^bb0(%a: f32, %o: f32):
    {body}
    linalg.yield %b : f32
  }} -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
"""
EXP_PLUS_ONE = """\
%one = arith.constant 1.0 : f32
    %e = math.exp %a : f32
    %b = arith.addf %one, %e : f32"""
MEASURE = """\
import json, sys
import aotc, numpy as np
library, x, folder = aotc.load(sys.argv[1]), np.load(sys.argv[2]), sys.argv[3]
for name in sys.argv[4:]:
    np.save(f"{folder}/{name}.npy", getattr(library, "f_" + name)(x))
"""


def numbers() -> Array:
    """Of each exponent and sign some numbers, and those at the ends; each number near those where
    the functions change their form, or their kind of result."""
    rng = np.random.default_rng(0)
    exponents = np.arange(256, dtype=np.uint32).repeat(300)
    fractions = rng.integers(0, 1 << 23, exponents.size, dtype=np.uint32)
    fractions[::300], fractions[1::300] = 0, (1 << 23) - 1
    some = (exponents << 23 | fractions).view(np.float32)
    edges = [0.34657359, 0.625, 1.0, 2**0.5, 3.95, 87.336, 88.72284, 103.97, 104.5, 2**17]
    bits = np.array(edges, np.float32).view(np.int32)[:, None] + np.arange(
        -200, 200, dtype=np.int32
    )
    near = bits.ravel().astype(np.int32).view(np.float32)
    # Of the last one, no f32 is nearer to a multiple of pi / 2.
    turns = np.concatenate([np.arange(1, 9000), 2 ** np.arange(13, 60), 5000 ** np.arange(1.0, 9)])
    quarters = np.append(turns * (np.pi / 2), 16367173 * 2.0**72).astype(np.float32)
    return np.concatenate([some, -some, near, -near, quarters, -quarters])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elementary")
    bodies = {name: f"%b = math.{name} %a : f32" for name in FUNCTIONS}
    bodies["exp_plus_one"] = EXP_PLUS_ONE
    text = "".join(BODY.format(name=name, body=body) for name, body in bodies.items())
    return Path(aotc.build(text, emit="shared", out=f"{folder}/", chips="sm_80", name="functions"))


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_functions(library: Path, level: str, tmp_path: Path) -> None:
    x = numbers()
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", MEASURE, str(library), str(tmp_path / "x.npy"), str(tmp_path)]
    done = subprocess.run(
        [*command, *FUNCTIONS],
        env={**os.environ, "AOTC_DEVICE": "cpu", "AOTC_CPU_LEVEL": level},
        capture_output=True,
        text=True,
        check=False,
    )
    if "AOTC_CPU_LEVEL" in done.stderr:
        pytest.skip(f"this processor has no level {level}")
    assert done.returncode == 0, done.stderr
    errors = {}
    for name, function in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            exact = function(x.astype(np.float64))
            rounded = exact.astype(np.float32)
        found = np.load(tmp_path / f"{name}.npy")
        is_finite = np.isfinite(rounded) & np.isfinite(found)
        # The largest number and infinity are neighbours.
        others = ~is_finite & ~np.equal(found, rounded) & ~(np.isnan(found) & np.isnan(rounded))
        largest = np.isfinite(exact) & (np.abs(exact) >= np.finfo(np.float32).max * (1 - 2.0**-23))
        assert not (others & ~largest).any(), (name, x[others & ~largest][:4])
        unit = np.spacing(np.abs(rounded[is_finite])).astype(np.float64)
        distance = np.abs(found[is_finite].astype(np.float64) - exact[is_finite]) / unit
        errors[name] = float(distance.max())
        zeros = is_finite & (rounded == 0)
        assert (np.signbit(found[zeros]) == np.signbit(rounded[zeros])).all(), name
    assert all(error <= 2 for error in errors.values()), json.dumps(errors)
