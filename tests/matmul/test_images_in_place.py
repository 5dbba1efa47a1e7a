"""Convolutions of 1 x 1 on the CPU device, whose images are read in place, against double
precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.guarded import at_end_of_page
from helpers.shared import made_once, shared_folder
from msgspec import Struct

import aotc

SHORT = """
      %sum = arith.addf %a, %b : f32
      %result = arith.maximumf %sum, %zero : f32"""
LONG = """
      %sum = arith.addf %a, %b : f32
      %result = math.exp %sum : f32"""


class Convolution(Struct, frozen=True):
    """Square images; `epilogue` makes the result of a sum and a residual's element."""

    name: str
    images: int
    channels: int
    rows: int
    side: int
    epilogue: str = SHORT

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The images, the filters, and the residual."""
        random = np.random.default_rng(self.rows * 1000 + self.side)
        image = (self.images, self.channels, self.side, self.side)
        shapes = image, (self.rows, self.channels, 1, 1), self.result_shape
        x, w, residual = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
        return x, w / np.float32(np.sqrt(self.channels)), residual

    @property
    def result_shape(self) -> tuple[int, int, int, int]:
        return self.images, self.rows, self.side, self.side

    def expected(self) -> np.ndarray:
        x, w, residual = (one.astype(np.float64) for one in self.operands())
        sums = np.einsum("ncyx,mc->nmyx", x, w[:, :, 0, 0], optimize=True) + residual
        return np.exp(sums) if self.epilogue == LONG else np.maximum(sums, 0)

    def text(self) -> str:
        x, w, y = (
            f"tensor<{'x'.join(map(str, one.shape))}xf32>"
            for one in (*self.operands()[:2], np.empty(self.result_shape))
        )
        return f"""
func.func @{self.name}(%x: {x}, %w: {w}, %residual: {y}) -> {y}
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {y}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %sums = linalg.conv_2d_nchw_fchw ins(%x, %w : {x}, {w}) outs(%zeros : {y}) -> {y}
  %result = linalg.map ins(%sums, %residual : {y}, {y}) outs(%empty : {y})
    (%a: f32, %b: f32, %out: f32) {{{self.epilogue}
      linalg.yield %result : f32
    }}
  return %result : {y}
}}"""


CASES = (
    Convolution("whole", 2, 64, 64, 16),
    # The last groups of rows are not whole; one column is behind the last whole vector.
    Convolution("one_column_apart", 3, 130, 61, 7),
    Convolution("many_rows", 2, 24, 205, 10),
    # Nine columns are behind the last whole vector.
    Convolution("rest", 2, 64, 75, 11),
    # Several steps along K.
    Convolution("deep", 2, 700, 52, 14),
    Convolution("wide", 2, 12, 70, 40),
    Convolution("long_epilogue", 2, 64, 64, 12, LONG),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        text = "\n".join(case.text() for case in CASES)
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_90",))

    return made_once(shared_folder(tmp_path_factory) / "images_in_place", build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_results_are_numpys(built: Path, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each level of x86-64; and nothing is read behind the end of the images."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    library = aotc.load(built)
    for case in CASES:
        x, w, residual = case.operands()
        result = np.full(case.result_shape, np.nan, np.float32)
        library[case.name](at_end_of_page(x), w, at_end_of_page(residual), result)
        np.testing.assert_allclose(result, case.expected(), rtol=3e-6, atol=3e-6)


def test_accumulators_are_stored_from_registers(tmp_path: Path) -> None:
    """What they are combined with is prefetched, as the image is. A long epilogue is not copied
    for each of them."""
    found = []
    for case in (CASES[0], CASES[-1]):
        out = tmp_path / f"{case.name}.mlir"
        aotc.build(case.text(), emit="mlir", out=str(out), chips=("sm_90",))
        lines = [line for line in out.read_text().splitlines() if "memref.prefetch" in line]
        found.append(len({line.split("memref<")[1] for line in lines}))
    assert found == [2, 1]
