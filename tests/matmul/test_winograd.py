"""Convolutions with constant filters of 3 x 3 on the CPU device, against double precision."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.guarded import at_end_of_page
from helpers.shared import made_once, shared_folder
from msgspec import Struct
from msgspec.structs import replace

import aotc


class Convolution(Struct, frozen=True):
    """`images` may be of unknown number in the module (`any_images`), and have unknown lines and
    columns (`any_lines`, `any_columns`)."""

    name: str
    images: int
    channels: int
    rows: int
    lines: int
    columns: int
    any_images: bool = False
    any_lines: bool = False
    any_columns: bool = False
    is_taken: bool = True

    @property
    def unknown(self) -> list[str]:
        """The values of the unknown sizes in the module's text."""
        names = {"%images": self.any_images, "%lines": self.any_lines, "%columns": self.any_columns}
        return [name for name, is_unknown in names.items() if is_unknown]

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The padded image, the filters, and what is added."""
        random = np.random.default_rng(self.rows * 1000 + self.columns)
        image = (self.images, self.channels, self.lines + 2, self.columns + 2)
        x, residual = (
            random.standard_normal(shape).astype(np.float32) for shape in (image, self.result_shape)
        )
        # The same for images of each size.
        w = np.random.default_rng(self.rows).standard_normal((self.rows, self.channels, 3, 3))
        return x, w.astype(np.float32), residual

    @property
    def result_shape(self) -> tuple[int, int, int, int]:
        return self.images, self.rows, self.lines, self.columns

    def expected(self) -> np.ndarray:
        x, w, residual = (one.astype(np.float64) for one in self.operands())
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        sums = np.einsum("ncyxij,mcij->nmyx", windows, w, optimize=True)
        return np.maximum(sums + residual, 0)

    def text(self) -> str:
        """The sums with a residual, and a ReLU."""
        count = "?" if self.any_images else self.images
        inputs, outputs = (
            "x".join(
                "?" if is_unknown else str(size + more)
                for size, is_unknown in (
                    (self.lines, self.any_lines),
                    (self.columns, self.any_columns),
                )
            )
            for more in (2, 0)
        )
        x = f"tensor<{count}x{self.channels}x{inputs}xf32>"
        w = f"tensor<{self.rows}x{self.channels}x3x3xf32>"
        y = f"tensor<{count}x{self.rows}x{outputs}xf32>"
        filters = self.operands()[1].tobytes().hex().upper()
        return f"""
func.func @{self.name}(%x: {x}, %residual: {y}) -> {y} attributes {{llvm.emit_c_interface}} {{
  %w = arith.constant dense<"0x{filters}"> : {w}
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %images = tensor.dim %x, %c0 : {x}
  %lines = tensor.dim %residual, %c2 : {y}
  %columns = tensor.dim %residual, %c3 : {y}
  %empty = tensor.empty({", ".join(self.unknown)}) : {y}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %sums = linalg.conv_2d_nchw_fchw ins(%x, %w : {x}, {w}) outs(%zeros : {y}) -> {y}
  %result = linalg.map ins(%sums, %residual : {y}, {y}) outs(%empty : {y})
    (%a: f32, %b: f32, %out: f32) {{
      %sum = arith.addf %a, %b : f32
      %positive = arith.maximumf %sum, %zero : f32
      linalg.yield %positive : f32
    }}
  return %result : {y}
}}"""


CASES = (
    Convolution("even", 1, 16, 48, 12, 20),
    # The last tiles have one line and one column; tiles of filters and of columns are not whole.
    Convolution("odd", 1, 9, 75, 13, 17),
    # Seven tiles a line, 49 in all: one is behind the last whole vector.
    Convolution("one_column_apart", 1, 40, 40, 14, 14),
    # Two steps along K.
    Convolution("deep", 1, 340, 16, 8, 8),
    # Lines of whole vectors, and of one tile more.
    Convolution("wide", 1, 8, 16, 4, 64),
    Convolution("wide_odd", 1, 8, 16, 3, 65),
    Convolution("strips", 1, 260, 16, 60, 61),
    Convolution("images", 3, 16, 24, 9, 7),
    Convolution("any_images", 5, 200, 20, 31, 30, any_images=True),
    Convolution("any_lines", 2, 16, 24, 9, 7, any_lines=True),
    Convolution("any_columns", 1, 16, 24, 9, 7, any_columns=True),
    Convolution("any_size", 1, 260, 40, 14, 14, any_lines=True, any_columns=True),
    Convolution("all_unknown", 3, 9, 75, 13, 17, any_images=True, any_lines=True, any_columns=True),
)
# Too few channels, rows, or tiles; and too many filters for so few tiles.
OTHERS = (
    Convolution("few_channels", 1, 7, 16, 12, 12, is_taken=False),
    Convolution("few_rows", 1, 8, 15, 12, 12, is_taken=False),
    Convolution("few_tiles", 1, 8, 16, 6, 6, is_taken=False),
    Convolution("large_filters", 1, 400, 400, 8, 8, is_taken=False),
)


@pytest.fixture(scope="module", params=["in the library", "in a file"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library, whose constants are in it or in a file of weights."""
    is_apart = request.param == "in a file"
    cases = CASES[:3] if is_apart else CASES

    def build(folder: Path) -> None:
        text = "\n".join(case.text() for case in cases)
        weights = folder / "weights" if is_apart else None
        out = f"{folder}/"
        aotc.build(text, emit="shared", out=out, name="built", chips=("sm_90",), weights=weights)

    name = f"winograd_{'_'.join(request.param.split())}"
    return made_once(shared_folder(tmp_path_factory) / name, build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_results_are_numpys(built: Path, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each level of x86-64; and nothing is read behind the end of the image."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    library = aotc.load(built)
    for case in CASES:
        if case.name not in library:
            continue
        x, _, residual = case.operands()
        given = [at_end_of_page(x), residual]
        if case.unknown:
            result = np.asarray(library[case.name](*given))
        else:
            result = np.full(case.result_shape, np.nan, np.float32)
            library[case.name](*given, result)
        bound = 5e-7 * np.sqrt(case.channels * 9)
        np.testing.assert_allclose(result, case.expected(), rtol=1e-6, atol=10 * bound)


def test_images_of_any_size_are_convolved(built: Path) -> None:
    """Of fewer lines and columns than a tile, of one vector of tiles, of several strips, and
    without columns."""
    library = aotc.load(built)
    for case in CASES:
        if case.name not in library or not (case.any_lines and case.any_columns):
            continue
        for lines, columns in [
            (1, 1),
            (2, 3),
            (3, 2),
            (1, 64),
            (8, 32),
            (65, 66),
            (70, 130),
            (2, 0),
            (0, 129),
        ]:
            sized = replace(case, lines=lines, columns=columns)
            x, _, residual = sized.operands()
            result = np.asarray(library[case.name](at_end_of_page(x), residual))
            expected = sized.expected() if lines * columns else residual
            bound = 5e-7 * np.sqrt(case.channels * 9)
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=10 * bound)


def test_what_is_worth_it_is_taken(tmp_path: Path) -> None:
    for case in (CASES[0], *CASES[-4:], *OTHERS):
        out = tmp_path / f"{case.name}.mlir"
        aotc.build(case.text(), emit="mlir", out=str(out), chips=("sm_90",))
        assert ("aotc_winograd_" in out.read_text()) == case.is_taken, case.name


def test_equal_convolutions_are_taken(tmp_path: Path) -> None:
    """Their kernels depend on the constants that the filters are."""
    equal = (CASES[0], replace(CASES[0], name="again"))
    out = tmp_path / "built.mlir"
    text = "\n".join(case.text() for case in equal)
    aotc.build(text, emit="mlir", out=str(out), chips=("sm_90",))
    kernels = set(re.findall(r"gpu.func @(\w+_cpu_\w+)", out.read_text()))
    assert kernels
    assert all("winograd" in name for name in kernels), kernels


def test_filters_of_the_caller_are_multiplied_as_they_are(tmp_path: Path) -> None:
    """The runtime would transform them in each call."""
    text = """
func.func @convolution(%x: tensor<1x16x14x14xf32>, %w: tensor<16x16x3x3xf32>,
    %y: tensor<1x16x12x12xf32>) -> tensor<1x16x12x12xf32> attributes {llvm.emit_c_interface} {
  %sums = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<1x16x14x14xf32>, tensor<16x16x3x3xf32>)
      outs(%y : tensor<1x16x12x12xf32>) -> tensor<1x16x12x12xf32>
  return %sums : tensor<1x16x12x12xf32>
}"""
    out = tmp_path / "built.mlir"
    aotc.build(text, emit="mlir", out=str(out), chips=("sm_90",))
    assert "winograd" not in out.read_text()
