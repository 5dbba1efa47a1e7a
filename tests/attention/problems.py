"""Problems for the families of kernels, without a module that they are of."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.kernels.attention.problem import Attention, Mask
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix


def matrix(
    batch: int | None, rows: int | None, columns: int | None, element: str = "f16"
) -> Matrix:
    sizes = "x".join("?" if n is None else str(n) for n in (batch, rows, columns))
    bytes_ = ELEMENT_BYTES[element]
    alignment = bytes_ if columns is None or columns * bytes_ % 16 else 16
    return Matrix(f"memref<{sizes}x{element}>", element, (rows, columns), columns, alignment)


def problem(
    batch: int | None = None,
    queries: int | None = None,
    keys: int | None = None,
    head_dim: int | None = 64,
    *,
    element: str = "f16",
    result: str = "f16",
    scale: float = 0.125,
    causal: bool = False,
    mask: Mask | None = None,
) -> Attention:
    return Attention(
        q=matrix(batch, queries, head_dim, element),
        k=matrix(batch, keys, head_dim, element),
        v=matrix(batch, keys, head_dim, element),
        o=matrix(batch, queries, head_dim, result),
        scale=scale,
        batch=batch,
        causal=causal,
        mask=mask,
    )


def replacing(p: Attention) -> Attention:
    """The problem with a mask that replaces scores."""
    assert p.mask is not None
    return replace(p, mask=replace(p.mask, replaces=True))


def module(function: str, p: Attention) -> str:
    """With an entry that calls `function`, the text of a family's @kernel for the problem."""
    types = list(p.arguments.values())
    arguments = ", ".join(f"%{i}: {type_}" for i, type_ in enumerate(types))
    names = ", ".join(f"%{i}" for i in range(len(types)))
    return f"""{function}
func.func @attention({arguments}) attributes {{llvm.emit_c_interface}} {{
  call @kernel({names}) : ({", ".join(types)}) -> ()
  return
}}
"""
