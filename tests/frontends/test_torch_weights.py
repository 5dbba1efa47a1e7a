"""Weights of PyTorch's programs: of all types, in files, and replaced."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.models import SMALL, inputs_of, made  # noqa: E402
from frontends.support import call  # noqa: E402
from frontends.torch_builds import CHIP, build, check  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402
from aotc.frontends.torch_mlir import passes  # noqa: E402


def test_weights(tmp_path: Path) -> None:
    """Of types that NumPy lacks, not contiguous, shared by two layers, of one number, in lists."""

    class Weights(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            numbers = torch.arange(12.0)
            self.brain = torch.nn.Parameter(numbers.bfloat16().reshape(3, 4))
            self.turned = torch.nn.Parameter(numbers.reshape(4, 3).T)
            self.tied = self.turned
            self.one = torch.nn.Parameter(torch.tensor([0.5]))
            self.register_buffer("mask", numbers.reshape(3, 4) > 4)
            self.register_buffer("rows", torch.tensor([2, 0, 1]))

        def forward(self, x: Any) -> Any:
            y = (x + self.brain.float()) * self.turned + self.tied * self.one
            return torch.cat([self.turned, torch.where(self.mask, y, x)[self.rows]])

    inputs = (torch.randn(3, 4),)
    module = Weights().eval()
    artifact = build(module, inputs, "weights", tmp_path)
    with torch.no_grad():
        reference = module(*inputs).numpy()
    (got,) = call(artifact, "weights", [inputs[0].numpy()], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-6)


def test_large_weights_pass_by_the_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks copy what they are given several times; what they give back has no weight either."""
    monkeypatch.setattr("aotc.frontends.torch.weights._LARGE", 256)

    class Large(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = torch.nn.Parameter(torch.rand(16, 16).T)
            self.brain = torch.nn.Parameter(torch.rand(16, 16).bfloat16())
            self.tied = self.matrix
            # Not as MLIR prints it.
            self.register_buffer("ä", torch.rand(16, 16))

        def forward(self, x: Any) -> Any:
            return (x @ self.matrix + self.brain.float()) @ self.tied * self.ä

    given: list[bytes] = []

    def recorded(*words: Any, **limits: Any) -> bytes:
        given.extend(words[1:])
        answer: bytes = call_task(*words, **limits)
        given.append(answer)
        return answer

    call_task = passes.FORK_SERVER.call
    monkeypatch.setattr(passes, "FORK_SERVER", SimpleNamespace(call=recorded))
    module, x = Large().eval(), torch.rand(16, 16)
    artifact = build(module, (x,), "large", tmp_path)
    with torch.no_grad():
        reference = module(x).numpy()
    (got,) = call(artifact, "large", [x.numpy()], [reference])
    np.testing.assert_allclose(got, reference, rtol=1e-5)
    sent = b"".join(given)
    assert module.matrix.detach().contiguous().numpy().tobytes() not in sent
    assert module.brain.detach().view(torch.int16).numpy().tobytes() not in sent
    assert module.ä.numpy().tobytes() in sent


def test_weights_in_a_file(tmp_path: Path) -> None:
    """`aotc build model.pt2 --weights FILE`: read in the file, and not in the library."""
    module, inputs = made(SMALL["mlp"]), inputs_of(SMALL["mlp"], 8)
    path, weights = tmp_path / "mlp.pt2", tmp_path / "lib" / "mlp.weights"
    torch.export.save(torch.export.export(module, inputs), path)
    built = aotc.build(path, emit="shared", out=f"{tmp_path}/", weights=weights, chips=CHIP)
    check(built, "mlp", module, inputs, torch.float32)
    transposed = module.first.weight.detach().numpy().T.tobytes()
    assert transposed in weights.read_bytes()
    assert transposed not in built.path.read_bytes()


def test_replacing_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names of state_dict; a norm of batches is not folded into numbers."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    layers = [torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3, bias=False)]
    module = torch.nn.Sequential(*layers).eval()
    inputs = (torch.rand(4, 16),)
    weights = {"weights": tmp_path / "lib" / "w.weights", "replaceable": "*"}
    artifact = build(module, inputs, "replaced", tmp_path, **weights)
    library = aotc.load(artifact)
    values = {name: tensor for name, tensor in module.state_dict().items() if tensor.dim() > 0}
    assert set(library.weights) == set(values)
    for name, tensor in values.items():
        tensor.copy_(torch.rand(tensor.shape))
        library.weights.set(name, tensor)
    with torch.no_grad():
        torch.testing.assert_close(library.replaced(*inputs), module(*inputs))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_16_bits_in_a_file(dtype: Any, tmp_path: Path) -> None:
    """Also where kernels find them in managed memory."""
    layer, file = torch.nn.Linear(512, 512).to(dtype).eval(), tmp_path / "lib" / "net.weights"
    x = torch.randn(4, 512).to(dtype)
    built = build(layer, (x,), "net", tmp_path, weights=file)
    words = layer.weight.detach().view(torch.int16).numpy()
    forms = [words.tobytes(), words.T.tobytes()]
    assert any(form in file.read_bytes() for form in forms)
    assert not any(form in built.path.read_bytes() for form in forms)
    if dtype == torch.float16:
        check(built, "net", layer, (x,), dtype)
