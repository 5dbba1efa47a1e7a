"""Where the threads of Hopper's kernel find a mask that TMA has brought."""

from __future__ import annotations

import pytest
from attention.evaluation import arguments, evaluate

from aotc import ops
from aotc.kernels.attention.problem import Mask
from aotc.kernels.attention.wgmma.mask_tiles import MaskTiles, has_tiles
from aotc.kernels.matmul.problem import ELEMENT_BYTES

ADDRESS = 0x8400  # of a stage, a multiple of 1024


def read_places(mask: Mask, keys: int, first_row: int, lane: int) -> list[int]:
    """What a thread reads, pair by pair: addresses in shared memory."""
    with arguments(["i32"] * 3) as (b, (row, lane_, address)):
        tiles = MaskTiles(mask, 128, keys)
        tiles.begin(b, row, lane_)
        tiles.load(address)
        given = {row: first_row, lane_: lane, address: ADDRESS}
        loads = ops.find(row.owner.owner, "llvm.load")
        return [evaluate(load.operands[0], given) for load in loads]


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("keys", [32, 96, 128])
def test_a_thread_reads_what_is_added_to_its_scores(element: str, keys: int) -> None:
    """A lane has of 16 rows two, 8 apart, and of each 8 columns two neighbours. TMA has put rows of
    128 bytes there, in which 16 bytes each are swizzled by the row's number."""
    mask = Mask(f"memref<?x512x{element}>", element, ("i", "j"), 16)
    bytes_ = ELEMENT_BYTES[element]
    for first_row, lane in ((0, 0), (16, 5), (80, 31), (112, 18)):
        expected = []
        for column in range(2 * (lane % 4), keys, 8):
            for row in (first_row + lane // 4, first_row + lane // 4 + 8):
                slab, place = divmod(column * bytes_, 128)
                chunk, inside = divmod(place, 16)
                swizzled = (chunk ^ row % 8) * 16 + inside
                expected.append(ADDRESS + slab * 128 * 128 + row * 128 + swizzled)
        assert read_places(mask, keys, first_row, lane) == expected


def test_a_mask_for_all_queries_has_one_row() -> None:
    mask = Mask("memref<?x512xf16>", "f16", ("b", "j"), 16)
    lane = 6
    expected = [ADDRESS + 2 * column for column in range(4, 64, 8) for _ in range(2)]
    assert read_places(mask, 64, 48, lane) == expected


def test_tma_takes_what_is_aligned() -> None:
    rows = Mask("memref<?x512xf16>", "f16", ("i", "j"), 16)
    assert has_tiles(rows)
    assert not has_tiles(Mask("memref<?x?xf16>", "f16", ("i", "j"), 2))
    # A box along two dimensions of queries is a cube.
    assert not has_tiles(Mask("memref<512x512x512xf16>", "f16", ("i", "i", "j"), 16))
    assert not has_tiles(Mask("memref<1x1x1x1x1x512xf16>", "f16", ("0",) * 5 + ("j",), 16))
