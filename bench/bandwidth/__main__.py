"""The bandwidth benchmark: what aotc maps to threads by itself, against a device-to-device copy.

    python -m bench.bandwidth OUT

makes the folder OUT: `bandwidth` (bandwidth.c over a library that aotc builds of programs.mlir)
and `run`, which prints a line of JSON for each program, and PyTorch's figures where there is
PyTorch; it needs a GPU and nothing else. Bytes are those that must be read and written: each input
and each output once. Goals, as parts of the copy's bandwidth in the same run: elementwise chains,
copies and sums 0.9; row softmax, row layer norm and transposes 0.8.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from aotc.toolchain import Toolchain

HERE = Path(__file__).resolve().parent
CHIPS = "sm_80,sm_90"


def build(out: Path, chips: str = CHIPS, target: str = "x86_64-linux-gnu.2.28") -> None:
    """Fills the folder `out`."""
    toolchain = Toolchain(os.environ)
    package = out / "package"
    command = [sys.executable, "-m", "aotc", "build", str(HERE / "programs.mlir")]
    options = ["--emit", "static", "--chip", chips, "--target", target, "-o", f"{package}/"]
    subprocess.run([*command, *options], check=True)
    command = [
        *toolchain.zig_cc.command,
        *("-target", target, "-std=gnu11", "-O2", "-s", "-fno-sanitize=all"),
        *(f"-I{package}/include", f"-isystem{toolchain.tool('cuda-include').path}"),
        *(str(HERE / "bandwidth.c"), f"{package}/lib/libprograms.a"),
        *("-lm", "-lpthread", "-ldl", "-o", str(out / "bandwidth")),
    ]
    subprocess.run(command, check=True)
    shutil.copyfile(HERE / "by_torch.py", out / "by_torch.py")
    run = out / "run"
    run.write_text(
        "#!/bin/sh\n# Prints a line of JSON for each program; 1: a goal was missed.\n"
        'cd "$(dirname "$0")" || exit 2\n'
        "./bandwidth\nstatus=$?\n"
        "if command -v python3 >/dev/null; then python3 by_torch.py; fi\n"
        "exit $status\n"
    )
    run.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
