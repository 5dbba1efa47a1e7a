"""Matmuls of random sizes, and what is like them, held against f64 on a GPU.

    python -m tests.gpu.products OUT [--only LIST,...] [--names WORD,...] [--every N] [--jobs N]

makes the folder OUT: a library for each program, and `check`, for a machine with a GPU and PyTorch.
LIST: one of LISTS; without it all of them. WORD: what a program's name begins with. N: of what is
left one in N.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import aotc
from tests.gpu.products import attention, cases, convolutions, epilogues, rare
from tests.gpu.products.program import Program
from tests.gpu.products.proof import PROOF

DEVICE = Path(__file__).resolve().parent / "device"
LISTS = {
    "products": cases.programs,
    "convolutions": lambda: [one.program for one in convolutions.cases()],
    "epilogues": lambda: [one.program for one in epilogues.cases()],
    "rare": lambda: [one.program for one in rare.cases()],
    "attention": lambda: [one.program for one in attention.cases()],
}


def chosen(only: Sequence[str], names: Sequence[str], every: int) -> list[Program]:
    """The programs of these lists whose names begin so."""
    found = [program for name in only or LISTS for program in LISTS[name]()]
    found = [one for one in found if not names or one.name.startswith(tuple(names))]
    return found[::every]


def build(out: Path, programs: Sequence[Program], jobs: int | None = None) -> None:
    """Fills the folder `out`."""
    with ProcessPoolExecutor(jobs) as pool:
        list(pool.map(functools.partial(_build_one, out), [*programs, PROOF]))
    (out / "cases.json").write_text(json.dumps([program.described for program in programs]))
    for module in DEVICE.glob("*.py"):
        shutil.copyfile(module, out / module.name)
    run = out / "check"
    run.write_text('#!/bin/sh\ncd "$(dirname "$0")" && exec python3 check.py "$@"\n')
    run.chmod(0o755)


def _build_one(out: Path, program: Program) -> None:
    aotc.build(
        program.text,
        name=program.name,
        emit="shared",
        chips=(program.chip,),
        # What later GPUs run.
        ptx="compute_80" if program.chip == "sm_80" else None,
        cpu_kernels=False,
        **dict.fromkeys(program.options, True),
        out=f"{out}/{program.name}/",
    )


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", type=_words, default=[])
    parser.add_argument("--names", type=_words, default=[])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    build(options.out, chosen(options.only, options.names, options.every), options.jobs)


if __name__ == "__main__":
    main()
