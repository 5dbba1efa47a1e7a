"""The generator in C and the NumPy code of docs/harness.md make the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.support import COPIED_DTYPES, Run, aotc_random, bfloat16_bits

SHAPE = (7, 11)


@pytest.mark.parametrize("name", COPIED_DTYPES)
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_default_range(run: Run, tmp_path: Path, name: str, seed: int) -> None:
    """random, for every type: the documented code gives the same bits."""
    words = ["--dim", "source=7x11", "--dim", "target=7x11", "--seed", seed]
    ran = run("kernels", f"copy_{name}", *words, "--out", "target=t.npy")
    assert ran.code == 0, ran.stderr
    got = np.load(tmp_path / "t.npy")
    if name == "bf16":
        expected = bfloat16_bits(aotc_random("source", SHAPE, "float64", seed))
        got = got.view(np.uint16)
    else:
        expected = aotc_random("source", SHAPE, COPIED_DTYPES[name], seed)
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()


# low and high for each type, at the ends of what it holds.
RANGES: dict[str, list[tuple[float, float]]] = {
    "i1": [(0, 1), (1, 2)],
    "i8": [(-128, 128), (-3, -1)],
    "i16": [(-32768, 32768)],
    "i32": [(-(2**31), 2**31), (5, 6)],
    "i64": [(-(2**63), 2**63 - 1), (-(2**63), 5), (2**63 - 1, 2**63)],
    "ui8": [(0, 256)],
    "ui16": [(7, 65536)],
    "ui32": [(0, 2**32)],
    "ui64": [(0, 2**64 - 1), (2**64 - 3, 2**64 - 1)],
    "f16": [(-1.0, 1.0), (0.0, 1e-6), (60000.0, 65504.0)],
    "bf16": [(-1.0, 1.0), (0.0, 1e-39), (-3e38, 3e38)],
    "f32": [(-1.0, 1.0), (0.0, 1e-44), (1.5, 2.5)],
    "f64": [(-1.0, 1.0), (-1e300, 1e300), (0.1, 0.3)],
    "c64": [(-1.0, 1.0)],
    "c128": [(-2.5, 0.5)],
}


@pytest.mark.parametrize(
    ("name", "low", "high"), [(name, *pair) for name, pairs in RANGES.items() for pair in pairs]
)
def test_given_range(run: Run, tmp_path: Path, name: str, low: float, high: float) -> None:
    """random:seed=S,low=L,high=H draws from that range, subnormal numbers and full spans too."""
    source = f"random:seed=9,low={low!r},high={high!r}"
    words = ["--source", source, "--dim", "source=7x11", "--dim", "target=7x11"]
    ran = run("kernels", f"copy_{name}", *words, "--out", "target=t.npy")
    assert ran.code == 0, ran.stderr
    got = np.load(tmp_path / "t.npy")
    if name == "bf16":
        expected = bfloat16_bits(aotc_random("source", SHAPE, "float64", 9, low, high))
        got = got.view(np.uint16)
    else:
        expected = aotc_random("source", SHAPE, COPIED_DTYPES[name], 9, low, high)
    assert got.tobytes() == expected.tobytes()
    if name[0] not in "bc":
        assert got.min() >= low
        # A float just below `high` may round up to it.
        assert got.max() <= high if name[0] == "f" else got.max() < high


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_rounding_of_numbers(run: Run, tmp_path: Path, name: str) -> None:
    """A number becomes f16 and bf16 rounded once, to nearest, ties to even."""
    # Just above a tie: through float32 it would become the tie, and then round to even.
    numbers = {
        "f16": [1 + 2**-11 + 2**-40, 1 + 2**-11, 2**-25, 2**-25 * (1 + 2**-30), 65519.99, 5.96e-8],
        "bf16": [1 + 2**-8 + 2**-40, 1 + 2**-8, 2**-134, 2**-134 * (1 + 2**-30), 3.39e38, 1e-40],
    }[name]
    for number in numbers:
        words = ["--source", repr(number), "--dim", "source=1x1", "--dim", "target=1x1"]
        ran = run("kernels", f"copy_{name}", *words, "--out", "target=t.npy")
        assert ran.code == 0, ran.stderr
        got = np.load(tmp_path / "t.npy").view(np.uint16)
        values = np.array([[number]])
        expected = bfloat16_bits(values) if name == "bf16" else values.astype("f2").view(np.uint16)
        assert got.tobytes() == expected.tobytes(), number


def test_names_and_seeds_matter(run: Run) -> None:
    """Each argument has a stream of its own, and the seed of one is given with it."""

    def checksums(*words: object) -> dict[str, str]:
        out = run("matmul", "--json", "--print", "A", "--print", "B", *words)
        assert out.code == 0, out.stderr
        return {result["name"]: result["crc32"] for result in json.loads(out.stdout)["results"]}

    plain, seeded = checksums(), checksums("--seed", 1)
    assert plain["A"] != seeded["A"]
    assert plain["B"] != seeded["B"]
    mixed = checksums("--A", "random:seed=1")
    assert (mixed["A"], mixed["B"]) == (seeded["A"], plain["B"])
    a, b = (aotc_random(name, (3,), "float64") for name in "AB")
    assert (a != b).all()
