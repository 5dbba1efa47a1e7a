"""Depthwise convolutions on the CPU device, against NumPy."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.passes import run_passes_on
from helpers.shared import made_once, shared_folder
from numpy.typing import NDArray

import aotc
from aotc.kernels.matmul.depthwise.channels_first import Variant, _first_packed, _Packing
from aotc.kernels.matmul.depthwise.problem import Window
from aotc.kernels.matmul.least_work import LEAST_WORK
from aotc.lower.plan.levels import Level
from aotc.lower.plan.pipeline import plan_for
from aotc.request import MemoryMode

Array = NDArray[Any]
TESTS = Path(__file__).parents[1]
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution of `images` images (of any number, if `is_dynamic`), whose input is
    padded by `low` and `high` in each dimension. With an `epilogue`, a bias is added, then a
    residual; then SiLU is applied. `is_last`: the channels are the last dimension. `is_open`:
    images have any size."""

    name: str
    channels: int
    size: tuple[int, ...]
    filter_: tuple[int, ...]
    images: int = 1
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    low: tuple[int, ...] = (0, 0)
    high: tuple[int, ...] = (0, 0)
    element: str = "f32"
    is_dynamic: bool = False
    epilogue: bool = False
    is_last: bool = False
    is_open: bool = False

    @property
    def padded(self) -> tuple[int, ...]:
        sizes = zip(self.size, self.low, self.high, strict=True)
        return tuple(size + low + high for size, low, high in sizes)

    @property
    def outputs(self) -> tuple[int, ...]:
        sizes = zip(self.padded, self.filter_, self.strides, self.dilations, strict=True)
        return tuple((size - (taps - 1) * d - 1) // s + 1 for size, taps, s, d in sizes)

    def _type(self, sizes: tuple[int, ...]) -> str:
        images = "?" if self.is_dynamic else self.images
        known = self._placed(images, ("?",) * len(sizes) if self.is_open else sizes)
        return f"tensor<{'x'.join(map(str, known))}x{self.element}>"

    def _placed(self, images: Any, sizes: tuple[int, ...]) -> tuple[Any, ...]:
        """The shape of an input or a result."""
        channels = (self.channels,)
        return (images, *sizes, *channels) if self.is_last else (images, *channels, *sizes)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        channels = (self.channels,)
        return (*self.filter_, *channels) if self.is_last else (*channels, *self.filter_)

    @property
    def module(self) -> str:
        source, padded, result = map(self._type, (self.size, self.padded, self.outputs))
        filter_ = f"tensor<{'x'.join(map(str, self.filter_shape))}x{self.element}>"
        bias = f"tensor<{self.channels}x{self.element}>"
        behind = (0,) if self.is_last else ()
        low, high = (
            ", ".join(map(str, (0, *(() if behind else (0,)), *one, *behind)))
            for one in (self.low, self.high)
        )
        layout = "nhwc_hwc" if self.is_last else "nchw_chw"
        arguments = f"%x: {source}, %w: {filter_}, %bias: {bias}, %residual: {result}"
        pad = ""
        if any((*self.low, *self.high)):
            indices = ", ".join(f"%i{number}: index" for number in range(4))
            pad = f"""%p = tensor.pad %x low[{low}] high[{high}] {{
  ^bb0({indices}):
    tensor.yield %zero : {self.element}
  }} : {source} to {padded}"""
        strides, dilations = (
            f"dense<[{', '.join(map(str, one))}]> : tensor<2xi64>"
            for one in (self.strides, self.dilations)
        )
        spatial = (1, 2) if self.is_last else (2, 3)
        dynamic = [0] * self.is_dynamic + [*spatial] * self.is_open
        sizes = ", ".join(f"%size{one}" for one in dynamic)
        reads = "\n".join(
            f"%size{one} = tensor.dim %residual, %c{one} : {result}" for one in dynamic
        )
        return f"""
func.func @{self.name}({arguments}) -> {result} attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : {self.element}
  %one = arith.constant 1.0 : {self.element}
  {reads}
  {pad}
  %empty = tensor.empty({sizes}) : {result}
  %zeros = linalg.fill ins(%zero : {self.element}) outs(%empty : {result}) -> {result}
  %y = linalg.depthwise_conv_2d_{layout} {{strides = {strides}, dilations = {dilations}}}
      ins({"%p" if pad else "%x"}, %w : {padded}, {filter_}) outs(%zeros : {result}) -> {result}
  {self._activation(bias, result) if self.epilogue else ""}
  return {"%z" if self.epilogue else "%y"} : {result}
}}
"""

    def _activation(self, bias: str, result: str) -> str:
        element, channel = self.element, "w" if self.is_last else "c"
        maps = [f"affine_map<(n, c, h, w) -> ({one})>" for one in ("n, c, h, w", channel)]
        return f"""%z = linalg.generic {{
      indexing_maps = [{maps[0]}, {maps[1]}, {maps[0]}, {maps[0]}],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%y, %bias, %residual : {result}, {bias}, {result}) outs(%empty : {result}) {{
  ^bb0(%sum: {element}, %b: {element}, %r: {element}, %old: {element}):
    %biased = arith.addf %sum, %b : {element}
    %both = arith.addf %biased, %r : {element}
    %negated = arith.negf %both : {element}
    %exp = math.exp %negated : {element}
    %more = arith.addf %exp, %one : {element}
    %silu = arith.divf %both, %more : {element}
    linalg.yield %silu : {element}
  }} -> {result}"""

    @property
    def is_worth_a_kernel(self) -> bool:
        """Whether GPUs have a kernel for it."""
        work = self.images * self.channels * math.prod(self.outputs) * math.prod(self.filter_)
        return self.is_dynamic or self.is_open or work >= LEAST_WORK

    @property
    def is_of_planes(self) -> bool:
        """Whether vectors on the CPU device have the same point of several planes."""
        return self.name.startswith(("planes", "small")) and not (self.is_last or self.is_open)

    def operands(self) -> list[Array]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        shapes = (
            self._placed(self.images, self.size),
            self.filter_shape,
            (self.channels,),
            self._placed(self.images, self.outputs),
        )
        return [rng.standard_normal(shape).astype(DTYPES[self.element]) for shape in shapes]

    def expected(self, x: Array, w: Array, bias: Array, residual: Array) -> Array:
        x, w, bias, residual = (one.astype(np.float64) for one in (x, w, bias, residual))
        if self.is_last:
            x, w, residual = (
                np.moveaxis(x, 3, 1),
                np.moveaxis(w, 2, 0),
                np.moveaxis(residual, 3, 1),
            )
        padding = [(0, 0), (0, 0), *zip(self.low, self.high, strict=True)]
        x = np.pad(x, padding)
        total = np.zeros(residual.shape)
        for tap in np.ndindex(*self.filter_):
            places = zip(tap, self.outputs, self.strides, self.dilations, strict=True)
            window = [
                slice(t * dilation, t * dilation + (count - 1) * stride + 1, stride)
                for t, count, stride, dilation in places
            ]
            total += x[(slice(None), slice(None), *window)] * w[(slice(None), *tap)][:, None, None]
        if self.epilogue:
            total = total + bias[:, None, None] + residual
            total = total / (1 + np.exp(-total))
        return np.moveaxis(total, 1, 3) if self.is_last else total


SAME = Layer("same", 5, (9, 21), (3, 3), low=(1, 1), high=(1, 1))
STRIDED = Layer("strided", 6, (15, 37), (3, 3), 2, (2, 2), low=(1, 1), high=(1, 1))
LAYERS = [
    SAME,
    replace(SAME, name="several", images=3),
    replace(SAME, name="any", images=3, is_dynamic=True),
    replace(SAME, name="finished", images=2, epilogue=True),
    replace(SAME, name="any_finished", images=2, is_dynamic=True, epilogue=True),
    STRIDED,
    replace(STRIDED, name="strided_finished", epilogue=True),
    replace(STRIDED, name="odd_input", size=(14, 36), low=(0, 0)),
    Layer("aligned", 3, (24, 58), (3, 3), strides=(2, 2), low=(1, 1), high=(1, 1), epilogue=True),
    Layer("not_padded", 3, (8, 19), (3, 5)),
    Layer("not_padded_strided", 3, (12, 40), (5, 4), strides=(2, 2)),
    Layer("asymmetric", 4, (7, 9), (4, 3), low=(2, 0), high=(0, 3)),
    Layer("mixed", 4, (11, 13), (3, 3), strides=(1, 2), dilations=(2, 1), low=(1, 2), high=(2, 0)),
    Layer("dilated_strided", 4, (21, 23), (3, 3), strides=(2, 2), dilations=(2, 3), low=(2, 3)),
    Layer("third", 4, (21, 23), (5, 4), strides=(3, 3), low=(1, 2), high=(2, 2)),
    Layer("beyond", 4, (40, 40), (3, 3), strides=(4, 5), low=(1, 1)),
    Layer("small", 40, (7, 7), (3, 3), low=(1, 1), high=(1, 1), epilogue=True),
    Layer("tiny", 9, (2, 3), (7, 7), 2, low=(3, 3), high=(3, 3)),
    Layer("tiny_strided", 9, (3, 4), (7, 7), 2, strides=(2, 2), low=(3, 3), high=(3, 3)),
    Layer("large", 2, (113, 115), (5, 5), 2, low=(2, 2), high=(2, 2), epilogue=True),
    Layer("large_strided", 2, (131, 140), (7, 7), strides=(2, 2), low=(3, 3), high=(3, 3)),
    Layer("wide", 2, (3, 5000), (3, 9), low=(1, 4), high=(1, 4)),
    Layer("row_filter", 3, (6, 20), (1, 5), low=(0, 2), high=(0, 2)),
    Layer("column_filter", 3, (6, 20), (5, 1), low=(2, 0), high=(2, 0)),
    Layer("one_row", 3, (3, 20), (3, 3), low=(0, 1), high=(0, 1)),
    Layer("one_channel", 1, (12, 20), (3, 3), low=(1, 1), high=(1, 1)),
    Layer("planes", 37, (7, 7), (5, 5), 2, low=(2, 2), high=(2, 2), epilogue=True),
    Layer("planes_any", 24, (7, 7), (5, 5), 3, low=(2, 2), high=(2, 2), is_dynamic=True),
    Layer("planes_strided", 32, (14, 13), (5, 5), strides=(2, 2), low=(2, 1), high=(2, 2)),
    Layer("planes_dilated", 20, (9, 8), (3, 3), dilations=(3, 2), low=(4, 2), high=(1, 2)),
    Layer("planes_apart", 20, (6, 6), (3, 3), strides=(5, 4), low=(1, 6), high=(9, 4)),
    Layer("planes_double", 20, (7, 7), (7, 7), low=(3, 3), high=(3, 3), element="f64"),
    Layer("planes_half", 20, (7, 7), (3, 3), low=(1, 1), high=(1, 1), element="f16"),
    replace(SAME, name="double", element="f64", epilogue=True),
    replace(STRIDED, name="half", element="f16", epilogue=True),
]
LAYERS += [
    replace(layer, name=f"{layer.name}_last", channels=channels, is_last=True)
    for layer, channels in zip(LAYERS, itertools.cycle((5, 16, 35, 3, 64, 24)), strict=False)
]
_OPEN = (
    *(
        "any_finished",
        "strided_finished",
        "odd_input",
        "aligned",
        "not_padded_strided",
        "asymmetric",
    ),
    *("mixed", "dilated_strided", "third", "beyond", "small", "tiny_strided", "large", "wide"),
    *("double", "half", "finished_last", "strided_last", "mixed_last"),
    *("large_strided_last", "not_padded_last", "half_last"),
)
LAYERS += [
    replace(layer, name=f"{layer.name}_open", is_open=True)
    for layer in LAYERS
    if layer.name in _OPEN
]
# Loops are for these: one output along a row.
OTHERS = [Layer("one_column", 9, (3, 2), (7, 7), 2, strides=(2, 2), low=(3, 3), high=(3, 3))]


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu() -> None:
    os.environ["AOTC_DEVICE"] = "cpu"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of all layers, built once for all workers."""

    def make(folder: Path) -> None:
        build_library(
            "\n".join(layer.module for layer in (*LAYERS, *OTHERS)), folder, name="depthwise"
        )

    return made_once(shared_folder(tmp_path_factory) / "depthwise", make)


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    return Library(folder / "lib" / "libdepthwise.so", folder / "depthwise.json")


def call(library: Library, layer: Layer, operands: list[Array]) -> Array:
    """A result of known size is the last argument."""
    if layer.is_dynamic or layer.is_open:
        return library.call(layer.name, *operands)  # type: ignore[no-any-return]
    result = np.full_like(operands[-1], np.nan)
    library.call(layer.name, *operands, result)
    return result


@pytest.mark.parametrize("layer", [*LAYERS, *OTHERS], ids=lambda layer: layer.name)
def test_result_is_numpys(library: Library, layer: Layer) -> None:
    operands = layer.operands()
    found = call(library, layer, operands)
    check(layer, found)
    assert found.tobytes() == call(library, layer, operands).tobytes()


def test_an_image_without_elements_is_refused(folder: Path) -> None:
    [layer] = [one for one in LAYERS if one.name == "tiny_strided_open"]
    x, w, bias, residual = layer.operands()
    entry = getattr(aotc.load(folder / "lib" / "libdepthwise.so"), layer.name)
    with pytest.raises(
        aotc.LibraryError, match="an image of convolutions or poolings has no elements"
    ):
        entry(x[:, :, :0].copy(), w, bias, residual[:, :, :0].copy())


def check(layer: Layer, found: Array) -> None:
    expected = layer.expected(*layer.operands())
    allowed = {"f64": 1e-13, "f32": 3e-6, "f16": 3e-3}[layer.element]
    np.testing.assert_allclose(found, expected, rtol=allowed, atol=allowed * 10)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_layer_has_the_kernel(layer: Layer) -> None:
    """With its padding and its epilogue: nothing else is launched. GPUs keep small loops."""
    plan = plan_for([Level.TENSORS, Level.LINALG], block=None, memory=MemoryMode.AUTO)
    names = [one.text for one in plan]
    last = names.index("aotc-choose-matmul-kernels")
    text = str(run_passes_on(layer.module, *names[: last + 1]).module)
    before, choice = text.split("scf.if", 1)
    on_gpus, on_cpu = choice.split("} else {", 1)
    assert "linalg.generic" not in before + on_cpu
    has_kernel = "linalg.generic" not in on_gpus
    assert has_kernel == layer.is_worth_a_kernel
    assert (on_gpus.count("gpu.launch"), on_cpu.count("gpu.launch")) == (has_kernel, 1)
    assert layer.is_of_planes == ("_planes" in on_cpu)


RUN = """
import sys
from pathlib import Path
import numpy as np
from helpers.native import Library
from matmul.test_depthwise import LAYERS, call

folder = Path(sys.argv[1])
library = Library(folder / "lib" / "libdepthwise.so", folder / "depthwise.json")
for layer in LAYERS:
    np.save(Path(sys.argv[2]) / layer.name, call(library, layer, layer.operands()))
"""


def test_levels_have_the_same_bits(folder: Path, tmp_path: Path) -> None:
    """Those that have a fused multiply-add; the oldest processors round products."""
    for level in ("1", "3", "4"):
        (tmp_path / level).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(folder), str(tmp_path / level)],
            env={**os.environ, "AOTC_CPU_LEVEL": level, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=False,
        )
        if "AOTC_CPU_LEVEL" in done.stderr:
            pytest.skip(f"this processor has no level {level}")
        assert done.returncode == 0, done.stderr
    for layer in LAYERS:
        oldest, *others = (np.load(tmp_path / one / f"{layer.name}.npy") for one in "134")
        assert others[0].tobytes() == others[1].tobytes()
        check(layer, oldest)


@pytest.mark.parametrize(("size", "stride", "padding"), [(112, 1, 1), (112, 2, 1), (56, 2, 0)])
def test_packed_rows_begin_at_cache_lines(size: int, stride: int, padding: int) -> None:
    outputs = (size + 2 * padding - 3) // stride + 1
    window = Window(size, outputs, 3, stride, 1, padding, 1)
    problem: Any = SimpleNamespace(height=window, width=window, taps=9)
    variant = Variant(rows=8, vectors=1, width=16, band=8, planes=1, columns=outputs)
    packing = _Packing(problem, variant)
    assert packing.pitch % 16 == 0
    for part in packing.parts.values():
        _, place = _first_packed(window, part.column)
        assert (part.start + place) % 16 == 0


def test_sign_extension_before_zero_extension(tmp_path: Path) -> None:
    """Negative bytes that are extended with signs to 16 bits and with zeros to 32 are large."""
    text = """
#input = affine_map<(c, x, k) -> (c, x + k)>
#filter = affine_map<(c, x, k) -> (c, k)>
#result = affine_map<(c, x, k) -> (c, x)>
func.func @mixed(%x: tensor<16x40xi8>, %w: tensor<16x3xi8>) -> tensor<16x38xi32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<16x38xi32>
  %c = linalg.fill ins(%zero : i32) outs(%empty : tensor<16x38xi32>) -> tensor<16x38xi32>
  %y = linalg.generic {indexing_maps = [#input, #filter, #result],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x40xi8>, tensor<16x3xi8>) outs(%c : tensor<16x38xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %short = arith.extsi %a : i8 to i16
    %wide = arith.extui %short : i16 to i32
    %tap = arith.extsi %b : i8 to i32
    %product = arith.muli %wide, %tap : i32
    %next = arith.addi %sum, %product : i32
    linalg.yield %next : i32
  } -> tensor<16x38xi32>
  return %y : tensor<16x38xi32>
}
"""
    library = build_library(text, tmp_path)
    generator = np.random.default_rng(0)
    x, w = (generator.integers(-128, 128, (16, size), np.int8) for size in (40, 3))
    y = np.zeros((16, 38), np.int32)
    library.call("mixed", x, w, y)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.uint16).astype(np.int32), 3, 1)
    np.testing.assert_array_equal(y, (windows * w[:, None].astype(np.int32)).sum(-1))
