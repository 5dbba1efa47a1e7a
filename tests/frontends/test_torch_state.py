"""PyTorch's modules that change their buffers or inputs: state, against eager, step by step."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc  # noqa: E402
import aotc.torch  # noqa: E402

CHIP = "sm_90"


def _load(module: Any, inputs: Any, out: Path, name: str, **options: Any) -> aotc.Library:
    built = aotc.torch.build(
        module, inputs, name=name, emit="shared", out=f"{out}/", chips=CHIP, **options
    )
    library = aotc.load(built)
    library.set_device("cpu")
    return library


def _check_buffers(state: Any, module: Any) -> None:
    """Every field has what eager's buffer has, of its type; the same bits for all but floats."""
    buffers = dict(module.named_buffers())
    for name, field in state.fields.items():
        got, expected = state.read(name), buffers[name].numpy()
        assert got.dtype == expected.dtype
        assert field.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)


class Counts(torch.nn.Module):
    """Buffers of many types; one that is only read, and is none of the state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("small", torch.tensor([200, 3], dtype=torch.uint8), persistent=False)
        self.register_buffer("narrow", torch.full((3,), 0.5, dtype=torch.float16))
        self.register_buffer("wide", torch.tensor([1.0, float("inf"), -3.0]).double())
        self.register_buffer("flags", torch.tensor([True, False, True]))
        self.register_buffer("last", torch.full((3,), float("nan")))
        self.register_buffer("fixed", torch.arange(3.0))
        self.register_buffer("empty", torch.zeros(0, 3))

    def forward(self, x: Any) -> Any:
        old = self.last.clone()
        self.count += 1
        self.small.mul_(2)
        self.narrow += 1
        self.wide.add_(x.double())
        self.flags.logical_not_()
        self.last.copy_(x)
        self.empty.add_(1)
        return old + self.fixed, self.count * 2


def test_counts(tmp_path: Path) -> None:
    library = _load(Counts(), (torch.zeros(3),), tmp_path, "counts")
    module, one, two = Counts(), library.state(), library.state()
    assert list(one.fields) == [name for name, _ in module.named_buffers() if name != "fixed"]
    old, count = np.zeros(3, np.float32), np.zeros((), np.int64)
    _check_buffers(one, module)
    for step in range(4):
        x = torch.arange(3.0) + step
        library.counts(x.numpy(), old, count, state=one)
        expected = module(x)
        np.testing.assert_array_equal(old, expected[0].numpy())
        assert count == expected[1].item()
        _check_buffers(one, module)
    _check_buffers(two, Counts())
    one.save(tmp_path / "saved")
    two.load(tmp_path / "saved")
    _check_buffers(two, module)


def test_a_saved_program(tmp_path: Path) -> None:
    """`aotc build model.pt2`."""
    path = tmp_path / "counts.pt2"
    torch.export.save(torch.export.export(Counts(), (torch.zeros(3),)), path)
    library = aotc.load(aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP))
    library.set_device("cpu")
    module, state = Counts(), library.state()
    library.counts(np.ones(3, np.float32), np.zeros(3, np.float32), np.zeros((), int), state=state)
    module(torch.ones(3))
    _check_buffers(state, module)


class Normalized(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(2, 3, 3)
        self.norm = torch.nn.BatchNorm2d(3)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(self.convolution(x)))


def test_running_statistics(tmp_path: Path) -> None:
    """BatchNorm in training mode."""
    torch.manual_seed(0)
    module = Normalized().train()
    inputs = torch.randn(4, 2, 6, 6)
    # torch.export runs the module, which changes it.
    library = _load(module, (inputs,), tmp_path, "normalized")
    with torch.no_grad():
        state = library.state()
        assert set(state.fields) == {
            "norm.running_mean",
            "norm.running_var",
            "norm.num_batches_tracked",
        }
        _check_buffers(state, module)
        for _ in range(3):
            x = torch.randn(4, 2, 6, 6)
            y = np.zeros((4, 3, 4, 4), np.float32)
            library.normalized(x.numpy(), y, state=state)
            np.testing.assert_allclose(y, module(x).numpy(), atol=2e-5)
            _check_buffers(state, module)


class Decoder(torch.nn.Module):
    """One step of attention over what was seen, whose keys and values it keeps, in two ways."""

    def __init__(self, length: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = torch.nn.Linear(16, 48).requires_grad_(False)
        self.register_buffer("keys", torch.zeros(1, 2, length, 8))
        self.register_buffer("values", torch.zeros(1, 2, length, 8))
        self.register_buffer("length", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Any, at: Any) -> Any:
        query, key, value = self.project(x).view(1, 1, 3, 2, 8).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, at, key)
        self.values[:, :, at] = value
        self.length.copy_(at + 1)
        mask = (torch.arange(self.keys.shape[2]) <= at)[None]
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(query, self.keys, self.values, attn_mask=mask)


def test_a_cache_of_keys(tmp_path: Path) -> None:
    """Steps of two sequences, one of which is rolled back, against eager."""
    library = _load(Decoder(24), (torch.zeros(1, 1, 16), torch.tensor([0])), tmp_path, "decoder")
    sequences = [(Decoder(24), library.state()), (Decoder(24), library.state())]
    y = np.zeros((1, 2, 1, 8), np.float32)
    for step in (0, 1, 2, 23, 2, 3):
        for module, state in sequences if step % 2 == 0 else sequences[:1]:
            if step == 2:
                module.keys[:, :, 2:] = 0
                module.values[:, :, 2:] = 0
                state.truncate("keys", 2, 2)
                state.truncate("values", 2, 2)
            x, at = torch.randn(1, 1, 16), torch.tensor([step])
            library.decoder(x.numpy(), at.numpy(), y, state=state)
            np.testing.assert_allclose(y, module(x, at).numpy(), atol=1e-6)
            _check_buffers(state, module)
    with pytest.raises(aotc.LibraryError, match="an index is out of bounds"):
        library.decoder(x.numpy(), np.array([24]), y, state=library.state())


class Held(torch.nn.Module):
    """A buffer that is reached by another object, too: that is how transformers has its caches."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(3))
        self.holder = SimpleNamespace(sums=self.sums)

    def forward(self, x: Any) -> Any:
        self.holder.sums.add_(x)
        return self.holder.sums * 2


def test_a_buffer_by_two_names(tmp_path: Path) -> None:
    program = torch.export.export(Held(), (torch.ones(3),), strict=False)
    library = _load(program, (), tmp_path, "held")
    state, y = library.state(), np.zeros(3, np.float32)
    for step in range(1, 3):
        library.held(np.ones(3, np.float32), y, state=state)
        np.testing.assert_array_equal(y, np.full(3, 2 * step))
        np.testing.assert_array_equal(state.read("sums"), np.full(3, step))


class Written(torch.nn.Module):
    """The caches alone: what a step of decoding does to memory."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("copied", torch.zeros(1, 4, 4096, 64))
        self.register_buffer("assigned", torch.zeros(1, 4, 4096, 64))
        self.register_buffer("first", torch.zeros(1, 4, 4096, 64))

    def forward(self, key: Any, at: Any) -> Any:
        self.copied.index_copy_(2, at, key)
        self.assigned[:, :, at] = key
        self.first[:, :, 5:6] = key
        return self.copied[:, :, 0] + self.assigned[:, :, 1] + self.first[:, :, 2]


def test_caches_are_written_in_place(tmp_path: Path) -> None:
    """No allocation is as large as a cache, and nothing copies one."""
    inputs = (torch.zeros(1, 4, 1, 64), torch.tensor([0]))
    place = tmp_path / "written.mlir"
    aotc.torch.build(Written(), inputs, name="written", emit="mlir", out=place, chips=CHIP)
    text = place.read_text()
    assert text.count('aotc.state = "') == 3
    assert text.count("gpu.launch_func") == 3
    copies = re.findall(r"memref\.copy .*|gpu\.memcpy .*", text)
    made = re.findall(r"memref\.alloc\(.*|gpu\.alloc .*", text)
    assert not any("4096" in line for line in [*copies, *made])
    # Allocations without names are parts of one: of the updates' places, 256 of them, and so on.
    sizes = [int(size) for line in made for size in re.findall(r"memref<(\d+)xi8>", line)]
    assert sum(sizes) < 4096 * 64
    # What goes through all of a cache is no kernel's loop.
    assert not re.search(r"constant (4096|262144|1048576) : index", text)


class Changed(torch.nn.Module):
    """Inputs that are written: one of any size, one whose old value is returned."""

    def forward(self, x: Any, y: Any, z: Any) -> Any:
        old = y * 1
        x.mul_(2)
        y[1:].copy_(z[1:])
        return old, x.sum()


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_changed_inputs(is_dynamic: bool, tmp_path: Path) -> None:
    inputs = (torch.ones(4, 3), torch.arange(3.0), torch.zeros(3))
    shapes = ({0: torch.export.Dim("rows")}, {}, {}) if is_dynamic else None
    library = _load(Changed(), inputs, tmp_path, "changed", dynamic_shapes=shapes)
    assert library.manifest.state == ()
    x, y, z = torch.randn(4, 3), torch.randn(3), torch.randn(3)
    arrays = [tensor.numpy().copy() for tensor in (x, y, z)]
    results = [np.zeros(3, np.float32), np.zeros((), np.float32)]
    library.changed(*arrays, *results)
    expected = Changed()(x, y, z)
    for got, tensor in zip([*arrays, *results], [x, y, z, *expected], strict=True):
        np.testing.assert_allclose(got, tensor.numpy(), rtol=1e-6)


def test_shapes_of_results_beside_a_state(tmp_path: Path) -> None:
    """The state has known sizes: it may be given, or left out."""

    class Cached(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            self.total += x.sum(0)
            return torch.cat([self.total[None], x]).flatten(), self.total * 2

    shapes = {"x": {0: torch.export.Dim("rows")}}
    library = _load(Cached(), (torch.ones(3, 4),), tmp_path, "net", dynamic_shapes=shapes)
    state = library.state()
    for rows in (1, 3, 5):
        given = np.ones((rows, 4), np.float32)
        assert library.net.result_shapes((rows, 4)) == ((4 * rows + 4,), (4,))
        assert library.net.result_shapes(given, state=state) == ((4 * rows + 4,), (4,))
        assert tuple(map(np.shape, library.net(given, state=state))) == ((4 * rows + 4,), (4,))
    assert state.read("total").tolist() == [9, 9, 9, 9]
