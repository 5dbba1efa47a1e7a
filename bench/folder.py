"""A folder for a machine with a GPU and PyTorch: libraries, `cases.json`, and `run`."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def options(description: str | None) -> tuple[Path, tuple[str, ...]]:
    """Of the command line: the folder, and what names of cases begin with."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="the folder")
    parser.add_argument("--cases", default="", help="what names begin with: f32_nn,f16")
    given = parser.parse_args()
    return given.out, tuple(word for word in given.cases.split(",") if word)


def fill(
    out: Path,
    cases: Sequence[Any],
    build: Callable[[Any], None],
    described: Callable[[Any], Any],
    modules: Sequence[Path],
) -> None:
    """`build` makes the library of a case, in a process of its own; `described`: what `measure.py`,
    one of the modules that travel along with `bursts`, is to know of it."""
    with ProcessPoolExecutor() as pool:
        list(pool.map(build, cases))
    (out / "cases.json").write_text(json.dumps([described(case) for case in cases]))
    for module in (*modules, HERE / "bursts.py"):
        shutil.copyfile(module, out / module.name)
    run = out / "run"
    run.write_text('#!/bin/sh\ncd "$(dirname "$0")" && exec python3 measure.py "$@"\n')
    run.chmod(0o755)
