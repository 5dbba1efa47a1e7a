"""Convolutions whose temporaries have their channels last, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import build_library

# Channels; then of each layer the filters, their side, stride, dilation and groups.
LAYERS = {
    "plain": (16, (24, 3, 1, 1, 1), (8, 1, 1, 1, 1)),
    "strided": (16, (24, 3, 2, 1, 1), (16, 1, 2, 1, 1)),
    "dilated": (8, (8, 3, 1, 2, 1), (16, 2, 1, 1, 1)),
    "grouped": (16, (32, 3, 1, 1, 2), (16, 2, 1, 1, 4)),
    "depthwise": (16, (16, 3, 1, 1, 16), (8, 1, 1, 1, 1), (8, 3, 1, 1, 1)),
    "few": (3, (5, 3, 1, 1, 1), (8, 3, 1, 1, 1)),
    "colours": (3, (24, 3, 2, 1, 1), (40, 3, 1, 1, 1), (8, 3, 2, 1, 1)),
}
# Its lines are longer than a vector.
SIDES = {"colours": (15, 45)}


def _sizes(name: str, side: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Channels, height and width of the image and of each layer's result."""
    channels, *layers = LAYERS[name]
    found = [(channels, *side)]
    for filters, size, stride, dilation, _ in layers:
        _, *sides = found[-1]
        down, along = ((one - (size - 1) * dilation - 1) // stride + 1 for one in sides)
        found.append((filters, down, along))
    return found


def _text(name: str, batch: str, side: tuple[int, int], weights: list[np.ndarray]) -> str:
    """Each layer is a convolution of what the one before made, and then relu. What is before the
    first one is doubled."""
    _, *layers = LAYERS[name]
    sizes = _sizes(name, side)
    count = "%n" if batch == "?" else ""

    def tensor(number: int, element: str) -> str:
        return f"tensor<{batch}x{'x'.join(map(str, sizes[number]))}x{element}>"

    same = "affine_map<(n, c, y, x) -> (n, c, y, x)>"
    parallel = ", ".join(['"parallel"'] * 4)

    def each(number: int, source: str, into: str, element: str, body: str) -> str:
        type_ = tensor(number, "f16")
        return f"""
  %e_{into} = tensor.empty({count}) : {type_}
  {into} = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = [{parallel}]}}
      ins({source} : {tensor(number, element)}) outs(%e_{into} : {type_}) {{
  ^bb0(%v: {element}, %old: f16):
{body}
  }} -> {type_}""".replace("%e_%", "%e_")

    twice = "    %w = arith.addf %v, %v : f16\n    linalg.yield %w : f16"
    lines = [each(0, "%image", "%x0", "f16", twice)]
    for number, layer in enumerate(layers):
        filters, size, stride, dilation, groups = layer
        channels, down, along = sizes[number]
        _, high, wide = sizes[number + 1]
        shape = f"{groups}x{filters // groups}x{channels // groups}x{size}x{size}xf16"
        image = f"tensor<{batch}x{groups}x{channels // groups}x{down}x{along}xf16>"
        result = f"tensor<{batch}x{groups}x{filters // groups}x{high}x{wide}xf32>"
        parts = (count, str(groups), str(channels // groups), str(down), str(along))
        shown = ", ".join(one or batch for one in parts)
        relu = """    %w = arith.truncf %v : f32 to f16
    %m = arith.maximumf %w, %zero : f16
    linalg.yield %m : f16"""
        lines.append(
            f"""
  %f{number} = arith.constant dense_resource<w{number}> : tensor<{shape}>
  %g{number} = tensor.expand_shape %x{number} [[0], [1, 2], [3], [4]] output_shape [{shown}]
      : {tensor(number, "f16")} into {image}
  %s{number} = tensor.empty({count}) : {result}
  %z{number} = linalg.fill ins(%wide : f32) outs(%s{number} : {result}) -> {result}
  %c{number} = linalg.conv_2d_ngchw_gfchw
      {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}
      ins(%g{number}, %f{number} : {image}, tensor<{shape}>) outs(%z{number} : {result}) -> {result}
  %y{number} = tensor.collapse_shape %c{number} [[0], [1, 2], [3], [4]]
      : {result} into {tensor(number + 1, "f32")}"""
        )
        lines.append(each(number + 1, f"%y{number}", f"%x{number + 1}", "f32", relu))
    end = len(layers)
    blobs = ", ".join(
        f'w{i}: "0x02000000{weight.tobytes().hex()}"' for i, weight in enumerate(weights)
    )
    signature = f"@f(%image: {tensor(0, 'f16')}) -> {tensor(end, 'f16')}"
    return f"""
func.func {signature} attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f16
  %wide = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %n = tensor.dim %image, %first : {tensor(0, "f16")}
{"".join(lines)}
  return %x{end} : {tensor(end, "f16")}
}}
{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}
"""


def _expected(image: np.ndarray, name: str, weights: list[np.ndarray]) -> Any:
    _, *layers = LAYERS[name]
    x = 2 * image.astype(np.float64)
    for (filters, size, stride, dilation, groups), weight in zip(layers, weights, strict=True):
        n, channels, down, along = x.shape
        parts = x.reshape(n, groups, channels // groups, down, along)
        high, wide = ((one - (size - 1) * dilation - 1) // stride + 1 for one in (down, along))
        total = np.zeros((n, groups, filters // groups, high, wide))
        for q in range(size):
            for r in range(size):
                rows = slice(q * dilation, q * dilation + (high - 1) * stride + 1, stride)
                columns = slice(r * dilation, r * dilation + (wide - 1) * stride + 1, stride)
                total += np.einsum("ngcyx,gfc->ngfyx", parts[..., rows, columns], weight[..., q, r])
        x = np.maximum(total.reshape(n, filters, high, wide), 0)
    return x


@pytest.mark.parametrize(
    ("name", "batch"), [*((name, "2") for name in LAYERS), ("strided", "?"), ("grouped", "?")]
)
def test_result_is_numpys(
    name: str, batch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    random, side = np.random.default_rng(0), SIDES.get(name, (11, 11))
    channels, *layers = LAYERS[name]
    weights = []
    before = channels
    for filters, size, _, _, groups in layers:
        shape = (groups, filters // groups, before // groups, size, size)
        weights.append((random.random(shape) - 0.5).astype(np.float16))
        before = filters
    text = _text(name, batch, side, weights)
    library = build_library(text, tmp_path)
    for count in (2,) if batch == "2" else (1, 3):
        image = (random.random((count, channels, *side)) - 0.5).astype(np.float16)
        expected = _expected(image, name, weights)
        found = np.zeros(expected.shape, np.float16)
        result = library.call("f", image, found) if batch == "2" else library.call("f", image)
        found = found if result is None else result
        np.testing.assert_allclose(found, expected, atol=5e-3 * np.abs(expected).max())
