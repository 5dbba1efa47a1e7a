"""`torch.while_loop`, `cond`, `scan` and `map`, on the CPU device."""

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


class Functions(torch.nn.Module):  # type: ignore[misc, name-defined]
    """`cond` by a tensor and by a size, one in another's function; `scan` of any number of rows,
    with weights, backwards and with integers; `map`; integers that a loop writes into a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 4)

    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.map import map as map_rows
        from torch._higher_order_ops.scan import scan

        def choose(x: Any) -> Any:
            return torch.cond(x.shape[0] > 3, lambda x: x.sum(0), lambda x: x.amax(0), (x,))

        def step(state: Any, row: Any) -> Any:
            state = self.cell(row, state)
            return state, (state.sin(), row.sum(1))

        def count(state: Any, rows: Any) -> Any:
            row, number = rows
            grown = torch.cond(row[0] > 0, lambda n: n * 2, lambda n: n + 1, (state[1],))
            return (state[0] * 0.5 + row, grown), (state[0] + number, state[1].clone())

        def put(i: Any, tokens: Any) -> Any:
            return i + 1, tokens.index_copy(0, i.reshape(1), (i * i).reshape(1) + 3)

        zero, one = torch.tensor(0), torch.tensor(1)
        chosen = torch.cond(x.sum() > 0, choose, lambda x: x.cos().mean(0), (x,))
        last, (states, sums) = scan(step, torch.zeros(2, 4), torch.stack([x, x * 2], 1))
        numbers = torch.arange(x.shape[0])
        ended, back = scan(count, (torch.zeros(4), one), (x, numbers), reverse=True)
        mapped = map_rows(lambda row, whole: (row @ whole.T).softmax(0), x[:, :3], torch.ones(2, 3))
        tokens = torch.while_loop(
            lambda i, _: i < 4, put, (zero, torch.zeros(6, dtype=torch.int64))
        )
        return chosen, last, states, sums, *ended, *back, mapped, tokens[1]


def test_functions_are_branches_and_loops(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Functions().eval()
    rows = torch.export.Dim("rows", min=2, max=100)
    shapes = ({0: rows},)
    program = torch.export.export(module, (torch.rand(5, 4),), dynamic_shapes=shapes)
    built = aotc.torch.build(
        program, (), out=f"{tmp_path}/", chips=["sm_90"], cache=False, name="functions"
    )
    for x in (torch.rand(5, 4), -torch.rand(5, 4), torch.rand(3, 4), torch.randn(9, 4)):
        for result, one in zip(built(x), module(x), strict=True):
            torch.testing.assert_close(result, one)


class Given(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, holds: Any, x: Any, y: Any) -> Any:
        def copy(x: Any, y: Any) -> Any:
            return x.clone(), y.clone()

        return torch.cond(holds, copy, lambda x, y: copy(y, x), (x, y))


def test_branches_may_give_what_they_are_given(tmp_path: Path) -> None:
    """In a program without other branches and loops."""
    given = torch.tensor(True), torch.ones(3), torch.zeros(3)
    built = aotc.torch.build(
        Given(), given, out=f"{tmp_path}/", chips=["sm_80"], cache=False, name="given"
    )
    for holds in (True, False):
        inputs = torch.tensor(holds), *given[1:]
        for result, one in zip(built(*inputs), Given()(*inputs), strict=True):
            torch.testing.assert_close(result, one)
