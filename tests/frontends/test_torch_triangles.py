"""Triangular systems, Cholesky's factors and LU factors, on the CPU device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc.torch  # noqa: E402
from aotc.errors import AotcError  # noqa: E402


class Triangles(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Lower, upper, from the right and with ones on the diagonal."""

    def forward(self, a: Any, b: Any) -> Any:
        solve = torch.linalg.solve_triangular
        factor = torch.linalg.cholesky(a)
        half = solve(factor, b, upper=False)
        whole = solve(factor.mT, half, upper=True)
        right = solve(a[0], b.mT, upper=True, left=False, unitriangular=True)
        again = torch.cholesky_solve(b, factor.mT, upper=True)
        return factor, torch.linalg.cholesky(a[0].double(), upper=True), whole, right, again


def test_triangles(tmp_path: Path) -> None:
    torch.manual_seed(0)
    root = torch.randn(2, 9, 9)
    a, b = root @ root.mT / 9 + torch.eye(9), torch.randn(2, 9, 3)
    module = Triangles()
    options: dict[str, Any] = {"chips": ["sm_80"], "cache": False, "optimization": 1}
    rows = torch.export.Dim.DYNAMIC
    built = aotc.torch.build(
        module,
        (a, b),
        name="triangles",
        out=f"{tmp_path}/",
        dynamic_shapes=({0: rows}, {0: rows}),
        **options,
    )
    for count in (2, 1):
        given = a[:count], b[:count]
        for result, one in zip(built(*given), module(*given), strict=True):
            torch.testing.assert_close(result, one, rtol=1e-4, atol=1e-5)
    with pytest.raises(AotcError, match=r"linalg\.cholesky: a matrix is not positive-definite"):
        built(a - 9 * torch.eye(9), b)


class Empty(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any, b: Any) -> Any:
        none = torch.linalg.cholesky(a[:, :0, :0])
        inverse, determinant = torch.linalg.inv(a[:, :0, :0]), torch.linalg.det(a[:, :0, :0])
        return none, torch.linalg.solve_triangular(a, b[..., :0], upper=False), inverse, determinant


def test_there_may_be_no_rows_or_columns(tmp_path: Path) -> None:
    given = torch.eye(3).repeat(2, 1, 1), torch.ones(2, 3, 1)
    built = aotc.torch.build(
        Empty(), given, name="empty", out=f"{tmp_path}/", chips=["sm_80"], cache=False
    )
    *results, determinants = built(*given)
    assert [result.shape for result in results] == [(2, 0, 0), (2, 3, 0), (2, 0, 0)]
    assert determinants.tolist() == [1, 1]


class Systems(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any, b: Any) -> Any:
        solve = torch.linalg.solve
        matrices = solve(a, b), solve(a[0], b), solve(a, b.mT, left=False)
        vectors = solve(a, b[..., 0]), solve(a[0], b[0, :, 0])
        return *matrices, *vectors, a.inverse(), torch.linalg.inv(a[0].double())


class Determinants(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any) -> Any:
        return torch.linalg.det(a), *torch.linalg.slogdet(a), a.logdet(), torch.det(a[1])


def test_rows_are_exchanged(tmp_path: Path) -> None:
    """Where a pivot is 0, among others. A singular matrix has a determinant, and no inverse.
    The determinant of a matrix with a NaN below or above a 0 is NaN."""
    torch.manual_seed(0)
    options: dict[str, Any] = {"chips": ["sm_80"], "cache": False, "optimization": 1}
    a, b = torch.randn(2, 4, 4), torch.randn(2, 4, 3)
    a[0, 0, 0] = 0
    rows = torch.export.Dim.DYNAMIC
    shapes = ({0: rows}, {0: rows})
    solved = aotc.torch.build(
        Systems(), (a, b), name="systems", out=f"{tmp_path}/a/", dynamic_shapes=shapes, **options
    )
    for count in (2, 1):
        given = a[:count], b[:count]
        for result, one in zip(solved(*given), Systems()(*given), strict=True):
            torch.testing.assert_close(result, one, rtol=1e-4, atol=1e-4)
    with pytest.raises(AotcError, match="a matrix that is to be inverted is singular"):
        solved(torch.ones(2, 4, 4), b)
    module = Determinants()
    built = aotc.torch.build(module, (a,), name="determinants", out=f"{tmp_path}/b/", **options)
    unknown = torch.zeros(2, 4, 4)
    unknown[0, 0, 0] = unknown[1, 3, 0] = torch.nan
    for matrices in (a, a.flip(1), torch.ones(2, 4, 4), unknown):
        for result, one in zip(built(matrices), module(matrices), strict=True):
            torch.testing.assert_close(result, one, rtol=1e-4, atol=1e-5, equal_nan=True)


class Informed(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any) -> Any:
        symmetric = a @ a.mT
        of_third = torch.tensor([0.0, 0, 1, 0]).diag()
        factors = torch.linalg.cholesky_ex(
            torch.stack([symmetric[1], symmetric[1] - 99 * of_third])
        )
        inverses = torch.linalg.inv_ex(torch.stack([a[0], a[0] - a[0] @ of_third]))
        return factors.L[0], factors.info, inverses.inverse[0], inverses.info, *torch.linalg.lu(a)


def test_matrices_without_factors_or_inverses_are_counted(tmp_path: Path) -> None:
    """Where PyTorch returns the number of the step that fails instead of raising an error."""
    torch.manual_seed(0)
    a = torch.randn(2, 4, 4)
    a[0, 0, 0] = 0
    options: dict[str, Any] = {"chips": ["sm_80"], "cache": False, "optimization": 1}
    built = aotc.torch.build(Informed(), (a,), name="informed", out=f"{tmp_path}/", **options)
    results, eager = built(a), Informed()(a)
    assert [eager[1].tolist(), eager[3].tolist()] == [[0, 3], [0, 3]]
    for result, one in zip(results, eager, strict=True):
        torch.testing.assert_close(result, one, rtol=1e-4, atol=1e-5)
