"""Convolutions with a stride of 2 on the CPU device, whose images are copied to phases, against
double precision."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.guarded import at_end_of_page
from helpers.passes import run_passes_on
from helpers.shared import made_once, shared_folder
from msgspec import Struct
from numpy.typing import NDArray

import aotc
from aotc.lower.plan.levels import Level
from aotc.lower.plan.pipeline import plan_for
from aotc.request import MemoryMode

Array = NDArray[Any]


class Convolution(Struct, frozen=True):
    """A convolution of images of `size`, padded by `low` and `high` with `value`, and a ReLU.
    `more`: channels of the padding behind the others. `is_twice`: the negative result is computed
    by a second convolution of the padded images, and added. `has_phases`: its images are copied to
    phases; `has_padding`: these copies have the padding."""

    name: str
    size: tuple[int, int]
    taps: tuple[int, int] = (3, 3)
    low: tuple[int, int] = (1, 1)
    high: tuple[int, int] = (1, 1)
    channels: int = 5
    more: int = 0
    rows: int = 36
    images: int = 1
    dilation: int = 1
    value: float = 0.0
    element: str = "f32"
    is_dynamic: bool = False
    is_twice: bool = False
    has_phases: bool = True
    has_padding: bool = True

    @property
    def padded(self) -> tuple[int, ...]:
        sizes = zip(self.size, self.low, self.high, strict=True)
        return tuple(size + low + high for size, low, high in sizes)

    @property
    def outputs(self) -> tuple[int, ...]:
        sizes = zip(self.padded, self.taps, strict=True)
        return tuple((size - (taps - 1) * self.dilation - 1) // 2 + 1 for size, taps in sizes)

    def shapes(self, images: Any) -> list[tuple[Any, ...]]:
        """Those of the images, of the filters, of the padded images and of the result."""
        return [
            (images, self.channels, *self.size),
            (self.rows, self.channels + self.more, *self.taps),
            (images, self.channels + self.more, *self.padded),
            (images, self.rows, *self.outputs),
        ]

    def operands(self) -> list[Array]:
        random = np.random.default_rng(len(self.name))
        type_ = np.float64 if self.element == "f64" else np.float32
        shapes = self.shapes(self.images)[:2]
        return [random.standard_normal(shape).astype(type_) for shape in shapes]

    def expected(self) -> Array:
        x, w = (one.astype(np.float64) for one in self.operands())
        padding = [(0, 0), (0, self.more), *zip(self.low, self.high, strict=True)]
        x = np.pad(x, padding, constant_values=self.value)
        total = np.zeros(self.shapes(self.images)[3])
        for tap in np.ndindex(*self.taps):
            window = [
                slice(one * self.dilation, one * self.dilation + 2 * count - 1, 2)
                for one, count in zip(tap, self.outputs, strict=True)
            ]
            part = x[(slice(None), slice(None), *window)]
            total += np.einsum("ncyx,mc->nmyx", part, w[(slice(None), slice(None), *tap)])
        return np.abs(total) if self.is_twice else np.maximum(total, 0)

    def text(self) -> str:
        shapes = self.shapes("?" if self.is_dynamic else self.images)
        x, w, padded, y = (f"tensor<{'x'.join(map(str, one))}x{self.element}>" for one in shapes)
        low = ", ".join(map(str, (0, 0, *self.low)))
        high = ", ".join(map(str, (0, self.more, *self.high)))
        size = "%size" if self.is_dynamic else ""
        read = f"%size = tensor.dim %x, %c0 : {x}" if self.is_dynamic else ""
        pad = f"""%padded = tensor.pad %x low[{low}] high[{high}] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %value : {self.element}
  }} : {x} to {padded}"""
        image = "%padded" if any((*self.low, *self.high)) else "%x"

        def result(name: str, filters: str) -> str:
            return f"""
  %sums{name} = linalg.conv_2d_nchw_fchw {{strides = dense<2> : tensor<2xi64>,
      dilations = dense<{self.dilation}> : tensor<2xi64>}}
      ins({image}, {filters} : {padded}, {w}) outs(%zeros : {y}) -> {y}
  %{name} = linalg.map ins(%sums{name} : {y}) outs(%empty : {y})
    (%a: {self.element}, %out: {self.element}) {{
      %positive = arith.maximumf %a, %zero : {self.element}
      linalg.yield %positive : {self.element}
    }}"""

        negated = f"""
  %empty_w = tensor.empty() : {w}
  %negated = linalg.map {{arith.negf}} ins(%w : {w}) outs(%empty_w : {w})"""
        both = f"""
  %both = linalg.map {{arith.addf}} ins(%one, %other : {y}, {y}) outs(%empty : {y})"""
        rest = negated + result("other", "%negated") + both if self.is_twice else ""
        return f"""
func.func @{self.name}(%x: {x}, %w: {w}) -> {y} attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : {self.element}
  %value = arith.constant {self.value} : {self.element}
  {read}
  {pad if image == "%padded" else ""}
  %empty = tensor.empty({size}) : {y}
  %zeros = linalg.fill ins(%zero : {self.element}) outs(%empty : {y}) -> {y}
  {result("one", "%w")}{rest}
  return {"%both" if rest else "%one"} : {y}
}}"""


CASES = (
    Convolution("same", (64, 64)),
    Convolution("not_padded", (65, 67), low=(0, 0), high=(0, 0), has_padding=False),
    Convolution("in_front", (52, 80), high=(0, 0)),
    Convolution("behind", (50, 64), low=(0, 0), channels=3),
    Convolution("five", (84, 83), (5, 5), (2, 2), (2, 2)),
    Convolution("seven", (128, 129), (7, 7), (3, 3), (3, 3), channels=3),
    Convolution("even", (60, 94), (2, 4)),
    Convolution("wide_padding", (40, 70), (3, 3), (4, 7), (3, 20)),
    Convolution("dilated", (95, 100), low=(2, 2), high=(2, 2), dilation=2),
    Convolution("dilated_by_three", (95, 130), low=(3, 3), high=(3, 3), dilation=3),
    Convolution("many_rows", (56, 56), rows=200, channels=17),
    Convolution("several", (64, 64), images=3),
    Convolution("any", (64, 64), images=2, is_dynamic=True),
    Convolution("double", (64, 64), element="f64"),
    Convolution("channels", (80, 80), more=2, has_padding=False),
    Convolution("of_ones", (80, 80), value=1.0, has_padding=False),
    Convolution("twice", (56, 56), is_twice=True, has_padding=False),
    # Rows of the phases would be a fifteenth longer than those of the result.
    Convolution("small", (28, 28), has_phases=False),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        text = "\n".join(case.text() for case in CASES)
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_90",))

    return made_once(shared_folder(tmp_path_factory) / "phases", build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_results_are_numpys(built: Path, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each level of x86-64; and nothing is read behind the end of the images."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    library = aotc.load(built)
    for case in CASES:
        x, w = case.operands()
        expected = case.expected()
        result = np.full(expected.shape, np.nan, x.dtype)
        given = [at_end_of_page(x), w]
        if case.is_dynamic:
            result = np.asarray(library[case.name](*given))
        else:
            library[case.name](*given, result)
        np.testing.assert_allclose(result, expected, rtol=3e-5, atol=3e-5, err_msg=case.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_copies_have_the_padding(case: Convolution) -> None:
    """No other operation writes it on the CPU; in front of the kernels for GPUs, one does."""
    plan = plan_for([Level.TENSORS, Level.LINALG], block=None, memory=MemoryMode.AUTO)
    names = [one.text for one in plan]
    last = names.index("aotc-choose-matmul-kernels")
    text = str(run_passes_on(case.text(), *names[: last + 1]).module)
    before, rest = text.split("scf.if", 1)
    on_gpus, on_cpu = rest.split("\n    } else {", 1)
    is_padded = any((*case.low, *case.high))
    pads_itself = is_padded and case.has_phases and case.has_padding
    assert ("linalg.generic" in before) == (is_padded and not pads_itself)
    assert ("linalg.generic" in on_gpus) == pads_itself
    if not case.is_twice:
        assert "linalg.generic" not in on_cpu
        assert on_cpu.count("gpu.launch") == (2 if case.has_phases else 1)


# The padded images are some of the images.
CROPPED = """
func.func @cropped(%x: tensor<?x5x64x64xf32>, %w: tensor<36x5x3x3xf32>, %some: index)
    -> tensor<?x36x32x32xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %padded = tensor.generate %some {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %row = arith.subi %k, %c1 : index
    %column = arith.subi %l, %c1 : index
    %has_row = arith.cmpi ult, %row, %c64 : index
    %has_column = arith.cmpi ult, %column, %c64 : index
    %is_inside = arith.andi %has_row, %has_column : i1
    %from_row = arith.select %is_inside, %row, %c0 : index
    %from_column = arith.select %is_inside, %column, %c0 : index
    %read = tensor.extract %x[%i, %j, %from_row, %from_column] : tensor<?x5x64x64xf32>
    %made = arith.select %is_inside, %read, %zero : f32
    tensor.yield %made : f32
  } : tensor<?x5x66x66xf32>
  %empty = tensor.empty(%some) : tensor<?x36x32x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x36x32x32xf32>)
      -> tensor<?x36x32x32xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>}
      ins(%padded, %w : tensor<?x5x66x66xf32>, tensor<36x5x3x3xf32>)
      outs(%zeros : tensor<?x36x32x32xf32>) -> tensor<?x36x32x32xf32>
  return %y : tensor<?x36x32x32xf32>
}
"""


def test_fewer_images_are_padded_than_there_are(tmp_path: Path) -> None:
    """Of unknown numbers: the others have no place in the result, and nothing is stored there."""
    path = aotc.build(CROPPED, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_90",))
    x = np.random.default_rng(3).standard_normal((100, 5, 64, 64), np.float32)
    w = np.ones((36, 5, 3, 3), np.float32)
    padded = np.pad(x[:3].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    sums = sum(
        padded[:, :, row : row + 64 : 2, column : column + 64 : 2].sum(1)
        for row in range(3)
        for column in range(3)
    )
    program = "import sys, aotc, numpy as np; library = aotc.load(sys.argv[1])\n"
    program += "x, w = (np.load(one) for one in sys.argv[2:4])\n"
    program += "np.save(sys.argv[4], np.asarray(library['cropped'](x, w, 3)))"
    files = [tmp_path / f"{name}.npy" for name in "xwy"]
    for file, value in zip(files, (x, w), strict=False):
        np.save(file, value)
    # What is stored behind the result may end the process.
    subprocess.run([sys.executable, "-c", program, str(path.path), *map(str, files)], check=True)
    expected = np.broadcast_to(sums[:, None], (3, 36, 32, 32))
    np.testing.assert_allclose(np.load(files[2]), expected, rtol=3e-5, atol=3e-5)
