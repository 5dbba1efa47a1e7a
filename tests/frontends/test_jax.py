"""What people write in JAX, exported by `jax.export` and built, against JAX; also as a program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from frontends.support import call

import aotc

pytest.importorskip("jax", reason="JAX is not installed: pip install 'aotc[jax]'")

from frontends.jax_functions import CASES, export_case, inputs_and_results

CHIP = "sm_90"


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_jax_gives(name: str, tmp_path: Path) -> None:
    inputs, expected = inputs_and_results(name)
    source = export_case(name, tmp_path)
    built = aotc.build(source, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    for got, wanted in zip(call(built, name, inputs, expected), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_program(tmp_path: Path) -> None:
    """A step of training, as an executable: it reads the weights, and prints JAX's numbers."""
    inputs, expected = inputs_and_results("step")
    built = aotc.build(export_case("step", tmp_path), out=tmp_path / "step", chips=CHIP)
    assert built.manifest is not None
    (entry,) = built.manifest.entries
    words = []
    for argument, array in zip(entry.arguments, inputs, strict=False):
        np.save(tmp_path / f"{argument.name}.npy", array)
        words += ["--arg", f"{argument.name}={tmp_path / argument.name}.npy"]
    for number, array in enumerate(expected):
        np.save(tmp_path / f"expected{number}.npy", array)
        words += ["--expect", f"result{number}={tmp_path}/expected{number}.npy"]
    command = [built.path, *words, "--rtol", "1e-5", "--atol", "1e-6", "--print", "result0"]
    done = subprocess.run(
        [*command, "--device", "cpu"], env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"result{number} matches" in done.stdout for number in range(len(expected)))
    (printed,) = [line for line in done.stdout.splitlines() if line.startswith("result0 = ")]
    np.testing.assert_allclose(float(printed.split("=")[1].strip(" []")), expected[0], rtol=1e-5)
