"""Input on tensors, of linalg, tosa and vectors, as front ends write it: right numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[Any]
DATA = Path(__file__).parent / "data"
RTOL = 1e-5


def random(*shape: int) -> Array:
    """Between 1 and 2: sums lose nothing, and no element is like another."""
    return np.random.default_rng([7, *shape]).uniform(1, 2, shape).astype(np.float32)


@dataclass(frozen=True)
class Call:
    """A call of an entry: its inputs, and what it must give (in f64), in order.

    `writes` are the arguments behind the inputs that it writes; else the results are returned.
    """

    inputs: tuple[Any, ...]
    results: tuple[Any, ...]
    writes: bool = True


def convolved(image: Array, kernel: Array) -> Array:
    """NHWC by HWCF."""
    windows = sliding_window_view(image.astype(np.float64), kernel.shape[:2], axis=(1, 2))
    return np.einsum("nhwcij,ijcf->nhwf", windows, kernel)


def pooled(image: Array) -> Array:
    n, height, width, channels = image.shape
    blocks = image.reshape(n, height // 2, 2, width // 2, 2, channels)
    return np.maximum(-1, blocks.max(axis=(2, 4)))


A, B, C = random(4, 5), random(8, 8), random(8, 8) + 3
VECTOR, IMAGE = random(8), random(1, 10, 10, 3)
X, Y = random(5, 7), random(7, 9)
WIDE = random(1, 8, 8, 4)
FILTERS = random(8, 3, 3, 4)
PADDED = np.pad(WIDE, ((0, 0), (1, 1), (1, 1), (0, 0)))
SCATTERED = random(1, 6, 4)
SCATTERED[:, [4, 0, 5]] = random(1, 3, 4)
AT = np.array([[7], [0], [3]], np.int64)
PACKED = np.pad(A, ((0, 2), (0, 1)), constant_values=7).reshape(2, 3, 3, 2).transpose(2, 0, 3, 1)
TALL, KERNEL = random(1, 4, 7, 2), random(3, 3, 2, 5)
THIN, PAIRS = random(1, 6, 3, 2), random(3, 2, 2, 5)
CONSTANT = np.array([[1.0, 2.0], [3.0, 4.0]])

CALLS: dict[str, dict[str, Call]] = {
    "on_tensors": {
        "pad": Call((A,), (np.pad(A, 1),)),
        "slice": Call((B,), (B[1:5, 2:6],)),
        "reshape": Call((B,), (2 * B.ravel(),)),
        "concat": Call((B, C), (np.concatenate([B, C]),)),
        "loop": Call((VECTOR, 5), (6 * VECTOR,)),
        "cond": Call((VECTOR, True), (2 * VECTOR,)),
        "calls": Call((VECTOR,), (np.exp(VECTOR), np.exp(np.exp(VECTOR))), writes=False),
        "gen": Call((33,), (np.arange(33),), writes=False),
        "gather": Call((random(8, 4), AT), (random(8, 4)[AT[:, 0]],)),
        "scalar": Call((VECTOR,), (VECTOR.sum(dtype=np.float64),), writes=False),
        "pack": Call((A,), (PACKED, 2 * A)),
        "twice": Call((VECTOR,), (np.exp(VECTOR), np.exp(VECTOR))),
        "window": Call((TALL, KERNEL), (convolved(TALL, KERNEL)[:, ::2, ::2],)),
        "dilated": Call((THIN, PAIRS), (convolved(THIN[:, :5:2], PAIRS)[:, :, :1],)),
        "consts": Call((random(2, 2),), (random(2, 2) + CONSTANT,)),
    },
    "on_buffers": {
        "chain": Call((VECTOR,), (np.exp(VECTOR.astype(float) ** 2), VECTOR**2)),
        "conv": Call((IMAGE, random(3, 3, 3, 8)), (convolved(IMAGE, random(3, 3, 3, 8)) - 1,)),
        "pool": Call((IMAGE,), (pooled(IMAGE),)),
        "dot": Call((VECTOR, VECTOR + 1), (np.asarray(VECTOR @ (VECTOR + 1.0) - 1),)),
        "transpose": Call((X,), (X.T,)),
        "bcast": Call((VECTOR,), (np.broadcast_to(VECTOR, (3, 8)),)),
        "contract": Call((X, Y), (X.astype(float) @ Y - 1,)),
    },
    "in_tosa": {
        "add": Call((A, random(1, 5)), (np.tanh(A + random(1, 5)),)),
        "red": Call((A,), (A.sum(axis=1, keepdims=True, dtype=np.float64),)),
        "tr": Call((A,), (A.T,)),
        "conv": Call(
            (WIDE, FILTERS, VECTOR),
            (convolved(PADDED, FILTERS.transpose(1, 2, 3, 0)) + VECTOR,),
        ),
        "dyn": Call((A, A[::-1].copy()), (np.maximum(A, A[::-1]),), writes=False),
        "scatter": Call((random(1, 6, 4), random(1, 3, 4)), (SCATTERED,)),
    },
    "in_vectors": {
        "contract": Call(
            (random(16, 8), random(8, 16)),
            (random(16, 8).astype(float) @ random(8, 16) - 1,),
        ),
        "row_sums": Call((random(1024, 64),), (random(1024, 64).sum(axis=1, dtype=np.float64),)),
    },
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Library]:
    @cache
    def build(name: str, optimization: str) -> Library:
        folder = tmp_path_factory.mktemp(name)
        return build_library((DATA / f"{name}.mlir").read_text(), folder, optimization, name=name)

    return build


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize(
    ("module", "entry"), [(module, entry) for module, calls in CALLS.items() for entry in calls]
)
def test_numbers(
    library: Callable[[str, str], Library], module: str, entry: str, optimization: str
) -> None:
    call = CALLS[module][entry]
    # What is written is poisoned: entries that add to it (conv, dot, contract) start from -1.
    written = [np.full(np.shape(r), -1, np.float32) for r in call.results] if call.writes else []
    returned = library(module, optimization).call(entry, *call.inputs, *written)
    got = written or (returned if isinstance(returned, tuple) else (returned,))
    assert len(got) == len(call.results)
    for one, expected in zip(got, call.results, strict=True):
        np.testing.assert_allclose(one, expected, rtol=RTOL)
