"""A part of `python -m tests.frontends.operators.sweep`; and what constants are folded to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.operators.judge import Trial, judge  # noqa: E402
from frontends.operators.sweep import TYPES, trials  # noqa: E402


def test_edges_of_floats() -> None:
    (trial,) = (trial for sizes, trial in trials(TYPES["f32"]) if sizes == "(3, 8)")
    assert [one for one in judge(trial) if one.kind != "right"] == []


def test_edges_of_integers_of_any_size() -> None:
    # What has no lowering of any size, or is not exported.
    left_out = {"cummax", "cummin", "masked_scatter", "diff", "fft", "irfft", "cdist"}
    (trial,) = (trial for sizes, trial in trials(TYPES["i64"]) if sizes == "any")
    chosen = trial.part([name for name in trial.functions if name not in left_out])
    assert [one for one in judge(chosen) if one.kind != "right"] == []


def test_constants_are_folded_to_what_they_are() -> None:
    """torch-mlir takes a negative integer for an unsigned one, and rounds quotients as C does."""
    constants: dict[str, Callable[[], Any]] = {
        "floats": lambda: torch.full((3,), 2.5),
        "halves": lambda: torch.full((3,), 2.5, dtype=torch.float16),
        "integers": lambda: torch.full((3,), 5),
        "negative ones": lambda: torch.full((3,), -5),
        "one": lambda: torch.tensor([5]),
        "a number": lambda: torch.tensor(-5.5),
        "a view": lambda: torch.full((3, 1), 7).squeeze(1),
    }
    operations: dict[str, Callable[[Any], Any]] = {
        "product": lambda c: c * -1,
        "sum": lambda c: c + -3,
        "difference": lambda c: -3 - c,
        "scaled": lambda c: torch.add(c, c, alpha=-3),
        "quotient": lambda c: c / -2,
        "remainder": lambda c: c % -2,
        "rounded down": lambda c: c // -2,
        "rounded to zero": lambda c: torch.div(c, 2, rounding_mode="trunc"),
        "less": lambda c: c < -1,
        "more": lambda c: c > 0,
        "at least": lambda c: c >= -1,
        "equal": lambda c: c == -1,
        "chosen": lambda c: torch.where(c > 0, -1, c),
    }
    functions = {
        f"{operation} of {constant}": (lambda x, c=c, o=o: x + o(c()))
        for constant, c in constants.items()
        for operation, o in operations.items()
    }
    verdicts = judge(Trial(functions, [(torch.randn(3),)]))
    assert [one for one in verdicts if one.kind != "right"] == []


def test_numbers_beside_narrow_integers() -> None:
    """They are converted to the tensor's type, whatever it can hold."""
    operations: dict[str, Callable[[Any], Any]] = {
        "remainder": lambda x: x % -3,
        "rounded down": lambda x: x // -3,
        "rounded to zero": lambda x: torch.div(x, -3, rounding_mode="trunc"),
        "fmod": lambda x: torch.fmod(x, -3),
        "less": lambda x: x < -1,
        "more": lambda x: x > 300,
        "equal": lambda x: x == -1,
        "bounded": lambda x: x.clamp(min=-3),
        "quotient": lambda x: x / -3,
        "product": lambda x: x * -3,
        "difference": lambda x: -3 - x,
        "chosen": lambda x: torch.where(x > 3, x, -1),
    }
    bytes_ = torch.tensor([0, 1, 3, 100, 127, 128, 200, 255], dtype=torch.uint8)
    shorts = torch.tensor([0, 1, 3, 100, 300, -3, -100, -32768], dtype=torch.int16)
    for values in (bytes_, shorts):
        verdicts = judge(Trial(operations, [(values,)]))
        assert [one for one in verdicts if one.kind != "right"] == []


def test_bounds_of_another_type() -> None:
    """The result has the type of all operands together: integers between floats are floats."""
    bounds = torch.tensor([2.5, -1.5, 7, 3])
    operations: dict[str, Callable[[Any], Any]] = {
        "two numbers": lambda x: x.clamp(-2.5, 7.5),
        "a number and an integer": lambda x: x.clamp(3, 7.5),
        "the least": lambda x: torch.clamp_min(x, 2.5),
        "the largest": lambda x: x.clamp(max=2.5),
        "tensors": lambda x: x.clamp(bounds - 2, bounds),
        "one tensor": lambda x: torch.clamp_max(x, bounds),
        "numbers in tensors": lambda x: x.clamp(torch.tensor(1.5), torch.tensor(4)),
        "wider integers": lambda x: x.clamp(max=torch.tensor([300, -3, 2**40, 4])),
    }
    for type_ in (torch.int64, torch.uint8):
        verdicts = judge(Trial(operations, [(torch.tensor([0, 3, 127, 5], dtype=type_),)]))
        assert [one for one in verdicts if one.kind != "right"] == []


def test_bounds_of_booleans() -> None:
    """False is less than true."""
    bound = torch.tensor([False, False, True, True])
    operations: dict[str, Callable[[Any], Any]] = {
        "the least": lambda x: torch.clamp_min(x, bound),
        "the largest": lambda x: torch.clamp_max(x, bound),
        "a number": lambda x: torch.clamp_max(x, 0),
    }
    verdicts = judge(Trial(operations, [(torch.tensor([True, False, True, False]),)]))
    assert [one for one in verdicts if one.kind != "right"] == []


def test_floats_of_integers() -> None:
    """Powers with a fraction, and means in a type of floats."""
    operations: dict[str, Callable[[Any], Any]] = {
        "square root": lambda x: x**0.5,
        "negative power": lambda x: x**-1.5,
        "whole power": lambda x: x.int() ** 2.0,
        "power of booleans": lambda x: (x > 3) ** 2,
        "power of bytes": lambda x: x.to(torch.uint8) ** 3,
        "mean": lambda x: x.mean(dtype=torch.float32),
        "means of rows": lambda x: x.mean(1, dtype=torch.float64),
        "wider mean": lambda x: x.half().mean((0, 1), keepdim=True, dtype=torch.float32),
    }
    verdicts = judge(Trial(operations, [(torch.arange(1, 13).reshape(3, 4),)]))
    assert [one for one in verdicts if one.kind != "right"] == []


def test_integers_of_two_types() -> None:
    """They are computed with in the type of both: without signs, if one is narrow and the other of
    rank 0."""
    operations: dict[str, Callable[[Any, Any], Any]] = {
        "less": lambda x, y: (x < y, x <= y, y < x, y <= x),
        "equal": lambda x, y: (x == y, x != y),
        "largest": lambda x, y: (torch.maximum(x, y), torch.fmin(y, x)),
        "sorted": lambda x, y: torch.searchsorted(x.sort()[0], y),
        "numbers": lambda x, y: (x < -1, x > True, y >= 300, y > 0.5),
    }
    narrow: dict[str, Callable[[Any, Any], Any]] = {
        "quotient": lambda x, y: (x // y, torch.div(x, y, rounding_mode="trunc")),
        "remainder": lambda x, y: (x % y, torch.fmod(x, y)),
        "bound": lambda x, y: x.clamp(max=y),
    }
    bools, bytes_ = torch.tensor([True, False, True]), torch.tensor([200, 253, 3]).to(torch.uint8)
    numbers = torch.tensor([-3, 1, 7], dtype=torch.int8)
    for x, y in ((bools, numbers.long()), (bytes_, numbers), (bytes_, torch.tensor(-3))):
        functions = {**operations, **narrow} if y.dim() == 0 else operations
        verdicts = judge(Trial(functions, [(x, y)]))
        assert [one for one in verdicts if one.kind != "right"] == []


def test_truths_of_bytes() -> None:
    """Whether any, or all, are not 0: as bytes."""
    operations: dict[str, Callable[[Any], Any]] = {
        "any": lambda x: x.any(),
        "all": lambda x: x.all(),
        "of columns": lambda x: (x.any(0), x.all(0, keepdim=True)),
        "of both dimensions": lambda x: (torch.any(x, (0, 1)), torch.all(x, (0, 1))),
    }
    bytes_ = torch.tensor([[0, 2, 0], [0, 200, 1]], dtype=torch.uint8)
    verdicts = judge(Trial(operations, [(bytes_,)]))
    assert [one for one in verdicts if one.kind != "right"] == []
