"""Which matmuls of the same rows are expected to be faster as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotc.kernels.matmul.horizontal_fusion import HorizontalFusion, is_faster
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.request import BuildRequest, Chip

HOPPER = BuildRequest(Path("input.mlir"), chips=(Chip("sm_90a"),), ptx=None)


def _problem(m: int, n: int, k: int, element: str = "f16") -> Problem:
    a, b, c = (
        Matrix(f"memref<{rows}x{columns}x{element}>", element, (rows, columns), columns, 16)
        for rows, columns in ((m, k), (k, n), (m, n))
    )
    return Problem(a, b, c, "f32")


def _fusion(
    m: int, k: int, columns: list[int], epilogues: list[int], element: str = "f16"
) -> HorizontalFusion:
    whole, *parts = (_problem(m, n, k, element) for n in (sum(columns), *columns))
    return HorizontalFusion(
        whole, tuple(parts), tuple(_problem(m, n, k, element) for n in epilogues)
    )


@pytest.mark.parametrize(
    ("m", "k", "columns", "epilogues", "expected"),
    [
        (1, 4096, [4096, 1024, 1024], [], True),
        (128, 768, [768, 768, 768], [], True),
        (1, 4096, [14336, 14336], [14336], True),
        (2048, 4096, [14336, 14336], [14336], False),
    ],
)
def test_where_one_is_faster(
    m: int, k: int, columns: list[int], epilogues: list[int], expected: bool
) -> None:
    """Not where a large result is written, and read by a kernel in place of an epilogue."""
    assert is_faster(_fusion(m, k, columns, epilogues), HOPPER) == expected


@pytest.mark.parametrize(("m", "k", "expected"), [(128, 768, True), (1024, 768, False)])
def test_multiply_adds_must_gain_more_than_the_model_is_sure_of(
    m: int, k: int, expected: bool
) -> None:
    """Three products of 1024 rows fill a GPU as well as one, and took less time on an H200."""
    assert is_faster(_fusion(m, k, [k, k, k], [], "f32"), HOPPER) == expected


def test_the_cpu_has_each_matmul_alone() -> None:
    request = BuildRequest(Path("input.mlir"), chips=(), default_chips=(), ptx=None)
    assert not is_faster(_fusion(128, 768, [768, 768, 768], []), request)
