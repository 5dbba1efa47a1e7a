"""What of PyTorch's programs is refused, and what the errors say of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.torch_builds import CHIP  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402
from aotc.frontends.torch.places import place_of_node  # noqa: E402


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    path.write_bytes(b"no archive")
    with pytest.raises(aotc.InputError, match=r"torch\.export cannot load"):
        aotc.build(path, out=tmp_path / "x")


_LINE = r"test_torch_refusals\.py:[0-9]+"
REFUSED: list[tuple[Any, str]] = [
    (
        torch.linalg.eigvals,
        f"{_LINE}: error: aten.linalg_eig.default of complex numbers has no lowering",
    ),
    (
        lambda x: torch.poisson(x.abs()),
        f"{_LINE}:0: error: aten.poisson has no lowering",
    ),
    (
        lambda x: torch.linalg.qr(x)[0],
        rf"{_LINE}:0: error: aten.linalg_qr has no lowering for these operands\.",
    ),
    # torch-mlir's message has a constant only.
    (
        lambda x: torch.ops.aten.resize(x, (2, 3)),
        rf"{_LINE}:0: error: aten.resize has no lowering for these operands\.",
    ),
    (
        lambda x: x.abs().multinomial(2),
        rf"{_LINE}:0: error: aten.multinomial has no lowering for these operands\.",
    ),
    (
        lambda x: torch.embedding_bag(x, x[0].long(), x[1, :1].long(), mode=1)[2],
        rf"{_LINE}: error: result 2 of aten.embedding_bag has no lowering\.",
    ),
    (
        torch.hash_tensor,
        rf"{_LINE}: error: aten.hash_tensor has elements of torch.uint64, which have no lowering",
    ),
    (
        torch.func.grad(lambda x: x.tanh().sum()),
        rf"{_LINE}: error: torch.export loses what torch.func.grad, vjp or jvp takes the",
    ),
    (
        lambda x: torch.func.jvp(torch.tanh, (x,), (x,))[1],
        rf"{_LINE}: error: torch.export loses what torch.func.grad, vjp or jvp takes the",
    ),
]


class Calls(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize(("refused", "message"), REFUSED)
def test_what_cannot_be_lowered(
    refused: Any,
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the place in the model's text; nothing is printed, and no file is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(aotc.InputError, match=message) as error:
        aotc.torch.build(Calls(refused), (torch.ones(3, 3),), out=tmp_path / "x")
    assert error.value.hint
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*.mlir")) == []


@torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
def test_derivatives_where_gradients_are_off() -> None:
    """What torch.func turns on again is exported as a graph of its own."""
    message = rf"{_LINE}: error: torch.export loses what torch.func.grad, vjp or jvp takes the"
    with pytest.raises(aotc.InputError, match=message):
        aotc.torch.build(Calls(torch.func.jacrev(torch.tanh)), (torch.ones(3),))


def test_places_are_of_the_program() -> None:
    """Not lines of PyTorch's or ours, below which the program's own are."""
    library, own = Path(torch.__file__).parent, Path(aotc.__file__).parent
    files = ["/net.py", library / "nn/functional.py", library / "fx/passes/runtime_assert.py"]
    traces = {
        "/net.py:1: error: ": [*files, own / "frontends/torch/__init__.py"],
        f"{files[1]}:2: error: ": ["", *files[1:]],
        "": ["", "", files[2], "torch/fx/passes/runtime_assert.py"],
    }
    for place, trace in traces.items():
        lines = (f'File "{file}", line {i}, in f' for i, file in enumerate(trace, 1) if file)
        node = SimpleNamespace(meta={"stack_trace": "\n".join(lines)})
        assert place == place_of_node(node)


class _EmptyPool(torch.nn.Module):
    """torch-mlir's decomposition of the last operation divides by 0."""

    def forward(self, x: Any) -> Any:
        y = x * 2
        return torch.nn.functional.adaptive_max_pool2d(y, 0)


@pytest.mark.parametrize("from_file", [True, False])
def test_a_crash_names_the_operation(from_file: bool, tmp_path: Path) -> None:
    """And its line; the process that asked goes on."""
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith("adaptive_max_pool2d(y, 0)")
    )
    program = torch.export.export(_EmptyPool(), (torch.zeros(1, 2, 4, 4),))
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    with pytest.raises(aotc.InputError) as crash:
        if from_file:
            aotc.build(path, emit="mlir", out=tmp_path / "net.mlir", chips=CHIP)
        else:
            aotc.torch.build(program, (), name="net", emit="mlir", out=tmp_path / "net.mlir")
    assert str(crash.value) == (
        f"{__file__}:{line}:0: error: 'torch.aten.adaptive_max_pool2d' cannot be imported. The "
        "import ended by SIGFPE, in this step: torch-mlir's pass torch-decompose-complex-ops."
    )
