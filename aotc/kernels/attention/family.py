"""The base of the families of attention kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.builder import WIDEST_ACCESS, Builder, function_text
from aotc.builder.numbers import Value
from aotc.kernels.attention.problem import Attention
from aotc.kernels.family import KernelFamily


class AttentionFamily(KernelFamily[Attention, Sequence[Value]]):
    """See `KernelFamily`. A variant has `m`, the rows of a tile of Q, and `keys`, the rows of a
    tile of K and V. Arguments are the buffers of the problem's `arguments`.

    `concurrent_tiles`: the number of tiles of O that a large GPU computes concurrently.
    `takes_one_row`: the family is only for matrices of Q with one row (decode, see
    `Attention.group`); other families do not support these.
    """

    concurrent_tiles: int
    takes_one_row = False

    def tile_cost(self, problem: Attention, variant: Any) -> int:
        """The cost of a tile, relative to the tiles of the family's other variants."""
        return 1

    def kernel_name(self, problem: Attention, variant: Any) -> str:
        """See `KernelFamily`."""
        words = (
            "attention",
            problem.q.element,
            f"d{problem.head_dim}" if problem.head_dim else "",
            "causal" if problem.causal else "",
            "" if problem.mask is None else "select" if problem.mask.replaces else "mask",
            "paged" if problem.pages is not None else "",
            self.mnemonic,
            f"{variant.m}x{variant.keys}",
            "" if problem.q.alignment >= WIDEST_ACCESS else f"align{problem.q.alignment}",
        )
        return "_".join(filter(None, words)).lower()

    def function(self, problem: Attention, variant: Any, name: str) -> str:
        """The MLIR text of `func.func @name`, which has the arguments of `build`, and launches the
        kernel."""

        def body(b: Builder, arguments: list[Value]) -> None:
            with b.kernel_name(f"{name}_kernel"):
                self.insert(b, problem, variant, arguments)

        return function_text(name, problem.arguments, body)
