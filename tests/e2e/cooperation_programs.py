"""Threads and blocks that work together: atomics, ragged tiles, the last block; and NumPy's say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from samples import Case, Values

PROGRAM = "cooperation"


def source() -> str:
    return (Path(__file__).resolve().parent / "data" / f"{PROGRAM}.mlir").read_text()


def _products() -> Values:
    rng = np.random.default_rng(11)
    x = rng.choice(np.array([1, 3, -1, 5], np.int32), 64)
    # Powers of two: the product does not depend on the order.
    f = rng.choice(np.array([0.5, 2, -1, 4], np.float32), 64)
    ints, floats = np.array([7, -3], np.int32), np.array([1, -2], np.float32)
    by_parity = x.reshape(-1, 2).prod(0, dtype=np.int32), f.reshape(-1, 2).prod(0, dtype=np.float32)
    return Values(
        {"x": x, "f": f, "ints": ints, "floats": floats},
        {"ints": ints * by_parity[0], "floats": floats * by_parity[1]},
        {},
    )


def _ragged() -> Values:
    x = np.random.default_rng(12).random((32, 8), np.float32)
    read = np.full_like(x, -1)
    read[:, :5] = x[:, 3:]
    written = x.copy()
    written[:, 3:] = x[:, :5]
    return Values(
        {"x": x, "read": x.shape, "written": x.shape}, {"read": read, "written": written}, {}
    )


def _last_block(blocks: int) -> Values:
    x = np.random.default_rng(13).integers(-(2**40), 2**40, blocks * 128)
    count = np.zeros(1, np.int32)
    return Values(
        {"x": x, "parts": (blocks,), "count": count, "sum": (1,)},
        {"sum": x.sum(keepdims=True), "count": np.array([blocks], np.int32)},
        {},
    )


def _choices(which: int) -> Values:
    x = np.random.default_rng(14).integers(-(2**40), 2**40, 4)
    chosen = x[0] if which == 0 else x[1]
    y = np.full(256, -1)
    # Of thread_id.x, of which there are 64 in a row.
    sum_of_warp = (np.arange(256) % 64).reshape(-1, 32).sum(1).repeat(32)
    in_warps = sum_of_warp + chosen
    return Values(
        {"x": x, "y": y, "in_warps": (256,), "in_rows": (256,), "which": which},
        {
            "y": np.full(256, chosen) if which == 0 else y,
            "in_warps": in_warps,
            "in_rows": in_warps * (4 + which) + chosen,
        },
        {},
    )


def _ways(which: int) -> Values:
    rng = np.random.default_rng(15)
    x, y = rng.integers(-(2**40), 2**40, 4), rng.integers(-(2**40), 2**40, 256)
    turns = np.arange(4 + which).sum()
    x_id = np.arange(256) % 64
    sum_of_warp = x_id.reshape(-1, 32).sum(1).repeat(32)
    in_warps = (x[0] if which == 0 else x[1]) + turns * sum_of_warp
    return Values(
        {"x": x, "y": y, "in_warps": (256,), "in_rows": (256,), "which": which},
        {"in_warps": in_warps, "in_rows": (in_warps if which == 0 else x_id) + turns * y},
        {},
    )


def _rounds(rounds: int) -> Values:
    x = np.random.default_rng(16).integers(-(2**20), 2**20, 64)
    sums = np.zeros((3, 64), np.int64)
    for k in range(rounds):
        sums = 2 * sums + x[::-1] * (k + np.arange(3)[:, None])
    return Values({"x": x, "y": (192,), "rounds": rounds}, {"y": sums.ravel()}, {})


def _halves(rounds: int) -> Values:
    x = np.random.default_rng(17).integers(-(2**20), 2**20, 128)
    y = x.reshape(2, 64).copy()
    for half, count in enumerate((rounds, rounds + 2)):
        for _ in range(count):
            y[half] = 3 * y[half] + np.roll(y[half], -1)
    return Values({"x": x, "y": (128,), "rounds": rounds}, {"y": y.ravel()}, {})


CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case("products", PROGRAM, _products, 0, entry="products"),
        Case("ragged", PROGRAM, _ragged, 0, entry="ragged"),
        Case("last_block-1", PROGRAM, lambda: _last_block(1), 0, entry="last_block"),
        Case("last_block-1000", PROGRAM, lambda: _last_block(1000), 0, entry="last_block"),
        Case("choices-0", PROGRAM, lambda: _choices(0), 0, entry="choices"),
        Case("choices-1", PROGRAM, lambda: _choices(1), 0, entry="choices"),
        Case("ways-0", PROGRAM, lambda: _ways(0), 0, entry="ways"),
        Case("ways-1", PROGRAM, lambda: _ways(1), 0, entry="ways"),
        Case("rounds", PROGRAM, lambda: _rounds(9), 0, entry="rounds"),
        Case("halves", PROGRAM, lambda: _halves(5), 0, entry="halves"),
    )
}
