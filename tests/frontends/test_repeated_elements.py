"""Images that are resized by whole factors, or padded by copies of their edges: elements are
repeated, and no place of one is computed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")
onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from onnx.reference import ReferenceEvaluator  # noqa: E402

import aotc.torch  # noqa: E402
from aotc.frontends.onnx import FRONTEND  # noqa: E402
from aotc.frontends.torch import import_program  # noqa: E402

functional = torch.nn.functional
# What each function repeats.
RESIZED = {
    "sequence": lambda x: functional.interpolate(x[0], scale_factor=3.0),
    "image": lambda x: functional.interpolate(x, scale_factor=2.0),
    "size": lambda x: functional.interpolate(x, size=(2 * x.shape[2], 5 * x.shape[3])),
    "exact": lambda x: functional.interpolate(x, scale_factor=(1.0, 3.0), mode="nearest-exact"),
    "volume": lambda x: functional.interpolate(x[None], scale_factor=(1.0, 2.0, 4.0)),
    "bytes": lambda x: functional.interpolate(x.to(torch.uint8), scale_factor=2.0),
}
OTHERS = {
    "smaller": lambda x: functional.interpolate(x, scale_factor=0.5),
    "ratio": lambda x: functional.interpolate(x, size=(7, 9)),
    "other exact": lambda x: functional.interpolate(x, size=(7, 9), mode="nearest-exact"),
    "half": lambda x: functional.interpolate(x.half(), scale_factor=2.0),
    # The step of PyTorch, 1 / 41 in f32, is less than that of a whole number.
    "first less": lambda x: functional.interpolate(x, scale_factor=(1.0, 41.0)),
}
# (shape, result's shape, type, mode): another rounding gives other elements.
PLACES = tuple(
    ((1, 1, *[2] * dims, size), (*[3] * dims, count), dtype, mode)
    for dims in (0, 1, 2)
    for size, count, dtype, mode in (
        (14, 16, torch.float32, "nearest"),
        (30, 58, torch.float32, "nearest"),
        (14, 16, torch.float16, "nearest"),
        (2, 41, torch.float32, "nearest-exact"),
        (26, 22, torch.float64, "nearest"),
        (4, 47, torch.float64, "nearest-exact"),
    )
)


class Resized(torch.nn.Module):
    def __init__(self, functions: list[Any]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Any) -> Any:
        return tuple(function(x) for function in self.functions)


def image() -> Any:
    return torch.randn(1, 3, 4, 6, generator=torch.Generator().manual_seed(0)) * 50 + 100


@pytest.mark.parametrize("is_open", [False, True])
def test_modules_of_pytorch(tmp_path: Path, is_open: bool) -> None:
    """Of known sizes, and of sizes that the call determines."""
    functions = {**RESIZED, **OTHERS}
    if is_open:
        functions = {name: functions[name] for name in ("sequence", "image", "exact", "bytes")}
    module, x = Resized(list(functions.values())), image()
    sizes = {2: torch.export.Dim("height", min=2), 3: torch.export.Dim("width", min=2)}
    artifact = aotc.torch.build(
        module,
        (x,),
        dynamic_shapes=({"x": sizes} if is_open else None),
        name="net",
        out=f"{tmp_path}/",
        chips="sm_80",
        optimization=1,
    )
    for given in (x, torch.cat([x, x], 3)) if is_open else (x,):
        for ours, theirs in zip(artifact(given), module(given), strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("is_open", [False, True])
def test_the_places_of_pytorch(tmp_path: Path, is_open: bool) -> None:
    """Also where another rounding gives a neighbour."""
    pairs = [
        (torch.arange(math.prod(shape), dtype=dtype).reshape(shape), size, mode)
        for shape, size, dtype, mode in PLACES
    ]

    class Net(torch.nn.Module):
        def forward(self, *images: Any) -> Any:
            return tuple(
                functional.interpolate(image, size, mode=mode)
                for image, (_, size, mode) in zip(images, pairs, strict=True)
            )

    images = tuple(image for image, _, _ in pairs)
    sizes = tuple({image.dim() - 1: torch.export.Dim.DYNAMIC} for image in images)
    artifact = aotc.torch.build(
        Net(),
        images,
        dynamic_shapes={"images": sizes} if is_open else None,
        name="net",
        out=f"{tmp_path}/",
        chips="sm_80",
        optimization=1,
    )
    for ours, theirs in zip(artifact(*images), Net()(*images), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", [*RESIZED, *OTHERS])
def test_places_are_computed_for_other_factors_alone(name: str) -> None:
    function = {**RESIZED, **OTHERS}[name]
    program = torch.export.export(Resized([function]), (image(),))
    assert ("sitofp" in str(import_program(program, "net"))) == (name in OTHERS)


MODES = (
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel_symmetric", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    # Those repeat elements another number of times.
    ("asymmetric", "ceil"),
    ("half_pixel", "ceil"),
    ("align_corners", "floor"),
)


def resize(mode: tuple[str, str], place: int) -> str:
    names = ("coordinate_transformation_mode", "nearest_mode")
    pairs = ", ".join(f'{name}: string = "{one}"' for name, one in zip(names, mode, strict=True))
    return f'y{place} = Resize <mode: string = "nearest", {pairs}> (x, , scales)'


def test_models_of_onnx(tmp_path: Path) -> None:
    results = ", ".join(f"float[1, 3, 8, 18] y{place}" for place in range(len(MODES)))
    nodes = "\n".join(resize(mode, place) for place, mode in enumerate(MODES))
    text = f"""<ir_version: 9, opset_import: ["" : 19]> net (float[1, 3, 4, 6] x) => ({results})
      <float[4] scales = {{1.0, 1.0, 2.0, 3.0}}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    onnx.save(model, tmp_path / "net.onnx")
    out = f"{tmp_path}/out/"
    built = aotc.build(tmp_path / "net.onnx", emit="shared", out=out, chips="sm_80", optimization=1)
    library, x = aotc.load(built), image().numpy()
    library.set_device("cpu")
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    for ours, theirs in zip(library["net"](x), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_elements_are_gathered_for_other_modes_alone(mode: tuple[str, str], tmp_path: Path) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 19]>
      net (float[1, 3, 4, 6] x) => (float[1, 3, 8, 18] y0)
      <float[4] scales = {{1.0, 1.0, 2.0, 3.0}}> {{ {resize(mode, 0)} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    imported = FRONTEND.load(tmp_path / "net.onnx", {})
    assert ("tensor.extract " in str(imported)) == (mode in MODES[4:])


@pytest.mark.parametrize("is_open", [False, True])
def test_edges(is_open: bool, tmp_path: Path) -> None:
    """Of sequences, images and volumes of known sizes, and of sizes that the call determines."""
    functions = [
        lambda x, mode=mode, pads=pads: functional.pad(
            x if len(pads) < 6 else x[None], pads, mode=mode
        )
        for mode in ("reflect", "replicate")
        for pads in ((2, 3), (1, 0, 2, 3), (1, 1, 0, 0, 2, 1))
    ]
    module = Resized([lambda x, f=functions[0]: f(x[0]), *functions[1:3], *functions[4:]])
    sizes = {2: torch.export.Dim("height", min=4), 3: torch.export.Dim("width", min=4)}
    x = torch.rand(1, 3, 4, 6)
    shapes = {"x": sizes} if is_open else None
    program = torch.export.export(module, (x,), dynamic_shapes=shapes)
    assert "an index is out of bounds" not in str(import_program(program, "net"))
    options = {"name": "net", "out": f"{tmp_path}/", "chips": "sm_80", "optimization": 1}
    built = aotc.torch.build(program, (), **options)
    for given in (x, torch.rand(1, 3, 9, 20)) if is_open else (x,):
        for ours, theirs in zip(built(given), module(given), strict=True):
            assert torch.equal(ours, theirs)
