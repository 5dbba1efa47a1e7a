"""Products of matrices of random sizes, held against f64 on a GPU.

    python -m tests.gpu.products OUT

makes the folder OUT: a library for each of `cases`, and `check`, for a machine with a GPU and
PyTorch.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from msgspec import to_builtins

import aotc
from tests.gpu.products.cases import Case, cases, module

HERE = Path(__file__).resolve().parent


def build(out: Path) -> None:
    """Fills the folder `out`."""
    chosen = cases()
    with ProcessPoolExecutor() as pool:
        list(pool.map(functools.partial(_build_one, out), chosen))
    described = [{**to_builtins(case), "name": case.name} for case in chosen]
    (out / "cases.json").write_text(json.dumps(described))
    shutil.copyfile(HERE / "check.py", out / "check.py")
    run = out / "check"
    run.write_text('#!/bin/sh\ncd "$(dirname "$0")" && exec python3 check.py "$@"\n')
    run.chmod(0o755)


def _build_one(out: Path, case: Case) -> None:
    aotc.build(
        module(case),
        name=case.name,
        emit="shared",
        chips=(case.chip,),
        # What later GPUs run.
        ptx="compute_80" if case.chip == "sm_80" else None,
        cpu_kernels=False,
        **dict.fromkeys(case.options, True),
        out=f"{out}/{case.name}/",
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
