"""Libraries of kernels from samples/cuda_matmul; without a GPU they run on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aotc
from build import ladder
from ladder.blocks import Tile
from ladder.steps import STEPS, Step

# As in STEPS, and smaller: what is unrolled is compiled in seconds. Threads by warps have 8 x 4 and
# 4 x 8 lanes, copies 1, 2 and 4 rounds.
_TILES = {
    "naive": Tile(8, 4, 1),
    "coalesced": Tile(4, 8, 1),
    "shared_memory": Tile(16, 16, 16),
    "block_tile_1d": Tile(16, 16, 4, 4),
    "block_tile_2d": Tile(32, 16, 8, 4, 4),
    "vectorized": Tile(32, 32, 8, 4, 4),
    "padded": Tile(16, 32, 8, 4, 4),
    "autotuned": Tile(32, 32, 8, 8, 4),
    "warp_tile": Tile(32, 32, 8, 4, 4, 1, 32, 16),
    "async_copies": Tile(32, 32, 8, 4, 4, 1, 16, 32, 3),
}
SMALL_STEPS = tuple(Step(step.name, step.make, _TILES[step.name]) for step in STEPS)


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Of an element type the library of the ladder, with the tiles above."""
    libraries: dict[str, Any] = {}

    def library(element: str) -> Any:
        if element not in libraries:
            out = tmp_path_factory.mktemp(f"ladder_{element}")
            module = ladder(element, steps=SMALL_STEPS)
            libraries[element] = load(module, out)
        return libraries[element]

    return library


def load(module: Any, folder: Path) -> Any:
    """The module as a library."""
    artifact = aotc.build(
        module, name="ladder", emit="shared", chips="sm_90a", optimization=1, out=f"{folder}/"
    )
    return aotc.load(artifact)
