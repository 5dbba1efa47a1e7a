"""PyTorch's operators whose results have a size that depends on values, on the CPU device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from frontends.operators.judge import Trial, judge  # noqa: E402
from frontends.support import call  # noqa: E402

import aotc  # noqa: E402
import aotc.torch  # noqa: E402

AUTO = torch.export.Dim.AUTO
functional = torch.nn.functional

ON_ROWS: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: x.nonzero(),
    "nonzero as a tuple": lambda x: x.nonzero(as_tuple=True),
    "where": torch.where,
    "argwhere": torch.argwhere,
    "mask": lambda x: x[x > x.flip(0)],
    "masked_select": lambda x: x.masked_select(x != x.flip(0)),
    "masked_select by a larger mask": lambda x: (
        torch.tensor([[1], [2], [3]]).to(x.dtype).masked_select(x != x.flip(0))
    ),
    "assignment": lambda x: x.index_put((x != x.flip(0),), x[x != x.flip(0)]),
    "masked_scatter": lambda x: x.masked_scatter(x != x.flip(0), x),
    "unique": lambda x: x.unique(return_inverse=True, return_counts=True),
    "unique_consecutive": lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
    "unique_dim": lambda x: torch.stack([x, x.flip(0)], 1).unique(
        dim=0, return_inverse=True, return_counts=True
    ),
    "unique_consecutive of slices": lambda x: torch.stack([x, x.flip(0)], 1).unique_consecutive(
        dim=0, return_inverse=True, return_counts=True
    ),
    "repeat_interleave": lambda x: x.repeat_interleave((x != x.flip(0)).long() * 2, 0),
}
ON_INTEGERS: dict[str, Callable[[Any], Any]] = {
    "bincount": lambda x: x.bincount(),
    "bincount of more": lambda x: x.bincount(minlength=300),
}


def _some(dtype: Any) -> Any:
    if dtype.is_floating_point:
        return torch.tensor([0.0, -0.0, 1.5, float("inf"), 1.5, -2, 3, -float("inf")]).to(dtype)
    return torch.tensor([3, 0, 1, 1, 0, 7, 100, 100, 2, 200 if dtype == torch.uint8 else 0]).to(
        dtype
    )


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float32"])
def test_rows_of_any_length(name: str) -> None:
    """Of some elements, one, none, and more than a chunk of a scan has."""
    dtype = getattr(torch, name)
    x = _some(dtype)
    is_integer = not dtype.is_floating_point and dtype != torch.bool
    functions = {**ON_ROWS, **(ON_INTEGERS if is_integer else {})}
    calls = [(x,), (x[:1],), (x[:0],), (torch.cat([x] * 600),)]
    assert [
        one for one in judge(Trial(functions, calls, ({0: AUTO},))) if one.kind != "right"
    ] == []


def _rows(x: Any) -> Any:
    return x[x[:, 0] > 0]


def _assigned(x: Any, index: Any, function: Callable[[Any], Any]) -> Any:
    y = x.clone()
    y[index] = function(y[index])
    return y


def _detections(x: Any) -> tuple[Any, ...]:
    """Of boxes and their scores, those that are likely, the best first, and where they meet."""
    boxes, scores = x[:, :4].sort(1).values, x[:, 4]
    is_likely = scores > 0
    boxes, scores = boxes[is_likely], scores[is_likely]
    scores, order = scores.sort(descending=True, stable=True)
    boxes = boxes[order]
    least = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    most = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    return boxes, scores, (most - least).clamp(min=0).prod(-1)


def _attention(x: Any) -> Any:
    heads = _rows(x)[:, :4].reshape(-1, 2, 2).transpose(0, 1)
    return functional.scaled_dot_product_attention(heads, heads, heads)


def _groups(x: Any) -> Any:
    """Means of the rows of each group, as a graph network pools its nodes."""
    groups, index, counts = x[:, 0].round().unique(return_inverse=True, return_counts=True)
    sums = torch.zeros(groups.shape[0], 5).index_add(0, index, x)
    return groups, sums / counts[:, None]


def _checked(x: Any) -> Any:
    y = _rows(x)
    torch._check(y.shape[0] <= 10000)
    return y.view(y.shape[0] * 5), torch.zeros(y.shape[0]) + y[:, 0], y.new_ones(y.shape[0], 2)


def _first(x: Any) -> Any:
    count = (x[:, 0] > 0).sum().item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count] * 2, torch.arange(count)


FOLLOWING: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: _rows(x) * 2 + 1,
    "linear": lambda x: functional.gelu(functional.linear(_rows(x), torch.ones(4, 5))),
    "softmax": lambda x: _rows(x).softmax(-1),
    "softmax of all": lambda x: x[x > 0].softmax(0),
    "layer_norm": lambda x: functional.layer_norm(_rows(x), (5,)),
    "sum and mean": lambda x: (x[x > 0].sum(), x[x > 0].mean()),
    "mask of a mask": lambda x: x[x > 0][x[x > 0] > 0.5],
    "nonzero of rows": lambda x: _rows(x).nonzero(),
    "unique of rows": lambda x: _rows(x).round().unique(),
    "concatenated": lambda x: torch.cat([_rows(x), x[x[:, 1] < 0], x]),
    "sorted": lambda x: x[x > 0].sort(descending=True)[0],
    "running sum": lambda x: x[x > 0].cumsum(0),
    "reversed": lambda x: x[x > 0].flip(0),
    "gathered": lambda x: x[torch.where(x > 0)],
    "rows and columns": lambda x: _rows(x)[:, x.sum(0) > 0],
    "columns": lambda x: x[:, x.sum(0) > 0],
    "mask and index": lambda x: x[x[:, 0] > 0, 1],
    "of rank 0": lambda x: (x.sum() > 0).nonzero(),
    "assignment": lambda x: _assigned(x, x > 0, lambda y: y * 3),
    "assignment to rows": lambda x: _assigned(x, x[:, 0] > 0, lambda y: y * 3),
    "assignment to columns": lambda x: _assigned(x, (slice(None), x.sum(0) > 0), lambda y: y * 3),
    "assignment of a number": lambda x: _assigned(x, x > 0, lambda y: 7.0),
    "assignment of a row": lambda x: _assigned(x, x[:, 0] > 0, lambda y: torch.arange(5.0)),
    "assignment to positions": lambda x: _assigned(x, torch.where(x > 0), lambda y: y * 3),
    "sums at a mask": lambda x: x.index_put((x > 0,), x[x > 0], accumulate=True),
    "detections": _detections,
    "attention": _attention,
    "checks": _checked,
    "first": _first,
}


def test_operators_that_follow() -> None:
    """For some rows, one, none of which the mask is true, and none at all."""
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    calls = [(x,), (x.abs()[:1],), (-x.abs(),), (x.repeat(300, 1),), (x[:0],)]
    verdicts = judge(Trial(FOLLOWING, calls, ({0: AUTO},)))
    assert [one for one in verdicts if one.kind != "right"] == []


def test_groups() -> None:
    """torch-mlir takes the rows that `index_add` adds for one at least: not of no rows."""
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    calls = [(x,), (x[:1],), (x.repeat(300, 1),)]
    assert [one.kind for one in judge(Trial({"groups": _groups}, calls, ({0: AUTO},)))] == ["right"]


class _Calls(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def _few(x: Any) -> Any:
    y = x[x > 0]
    torch._check(y.shape[0] < 4)
    return y + 1


def _positive(x: Any) -> Any:
    """As transformers checks what it is given."""
    torch._check_tensor_all(x > 0)
    return x + 1


def _without_negative(x: Any) -> Any:
    """A number that is chosen by a condition on values, too."""
    is_large = (x > 9).any().item()
    torch._check(torch.sym_not((x < 0).any().item()))
    return x * torch.sym_ite(is_large, 3, 2)


def _one_or_three(x: Any) -> Any:
    number = x[0].long().item()
    torch._check((number == 1) | (number == 3))
    torch._check(((number > 0) & (number < 4)) | (number == 9))
    return x * number


FAILING: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], str]] = [
    (_few, (torch.ones(3),), (torch.ones(5),), "expected u0 <= 3, where u0, u1, ... are numbers"),
    (_positive, (torch.ones(3),), (torch.zeros(5),), r"expected 1 <= u\d+, where"),
    (
        _without_negative,
        (torch.tensor([1.0, 10, 3]),),
        (-torch.ones(3),),
        r"expected Ne\(u\d+, 1\), where",
    ),
    (
        _one_or_three,
        (torch.tensor([3.0, 2]),),
        (torch.tensor([2.0, 2]),),
        r"expected Eq\(u0, 1\) \| Eq\(u0, 3\), where",
    ),
    (
        lambda i: i.bincount(),
        (torch.tensor([3, 1]),),
        (torch.tensor([3, -1]),),
        "a number to count, or a count, is negative",
    ),
    (
        lambda x, i: x.repeat_interleave(i, 0),
        (torch.ones(2), torch.tensor([3, 1])),
        (torch.ones(2), torch.tensor([3, -1])),
        "a number to count, or a count, is negative",
    ),
    (
        lambda x, y: x.index_put((x > 0,), y[y > 0]),
        (torch.ones(3), torch.ones(3)),
        (torch.ones(3), torch.tensor([1.0, 0, 1])),
        "another number of true elements than there are values",
    ),
]


@pytest.mark.parametrize(("function", "exported", "given", "message"), FAILING)
def test_calls_that_fail(
    function: Callable[..., Any],
    exported: tuple[Any, ...],
    given: tuple[Any, ...],
    message: str,
    tmp_path: Path,
) -> None:
    """With the line of the model; the next call is right."""
    sizes = (tuple({0: AUTO} for _ in exported),)
    program = torch.export.export(_Calls(function), exported, dynamic_shapes=sizes)
    built = aotc.torch.build(
        program, (), name="fails", emit="shared", out=f"{tmp_path}/", chips="sm_80", optimization=1
    )
    with pytest.raises(aotc.LibraryError, match=rf"{message}.* \(test_torch_data_dependent.py:\d"):
        call(built, "fails", list(given), [None])
    (found,) = call(built, "fails", list(exported), [None])
    assert torch.equal(torch.as_tensor(found), function(*exported))


def test_unique_slices_that_are_long() -> None:
    """Each element of a slice is a sort, of which there may be 16."""
    program = torch.export.export(_Calls(lambda x: x.unique(dim=0)), (torch.ones(3, 17),))
    with pytest.raises(aotc.InputError, match=r"\.py:\d+: error: aten\.unique_dim of slices of"):
        aotc.torch.build(program, (), emit="mlir")


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_a_mask_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is true where it is not 0, and not counted by its numbers."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")

    class Assigns(torch.nn.Module):
        def forward(self, x: Any, mask: Any, values: Any) -> Any:
            result = x.clone()
            result[mask] = values
            return result

    mask = torch.tensor([2, 0, 1, 0], dtype=torch.uint8)
    inputs = (torch.zeros(4), mask, torch.tensor([5.0, 6.0]))
    built = aotc.torch.build(Assigns(), inputs, out=f"{tmp_path}/", chips="sm_80")
    assert built(*inputs).tolist() == [5, 0, 6, 0]
