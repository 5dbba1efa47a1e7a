"""Runs emulate.py: entries called on a fake GPU that works as late as it may."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers.fake_gpu import build_fake_driver, fake_fatbinary
from placement.emulate import KERNEL_NAMES

from aotc.cli import run

_EMULATE = Path(__file__).with_name("emulate.py")


def call_on_fake_gpu(
    text: str, requests: list[dict[str, Any]], folder: Path, *options: str
) -> list[list[dict[str, Any]]]:
    """What two calls of an entry of the module `text` give, for each of the requests.

    The kernels are those of `patterns.KERNELS`; emulate.py tells what a request is.
    """
    source = folder / "program.mlir"
    source.write_text(text)
    fatbinary = fake_fatbinary(folder, *KERNEL_NAMES)
    command = ["build", str(source), "--emit", "shared", "-o", f"{folder}/", "-q", *options]
    images = ("--chip", "sm_90", "--fatbinary", str(fatbinary), "--no-cpu-kernels")
    assert run([*command, *images]) == 0
    build_fake_driver(folder)
    done = subprocess.run(
        [sys.executable, _EMULATE, folder / "lib" / "libprogram.so"],
        env={"LD_LIBRARY_PATH": str(folder), "AOTC_DEVICE": "cuda"},
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return answers
