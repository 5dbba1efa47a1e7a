"""What a decoding step of a language model is made of, against a copy's bandwidth and PyTorch.

    python -m bench.decode OUT [--cases WORD,...]

makes the folder OUT: a library for each product with a vector, in f16 and with quantized weights,
and for attention of one query over a cache, of Llama 3 8B's sizes; and `run`. Needs PyTorch here,
and a GPU and PyTorch there. `run` holds results against f64's, and prints a line of JSON for each.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch

import aotc.torch
from bench import folder
from bench.decode.modules import CASES

HERE = Path(__file__).resolve().parent
CHIP = "sm_90a"


def build(out: Path, names: tuple[str, ...] = ()) -> None:
    """Fills the folder `out` with the cases whose names begin so."""
    chosen = [name for name in CASES if not names or name.startswith(names)]
    modules = (HERE / "measure.py", HERE / "modules.py")
    folder.fill(out, chosen, functools.partial(_build_one, out), str, modules)


def _build_one(out: Path, name: str) -> None:
    case = CASES[name]
    program = torch.export.export(case.module(), case.inputs("cpu"))
    options: dict[str, Any] = {"chips": (CHIP,), "cpu_kernels": False, "emit": "shared"}
    aotc.torch.build(program, (), name=name, out=f"{out}/{name}/", **options)


def main() -> None:
    build(*folder.options(__doc__))


if __name__ == "__main__":
    main()
