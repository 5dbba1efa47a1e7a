"""One text, built twice: by aotc's own plan, and by a pipeline that maps nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from helpers.native import build_library


def check_against(
    pipeline: Sequence[str],
    text: str,
    names: Sequence[str],
    sizes: Sequence[int],
    seed: int,
    folder: Path,
    options: Sequence[str],
) -> dict[str, Any]:
    """Calls each function of both, for n of `sizes`, with integers in two matrices of n x n and a
    vector of n, which must be equal afterwards. The manifest of aotc's own build, by `options`."""
    mapped, plain = folder / "mapped", folder / "plain"
    mapped.mkdir()
    plain.mkdir()
    ours = build_library(text, mapped, *options)
    theirs = build_library(text, plain, *pipeline, name="plain")
    for name in names:
        for size in sizes:
            numbers = np.random.default_rng([seed, size])
            inputs = [
                numbers.integers(-9, 9, shape, dtype=np.int32)
                for shape in ((size, size), (size, size), (size,))
            ]
            expected = [array.copy() for array in inputs]
            ours.call(name, *inputs)
            theirs.call(name, *expected)
            for label, got, wanted in zip("abc", inputs, expected, strict=True):
                np.testing.assert_array_equal(got, wanted, f"seed {seed}, {name}, {label}, {size}")
    return ours.manifest
