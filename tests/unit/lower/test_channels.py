"""Layouts of convolutions of 16-bit floats, in modules that have no others."""

from __future__ import annotations

from helpers.passes import run_passes_on


def _module(channels: int) -> str:
    """A convolution of rows of channels that are read as an image."""
    maps = (
        "affine_map<(n, f, y, x, c, q, r) -> (n, y + q, x + r, c)>",
        "affine_map<(n, f, y, x, c, q, r) -> (f, c, q, r)>",
        "affine_map<(n, f, y, x, c, q, r) -> (n, f, y, x)>",
    )
    loops = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
    image, filter_ = f"memref<2x6x7x{channels}xf16>", f"memref<8x{channels}x1x2xf16>"
    return f"""
memref.global "private" constant @filter : {filter_} = dense<1.0>
func.func @rows(%x: {image}, %z: memref<2x8x6x6xf16>) {{
  %w = memref.get_global @filter : {filter_}
  linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{loops}]}}
      ins(%x, %w : {image}, {filter_}) outs(%z : memref<2x8x6x6xf16>) {{
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }}
  return
}}
"""


def test_the_filter_of_rows_is_reordered() -> None:
    found = str(run_passes_on(_module(16), "aotc-assign-layouts").module)
    assert "memref.get_global @filter_ordered : memref<8x1x2x16xf16>" in found


def test_three_colours_are_no_copies_of_16_bytes() -> None:
    found = str(run_passes_on(_module(3), "aotc-assign-layouts").module)
    assert "memref.get_global @filter : memref<8x3x1x2xf16>" in found
