"""What `measure` times aotc's products against: PyTorch's, that is cuBLAS's, in functions that take
nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

torch = importlib.import_module("torch")

Run = Callable[[], Any]


def rivals(case: dict[str, Any], sets: Sequence[tuple[Any, ...]]) -> dict[str, list[Run]]:
    """By name, a function for each set of operands, which lie as `case` says."""
    if not case["has_gelu"]:
        return {"cublas": [_product(case, *seen(case, a, b), c) for a, b, c in sets]}
    layer = _linear if case["layout"][1] == "t" else _addmm
    compiled = _compiled(layer)
    return {
        "cublas": [_call(layer, a, b, bias) for a, b, bias, _ in sets],
        "compiled": [_call(compiled, a, b, bias) for a, b, bias, _ in sets],
    }


def seen(case: dict[str, Any], a: Any, b: Any) -> tuple[Any, Any]:
    """A as M x K and B as K x N."""
    return (a if case["layout"][0] == "n" else a.T, b if case["layout"][1] == "n" else b.T)


def _product(case: dict[str, Any], a: Any, b: Any, c: Any) -> Run:
    """M x K by K x N into `c`. Of f8 cuBLAS takes no other B than one that is contiguous along K:
    who has that otherwise has it copied, before."""
    if case["element"] == "i8":
        return lambda: torch._int_mm(a, b, out=c)
    if not case["element"].startswith("f8"):
        out = c if c.dtype == a.dtype else c.to(a.dtype)
        return lambda: torch.mm(a, b, out=out)
    scale = torch.ones((), device="cuda")
    along_k = b if b.stride(0) == 1 else b.T.contiguous().T
    return lambda: torch._scaled_mm(
        a, along_k, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16
    )


def _linear(a: Any, b: Any, bias: Any) -> Any:
    return torch.nn.functional.gelu(torch.nn.functional.linear(a, b, bias))


def _addmm(a: Any, b: Any, bias: Any) -> Any:
    return torch.nn.functional.gelu(torch.addmm(bias, a, b))


def _compiled(layer: Any) -> Any:
    """By torch.compile, for these sizes alone."""
    torch._dynamo.reset()
    # One more process for each core takes longer to start than what there is to compile.
    torch._inductor.config.compile_threads = 1
    return torch.compile(layer, dynamic=False)


def _call(function: Any, *arguments: Any) -> Run:
    return lambda: function(*arguments)
