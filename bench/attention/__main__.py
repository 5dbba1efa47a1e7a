"""Attention, as aotc builds it of linalg, against PyTorch's scaled_dot_product_attention.

    python -m bench.attention OUT [--cases WORD,...]

makes the folder OUT: a library for each type, number of columns and of tokens, causal and not, with
16 heads, for Hopper, and in 16 bits for other GPUs (PTX of sm_80), and `run`. That needs a GPU and
PyTorch; it holds results against f64's, and prints a line of JSON for each.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import aotc
from bench import folder
from tests.gpu.products.attention import Attention

HERE = Path(__file__).resolve().parent
HEADS = 16
COLUMNS = (64, 128)
TOKENS = (512, 1024, 2048, 4096, 8192)
HOPPER, PORTABLE = "sm_90a", "sm_80"
# Elements and chips. f32 has the same kernels on all chips.
KINDS = (("f16", HOPPER), ("bf16", HOPPER), ("f32", HOPPER), ("f16", PORTABLE))


def cases() -> list[Attention]:
    return [
        Attention(element, columns, mask, "", HEADS, tokens, tokens, chip)
        for element, chip in KINDS
        for columns in COLUMNS
        for mask in ("none", "causal")
        for tokens in TOKENS
    ]


def build(out: Path, names: tuple[str, ...] = ()) -> None:
    """Fills the folder `out` with the cases whose names begin so."""
    chosen = [case for case in cases() if not names or case.name.startswith(names)]
    build_one = functools.partial(_build_one, out)
    folder.fill(out, chosen, build_one, _described, (HERE / "measure.py",))


def _described(case: Attention) -> dict[str, Any]:
    return case.program.described


def _build_one(out: Path, case: Attention) -> None:
    aotc.build(
        case.program.text,
        name=case.name,
        emit="shared",
        chips=(case.chip,),
        # What later GPUs run.
        ptx="compute_80" if case.chip == PORTABLE else None,
        cpu_kernels=False,
        out=f"{out}/{case.name}/",
    )


def main() -> None:
    out, names = folder.options(__doc__)
    build(out, names)


if __name__ == "__main__":
    main()
