"""PyTorch's operators at the edges: each element type, sizes that are known and any, and numbers
that are extreme, equal, or none.

    python -m tests.frontends.operators.sweep [--types f32,i8] [PATTERN ...]

builds them all; tests/frontends/test_operators.py some. Exit code 1 where one is wrong or fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# As pytest has it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import torch
from frontends.operators.judge import Trial, Verdict, judge, results_of

TYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "bool": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}
nan, infinity = float("nan"), float("inf")
# Shapes that are known, and those that a program of any size is called with.
SHAPES: tuple[tuple[int, ...], ...] = ((3, 8), (1, 1), (), (3, 0), (0, 8))
ANY_SHAPES = ((3, 8), (5, 1), (1, 33))


def small(x: Any, most: int = 3) -> Any:
    """So that results do not overflow."""
    return x.clamp(0 if x.dtype == torch.uint8 else -most, most)


# Functions of x and y, of one type and shape, and of i, places along the last dimension of which
# several are equal. What has no value in PyTorch (a conversion that does not fit) is left out.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cumsum": lambda x, y, i: x.cumsum(-1),
    "cumprod": lambda x, y, i: small(x).cumprod(-1),
    "cummax": lambda x, y, i: tuple(x.cummax(-1)),
    "cummin": lambda x, y, i: tuple(x.cummin(0)),
    "logcumsumexp": lambda x, y, i: x.logcumsumexp(-1),
    "sort": lambda x, y, i: tuple(x.sort(dim=-1, stable=True)),
    "sort, descending": lambda x, y, i: tuple(x.sort(dim=0, stable=True, descending=True)),
    "argsort": lambda x, y, i: x.argsort(dim=-1, stable=True),
    "topk": lambda x, y, i: x.topk(1).values,
    "kthvalue": lambda x, y, i: x.kthvalue(1).values,
    "median": lambda x, y, i: x.median(),
    "medians": lambda x, y, i: x.median(-1).values,
    "nanmedian": lambda x, y, i: x.nanmedian(),
    "nanmedians": lambda x, y, i: x.nanmedian(-1).values,
    "mode": lambda x, y, i: x.mode(-1).values,
    "scatter": lambda x, y, i: x.scatter(-1, i.sort(-1).values[..., :1], y),
    "scatter of a number": lambda x, y, i: x.scatter(-1, i, 1),
    "scatter_add": lambda x, y, i: x.scatter_add(-1, i, small(y)),
    "least of places": lambda x, y, i: x.scatter_reduce(-1, i, y, "amin"),
    "largest of places": lambda x, y, i: x.scatter_reduce(-1, i, y, "amax", include_self=False),
    "products of places": lambda x, y, i: small(x, 2).scatter_reduce(-1, i, small(y, 2), "prod"),
    "means of places": lambda x, y, i: small(x, 9).scatter_reduce(-1, i, small(y, 9), "mean"),
    "index_add": lambda x, y, i: x.index_add(-1, i[0], small(y)),
    "index_copy": lambda x, y, i: x.index_copy(-1, i[0].argsort(dim=-1, stable=True), y),
    "index_fill": lambda x, y, i: x.index_fill(-1, i[0], 1),
    "index_select": lambda x, y, i: x.index_select(-1, i[0]),
    "index_put": lambda x, y, i: x.index_put((i[0] * 0,), y[0], accumulate=True),
    "index_reduce": lambda x, y, i: x.index_reduce(-1, i[0], y, "amax"),
    "put": lambda x, y, i: x.put(i[0].argsort(dim=-1, stable=True), y[0]),
    "gather": lambda x, y, i: x.gather(-1, i),
    "take": lambda x, y, i: x.take(i),
    "masked_fill": lambda x, y, i: x.masked_fill(x > y, 1),
    "masked_scatter": lambda x, y, i: x.masked_scatter(x > y, y),
    # In a row with NaN, places depend on how it is searched.
    "searchsorted": lambda x, y, i: torch.searchsorted(
        x.nan_to_num(0).sort(-1).values, y, right=True
    ),
    "bucketize": lambda x, y, i: torch.bucketize(x, y[0].nan_to_num(0).sort().values),
    "histc": lambda x, y, i: small(x, 9).nan_to_num(0).histc(5, -9, 9),
    "isin": lambda x, y, i: torch.isin(x, y[0]),
    "cdist": lambda x, y, i: torch.cdist(small(x, 9), small(y, 9)),
    "hypot": lambda x, y, i: torch.hypot(x, y),
    "copysign": lambda x, y, i: torch.copysign(x, y.nan_to_num(1)),
    "signbit": lambda x, y, i: x.nan_to_num(1).signbit(),
    "isfinite": lambda x, y, i: (x.isfinite(), x.isinf(), x.isnan(), x == x, x != x),
    "comparisons": lambda x, y, i: (x == y, x != y, x < y, x <= y, x > y, x >= y),
    "maximum": lambda x, y, i: (torch.maximum(x, y), torch.minimum(x, y)),
    "fmax": lambda x, y, i: (torch.fmax(x, y), torch.fmin(x, y)),
    "fmod": lambda x, y, i: small(x, 99).fmod(3),
    "remainder": lambda x, y, i: small(x, 99).remainder(3 if x.dtype == torch.uint8 else -3),
    "roll": lambda x, y, i: x.roll(2),
    "roll of rows": lambda x, y, i: x.roll(1, 0),
    "third power": lambda x, y, i: x**3,
    "square": lambda x, y, i: x.square(),
    "nan_to_num": lambda x, y, i: x.nan_to_num(),
    "frac": lambda x, y, i: x.frac(),
    "logaddexp": lambda x, y, i: torch.logaddexp(x, y),
    "erfinv": lambda x, y, i: x.erfinv(),
    "erfc": lambda x, y, i: x.erfc(),
    "lgamma": lambda x, y, i: small(x, 99).lgamma(),
    "digamma": lambda x, y, i: small(x, 99).digamma(),
    "i0": lambda x, y, i: small(x, 50).i0(),
    "diff": lambda x, y, i: x.diff(dim=-1),
    "amax": lambda x, y, i: (x.amax(-1), x.amin(0)),
    "argmax": lambda x, y, i: (x.argmax(-1), x.argmin(0)),
    "count_nonzero": lambda x, y, i: x.count_nonzero(-1),
    "repeat_interleave": lambda x, y, i: x.repeat_interleave(2, -1),
    "fft": lambda x, y, i: torch.view_as_real(torch.fft.fft(small(x, 9).nan_to_num(0))),
    "irfft": lambda x, y, i: torch.fft.irfft(torch.fft.rfft(small(x, 9).nan_to_num(0))),
}


def numbers(dtype: Any, shape: Sequence[int], seed: int) -> Any:
    """Numbers of the type that are at its edges, each several times."""
    if dtype == torch.bool:
        edges = [0, 1, 1]
    elif dtype.is_floating_point:
        limits = torch.finfo(dtype)
        edges = [0.0, -0.0, 1.5, -2.5, nan, infinity, -infinity, limits.max, limits.tiny, 3, 1.5]
    else:
        limits = torch.iinfo(dtype)
        edges = [limits.min, limits.max, 0, 1, 3, 7, limits.min // 2, 3]
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(0, len(edges), tuple(shape), generator=generator)
    return torch.tensor(edges, dtype=dtype)[chosen]


def inputs(dtype: Any, shape: Sequence[int]) -> tuple[Any, Any, Any]:
    last = max(shape[-1] if shape else 1, 1)
    places = torch.randint(0, last, tuple(shape), generator=torch.Generator().manual_seed(9))
    return numbers(dtype, shape, 7), numbers(dtype, shape, 8), places


def accepted(function: Callable[..., Any], given: tuple[Any, ...]) -> bool:
    """Whether PyTorch has a value of these."""
    try:
        results_of(function, given)
    except (RuntimeError, IndexError, TypeError, NotImplementedError):
        return False
    return True


def trials(dtype: Any, patterns: Sequence[str] = ()) -> Iterator[tuple[str, Trial]]:
    """All of a type: what the sizes are, and the functions that PyTorch has for them."""
    named = {
        name: function
        for name, function in FUNCTIONS.items()
        if not patterns or any(pattern in name for pattern in patterns)
    }
    for shape in SHAPES:
        given = inputs(dtype, shape)
        functions = {name: one for name, one in named.items() if accepted(one, given)}
        if functions:
            yield str(shape), Trial(functions, [given])
    calls = [inputs(dtype, shape) for shape in ANY_SHAPES]
    functions = {
        name: one for name, one in named.items() if all(accepted(one, call) for call in calls)
    }
    rows, columns = torch.export.Dim("rows"), torch.export.Dim("columns")
    if functions:
        yield "any", Trial(functions, calls, ({0: rows, 1: columns},) * 3)


def tell(type_: str, sizes: str, verdict: Verdict) -> None:
    lines = [line.strip() for line in verdict.message.splitlines() if line.strip()]
    print(f"{verdict.kind:8} {type_:5} {sizes:7} {verdict.name:24} {' '.join(lines)[:300]}")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--types", default=",".join(TYPES), help="with commas (all)")
    parser.add_argument("--sizes", default="", help="one of them: '(3, 8)' or any")
    options = parser.parse_args(arguments)
    kinds: Counter[str] = Counter()
    for type_ in options.types.split(","):
        for sizes, trial in trials(TYPES[type_], options.patterns):
            if options.sizes not in ("", sizes):
                continue
            for verdict in judge(trial):
                kinds[verdict.kind] += 1
                if verdict.kind != "right":
                    tell(type_, sizes, verdict)
            print(f"done     {type_:5} {sizes}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    return 1 if kinds["wrong"] or kinds["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
