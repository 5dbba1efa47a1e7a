"""Fourier transforms of any length, and complex numbers: as PyTorch gives them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.support import call  # noqa: E402

import aotc.torch  # noqa: E402
from aotc.errors import InputError  # noqa: E402

fft, nan, infinity = torch.fft, float("nan"), float("inf")
real, whole = torch.view_as_real, torch.view_as_complex
# One matmul, two and three, a prime of one matmul, a convolution, and products of these; odd ones.
LENGTHS = (1, 2, 15, 32, 33, 64, 101, 202, 131, 1000, 1056)
# Kernels of two to four passes, the last of which may be shorter; two kernels from 8192 on.
POWERS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def of_length(n: int) -> Callable[[Any], Any]:
    def transformed(x: Any) -> Any:
        x = x[:, :n]
        spectrum = fft.rfft(x)
        turned = fft.fft(torch.complex(x, x.flip(1)))
        # Parts that have to be real, and are not, are not looked at.
        back = fft.irfft(spectrum * (1 + 0.5j), n=n)
        return real(spectrum), real(turned), real(fft.ifft(turned * turned)), back

    return transformed


# Of 3 x 8 x 12 numbers.
OTHERS: dict[str, Callable[[Any], Any]] = {
    "first dimension": lambda x: real(fft.fft(x, dim=0)),
    "of three dimensions": lambda x: real(fft.fftn(x, norm="ortho")),
    "of two": lambda x: real(fft.rfft2(x)),
    "of two, back": lambda x: fft.irfft2(fft.rfft2(x, dim=(2, 0)), dim=(2, 0), norm="forward"),
    "cut off": lambda x: real(fft.fft(x, n=5, dim=1)),
    "with more": lambda x: real(fft.rfft(x, n=20)),
    "hermitian": lambda x: fft.hfft(torch.complex(x, -x), norm="ortho"),
    "shifted": lambda x: fft.fftshift(x, dim=(1, 2)) + fft.ifftshift(x),
    "frequencies": lambda x: fft.fftfreq(12, 0.5) * x + fft.rfftfreq(22),
    "short windows": lambda x: torch.stft(
        x.flatten(1), 16, 4, window=torch.hann_window(16), return_complex=True
    ).abs(),
    "windows of complex numbers": lambda x: real(
        torch.stft(
            torch.complex(x, -x).flatten(1), 16, window=torch.hann_window(16), return_complex=True
        )
    ),
    "complex padding": lambda x: real(
        torch.nn.functional.pad(fft.fft(x), (1, 2), value=0.5).unfold(0, 2, 1)
    ),
    "windows, back": lambda x: torch.istft(
        torch.stft(x.flatten(1), 16, 4, window=torch.hamming_window(16), return_complex=True),
        16,
        4,
        window=torch.hamming_window(16),
        length=97,
    ),
    "narrow windows, back": lambda x: torch.istft(
        torch.polar(x, x), 14, 3, 10, torch.kaiser_window(10, False, 3.0), normalized=True
    ),
    "angle": lambda x: fft.rfft(x[:, 1:, 1:]).angle()[..., 1:6],
    "product": lambda x: real(fft.fft(x) * (2 - 3j) / fft.fft(x + 1)),
    "quotient": lambda x: real((1j / fft.fft(x)).conj() - 2),
    "sum with a number": lambda x: real((x + 1j) * x - (2j - x)),
    "power": lambda x: real(fft.fft(x) ** 3 / 100),
    "exponential": lambda x: real((fft.fft(x) / 20).exp()),
    "logarithm": lambda x: fft.rfft(x[:, 1:, 1:])[..., 1:6].log().real,
    "matmul": lambda x: real(fft.fft(x) @ fft.fft(x).mT),
    "mixed matmul": lambda x: real(
        torch.einsum("abc,adc->bd", fft.fft(x), torch.complex(x, 0 * x))
    ),
    "means": lambda x: real(fft.fft(x).mean((0, -1)) + fft.fft(x).sum()),
    "moved": lambda x: real(
        torch.cat([fft.fft(x).mT.flip(-1)[:, 1:3], fft.fft(x)[..., :8].roll(2, 1)], -2)
    ),
    "chosen": lambda x: real(torch.where(x > 0, fft.fft(x), 0.5j)),
    "doubles": lambda x: real(fft.fft(x.double())),
    "one complex number": lambda x: (
        lambda z: real(
            torch.stack(
                [
                    *(z.sum(0), z.sum((0,), keepdim=True), z.mean(-1), z.cumsum(0)),
                    *(z.flip(0), z.squeeze(0)),
                ]
            )
        )
    )(torch.complex(x, -2 * x).flatten()[1]),
    "sums of another type": lambda x: torch.stack(
        [
            real(one).sum()
            for one in (
                torch.complex(x, -x).sum(0, dtype=torch.complex128),
                torch.complex(x, -x).cumsum(0, dtype=torch.complex128),
                x[0, 0, :2].sum(0, dtype=torch.complex128),
            )
        ]
    ),
    "to the type that it has": lambda x: real(fft.fft(x).to(torch.complex64)),
    "of integers": lambda x: real(fft.rfft((x * 9).int())),
    "rotated": lambda x: real(
        whole(x.unflatten(-1, (6, 2))) * torch.polar(torch.ones_like(x[0, 0, :6]), x[0, 0, :6])
    ).flatten(-2),
}


class Spectral(torch.nn.Module):
    """A layer of a Fourier neural operator: weights for the lowest frequencies."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(2, 3, 4, 4, dtype=torch.cfloat))

    def forward(self, x: Any) -> Any:
        spectrum = fft.rfft2(x)
        made = torch.zeros(x.shape[0], 3, x.shape[2], x.shape[3] // 2 + 1, dtype=torch.cfloat)
        low = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :4, :4], self.weight)
        made[:, :, :4, :4] = low
        made[:, :, -4:, :4] = low.conj()
        return fft.irfft2(made, s=x.shape[-2:])


class Functions(torch.nn.Module):
    def __init__(self, *functions: Callable[..., Any]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Any) -> Any:
        results: list[Any] = []
        for function in self.functions:
            result = function(x)
            results += result if isinstance(result, tuple) else [result]
        return tuple(results)


def build(module: Any, x: Any, folder: Path, **options: Any) -> Any:
    files: dict[str, Any] = {"emit": "shared", "out": f"{folder}/", "chips": "sm_80"}
    return aotc.torch.build(module, (x,), name="spectrum", optimization=1, **files, **options)


def check(artifact: Any, module: Any, x: Any, names: list[str] | None = None) -> None:
    """Against PyTorch in f64."""
    eager = [one.contiguous().numpy() for one in module(x)]
    exact = [one.numpy() for one in module.double()(x.double())]
    for number, (ours, theirs) in enumerate(
        zip(call(artifact, "spectrum", [x.numpy()], eager), exact, strict=True)
    ):
        size = max(np.abs(theirs).max(initial=0), 1)
        np.testing.assert_allclose(
            ours / size, theirs / size, atol=3e-6, err_msg=names[number] if names else str(number)
        )


def test_lengths(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, max(LENGTHS))
    module = Functions(*map(of_length, LENGTHS))
    check(build(module, x, tmp_path), module, x)


def test_powers_of_two(tmp_path: Path) -> None:
    torch.manual_seed(4)
    x = torch.randn(3, max(POWERS))
    module = Functions(*map(of_length, POWERS))
    check(build(module, x, tmp_path), module, x)


@pytest.mark.parametrize("length", [64, 512, 1024, 4096])
def test_rows_side_by_side(length: int, tmp_path: Path) -> None:
    """Transforms along a dimension that is not the last: of more rows than a block has, and some of
    the last one."""
    torch.manual_seed(5)
    x = torch.randn(2, length, 19)
    module = Functions(
        lambda x: real(fft.fft(x, dim=1)),
        lambda x: fft.irfft2(fft.rfft2(x, dim=(2, 1)), dim=(2, 1)),
    )
    artifact = build(module, x, tmp_path, dynamic_shapes=({0: torch.export.Dim("batch")},))
    for batch in (2, 1, 3):
        check(artifact, module, torch.randn(batch, length, 19))


def test_powers_of_two_in_f64(tmp_path: Path) -> None:
    torch.manual_seed(6)
    x = torch.randn(3, 4096, dtype=torch.float64)
    module = Functions(*map(of_length, (64, 2048, 4096)))
    results = module(x)
    artifact = build(module, x, tmp_path)
    found = call(artifact, "spectrum", [x.numpy()], [one.numpy() for one in results])
    for one, expected in zip(found, results, strict=True):
        size = expected.abs().max().item()
        np.testing.assert_allclose(one / size, expected.numpy() / size, atol=1e-14)


def test_transforms(tmp_path: Path) -> None:
    torch.manual_seed(1)
    x, module = torch.randn(3, 8, 12), Functions(*OTHERS.values())
    check(build(module, x, tmp_path), module, x, list(OTHERS))


def test_any_number_of_rows(tmp_path: Path) -> None:
    torch.manual_seed(2)
    module = Functions(
        lambda x: real(fft.fft(x)),
        lambda x: fft.irfft2(fft.rfft2(x) * 1j),
        lambda x: fft.rfft(x).abs(),
    )
    x = torch.randn(3, 6, 40)
    artifact = build(module, x, tmp_path, dynamic_shapes=({0: torch.export.Dim("rows")},))
    for rows in (3, 1, 5):
        check(artifact, module, torch.randn(rows, 6, 40))


def test_a_spectral_layer(tmp_path: Path) -> None:
    torch.manual_seed(3)
    x, module = torch.randn(2, 2, 16, 12), Spectral()
    artifact = build(module, x, tmp_path)
    eager = module(x).detach().numpy()
    (found,) = call(artifact, "spectrum", [x.numpy()], [eager])
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "x", "said"),
    [
        (lambda x: fft.fft(x), torch.randn(4), "the result 'view_as_complex.*' is complex"),
        (lambda x: real(x), torch.randn(4, dtype=torch.cfloat), "The input 'x' is complex"),
        (lambda x: real(fft.fft(x).tanh()), torch.randn(4), "aten.tanh.default of complex numbers"),
    ],
)
def test_other_complex_numbers_are_refused(
    function: Callable[[Any], Any], x: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        build(Functions(function), x, tmp_path)


def test_a_transform_of_any_length_is_refused(tmp_path: Path) -> None:
    x = torch.randn(3, 6)
    with pytest.raises(InputError, match=r"test_fourier.py:\d+: error: a Fourier transform of any"):
        build(
            Functions(lambda x: fft.rfft(x).abs()),
            x,
            tmp_path,
            dynamic_shapes=({1: torch.export.Dim("length")},),
        )


class _Frames(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        window = torch.hann_window(24)
        half = torch.stft(x, 32, 8, 24, window, normalized=True, return_complex=True)
        short = torch.hamming_window(16)
        whole = torch.stft(
            x, 16, 4, window=short, onesided=False, center=False, return_complex=True
        )
        return half.abs(), torch.view_as_real(whole)


def test_frames_of_any_signals(tmp_path: Path) -> None:
    """Of any number and length: PyTorch's own decomposition is for those of the export."""
    sizes = ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},)
    signals = torch.randn(2, 200)
    build = aotc.torch.build
    built = build(_Frames(), (signals,), dynamic_shapes=sizes, out=f"{tmp_path}/", chips=[])
    for shape in ((2, 200), (1, 33), (3, 501)):
        x = torch.randn(shape)
        torch.testing.assert_close(built(x), _Frames()(x), rtol=1e-5, atol=1e-5)
