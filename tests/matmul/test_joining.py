"""Which matmuls of the same rows are expected to be faster as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotc.kernels.matmul.joining import Join, is_faster
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.request import BuildRequest, Chip

HOPPER = BuildRequest(Path("input.mlir"), chips=(Chip("sm_90a"),), ptx=None)


def _problem(m: int, n: int, k: int) -> Problem:
    a, b, c = (
        Matrix(f"memref<{rows}x{columns}xf16>", "f16", (rows, columns), columns, 16)
        for rows, columns in ((m, k), (k, n), (m, n))
    )
    return Problem(a, b, c, "f32")


def _join(m: int, k: int, columns: list[int], epilogues: list[int]) -> Join:
    whole, *parts = (_problem(m, n, k) for n in (sum(columns), *columns))
    return Join(whole, tuple(parts), tuple(_problem(m, n, k) for n in epilogues))


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
    assert is_faster(_join(m, k, columns, epilogues), HOPPER) == expected


def test_the_cpu_has_each_matmul_alone() -> None:
    request = BuildRequest(Path("input.mlir"), chips=(), default_chips=(), ptx=None)
    assert not is_faster(_join(128, 768, [768, 768, 768], []), request)
