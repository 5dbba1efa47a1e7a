"""Operators of samples/waves, and others: lowered to PyTorch's operators and to MLIR."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.command import SAMPLES

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc  # noqa: E402
import aotc.torch  # noqa: E402
from aotc.frontends.torch import operators as torch_operators  # noqa: E402
from aotc.torch import OperatorLowering  # noqa: E402

OPTIONS = {"emit": "shared", "chips": "sm_90", "optimization": 1}
WAVES = SAMPLES / "waves"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """samples/waves as pip leaves it: its package and its entry points on Python's path."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    project = tomllib.loads((WAVES / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / "aotc_waves-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: aotc-waves\nVersion: 0.1.0\n")
    points = project["entry-points"][torch_operators.GROUP]
    lines = [f"[{torch_operators.GROUP}]", *(f"{key} = {value}" for key, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(metadata.parent))
    monkeypatch.syspath_prepend(str(WAVES))


@pytest.fixture
def registered() -> Iterator[None]:
    yield
    torch_operators._registered.clear()


@pytest.fixture(scope="module")
def scaled() -> Any:
    """An operator without a lowering; with an overload's name, a list, a flag and None."""
    library = torch.library.Library("aotc_tests", "DEF")
    library.define(
        "scaled.by(Tensor x, Tensor y, int[] n, bool f, str s, float? z) -> (Tensor, Tensor)"
    )

    def scaled(x: Any, y: Any, n: Any, f: bool, s: str, z: Any) -> Any:
        return x * y * n[0], (x * n[1]).sum(0)

    library.impl("scaled.by", scaled, "CompositeExplicitAutograd")
    yield torch.ops.aotc_tests.scaled.by
    library._destroy()


def check(module: Any, artifact: Any, *args: Any) -> None:
    torch.testing.assert_close(artifact(*args), module(*args), rtol=1e-5, atol=1e-6)


def test_the_sample(tmp_path: Path) -> None:
    """Both operators, of two types, of rank 0 to 3 and of any size, by a file and by a module."""
    from waves import square, triangle

    class Waves(torch.nn.Module):
        def forward(self, x: Any, y: Any, z: Any) -> Any:
            halves = triangle(y, 0.5), square(y, 3.0)
            return triangle(x / 4, 2.0) + square(x, 3.0), *halves, triangle(z, 1.0)

    def inputs(rows: int) -> Any:
        return (
            torch.linspace(-9, 9, rows),
            torch.linspace(-5, 5, 4 * rows).reshape(2, rows, 2).double(),
            torch.tensor(2.5),
        )

    rows = torch.export.Dim("rows")
    shapes = ({0: rows}, {1: rows}, None)
    program = torch.export.export(Waves(), inputs(5), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "waves.pt2")
    saved = aotc.build(tmp_path / "waves.pt2", out=f"{tmp_path}/saved/", **OPTIONS)
    for one in (aotc.torch.load(saved), aotc.torch.build(program, (), out=f"{tmp_path}/built/")):
        for count in (5, 7, 1):
            check(Waves(), one, *inputs(count))


TEXT = """\
func.func @any(%x: {0}, %y: {1}) -> ({2}, {3}) {{
  %c = arith.constant {4} : i8
  %e = tensor.empty() : {2}
  %a = linalg.mul ins(%x, %y : {0}, {1}) outs(%e : {2}) -> {2}
  %z = arith.constant 0 : i8
  %f = linalg.fill ins(%z : i8) outs(%e : {2}) -> {2}
  %g = linalg.fill ins(%c : i8) outs(%f : {2}) -> {2}
  %b = linalg.mul ins(%a, %g : {2}, {2}) outs(%e : {2}) -> {2}
  %s = arith.constant dense<{5}> : {3}
  return %b, %s : {2}, {3}
}}
"""


def test_what_a_lowering_is_given(scaled: Any, registered: None, tmp_path: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return scaled(x, x + 1, [3, 2], True, "text", None)

    calls = []

    def text(call: aotc.torch.OperatorCall) -> str:
        calls.append(call)
        return TEXT.format(*call.operands, *call.results, call.constants[0][0], 7)

    aotc.torch.register(OperatorLowering("aotc_tests::scaled.by", to_mlir=text))
    x = torch.tensor([[1, 200, 3], [0, 4, 5]], dtype=torch.uint8)
    built = aotc.torch.build(Module(), (x,), out=f"{tmp_path}/", **OPTIONS)
    (call,) = calls
    assert call.operands == ("tensor<2x3xi8>", "tensor<2x3xi8>")
    assert call.results == ("tensor<2x3xi8>", "tensor<3xi64>")
    assert call.constants == ([3, 2], True, "text", None)
    first, second = built(x)
    assert first.equal(x * (x + 1) * 3)
    assert second.tolist() == [7, 7, 7]


WRONG: list[tuple[Any, str]] = [
    (None, r"The operator aotc_tests::scaled\.by has no lowering"),
    (lambda call: "what?", "scaled.by gives what MLIR cannot read"),
    (lambda call: "", "gives another text than that of one func.func"),
    (lambda call: 3, "gives no text: int"),
    (lambda call: 1 / 0, "scaled.by failed: ZeroDivisionError"),
    (
        lambda call: (
            "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
        ),
        r"a function of tensor<2xf32> -> tensor<2xf32>, and it must be of tensor<2x3xi8>, tensor",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_refused(
    text: Any, message: str, scaled: Any, registered: None, tmp_path: Path
) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return scaled(x, x + 1, [3, 2], True, "text", None)

    if text is not None:
        aotc.torch.register(OperatorLowering("aotc_tests::scaled.by", to_mlir=text))
    with pytest.raises(aotc.InputError, match=message):
        aotc.torch.build(Module(), (torch.ones(2, 3, dtype=torch.int8),), out=f"{tmp_path}/")


@pytest.mark.parametrize("name", ["aten::add", "prims::x", "waves.square", "a::b::c", ""])
def test_names(name: str) -> None:
    with pytest.raises(ValueError, match="expected 'library::operator'"):
        OperatorLowering(name, to_torch=print)
    with pytest.raises(ValueError, match="give one of to_torch and to_mlir"):
        OperatorLowering("waves::square")


def test_a_broken_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "more" / "broken-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    points = metadata / "entry_points.txt"
    monkeypatch.syspath_prepend(str(metadata.parent))
    for value, message in (
        ("absent:X", "'x' of 'aotc.torch_operators' cannot be used: ModuleNotFoundError"),
        ("math:pi", "math:pi of 'aotc.torch_operators' is no aotc OperatorLowering"),
        ("waves:SQUARE", "Several packages lower the operator waves::square"),
    ):
        points.write_text(f"[{torch_operators.GROUP}]\nx = {value}\n")
        with pytest.raises(aotc.ToolError, match=message):
            torch_operators.lowerings()
