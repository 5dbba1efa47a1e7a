"""PyTorch's programs against PyTorch in f64, on the CPU device."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.models import SMALL, WIDE, inputs_of, made  # noqa: E402
from frontends.support import call  # noqa: E402
from frontends.torch_builds import CHIP, build, check  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402

DTYPES = {"f32": torch.float32, "f16": torch.float16}


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("name", SMALL)
def test_saved_programs(name: str, batch: int, tmp_path: Path) -> None:
    """`aotc build model.pt2`."""
    module, inputs = made(SMALL[name]), inputs_of(SMALL[name], batch)
    path = tmp_path / f"{name}.pt2"
    torch.export.save(torch.export.export(module, inputs), path)
    artifact = aotc.build(path, emit="shared", out=f"{tmp_path}/", chips=CHIP)
    check(artifact, name, module, inputs, torch.float32)


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("name", SMALL)
def test_half(name: str, batch: int, tmp_path: Path) -> None:
    dtype = torch.float16
    module, inputs = made(SMALL[name], dtype), inputs_of(SMALL[name], batch, dtype)
    check(build(module, inputs, name, tmp_path), name, module, inputs, dtype)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "f32") for name in SMALL), ("lenet", "f16"), ("block", "f16")]
)
def test_a_batch_of_any_size(name: str, dtype: str, tmp_path: Path) -> None:
    type_ = DTYPES[dtype]
    model = SMALL[name]
    module, inputs = made(model, type_), inputs_of(model, 3, type_)
    shapes = tuple({0: torch.export.Dim("batch")} for _ in inputs)
    artifact = build(module, inputs, name, tmp_path, dynamic_shapes=shapes)
    for batch in (1, 2, 8):
        check(artifact, name, module, inputs_of(model, batch, type_), type_)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "f32") for name in WIDE), ("mlp", "f16"), ("resnet18", "f16")]
)
def test_models_of_full_width(name: str, dtype: str, tmp_path: Path) -> None:
    """All layers and weights of ResNet-18 and of GPT-2's blocks, but images of 32x32 rather than
    224x224, and 16 or 4 tokens rather than 1024: the CPU device would take minutes. On a GPU the
    model bundle (bundle.py) has them whole."""
    type_ = DTYPES[dtype]
    module, inputs = made(WIDE[name], type_), inputs_of(WIDE[name], 1, type_)
    check(build(module, inputs, name, tmp_path), name, module, inputs, type_)


def test_names(tmp_path: Path) -> None:
    """The entry is called like the class, and its arguments like those of `forward`."""

    class TwoInputs(torch.nn.Module):
        def forward(self, pixels: Any, scale: Any) -> Any:
            return pixels * scale

    inputs = (torch.ones(3, 4), torch.tensor(2.0))
    built = aotc.torch.build(TwoInputs(), inputs, emit="manifest", out=tmp_path / "x", chips=CHIP)
    assert built.manifest is not None
    (entry,) = built.manifest.entries
    assert entry.name == "two_inputs"
    assert [value.name for value in entry.arguments] == ["pixels", "scale", "result0"]


def test_threads(tmp_path: Path) -> None:
    """torch.export is not for several threads at once, and the filters of warnings stay."""
    module, inputs = made(SMALL["product"]), inputs_of(SMALL["product"], 2)
    program = torch.export.export(module, inputs)
    torch.export.save(program, tmp_path / "x.pt2")
    filters = list(warnings.filters)

    def work(number: int) -> Path:
        options = {"emit": "mlir", "out": tmp_path / f"{number}.mlir", "chips": CHIP}
        if number % 2:
            return aotc.build(tmp_path / "x.pt2", **options).path
        return aotc.torch.build(program, (), name="x", **options).path

    with ThreadPoolExecutor(4) as pool:
        assert len({path.read_bytes() for path in pool.map(work, range(6))}) == 1
    assert list(warnings.filters) == filters


def test_inputs_that_are_no_tensors(tmp_path: Path) -> None:
    """They are what they were at the export: no argument of the entry."""

    class Mixed(torch.nn.Module):
        def forward(self, x: Any, n: int, y: Any = None, how: str = "", z: Any = None) -> Any:
            return x * n + z

    x, z = torch.ones(3), torch.arange(3.0)
    built = build(Mixed(), (x, 4), "mixed", tmp_path, kwargs={"z": z})
    (got,) = call(built, "mixed", [x.numpy(), z.numpy()], [np.zeros(3, np.float32)])
    assert got.tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("name", "launches", "allocations"),
    [
        *(("product", 1, 0), ("mlp", 3, 1), ("lenet", 9, 1), ("resnet18", 35, 1)),
        *(("block", 13, 1), ("embedded", 34, 1)),
    ],
)
def test_what_a_call_does(name: str, launches: int, allocations: int, tmp_path: Path) -> None:
    """On a GPU: one allocation, no copy, no wait, and no kernel that another could do the work of:
    where kernels are to be chosen from, each counts. Attention's are two. What kernels that divide
    K store is in the one allocation, too."""
    module, inputs = made(SMALL[name]), inputs_of(SMALL[name], 8)
    files = {"emit": "mlir", "out": tmp_path / "x.mlir", "chips": CHIP}
    built = aotc.torch.build(module, inputs, name=name, cpu_kernels=False, **files)
    text = built.path.read_text()
    assert text.count("gpu.launch_func") == launches
    assert text.count("= gpu.alloc") == allocations
    assert "memref.alloc" not in text
    assert "gpu.memcpy" not in text
    assert "aotc_wait" not in text
