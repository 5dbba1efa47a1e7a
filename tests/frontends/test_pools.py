"""Pools of PyTorch: how windows are given, and images without a batch; pads that take away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402

functional = torch.nn.functional


class Pools(torch.nn.Module):
    """`x` is two images of three channels, or a volume of two."""

    def forward(self, x: Any) -> Any:
        return (
            functional.max_pool2d(x, 2),
            functional.max_pool2d(x, (2, 3), padding=(0, 1)),
            functional.max_pool2d(x, 5, 1, 2),
            functional.max_pool2d(x[0], 2),
            *functional.max_pool2d(x[0], 2, return_indices=True),
            functional.max_pool1d(x[0, 0], 2),
            functional.max_pool3d(x, 2),
            *functional.max_pool3d(x, 2, return_indices=True),
            functional.avg_pool1d(x[0, 0], 2),
            functional.avg_pool2d(x[0], 2, 1, 1, count_include_pad=False),
            functional.avg_pool3d(x, 2),
            functional.pad(x, (-1, -2, -1, 0)),
            functional.pad(x, (0, 0, 3, -2, -1, 0), value=1.5),
            functional.pad(x, (-1, 2, 1, 1), mode="reflect"),
            functional.pad(x, (-1, -2, 1, 0), mode="replicate"),
            functional.fold(functional.unfold(x, 3, padding=1), (6, 7), 3, padding=1),
        )


def test_pools(tmp_path: Path) -> None:
    x = torch.from_numpy(np.random.default_rng(3).standard_normal((2, 3, 6, 7), np.float32))
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Pools(), (x,), name="pools", **files)
    expected = [result.numpy() for result in Pools()(x)]
    for ours, theirs in zip(call(artifact, "pools", [x.numpy()], expected), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


class PaddedRows(torch.nn.Module):
    """Rows of images with several vectors of columns, the outer ones of which reach the padding."""

    def forward(self, x: Any) -> Any:
        return (
            functional.max_pool2d(x, 3, 1, 1),
            functional.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            functional.max_pool2d(x, (3, 4), (1, 2), (1, 2), (1, 3)),
            functional.avg_pool2d(x, (2, 5), 1, (1, 2), count_include_pad=False),
            functional.avg_pool2d(functional.pad(x, (3, -1, 0, 2), value=1.5), 3, 2),
            functional.pad(x.relu(), (17, 2, 1, 0), value=-1.0),
        )


@pytest.mark.parametrize("width", [33, 70])
def test_padded_rows(width: int, tmp_path: Path) -> None:
    x = torch.from_numpy(np.random.default_rng(5).standard_normal((2, 3, 9, width), np.float32))
    x[0, 1, 4, ::7] = float("nan")
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(PaddedRows(), (x,), name="pools", **files)
    expected = [result.numpy() for result in PaddedRows()(x)]
    for ours, theirs in zip(call(artifact, "pools", [x.numpy()], expected), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


class Folds(torch.nn.Module):
    """Windows that overlap, that do not, and that leave places between them."""

    def forward(self, x: Any) -> Any:
        fold = functional.fold
        return (
            fold(x[:, :18, :12], (6, 7), 3, padding=1, stride=2),
            fold(x[:, :12, :6], (6, 7), (3, 2), padding=(0, 1), stride=(2, 3)),
            fold(x[0, :18, :6], (6, 7), (2, 3), stride=(3, 2)),
            fold(x[:, :12, :4], (9, 7), 2, stride=5, padding=(1, 0)),
            fold(x[:, :18, :9].half(), (5, 5), 3),
            fold(x[:, :8, :9], (5, 5), 2, dilation=2),
        )


def test_windows_are_added_up(tmp_path: Path) -> None:
    x = torch.from_numpy(np.random.default_rng(4).standard_normal((2, 18, 12), np.float32))
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(Folds(), (x,), name="folds", **files)
    expected = [result.numpy() for result in Folds()(x)]
    for ours, theirs in zip(call(artifact, "folds", [x.numpy()], expected), expected, strict=True):
        bound = 4e-3 if theirs.dtype == np.float16 else 1e-6
        np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound)


class PaddedTwice(torch.nn.Module):
    """By 0, and by the pool. 200 is no byte with a sign."""

    def forward(self, x: Any) -> Any:
        padded = functional.pad((x.float() - 200) * 0.25, (1, 1, 1, 1))
        return functional.max_pool2d(padded, 3, 2, 1)


def test_a_zero_point_that_no_byte_has(tmp_path: Path) -> None:
    x = torch.arange(-128, 112, dtype=torch.int8).reshape(1, 3, 8, 10)
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    artifact = aotc.torch.build(PaddedTwice(), (x,), name="pool", **files)
    expected = PaddedTwice()(x).numpy()
    (found,) = call(artifact, "pool", [x.numpy()], [expected])
    np.testing.assert_array_equal(found, expected)


def test_a_convolution_that_is_added_to_a_pool(tmp_path: Path) -> None:
    """Its epilogue divides by the size of a window, which depends on the column."""

    class Shortcut(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = torch.nn.AvgPool2d(3, 2, 1, count_include_pad=False)
            self.project = torch.nn.Conv2d(256, 64, 1)

        def forward(self, x: Any, y: Any) -> Any:
            return self.pool(x) + self.project(y)

    torch.manual_seed(0)
    module = Shortcut().eval()
    x, y = torch.randn(2, 64, 32, 32), torch.randn(2, 256, 16, 16)
    batch = torch.export.Dim("batch")
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    shapes = ({0: batch}, {0: batch})
    built = aotc.torch.build(module, (x, y), dynamic_shapes=shapes, name="added", **files)
    with torch.no_grad():
        torch.testing.assert_close(built(x[:1], y[:1]), module(x[:1], y[:1]), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(built(x, y), module(x, y), rtol=1e-4, atol=1e-5)


def test_pads_to_multiples(tmp_path: Path) -> None:
    """By amounts that depend on the size of an image."""

    class Padded(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            behind = (0, -x.shape[3] % 4, 0, -x.shape[2] % 4)
            return [functional.pad(x, behind, mode=one) for one in ("reflect", "replicate")]

    some = ({2: torch.export.Dim("h", min=5), 3: torch.export.Dim("w", min=5)},)
    files: dict[str, Any] = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    given = (torch.randn(1, 2, 9, 11),)
    artifact = aotc.torch.build(Padded(), given, name="padded", dynamic_shapes=some, **files)
    for height, width in ((9, 11), (8, 5), (6, 16)):
        x = torch.randn(1, 2, height, width)
        expected = [one.numpy() for one in Padded()(x)]
        found = call(artifact, "padded", [x.numpy()], expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
