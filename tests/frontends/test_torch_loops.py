"""`torch.while_loop`, on the CPU device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

import aotc  # noqa: E402
import aotc.torch  # noqa: E402
from aotc.errors import InputError  # noqa: E402


class Loops(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A loop whose first condition holds and is known when it is built, one that is never entered,
    one of a single value, whose condition depends on it, and one in another, with weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        zero = torch.tensor(0)

        def grow(number: Any, value: Any) -> Any:
            return number + 1, value * 1.5 + 1

        def deepen(number: Any, value: Any) -> Any:
            def step(number: Any, value: Any) -> Any:
                return number + 1, torch.tanh(self.layer(value))

            first = torch.zeros((), dtype=torch.int64)
            inner = torch.while_loop(lambda i, _: i < 3, step, (first, value))
            return number + 1, inner[1]

        counted = torch.while_loop(lambda i, _: i < 5, grow, (zero, x))
        never = torch.while_loop(lambda i, _: i < 0, grow, (zero, x))
        (grown,) = torch.while_loop(lambda v: v.sum() < 100, lambda v: (v * 1.5 + 1,), (x,))
        return *counted, *never, grown, *torch.while_loop(lambda i, _: i < 4, deepen, (zero, x))


def test_loops_end_by_their_conditions(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Loops().eval()
    program = torch.export.export(module, (torch.rand(3, 4),))
    built = aotc.torch.build(
        program, (), out=f"{tmp_path}/", chips=["sm_90"], cache=False, name="loops"
    )
    x = torch.rand(3, 4)
    expected = module(x)
    results = built(x)
    assert len(results) == len(expected) == 7
    for result, one in zip(results, expected, strict=True):
        torch.testing.assert_close(result, one)


class Numbers(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return torch.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, v * 2), (0, x))


def test_loops_of_numbers_are_refused() -> None:
    program = torch.export.export(Numbers(), (torch.rand(3, 4),))
    with pytest.raises(InputError, match=r"torch\.while_loop has a number as an input"):
        aotc.torch.build(program, (), emit="mlir")
